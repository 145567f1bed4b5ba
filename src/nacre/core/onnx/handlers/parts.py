"""Operations of ONNX that cut, pad and move parts of a tensor."""

from __future__ import annotations

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import NOT_EMPTY, Unsound
from nacre.core.onnx.handlers.arithmetic import known_expr, operand
from nacre.core.onnx.handlers.shapes import normalise_axes
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported


@handles("Split")
def split(node: OnnxNode) -> list[Tensor]:
    """Parts along an axis, of sizes that are given or equal."""
    axis, dims = node.axis(default=0), node.shape(0)
    if not dims:
        raise Unsound("its input is one number, which has no axis to split")
    sizes = node.ints("split", 1)
    if sizes is None:
        count = int(node.attribute("num_outputs", len(node.outputs)))
        if count != len(node.outputs):
            raise Unsound(f"`num_outputs` is {count}, there are {len(node.outputs)}")
        each = -(-dims[axis] // count)
        sizes = tuple(max(min(each, dims[axis] - i * each), 0) for i in range(count))
    if sum(sizes) != dims[axis] or min(sizes, default=0) < 0:
        raise Unsound(f"`split` is {list(sizes)}, the axis has the size {dims[axis]}")
    ends = np.cumsum(sizes).tolist()
    starts = [0, *ends[:-1]]
    return [_part(node, {axis: (s, e, 1)}) for s, e in zip(starts, ends, strict=True)]


def _part(node: OnnxNode, parts: dict[int, tuple[int, int, int]]) -> Tensor:
    """A part of the tensor; one without elements is known, whatever the tensor holds."""
    dims = node.shape(0)
    if not any(end <= start for start, end, _ in parts.values()):
        return slice_value(node, node.value(0), parts)
    ends = [parts.get(axis, (0, dim, 1)) for axis, dim in enumerate(dims)]
    shape = [max(0, -(-(end - start) // step)) for start, end, step in ends]
    return np.zeros(shape, node.type(0).element.dtype)


def slice_value(node: OnnxNode, value: int, parts: dict[int, tuple[int, int, int]]) -> int:
    """A part of a value: start, end and positive step of some axes."""
    dims = node.builder.type_of(value).shape
    whole = [parts.get(axis, (0, dim, 1)) for axis, dim in enumerate(dims)]
    if all(part == (0, dim, 1) for part, dim in zip(whole, dims, strict=True)):
        return value
    if any(end <= start for start, end, _ in whole):
        raise Unsupported("the result has no elements", NOT_EMPTY)
    starts, ends, steps = (tuple(column) for column in zip(*whole, strict=True))
    return node.add("Slice", value, starts=starts, ends=ends, steps=steps)


@handles("Slice")
def slice_(node: OnnxNode) -> Tensor:
    """A regular part; a negative step runs backwards."""
    dims = node.shape(0)
    starts, ends = node.ints("starts", 1), node.ints("ends", 2)
    if starts is None or ends is None:
        raise Unsound("`starts` or `ends` is missing")
    axes = normalise_axes(node.ints("axes", 3, range(len(starts))) or (), len(dims))
    steps = node.ints("steps", 4, [1] * len(starts)) or ()
    parts: dict[int, tuple[int, int, int]] = {}
    flipped: list[int] = []
    for start, end, at, step in zip(starts, ends, axes, steps, strict=True):
        taken = range(*slice(start, end, step).indices(dims[at]))
        if step < 0 and taken:
            flipped.append(at)
            taken = taken[::-1]
        parts[at] = (taken.start, taken.stop if taken else taken.start, abs(step))
    value = _part(node, parts)
    if not flipped or not isinstance(value, int):
        return value
    return node.add("Flip", value, axes=tuple(flipped))


@handles("Pad")
def pad(node: OnnxNode) -> int:
    """Elements around; negative pads cut."""
    dims = node.shape(0)
    pads = node.ints("pads", 1) or node.ints("paddings") or ()
    axes = normalise_axes(node.ints("axes", 3, range(len(dims))) or (), len(dims))
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
    value = slice_value(node, node.value(0), cut)
    flat = (*(max(0, b) for b, _ in around), *(max(0, e) for _, e in around))
    if not any(flat):
        return value
    mode = node.attribute("mode", "constant")
    if mode == "constant" and node.has(2) and node.known(2) is None:
        return _pad_with_computed(node, value, flat)
    number = node.number("value", 2, 0.0)
    return node.add("Pad", value, pads=flat, mode=mode, value=number)


def _pad_with_computed(node: OnnxNode, value: int, pads: tuple[int, ...]) -> int:
    """Padded with a number that is computed."""
    dims, dtype = node.builder.type_of(value).shape, node.type(0).dtype
    is_own = node.add("Pad", node.constant(np.ones(dims, np.bool_)), pads=pads)
    number = node.cast(node.reshape(node.value(2), ()), dtype)
    return node.add("Where", is_own, node.add("Pad", value, pads=pads), number)


@handles("CenterCropPad")
def center_crop_pad(node: OnnxNode) -> int:
    """The middle of a tensor, or the tensor in the middle of zeros."""
    dims = node.shape(0)
    wanted = node.ints("shape", 1) or ()
    axes = normalise_axes(node.ints("axes", None, range(len(dims))) or (), len(dims))
    if len(wanted) != len(axes):
        raise Unsound(f"`shape` is {list(wanted)}, `axes` is {list(axes)}")
    cuts: dict[int, tuple[int, int, int]] = {}
    begins, ends = [0] * len(dims), [0] * len(dims)
    for at, size in zip(axes, wanted, strict=True):
        less = (dims[at] - size) // 2 if size < dims[at] else 0
        cuts[at] = (less, less + min(size, dims[at]), 1)
        more = max(size - dims[at], 0)
        begins[at], ends[at] = more // 2, more - more // 2
    value = slice_value(node, node.value(0), cuts)
    if not any((*begins, *ends)):
        return value
    return node.add("Pad", value, pads=(*begins, *ends))


@handles("ReverseSequence")
def reverse_sequence(node: OnnxNode) -> int:
    """The beginning of each sequence backwards, as far as its length."""
    time, batch = int(node.attribute("time_axis", 0)), int(node.attribute("batch_axis", 1))
    if sorted((time, batch)) != [0, 1] or len(node.shape(0)) < 2:
        raise Unsound(f"`time_axis` is {time}, `batch_axis` is {batch}")
    x = operand(node, 0)
    order = (batch, time, *range(2, len(x.shape)))
    rows = x.transpose(*order)
    count, steps = rows.shape[:2]
    lengths = operand(node, 1).to("i64").reshape(count, 1)
    place = known_expr(node, np.arange(steps, dtype=np.int64)[None, :])
    mirrored = lengths - 1 - place
    index = place.is_("Lt", lengths).choose(mirrored, place)
    tuples = index.reshape(count, steps, 1).value
    picked = node.add("GatherNd", rows.value, tuples, batch_dims=1)
    return node.transpose(picked, order)


@handles("TensorScatter")
def tensor_scatter(node: OnnxNode) -> int:
    """Parts of a cache replaced, for each sequence from an index of its own on."""
    dims, rank = node.shape(0), len(node.shape(0))
    axis, mode = node.axis(default=-2), node.attribute("mode", "linear")
    part = node.shape(1)
    others = [i for i in range(rank) if i not in (0, axis)]
    fits = len(part) == rank and all(part[i] == dims[i] for i in (0, *others))
    if rank < 2 or axis == 0 or not fits or part[axis] > dims[axis]:
        raise Unsound(f"an update of shape {list(part)} in a cache of shape {list(dims)}")
    if mode not in ("linear", "circular"):
        raise Unsound(f"`mode` is {backquote(mode)}, expected linear or circular")
    order = (0, axis, *others)
    steps = known_expr(node, np.arange(part[axis], dtype=np.int64)[None, :])
    if node.has(2):
        steps = operand(node, 2).to("i64").reshape(dims[0], 1) + steps
    places = steps % dims[axis] if mode == "circular" else steps
    sequence = known_expr(node, np.arange(dims[0], dtype=np.int64)[:, None])
    shape = (dims[0], part[axis], 1)
    columns = [node.add("Broadcast", v.value, shape=shape[:2]) for v in (sequence, places)]
    index = node.add("Concat", *(node.reshape(c, shape) for c in columns), axis=2)
    cache, update = operand(node, 0).transpose(*order), operand(node, 1).transpose(*order)
    scattered = node.add("ScatterNd", cache.value, index, update.value)
    return node.transpose(scattered, [order.index(i) for i in range(rank)])
