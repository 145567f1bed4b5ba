"""The conformance kit: a backend against nacre's own kernels, opcode by opcode, type by type."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from nacre.base.excerpt import safe
from nacre.kernels.interface.call import Array
from nacre.nem.api.conformance_cases import Case, cases, store_cases
from nacre.nem.api.conformance_limits import Limits, limits_of
from nacre.nem.api.conformance_types import STORE, tried_opcodes
from nacre.nem.run.machine.backends import BackendError, ComputeBackend, bind_opcode, supports

Kind = Literal["exact", "within", "differs", "not supported", "failed"]
_GRAVEST_FIRST: tuple[Kind, ...] = ("failed", "differs", "not supported", "within", "exact")
_REFUSAL = "NotImplementedError"  # how a backend says that it lacks some types of an opcode


@dataclass(frozen=True)
class Verdict:
    """What the cases of one row came to."""

    kind: Kind
    detail: str = ""  # of what differs or failed: the first case, and how
    distance: float = 0.0  # the largest distance seen, where all are within their limits
    allowed: float = 0.0  # the limit there
    unit: Literal["ulps", "steps"] = "ulps"

    @property
    def is_good(self) -> bool:
        """Whether it is no reason to complain; what is not supported is none."""
        return self.kind not in ("differs", "failed")

    def __str__(self) -> str:
        if self.kind == "within":
            return f"within {_number(self.distance)} {self.unit} ({_number(self.allowed)} allowed)"
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@dataclass(frozen=True)
class Row:
    """One opcode with one combination of types."""

    opcode: str
    types: str
    cases: int
    verdict: Verdict


def check_backend(backend: ComputeBackend, opcodes: Collection[str] | None = None) -> Iterator[Row]:
    """Every row of the table, or those of some opcodes."""
    for opcode in tried_opcodes():
        if opcodes is None or opcode.name in opcodes:
            yield from _rows(backend, opcode.name, cases(opcode), opcode.name)
    if opcodes is None or STORE in opcodes:
        yield from _rows(backend, STORE, store_cases(), "quantize")


def _rows(
    backend: ComputeBackend, name: str, tried: Iterator[Case], computed_by: str
) -> Iterator[Row]:
    is_supported = supports(backend, computed_by)
    for types, group in groupby(tried, key=lambda case: case.types):
        same_types = list(group)
        verdict = _worst_verdict(backend, same_types) if is_supported else Verdict("not supported")
        yield Row(name, types, len(same_types), verdict)


def _worst_verdict(backend: ComputeBackend, cases: Sequence[Case]) -> Verdict:
    return _gravest([verdict_of(backend, case) for case in cases])


def _gravest(verdicts: Sequence[Verdict]) -> Verdict:
    """The first of the gravest; of those within their limits, the one furthest off."""
    return min(verdicts, key=lambda v: (_GRAVEST_FIRST.index(v.kind), -v.distance))


def verdict_of(backend: ComputeBackend, case: Case) -> Verdict:
    """What one case comes to."""
    actual = case.outputs()
    with np.errstate(all="ignore"):
        expected = case.expected()
    complaint = _run(backend, case, actual)
    if complaint is not None:
        if complaint.startswith(_REFUSAL):
            return Verdict("not supported", complaint.removeprefix(_REFUSAL).removeprefix(": "))
        return Verdict("failed", f"{complaint}; case {case.about}")
    limits = None if case.is_exact else limits_of(case.opcode, case.call, case.inputs)
    with np.errstate(all="ignore"):
        return _gravest(
            [_compare(case, f, e, limits) for f, e in zip(actual, expected, strict=True)]
        )


def _run(backend: ComputeBackend, case: Case, outputs: list[Array]) -> str | None:
    """Let a backend fill the outputs; what it complains about, if it does."""
    try:
        with np.errstate(all="ignore"):
            fault = bind_opcode(backend, case.opcode, case.call)(case.inputs, outputs)
    except BackendError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # a stranger's code can fail in any way
        return f"{type(error).__name__}: {safe(str(error))}"
    return None if fault is None or not fault.is_fatal else fault.message


def _compare(case: Case, actual: Array, expected: Array, limits: Limits | None) -> Verdict:
    is_same = (actual == expected) | ((actual != actual) & (expected != expected))  # NaN is NaN
    if is_same.all():
        return Verdict("exact")
    if limits is None:
        return _first_difference(case, actual, expected, ~is_same)
    is_right = is_same | ((limits.low <= actual) & (actual <= limits.high))
    if not is_right.all():
        return _first_difference(case, actual, expected, ~is_right)
    apart = _distances(actual, expected, limits)
    allowed = np.maximum(
        _distances(limits.low, expected, limits), _distances(limits.high, expected, limits)
    )
    worst = np.unravel_index(int(np.where(is_same, 0, apart).argmax()), apart.shape)
    return Verdict("within", "", float(apart[worst]), float(allowed[worst]), limits.unit_name)


def _distances(actual: Array, expected: Array, limits: Limits) -> Array:
    distance: Array = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) / limits.unit
    return distance


def _first_difference(case: Case, actual: Array, expected: Array, is_wrong: Array) -> Verdict:
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(is_wrong)), is_wrong.shape))
    count = int(np.count_nonzero(is_wrong))
    others = f", and {count - 1} more" if count > 1 else ""
    detail = (
        f"element {list(at)} is {actual[at]}, expected {expected[at]}{others}; case {case.about}"
    )
    return Verdict("differs", detail)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
