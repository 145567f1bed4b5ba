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
    Steps,
    add_dequantize,
    add_quantize,
    dynamic_steps,
)
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.handlers.windows import weights_kernel, window_attributes
from nacre.core.onnx.tensors import (
    broadcast,
    combine,
    in_type,
    optional,
    replace_operands,
    shape_of,
    single,
    transpose,
    with_shape,
)
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported

_BYTES = ("i8", "u8")
_SMALL = 1024  # elements: known integers that are no more are centred ahead of time


def center(use: OnnxNode, x: Tensor, zero: Tensor | None) -> int:
    """Integers less their zero point, which broadcasts, in i32.

    Weights stay what they are, and are made wide in the module: so they take a fourth of the room.
    """
    is_large = isinstance(x, np.ndarray) and x.size > _SMALL
    wide = in_type(use, use.materialise(x) if is_large else x, "i32")
    if zero is None or (isinstance(zero, np.ndarray) and not np.any(zero)):
        return use.materialise(wide)
    if broadcast(use, x, zero) != shape_of(use, x):
        found, own = list(shape_of(use, zero)), list(shape_of(use, x))
        raise Unsound(f"a zero point has the shape {found}, which does not stretch to {own}")
    return use.materialise(combine(use, "Sub", wide, in_type(use, zero, "i32")))


def _expect_bytes(use: OnnxNode, *indices: int) -> None:
    for index in indices:
        if use.type(index).dtype not in _BYTES:
            found = use.type(index).dtype
            raise Unsupported(
                f"operand {index} is of `{found}`, expected i8 or u8", "quantise to 8 bits"
            )


def _has_known_numbers(use: OnnxNode, *indices: int) -> bool:
    """Whether operands are known, those left out too."""
    return all(use.known(i) is not None for i in indices if use.has(i))


# Products of matrices


def _by_rows(use: OnnxNode, tensor: Tensor | None, matrix: Tensor) -> Tensor | None:
    """A scale or zero point of A: one number, or one for each row."""
    if tensor is None:
        return None
    dims, rank = shape_of(use, tensor), len(shape_of(use, matrix))
    if prod(dims) == 1:
        return single(use, tensor)
    return with_shape(use, tensor, (*dims, 1)) if len(dims) == 1 and rank > 1 else tensor


def _by_columns(use: OnnxNode, tensor: Tensor | None) -> Tensor | None:
    """A scale or zero point of B: one number, or one for each column, which broadcasts."""
    if tensor is None or prod(shape_of(use, tensor)) > 1:
        return tensor
    return single(use, tensor)


def integer_product(
    use: OnnxNode, a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None
) -> int:
    """The sums of products of centred integers, in i32."""
    left = center(use, a, _by_rows(use, a_zero, a))
    if len(shape_of(use, b)) != 2:
        return product(use, left, center(use, b, _by_columns(use, b_zero)))
    return use.add("Linear", left, center_rows(use, b, b_zero))


def center_rows(use: OnnxNode, b: Tensor, zero: Tensor | None) -> int:
    """A matrix [in, out] less its zero point, which is one number or one for each column, turned.

    So `Linear` takes it.
    """
    columns = _by_columns(use, zero)
    if columns is not None and len(shape_of(use, columns)) == 1:
        columns = with_shape(use, columns, (*shape_of(use, columns), 1))
    elif columns is not None and len(shape_of(use, columns)) == 2:
        columns = transpose(use, columns, (1, 0))
    return center(use, transpose(use, b, (1, 0)), columns)


@handles("MatMulInteger")
def matmul_integer(use: OnnxNode) -> int:
    """A product of centred integers."""
    _expect_bytes(use, 0, 1)
    return integer_product(use, use.tensor(0), use.tensor(1), optional(use, 2), optional(use, 3))


@handles("QLinearMatMul")
def qlinear_matmul(use: OnnxNode) -> int:
    """A product of stored integers, stored again."""
    a, b, to = use.tensor(0), use.tensor(3), use.type(7).dtype
    if not {use.type(0).dtype, use.type(3).dtype, to} <= set(_BYTES):
        return _product_of_floats(use, to)
    scales = [in_type(use, use.tensor(i), "f32") for i in (1, 4, 6)]
    one_each = prod(shape_of(use, scales[0])) == 1 and prod(use.shape(2)) == 1
    if len(use.shape(3)) == 2 and one_each and _has_known_numbers(use, 1, 2, 4, 5, 6, 7):
        given = _fused_attributes(use, (1, 2), (4, 5), (6, 7))
        return use.add(
            "QLinear", use.materialise(a), use.materialise(transpose(use, b, (1, 0))), **given
        )
    sums = integer_product(use, a, b, use.tensor(2), use.tensor(5))
    rows, columns = _by_rows(use, scales[0], a), _by_columns(use, scales[1])
    assert rows is not None
    assert columns is not None
    factor = combine(use, "Mul", rows, columns)
    factor = combine(use, "Div", factor, single(use, scales[2]))
    return add_requantize(use, sums, factor, use.tensor(7))


