"""Operations of the domain com.microsoft on stored integers, convolutions and products aside.

Each is defined as an operation on the reals that the integers stand for, quantised again.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.quantized import (
    ScaleAndZero,
    add_dequantize,
    add_quantize,
    scale_and_zero_of,
)
from nacre.core.onnx.handlers.quantized_products import add_requantize, center, channels_last
from nacre.core.onnx.handlers.table import Handler, handles
from nacre.core.onnx.onnx_node import OnnxNode, describe_tensor
from nacre.core.onnx.tensors import (
    as_scalar,
    broadcast_to,
    combine,
    delegate,
    optional_tensor,
    replace_operands,
    with_shape,
)
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_BITS = (2, 4, 8)  # of MatMulNBits


def _dequantize_operand(node: OnnxNode, index: int) -> int:
    """An operand whose scale and zero point are the next two."""
    return add_dequantize(node, node.tensor(index), scale_and_zero_of(node, index + 1, index + 2))


def _quantize_like(node: OnnxNode, value: int, scale: int, to: str | None = None) -> int:
    """A value with the scale and zero point of two operands; in the type of operand 0."""
    return add_quantize(
        node, value, scale_and_zero_of(node, scale, scale + 1), to or node.type(0).dtype
    )


def _binary(op: str) -> Handler:
    def handler(node: OnnxNode) -> int:
        numbers = [_number(node, i) for i in (1, 2, 4, 5, 6, 7)]
        if any(number is None for number in numbers):
            real_result = node.add(
                "BinOp", _dequantize_operand(node, 0), _dequantize_operand(node, 3), op=op
            )
            return _quantize_like(node, real_result, 6)
        names = ("a_scale", "a_zero", "b_scale", "b_zero", "y_scale", "y_zero")
        given = dict(zip(names, numbers, strict=True))
        to = node.type(0).dtype
        return node.add("QBinOp", node.value(0), node.value(3), op=op, to=to, **given)

    return handler


def _number(node: OnnxNode, index: int) -> float | int | None:
    """A known number; a zero point that is left out is 0."""
    if not node.has(index):
        return 0
    known = node.known(index)
    if known is None:
        return None
    if known.size != 1:
        raise Unsound(f"operand {index} has the shape {list(known.shape)}, expected one number")
    number: float | int = known.ravel()[0].item()
    return number


def _unary(function: Callable[[OnnxNode, int], int]) -> Handler:
    def handler(node: OnnxNode) -> int:
        return _quantize_like(node, function(node, _dequantize_operand(node, 0)), 3)

    return handler


def _leaky(node: OnnxNode, x: int) -> int:
    return node.add("LeakyRelu", x, alpha=float(node.attribute("alpha", 0.01)))


def _softmax(node: OnnxNode, x: int) -> int:
    dims = node.shape(0)
    if int(node.attribute("opset", 13)) >= 13:
        return node.add("Softmax", x, axis=node.axis(default=-1))
    axis = node.axis(default=1)
    flat = node.reshape(x, (prod(dims[:axis]), prod(dims[axis:])))
    return node.reshape(node.add("Softmax", flat, axis=1), dims)


def _mean(node: OnnxNode, x: int) -> int:
    rank = len(node.shape(0))
    axes = tuple(a % rank for a in node.ints("axes", None, range(rank)) or range(rank))
    return node.add("Mean", x, axes=axes, keepdims=bool(node.attribute("keepdims", 1)))


handles("com.microsoft.QLinearAdd")(_binary("Add"))
handles("com.microsoft.QLinearMul")(_binary("Mul"))
handles("com.microsoft.QLinearSigmoid")(_unary(lambda node, x: node.add("Unary", x, op="Sigmoid")))
handles("com.microsoft.QLinearLeakyRelu")(_unary(_leaky))
handles("com.microsoft.QLinearSoftmax")(_unary(_softmax))
handles("com.microsoft.QLinearReduceMean")(_unary(_mean))


@handles("com.microsoft.QLinearGlobalAveragePool")
def qlinear_global_average_pool(node: OnnxNode) -> int:
    """The sum of each channel, in i32, times what one step of it is worth."""
    dims = node.shape(0)
    axes = range(1, len(dims) - 1) if node.attribute("channels_last", 0) else range(2, len(dims))
    steps, count = scale_and_zero_of(node, 1, 2), prod(dims[axis] for axis in axes)
    whole = center(node, node.tensor(0), steps.zero)
    sums = node.add("Sum", whole, axes=tuple(axes), keepdims=True)
    wide = combine(node, "Mul", as_scalar(node, node.tensor(3)), np.array(count, np.float32))
    factor = combine(node, "Div", steps.scale, wide)
    zero = node.tensor(4) if node.has(4) else np.zeros((), node.type(0).element.dtype)
    return add_requantize(node, sums, factor, zero)


@handles("com.microsoft.QLinearAveragePool")
def qlinear_average_pool(node: OnnxNode) -> int:
    """The mean of each window, padding being 0 where it counts."""

    def pooled(given: OnnxNode) -> int:
        made = delegate(replace_operands(given, {0: _dequantize_operand(given, 0)}), "AveragePool")
        return _quantize_like(given, made, 3)

    return channels_last(node, pooled) if node.attribute("channels_last", 0) else pooled(node)


@handles("com.microsoft.NhwcMaxPool")
def nhwc_max_pool(node: OnnxNode) -> int:
    """The largest integer of each window, channels last."""
    return channels_last(node, lambda given: delegate(given, "MaxPool"))


@handles("com.microsoft.QLinearConcat")
def qlinear_concat(node: OnnxNode) -> int:
    """Tensors of different scales after each other."""
    if node.count < 5 or (node.count - 2) % 3:
        raise Unsound(f"{node.count} operands, expected two and three for each tensor")
    to = node.type(1).dtype
    parts = [_rescale_to_output(node, index, to) for index in range(2, node.count, 3)]
    axis = node.axis(rank=len(node.shape(2)))
    return node.add("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _rescale_to_output(node: OnnxNode, index: int, to: str) -> int:
    """A tensor with the scale and zero point of operands 0 and 1."""
    own, wanted = ([_number(node, i), _number(node, i + 1)] for i in (index + 1, 0))
    if None not in own and own == wanted and node.type(index).dtype == to:
        return node.value(index)
    return _quantize_like(node, _dequantize_operand(node, index), 0, to)


@handles("com.microsoft.QLinearWhere")
def qlinear_where(node: OnnxNode) -> int:
    """The one or the other, of different scales."""
    made = node.add(
        "Where", node.value(0), _dequantize_operand(node, 1), _dequantize_operand(node, 4)
    )
    return _quantize_like(node, made, 7, node.type(1).dtype)


@handles("com.microsoft.MulInteger")
def mul_integer(node: OnnxNode) -> int:
    """The product of centred integers, in i32."""
    sides = []
    for index in (0, 2):
        value = node.cast(node.value(index), "i32")
        if node.has(index + 1):
            zero = node.cast(node.value(index + 1), "i32")
            value = node.add("BinOp", value, zero, op="Sub")
        sides.append(value)
    return node.add("BinOp", *sides, op="Mul")


@handles("com.microsoft.MatMulNBits")
def matmul_nbits(node: OnnxNode) -> int:
    """Rows by weights of few bits, each block of which has its own scale."""
    bits, block = int(node.attribute("bits", 4)), int(node.require("block_size"))
    depth, width = int(node.require("K")), int(node.require("N"))
    if bits not in _BITS or block < 16 or min(depth, width) < 1:
        reason = f"`bits` is {bits}, `block_size` {block}, K {depth}, N {width}"
        raise Unsupported(reason, f"quantise to one of {list(_BITS)} bits in blocks of 16 or more")
    if node.has(4) or node.attribute("weight_prepacked", 0):
        reason = "the weights are ordered by `g_idx`, or packed for a device"
        raise Unsupported(reason, "quantise the model without them")
    blocks = -(-depth // block)
    packed = node.require_known(1, "the packed weights")
    weights = _unpack(packed, bits, (width, blocks, block))
    weights = weights.reshape(width, blocks * block)[:, :depth]
    dtype = "u8" if bits == 8 else "u4"
    scale = with_shape(node, node.tensor(2), (width, blocks))
    zero = _block_zeros(node, bits, (width, blocks))
    steps = ScaleAndZero(scale, node.constant(_to_type(zero, dtype)), 1, block)
    real = add_dequantize(node, _to_type(weights, dtype), steps)
    bias = optional_tensor(node, 5)
    more = [] if bias is None else [node.materialise(broadcast_to(node, bias, (width,)))]
    return node.add("Linear", node.value(0), real, *more)


def _to_type(values: Array, dtype: str) -> Array:
    from nacre.base.elements import GRAPH_TYPES

    return values.astype(GRAPH_TYPES[dtype].dtype)


def _block_zeros(node: OnnxNode, bits: int, dims: tuple[int, int]) -> Array:
    """The zero point of each block; the middle of the range where none is given."""
    if not node.has(3):
        return np.full(dims, 1 << (bits - 1), np.uint8)
    packed = node.require_known(3, "the packed zero points")
    if packed.dtype != np.uint8:
        raise Unsupported(
            f"the zero points are {describe_tensor(packed)}, expected packed u8", "pack them"
        )
    width = -(-dims[1] * bits // 8) * 8 // bits
    return _unpack(packed, bits, (dims[0], width))[:, : dims[1]]


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
