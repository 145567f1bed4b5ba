"""What values an input of a model can have, from what the model does with it.

An input is followed through everything that moves its elements, converts them, or is affine in
them, to the operations that say what it is: an index has a table's axis, a length is compared with
positions, a mask is a condition or is multiplied by a huge number, a logarithm wants what is above
0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import floor, inf, isfinite
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from nacre.core.constants import constant_array
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

# From what says least to what says most: an index that is also compared with something is an index.
Kind = Literal["any", "within", "mask", "length", "index"]
_ORDER: tuple[Kind, ...] = ("any", "within", "mask", "length", "index")
_MOST_STEPS = 4096  # values that one input is followed to
_HUGE = 1e3  # a factor of masks that are added to scores
_FEW = 16  # elements of a float input that is a setting and no signal


@dataclass(frozen=True)
class InputRange:
    """What an input is, and between which numbers it lies."""

    kind: Kind = "any"
    low: float = -inf
    high: float = inf

    def combine(self, other: InputRange) -> InputRange:
        """Both at once, where some number fits both; else the one that says more."""
        less, more = sorted((self, other), key=lambda one: (_ORDER.index(one.kind), one.high))
        low, high = max(self.low, other.low), min(self.high, other.high)
        # A number that is compared with 0 is no flag for that.
        is_other = less.kind == "mask" != more.kind
        return more if is_other or low > high else InputRange(more.kind, low, high)


class _AffineOfInput(NamedTuple):
    """A value that is, element by element, `factor` times an input plus `offset`."""

    value: int
    factor: float = 1.0
    offset: float = 0.0


class _OperandUse(NamedTuple):
    """A place where a followed value is an operand."""

    op: CoreOperation
    at: int  # which operand
    source: _AffineOfInput
    known: Callable[[int], Array | None]
    shapes: Callable[[int], tuple[int, ...]]

    def result(self, factor: float = 1.0, offset: float = 0.0) -> _AffineOfInput:
        """The result, affine in the operand."""
        old = self.source
        return _AffineOfInput(self.op.value_id, old.factor * factor, old.offset * factor + offset)

    def limits(self, kind: Kind, low: float, high: float) -> InputRange:
        """What limits of the operand are for the input."""
        factor, offset = self.source.factor, self.source.offset
        if not factor or not isfinite(factor) or not isfinite(offset):
            return InputRange()
        ends = sorted((end - offset) / factor for end in (low, high))
        return InputRange(kind, *ends)


Found = Iterator[_AffineOfInput | InputRange]


def input_ranges(module: Module) -> Mapping[str, InputRange]:
    """The range of every input, by name."""
    reader = _Reader(module)
    return {str(op.attributes["name"]): reader.range_of(op) for op in module.inputs}


class _Reader:
    """Follows inputs through a module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._users: defaultdict[int, list[tuple[CoreOperation, int]]] = defaultdict(list)
        self._reached: set[int] = set()  # values that depend on an input
        self._arrays: dict[int, Array | None] = {}
        for op in module.operations:
            for at, operand in enumerate(op.operands):
                self._users[operand].append((op, at))
            if op.opcode == "Input" or not self._reached.isdisjoint(op.operands):
                self._reached.add(op.value_id)

    def range_of(self, op: CoreOperation) -> InputRange:
        combined = InputRange("mask", 0, 1) if op.type.dtype == "bool" else InputRange()
        pending, seen = [_AffineOfInput(op.value_id)], set[_AffineOfInput]()
        while pending and len(seen) < _MOST_STEPS:
            source = pending.pop()
            if source in seen:
                continue
            seen.add(source)
            for user, at in self._users[source.value]:
                use = _OperandUse(user, at, source, self._constant_elements, self._shape)
                for item in _uses(use):
                    if isinstance(item, InputRange):
                        combined = combined.combine(item)
                    else:
                        pending.append(item)
        if combined.kind == "any" and op.type.element.is_integer and self._is_index(op.value_id):
            return InputRange("index", 0, 1)  # of which table is not known: all have these rows
        return combined

    def _is_index(self, value: int) -> bool:
        """Whether what is made of a value, in whatever way, picks rows."""
        followed = {value}
        for op in self._module.operations:
            if not followed.isdisjoint(op.operands):
                at = _INDICES.get(op.opcode)
                if at is not None and op.operands[at] in followed:
                    return True
                followed.add(op.value_id)
        return False

    def _shape(self, value: int) -> tuple[int, ...]:
        return self._module.by_id[value].type.shape

    def _constant_elements(self, value: int) -> Array | None:
        """The elements of a value that no input reaches."""
        if value in self._reached:
            return None
        if value not in self._arrays:
            constant = constant_array(self._module.by_id[value])
            self._arrays[value] = self._evaluate(value) if constant is None else constant
        return self._arrays[value]

    def _evaluate(self, value: int) -> Array:
        behind = {value}
        for op in reversed(self._module.operations):
            if op.value_id in behind:
                behind.update(op.operands)
        operations = tuple(op for op in self._module.operations if op.value_id in behind)
        return evaluate(Module(operations, (value,)))[0]


