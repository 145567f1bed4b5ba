"""Products of stored integers: sums in i32, then reals or stored integers again.

Where scales and zero points are known these are the fused operations of Core IR, whose bits are
those of the definition: `saturate(rint(float(sum) * (sx * sw / sy)) + zero)`. Else the same is
written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from nacre.core.importing.products import product
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.quantized import (
    ScaleAndZero,
    add_dequantize,
    add_quantize,
    dynamic_scale_and_zero,
)
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.handlers.windows import weights_kernel, window_attributes
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import (
    as_scalar,
    broadcast,
    cast_tensor,
    combine,
    optional_tensor,
    replace_operands,
    shape_of,
    transpose,
    with_shape,
)
from nacre.core.unsupported import Unsupported

_BYTES = ("i8", "u8")
_SMALL = 1024  # elements: known integers that are no more are centred ahead of time


def center(node: OnnxNode, x: Tensor, zero: Tensor | None) -> int:
    """Integers less their zero point, which broadcasts, in i32.

    Weights stay what they are, and are made wide in the module: so they take a fourth of the room.
    """
    is_large = isinstance(x, np.ndarray) and x.size > _SMALL
    wide = cast_tensor(node, node.materialise(x) if is_large else x, "i32")
    if zero is None or (isinstance(zero, np.ndarray) and not np.any(zero)):
        return node.materialise(wide)
    if broadcast(node, x, zero) != shape_of(node, x):
        zero_shape, x_shape = list(shape_of(node, zero)), list(shape_of(node, x))
        raise Unsound(
            f"a zero point has the shape {zero_shape}, which does not stretch to {x_shape}"
        )
    return node.materialise(combine(node, "Sub", wide, cast_tensor(node, zero, "i32")))


def _expect_bytes(node: OnnxNode, *indices: int) -> None:
    for index in indices:
        if node.type(index).dtype not in _BYTES:
            found = node.type(index).dtype
            raise Unsupported(
                f"operand {index} is of `{found}`, expected i8 or u8", "quantise to 8 bits"
            )


def _has_known_numbers(node: OnnxNode, *indices: int) -> bool:
    """Whether operands are known, those left out too."""
    return all(node.known(i) is not None for i in indices if node.has(i))


# Products of matrices


def _row_parameter(node: OnnxNode, tensor: Tensor | None, matrix: Tensor) -> Tensor | None:
    """A scale or zero point of A: one number, or one for each row."""
    if tensor is None:
        return None
    dims, rank = shape_of(node, tensor), len(shape_of(node, matrix))
    if prod(dims) == 1:
        return as_scalar(node, tensor)
    return with_shape(node, tensor, (*dims, 1)) if len(dims) == 1 and rank > 1 else tensor


def _column_parameter(node: OnnxNode, tensor: Tensor | None) -> Tensor | None:
    """A scale or zero point of B: one number, or one for each column, which broadcasts."""
    if tensor is None or prod(shape_of(node, tensor)) > 1:
        return tensor
    return as_scalar(node, tensor)


def integer_product(
    node: OnnxNode, a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None
) -> int:
    """The sums of products of centred integers, in i32."""
    left = center(node, a, _row_parameter(node, a_zero, a))
    if len(shape_of(node, b)) != 2:
        return product(node, left, center(node, b, _column_parameter(node, b_zero)))
    return node.add("Linear", left, center_rows(node, b, b_zero))


def center_rows(node: OnnxNode, b: Tensor, zero: Tensor | None) -> int:
    """A matrix [in, out] less its zero point, which is one number or one for each column, turned.

    So `Linear` takes it.
    """
    columns = _column_parameter(node, zero)
    if columns is not None and len(shape_of(node, columns)) == 1:
        columns = with_shape(node, columns, (*shape_of(node, columns), 1))
    elif columns is not None and len(shape_of(node, columns)) == 2:
        columns = transpose(node, columns, (1, 0))
    return center(node, transpose(node, b, (1, 0)), columns)


@handles("MatMulInteger")
def matmul_integer(node: OnnxNode) -> int:
    """A product of centred integers."""
    _expect_bytes(node, 0, 1)
    return integer_product(
        node, node.tensor(0), node.tensor(1), optional_tensor(node, 2), optional_tensor(node, 3)
    )


@handles("QLinearMatMul")
def qlinear_matmul(node: OnnxNode) -> int:
    """A product of stored integers, stored again."""
    a, b, to = node.tensor(0), node.tensor(3), node.type(7).dtype
    if not {node.type(0).dtype, node.type(3).dtype, to} <= set(_BYTES):
        return _product_of_floats(node, to)
    scales = [cast_tensor(node, node.tensor(i), "f32") for i in (1, 4, 6)]
    one_each = prod(shape_of(node, scales[0])) == 1 and prod(node.shape(2)) == 1
    if len(node.shape(3)) == 2 and one_each and _has_known_numbers(node, 1, 2, 4, 5, 6, 7):
        given = _fused_attributes(node, (1, 2), (4, 5), (6, 7))
        return node.add(
            "QLinear", node.materialise(a), node.materialise(transpose(node, b, (1, 0))), **given
        )
    sums = integer_product(node, a, b, node.tensor(2), node.tensor(5))
    rows, columns = _row_parameter(node, scales[0], a), _column_parameter(node, scales[1])
    assert rows is not None
    assert columns is not None
    factor = combine(node, "Mul", rows, columns)
    factor = combine(node, "Div", factor, as_scalar(node, scales[2]))
    return add_requantize(node, sums, factor, node.tensor(7))


def _product_of_floats(node: OnnxNode, to: str) -> int:
    """A product of floats of 8 bits: dequantised, multiplied in f32, quantised."""
    sides = []
    for index in (0, 3):
        scale, zero = (as_scalar(node, node.tensor(index + i)) for i in (1, 2))
        steps = ScaleAndZero(cast_tensor(node, scale, "f32"), zero)
        sides.append(add_dequantize(node, node.tensor(index), steps))
    scale, zero = as_scalar(node, node.tensor(6)), as_scalar(node, node.tensor(7))
    steps = ScaleAndZero(cast_tensor(node, scale, "f32"), zero)
    return add_quantize(node, product(node, *sides), steps, to)


def add_requantize(node: OnnxNode, sums: int, factor: Tensor, zero: Tensor) -> int:
    """Sums times a factor, rounded, moved by a zero point and held inside its type."""
    real = node.add("BinOp", node.cast(sums, "f32"), node.materialise(factor), op="Mul")
    one = ScaleAndZero(np.array(1.0, np.float32), as_scalar(node, zero))
    return add_quantize(node, real, one, node.type_of(zero).dtype)


def _fused_attributes(
    node: OnnxNode, x: Sequence[int], w: Sequence[int], y: Sequence[int]
) -> dict[str, Any]:
    """Scales and zero points as the attributes of a fused operation."""
    reals = [_known_numbers(node, side[0], 1.0) for side in (x, w, y)]
    zeros = [_known_numbers(node, side[1], 0) for side in (x, w, y)]
    if len(reals[0]) * len(reals[2]) * len(zeros[0]) * len(zeros[2]) != 1:
        raise Unsound("a scale or zero point of a whole tensor is not one number")
    return {
        "x_scale": float(reals[0][0]),
        "x_zero": int(zeros[0][0]),
        "w_scales": tuple(float(v) for v in reals[1]),
        "w_zeros": tuple(int(v) for v in zeros[1]),
        "y_scale": float(reals[2][0]),
        "y_zero": int(zeros[2][0]),
        "to": node.type(y[1]).dtype,
    }


def _known_numbers(node: OnnxNode, index: int, default: float) -> list[Any]:
    found = node.known(index)
    return [default] if found is None else list(np.ravel(found))


# Convolutions


@handles("ConvInteger")
def conv_integer(node: OnnxNode) -> int:
    """A convolution of centred integers; padding is the zero point of x."""
    _expect_bytes(node, 0, 1)
    return _integer_conv(node, 1, optional_tensor(node, 2), optional_tensor(node, 3))


def _integer_conv(node: OnnxNode, weight: int, x_zero: Tensor | None, w_zero: Tensor | None) -> int:
    if x_zero is not None:
        x_zero = as_scalar(node, x_zero)
    if w_zero is not None:
        w_zero = _channel_parameter(node, w_zero, len(node.shape(weight)))
    x, w = center(node, node.tensor(0), x_zero), center(node, node.tensor(weight), w_zero)
    given = window_attributes(node, weights_kernel(node, weight))
    return node.add("Conv", x, w, groups=int(node.attribute("group", 1)), **given)


def _channel_parameter(node: OnnxNode, tensor: Tensor, rank: int) -> Tensor:
    """One number, or one for each of the first axis."""
    count = prod(shape_of(node, tensor))
    return with_shape(node, tensor, () if count == 1 else (count,) + (1,) * (rank - 1))


def _qlinear_conv(node: OnnxNode) -> int:
    """A convolution of stored integers, stored again."""
    _expect_bytes(node, 0, 3, 7)
    given = window_attributes(node, weights_kernel(node, 3))
    if _has_known_numbers(node, 1, 2, 4, 5, 6, 7):
        values = [node.value(0), node.value(3), *([node.value(8)] if node.has(8) else [])]
        groups = int(node.attribute("group", 1))
        scales = _fused_attributes(node, (1, 2), (4, 5), (6, 7))
        return node.add("QConv", *values, groups=groups, **given, **scales)
    sums = _integer_conv(node, 3, node.tensor(2), node.tensor(5))
    rank = len(node.shape(0))
    if node.has(8):
        bias = with_shape(node, node.tensor(8), (node.shape(3)[0], *(1,) * (rank - 2)))
        sums = node.add("BinOp", sums, node.materialise(bias), op="Add")
    scales_ = [node.tensor(1), _channel_parameter(node, node.tensor(4), rank - 1), node.tensor(6)]
    factor = combine(node, "Mul", as_scalar(node, scales_[0]), scales_[1])
    factor = combine(node, "Div", factor, as_scalar(node, scales_[2]))
    return add_requantize(node, sums, factor, node.tensor(7))


handles("QLinearConv")(_qlinear_conv)


@handles("com.microsoft.QLinearConv")
def qlinear_conv_any_layout(node: OnnxNode) -> int:
    """A convolution of stored integers; of channels last where asked."""
    if not node.attribute("channels_last", 0):
        return _qlinear_conv(node)
    return channels_last(node, _qlinear_conv)


def channels_last(node: OnnxNode, handler: Callable[[OnnxNode], int]) -> int:
    """What a handler makes of operand 0 with its channels first, moved to the end again."""
    rank = len(node.shape(0))
    first = node.transpose(node.value(0), (0, rank - 1, *range(1, rank - 1)))
    return node.transpose(handler(replace_operands(node, {0: first})), (0, *range(2, rank), 1))


# Reals from products of integers


@handles("com.microsoft.MatMulIntegerToFloat")
def matmul_to_float(node: OnnxNode) -> int:
    """A product of centred integers times both scales, plus a bias."""
    _expect_bytes(node, 0, 1)
    a, b = node.tensor(0), node.tensor(1)
    sums = integer_product(node, a, b, optional_tensor(node, 4), optional_tensor(node, 5))
    return scale_sums(node, sums, node.tensor(2), node.tensor(3), optional_tensor(node, 6))


@handles("com.microsoft.DynamicQuantizeMatMul")
def dynamic_matmul(node: OnnxNode) -> int:
    """A quantised by its range, times integers, as reals."""
    x = node.value(0)
    steps = dynamic_scale_and_zero(node, x)
    stored = add_quantize(node, x, steps, "u8")
    sums = integer_product(node, stored, node.tensor(1), steps.zero, optional_tensor(node, 3))
    return scale_sums(node, sums, steps.scale, node.tensor(2), optional_tensor(node, 4))


def scale_sums(node: OnnxNode, sums: int, a: Tensor, b: Tensor, bias: Tensor | None) -> int:
    """Sums times the scales of both sides, plus a bias."""
    columns = _column_parameter(node, b)
    assert columns is not None
    factor = combine(node, "Mul", as_scalar(node, a), columns)
    dtype = node.type_of(factor).dtype
    real = node.add("BinOp", node.cast(sums, dtype), node.materialise(factor), op="Mul")
    return real if bias is None else node.add("BinOp", real, node.materialise(bias), op="Add")


@handles("com.microsoft.QGemm")
def qgemm(node: OnnxNode) -> int:
    """Alpha * A B + C of stored integers; reals where no scale of the result is given."""
    a, b = node.tensor(0), node.tensor(3)
    a = transpose(node, a, (1, 0)) if node.attribute("transA", 0) else a
    rows = b if node.attribute("transB", 0) else transpose(node, b, (1, 0))
    alpha = float(node.attribute("alpha", 1.0))
    is_row = not node.has(6) or node.shape(6) in ((shape_of(node, rows)[0],),)
    if node.has(8) and is_row and alpha == 1.0 and _has_known_numbers(node, 1, 2, 4, 5, 7, 8):
        values = [node.materialise(a), node.materialise(rows)]
        values += [node.value(6)] if node.has(6) else []
        return node.add("QLinear", *values, **_fused_attributes(node, (1, 2), (4, 5), (7, 8)))
    columns = transpose(node, rows, (1, 0))
    sums = integer_product(node, a, columns, optional_tensor(node, 2), optional_tensor(node, 5))
    if node.has(6):
        sums = node.add("BinOp", sums, node.value(6), op="Add")
    scale = as_scalar(node, node.tensor(1))
    if alpha != 1.0:
        scale = combine(node, "Mul", np.array(alpha, np.float32), scale)
    if not node.has(8):
        return scale_sums(node, sums, scale, node.tensor(4), None)
    weights = _column_parameter(node, node.tensor(4))
    assert weights is not None
    factor = combine(node, "Mul", scale, weights)
    factor = combine(node, "Div", factor, as_scalar(node, node.tensor(7)))
    return add_requantize(node, sums, factor, node.tensor(8))
