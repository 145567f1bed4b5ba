"""View opcodes: elements in other places, their values unchanged.

Every element type goes the same way, so nothing here looks at values but `gather`, which looks at
its indices, and `pad`, which makes one element. That element is a real value: where the tensor
carries a quantisation it is quantised by it (so 0.0 is the zero point), in other integer types it
is rounded to the nearest, halves to even, and stops at the ends of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nacre.kernels import shapes
from nacre.kernels.call import (
    Array,
    Attributes,
    Call,
    Fault,
    Primitive,
    Quantization,
    Run,
    TensorType,
    Work,
)
from nacre.kernels.numbers import real_to_integer, rounded_even
from nacre.kernels.quantization import quantizer
from nacre.kernels.shapes import Dims

Index = tuple[slice, ...]


def filling(fill: Callable[[Array, Array], None]) -> Run:
    """A run that fills one output from one input and cannot go wrong."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        x = inputs[0]
        assert x is not None
        fill(x, outputs[0])

    return run


def copying(view: Callable[[Array], Array]) -> Run:
    """A run that copies a view of its input into its output."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        x = inputs[0]
        assert x is not None
        outputs[0][...] = view(x)

    return run


def integers(attributes: Attributes, name: str) -> Dims | None:
    """A list of integers among the attributes; None where there is no such list."""
    values = attributes.get(name)
    if not isinstance(values, tuple | list) or not all(isinstance(v, int) for v in values):
        return None
    return tuple(values)


def moves_outputs(call: Call) -> Work:
    """The work of what touches every element of its outputs once."""
    return Work(elements=sum(output.count for output in call.outputs))


def bind_transpose(perm: Dims) -> Run:
    """Dimension i of the result is dimension perm[i]."""
    return copying(lambda x: x.transpose(perm))


def bind_reshape(shape: Dims) -> Run:
    """The same elements in the same order under another shape."""

    def fill(x: Array, y: Array) -> None:
        if y.flags.c_contiguous:  # then it has the view, and a strided input needs no copy
            y.reshape(x.shape)[...] = x
        else:
            y[...] = x.reshape(shape)

    return filling(fill)


def bind_slice(starts: Dims, ends: Dims, axes: Dims, steps: Dims, rank: int) -> Run:
    """A regular part along the axes, with starts and ends as Python has them."""
    index = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[axis] = slice(start, end, step)
    whole = tuple(index)
    return copying(lambda x: x[whole])


def bind_gather(axis: int, size: int) -> Run:
    """Parts picked along an axis of that size; an index outside of it is a fault."""
    before: tuple[Any, ...] = (slice(None),) * axis

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, indices = inputs
        assert x is not None
        assert indices is not None
        wide = indices.astype(np.int64)
        # Read as unsigned, a negative index is a huge one: one comparison finds both.
        if np.maximum.reduce(wide.view(np.uint64), axis=None) >= size:
            return _outside(wide, size, axis)
        if x.flags.c_contiguous and x.flags.aligned:
            np.take(x, wide, axis=axis, out=outputs[0], mode="clip")
        else:  # `take` would copy the whole table first
            outputs[0][...] = x[(*before, wide)]
        return None

    return run


def _outside(indices: Array, size: int, axis: int) -> Fault:
    bad = (indices < 0) | (indices >= size)
    position = tuple(int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
    found = int(indices[position])
    message = f"index is {found}, expected 0 to {size - 1} along axis {axis}"
    return Fault("index", message, position)


def gather_shape(x: Dims, indices: Dims, axis: int) -> list[Dims] | None:
    """The shape of a `gather`; None where the axis is out of range."""
    if shapes.axis_of(axis, len(x)) is None:
        return None
    return [shapes.gather(x, indices, axis)]


def _transpose(call: Call) -> Run:
    return bind_transpose(tuple(call.attributes["perm"]))


def _transpose_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, perm = inputs[0], integers(attributes, "perm")
    if x is None or perm is None:
        return None
    return _one(shapes.transpose(x, perm))


def _one(shape: Dims | None) -> list[Dims] | None:
    return None if shape is None or min(shape, default=1) < 1 else [shape]


def _reshape(call: Call) -> Run:
    return bind_reshape(call.output.shape)


def _reshape_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, target = inputs[0], integers(attributes, "target_shape")
    if x is None or target is None or shapes.count(target) != shapes.count(x):
        return None
    return _one(target)


def _slice(call: Call) -> Run:
    starts, ends, axes, steps = (
        tuple(call.attributes[name]) for name in ("starts", "ends", "axes", "steps")
    )
    return bind_slice(starts, ends, axes, steps, len(call.input(0).shape))


def _slice_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, starts, ends = inputs[0], integers(attributes, "starts"), integers(attributes, "ends")
    axes, steps = integers(attributes, "axes"), integers(attributes, "steps")
    if x is None or starts is None or ends is None or axes is None or steps is None:
        return None
    known = shapes.axes_of(axes, len(x))
    if known is None or 0 in steps or not len(starts) == len(ends) == len(axes) == len(steps):
        return None
    return _one(shapes.slice_(x, starts, ends, known, steps))


def _parts(sizes: Sequence[int], axis: int) -> list[Index]:
    """Where neighbours of these sizes lie along an axis."""
    before, at, found = (slice(None),) * axis, 0, []
    for size in sizes:
        found.append((*before, slice(at, at + size)))
        at += size
    return found


def _concat(call: Call) -> Run:
    axis = call.attributes["axis"] % len(call.output.shape)
    parts = _parts([call.input(i).shape[axis] for i in range(len(call.inputs))], axis)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        y = outputs[0]
        for part, x in zip(parts, inputs, strict=True):
            y[part] = x

    return run


def _concat_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    known = [x for x in inputs if x is not None]
    axis = attributes.get("axis")
    if not known or len(known) != len(inputs) or not isinstance(axis, int):
        return None
    if shapes.axis_of(axis, len(known[0])) is None:
        return None
    return _one(shapes.concat(known, axis))


def _split(call: Call) -> Run:
    axis = call.attributes["axis"] % len(call.input(0).shape)
    parts = _parts(call.attributes["split_sizes"], axis)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        x = inputs[0]
        assert x is not None
        for part, y in zip(parts, outputs, strict=True):
            y[...] = x[part]

    return run


def _split_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, axis, sizes = inputs[0], attributes.get("axis"), integers(attributes, "split_sizes")
    if x is None or sizes is None or not isinstance(axis, int):
        return None
    return None if shapes.axis_of(axis, len(x)) is None else shapes.split(x, axis, sizes)


def _gather(call: Call) -> Run:
    x = call.input(0).shape
    axis = call.attributes["axis"] % len(x)
    return bind_gather(axis, x[axis])


def _gather_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    axis = attributes.get("axis")
    if len(inputs) != 2 or not isinstance(axis, int):
        return None
    x, indices = inputs
    return None if x is None or indices is None else gather_shape(x, indices, axis)


def _pad(call: Call) -> Run:
    x, pads = call.input(0).shape, tuple(call.attributes["pads"])
    begins, ends = pads[: len(x)], pads[len(x) :]
    inner = tuple(slice(b, b + size) for b, size in zip(begins, x, strict=True))
    if call.attributes["mode"] == "constant":
        return _surrounded(inner, call)
    sources = _reflected if call.attributes["mode"] == "reflect" else _edges
    copies = []
    for axis, (size, begin, end) in enumerate(zip(x, begins, ends, strict=True)):
        # Axes before this one are complete by now, those behind it still have their inside only.
        before, behind = (slice(None),) * axis, inner[axis + 1 :]
        targets = slice(0, begin), slice(begin + size, begin + size + end)
        for target, source in zip(targets, sources(size, begin, end), strict=True):
            if target.start < target.stop:
                copies.append(((*before, target, *behind), (*before, source, *behind)))

    def fill(x: Array, y: Array) -> None:
        y[inner] = x
        for target, source in copies:
            y[target] = y[source]

    return filling(fill)


def _edges(size: int, begin: int, end: int) -> tuple[slice, slice]:
    last = begin + size - 1
    return slice(begin, begin + 1), slice(last, last + 1)


def _reflected(size: int, begin: int, end: int) -> tuple[slice, slice]:
    last = begin + size - 1
    stop = last - 1 - end
    return slice(2 * begin, begin, -1), slice(last - 1, stop if stop >= 0 else None, -1)


def _surrounded(inner: Index, call: Call) -> Run:
    shape = call.output.shape
    values = np.broadcast_to(_constant(call), shape)
    border = []
    for axis, inside in enumerate(inner):
        for outside in (slice(0, inside.start), slice(inside.stop, shape[axis])):
            place = (*inner[:axis], outside)
            if outside.start < outside.stop:
                border.append((place, values[place]))

    def fill(x: Array, y: Array) -> None:
        y[inner] = x
        for place, constant in border:
            y[place] = constant

    return filling(fill)


def _constant(call: Call) -> Array:
    y = call.output
    value = np.full((1,) * len(y.shape), call.attributes.get("constant_value", 0.0))
    quant = y.quant or _stretched(call)
    if quant is not None:
        return quantizer(TensorType(y.elem, y.shape, quant))(value)
    if y.elem.is_integer:
        return real_to_integer(rounded_even(value), y.elem)
    with np.errstate(over="ignore"):
        return value.astype(y.dtype)


def _stretched(call: Call) -> Quantization | None:
    """The quantisation of the input, its first and last entries standing for the new elements."""
    x, y = call.input(0), call.output
    if x.quant is None or x.quant.axis is None:
        return x.quant
    axis = x.quant.axis
    begin = call.attributes["pads"][axis]
    source = np.clip(np.arange(y.shape[axis]) - begin, 0, x.shape[axis] - 1) // x.quant.group_size
    return Quantization(x.quant.scale[source], x.quant.zero_point[source], axis)


def _pad_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, pads = inputs[0], integers(attributes, "pads")
    if x is None or pads is None or len(pads) != 2 * len(x) or min(pads, default=0) < 0:
        return None
    # Reflection stops before the edge, so an axis offers less than its size on each side.
    if attributes.get("mode") == "reflect" and any(
        w >= n for w, n in zip(pads, x * 2, strict=True)
    ):
        return None
    return _one(shapes.pad(x, pads))


VIEWS = (
    Primitive("transpose", _transpose, _transpose_shape, moves_outputs),
    Primitive("reshape", _reshape, _reshape_shape, moves_outputs),
    Primitive("slice", _slice, _slice_shape, moves_outputs),
    Primitive("concat", _concat, _concat_shape, moves_outputs),
    Primitive("split", _split, _split_shape, moves_outputs),
    Primitive("pad", _pad, _pad_shape, moves_outputs),
    Primitive("gather", _gather, _gather_shape, moves_outputs),
)
