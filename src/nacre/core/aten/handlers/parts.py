"""Calls that take parts of a tensor at places that are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from nacre.core.aten.call import AtenCall, Tensor, as_axis
from nacre.core.aten.remedies import EMPTY, SCALAR
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

_SPLITS = ("split.Tensor", "split.sizes", "split_with_sizes.default", "chunk.default")
_UNBINDS = ("unbind.int",)
PARTS = frozenset({*_SPLITS, *_UNBINDS})  # calls that give parts, none of which stands for all


@handles(*_SPLITS)
def split(call: AtenCall) -> list[int]:
    """Parts along an axis."""
    axis, x, dims = call.axis(), call.value("self"), call.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    size = dims[axis]
    if call.call in ("split_with_sizes.default", "split.sizes"):
        name = "split_sizes" if call.name == "split_with_sizes" else "split_size"
        sizes: Sequence[int] = call.integers(name)
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise Unsupported(f"parts {list(sizes)} of an axis of {size}")
    else:
        count = call.integer("chunks" if call.name == "chunk" else "split_size")
        if count < 1:
            raise Unsupported(f"parts of {count}")
        each = -(-size // count) if call.name == "chunk" else count
        call.require_operations(-(-size // each))
        sizes = [min(each, size - start) for start in range(0, size, each)]
    ends = accumulate(sizes)
    return [
        slice_part(call, x, {axis: (end - part, end, 1)})
        for end, part in zip(ends, sizes, strict=True)
    ]


@handles(*_UNBINDS)
def unbind(call: AtenCall) -> list[int]:
    """Every part of an axis on its own."""
    axis, x, dims = call.axis(), call.value("self"), call.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    call.require_operations(dims[axis])
    return [
        _drop_axis(call, slice_part(call, x, {axis: (i, i + 1, 1)}), axis)
        for i in range(dims[axis])
    ]


def _drop_axis(call: AtenCall, value: int, axis: int) -> int:
    dims = call.type_of(value).shape
    return call.reshape(value, (*dims[:axis], *dims[axis + 1 :]))


def slice_part(call: AtenCall, value: int, parts: dict[int, tuple[int, int, int]]) -> int:
    """A part of a value: start, end and positive step of some axes."""
    dims = call.type_of(value).shape
    whole = [parts.get(axis, (0, dim, 1)) for axis, dim in enumerate(dims)]
    if all(part == (0, dim, 1) for part, dim in zip(whole, dims, strict=True)):
        return value
    if any(end <= start for start, end, _ in whole):
        raise Unsupported(*EMPTY)
    starts, ends, steps = (tuple(column) for column in zip(*whole, strict=True))
    return call.add("Slice", value, starts=starts, ends=ends, steps=steps)


def slice_range(call: AtenCall, dim: int) -> range:
    """What `start`, `end` and `step` take of an axis."""
    if any(isinstance(call.get(name), Tensor) for name in ("start", "end", "step")):
        raise Unsupported(
            "a bound is computed when the model runs",
            "take a part of fixed size by an index tensor, with `index_select` or `index_copy_`",
        )
    step = call.integer("step", 1)
    if step < 1:
        raise Unsupported(f"a step of {step}")
    start, end = (call.integer(name) if call.has(name) else None for name in ("start", "end"))
    return range(*slice(start, end, step).indices(dim))


@handles("slice.Tensor")
def slice_(call: AtenCall) -> int:
    """A regular part of an axis."""
    axis, dims = call.axis(), call.shape_of("self") or (1,)
    taken = slice_range(call, dims[axis])
    return slice_part(call, call.value("self"), {axis: (taken.start, taken.stop, taken.step)})


@handles("narrow.default")
def narrow(call: AtenCall) -> int:
    """So many places of an axis."""
    axis, dims = call.axis(), call.shape_of("self")
    start = as_axis(call.integer("start"), max(dims[axis], 1), "start")
    length = call.integer("length")
    if start + length > dims[axis]:
        raise Unsupported(f"places {start} to {start + length} of an axis of {dims[axis]}")
    return slice_part(call, call.value("self"), {axis: (start, start + length, 1)})


def index_of_axis(call: AtenCall, dim: int, help: str) -> int:
    """What `index` takes of an axis, counted from the front."""
    if isinstance(call.get("index"), Tensor):
        raise Unsupported("the place is computed when the model runs", help)
    return as_axis(call.integer("index"), dim, "index")


@handles("select.int")
def select(call: AtenCall) -> int:
    """One place of an axis, which goes away."""
    axis, dims = call.axis(), call.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    at = index_of_axis(call, dims[axis], "use `index_select`")
    return _drop_axis(call, slice_part(call, call.value("self"), {axis: (at, at + 1, 1)}), axis)


@handles("roll.default")
def roll(call: AtenCall) -> int:
    """Elements move along axes, and those that leave come back at the other end."""
    x, dims = call.value("self"), call.shape_of("self")
    axes, shifts = call.integers("dims"), call.integers("shifts")
    if not axes and shifts:
        flat = call.reshape(x, (prod(dims),))
        return call.reshape(_roll(call, flat, 0, shifts[0]), dims)
    if len(axes) != len(shifts):
        raise Unsupported(f"{len(shifts)} shifts for {len(axes)} axes")
    for axis, shift in zip(axes, shifts, strict=True):
        x = _roll(call, x, as_axis(axis, len(dims)), shift)
    return x


def _roll(call: AtenCall, x: int, axis: int, shift: int) -> int:
    size = call.type_of(x).shape[axis]
    at = -shift % size
    if at == 0:
        return x
    parts = [slice_part(call, x, {axis: part}) for part in ((at, size, 1), (0, at, 1))]
    return call.add("Concat", *parts, axis=axis)
