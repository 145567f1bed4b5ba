"""How far an output may be from the model's: the measure that fits it, and its bound.

Reals, and integers that are rounded reals, are judged by their error, or by the ratio of signal to
noise where one side rounds to integers of 8 bits. Indices and truth values are choices: one that is
next to the right one is as wrong as any other, so what counts is how many are the same.

Every precision is measured by error and ratio alike, and both are shown; which bounds there are is
the precision's. A reference that is the same everywhere proves nothing, whatever the measures say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, log10
from typing import Any, Literal

import numpy as np

from nacre.compile.accuracy.references import ReferenceStatistics
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

Measure = Literal["error", "SQNR", "agreement"]
# The largest error that is accepted, as a part of the output's largest magnitude.
TOLERANCES: Mapping[str, float] = {"f16": 1e-2, "f32": 1e-4}
SQNR_DB = 15.0  # the least ratio of signal to noise that is accepted of any precision
# The least share of choices that are the same: what lies next to a boundary may fall on either
# side of it once it is rounded. Integers that are made of integers have nothing to round.
AGREEMENT: Mapping[str, float] = {"f16": 0.99, "f32": 0.999, "i8": 0.9}
_ALL = 1.0
_HALVES = ("f16", "bf16")

_FUSED = frozenset({"QConv", "QLinear", "QPool", "QBinOp", "DynamicQuantizeScale"})
_ROUNDING = _FUSED | {"Quantize", "DynamicQuantizeZero"}
# They move integers, and what they are made of says what the integers mean.
_CHOOSING = frozenset({"ArgMax", "ArgMin", "TopKIndices", "Compare"})


@dataclass(frozen=True)
class Accuracy:
    """An output against the model's: a measure, what was found, and the bound."""

    name: str
    measure: Measure  # the one that is tighter at this precision
    value: float
    bound: float
    error: float | None = None  # both measures, where they mean something
    sqnr: float | None = None
    problem: str = ""  # why the reference proves nothing

    @property
    def is_met(self) -> bool:
        """Whether the output is close enough."""
        if self.measure == "error":
            return self.value <= self.bound and (self.sqnr is None or self.sqnr >= SQNR_DB)
        return self.value >= self.bound

    @property
    def margin(self) -> float:
        """How much smaller errors are than they may be, in dB; below 0 where the bound is missed.

        The share of choices that tip over grows as the errors do that tip them.
        """
        if self.measure == "SQNR":
            return self.value - self.bound
        is_share = self.measure == "agreement"
        most, found = (1 - self.bound, 1 - self.value) if is_share else (self.bound, self.value)
        if not found:
            return inf
        return 20 * log10(most / found) if most > 0 and found < inf else -inf

    @property
    def describe(self) -> str:
        """What was found."""
        return _value_text(self.measure, self.value)

    @property
    def describe_bound(self) -> str:
        """What is accepted."""
        return _value_text(self.measure, self.bound)

    @property
    def describe_with_bound(self) -> str:
        """What was found, and what is accepted."""
        limit = "at most" if self.measure == "error" else "at least"
        text = f"{self.measure} {self.describe}, {limit} {self.describe_bound}"
        if self.measure == "error" and self.sqnr is not None:
            sqnr, least = (_value_text("SQNR", db) for db in (self.sqnr, SQNR_DB))
            return f"{text}; SQNR {sqnr}, at least {least}"
        if self.measure == "SQNR" and self.error is not None:
            return f"{text}; error {_value_text('error', self.error)}"
        return text

    @property
    def describe_problem(self) -> str:
        """What keeps the comparison from proving anything; empty where nothing does."""
        return f"{self.name} proves nothing: {self.problem}" if self.problem else ""

    def as_json(self) -> dict[str, Any]:
        """Plain values; None for what is infinite, or no problem."""
        return {
            "name": self.name,
            "measure": self.measure,
            "value": self.value if isfinite(self.value) else None,
            "bound": self.bound,
            "ok": self.is_met and not self.problem,
            "problem": self.problem or None,
        }


