"""View opcodes: elements in other places, their values unchanged.

Every element type goes the same way, so nothing here looks at values but `gather`, which looks at
its indices, and `pad`, which makes one element (see `padding.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Example,
    Fault,
    Primitive,
    Run,
    Work,
    integers,
)
from nacre.kernels.interface.forms import Shape
from nacre.kernels.interface.runs import copy_run, fill_run
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.movement.padding import bind_pad, pad_shape

Index = tuple[slice, ...]


def moves_outputs(call: Call) -> Work:
    """The work of what touches every element of its outputs once."""
    return Work(elements=sum(output.count for output in call.outputs))


def bind_transpose(perm: Dims) -> Run:
    """Dimension i of the result is dimension perm[i]."""
    return copy_run(lambda x: x.transpose(perm))


def bind_reshape(shape: Dims) -> Run:
    """The same elements in the same order under another shape."""

    def fill(x: Array, y: Array) -> None:
        if y.flags.c_contiguous:  # then it has the view, and a strided input needs no copy
            y.reshape(x.shape)[...] = x
        else:
            y[...] = x.reshape(shape)

    return fill_run(fill)


def bind_slice(starts: Dims, ends: Dims, axes: Dims, steps: Dims, rank: int) -> Run:
    """A regular part along the axes, with starts and ends as Python has them."""
    index = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[axis] = slice(start, end, step)
    whole = tuple(index)
    return copy_run(lambda x: x[whole])


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


def _example(x: Dims, **attributes: object) -> Example:
    return Example((x,), attributes)


def _view(name: str, bind: Callable[[Call], Run], shape: Shape, *examples: Example) -> Primitive:
    return Primitive(name, bind, shape, moves_outputs, examples=examples)


VIEWS = (
    _view("transpose", _transpose, _transpose_shape,
          _example((2, 3, 5), perm=(2, 0, 1)), _example((1,), perm=(0,))),
    _view("reshape", _reshape, _reshape_shape,
          _example((2, 3, 4), target_shape=(6, 4)), _example((1,), target_shape=(1, 1, 1))),
    _view("slice", _slice, _slice_shape,
          _example((5, 7), starts=(1, 6), ends=(5, -8), axes=(0, 1), steps=(2, -3)),
          _example((1,), starts=(0,), ends=(1,), axes=(0,), steps=(1,))),
    _view("concat", _concat, _concat_shape,
          Example(((2, 3), (2, 1), (2, 5)), {"axis": 1}), _example((1,), axis=0)),
    _view("split", _split, _split_shape,
          _example((3, 7), axis=-1, split_sizes=(1, 4, 2)),
          _example((1,), axis=0, split_sizes=(1,))),
    _view("pad", bind_pad, pad_shape,
          _example((2, 3), pads=(1, 0, 0, 2), mode="constant", constant_value=1.5),
          _example((2, 3), pads=(1, 0, 2, 1), mode="edge"),
          _example((3, 4), pads=(2, 1, 1, 3), mode="reflect"),
          _example((1,), pads=(0, 3), mode="constant")),
    _view("gather", _gather, _gather_shape,
          Example(((5, 3), (2, 4)), {"axis": 0}), Example(((2, 7, 2), (3,)), {"axis": -2}),
          Example(((1,), (1,)), {"axis": 0})),
)  # fmt: skip
