"""Operations of the domain com.microsoft on stored integers, convolutions and products aside.

Each is defined as an operation on the reals that the integers stand for, quantised again.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.quantized import Steps, add_dequantize, add_quantize, steps_of
from nacre.core.onnx.handlers.quantized_products import add_requantize, center, channels_last
from nacre.core.onnx.handlers.table import Handler, handles
from nacre.core.onnx.tensors import (
    broadcast_to,
    combine,
    delegate,
    optional,
    replace_operands,
    single,
    with_shape,
)
from nacre.core.onnx.use import OnnxNode, describe_tensor
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_BITS = (2, 4, 8)  # of MatMulNBits


def _real(use: OnnxNode, index: int) -> int:
    """An operand whose scale and zero point are the next two."""
    return add_dequantize(use, use.tensor(index), steps_of(use, index + 1, index + 2))


def _quantize_like(use: OnnxNode, value: int, scale: int, to: str | None = None) -> int:
    """A value with the scale and zero point of two operands; in the type of operand 0."""
    return add_quantize(use, value, steps_of(use, scale, scale + 1), to or use.type(0).dtype)


def _binary(op: str) -> Handler:
    def handler(use: OnnxNode) -> int:
        numbers = [_number(use, i) for i in (1, 2, 4, 5, 6, 7)]
        if any(number is None for number in numbers):
            made = use.add("BinOp", _real(use, 0), _real(use, 3), op=op)
            return _quantize_like(use, made, 6)
        names = ("a_scale", "a_zero", "b_scale", "b_zero", "y_scale", "y_zero")
        given = dict(zip(names, numbers, strict=True))
        to = use.type(0).dtype
        return use.add("QBinOp", use.value(0), use.value(3), op=op, to=to, **given)

    return handler


def _number(use: OnnxNode, index: int) -> float | int | None:
    """A known number; a zero point that is left out is 0."""
    if not use.has(index):
        return 0
    found = use.known(index)
    if found is None:
        return None
    if found.size != 1:
        raise Unsound(f"operand {index} has the shape {list(found.shape)}, expected one number")
    number: float | int = found.ravel()[0].item()
    return number


def _unary(function: Callable[[OnnxNode, int], int]) -> Handler:
    def handler(use: OnnxNode) -> int:
        return _quantize_like(use, function(use, _real(use, 0)), 3)

    return handler


def _leaky(use: OnnxNode, x: int) -> int:
    return use.add("LeakyRelu", x, alpha=float(use.attribute("alpha", 0.01)))


def _softmax(use: OnnxNode, x: int) -> int:
    dims = use.shape(0)
    if int(use.attribute("opset", 13)) >= 13:
        return use.add("Softmax", x, axis=use.axis(default=-1))
    axis = use.axis(default=1)
    flat = use.reshape(x, (prod(dims[:axis]), prod(dims[axis:])))
    return use.reshape(use.add("Softmax", flat, axis=1), dims)


def _mean(use: OnnxNode, x: int) -> int:
    rank = len(use.shape(0))
    axes = tuple(a % rank for a in use.ints("axes", None, range(rank)) or range(rank))
    return use.add("Mean", x, axes=axes, keepdims=bool(use.attribute("keepdims", 1)))


handles("com.microsoft.QLinearAdd")(_binary("Add"))
handles("com.microsoft.QLinearMul")(_binary("Mul"))
handles("com.microsoft.QLinearSigmoid")(_unary(lambda use, x: use.add("Unary", x, op="Sigmoid")))
handles("com.microsoft.QLinearLeakyRelu")(_unary(_leaky))
handles("com.microsoft.QLinearSoftmax")(_unary(_softmax))
handles("com.microsoft.QLinearReduceMean")(_unary(_mean))


@handles("com.microsoft.QLinearGlobalAveragePool")
def qlinear_global_average_pool(use: OnnxNode) -> int:
    """The sum of each channel, in i32, times what one step of it is worth."""
    dims = use.shape(0)
    axes = range(1, len(dims) - 1) if use.attribute("channels_last", 0) else range(2, len(dims))
    steps, count = steps_of(use, 1, 2), prod(dims[axis] for axis in axes)
    whole = center(use, use.tensor(0), steps.zero)
    sums = use.add("Sum", whole, axes=tuple(axes), keepdims=True)
    wide = combine(use, "Mul", single(use, use.tensor(3)), np.array(count, np.float32))
    factor = combine(use, "Div", steps.scale, wide)
    zero = use.tensor(4) if use.has(4) else np.zeros((), use.type(0).element.dtype)
    return add_requantize(use, sums, factor, zero)


@handles("com.microsoft.QLinearAveragePool")
def qlinear_average_pool(use: OnnxNode) -> int:
    """The mean of each window, padding being 0 where it counts."""

    def pooled(given: OnnxNode) -> int:
        made = delegate(replace_operands(given, {0: _real(given, 0)}), "AveragePool")
        return _quantize_like(given, made, 3)

    return channels_last(use, pooled) if use.attribute("channels_last", 0) else pooled(use)


@handles("com.microsoft.NhwcMaxPool")
def nhwc_max_pool(use: OnnxNode) -> int:
    """The largest integer of each window, channels last."""
    return channels_last(use, lambda given: delegate(given, "MaxPool"))


@handles("com.microsoft.QLinearConcat")
def qlinear_concat(use: OnnxNode) -> int:
    """Tensors of different scales after each other."""
    if use.count < 5 or (use.count - 2) % 3:
        raise Unsound(f"{use.count} operands, expected two and three for each tensor")
    to = use.type(1).dtype
    parts = [_same_steps(use, index, to) for index in range(2, use.count, 3)]
    axis = use.axis(rank=len(use.shape(2)))
    return use.add("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _same_steps(use: OnnxNode, index: int, to: str) -> int:
    """A tensor with the scale and zero point of operands 0 and 1."""
    own, wanted = ([_number(use, i), _number(use, i + 1)] for i in (index + 1, 0))
    if None not in own and own == wanted and use.type(index).dtype == to:
        return use.value(index)
    return _quantize_like(use, _real(use, index), 0, to)


@handles("com.microsoft.QLinearWhere")
def qlinear_where(use: OnnxNode) -> int:
    """The one or the other, of different scales."""
    made = use.add("Where", use.value(0), _real(use, 1), _real(use, 4))
    return _quantize_like(use, made, 7, use.type(1).dtype)


@handles("com.microsoft.MulInteger")
def mul_integer(use: OnnxNode) -> int:
    """The product of centred integers, in i32."""
    sides = []
    for index in (0, 2):
        value = use.cast(use.value(index), "i32")
        if use.has(index + 1):
            zero = use.cast(use.value(index + 1), "i32")
            value = use.add("BinOp", value, zero, op="Sub")
        sides.append(value)
    return use.add("BinOp", *sides, op="Mul")


@handles("com.microsoft.MatMulNBits")
def matmul_nbits(use: OnnxNode) -> int:
    """Rows by weights of few bits, each block of which has its own scale."""
    bits, block = int(use.attribute("bits", 4)), int(use.require("block_size"))
    depth, width = int(use.require("K")), int(use.require("N"))
    if bits not in _BITS or block < 16 or min(depth, width) < 1:
        reason = f"`bits` is {bits}, `block_size` {block}, K {depth}, N {width}"
        raise Unsupported(reason, f"quantise to one of {list(_BITS)} bits in blocks of 16 or more")
    if use.has(4) or use.attribute("weight_prepacked", 0):
        reason = "the weights are ordered by `g_idx`, or packed for a device"
        raise Unsupported(reason, "quantise the model without them")
    blocks = -(-depth // block)
    packed = use.require_known(1, "the packed weights")
    weights = _unpack(packed, bits, (width, blocks, block))
    weights = weights.reshape(width, blocks * block)[:, :depth]
    dtype = "u8" if bits == 8 else "u4"
    scale = with_shape(use, use.tensor(2), (width, blocks))
    zero = _block_zeros(use, bits, (width, blocks))
    steps = Steps(scale, use.constant(_as(zero, dtype)), 1, block)
    real = add_dequantize(use, _as(weights, dtype), steps)
    bias = optional(use, 5)
    more = [] if bias is None else [use.materialise(broadcast_to(use, bias, (width,)))]
    return use.add("Linear", use.value(0), real, *more)


def _as(values: Array, dtype: str) -> Array:
    from nacre.base.elements import GRAPH_TYPES

    return values.astype(GRAPH_TYPES[dtype].dtype)


def _block_zeros(use: OnnxNode, bits: int, dims: tuple[int, int]) -> Array:
    """The zero point of each block; the middle of the range where none is given."""
    if not use.has(3):
        return np.full(dims, 1 << (bits - 1), np.uint8)
    found = use.require_known(3, "the packed zero points")
    if found.dtype != np.uint8:
        raise Unsupported(
            f"the zero points are {describe_tensor(found)}, expected packed u8", "pack them"
        )
    width = -(-dims[1] * bits // 8) * 8 // bits
    return _unpack(found, bits, (dims[0], width))[:, : dims[1]]


def _unpack(packed: Array, bits: int, dims: tuple[int, ...]) -> Array:
    """Integers of few bits from bytes, the lowest bits first."""
    each = 8 // bits
    if packed.dtype != np.uint8 or packed.size * each != prod(dims):
        raise Unsound(
            f"{describe_tensor(packed)} does not hold {list(dims)} integers of {bits} bits"
        )
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(bits)
    apart: Array = (packed.reshape(-1, 1) >> shifts) & np.uint8((1 << bits) - 1)
    return apart.reshape(dims)
