"""Operations on stored integers whose scales are attributes.

Where onnxruntime has no operation for the types, the integers themselves are multiplied, in i32,
which wraps as ours do, and the sums are quantised by the formula: the same bits.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.casts import saturate_integers
from nacre.core.onnx_export.forms.pooling import divisors, largest, reduce_windows, window_elements
from nacre.core.onnx_export.forms.quantized import QUANTIZED, round_steps
from nacre.core.onnx_export.forms.windows import (
    channels_first,
    channels_last,
    convolve_integers,
    is_last,
    transpose_weights,
    window_attributes,
)
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, writes
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.kernels.windows.sliding import Sliding, fitting_windows

_BYTES = ("i8", "u8")
_MOST_PLACES = 64  # of a window whose reals are added one by one


def _scalar(writer: OnnxWriter, name: str) -> Value:
    return writer.number(writer.attributes[name], "f32")


def _is_in_range(dtype: str, value: int) -> bool:
    element = GRAPH_TYPES[dtype]
    return bool(element.lowest <= value <= element.highest)


def _dequantize(writer: OnnxWriter, x: Value, side: str) -> Value:
    """What stored integers stand for."""
    scale, zero = _scalar(writer, f"{side}_scale"), writer.attributes[f"{side}_zero"]
    if x.dtype in QUANTIZED and _is_in_range(x.dtype, zero):
        type_ = TensorType("f32", x.shape)
        return writer.add("DequantizeLinear", x, scale, writer.number(zero, x.dtype), type_=type_)
    steps = writer.elementwise("Sub", writer.cast(x, "i64"), writer.number(zero, "i64"))
    return writer.elementwise("Mul", writer.cast(steps, "f32"), scale)


def _quantize(writer: OnnxWriter, reals: Value) -> Value:
    """The integers that stand for reals."""
    to, scale, zero = writer.type.dtype, _scalar(writer, "y_scale"), writer.attributes["y_zero"]
    if to in QUANTIZED:
        type_ = TensorType(to, reals.shape)
        return writer.add("QuantizeLinear", reals, scale, writer.number(zero, to), type_=type_)
    return round_steps(writer, writer.elementwise("Div", reals, scale), writer.number(zero, "i64"))


@writes("QBinOp")
def binop(writer: OnnxWriter) -> Value:
    """`QBinOp`."""
    a, b = (_dequantize(writer, x, side) for x, side in zip(writer.operands, "ab", strict=True))
    return _quantize(writer, writer.elementwise(str(writer.attributes["op"]), a, b))


def _weight_zeros(writer: OnnxWriter) -> Array:
    return np.array(writer.attributes["w_zeros"] or (0,), np.int64)


def _has_fused_operation(writer: OnnxWriter) -> bool:
    """Whether onnxruntime has a fused operation: bytes, and one zero point of the weights."""
    x, weights, *bias = (value.dtype for value in writer.operands)
    zeros = _weight_zeros(writer)
    return (
        x in _BYTES
        and weights in (_BYTES if x == "u8" else ("i8",))
        and writer.type.dtype == x
        and all(dtype == "i32" for dtype in bias)
        and _is_in_range(x, writer.attributes["x_zero"])
        and bool((zeros == zeros[0]).all())
        and _is_in_range(weights, int(zeros[0]))
    )


def _add_fused(writer: OnnxWriter, operation: str, x: Value, weights: Value, *bias: Value,
           shape: tuple[int, ...], **given: object) -> Value:  # fmt: skip
    """An operation of ONNX with scales and zero points among its operands."""
    zero = writer.number(int(_weight_zeros(writer)[0]), weights.dtype)
    scales = np.array(writer.attributes["w_scales"], np.float32)
    if scales.size > 1:
        # A list of zero points, too.
        zero = writer.array(np.full(scales.shape, int(_weight_zeros(writer)[0]),
                                  GRAPH_TYPES[weights.dtype].dtype), weights.dtype)  # fmt: skip
    else:
        scales = scales.reshape(())
    return writer.add(
        operation,
        x,
        _scalar(writer, "x_scale"),
        writer.number(writer.attributes["x_zero"], x.dtype),
        weights,
        writer.array(scales, "f32"),
        zero,
        _scalar(writer, "y_scale"),
        writer.number(writer.attributes["y_zero"], writer.type.dtype),
        *bias,
        type_=TensorType(writer.type.dtype, shape),
        **given,
    )


def _integers(writer: OnnxWriter, x: Value, zeros: Array) -> Value:
    """Stored integers less their zero points, which broadcast, in i32."""
    wide = writer.cast(x, "i32")
    if not zeros.any():
        return wide
    return writer.elementwise("Sub", wide, writer.array(zeros.astype(np.int32), "i32"))


def _requantize(writer: OnnxWriter, sums: Value, bias: list[Value], axis: int) -> Value:
    """Sums of products, channels along an axis, as stored integers."""
    channel_shape = [-1 if at == axis else 1 for at in range(sums.type.rank)]
    if bias:
        channels = [sums.shape[axis] if dim < 0 else 1 for dim in channel_shape]
        sums = writer.elementwise(
            "Add", sums, writer.reshape(writer.cast(bias[0], "i32"), channels)
        )
    scales = np.array(writer.attributes["w_scales"], np.float32)
    scales = (
        scales * np.float32(writer.attributes["x_scale"]) / np.float32(writer.attributes["y_scale"])
    )
    scale = writer.array(scales.astype(np.float32).reshape(channel_shape), "f32")
    steps = writer.elementwise("Mul", writer.cast(sums, "f32"), scale)
    return round_steps(writer, steps, writer.number(writer.attributes["y_zero"], "i64"))


@writes("QConv")
def conv(writer: OnnxWriter) -> Value:
    """`QConv`."""
    x, weights, *bias = writer.operands
    turned = transpose_weights(writer, weights)
    sliding = fitting_windows(x.shape, turned.shape[2:], writer.attributes)
    shape = writer.type.shape
    if _has_fused_operation(writer):
        first = channels_first(writer, x) if is_last(writer) else x
        plane = (shape[0], shape[-1], *shape[1:-1]) if is_last(writer) else shape
        given = {"group": writer.attributes["groups"], "kernel_shape": list(turned.shape[2:])}
        convolved = _add_fused(
            writer,
            "QLinearConv",
            first,
            turned,
            *bias,
            shape=plane,
            **given,
            **window_attributes(sliding),
        )
        return channels_last(writer, convolved) if is_last(writer) else convolved
    zeros = _weight_zeros(writer).reshape(-1, *(1,) * (turned.type.rank - 1))
    sums = convolve_integers(
        writer,
        _integers(writer, x, np.array(writer.attributes["x_zero"])),
        _integers(writer, turned, zeros),
        sliding,
    )
    return _requantize(writer, sums, bias, sums.type.rank - 1 if is_last(writer) else 1)


@writes("QLinear")
def linear(writer: OnnxWriter) -> Value:
    """`QLinear`: without a bias `QLinearMatMul`."""
    x, weights, *bias = writer.operands
    turned = writer.transpose(weights, (1, 0))
    if _has_fused_operation(writer) and not bias and x.type.rank > 1:
        return _add_fused(writer, "QLinearMatMul", x, turned, shape=writer.type.shape)
    a = _integers(writer, x, np.array(writer.attributes["x_zero"]))
    b = _integers(writer, turned, _weight_zeros(writer))
    sums = writer.add("MatMul", a, b, type_=TensorType("i32", writer.type.shape))
    return _requantize(writer, sums, bias, sums.type.rank - 1)


@writes("QPool")
def pool(writer: OnnxWriter) -> Value:
    """`QPool`."""
    (x,), given = writer.operands, {**writer.attributes, "dilations": ()}
    sliding = fitting_windows(x.shape, tuple(given["kernel"]), given)
    x = x if is_last(writer) else channels_last(writer, x)
    same = all(given[f"x_{name}"] == given[f"y_{name}"] for name in ("scale", "zero"))
    if given["op"] == "Avg" and not same:
        pooled = _mean_of_reals(writer, x, sliding)
    else:
        picked = largest(writer, x, sliding) if given["op"] == "Max" else _mean(writer, x, sliding)
        pooled = (
            saturate_integers(writer, picked, writer.type.dtype)
            if same
            else _requantize_picked(writer, picked)
        )
    return pooled if is_last(writer) else channels_first(writer, pooled)


def _requantize_picked(writer: OnnxWriter, picked: Value) -> Value:
    """Integers that were picked, quantised once more."""
    return _quantize(
        writer, _dequantize(writer, writer.cast(picked, writer.operands[0].dtype), "x")
    )


def _mean(writer: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The mean of the integers, rounded half to even; f64 holds every sum."""
    fill = writer.attributes["x_zero"] if writer.attributes["count_pad"] else 0
    sums = reduce_windows(writer, "ReduceSum", writer.cast(x, "i64"), sliding, fill)
    mean = writer.elementwise("Div", writer.cast(sums, "f64"), divisors(writer, sliding, "f64"))
    rounded = writer.cast(writer.elementwise("Round", mean), "i64")
    return writer.cast(rounded, writer.operands[0].dtype)


def _mean_of_reals(writer: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The mean of what the integers stand for, added in order: a last bit may decide a step."""
    if prod(sliding.window) > _MOST_PLACES:
        raise Unsupported(f"a mean of more than {_MOST_PLACES} reals, whose order decides its bits")
    under, axes = window_elements(writer, _dequantize(writer, x, "x"), sliding, 0)
    shape = tuple(dim for axis, dim in enumerate(under.shape) if axis not in axes)
    terms = []
    for place in product(*(range(under.shape[axis]) for axis in axes)):
        term = under
        for axis, at in zip(axes, place, strict=True):
            term = writer.part(term, axis, at, at + 1)
        terms.append(writer.reshape(term, shape))
    total = reduce(lambda a, b: writer.elementwise("Add", a, b), terms)
    return _quantize(writer, writer.elementwise("Div", total, divisors(writer, sliding, "f32")))
