"""Operations that can fail on some elements. Where a model would skip one, it must not be run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation
from nacre.core.opaque.calls import OPAQUE
from nacre.core.values import Array, Literal

# Whether no element of the second operand makes the operation fail; the shape is the first's.
Safe = Callable[[CoreOperation, tuple[int, ...], Array], bool]


def _is_inside_axis(op: CoreOperation, shape: tuple[int, ...], indices: Array) -> bool:
    axis = op.attributes["axis"]
    assert isinstance(axis, int)
    return _is_inside(indices, shape[axis])


def _is_inside_each(op: CoreOperation, shape: tuple[int, ...], indices: Array) -> bool:
    """Index tuples: it is enough to look at the smallest axis."""
    return _is_inside(indices, min(shape, default=0))


def _is_inside(indices: Array, size: int) -> bool:
    return bool(indices.min() >= -size and indices.max() < size)


def _has_no_zero(op: CoreOperation, shape: tuple[int, ...], array: Array) -> bool:
    return bool(array.all())


def _has_no_negative(op: CoreOperation, shape: tuple[int, ...], array: Array) -> bool:
    return bool((array >= 0).all())


_BY_OPCODE: dict[str, Safe] = {
    **dict.fromkeys(("GatherAxis", "GatherElements", "ScatterElements"), _is_inside_axis),
    **dict.fromkeys(("GatherNd", "ScatterNd"), _is_inside_each),
}
# Functions of two integers that are not defined for all of them.
_BY_FUNCTION: dict[str, Safe] = {
    **dict.fromkeys(("Div", "Mod", "Rem"), _has_no_zero),
    **dict.fromkeys(("Pow", "ShiftLeft", "ShiftRight"), _has_no_negative),
}


def first_fallible(builder: Builder, operations: Iterable[CoreOperation]) -> str | None:
    """An operation that some elements of its operands would make fail; None where there is none."""
    for op in operations:
        if op.opcode == OPAQUE:  # who knows
            return str(op.attributes["name"])
        is_safe = _condition(op)
        if is_safe is None:
            continue
        literal = builder.operation(op.operands[1]).attributes.get("data")
        shape = builder.type_of(op.operands[0]).shape
        if not isinstance(literal, Literal) or not is_safe(op, shape, literal.array):
            return str(op.attributes.get("op", op.opcode))
    return None


def _condition(op: CoreOperation) -> Safe | None:
    if op.opcode == "BinOp" and GRAPH_TYPES[op.type.dtype].is_integer:
        return _BY_FUNCTION.get(str(op.attributes["op"]))
    return _BY_OPCODE.get(op.opcode)
