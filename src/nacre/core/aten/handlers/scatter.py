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
from nacre.core.aten.handlers.parts import index_of_axis, slice_part, slice_range
from nacre.core.aten.remedies import SCALAR
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amin": "min",
               "amax": "max"}  # fmt: skip


@handles("slice_scatter.default")
def slice_scatter(call: AtenCall) -> int:
    """A regular part of an axis replaced."""
    axis, dims = call.axis(), call.shape_of("self")
    return _replace_range(call, axis, slice_range(call, dims[axis] if dims else 1))


@handles("select_scatter.default")
def select_scatter(call: AtenCall) -> int:
    """One place of an axis replaced."""
    axis, dims = call.axis(), call.shape_of("self")
    at = index_of_axis(call, dims[axis] if dims else 1, "use `index_copy_`")
    return _replace_range(call, axis, range(at, at + 1))


def _replace_range(call: AtenCall, axis: int, positions: range) -> int:
    dims = list(call.shape_of("self"))
    if not dims:
        raise Unsupported(*SCALAR)
    if not positions:
        return call.value("self")
    x, part = call.value("self"), call.value("src", call.dtype_of("self"))
    part = call.reshape(part, [len(positions) if a == axis else d for a, d in enumerate(dims)])
    if len(positions) == dims[axis]:
        return part
    if positions.step != 1:  # both after each other, and each place taken from the one or the other
        order = np.arange(dims[axis])
        order[list(positions)] = dims[axis] + np.arange(len(positions))
        both = call.add("Concat", x, part, axis=axis)
        return call.add("GatherAxis", both, call.constant(order, "i64"), axis=axis)
    ends = [(0, positions.start, 1), (positions.stop, dims[axis], 1)]
    before, behind = ([slice_part(call, x, {axis: end})] if end[0] < end[1] else [] for end in ends)
    return call.add("Concat", *before, part, *behind, axis=axis)


def replace_rows(call: AtenCall, axis: int, at: int, update: int) -> int:
    """Places of an axis replaced, by an index of rank 1.

    Axes before it are one with it, so that what is written is rows: no element else moves.
    """
    x, dims = call.value("self"), call.shape_of("self")
    count, size = call.type_of(at).shape[0], dims[axis]
    outer, row = prod(dims[:axis]), dims[axis + 1 :]
    if outer > 1:
        at = call.cast(at, "i64")
        starts = call.constant((np.arange(outer) * size).reshape(outer, 1), "i64")
        within = call.binary("Mod", at, call.scalar(size, "i64"))  # those below 0 are from the end
        at = call.reshape(call.binary("Add", starts, within), (outer * count,))
    flat = call.reshape(x, (outer * size, *row))
    rows = call.reshape(update, (outer * count, *row))
    return call.reshape(call.add("ScatterRows", flat, at, rows), dims)


@handles("index_copy.default")
def index_copy(call: AtenCall) -> int:
    """Places of an axis replaced: the write of a cache."""
    at = index_argument(call, "index")
    at = call.reshape(at, (prod(call.type_of(at).shape),))
    return replace_rows(call, call.axis(), at, call.value("source", call.dtype_of("self")))


@handles("index_put.default", "_unsafe_index_put.default")
def index_put(call: AtenCall) -> int:
    """Elements at indices of some axes replaced, or added to."""
    dims = call.shape_of("self")
    accumulate = bool(call.get("accumulate", False))
    if (masked := _put_by_mask(call, accumulate)) is not None:
        return masked
    axes, indices = indices_by_axis(call, len(dims))
    update = call.value("values", call.dtype_of("self"))
    if len(axes) == 1 and not accumulate:
        at = as_indices(call, indices[0], "indices")
        count = call.type_of(at).shape
        if len(count) == 1:
            shape = [count[0] if a == axes[0] else d for a, d in enumerate(dims)]
            return replace_rows(call, axes[0], at, call.broadcast_to(update, shape))
    return _put_at_tuples(
        call, axes, index_tuples(call, indices), update, "add" if accumulate else "none"
    )


