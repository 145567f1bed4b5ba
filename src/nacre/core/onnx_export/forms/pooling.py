"""Poolings: by an operation of ONNX where readers agree on it, else from the windows' elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.reductions import extremum
from nacre.core.onnx_export.forms.windows import (
    channels_first,
    channels_last,
    gather_windows,
    is_last,
    window_attributes,
    window_positions,
)
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.types import takes
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes
from nacre.kernels.windows.sliding import Axis, Sliding, fitting_windows


def _is_unambiguous(axis: Axis) -> bool:
    """Whether readers agree on the windows along an axis: how many there are, and what is in them.

    Pads are smaller than a window then, and no window is without an element.
    """
    reach = axis.dilation * (axis.window - 1) + 1
    room = axis.begin + axis.size + axis.end - reach
    count = (-(-room // axis.stride) if axis.rounds_up else room // axis.stride) + 1
    is_small = max(axis.begin, axis.end) < axis.window
    return count == axis.count and is_small and _are_filled(axis)


def _are_filled(axis: Axis) -> bool:
    """Whether every window has an element of the tensor."""
    require_few(axis.count)
    starts = np.arange(axis.count) * axis.stride - axis.begin
    first = np.maximum(0, -(starts // axis.dilation))
    last = np.minimum(axis.window - 1, (axis.size - 1 - starts) // axis.dilation)
    return bool((first <= last).all())


def _pool(writer: OnnxWriter, operation: str, x: Value, sliding: Sliding, **given: object) -> Value:
    """A pooling of ONNX, channels first."""
    shape = (x.shape[0], x.shape[1], *sliding.counts)
    kernel = [axis.window for axis in sliding.axes]
    is_ceil = any(axis.rounds_up for axis in sliding.axes)
    return writer.add(
        operation,
        x,
        type_=TensorType(x.dtype, shape),
        kernel_shape=kernel,
        ceil_mode=int(is_ceil),
        **window_attributes(sliding),
        **given,
    )


def pooling(
    operation: str,
    given: Callable[[OnnxWriter], dict[str, object]],
    by_elements: Callable[..., Value],
) -> Callable[[OnnxWriter], Value]:
    """A form by an operation of ONNX where that suits, else by the elements under each window."""

    def form(writer: OnnxWriter) -> Value:
        (x,), kernel = writer.operands, writer.attributes["kernel"]
        sliding = fitting_windows(x.shape, kernel, writer.attributes)
        x = x if takes(operation, x.dtype) else writer.to_compute_type(x)
        # Of both together readers count the elements in several ways.
        is_odd = bool(writer.attributes["ceil"] and writer.attributes.get("count_pad"))
        if takes(operation, x.dtype) and all(map(_is_unambiguous, sliding.axes)) and not is_odd:
            first = channels_first(writer, x) if is_last(writer) else x
            pooled = _pool(writer, operation, first, sliding, **given(writer))
            return writer.to_result_type(
                channels_last(writer, pooled) if is_last(writer) else pooled
            )
        pooled = by_elements(writer, x if is_last(writer) else channels_last(writer, x), sliding)
        return writer.to_result_type(pooled if is_last(writer) else channels_first(writer, pooled))

    return form


def window_elements(
    writer: OnnxWriter, x: Value, sliding: Sliding, fill: float
) -> tuple[Value, list[int]]:
    """The elements under each window, and the axes of their places."""
    count = len(sliding.axes)
    under = gather_windows(writer, x, [window_positions(axis) for axis in sliding.axes], fill)
    return under, list(range(count + 1, 2 * count + 1))


def reduce_windows(
    writer: OnnxWriter, operation: str, x: Value, sliding: Sliding, fill: float
) -> Value:
    """A reduction of the elements under each window; [N, windows.., C]."""
    under, axes = window_elements(writer, x, sliding, fill)
    shape = tuple(dim for axis, dim in enumerate(under.shape) if axis not in axes)
    type_ = TensorType(x.dtype, shape)
    return writer.add(operation, under, writer.ints(axes), type_=type_, keepdims=0)


def largest(writer: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The largest element; of padding alone the lowest value of the type."""
    element = GRAPH_TYPES[writer.operands[0].dtype]
    lowest = element.lowest if element.is_integer else float("-inf")
    under, axes = window_elements(writer, writer.to_compute_type(x), sliding, lowest)
    found = extremum(writer, "Max", under, tuple(axes))
    return writer.reshape(found, [dim for a, dim in enumerate(under.shape) if a not in axes])


def divisors(writer: OnnxWriter, sliding: Sliding, dtype: str) -> Value:
    """How many elements each window counts, [windows.., 1]."""
    found = np.ones(())
    with_padding = bool(writer.attributes.get("count_pad"))
    for axis in sliding.axes:
        counts = [axis.elements(index, with_padding) for index in range(axis.count)]
        found = found[..., None] * np.array(counts, np.float64)
    return writer.array(np.maximum(found, 1)[..., None].astype(GRAPH_TYPES[dtype].dtype), dtype)


def average(writer: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The mean."""
    sums = reduce_windows(writer, "ReduceSum", x, sliding, 0)
    return writer.elementwise("Div", sums, divisors(writer, sliding, x.dtype))


def norm(writer: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The p-norm."""
    p, sizes = writer.attributes["p"], writer.elementwise("Abs", x)
    powers = writer.elementwise("Pow", sizes, writer.number(p, x.dtype))
    sums = reduce_windows(writer, "ReduceSum", powers, sliding, 0)
    return writer.elementwise("Pow", sums, writer.number(1 / p, x.dtype))


def _no_attributes(writer: OnnxWriter) -> dict[str, object]:
    return {}


writes("MaxPool")(pooling("MaxPool", _no_attributes, largest))
writes("AvgPool")(
    pooling(
        "AveragePool",
        lambda writer: {"count_include_pad": int(writer.attributes["count_pad"])},
        average,
    )
)
writes("LpPool")(pooling("LpPool", lambda writer: {"p": writer.attributes["p"]}, norm))
