"""Operations of ATen that replace elements of a tensor: functional forms of what was in place."""

from __future__ import annotations

from math import prod

from nacre.core.torch.handlers.indexing import chosen, places, tuples
from nacre.core.torch.handlers.shapes import bounds, sliced
from nacre.core.torch.handlers.table import handles
from nacre.core.torch.library import torch
from nacre.core.torch.use import AtenCall, Value
from nacre.core.unsupported import Unsupported

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amin": "min",
               "amax": "max"}  # fmt: skip


@handles("slice_scatter.default")
def slice_scatter(use: AtenCall) -> int:
    """A regular part of an axis replaced."""
    axis, dims = use.axis(), use.shape_of("self")
    return _replaced(use, axis, bounds(use, dims[axis]))


@handles("select_scatter.default")
def select_scatter(use: AtenCall) -> int:
    """One place of an axis replaced."""
    axis, index = use.axis(), use.get("index")
    if not isinstance(index, int):
        raise Unsupported("the place is computed when the model runs", "use `index_copy_`")
    at = index % use.shape_of("self")[axis]
    return _replaced(use, axis, range(at, at + 1))


def _replaced(use: AtenCall, axis: int, taken: range) -> int:
    dims = list(use.shape_of("self"))
    if not taken:
        return use.value("self")
    x, part = use.value("self"), use.value("src", use.dtype)
    part_dims = [len(taken) if a == axis else d for a, d in enumerate(dims)]
    part = use.reshaped(part, part_dims)
    if len(taken) == dims[axis]:
        return part
    if taken.step != 1:  # both after each other, and each place taken from the one or the other
        order = list(range(dims[axis]))
        for place, index in enumerate(taken):
            order[index] = dims[axis] + place
        both = use.add("Concat", x, part, axis=axis)
        return use.add("GatherAxis", both, use.taken(torch().tensor(order)), axis=axis)
    ends = [(0, taken.start, 1), (taken.stop, dims[axis], 1)]
    before, behind = ([sliced(use, x, {axis: end})] if end[0] < end[1] else [] for end in ends)
    return use.add("Concat", *before, part, *behind, axis=axis)


def rows_replaced(use: AtenCall, axis: int, at: int, update: int) -> int:
    """Places of an axis replaced, by an index of rank 1.

    Axes before it are one with it, so that what is written is rows: no element else moves.
    """
    x, dims = use.value("self"), use.shape_of("self")
    count, size = use.type_of(at).shape[0], dims[axis]
    outer, row = prod(dims[:axis]), dims[axis + 1 :]
    if outer > 1:
        at = use.cast(at, "i64")
        limit = use.scalar(size, "i64")
        starts = use.taken((torch().arange(outer) * size).reshape(outer, 1))
        inside = use.binary("Mod", at, limit)  # those below 0 count from the end
        at = use.reshaped(use.binary("Add", starts, inside), (outer * count,))
    flat = use.reshaped(x, (outer * size, *row))
    rows = use.reshaped(update, (outer * count, *row))
    return use.reshaped(use.add("ScatterRows", flat, at, rows), dims)


@handles("index_copy.default")
def index_copy(use: AtenCall) -> int:
    """Places of an axis replaced: the write of a cache."""
    at = places(use, use.get("index"))
    at = use.reshaped(at, (prod(use.type_of(at).shape),))
    return rows_replaced(use, use.axis(), at, use.value("source", use.dtype))