def _value_text(measure: Measure, value: float) -> str:
    if measure == "agreement":
        return f"{100 * value:.4g} %"
    return f"{value:.2e}" if measure == "error" else f"{value:.1f} dB"


def measure_accuracy(
    name: str,
    source: Module,
    value: int,
    precision: str,
    found: Array,
    expected: Array,
    *,
    least_db: float | None = None,
) -> Accuracy:
    """An output of the model, by what its elements mean; `least_db` is of plans on integers."""
    meter = AccuracyMeter(name, source, value, precision, least_db)
    meter.add(found, expected)
    return meter.accuracy


def comparison_precision(source: Module, precision: str) -> str:
    """The coarser of a plan's precision and the model's: an evaluation in halves is no finer."""
    is_half = precision == "f32" and any(op.type.dtype in _HALVES for op in source.operations)
    return "f16" if is_half else precision


class AccuracyMeter:
    """An output of the model over several runs, by what its elements mean."""

    def __init__(
        self, name: str, source: Module, value: int, precision: str, least_db: float | None = None
    ) -> None:
        self._least_db = SQNR_DB if least_db is None else least_db
        self._name, self._precision = name, comparison_precision(source, precision)
        self._meaning = _output_meaning(source, value)
        self._error, self._ratio = _RelativeError(), _NoiseRatio(_zero_point(source, value))
        self._seen = ReferenceStatistics(source, value)
        self._sums: _Agreement | _NoiseRatio | _RelativeError = self._error
        if self._meaning in ("choices", "integers"):
            self._sums = _Agreement()
        elif precision == "i8" or rounds_to_integers(source):
            self._sums = self._ratio

    def add(self, found: Array, expected: Array) -> None:
        """Take in the output of one run, and the model's."""
        self._seen.add(expected)
        if isinstance(self._sums, _Agreement):
            self._sums.add(found, expected)
        else:
            self._error.add(found, expected)
            self._ratio.add(found, expected)

    @property
    def accuracy(self) -> Accuracy:
        """What was found in all runs together."""
        made = Accuracy(self._name, self._sums.measure, self._sums.value, self._bound())
        made = replace(made, problem=self._seen.problem)
        if isinstance(self._sums, _Agreement):
            return made
        made = replace(made, error=self._error.value, sqnr=self._ratio.value)
        is_near = self._meaning == "reals" and made.is_met and not made.problem
        return replace(made, problem=self._ratio.problem) if is_near else made

    def _bound(self) -> float:
        if isinstance(self._sums, _Agreement):
            return AGREEMENT[self._precision] if self._meaning == "choices" else _ALL
        if isinstance(self._sums, _NoiseRatio):
            return self._least_db
        bound = TOLERANCES[self._precision]
        # What lies next to a boundary may be one more or less.
        return bound + 1 / max(1.0, self._sums.most) if self._meaning == "rounded" else bound


def rounds_to_integers(source: Module) -> bool:
    """Whether the model rounds what its layers make to few integers (QDQ, QLinear)."""
    for op in source.operations:
        if op.opcode in _FUSED:
            return True
        if op.opcode == "Dequantize" and not _is_known(source, op.operands[0]):
            return True
    return False


def _is_known(source: Module, value: int) -> bool:
    op = source.by_id[value]
    return op.opcode == "Input" or constant_array(op) is not None


def _output_meaning(
    source: Module, value: int
) -> Literal["reals", "rounded", "choices", "integers"]:
    """What an output's elements are: where integers come from, back to the floats behind them."""
    element = source.by_id[value].type.element
    if element.kind == "float":
        return "reals"
    if element.name == "bool":
        return "choices"
    is_rounded = False
    seen: set[int] = set()
    pending = [value]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        op = source.by_id[at]
        inner = [source.by_id[o] for o in op.operands]
        has_floats = any(maker.type.element.kind == "float" for maker in inner)
        if op.opcode in _ROUNDING or (op.opcode == "Cast" and has_floats):
            is_rounded = True
        elif op.opcode in _CHOOSING or has_floats:
            return "choices"
        else:
            pending += op.operands
    return "rounded" if is_rounded else "integers"


