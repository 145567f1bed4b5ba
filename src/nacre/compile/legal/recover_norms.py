"""Divisions by the root of squares, whatever axes they are over, put back into norms.

In 16 bits a sum of squares is soon beyond the largest number: 512 numbers around 15 are enough. A
norm of the device keeps its sums in f32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod, sqrt

import numpy as np

from nacre.compile.legal.rounds import Forms
from nacre.compile.legal.windows import reshaped
from nacre.core.inference.rewriting import Site
from nacre.core.inference.transposes import inverse
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS

Axes = tuple[int, ...]

_VIEWS = ("Reshape", "ExpandDims", "Squeeze")
# A root is held above such a number, or it is added to it, only to keep a division from 0: what
# is divided by a root that is near it is of no account.
_MOST_GUARD = 1e-5
_LONGEST_ROW = 1 << 12  # of elements whose root is taken by a norm: it has them all at once
_LEAST_EPSILON = 1e-30  # so that the norm of nothing but zeros is zeros


@dataclass(frozen=True)
class _Root:
    """The root of a sum or a mean of squares of a value, and of epsilon."""

    value: int
    axes: Axes
    is_mean: bool
    epsilon: float = 0.0

    def guarded(self, number: float) -> _Root | None:
        """With a number that keeps the root from 0."""
        if not 0 <= number <= _MOST_GUARD:
            return None
        return replace(self, epsilon=self.epsilon + number * number)


def norm(site: Site) -> int | None:
    """X over the root of its squares, or x less its mean over that of the squares of this."""
    kind = site.attributes["op"]
    if kind == "Div":
        return _divided(site, *site.operands)
    if kind != "Mul":
        return None
    for x, other in (site.operands, site.operands[::-1]):
        over = site.maker(_spread(site, other, x), "Unary", op="Reciprocal")
        made = None if over is None else _divided(site, x, over.operands[0])
        if made is not None:
            return made
    return None


def _divided(site: Site, x: int, divisor: int) -> int | None:
    divisor = _spread(site, divisor, x)
    root = _root(site, divisor)
    shape = site.type(x).shape
    if root is None or root.value != x or site.op.type != site.type(x):
        return None
    if site.type(divisor).shape != kept(shape, root.axes):
        return None
    count = prod(shape[axis] for axis in root.axes)
    epsilon = max(root.epsilon if root.is_mean else root.epsilon / count, _LEAST_EPSILON)
    source = _centred(site, x, root.axes)
    if source is not None and root.is_mean:
        return along(site, "LayerNorm", source, root.axes, epsilon)
    factor = 1.0 if root.is_mean else 1 / sqrt(count)
    return along(site, "RmsNorm", x, root.axes, epsilon, factor)


def along(
    site: Site, opcode: str, x: int, axes: Axes, epsilon: float, factor: float = 1.0
) -> int:  # fmt: skip
    """A norm over some axes, brought last where they are not, times a number."""
    rank, shape = site.type(x).rank, site.type(x).shape
    order = (*(axis for axis in range(rank) if axis not in axes), *axes)
    is_turned = order != tuple(range(rank))
    turned = site.add("Transpose", x, permutation=order) if is_turned else x
    inner = tuple(shape[axis] for axis in axes)
    given = [] if factor == 1.0 else [site.literal(np.full(inner, factor), site.type(x).dtype)]
    made = site.add(opcode, turned, *given, axis=rank - len(axes), epsilon=epsilon)
    return site.add("Transpose", made, permutation=inverse(order)) if is_turned else made


def kept(shape: Axes, axes: Axes) -> Axes:
    """A shape with size 1 along some axes."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def _spread(site: Site, value: int, x: int) -> int:
    """A value before it is repeated to the shape of another."""
    found = site.maker(value, "Broadcast")
    is_same = found is not None and found.type.shape == site.type(x).shape
    return found.operands[0] if found is not None and is_same else value


def _root(site: Site, value: int) -> _Root | None:
    """The root that a value is, with what keeps it from 0."""
    value = behind_views(site, value)
    found = site.maker(value)
    assert found is not None
    if found.opcode == "Reduce" and found.attributes["op"] == "L2":
        return _Root(found.operands[0], _axes(site, found.operands[0], found), is_mean=False)
    if found.opcode == "Unary" and found.attributes["op"] == "Sqrt":
        return _root_of(site, found.operands[0])
    guard = _guard(site, found)
    inner = None if guard is None else _root(site, guard[0])
    return None if guard is None or inner is None else inner.guarded(guard[1])


