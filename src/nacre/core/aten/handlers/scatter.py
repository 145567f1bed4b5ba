"""Calls that replace elements of a tensor: functional forms of what was in place."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.core.aten.call import AtenCall, Value
from nacre.core.aten.handlers.indexing import (
    as_indices,
    index_argument,
    index_tuples,
    indices_by_axis,
)
from nacre.core.aten.handlers.parts import bounds, index_of_axis, slice_part
from nacre.core.aten.remedies import SCALAR
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amin": "min",
               "amax": "max"}  # fmt: skip


@handles("slice_scatter.default")
def slice_scatter(use: AtenCall) -> int:
    """A regular part of an axis replaced."""
    axis, dims = use.axis(), use.shape_of("self")
    return _replace(use, axis, bounds(use, dims[axis] if dims else 1))


@handles("select_scatter.default")
def select_scatter(use: AtenCall) -> int:
    """One place of an axis replaced."""
    axis, dims = use.axis(), use.shape_of("self")
    at = index_of_axis(use, dims[axis] if dims else 1, "use `index_copy_`")
    return _replace(use, axis, range(at, at + 1))


def _replace(use: AtenCall, axis: int, taken: range) -> int:
    dims = list(use.shape_of("self"))
    if not dims:
        raise Unsupported(*SCALAR)
    if not taken:
        return use.value("self")
    x, part = use.value("self"), use.value("src", use.dtype_of("self"))
    part = use.reshape(part, [len(taken) if a == axis else d for a, d in enumerate(dims)])
    if len(taken) == dims[axis]:
        return part
    if taken.step != 1:  # both after each other, and each place taken from the one or the other
        order = np.arange(dims[axis])
        order[list(taken)] = dims[axis] + np.arange(len(taken))
        both = use.add("Concat", x, part, axis=axis)
        return use.add("GatherAxis", both, use.constant(order, "i64"), axis=axis)
    ends = [(0, taken.start, 1), (taken.stop, dims[axis], 1)]
    before, behind = ([slice_part(use, x, {axis: end})] if end[0] < end[1] else [] for end in ends)
    return use.add("Concat", *before, part, *behind, axis=axis)


def replace_rows(use: AtenCall, axis: int, at: int, update: int) -> int:
    """Places of an axis replaced, by an index of rank 1.

    Axes before it are one with it, so that what is written is rows: no element else moves.
    """
    x, dims = use.value("self"), use.shape_of("self")
    count, size = use.type_of(at).shape[0], dims[axis]
    outer, row = prod(dims[:axis]), dims[axis + 1 :]
    if outer > 1:
        at = use.cast(at, "i64")
        starts = use.constant((np.arange(outer) * size).reshape(outer, 1), "i64")
        within = use.binary("Mod", at, use.scalar(size, "i64"))  # those below 0 are from the end
        at = use.reshape(use.binary("Add", starts, within), (outer * count,))
    flat = use.reshape(x, (outer * size, *row))
    rows = use.reshape(update, (outer * count, *row))
    return use.reshape(use.add("ScatterRows", flat, at, rows), dims)


@handles("index_copy.default")
def index_copy(use: AtenCall) -> int:
    """Places of an axis replaced: the write of a cache."""
    at = index_argument(use, "index")
    at = use.reshape(at, (prod(use.type_of(at).shape),))
    return replace_rows(use, use.axis(), at, use.value("source", use.dtype_of("self")))


@handles("index_put.default", "_unsafe_index_put.default")
def index_put(use: AtenCall) -> int:
    """Elements at indices of some axes replaced, or added to."""
    dims = use.shape_of("self")
    accumulate = bool(use.get("accumulate", False))
    if (masked := _put_where(use, accumulate)) is not None:
        return masked
    axes, indices = indices_by_axis(use, len(dims))
    update = use.value("values", use.dtype_of("self"))
    if len(axes) == 1 and not accumulate:
        at = as_indices(use, indices[0], "indices")
        count = use.type_of(at).shape
        if len(count) == 1:
            shape = [count[0] if a == axes[0] else d for a, d in enumerate(dims)]
            return replace_rows(use, axes[0], at, use.broadcast_to(update, shape))
    return _put(use, axes, index_tuples(use, indices), update, "add" if accumulate else "none")


def _put_where(use: AtenCall, accumulate: bool) -> int | None:
    """Elements replaced where a mask is true, by what does not depend on how many they are."""
    given = [(at, index) for at, index in enumerate(use.get("indices", ())) if index is not None]
    if len(given) != 1 or not isinstance(given[0][1], Value):
        return None
    first, mask = given[0][0], given[0][1].id
    if use.type_of(mask).dtype != "bool":
        return None
    x, dims, covered = use.value("self"), use.shape_of("self"), use.type_of(mask).shape
    rest, own = dims[first + len(covered) :], use.shape_of("values")
    if any(dim != 1 for dim in own[: max(len(own) - len(rest), 0)]):
        if use.elements(given[0][1]) is not None:
            return None
        reason = "there is a value for each place where the mask is true when the model runs"
        raise Unsupported(reason, "use `x.masked_scatter(mask, values)`")
    update = use.value("values", use.dtype_of("self"))
    update = use.reshape(update, own[max(len(own) - len(rest), 0) :])
    if accumulate:
        update = use.binary("Add", x, update)
    wide = use.reshape(mask, (*covered, *[1] * len(rest)))
    return use.broadcast_to(use.add("Where", wide, update, x), dims)


def _put(use: AtenCall, axes: list[int], at: int, update: int, reduction: str) -> int:
    dims = use.shape_of("self")
    rest = [a for a in range(len(dims)) if a not in axes]
    shape_at = use.type_of(at).shape[:-1]
    is_neighbouring = axes == list(range(axes[0], axes[0] + len(axes)))
    before = axes[0] if is_neighbouring else 0
    rest_dims = [dims[a] for a in rest]
    update = use.broadcast_to(update, (*rest_dims[:before], *shape_at, *rest_dims[before:]))
    middle = range(before, before + len(shape_at))
    others = [a for a in range(len(rest) + len(shape_at)) if a not in middle]
    update = use.transpose(update, [*middle, *others])
    order = [*axes, *rest]
    x = use.transpose(use.value("self"), order)
    made = use.add("ScatterNd", x, at, update, reduction=reduction)
    return use.transpose(made, [order.index(a) for a in range(len(dims))])


@handles("index_add.default")
def index_add(use: AtenCall) -> int:
    """Parts of an axis added to."""
    axis, dims, dtype = use.axis(), use.shape_of("self"), use.dtype_of("self")
    source, alpha = use.value("source", dtype), use.number("alpha", 1)
    if alpha != 1:
        source = use.binary("Mul", source, use.scalar(alpha, dtype))
    order = [axis, *(a for a in range(len(dims)) if a != axis)]
    at = index_argument(use, "index")
    at = use.reshape(at, (prod(use.type_of(at).shape), 1))
    x, part = (use.transpose(v, order) for v in (use.value("self"), source))
    made = use.add("ScatterNd", x, at, part, reduction="add")
    return use.transpose(made, [order.index(a) for a in range(len(dims))])


@handles("scatter.src", "scatter.value", "scatter_add.default", "scatter.reduce",
         "scatter.value_reduce", "scatter_reduce.two")  # fmt: skip
def scatter(use: AtenCall) -> int:
    """Elements replaced, or combined, at an index of an axis each."""
    reduction = "add" if use.name == "scatter_add" else "none"
    if use.has("reduce"):
        word = str(use.get("reduce"))
        if word not in _REDUCTIONS:
            raise Unsupported(f"it combines by `{word}`", f"use one of {', '.join(_REDUCTIONS)}")
        if not use.get("include_self", True):
            raise Unsupported(f"it combines by `{word}` without the elements that are there")
        reduction = _REDUCTIONS[word]
    at = index_argument(use, "index")
    reach = use.type_of(at).shape
    update = use.value("src" if use.has("src") else "value", use.dtype_of("self"))
    if use.type_of(update).rank == 0:
        update = use.broadcast_to(update, reach)
    else:
        update = slice_part(use, update, {a: (0, dim, 1) for a, dim in enumerate(reach)})
    given = {"axis": use.axis(), "reduction": reduction}
    return use.add("ScatterElements", use.value("self"), at, update, **given)
