"""Operations of ONNX that cut, pad and move parts of a tensor."""

from __future__ import annotations

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import NOT_EMPTY, Unsound
from nacre.core.onnx.handlers.arithmetic import known_expr, operand
from nacre.core.onnx.handlers.shapes import normalise_axes
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported


@handles("Split")
def split(use: OnnxNode) -> list[Tensor]:
    """Parts along an axis, of sizes that are given or equal."""
    axis, dims = use.axis(default=0), use.shape(0)
    if not dims:
        raise Unsound("its input is one number, which has no axis to split")
    sizes = use.ints("split", 1)
    if sizes is None:
        count = int(use.attribute("num_outputs", len(use.node.outputs)))
        if count != len(use.node.outputs):
            raise Unsound(f"`num_outputs` is {count}, there are {len(use.node.outputs)}")
        each = -(-dims[axis] // count)
        sizes = tuple(max(min(each, dims[axis] - i * each), 0) for i in range(count))
    if sum(sizes) != dims[axis] or min(sizes, default=0) < 0:
        raise Unsound(f"`split` is {list(sizes)}, the axis has the size {dims[axis]}")
    ends = np.cumsum(sizes).tolist()
    starts = [0, *ends[:-1]]
    return [_part(use, {axis: (s, e, 1)}) for s, e in zip(starts, ends, strict=True)]


def _part(use: OnnxNode, parts: dict[int, tuple[int, int, int]]) -> Tensor:
    """A part of the tensor; one without elements is known, whatever the tensor holds."""
    dims = use.shape(0)
    if not any(end <= start for start, end, _ in parts.values()):
        return slice_value(use, use.value(0), parts)
    ends = [parts.get(axis, (0, dim, 1)) for axis, dim in enumerate(dims)]
    shape = [max(0, -(-(end - start) // step)) for start, end, step in ends]
    return np.zeros(shape, use.type(0).element.dtype)


def slice_value(use: OnnxNode, value: int, parts: dict[int, tuple[int, int, int]]) -> int:
    """A part of a value: start, end and positive step of some axes."""
    dims = use.builder.type_of(value).shape
    whole = [parts.get(axis, (0, dim, 1)) for axis, dim in enumerate(dims)]
    if all(part == (0, dim, 1) for part, dim in zip(whole, dims, strict=True)):
        return value
    if any(end <= start for start, end, _ in whole):
        raise Unsupported("the result has no elements", NOT_EMPTY)
    starts, ends, steps = (tuple(column) for column in zip(*whole, strict=True))
    return use.add("Slice", value, starts=starts, ends=ends, steps=steps)


@handles("Slice")
def slice_(use: OnnxNode) -> Tensor:
    """A regular part; a negative step runs backwards."""
    dims = use.shape(0)
    starts, ends = use.ints("starts", 1), use.ints("ends", 2)
    if starts is None or ends is None:
        raise Unsound("`starts` or `ends` is missing")
    axes = normalise_axes(use.ints("axes", 3, range(len(starts))) or (), len(dims))
    steps = use.ints("steps", 4, [1] * len(starts)) or ()
    parts: dict[int, tuple[int, int, int]] = {}
    flipped: list[int] = []
    for start, end, at, step in zip(starts, ends, axes, steps, strict=True):
        taken = range(*slice(start, end, step).indices(dims[at]))
        if step < 0 and taken:
            flipped.append(at)
            taken = taken[::-1]
        parts[at] = (taken.start, taken.stop if taken else taken.start, abs(step))
    value = _part(use, parts)
    if not flipped or not isinstance(value, int):
        return value
    return use.add("Flip", value, axes=tuple(flipped))


@handles("Pad")
def pad(use: OnnxNode) -> int:
    """Elements around; negative pads cut."""
    dims = use.shape(0)
    pads = use.ints("pads", 1) or use.ints("paddings") or ()
    axes = normalise_axes(use.ints("axes", 3, range(len(dims))) or (), len(dims))
    half = len(axes)
    if len(pads) != 2 * half:
        raise Unsound(f"`pads` is {list(pads)}, expected two for each of {half} axes")
    around = [[0, 0] for _ in dims]
    for index, axis in enumerate(axes):
        around[axis] = [pads[index], pads[half + index]]
    cut = {
        a: (max(0, -b), d - max(0, -e), 1)
        for a, ((b, e), d) in enumerate(zip(around, dims, strict=True))
    }
    value = slice_value(use, use.value(0), cut)
    flat = (*(max(0, b) for b, _ in around), *(max(0, e) for _, e in around))
    if not any(flat):
        return value
    mode = use.attribute("mode", "constant")
    if mode == "constant" and use.has(2) and use.known(2) is None:
        return _pad_by(use, value, flat)
    number = use.number("value", 2, 0.0)
    return use.add("Pad", value, pads=flat, mode=mode, value=number)


def _pad_by(use: OnnxNode, value: int, pads: tuple[int, ...]) -> int:
    """Padded with a number that is computed."""
    dims, dtype = use.builder.type_of(value).shape, use.type(0).dtype
    is_own = use.add("Pad", use.constant(np.ones(dims, np.bool_)), pads=pads)
    number = use.cast(use.reshape(use.value(2), ()), dtype)
    return use.add("Where", is_own, use.add("Pad", value, pads=pads), number)


@handles("CenterCropPad")
def center_crop_pad(use: OnnxNode) -> int:
    """The middle of a tensor, or the tensor in the middle of zeros."""
    dims = use.shape(0)
    wanted = use.ints("shape", 1) or ()
    axes = normalise_axes(use.ints("axes", None, range(len(dims))) or (), len(dims))
    if len(wanted) != len(axes):
        raise Unsound(f"`shape` is {list(wanted)}, `axes` is {list(axes)}")
    cuts: dict[int, tuple[int, int, int]] = {}
    begins, ends = [0] * len(dims), [0] * len(dims)
    for at, size in zip(axes, wanted, strict=True):
        less = (dims[at] - size) // 2 if size < dims[at] else 0
        cuts[at] = (less, less + min(size, dims[at]), 1)
        more = max(size - dims[at], 0)
        begins[at], ends[at] = more // 2, more - more // 2
    value = slice_value(use, use.value(0), cuts)
    if not any((*begins, *ends)):
        return value
    return use.add("Pad", value, pads=(*begins, *ends))


@handles("ReverseSequence")
def reverse_sequence(use: OnnxNode) -> int:
    """The beginning of each sequence backwards, as far as its length."""
    time, batch = int(use.attribute("time_axis", 0)), int(use.attribute("batch_axis", 1))
    if sorted((time, batch)) != [0, 1] or len(use.shape(0)) < 2:
        raise Unsound(f"`time_axis` is {time}, `batch_axis` is {batch}")
    x = operand(use, 0)
    order = (batch, time, *range(2, len(x.shape)))
    rows = x.transpose(*order)
    count, steps = rows.shape[:2]
    lengths = operand(use, 1).to("i64").reshape(count, 1)
    place = known_expr(use, np.arange(steps, dtype=np.int64)[None, :])
    transpose = lengths - 1 - place
    index = place.is_("Lt", lengths).choose(transpose, place)
    tuples = index.reshape(count, steps, 1).value
    made = use.add("GatherNd", rows.value, tuples, batch_dims=1)
    return use.transpose(made, order)


@handles("TensorScatter")
def tensor_scatter(use: OnnxNode) -> int:
    """Parts of a cache replaced, for each sequence from an index of its own on."""
    dims, rank = use.shape(0), len(use.shape(0))
    axis, mode = use.axis(default=-2), use.attribute("mode", "linear")
    part = use.shape(1)
    others = [i for i in range(rank) if i not in (0, axis)]
    fits = len(part) == rank and all(part[i] == dims[i] for i in (0, *others))
    if rank < 2 or axis == 0 or not fits or part[axis] > dims[axis]:
        raise Unsound(f"an update of shape {list(part)} in a cache of shape {list(dims)}")
    if mode not in ("linear", "circular"):
        raise Unsound(f"`mode` is {backquote(mode)}, expected linear or circular")
    order = (0, axis, *others)
    steps = known_expr(use, np.arange(part[axis], dtype=np.int64)[None, :])
    if use.has(2):
        steps = operand(use, 2).to("i64").reshape(dims[0], 1) + steps
    places = steps % dims[axis] if mode == "circular" else steps
    sequence = known_expr(use, np.arange(dims[0], dtype=np.int64)[:, None])
    shape = (dims[0], part[axis], 1)
    columns = [use.add("Broadcast", v.value, shape=shape[:2]) for v in (sequence, places)]
    index = use.add("Concat", *(use.reshape(c, shape) for c in columns), axis=2)
    cache, update = operand(use, 0).transpose(*order), operand(use, 1).transpose(*order)
    made = use.add("ScatterNd", cache.value, index, update.value)
    return use.transpose(made, [order.index(i) for i in range(rank)])