@handles("index_put.default", "_unsafe_index_put.default")
def index_put(use: AtenCall) -> int:
    """Elements at indices of some axes replaced, or added to."""
    dims = use.shape_of("self")
    accumulate = bool(use.get("accumulate", False))
    if (masked := _masked(use, accumulate=accumulate)) is not None:
        return masked
    axes, indices = chosen(use, dims)
    rest = [a for a in range(len(dims)) if a not in axes]
    update = use.value("values", use.dtype)
    if len(axes) == 1 and not accumulate:
        at = places(use, indices[0])
        count = use.type_of(at).shape
        if len(count) == 1:
            shape = [count[0] if a == axes[0] else d for a, d in enumerate(dims)]
            return rows_replaced(use, axes[0], at, use.broadcast_to(update, shape))
    at = tuples(use, indices)
    shape_at = use.type_of(at).shape[:-1]
    is_neighbouring = axes == list(range(axes[0], axes[0] + len(axes)))
    before = axes[0] if is_neighbouring else 0
    rest_dims = [dims[a] for a in rest]
    update = use.broadcast_to(update, (*rest_dims[:before], *shape_at, *rest_dims[before:]))
    width = len(shape_at)
    middle = range(before, before + width)
    others = [a for a in range(len(rest) + width) if a not in middle]
    update = use.transposed(update, [*middle, *others])
    order = [*axes, *rest]
    x = use.transposed(use.value("self"), order)
    made = use.add("ScatterNd", x, at, update, reduction="add" if accumulate else "none")
    return use.transposed(made, [order.index(a) for a in range(len(dims))])


def _masked(use: AtenCall, *, accumulate: bool) -> int | None:
    """Elements replaced where a mask is true, by what does not depend on how many they are."""
    masks = [
        (at, index)
        for at, index in enumerate(use.get("indices"))
        if isinstance(index, Value) and use.type_of(index.id).dtype == "bool"
    ]
    given = [index for index in use.get("indices") if index is not None]
    if len(masks) != 1 or len(given) != 1:
        return None
    ((first, mask),) = masks
    x, update = use.value("self"), use.value("values", use.dtype)
    dims, covered = use.shape_of("self"), use.type_of(mask.id).shape
    rest = dims[first + len(covered) :]
    own = use.type_of(update).shape
    if len(own) > len(rest) and any(dim != 1 for dim in own[: len(own) - len(rest)]):
        reason = "there is a value for each place where the mask is true when the model runs"
        raise Unsupported(reason, "use `x.masked_scatter(mask, values)`")
    update = use.reshaped(update, own[max(len(own) - len(rest), 0) :])
    wide = use.reshaped(mask.id, (*covered, *[1] * len(rest)))
    if accumulate:
        update = use.binary("Add", x, update)
    return use.broadcast_to(use.add("Where", wide, update, x), dims)


@handles("index_add.default")
def index_add(use: AtenCall) -> int:
    """Parts of an axis added to."""
    axis, dims = use.axis(), use.shape_of("self")
    source = use.value("source", use.dtype)
    if use.get("alpha", 1) != 1:
        source = use.binary("Mul", source, use.scalar(use.get("alpha"), use.dtype))
    order = [axis, *(a for a in range(len(dims)) if a != axis)]
    at = places(use, use.get("index"))
    at = use.reshaped(at, (prod(use.type_of(at).shape), 1))
    x, part = (use.transposed(v, order) for v in (use.value("self"), source))
    made = use.add("ScatterNd", x, at, part, reduction="add")
    return use.transposed(made, [order.index(a) for a in range(len(dims))])


@handles("scatter.src", "scatter.value", "scatter_add.default", "scatter.reduce",
         "scatter.value_reduce", "scatter_reduce.two")  # fmt: skip
def scatter(use: AtenCall) -> int:
    """Elements replaced, or combined, at an index of an axis each."""
    reduction = "add" if use.name.startswith("scatter_add") else "none"
    if use.has("reduce"):
        word = str(use.get("reduce"))
        if word not in _REDUCTIONS:
            raise Unsupported(f"it combines by `{word}`", f"use one of {', '.join(_REDUCTIONS)}")
        reduction = _REDUCTIONS[word]
    at = places(use, use.get("index"))
    reach = use.type_of(at).shape
    update = use.value("src" if "src" in use.names else "value", use.dtype)
    if use.type_of(update).rank == 0:
        update = use.broadcast_to(update, reach)
    else:
        update = sliced(use, update, {a: (0, dim, 1) for a, dim in enumerate(reach)})
    axis = use.axis()
    return use.add("ScatterElements", use.value("self"), at, update, axis=axis, reduction=reduction)