def _put_by_mask(call: AtenCall, accumulate: bool) -> int | None:
    """Elements replaced where a mask is true, by what does not depend on how many they are."""
    given = [(at, index) for at, index in enumerate(call.get("indices", ())) if index is not None]
    if len(given) != 1 or not isinstance(given[0][1], Value):
        return None
    first, mask = given[0][0], given[0][1].id
    if call.type_of(mask).dtype != "bool":
        return None
    x, dims, covered = call.value("self"), call.shape_of("self"), call.type_of(mask).shape
    rest, own = dims[first + len(covered) :], call.shape_of("values")
    if any(dim != 1 for dim in own[: max(len(own) - len(rest), 0)]):
        if call.elements(given[0][1]) is not None:
            return None
        reason = "there is a value for each place where the mask is true when the model runs"
        raise Unsupported(reason, "use `x.masked_scatter(mask, values)`")
    update = call.value("values", call.dtype_of("self"))
    update = call.reshape(update, own[max(len(own) - len(rest), 0) :])
    if accumulate:
        update = call.binary("Add", x, update)
    wide = call.reshape(mask, (*covered, *[1] * len(rest)))
    return call.broadcast_to(call.add("Where", wide, update, x), dims)


def _put_at_tuples(call: AtenCall, axes: list[int], at: int, update: int, reduction: str) -> int:
    dims = call.shape_of("self")
    rest = [a for a in range(len(dims)) if a not in axes]
    shape_at = call.type_of(at).shape[:-1]
    is_neighbouring = axes == list(range(axes[0], axes[0] + len(axes)))
    before = axes[0] if is_neighbouring else 0
    rest_dims = [dims[a] for a in rest]
    update = call.broadcast_to(update, (*rest_dims[:before], *shape_at, *rest_dims[before:]))
    middle = range(before, before + len(shape_at))
    others = [a for a in range(len(rest) + len(shape_at)) if a not in middle]
    update = call.transpose(update, [*middle, *others])
    order = [*axes, *rest]
    x = call.transpose(call.value("self"), order)
    scattered = call.add("ScatterNd", x, at, update, reduction=reduction)
    return call.transpose(scattered, [order.index(a) for a in range(len(dims))])


@handles("index_add.default")
def index_add(call: AtenCall) -> int:
    """Parts of an axis added to."""
    axis, dims, dtype = call.axis(), call.shape_of("self"), call.dtype_of("self")
    source, alpha = call.value("source", dtype), call.number("alpha", 1)
    if alpha != 1:
        source = call.binary("Mul", source, call.scalar(alpha, dtype))
    order = [axis, *(a for a in range(len(dims)) if a != axis)]
    at = index_argument(call, "index")
    at = call.reshape(at, (prod(call.type_of(at).shape), 1))
    x, part = (call.transpose(v, order) for v in (call.value("self"), source))
    scattered = call.add("ScatterNd", x, at, part, reduction="add")
    return call.transpose(scattered, [order.index(a) for a in range(len(dims))])


@handles("scatter.src", "scatter.value", "scatter_add.default", "scatter.reduce",
         "scatter.value_reduce", "scatter_reduce.two")  # fmt: skip
def scatter(call: AtenCall) -> int:
    """Elements replaced, or combined, at an index of an axis each."""
    reduction = "add" if call.name == "scatter_add" else "none"
    if call.has("reduce"):
        word = str(call.get("reduce"))
        if word not in _REDUCTIONS:
            raise Unsupported(f"it combines by `{word}`", f"use one of {', '.join(_REDUCTIONS)}")
        if not call.get("include_self", True):
            raise Unsupported(f"it combines by `{word}` without the elements that are there")
        reduction = _REDUCTIONS[word]
    at = index_argument(call, "index")
    reach = call.type_of(at).shape
    update = call.value("src" if call.has("src") else "value", call.dtype_of("self"))
    if call.type_of(update).rank == 0:
        update = call.broadcast_to(update, reach)
    else:
        update = slice_part(call, update, {a: (0, dim, 1) for a, dim in enumerate(reach)})
    given = {"axis": call.axis(), "reduction": reduction}
    return call.add("ScatterElements", call.value("self"), at, update, **given)