def _product_of_floats(use: OnnxNode, to: str) -> int:
    """A product of floats of 8 bits: dequantised, multiplied in f32, quantised."""
    sides = []
    for index in (0, 3):
        scale, zero = (single(use, use.tensor(index + i)) for i in (1, 2))
        steps = Steps(in_type(use, scale, "f32"), zero)
        sides.append(add_dequantize(use, use.tensor(index), steps))
    scale, zero = single(use, use.tensor(6)), single(use, use.tensor(7))
    steps = Steps(in_type(use, scale, "f32"), zero)
    return add_quantize(use, product(use, *sides), steps, to)


def add_requantize(use: OnnxNode, sums: int, factor: Tensor, zero: Tensor) -> int:
    """Sums times a factor, rounded, moved by a zero point and held inside its type."""
    real = use.add("BinOp", use.cast(sums, "f32"), use.materialise(factor), op="Mul")
    one = Steps(np.array(1.0, np.float32), single(use, zero))
    return add_quantize(use, real, one, use.type_of(zero).dtype)


def _fused_attributes(
    use: OnnxNode, x: Sequence[int], w: Sequence[int], y: Sequence[int]
) -> dict[str, Any]:
    """Scales and zero points as the attributes of a fused operation."""
    reals = [_numbers(use, side[0], 1.0) for side in (x, w, y)]
    zeros = [_numbers(use, side[1], 0) for side in (x, w, y)]
    if len(reals[0]) * len(reals[2]) * len(zeros[0]) * len(zeros[2]) != 1:
        raise Unsound("a scale or zero point of a whole tensor is not one number")
    return {
        "x_scale": float(reals[0][0]),
        "x_zero": int(zeros[0][0]),
        "w_scales": tuple(float(v) for v in reals[1]),
        "w_zeros": tuple(int(v) for v in zeros[1]),
        "y_scale": float(reals[2][0]),
        "y_zero": int(zeros[2][0]),
        "to": use.type(y[1]).dtype,
    }


def _numbers(use: OnnxNode, index: int, default: float) -> list[Any]:
    found = use.known(index)
    return [default] if found is None else list(np.ravel(found))


# Convolutions


@handles("ConvInteger")
def conv_integer(use: OnnxNode) -> int:
    """A convolution of centred integers; padding is the zero point of x."""
    _expect_bytes(use, 0, 1)
    return _integer_conv(use, 1, optional(use, 2), optional(use, 3))


def _integer_conv(use: OnnxNode, weight: int, x_zero: Tensor | None, w_zero: Tensor | None) -> int:
    if x_zero is not None:
        x_zero = single(use, x_zero)
    if w_zero is not None:
        w_zero = _by_channels(use, w_zero, len(use.shape(weight)))
    x, w = center(use, use.tensor(0), x_zero), center(use, use.tensor(weight), w_zero)
    given = window_attributes(use, weights_kernel(use, weight))
    return use.add("Conv", x, w, groups=int(use.attribute("group", 1)), **given)


def _by_channels(use: OnnxNode, tensor: Tensor, rank: int) -> Tensor:
    """One number, or one for each of the first axis."""
    count = prod(shape_of(use, tensor))
    return with_shape(use, tensor, () if count == 1 else (count,) + (1,) * (rank - 1))


def _qlinear_conv(use: OnnxNode) -> int:
    """A convolution of stored integers, stored again."""
    _expect_bytes(use, 0, 3, 7)
    given = window_attributes(use, weights_kernel(use, 3))
    if _has_known_numbers(use, 1, 2, 4, 5, 6, 7):
        values = [use.value(0), use.value(3), *([use.value(8)] if use.has(8) else [])]
        groups = int(use.attribute("group", 1))
        scales = _fused_attributes(use, (1, 2), (4, 5), (6, 7))
        return use.add("QConv", *values, groups=groups, **given, **scales)
    sums = _integer_conv(use, 3, use.tensor(2), use.tensor(5))
    rank = len(use.shape(0))
    if use.has(8):
        bias = with_shape(use, use.tensor(8), (use.shape(3)[0], *(1,) * (rank - 2)))
        sums = use.add("BinOp", sums, use.materialise(bias), op="Add")
    scales_ = [use.tensor(1), _by_channels(use, use.tensor(4), rank - 1), use.tensor(6)]
    factor = combine(use, "Mul", single(use, scales_[0]), scales_[1])
    factor = combine(use, "Div", factor, single(use, scales_[2]))
    return add_requantize(use, sums, factor, use.tensor(7))


