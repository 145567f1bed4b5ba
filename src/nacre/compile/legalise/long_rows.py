"""Rows that are longer than L1: what is computed of a whole row, in steps over parts of it."""

from __future__ import annotations

from math import isqrt, prod, sqrt

import numpy as np

from nacre.compile.legalise.forms.windows.windows import slice_axis
from nacre.core.rewrite.site import RewriteSite

# Deviations are divided by the largest, so that squares stay in range; by no less than this.
_LEAST = 2.0**-7


def pool_axis(site: RewriteSite, opcode: str, value: int, axis: int) -> int:
    """A pooling of a whole long axis: of equal parts, then of these, beside what is left over."""
    size, dtype = site.type(value).shape[axis], site.op.type.dtype
    part = isqrt(size)
    whole = size // part * part
    pooled = _pool_windows(site, opcode, slice_axis(site, value, axis, 0, whole), axis, part)
    pooled = _pool_windows(site, opcode, pooled, axis, size // part)
    if whole == size:
        return pooled
    rest = slice_axis(site, value, axis, whole, size)
    rest = _pool_windows(site, opcode, rest, axis, size - whole)
    if opcode == "MaxPool":
        return site.add("BinOp", pooled, rest, op="Max")
    parts = (
        site.add("BinOp", mean, site.literal(np.array(count / size), dtype), op="Mul")
        for mean, count in ((pooled, whole), (rest, size - whole))
    )
    return site.add("BinOp", *parts, op="Add")


def _pool_windows(site: RewriteSite, opcode: str, value: int, axis: int, part: int) -> int:
    """Windows along one axis, one behind the other."""
    kernel = (part, 1) if axis == 1 else (1, part)
    return site.add(opcode, value, kernel=kernel, strides=kernel, layout="NHWC")


def norm_of_parts(site: RewriteSite) -> int:
    """`LayerNorm` and `RmsNorm` of long rows: means by poolings, the rest element by element."""
    x, *given = site.operands
    shape, dtype = site.op.type.shape, site.op.type.dtype
    epsilon = site.attributes["epsilon"]
    assert isinstance(epsilon, float)

    def number(value: float) -> int:
        return site.literal(np.array(value), dtype)

    def binary(op: str, a: int, b: int) -> int:
        return site.add("BinOp", a, b, op=op)

    rows = site.reshape(x, (prod(shape[:-1]), 1, shape[-1], 1))
    if site.op.opcode == "LayerNorm":
        rows = binary("Sub", rows, pool_axis(site, "AvgPool", rows, 2))
    largest = pool_axis(site, "MaxPool", site.add("Unary", rows, op="Abs"), 2)
    largest = binary("Max", largest, number(_LEAST))
    rows = binary("Div", rows, largest)
    variance = pool_axis(site, "AvgPool", binary("Mul", rows, rows), 2)
    least = binary("Div", number(sqrt(epsilon)), largest)
    variance_and_epsilon = binary("Add", variance, binary("Mul", least, least))
    norm = binary("Div", rows, site.add("Unary", variance_and_epsilon, op="Sqrt"))
    for op, value in zip(("Mul", "Add"), given, strict=False):
        along = site.reshape(value, (1, 1, shape[-1], 1))
        norm = binary(op, norm, along)
    return site.reshape(norm, shape)
