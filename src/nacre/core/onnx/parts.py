"""Operations of ONNX that move parts of a tensor."""

from __future__ import annotations

import numpy as np

from nacre.core.onnx.arithmetic import known, operand
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers import handles
from nacre.core.onnx.shapes import sliced
from nacre.core.onnx.use import Use


@handles("CenterCropPad")
def center_crop_pad(use: Use) -> int:
    """The middle of a tensor, or the tensor in the middle of zeros."""
    dims = use.shape(0)
    wanted = use.ints("shape", 1) or ()
    axes = use.ints("axes", None, range(len(dims))) or ()
    if len(wanted) != len(axes) or not all(-len(dims) <= a < len(dims) for a in axes):
        raise Unsound(f"`shape` is {list(wanted)}, `axes` is {list(axes)}")
    cuts: dict[int, tuple[int, int, int]] = {}
    begins, ends = [0] * len(dims), [0] * len(dims)
    for axis, size in zip(axes, wanted, strict=True):
        at = axis % len(dims)
        less = (dims[at] - size) // 2 if size < dims[at] else 0
        cuts[at] = (less, less + min(size, dims[at]), 1)
        more = max(size - dims[at], 0)
        begins[at], ends[at] = more // 2, more - more // 2
    value = sliced(use, use.value(0), cuts)
    if not any((*begins, *ends)):
        return value
    return use.add("Pad", value, pads=(*begins, *ends))


@handles("ReverseSequence")
def reverse_sequence(use: Use) -> int:
    """The beginning of each sequence backwards, as far as its length."""
    time, batch = int(use.attribute("time_axis", 0)), int(use.attribute("batch_axis", 1))
    if sorted((time, batch)) != [0, 1] or len(use.shape(0)) < 2:
        raise Unsound(f"`time_axis` is {time}, `batch_axis` is {batch}")
    x = operand(use, 0)
    order = (batch, time, *range(2, len(x.shape)))
    rows = x.transposed(*order)
    count, steps = rows.shape[:2]
    lengths = operand(use, 1).to("i64").reshaped(count, 1)
    place = known(use, np.arange(steps, dtype=np.int64)[None, :])
    turned = lengths - 1 - place
    index = place.is_("Lt", lengths).choose(turned, place)
    tuples = index.reshaped(count, steps, 1).value
    made = use.add("GatherNd", rows.value, tuples, batch_dims=1)
    return use.transposed(made, order)


@handles("TensorScatter")
def tensor_scatter(use: Use) -> int:
    """Parts of a cache replaced, for each sequence from an index of its own on."""
    dims, rank = use.shape(0), len(use.shape(0))
    axis, mode = use.axis(default=-2), use.attribute("mode", "linear")
    part = use.shape(1)
    others = [i for i in range(rank) if i not in (0, axis)]
    fits = len(part) == rank and all(part[i] == dims[i] for i in (0, *others))
    if rank < 2 or axis == 0 or not fits or part[axis] > dims[axis]:
        raise Unsound(f"an update of shape {list(part)} in a cache of shape {list(dims)}")
    if mode not in ("linear", "circular"):
        raise Unsound(f"`mode` is {mode!r}, expected linear or circular")
    order = (0, axis, *others)
    steps = known(use, np.arange(part[axis], dtype=np.int64)[None, :])
    if use.has(2):
        steps = operand(use, 2).to("i64").reshaped(dims[0], 1) + steps
    places = steps % dims[axis] if mode == "circular" else steps
    sequence = known(use, np.arange(dims[0], dtype=np.int64)[:, None])
    shape = (dims[0], part[axis], 1)
    columns = [use.add("Broadcast", v.value, shape=shape[:2]) for v in (sequence, places)]
    index = use.add("Concat", *(use.reshaped(c, shape) for c in columns), axis=2)
    cache, update = operand(use, 0).transposed(*order), operand(use, 1).transposed(*order)
    made = use.add("ScatterNd", cache.value, index, update.value)
    return use.transposed(made, [order.index(i) for i in range(rank)])
