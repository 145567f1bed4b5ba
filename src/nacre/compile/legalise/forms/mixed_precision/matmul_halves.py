"""Products of two tensors in f32 in halves of f16, with one of them known or neither.

Rows of the left operand are scaled apart, and so are columns of the right one.
"""

from __future__ import annotations

from math import floor, log2

import numpy as np

from nacre.compile.legalise.forms.mixed_precision.halves import (
    REST,
    SPARE,
    F32Writer,
    scale_to_one,
    split_in_halves,
)
from nacre.core.values import Array

_ADDED_UP = (-1, -2)  # the axis that is, of the left and of the right operand


def matmul_in_halves(writer: F32Writer) -> int | None:
    """The product at hand; None where it has no such form."""
    site = writer.site
    if min(site.type(value).rank for value in site.operands) < 2 or 0 in site.op.type.shape:
        return None
    arrays = [site.constant(value) for value in site.operands]
    known = [at for at, array in enumerate(arrays) if array is not None]
    if not known:
        return _product_of_computed(writer)
    at = known[0]
    array = arrays[at]
    assert array is not None
    return _product_by_weights(writer, site.operands[1 - at], array.astype(np.float64), at)


def _product_of_computed(writer: F32Writer) -> int:
    site = writer.site
    depth = site.type(site.operands[0]).shape[-1]
    most = 2.0 ** floor(log2(SPARE / max(depth, 1)) / 2)
    (a, a_divisor), (b, b_divisor) = (
        _split_scaled(writer, x, axis, most)
        for x, axis in zip(site.operands, _ADDED_UP, strict=True)
    )
    product = site.add("MatMul", a[0], b[0])
    left = _concat(writer, [a[1], a[0]], _ADDED_UP[0])
    right = _concat(writer, [b[0], b[1]], _ADDED_UP[1])
    whole = writer.join(product, site.add("MatMul", left, right))
    whole = writer.add("BinOp", whole, a_divisor, op="Mul")
    return writer.add("BinOp", whole, b_divisor, op="Mul")


def _product_by_weights(writer: F32Writer, x: int, array: Array, at: int) -> int:
    """A product by weights, which are the left operand or the right one (`at` is 0 or 1)."""
    site, axis = writer.site, _ADDED_UP[at]
    array, factor, most = scale_to_one(array, (array.ndim + axis,))
    (high, rest), divisor = _split_scaled(writer, x, _ADDED_UP[1 - at], most)
    first, second = split_in_halves(array)
    product = _matmul(writer, site.literal(first, "f16"), high, at)
    parts, weights = [rest, high], [first, second]
    if writer.needs_more_digits and site.type(product).shape[:-2] == site.type(x).shape[:-2]:
        parts += [high, product]
        count = array.shape[-2 if at == 0 else -1]
        one = np.broadcast_to(np.eye(count), (*array.shape[:-2], count, count))
        weights += [first * REST, -REST * one]
    known = site.literal(np.concatenate(weights, axis=axis), "f16")
    small = _matmul(writer, known, _concat(writer, parts, _ADDED_UP[1 - at]), at)
    return writer.add(
        "BinOp", writer.join(product, small), writer.times(divisor, 1 / factor), op="Mul"
    )


def _matmul(writer: F32Writer, known: int, other: int, at: int) -> int:
    return writer.site.add("MatMul", *((known, other) if at == 0 else (other, known)))


def _split_scaled(writer: F32Writer, x: int, axis: int, most: float) -> tuple[tuple[int, int], int]:
    """A tensor in halves, and what it was divided by."""
    divisor = writer.divisor(writer.largest(x, (writer.site.type(x).rank + axis,)), most)
    return writer.split(writer.add("BinOp", x, divisor, op="Div")), divisor


def _concat(writer: F32Writer, parts: list[int], axis: int) -> int:
    return writer.site.add("Concat", *parts, axis=writer.site.type(parts[0]).rank + axis)
