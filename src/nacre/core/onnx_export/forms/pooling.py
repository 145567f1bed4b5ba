"""Poolings: by an operation of ONNX where readers agree on it, else from the windows' elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.reductions import extreme
from nacre.core.onnx_export.forms.windows import (
    channels_first,
    channels_last,
    gather_windows,
    is_last,
    places_of,
    plan_of,
)
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, require_few, writes
from nacre.core.onnx_export.types import takes
from nacre.kernels.windows.sliding import Axis, Sliding, fitting_windows


def _suits(axis: Axis) -> bool:
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


def _pool(site: OnnxWriter, operation: str, x: Value, sliding: Sliding, **given: object) -> Value:
    """A pooling of ONNX, channels first."""
    shape = (x.shape[0], x.shape[1], *sliding.counts)
    kernel = [axis.window for axis in sliding.axes]
    is_ceil = any(axis.rounds_up for axis in sliding.axes)
    return site.add(
        operation,
        x,
        type_=TensorType(x.dtype, shape),
        kernel_shape=kernel,
        ceil_mode=int(is_ceil),
        **plan_of(sliding),
        **given,
    )


def pooling(
    operation: str,
    given: Callable[[OnnxWriter], dict[str, object]],
    by_places: Callable[..., Value],
) -> Callable[[OnnxWriter], Value]:
    """A form by an operation of ONNX where that suits, else by the elements under each window."""

    def form(site: OnnxWriter) -> Value:
        (x,), kernel = site.operands, site.attributes["kernel"]
        sliding = fitting_windows(x.shape, kernel, site.attributes)
        x = x if takes(operation, x.dtype) else site.wide(x)
        # Of both together readers count the elements in several ways.
        is_odd = bool(site.attributes["ceil"] and site.attributes.get("count_pad"))
        if takes(operation, x.dtype) and all(map(_suits, sliding.axes)) and not is_odd:
            first = channels_first(site, x) if is_last(site) else x
            made = _pool(site, operation, first, sliding, **given(site))
            return site.result(channels_last(site, made) if is_last(site) else made)
        made = by_places(site, x if is_last(site) else channels_last(site, x), sliding)
        return site.result(made if is_last(site) else channels_first(site, made))

    return form


def under_windows(
    site: OnnxWriter, x: Value, sliding: Sliding, fill: float
) -> tuple[Value, list[int]]:
    """The elements under each window, and the axes of their places."""
    count = len(sliding.axes)
    under = gather_windows(site, x, [places_of(axis) for axis in sliding.axes], fill)
    return under, list(range(count + 1, 2 * count + 1))


def over_places(site: OnnxWriter, operation: str, x: Value, sliding: Sliding, fill: float) -> Value:
    """A reduction of the elements under each window; [N, windows.., C]."""
    under, axes = under_windows(site, x, sliding, fill)
    shape = tuple(dim for axis, dim in enumerate(under.shape) if axis not in axes)
    type_ = TensorType(x.dtype, shape)
    return site.add(operation, under, site.ints(axes), type_=type_, keepdims=0)


def largest(site: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The largest element; of padding alone the lowest value of the type."""
    element = GRAPH_TYPES[site.operands[0].dtype]
    lowest = element.lowest if element.is_integer else float("-inf")
    under, axes = under_windows(site, site.wide(x), sliding, lowest)
    found = extreme(site, "Max", under, tuple(axes))
    return site.reshape(found, [dim for a, dim in enumerate(under.shape) if a not in axes])


def divisors(site: OnnxWriter, sliding: Sliding, dtype: str) -> Value:
    """How many elements each window counts, [windows.., 1]."""
    found = np.ones(())
    with_padding = bool(site.attributes.get("count_pad"))
    for axis in sliding.axes:
        counts = [axis.elements(index, with_padding) for index in range(axis.count)]
        found = found[..., None] * np.array(counts, np.float64)
    return site.array(np.maximum(found, 1)[..., None].astype(GRAPH_TYPES[dtype].dtype), dtype)


def average(site: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The mean."""
    sums = over_places(site, "ReduceSum", x, sliding, 0)
    return site.each("Div", sums, divisors(site, sliding, x.dtype))


def norm(site: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The p-norm."""
    p, sizes = site.attributes["p"], site.each("Abs", x)
    powers = site.each("Pow", sizes, site.number(p, x.dtype))
    sums = over_places(site, "ReduceSum", powers, sliding, 0)
    return site.each("Pow", sums, site.number(1 / p, x.dtype))


def _nothing(site: OnnxWriter) -> dict[str, object]:
    return {}


writes("MaxPool")(pooling("MaxPool", _nothing, largest))
writes("AvgPool")(
    pooling(
        "AveragePool",
        lambda site: {"count_include_pad": int(site.attributes["count_pad"])},
        average,
    )
)
writes("LpPool")(pooling("LpPool", lambda site: {"p": site.attributes["p"]}, norm))
