"""Whether it is known before a run that no row of a mask is hidden whole.

Then the largest of each row is about 0, and the mask can be added in f16 as it is: decoders whose
tokens always see themselves have such masks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, mul, sub

import numpy as np

from nacre.core.constants import constant_array
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

_SUMS: dict[str, Callable[[float, float], float]] = {"Add": add, "Sub": sub, "Mul": mul}
_SAME_VALUES = frozenset({"Reshape", "ExpandDims", "Squeeze", "Broadcast"})
_LEAST = float(np.finfo(np.float16).min)


@dataclass(frozen=True)
class _Bounds:
    """Between what all values lie, and what the largest of each row is at least."""

    low: float
    high: float
    top: float


def has_level_rows(site: RewriteSite, masks: list[int], near: float) -> bool:
    """Whether a mask's rows along its last axis have their largest within so much of 0, in f16."""
    found = _bounds(site, masks[0]) if len(masks) == 1 else None
    return found is not None and found.low >= _LEAST and -near <= found.top <= found.high <= near


def _bounds(site: RewriteSite, value: int) -> _Bounds | None:
    op = site.maker(value)
    if op is None:
        return None
    known = constant_array(op)
    if known is not None:
        return _bounds_of_constant(known)
    if op.opcode == "Where":
        return _bounds_of_parts(
            [_bounds(site, operand) for operand in op.operands[1:]], is_row=False
        )
    if op.opcode == "Concat":
        is_row = int(str(op.attributes["axis"])) in (-1, op.type.rank - 1)
        return _bounds_of_parts([_bounds(site, operand) for operand in op.operands], is_row=is_row)
    if op.opcode == "Cast" and site.type(op.operands[0]).dtype == "bool":
        return _Bounds(0.0, 1.0, 0.0)
    if op.opcode == "BinOp" and op.attributes["op"] in _SUMS:
        return _bounds_of_sum(str(op.attributes["op"]), *(_bounds(site, x) for x in op.operands))
    if op.opcode in _SAME_VALUES:
        found = _bounds(site, op.operands[0])
        shape = site.type(op.operands[0]).shape
        is_same = found is None or shape[-1:] == op.type.shape[-1:]
        return found if is_same or found is None else _Bounds(found.low, found.high, found.low)
    return None


def _bounds_of_constant(array: Array) -> _Bounds | None:
    if array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
        return None
    rows = array.max(axis=-1) if array.ndim else array
    return _Bounds(float(array.min()), float(array.max()), float(rows.min()))


def _bounds_of_sum(op: str, a: _Bounds | None, b: _Bounds | None) -> _Bounds | None:
    """Of sums, differences and products: ends of the one with ends of the other."""
    if a is None or b is None:
        return None
    made = [_SUMS[op](x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return _Bounds(min(made), max(made), min(made))


def _bounds_of_parts(parts: list[_Bounds | None], *, is_row: bool) -> _Bounds | None:
    """Of values chosen from parts; where parts make up a row, it has the largest of all."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    low = min(part.low for part in known)
    top = max(part.top for part in known) if is_row else low
    return _Bounds(low, max(part.high for part in known), top)