handles("QLinearConv")(_qlinear_conv)


@handles("com.microsoft.QLinearConv")
def qlinear_conv_either(use: OnnxNode) -> int:
    """A convolution of stored integers; of channels last where asked."""
    if not use.attribute("channels_last", 0):
        return _qlinear_conv(use)
    return channels_last(use, _qlinear_conv)


def channels_last(use: OnnxNode, handler: Callable[[OnnxNode], int]) -> int:
    """What a handler makes of operand 0 with its channels first, moved to the end again."""
    rank = len(use.shape(0))
    first = use.transpose(use.value(0), (0, rank - 1, *range(1, rank - 1)))
    return use.transpose(handler(replace_operands(use, {0: first})), (0, *range(2, rank), 1))


# Reals from products of integers


@handles("com.microsoft.MatMulIntegerToFloat")
def matmul_to_float(use: OnnxNode) -> int:
    """A product of centred integers times both scales, plus a bias."""
    _expect_bytes(use, 0, 1)
    a, b = use.tensor(0), use.tensor(1)
    sums = integer_product(use, a, b, optional(use, 4), optional(use, 5))
    return scale_sums(use, sums, use.tensor(2), use.tensor(3), optional(use, 6))


@handles("com.microsoft.DynamicQuantizeMatMul")
def dynamic_matmul(use: OnnxNode) -> int:
    """A quantised by its range, times integers, as reals."""
    x = use.value(0)
    steps = dynamic_steps(use, x)
    stored = add_quantize(use, x, steps, "u8")
    sums = integer_product(use, stored, use.tensor(1), steps.zero, optional(use, 3))
    return scale_sums(use, sums, steps.scale, use.tensor(2), optional(use, 4))


def scale_sums(use: OnnxNode, sums: int, a: Tensor, b: Tensor, bias: Tensor | None) -> int:
    """Sums times the scales of both sides, plus a bias."""
    columns = _by_columns(use, b)
    assert columns is not None
    factor = combine(use, "Mul", single(use, a), columns)
    dtype = use.type_of(factor).dtype
    real = use.add("BinOp", use.cast(sums, dtype), use.materialise(factor), op="Mul")
    return real if bias is None else use.add("BinOp", real, use.materialise(bias), op="Add")


@handles("com.microsoft.QGemm")
def qgemm(use: OnnxNode) -> int:
    """Alpha * A B + C of stored integers; reals where no scale of the result is given."""
    a, b = use.tensor(0), use.tensor(3)
    a = transpose(use, a, (1, 0)) if use.attribute("transA", 0) else a
    rows = b if use.attribute("transB", 0) else transpose(use, b, (1, 0))
    alpha = float(use.attribute("alpha", 1.0))
    is_row = not use.has(6) or use.shape(6) in ((shape_of(use, rows)[0],),)
    if use.has(8) and is_row and alpha == 1.0 and _has_known_numbers(use, 1, 2, 4, 5, 7, 8):
        values = [use.materialise(a), use.materialise(rows)]
        values += [use.value(6)] if use.has(6) else []
        return use.add("QLinear", *values, **_fused_attributes(use, (1, 2), (4, 5), (7, 8)))
    columns = transpose(use, rows, (1, 0))
    sums = integer_product(use, a, columns, optional(use, 2), optional(use, 5))
    if use.has(6):
        sums = use.add("BinOp", sums, use.value(6), op="Add")
    scale = single(use, use.tensor(1))
    if alpha != 1.0:
        scale = combine(use, "Mul", np.array(alpha, np.float32), scale)
    if not use.has(8):
        return scale_sums(use, sums, scale, use.tensor(4), None)
    weights = _by_columns(use, use.tensor(4))
    assert weights is not None
    factor = combine(use, "Mul", scale, weights)
    factor = combine(use, "Div", factor, single(use, use.tensor(7)))
    return add_requantize(use, sums, factor, use.tensor(8))
