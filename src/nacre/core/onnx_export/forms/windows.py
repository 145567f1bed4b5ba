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
from nacre.core.onnx_export.types import takes
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes
from nacre.core.values import Array, Custom
from nacre.kernels.windows.sliding import Axis, Sliding, fitting_windows

# The places of the elements under each window along an axis, [window, place]; -1 for padding.
Positions = Array


def channels_first(writer: OnnxWriter, x: Value) -> Value:
    """[N, spatial.., C] as [N, C, spatial..]."""
    rank = x.type.rank
    return writer.transpose(x, (0, rank - 1, *range(1, rank - 1)))


def channels_last(writer: OnnxWriter, x: Value) -> Value:
    """[N, C, spatial..] as [N, spatial.., C]."""
    rank = x.type.rank
    return writer.transpose(x, (0, *range(2, rank), 1))


def is_last(writer: OnnxWriter) -> bool:
    """Whether channels are the last axis."""
    return bool(writer.attributes.get("layout", "NHWC") == "NHWC")


def gather_windows(writer: OnnxWriter, x: Value, places: Sequence[Positions], fill: float) -> Value:
    """[N, spatial.., C] as [N, windows.., places.., C]."""
    count = len(places)
    for number, along in enumerate(places):
        axis = 1 + 2 * number
        if (along < 0).any():
            width = [0] * x.type.rank
            width[axis] = 1
            shape = (*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :])
            pads, value = writer.ints([0] * x.type.rank + width), writer.number(fill, x.dtype)
            along = np.where(along < 0, x.shape[axis], along)
            x = writer.move("Pad", x, pads, value, shape=shape, mode="constant")
        x = writer.gather(x, writer.array(along.astype(np.int64), "i64"), axis)
    order = [0, *range(1, 2 * count, 2), *range(2, 2 * count + 1, 2), 2 * count + 1]
    return writer.transpose(x, order)


def window_positions(axis: Axis) -> Positions:
    """The places under the windows along an axis."""
    require_few(axis.count * axis.window)
    starts = np.arange(axis.count) * axis.stride - axis.begin
    found = starts[:, None] + np.arange(axis.window) * axis.dilation
    return np.where((found >= 0) & (found < axis.size), found, -1)


def _transposed_sources(axis: Axis, count: int) -> Positions:
    """From where every element of a transposed convolution comes."""
    require_few(count * axis.window)
    whole = np.arange(count)[:, None] + axis.begin - np.arange(axis.window) * axis.dilation
    found, rest = np.divmod(whole, axis.stride)
    return np.where((rest == 0) & (found >= 0) & (found < axis.size), found, -1)


def _products(writer: OnnxWriter, under: Value, weights: Value, groups: int, spatial: int) -> Value:
    """[N, windows.., places.., C] by [groups, places.. C / groups, outputs / groups]."""
    batch, front = under.shape[0], under.shape[: spatial + 1]
    places, each = prod(under.shape[spatial + 1 : -1]), under.shape[-1] // groups
    rows = writer.reshape(under, (prod(front), places, groups, each))
    rows = writer.transpose(rows, (2, 0, 1, 3))
    rows = writer.reshape(rows, (groups, prod(front), places * each))
    outputs = weights.shape[-1]
    type_ = TensorType(rows.dtype, (groups, prod(front), outputs))
    products = writer.transpose(writer.add("MatMul", rows, weights, type_=type_), (1, 0, 2))
    return writer.reshape(products, (batch, *front[1:], groups * outputs))


def transpose_weights(writer: OnnxWriter, weights: Value) -> Value:
    """Weights as ONNX has them: both channels first."""
    if not is_last(writer):
        return weights
    rank = weights.type.rank
    return writer.transpose(weights, (rank - 1, rank - 2, *range(rank - 2)))


