"""The element type in which ATen computes with operands of several types.

Tensors with axes come before those without, and those before numbers: a lower one only matters
where its kind is higher (truth value, integer, float).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType

_SIGNED = {8: "i8", 16: "i16", 32: "i32", 64: "i64"}


def common_type(operands: Sequence[TensorType | bool | int | float]) -> str:
    """The element type of tensors and numbers together."""
    axes = _promote_all(o.dtype for o in operands if isinstance(o, TensorType) and o.rank)
    scalars = _promote_all(o.dtype for o in operands if isinstance(o, TensorType) and not o.rank)
    numbers = _promote_all(_number_type(o) for o in operands if not isinstance(o, TensorType))
    found = _promote_over(_promote_over(axes, scalars), numbers)
    return found if found is not None else "f32"


def _number_type(number: float) -> str:
    if isinstance(number, bool):
        return "bool"
    return "i64" if isinstance(number, int) else "f32"


def _promote_all(dtypes: Iterable[str]) -> str | None:
    found = list(dtypes)
    return reduce(promote, found) if found else None


def _promote_over(higher: str | None, lower: str | None) -> str | None:
    if higher is None or lower is None:
        return lower if higher is None else higher
    is_higher_float = GRAPH_TYPES[higher].kind == "float"
    is_lower_float = GRAPH_TYPES[lower].kind == "float"
    if not is_higher_float and (higher == "bool" or is_lower_float):
        return promote(higher, lower)
    return higher


def promote(a: str, b: str) -> str:
    """The least type that holds both."""
    if a == b:
        return a
    one, other = GRAPH_TYPES[a], GRAPH_TYPES[b]
    kinds = {one.kind, other.kind}
    if "bool" in kinds:
        return b if one.kind == "bool" else a
    if kinds == {"float"}:
        if one.bits == other.bits:
            return "f32"
        return a if one.bits > other.bits else b
    if "float" in kinds:
        return a if one.kind == "float" else b
    if one.kind == other.kind:
        return a if one.bits > other.bits else b
    signed, unsigned = (one, other) if one.kind == "signed" else (other, one)
    return signed.name if signed.bits > unsigned.bits else _SIGNED[min(2 * unsigned.bits, 64)]