def _uses(use: _OperandUse) -> Found:
    """Where a value goes on to, and what an operation says about it."""
    rule = _RULES.get(use.op.opcode)
    if rule is not None:
        yield from rule(use)


def _follow_move(use: _OperandUse) -> Found:
    if use.at == 0 or use.op.opcode == "Concat":
        yield use.result()


def _follow_cast(use: _OperandUse) -> Found:
    if use.op.type.dtype == "bool":
        yield use.limits("mask", 0, 1)
    yield use.result()


def _follow_negation(use: _OperandUse) -> Found:
    yield use.result(-1.0)


# Functions of elements: between which numbers they are defined.
_DOMAINS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("Log", "Log2", "Log10", "Sqrt", "Rsqrt"), (0.0, inf)),
        **dict.fromkeys(("Acos", "Asin", "Atanh"), (-1.0, 1.0)),
        "Log1p": (-1.0, inf),
        "Acosh": (1.0, inf),
    }
)
_WHOLE = frozenset({"Floor", "Ceil", "Round", "Trunc"})


def _function(use: _OperandUse) -> Found:
    name = str(use.op.attributes.get("op", use.op.opcode))
    if name in _DOMAINS:
        yield use.limits("within", *_DOMAINS[name])
    elif name in _WHOLE:
        yield use.result()
    elif name == "Not":
        yield use.limits("mask", 0, 1)


def _arithmetic(use: _OperandUse) -> Found:
    other = use.known(use.op.operands[1 - use.at])
    if other is None or not other.size or other.dtype.kind not in "fiu":
        return
    name = str(use.op.attributes["op"])
    if name == "Pow":
        if use.at == 0 and not bool((other == np.floor(other)).all()):
            yield use.limits("within", 0.0, inf)
        return
    for number in {float(np.min(other)), float(np.max(other))}:
        affine = _affine(use, name, number)
        if affine is None:
            continue
        if abs(affine.factor) >= _HUGE > abs(use.source.factor):
            yield use.limits("mask", 0, 1)
        elif isfinite(affine.factor) and isfinite(affine.offset):
            yield affine


def _affine(use: _OperandUse, name: str, number: float) -> _AffineOfInput | None:
    """The result of an operation with a number, where it is affine."""
    if name == "Add":
        return use.result(1.0, number)
    if name == "Sub":
        return use.result(1.0, -number) if use.at == 0 else use.result(-1.0, number)
    if name == "Mul" and number:
        return use.result(number)
    if name in ("Div", "FloorDiv") and use.at == 0 and number:
        return use.result(1 / number)
    return use.result() if name in ("Min", "Max") else None


def _range_of_comparison(use: _OperandUse) -> Found:
    other = use.known(use.op.operands[1 - use.at])
    if other is None or not other.size or other.dtype.kind not in "fiu":
        return
    name = str(use.op.attributes["op"])
    low, high = float(np.min(other)), float(np.max(other))
    if low == high:
        yield from _range_beside_number(use, name, low)
    elif name in ("Eq", "Ne"):
        yield use.limits("index", low, high)  # one of them, as in a vector of one 1
    elif other.dtype.kind in "iu" or bool((other == np.floor(other)).all()):
        yield use.limits("length", low + 1, high + 1)
    elif np.prod(use.shapes(use.source.value)) <= _FEW:
        # A setting among figures of the model: most of them are to stay on its right side.
        third = (high - low) / 3
        is_upper = (name in ("Lt", "Le")) == (use.at == 1)
        yield use.limits("within", *((high - third, high) if is_upper else (low, low + third)))