def _zero_point(source: Module, value: int) -> float:
    """What stands for 0 in an output that a `Quantize` makes: a signal is counted from there."""
    op: CoreOperation = source.by_id[value]
    while op.opcode in ("Reshape", "Transpose", "Squeeze", "ExpandDims"):
        op = source.by_id[op.operands[0]]
    if op.opcode != "Quantize" or len(op.operands) < 3:
        return 0.0
    zero = constant_array(source.by_id[op.operands[2]])
    return float(zero.reshape(-1)[0]) if zero is not None and zero.size == 1 else 0.0


# Measures


def relative_error(found: Array, expected: Array) -> float:
    """The largest error over the largest magnitude; infinite where one of them is no number."""
    return _measure_once(_RelativeError(), found, expected)


def sqnr(found: Array, expected: Array, zero: float = 0.0) -> float:
    """Signal over noise in dB; infinite where there is no noise."""
    return _measure_once(_NoiseRatio(zero), found, expected)


def agreement(found: Array, expected: Array) -> float:
    """The share of elements that are the same."""
    return _measure_once(_Agreement(), found, expected)


def _measure_once(
    sums: _Agreement | _NoiseRatio | _RelativeError, found: Array, expected: Array
) -> float:
    sums.add(found, expected)
    return sums.value


class _RelativeError:
    measure: Measure = "error"

    def __init__(self) -> None:
        self.worst = self.most = 0.0

    def add(self, found: Array, expected: Array) -> None:
        numbers = _numbers(found, expected)
        if numbers is None:
            self.worst = inf
            return
        a, b = numbers
        self.worst = max(self.worst, float(np.max(np.abs(a - b), initial=0.0)))
        self.most = max(self.most, float(np.max(np.abs(b), initial=0.0)))

    @property
    def value(self) -> float:
        return self.worst / self.most if self.most else self.worst


class _NoiseRatio:
    measure: Measure = "SQNR"

    def __init__(self, zero: float = 0.0) -> None:
        self._zero = zero
        self._noise = self._signal = 0.0
        self._low, self._high = inf, -inf
        self._count = 0
        self._sum = self._squares = 0.0  # from the first element on, which rounding leaves alone
        self._first: float | None = None

    def add(self, found: Array, expected: Array) -> None:
        numbers = _numbers(found, expected)
        if numbers is None:
            self._noise = inf
            return
        a, b = numbers
        self._noise += float(np.sum((a - b) ** 2))
        self._signal += float(np.sum((b - self._zero) ** 2))
        if not b.size:
            return
        self._first = float(b[0]) if self._first is None else self._first
        away = b - self._first
        self._count += b.size
        self._sum, self._squares = self._sum + float(away.sum()), self._squares + float(away @ away)
        self._low, self._high = min(self._low, float(b.min())), max(self._high, float(b.max()))

    @property
    def problem(self) -> str:
        """Why a ratio says nothing: all of the signal is one number that every element has."""
        if not self._count or not self._noise:
            return ""
        deviations = self._squares - self._sum**2 / self._count
        if not 0 < deviations < self._noise:
            return ""
        return (
            f"the reference varies from {self._low:.9g} to {self._high:.9g}, by less than the error"
        )

    @property
    def value(self) -> float:
        if not self._noise:
            return inf
        ratio = self._signal / self._noise
        return 10 * float(np.log10(ratio)) if ratio else -inf


class _Agreement:
    measure: Measure = "agreement"

    def __init__(self) -> None:
        self._same = self._count = 0

    def add(self, found: Array, expected: Array) -> None:
        self._same += int(np.sum(found == expected))
        self._count += expected.size

    @property
    def value(self) -> float:
        return self._same / self._count if self._count else 1.0


def _numbers(found: Array, expected: Array) -> tuple[Array, Array] | None:
    """The finite elements of both; None where others are not the same on both sides."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    is_number = np.isfinite(a) & np.isfinite(b)
    is_same = (a == b) | (np.isnan(a) & np.isnan(b))
    return (a[is_number], b[is_number]) if (is_number | is_same).all() else None