def _guard(site: Site, op: CoreOperation) -> tuple[int, float] | None:
    """A value and the number that it is held above, or that is added to it."""
    given = OPS[op.opcode].filled(op.attributes)
    if op.opcode == "Clip" and given["max"] == inf:
        return op.operands[0], float(given["min"])
    if op.opcode == "BinOp" and op.attributes["op"] in ("Max", "Add"):
        split = site.split(op.operands)
        if split is not None and split[1].size == 1:
            return split[0], float(np.ravel(split[1])[0])
    if op.opcode == "Where":  # 1 instead of a root that is 0: of zeros it makes zeros
        condition, one, other = op.operands
        compared = site.maker(condition, "Compare", op="Eq")
        is_zero = compared is not None and site.number(compared.operands[1]) == 0
        if compared is not None and is_zero and compared.operands[0] == other:
            return (other, 0.0) if site.number(one) == 1 else None
    return None


def _root_of(site: Site, value: int) -> _Root | None:
    """The root of a sum or a mean of squares, and perhaps of epsilon."""
    value, epsilon = behind_views(site, value), 0.0
    added = site.maker(value, "BinOp", op="Add")
    split = None if added is None else site.split(added.operands)
    if split is not None and split[1].size == 1:
        value, epsilon = behind_views(site, split[0]), float(np.ravel(split[1])[0])
    found = site.maker(value, "Mean", "Sum", "Reduce")
    if found is None or not 0 <= epsilon < inf:
        return None
    if found.opcode == "Reduce":
        is_squares = found.attributes["op"] == "SumSquare"
        squared = found.operands[0] if is_squares else None
    else:
        squared = _squared(site, found.operands[0])
    if squared is None:
        return None
    return _Root(squared, _axes(site, squared, found), found.opcode == "Mean", epsilon)


def behind_views(site: Site, value: int) -> int:
    """A value before the views that it is seen through."""
    found = site.maker(value, *_VIEWS)
    return value if found is None else behind_views(site, found.operands[0])


def _squared(site: Site, value: int) -> int | None:
    found = site.maker(value, "BinOp")
    if found is None:
        return None
    a, b = found.operands
    is_square = found.attributes["op"] == "Mul" and a == b
    return a if is_square or (found.attributes["op"] == "Pow" and site.number(b) == 2) else None


def _axes(site: Site, x: int, reduction: CoreOperation) -> Axes:
    """The axes of x that a reduction goes over."""
    rank = site.type(x).rank
    return tuple(sorted({axis % rank for axis in reduction.attributes["axes"]} or set(range(rank))))


def _centred(site: Site, value: int, axes: Axes) -> int | None:
    """X of x - Mean(x) over the same axes."""
    less = site.maker(value, "BinOp", op="Sub")
    if less is None:
        return None
    x = less.operands[0]
    middle = _spread(site, less.operands[1], x)
    mean = site.maker(behind_views(site, middle), "Mean")
    if mean is None or mean.operands[0] != x or _axes(site, x, mean) != axes:
        return None
    return x if site.type(middle).shape == kept(site.type(x).shape, axes) else None


def root_of_squares(site: Site) -> int | None:
    """The root of a mean or a sum of squares, by itself."""
    found = site.maker(site.operands[0], "Sum", "Mean") if site.attributes["op"] == "Sqrt" else None
    squared = None if found is None else _squared(site, found.operands[0])
    if found is None or squared is None:
        return None
    made = _root_by_norm(site, squared, found)
    if made is None and found.opcode == "Sum":
        return site.add("Reduce", squared, op="L2", **found.attributes)
    return made


def length(site: Site) -> int | None:
    """The root of a sum of squares, as one operation."""
    is_root = site.attributes["op"] == "L2"  # of floats: integers have none
    return _root_by_norm(site, site.operands[0], site.op) if is_root else None


def _root_by_norm(site: Site, x: int, reduction: CoreOperation) -> int | None:
    """The mean of x times its norm: that is x times x over the root, and no square is stored."""
    axes, shape = _axes(site, x, reduction), site.type(x).shape
    first = len(shape) - len(axes)
    size = prod(shape[first:])
    if axes != tuple(range(first, len(shape))) or not 1 < size <= _LONGEST_ROW:
        return None
    normed = site.add("RmsNorm", x, axis=first, epsilon=_LEAST_EPSILON)
    product = site.add("BinOp", x, normed, op="Mul")
    made = site.add("Mean", product, axes=axes, keepdims=True)
    made = reshaped(site, made, reduction.type.shape)  # over all axes, none is kept
    if reduction.opcode == "Mean":
        return made
    return site.add("BinOp", made, site.literal(np.array(sqrt(size)), site.type(x).dtype), op="Mul")


NORM_RECOVERY: Forms = {"BinOp": [norm]}
# Afterwards: a root that belongs to a norm is none by itself.
ROOT_FORMS: Forms = {"Unary": [root_of_squares], "Reduce": [length]}