def _range_beside_number(use: _OperandUse, name: str, number: float) -> Found:
    """A flag where it is about 0 and 1; else both sides of the number."""
    if number in (0.0, 1.0):
        yield use.limits("mask", 0, 1)
    elif name in ("Eq", "Ne"):
        yield use.limits("length", number - 1, number + 1)


def _follow_choice(use: _OperandUse) -> Found:
    if use.at == 0:
        yield use.limits("mask", 0, 1)
    else:
        yield use.result()


def _axis_of(use: _OperandUse) -> int:
    axis = use.op.attributes.get("axis", 0)
    assert isinstance(axis, int)
    return axis


def _range_of_rows(use: _OperandUse) -> Found:
    """Numbers of rows: of the table's axis."""
    if use.at == 1:
        yield use.limits("index", 0, use.shapes(use.op.operands[0])[_axis_of(use)] - 1)
    elif use.at == 0:
        yield use.result()  # one element for each index


def _range_of_rows_nd(use: _OperandUse) -> Found:
    if use.at != 1:
        return
    skipped = use.op.attributes.get("batch_dims", 0)
    assert isinstance(skipped, int)
    count = use.shapes(use.op.operands[1])[-1]
    yield use.limits("index", 0, min(use.shapes(use.op.operands[0])[skipped:][:count]) - 1)


def _range_of_starts(use: _OperandUse) -> Found:
    """Where a slice begins: it has to end within its axis."""
    whole, at = use.op.operands[0], len(use.op.operands) - 1
    if use.at != at:
        return
    part = use.op.type.shape if use.op.opcode == "DynamicSlice" else use.shapes(use.op.operands[1])
    yield use.limits("index", 0, max(a - b for a, b in zip(use.shapes(whole), part, strict=True)))


def _one_hot(use: _OperandUse) -> Found:
    depth = use.op.attributes["depth"]
    assert isinstance(depth, int)
    if use.at == 0:
        yield use.limits("index", 0, depth - 1)


_MOVING = (
    "Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Broadcast", "Tile", "Flip",
    "Concat", "Index", "Pad", "DepthToSpace", "SpaceToDepth", "Clip", "Trilu",
)  # fmt: skip
_RULES: Mapping[str, Callable[[_OperandUse], Found]] = MappingProxyType(
    {
        **dict.fromkeys(_MOVING, _follow_move),
        **dict.fromkeys(
            ("GatherAxis", "Gather", "GatherElements", "ScatterElements"), _range_of_rows
        ),
        **dict.fromkeys(("GatherNd", "ScatterNd"), _range_of_rows_nd),
        "ScatterRows": _range_of_rows,
        **dict.fromkeys(("DynamicSlice", "DynamicUpdate"), _range_of_starts),
        **dict.fromkeys(("Log", "Unary"), _function),
        "OneHot": _one_hot,
        "Cast": _follow_cast,
        "Neg": _follow_negation,
        "BinOp": _arithmetic,
        "Compare": _range_of_comparison,
        "Where": _follow_choice,
    }
)


# Which operand numbers rows.
_INDICES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("GatherAxis", "Gather", "GatherElements", "GatherNd"), 1),
        **dict.fromkeys(("ScatterElements", "ScatterNd", "ScatterRows", "DynamicSlice"), 1),
        "DynamicUpdate": 2,
        "OneHot": 0,
    }
)


def integer_range(range_: InputRange, most: int) -> tuple[int, int]:
    """The first and the last integer of a range, which ends at `most` where it has no end."""
    low = 0 if range_.low == -inf else int(-floor(-range_.low))
    high = max(low, low + most if range_.high == inf else floor(range_.high))
    return low, high
