"""How two files differ: structure, constants, weights, and what else they carry.

Ids are no difference: operations count by name, constants by value, weights by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np

from nacre.core.values import Array
from nacre.nac.checks.examination import operand_offsets
from nacre.nac.format.external import WRITTEN
from nacre.nac.format.values import Constant, Instruction, Tensor
from nacre.nac.run.dequantisation import dequantize
from nacre.nac.spec.elements import QUANTIZATIONS
from nacre.nac.spec.instructions import CONTROL_FLOW, INPUT, OUTPUT, PARAMETER, STATE
from nacre.nac.tools.alignment import align
from nacre.nac.tools.listing import Line, lines_of, value_text
from nacre.nac.tools.opening import OpenedFile, stored_type, true_shape

Change = Literal["removed", "added", "changed"]
_MARKS: Mapping[Change, str] = {"removed": "-", "added": "+", "changed": "!"}


@dataclass(frozen=True)
class Row:
    """One difference: what of which part, and how it reads."""

    part: str
    change: Change
    what: str
    max_difference: float | None = None  # of the elements of a weight

    @property
    def text(self) -> str:
        """`+ v3 = aten.relu.default(v2)`."""
        return f"{_MARKS[self.change]} {self.what}"


@dataclass(frozen=True)
class Difference:
    """Every difference between two files, part by part."""

    rows: tuple[Row, ...]

    @property
    def is_none(self) -> bool:
        """Whether the files are the same."""
        return not self.rows


def difference(first: OpenedFile, second: OpenedFile, *, tolerance: float = 0.0) -> Difference:
    """How the second file differs from the first; weights closer than the tolerance are equal.

    At a tolerance of 0 weights are equal whose bytes are: 0.0 and -0.0 differ.
    """
    if not (isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"the tolerance is {tolerance}, expected a number of 0 or more")
    return Difference(
        (
            *_headers(first, second),
            *_structure(first, second),
            *_constants(first, second),
            *_weights(first, second, tolerance),
            *_payloads(first, second),
        )
    )


# Header and structure

_FIELDS = ("version", "is_internal", "has_training", "quant", "inputs", "outputs", "d_model")


def _headers(first: OpenedFile, second: OpenedFile) -> Iterator[Row]:
    for field in _FIELDS:
        a, b = getattr(first.file.header, field), getattr(second.file.header, field)
        if a != b:
            yield Row("header", "changed", f"{field}: {a} -> {b}")


def _structure(first: OpenedFile, second: OpenedFile) -> Iterator[Row]:
    """Instructions that only one program has, and those that take their operands elsewhere."""
    lines = list(lines_of(first)), list(lines_of(second))
    tokens = _tokens(first), _tokens(second)
    runs = align(*tokens)
    pairs = {a + i: b + i for a, b, length in runs for i in range(length)}
    yield from _unmatched_rows("removed", lines[0], pairs)
    yield from _unmatched_rows("added", lines[1], set(pairs.values()))
    for a, b in pairs.items():
        if _operands(first, a, pairs) != _operands(second, b, None):
            yield Row("structure", "changed", f"{lines[0][a].text} -> {lines[1][b].text}")
    if _schedule(first, pairs) != _schedule(second, None):
        yield Row("schedule", "changed", "the schedules of memory differ")


Moves = dict[int, int] | None  # instructions of one program by those of another


def _counterpart(opened: OpenedFile, index: int, moves: Moves) -> int:
    """An instruction as the other program counts it; what has no counterpart there is negative."""
    if moves is not None:
        return moves.get(index, -1 - index)
    return index if 0 <= index < len(opened.file.instructions) else -1 - index


def _operands(opened: OpenedFile, index: int, moves: Moves) -> list[int | None]:
    """Where an instruction takes its operands from; None for constants."""
    one = opened.file.instructions[index]
    offsets = operand_offsets(one.op, one.c, one.d)
    return [_counterpart(opened, index + offset, moves) if offset else None for offset in offsets]


def _schedule(opened: OpenedFile, moves: Moves) -> set[tuple[int, int, int]]:
    """Every command with its tick and its target, counted as the other program counts them."""
    return {
        (_counterpart(opened, tick.tick, moves), c.action, _counterpart(opened, c.target, moves))
        for tick in opened.file.schedule
        for c in tick.commands
    }


def _unmatched_rows(change: Change, lines: Iterable[Line], matched: Iterable[int]) -> Iterator[Row]:
    known = set(matched)
    yield from (Row("structure", change, line.text) for line in lines if line.index not in known)


def _tokens(opened: OpenedFile) -> list[object]:
    """Instructions without ids and without the places of their operands."""
    return [_token(opened, index, one) for index, one in enumerate(opened.file.instructions)]


def _token(opened: OpenedFile, index: int, instruction: Instruction) -> object:
    if not instruction.is_system:
        constants = (opened.file.constant_of.get(id_) for id_ in instruction.c[1:])
        given = tuple((c.tag, c.payload) if c is not None else None for c in constants)
        name = opened.file.name_of.get(instruction.op, instruction.op)
        return name, tuple(bool(offset) for offset in instruction.d), given
    kind = (instruction.op, instruction.variant, len(instruction.d))
    if instruction.op == OUTPUT:
        return kind
    if instruction.op != INPUT:  # how long branches are, and where they begin
        return (*kind, instruction.c[1:] if instruction.op == CONTROL_FLOW else instruction.d)
    id_ = instruction.c[1] if len(instruction.c) > 1 else 0
    if instruction.variant == PARAMETER:
        return (*kind, opened.parameters.get(id_))
    return (*kind, opened.inputs.get(index), id_ if instruction.variant == STATE else None)


# Constants


def _constants(first: OpenedFile, second: OpenedFile) -> Iterator[Row]:
    """Values that only one table has; ids do not count."""
    sides = [{(c.tag, c.payload): c for c in side.file.constants} for side in (first, second)]
    yield from (_constant("removed", c) for key, c in sides[0].items() if key not in sides[1])
    yield from (_constant("added", c) for key, c in sides[1].items() if key not in sides[0])


def _constant(change: Change, constant: Constant) -> Row:
    return Row("constants", change, value_text(constant.value))


# Weights


def _weights(first: OpenedFile, second: OpenedFile, tolerance: float) -> Iterator[Row]:
    sides = [{name: id_ for id_, name in side.parameters.items()} for side in (first, second)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        ids = [side.get(name) for side in sides]
        if ids[1] is None:
            yield Row("weights", "removed", name)
        elif ids[0] is None:
            yield Row("weights", "added", name)
        else:
            yield from _weight(name, first, second, ids[0], ids[1], tolerance)


def _weight(
    name: str,
    first: OpenedFile,
    second: OpenedFile,
    first_id: int,
    second_id: int,
    tolerance: float,
) -> Iterator[Row]:
    a, b = first.tensors.get(first_id), second.tensors.get(second_id)
    if a is None or b is None:
        if (a is None) != (b is None):
            yield Row("weights", "changed", f"{name}: only one of the files has its elements")
        return
    is_alike = _stored_form(a) == _stored_form(b)
    changes = [] if is_alike else [f"stored as {_stored_form(a)} -> {_stored_form(b)}"]
    distance = None
    if true_shape(a) == true_shape(b) and (a.data, a.scales) != (b.data, b.scales):
        distance = max_difference(dequantize(a), dequantize(b))
        if distance > tolerance:
            changes.append(f"elements differ by {distance:.6g} at most")
        elif is_alike and tolerance == 0:  # signs of zeros, numbers that are none
            changes.append("bytes differ, and elements are equal as numbers")
    if changes:
        yield Row("weights", "changed", f"{name}: {', '.join(changes)}", distance)


def _stored_form(tensor: Tensor) -> str:
    """How a tensor is stored."""
    quant = f" {QUANTIZATIONS[tensor.quant].name}" if tensor.quant else ""
    return f"{stored_type(tensor)}{quant}"


def max_difference(first: Array, second: Array) -> float:
    """The largest distance of two elements; infinite where only one of them is a number."""
    if first.size == 0:
        return 0.0
    with np.errstate(all="ignore"):  # signalling NaNs, and infinities
        wide = [side.astype(np.float64) for side in (first, second)]
        distance = np.abs(np.atleast_1d(wide[0] - wide[1]))
    same = np.atleast_1d((first == second) | (np.isnan(wide[0]) & np.isnan(wide[1])))
    distance[~same & (distance == 0)] = 1.0  # integers that f64 cannot tell apart
    distance[same] = 0.0
    distance[np.isnan(distance)] = np.inf
    return float(distance.max())


# What else a file carries


def _payloads(first: OpenedFile, second: OpenedFile) -> Iterator[Row]:
    if first.file.plan != second.file.plan:
        yield Row("plan", "changed", "the plans of ORCH differ")
    for tag in ("PROC", "TRNG", "ARRS"):
        if first.file.sections.get(tag, b"") != second.file.sections.get(tag, b""):
            yield Row("sections", "changed", f"{tag} differs")
    # Where the weights lie is told with the header; that they differ, with the weights.
    sides = [
        {r.name: r.data for r in side.file.resources if r.name != WRITTEN}
        for side in (first, second)
    ]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        if name not in sides[1]:
            yield Row("resources", "removed", name)
        elif name not in sides[0]:
            yield Row("resources", "added", name)
        elif sides[0][name] != sides[1][name]:
            yield Row("resources", "changed", name)
