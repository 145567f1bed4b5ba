"""Operations that can fail on some elements: where a model would skip one, it is kept from failing.

Core IR is flat, and computes both branches of a choice. What could fail in the one that is not
meant is given an operand there that cannot: an index of 0, a divisor of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from nacre.base.elements import GRAPH_TYPES, Kind
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, TensorType
from nacre.core.opaque.calls import OPAQUE
from nacre.core.values import Array, Attributes, Literal

# Whether no element of the second operand makes the operation fail; the shape is the first's.
Safe = Callable[[Attributes, tuple[int, ...], Array], bool]
_AT = 1  # the operand that makes an operation fail: indices, a divisor, an exponent


def _is_inside_axis(given: Attributes, shape: tuple[int, ...], indices: Array) -> bool:
    axis = given["axis"]
    assert isinstance(axis, int)
    return _is_inside(indices, shape[axis])


def _is_inside_first(given: Attributes, shape: tuple[int, ...], indices: Array) -> bool:
    return _is_inside(indices, shape[0])


def _is_row(given: Attributes, shape: tuple[int, ...], indices: Array) -> bool:
    return bool(indices.min() >= 0) and _is_inside(indices, shape[0])


def _is_inside_each(given: Attributes, shape: tuple[int, ...], indices: Array) -> bool:
    """Index tuples: it is enough to look at the smallest axis."""
    return _is_inside(indices, min(shape, default=0))


def _is_inside(indices: Array, size: int) -> bool:
    return bool(indices.min() >= -size and indices.max() < size)


def _has_no_zero(given: Attributes, shape: tuple[int, ...], array: Array) -> bool:
    return bool(array.all())


def _has_no_negative(given: Attributes, shape: tuple[int, ...], array: Array) -> bool:
    return bool((array >= 0).all())


_BY_OPCODE: dict[str, Safe] = {
    "Gather": _is_row,
    "ScatterRows": _is_inside_first,
    **dict.fromkeys(("GatherAxis", "GatherElements", "ScatterElements"), _is_inside_axis),
    **dict.fromkeys(("GatherNd", "ScatterNd"), _is_inside_each),
}
# Functions of two integers that are not defined for all of them, by the kind of integer.
_BY_FUNCTION: dict[str, dict[Kind, Safe]] = {
    **{name: {"signed": _has_no_zero, "unsigned": _has_no_zero} for name in ("Div", "Mod", "Rem")},
    **{name: {"signed": _has_no_negative} for name in ("Pow", "ShiftLeft", "ShiftRight")},
}


class BranchBuilder(Builder):
    """A builder whose operations cannot fail in a branch where the other one is meant."""

    _branches: tuple[tuple[int, bool], ...] = ()  # conditions around, and what each must be

    @contextmanager
    def branch(self, condition: int, is_true: bool) -> Iterator[None]:
        """What is added meanwhile is meant where a truth value is as told."""
        around = self._branches
        self._branches = (*around, (condition, is_true))
        try:
            yield
        finally:
            self._branches = around

    def _append(
        self, opcode: str, operands: tuple[int, ...], given: Attributes, type_: TensorType
    ) -> int:
        if self._branches and len(operands) > _AT:
            is_safe = _condition(opcode, given, type_)
            if is_safe is not None and not self._is_known_safe(is_safe, given, operands):
                guarded = self._guarded(operands[_AT], 1 if is_safe is _has_no_zero else 0)
                operands = (*operands[:_AT], guarded, *operands[_AT + 1 :])
        return super()._append(opcode, operands, given, type_)

    def _is_known_safe(self, is_safe: Safe, given: Attributes, operands: tuple[int, ...]) -> bool:
        literal = self.operation(operands[_AT]).attributes.get("data")
        shape = self.type_of(operands[0]).shape
        return isinstance(literal, Literal) and is_safe(given, shape, literal.array)

    def _guarded(self, value: int, harmless: int) -> int:
        """A value where its branch is meant, and a harmless number elsewhere."""
        # A module that was built so and comes back has its guards.
        there = dict(self._guards(value, harmless))
        dtype = self.type_of(value).dtype
        for condition, is_true in reversed(self._branches):
            if there.get(condition) == is_true:
                continue
            other = self.constant(np.array(harmless, GRAPH_TYPES[dtype].dtype), dtype)
            sides = (value, other) if is_true else (other, value)
            value = self.add("Where", condition, *sides)
        return value

    def _guards(self, value: int, harmless: int) -> Iterator[tuple[int, bool]]:
        """The guards that a value has: of each the condition, and what it must be."""
        while (op := self.operation(value)).opcode == "Where":
            condition, true, false = op.operands
            is_guard = [self._is_number(side, harmless) for side in (true, false)]
            if is_guard.count(True) != 1:
                return
            value = false if is_guard[0] else true
            yield condition, is_guard[1]

    def _is_number(self, value: int, number: int) -> bool:
        op = self.operation(value)
        data = op.attributes.get("data")
        return isinstance(data, Literal) and op.type.shape == () and data.array.item() == number


def first_unknown(operations: Iterable[CoreOperation]) -> str | None:
    """The name of a call of which nobody knows whether it can fail; None where there is none."""
    return next((str(op.attributes["name"]) for op in operations if op.opcode == OPAQUE), None)


def _condition(opcode: str, given: Attributes, type_: TensorType) -> Safe | None:
    """What keeps an operation from failing; None where it never fails."""
    if opcode == "BinOp":
        kinds = _BY_FUNCTION.get(str(given["op"]), {})
        return kinds.get(GRAPH_TYPES[type_.dtype].kind)
    return _BY_OPCODE.get(opcode)
