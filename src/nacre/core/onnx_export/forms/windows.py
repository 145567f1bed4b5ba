"""Convolutions.

onnxruntime convolves f32 only. Of other types the elements under every window are gathered, by
places that are known, and multiplied as matrices. An element of the padding is one more at the end
of an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from nacre.core.module import TensorType
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, require_few, writes
from nacre.core.onnx_export.types import takes
from nacre.core.values import Array, Custom
from nacre.kernels.windows.sliding import Axis, Sliding, fitting_windows

# The places of the elements under each window along an axis, [window, place]; -1 for padding.
Places = Array


def channels_first(site: OnnxWriter, x: Value) -> Value:
    """[N, spatial.., C] as [N, C, spatial..]."""
    rank = x.type.rank
    return site.transpose(x, (0, rank - 1, *range(1, rank - 1)))


def channels_last(site: OnnxWriter, x: Value) -> Value:
    """[N, C, spatial..] as [N, spatial.., C]."""
    rank = x.type.rank
    return site.transpose(x, (0, *range(2, rank), 1))


def is_last(site: OnnxWriter) -> bool:
    """Whether channels are the last axis."""
    return bool(site.attributes.get("layout", "NHWC") == "NHWC")


def gather_windows(site: OnnxWriter, x: Value, places: Sequence[Places], fill: float) -> Value:
    """[N, spatial.., C] as [N, windows.., places.., C]."""
    count = len(places)
    for number, along in enumerate(places):
        axis = 1 + 2 * number
        if (along < 0).any():
            width = [0] * x.type.rank
            width[axis] = 1
            shape = (*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :])
            pads, value = site.ints([0] * x.type.rank + width), site.number(fill, x.dtype)
            along = np.where(along < 0, x.shape[axis], along)
            x = site.moved("Pad", x, pads, value, shape=shape, mode="constant")
        x = site.gather(x, site.array(along.astype(np.int64), "i64"), axis)
    order = [0, *range(1, 2 * count, 2), *range(2, 2 * count + 1, 2), 2 * count + 1]
    return site.transpose(x, order)


def places_of(axis: Axis) -> Places:
    """The places under the windows along an axis."""
    require_few(axis.count * axis.window)
    starts = np.arange(axis.count) * axis.stride - axis.begin
    found = starts[:, None] + np.arange(axis.window) * axis.dilation
    return np.where((found >= 0) & (found < axis.size), found, -1)


def _transposed_sources(axis: Axis, count: int) -> Places:
    """From where every element of a transposed convolution comes."""
    require_few(count * axis.window)
    whole = np.arange(count)[:, None] + axis.begin - np.arange(axis.window) * axis.dilation
    found, rest = np.divmod(whole, axis.stride)
    return np.where((rest == 0) & (found >= 0) & (found < axis.size), found, -1)


def _products(site: OnnxWriter, under: Value, weights: Value, groups: int, spatial: int) -> Value:
    """[N, windows.., places.., C] by [groups, places.. C / groups, outputs / groups]."""
    batch, front = under.shape[0], under.shape[: spatial + 1]
    places, each = prod(under.shape[spatial + 1 : -1]), under.shape[-1] // groups
    rows = site.reshape(under, (prod(front), places, groups, each))
    rows = site.transpose(rows, (2, 0, 1, 3))
    rows = site.reshape(rows, (groups, prod(front), places * each))
    outputs = weights.shape[-1]
    type_ = TensorType(rows.dtype, (groups, prod(front), outputs))
    found = site.transpose(site.add("MatMul", rows, weights, type_=type_), (1, 0, 2))
    return site.reshape(found, (batch, *front[1:], groups * outputs))


def transpose_weights(site: OnnxWriter, weights: Value) -> Value:
    """Weights as ONNX has them: both channels first."""
    if not is_last(site):
        return weights
    rank = weights.type.rank
    return site.transpose(weights, (rank - 1, rank - 2, *range(rank - 2)))


def _flat_weights(site: OnnxWriter, weights: Value, groups: int, is_transposed: bool) -> Value:
    """[groups, places.. inputs a group, outputs a group] of weights as ONNX has them."""
    a, b, *window = weights.shape
    split = site.reshape(weights, (groups, a // groups, b, prod(window)))
    # A convolution has outputs before inputs, a transposed one the reverse.
    order = (0, 3, 1, 2) if is_transposed else (0, 3, 2, 1)
    turned = site.transpose(split, order)
    return site.reshape(turned, (groups, prod(turned.shape[1:3]), turned.shape[3]))


def _sliding(site: OnnxWriter, window: Sequence[int], given: dict[str, Any]) -> Sliding:
    return fitting_windows(site.operands[0].shape, tuple(window), given)


def plan_of(sliding: Sliding) -> dict[str, list[int]]:
    """Strides, pads and dilations as ONNX writes them."""
    axes = sliding.axes
    return {
        "strides": [axis.stride for axis in axes],
        "pads": [axis.begin for axis in axes] + [axis.end for axis in axes],
        "dilations": [axis.dilation for axis in axes],
    }


def _convolve(site: OnnxWriter, given: dict[str, Any], operation: str) -> Value:
    """A convolution with these attributes, in either layout."""
    x, weights, *bias = (site.wide(value) for value in site.operands)
    is_transposed = operation == "ConvTranspose"
    weights = transpose_weights(site, weights)
    sliding, groups = _sliding(site, weights.shape[2:], given), given["groups"]
    extra = tuple(given.get("output_padding", ()))
    is_odd = any(more >= axis.stride for more, axis in zip(extra, sliding.axes, strict=False))
    if not takes(operation, x.dtype) or is_odd:
        return _by_matrices(site, (x, weights, *bias), sliding, groups, is_transposed)
    x = channels_first(site, x) if is_last(site) else x
    shape = site.type.shape
    shape = (shape[0], shape[-1], *shape[1:-1]) if is_last(site) else shape
    made = site.add(
        operation,
        x,
        weights,
        *bias,
        type_=TensorType(x.dtype, shape),
        group=groups,
        kernel_shape=list(weights.shape[2:]),
        **plan_of(sliding),
        **({"output_padding": list(extra)} if extra else {}),
    )
    return site.result(channels_last(site, made) if is_last(site) else made)


def _by_matrices(
    site: OnnxWriter, operands: Sequence[Value], sliding: Sliding, groups: int, is_transposed: bool
) -> Value:
    x, weights, *bias = operands
    found = _matrix_sums(site, x, weights, sliding, groups, is_transposed)
    found = site.each("Add", found, bias[0]) if bias else found
    return site.result(found if is_last(site) else channels_first(site, found))


def convolve_integers(site: OnnxWriter, x: Value, weights: Value, sliding: Sliding) -> Value:
    """A convolution of i32, its weights as ONNX has them, in the layout of the operation."""
    found = _matrix_sums(site, x, weights, sliding, site.attributes["groups"], False)
    return found if is_last(site) else channels_first(site, found)


def _matrix_sums(
    site: OnnxWriter, x: Value, weights: Value, sliding: Sliding, groups: int, is_transposed: bool
) -> Value:
    """A convolution as a product of matrices; channels are the last axis of the result."""
    x = x if is_last(site) else channels_last(site, x)
    spatial = site.type.shape[1:-1] if is_last(site) else site.type.shape[2:]
    places = [
        _transposed_sources(axis, count) if is_transposed else places_of(axis)
        for axis, count in zip(sliding.axes, spatial, strict=True)
    ]
    under = gather_windows(site, x, places, 0)
    flat = _flat_weights(site, weights, groups, is_transposed)
    return _products(site, under, flat, groups, len(spatial))


@writes("Conv")
def conv(site: OnnxWriter) -> Value:
    """`Conv`."""
    return _convolve(site, dict(site.attributes), "Conv")


@writes("ConvTranspose")
def conv_transpose(site: OnnxWriter) -> Value:
    """`ConvTranspose`."""
    return _convolve(site, dict(site.attributes), "ConvTranspose")


@writes("Conv2d")
def conv2d(site: OnnxWriter) -> Value:
    """`Conv2d`."""
    x, weights = site.operands
    strides, padding = site.attributes["strides"], site.attributes["padding"]
    pairs = padding if isinstance(padding, Custom) else [(0, 0)] * 2
    if padding == "Same":
        sizes = zip(x.shape[1:3], weights.shape[:2], strides, strict=True)
        needed = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in sizes]
        pairs = [(pad // 2, pad - pad // 2) for pad in needed]
    begins, ends = zip(*pairs, strict=True)
    given = {"layout": "NHWC", "strides": strides, "pads": (*begins, *ends), "dilations": (),
             "groups": 1}  # fmt: skip
    return _convolve(site, given, "Conv")