def _flat_weights(writer: OnnxWriter, weights: Value, groups: int, is_transposed: bool) -> Value:
    """[groups, places.. inputs a group, outputs a group] of weights as ONNX has them."""
    a, b, *window = weights.shape
    split = writer.reshape(weights, (groups, a // groups, b, prod(window)))
    # A convolution has outputs before inputs, a transposed one the reverse.
    order = (0, 3, 1, 2) if is_transposed else (0, 3, 2, 1)
    turned = writer.transpose(split, order)
    return writer.reshape(turned, (groups, prod(turned.shape[1:3]), turned.shape[3]))


def _sliding(writer: OnnxWriter, window: Sequence[int], given: dict[str, Any]) -> Sliding:
    return fitting_windows(writer.operands[0].shape, tuple(window), given)


def window_attributes(sliding: Sliding) -> dict[str, list[int]]:
    """Strides, pads and dilations as ONNX writes them."""
    axes = sliding.axes
    return {
        "strides": [axis.stride for axis in axes],
        "pads": [axis.begin for axis in axes] + [axis.end for axis in axes],
        "dilations": [axis.dilation for axis in axes],
    }


def _convolve(writer: OnnxWriter, given: dict[str, Any], operation: str) -> Value:
    """A convolution with these attributes, in either layout."""
    x, weights, *bias = (writer.to_compute_type(value) for value in writer.operands)
    is_transposed = operation == "ConvTranspose"
    weights = transpose_weights(writer, weights)
    sliding, groups = _sliding(writer, weights.shape[2:], given), given["groups"]
    extra = tuple(given.get("output_padding", ()))
    is_odd = any(more >= axis.stride for more, axis in zip(extra, sliding.axes, strict=False))
    if not takes(operation, x.dtype) or is_odd:
        return _by_matrices(writer, (x, weights, *bias), sliding, groups, is_transposed)
    x = channels_first(writer, x) if is_last(writer) else x
    shape = writer.type.shape
    shape = (shape[0], shape[-1], *shape[1:-1]) if is_last(writer) else shape
    convolved = writer.add(
        operation,
        x,
        weights,
        *bias,
        type_=TensorType(x.dtype, shape),
        group=groups,
        kernel_shape=list(weights.shape[2:]),
        **window_attributes(sliding),
        **({"output_padding": list(extra)} if extra else {}),
    )
    return writer.to_result_type(channels_last(writer, convolved) if is_last(writer) else convolved)


def _by_matrices(
    writer: OnnxWriter,
    operands: Sequence[Value],
    sliding: Sliding,
    groups: int,
    is_transposed: bool,
) -> Value:
    x, weights, *bias = operands
    sums = _matrix_sums(writer, x, weights, sliding, groups, is_transposed)
    sums = writer.elementwise("Add", sums, bias[0]) if bias else sums
    return writer.to_result_type(sums if is_last(writer) else channels_first(writer, sums))


def convolve_integers(writer: OnnxWriter, x: Value, weights: Value, sliding: Sliding) -> Value:
    """A convolution of i32, its weights as ONNX has them, in the layout of the operation."""
    found = _matrix_sums(writer, x, weights, sliding, writer.attributes["groups"], False)
    return found if is_last(writer) else channels_first(writer, found)


def _matrix_sums(
    writer: OnnxWriter, x: Value, weights: Value, sliding: Sliding, groups: int, is_transposed: bool
) -> Value:
    """A convolution as a product of matrices; channels are the last axis of the result."""
    x = x if is_last(writer) else channels_last(writer, x)
    spatial = writer.type.shape[1:-1] if is_last(writer) else writer.type.shape[2:]
    places = [
        _transposed_sources(axis, count) if is_transposed else window_positions(axis)
        for axis, count in zip(sliding.axes, spatial, strict=True)
    ]
    under = gather_windows(writer, x, places, 0)
    flat = _flat_weights(writer, weights, groups, is_transposed)
    return _products(writer, under, flat, groups, len(spatial))


@writes("Conv")
def conv(writer: OnnxWriter) -> Value:
    """`Conv`."""
    return _convolve(writer, dict(writer.attributes), "Conv")


@writes("ConvTranspose")
def conv_transpose(writer: OnnxWriter) -> Value:
    """`ConvTranspose`."""
    return _convolve(writer, dict(writer.attributes), "ConvTranspose")


@writes("Conv2d")
def conv2d(writer: OnnxWriter) -> Value:
    """`Conv2d`."""
    x, weights = writer.operands
    strides, padding = writer.attributes["strides"], writer.attributes["padding"]
    pairs = padding if isinstance(padding, Custom) else [(0, 0)] * 2
    if padding == "Same":
        sizes = zip(x.shape[1:3], weights.shape[:2], strides, strict=True)
        needed = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in sizes]
        pairs = [(pad // 2, pad - pad // 2) for pad in needed]
    begins, ends = zip(*pairs, strict=True)
    given = {"layout": "NHWC", "strides": strides, "pads": (*begins, *ends), "dilations": (),
             "groups": 1}  # fmt: skip
    return _convolve(writer, given, "Conv")
