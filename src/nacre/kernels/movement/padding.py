"""`pad`: a tensor surrounded by more elements.

The element of mode `constant` is a real value: where the tensor carries a quantisation it is
quantised by it (so 0.0 is the zero point), in other integer types it is rounded to the nearest,
halves to even, and stops at the ends of the type.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Quantization,
    Run,
    TensorType,
    integers,
)
from nacre.kernels.interface.runs import fill_run
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import real_to_integer, round_even
from nacre.kernels.numbers.quantization import quantizer

Index = tuple[slice, ...]


def bind_pad(call: Call) -> Run:
    """`pad` in any of its modes."""
    x, pads = call.input(0).shape, tuple(call.attributes["pads"])
    begins, ends = pads[: len(x)], pads[len(x) :]
    inner = tuple(slice(b, b + size) for b, size in zip(begins, x, strict=True))
    if call.attributes["mode"] == "constant":
        return _bind_border(inner, call)
    sources = _reflect_slices if call.attributes["mode"] == "reflect" else _edges
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

    return fill_run(fill)


def _edges(size: int, begin: int, end: int) -> tuple[slice, slice]:
    last = begin + size - 1
    return slice(begin, begin + 1), slice(last, last + 1)


def _reflect_slices(size: int, begin: int, end: int) -> tuple[slice, slice]:
    last = begin + size - 1
    stop = last - 1 - end
    return slice(2 * begin, begin, -1), slice(last - 1, stop if stop >= 0 else None, -1)


def _bind_border(inner: Index, call: Call) -> Run:
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

    return fill_run(fill)


def _constant(call: Call) -> Array:
    y = call.output
    value = np.full((1,) * len(y.shape), call.attributes.get("constant_value", 0.0))
    quant = y.quant or _extended_quantization(call)
    if quant is not None:
        return quantizer(TensorType(y.elem, y.shape, quant))(value)
    if y.elem.is_integer:
        return real_to_integer(round_even(value), y.elem)
    with np.errstate(over="ignore"):
        return value.astype(y.dtype)


def _extended_quantization(call: Call) -> Quantization | None:
    """The quantisation of the input, its first and last entries standing for the new elements."""
    x, y = call.input(0), call.output
    if x.quant is None or x.quant.axis is None:
        return x.quant
    axis = x.quant.axis
    begin = call.attributes["pads"][axis]
    source = np.clip(np.arange(y.shape[axis]) - begin, 0, x.shape[axis] - 1) // x.quant.group_size
    return Quantization(x.quant.scale[source], x.quant.zero_point[source], axis)


def pad_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    """The shape of X with its pads; None where they do not fit."""
    x, pads = inputs[0], integers(attributes, "pads")
    if x is None or pads is None or len(pads) != 2 * len(x) or min(pads, default=0) < 0:
        return None
    # Reflection stops before the edge, so an axis offers less than its size on each side.
    if attributes.get("mode") == "reflect" and any(
        w >= n for w, n in zip(pads, x * 2, strict=True)
    ):
        return None
    shape = shapes.pad(x, pads)
    return None if min(shape, default=1) < 1 else [shape]
