"""Roots of squares by themselves, as norms; norms themselves are found by `norms.py`.

In 16 bits a sum of squares is soon beyond the largest number: 512 numbers around 15 are enough. A
norm of the device keeps its sums in f32.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.rewrite.recover.parts import Axes
from nacre.core.rewrite.site import RewriteSite, Rules

_LONGEST_ROW = 1 << 12  # of elements whose root is taken by a norm: it has them all at once
_LEAST_EPSILON = 1e-30  # so that the norm of nothing but zeros is zeros


def _squared_operand(site: RewriteSite, value: int) -> int | None:
    found = site.maker(value, "BinOp")
    if found is None:
        return None
    a, b = found.operands
    is_square = found.attributes["op"] == "Mul" and a == b
    return a if is_square or (found.attributes["op"] == "Pow" and site.number(b) == 2) else None


def _axes(site: RewriteSite, x: int, reduction: CoreOperation) -> Axes:
    """The axes of x that a reduction goes over."""
    rank = site.type(x).rank
    return tuple(sorted({axis % rank for axis in reduction.attributes["axes"]} or set(range(rank))))


def root_of_squares(site: RewriteSite) -> int | None:
    """The root of a mean or a sum of squares, by itself."""
    reduction = (
        site.maker(site.operands[0], "Sum", "Mean") if site.attributes["op"] == "Sqrt" else None
    )
    squared = None if reduction is None else _squared_operand(site, reduction.operands[0])
    if reduction is None or squared is None:
        return None
    root = _root_by_norm(site, squared, reduction)
    if root is None and reduction.opcode == "Sum":
        return site.add("Reduce", squared, op="L2", **reduction.attributes)
    return root


def l2_norm(site: RewriteSite) -> int | None:
    """The root of a sum of squares, as one operation."""
    is_root = site.attributes["op"] == "L2"  # of floats: integers have none
    return _root_by_norm(site, site.operands[0], site.op) if is_root else None


def _root_by_norm(site: RewriteSite, x: int, reduction: CoreOperation) -> int | None:
    """The mean of x times its norm: that is x times x over the root, and no square is stored."""
    axes, shape = _axes(site, x, reduction), site.type(x).shape
    first = len(shape) - len(axes)
    size = prod(shape[first:])
    if axes != tuple(range(first, len(shape))) or not 1 < size <= _LONGEST_ROW:
        return None
    normed = site.add("RmsNorm", x, axis=first, epsilon=_LEAST_EPSILON)
    product = site.add("BinOp", x, normed, op="Mul")
    root = site.add("Mean", product, axes=axes, keepdims=True)
    root = site.reshape(root, reduction.type.shape)  # over all axes, none is kept
    if reduction.opcode == "Mean":
        return root
    return site.add("BinOp", root, site.literal(np.array(sqrt(size)), site.type(x).dtype), op="Mul")


# Afterwards: a root that belongs to a norm is none by itself.
ROOTS: Rules = {"Unary": [root_of_squares], "Reduce": [l2_norm]}
