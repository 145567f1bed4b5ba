"""Operations of ONNX between reals and the integers that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from msgspec import Struct

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import (
    as_scalar,
    cast_tensor,
    combine,
    optional_tensor,
    repeat_along,
    replace_operands,
    shape_of,
    slice_axis,
    with_shape,
)
from nacre.core.unsupported import Unsupported

_NARROW_FLOATS = ("f8e4m3", "f8e5m2")
_FLOATS = ("f16", "bf16", "f32", "f64")
# Array types that Core IR lacks, and the type that holds every one of their values.
_HELD_BY = {
    "int2": "i4",
    "uint2": "u4",
    "float4_e2m1fn": "f8e4m3",
    "float6_e2m3fn": "f8e4m3",
    "float6_e3m2fn": "f8e4m3",
    "float8_e8m0fnu": "f32",
}


class ScaleAndZero(Struct, frozen=True):
    """What one step of stored integers is worth, and which integer stands for 0."""

    scale: Tensor
    zero: Tensor | None = None
    axis: int = 1
    block: int = 0


def scale_and_zero_of(node: OnnxNode, scale: int, zero: int) -> ScaleAndZero:
    """One scale and zero point for a whole tensor, from two operands."""
    found = optional_tensor(node, zero)
    return ScaleAndZero(
        as_scalar(node, node.tensor(scale)), None if found is None else as_scalar(node, found)
    )


def add_dequantize(node: OnnxNode, x: Tensor, steps: ScaleAndZero) -> int:
    """(x - zero) * scale, in the type of the scale."""
    if _has_float8_zero_point(node, steps.zero, node.type_of(x).dtype):
        return _difference(node, x, steps)
    operands = [node.materialise(x), node.materialise(steps.scale)]
    operands += _zero_operands(node, steps.zero)
    return node.add("Dequantize", *operands, axis=steps.axis, block=steps.block)


def add_quantize(node: OnnxNode, x: int, steps: ScaleAndZero, to: str) -> int:
    """round(x / scale) + zero, held inside the type."""
    operands = [x, node.materialise(steps.scale), *_zero_operands(node, steps.zero)]
    return node.add("Quantize", *operands, axis=steps.axis, block=steps.block, to=to)


def _zero_operands(node: OnnxNode, zero: Tensor | None) -> list[int]:
    """A zero point as an operand; floats of 8 bits have none in Core IR, as it is 0."""
    if zero is None or node.type_of(zero).dtype in _NARROW_FLOATS:
        return []
    return [node.materialise(zero)]


def _has_float8_zero_point(node: OnnxNode, zero: Tensor | None, dtype: str) -> bool:
    """Whether floats of 8 bits have a zero point that is not known to be 0."""
    if zero is None or dtype not in _NARROW_FLOATS:
        return False
    return not isinstance(zero, np.ndarray) or bool(np.any(zero.astype(np.float32)))


def _difference(node: OnnxNode, x: Tensor, steps: ScaleAndZero) -> int:
    """(x - zero) * scale written out, in the type of the scale."""
    assert steps.zero is not None
    dtype, dims = node.type_of(steps.scale).dtype, shape_of(node, x)
    zero = cast_tensor(node, broadcast_scales(node, steps.zero, dims, steps), dtype)
    moved = combine(node, "Sub", cast_tensor(node, x, dtype), zero)
    return node.materialise(
        combine(node, "Mul", moved, broadcast_scales(node, steps.scale, dims, steps))
    )


def _scale_and_zero(node: OnnxNode) -> ScaleAndZero:
    """Operands 1 and 2 with the attributes that say how they lie along operand 0."""
    x, scale = node.shape(0), node.tensor(1)
    _require_scale(scale, divides=node.op == "QuantizeLinear")
    zero = optional_tensor(node, 2)
    block = int(node.attribute("block_size", 0))
    dims = shape_of(node, scale)
    if zero is not None and prod(shape_of(node, zero)) == prod(dims) == 1:
        zero = as_scalar(node, zero)
    if prod(dims) == 1 and not block:
        return ScaleAndZero(as_scalar(node, scale), zero)
    if node.opset < 13 and not node.source.domain:
        raise Unsound(f"the scale has the shape {list(dims)}, opset {node.opset} has one number")
    if len(dims) > 1 and not block:
        raise Unsound(f"the scale has the shape {list(dims)}, but `block_size` is missing")
    axis = node.axis(default=1, rank=len(x))
    if block and dims != (*x[:axis], -(-x[axis] // max(block, 1)), *x[axis + 1 :]):
        blocks_text = f"blocks of {block} along axis {axis} of {list(x)}"
        raise Unsound(f"the scale has the shape {list(dims)}, with {blocks_text}")
    return ScaleAndZero(scale, zero, axis, block)


def _require_scale(scale: Tensor, *, divides: bool) -> None:
    """Refuse scales that are known and leave nothing of a number."""
    if not isinstance(scale, np.ndarray):
        return
    numbers = scale.astype(np.float64)
    lost = ~np.isfinite(numbers) | ((numbers == 0) & divides)
    if lost.any():
        wrong = numbers[lost].flat[0]
        raise Unsound(
            f"the scale has {wrong:g}, expected finite numbers{' that are not 0' * divides}",
            "quantise the model without this node, or with data in which no value is infinite",
        )


@handles("DequantizeLinear", "com.microsoft.DequantizeLinear")
def dequantize(node: OnnxNode) -> int:
    """Reals from integers, in the type of the scale or in `output_dtype`."""
    node = replace_operands(
        node, {i: _to_core_type(node, node.tensor(i)) for i in range(3) if node.has(i)}
    )
    steps = _scale_and_zero(node)
    kind = int(node.attribute("output_dtype", 0))
    own = node.type_of(steps.scale).dtype
    target = element_name(kind) if kind else own
    if own not in _FLOATS or target not in _FLOATS:
        reason = f"the scale is `{own}` and the result `{target}`, expected floats"
        raise Unsupported(reason, "cast the scale to f32")
    if own != target:  # multiplied in f32, which holds every scale
        scale = cast_tensor(node, steps.scale, "f32")
        steps = ScaleAndZero(scale, steps.zero, steps.axis, steps.block)
    return node.cast(add_dequantize(node, node.tensor(0), steps), target)


def _to_core_type(node: OnnxNode, tensor: Tensor) -> Tensor:
    """Known elements of a type that Core IR lacks in one that it has."""
    if isinstance(tensor, np.ndarray) and tensor.dtype.name in _HELD_BY:
        return cast_tensor(node, tensor, _HELD_BY[tensor.dtype.name])
    return tensor


@handles("QuantizeLinear", "com.microsoft.QuantizeLinear")
def quantize(node: OnnxNode) -> int:
    """Integers or floats of 8 bits from reals."""
    steps, to = _scale_and_zero(node), _target_type(node)
    own, scale = node.type(0).dtype, node.type_of(steps.scale).dtype
    if scale not in _FLOATS:
        raise Unsupported(f"the scale is `{scale}`, expected a float", "cast the scale to f32")
    kind = int(node.attribute("precision", 0))
    precision = element_name(kind) if kind else scale
    saturates = bool(node.attribute("saturate", 1)) or to not in _NARROW_FLOATS
    is_odd = _has_float8_zero_point(node, steps.zero, to)
    if saturates and not is_odd and own == scale == precision:
        return add_quantize(node, node.value(0), steps, to)
    if precision not in _FLOATS:
        raise Unsupported(
            f"`precision` is `{precision}`, expected a float", "leave `precision` out"
        )
    quotient = _quotient(node, steps, precision)
    if to in _NARROW_FLOATS:
        if is_odd and steps.zero is not None:
            zero = cast_tensor(
                node, broadcast_scales(node, steps.zero, node.shape(0), steps), precision
            )
            quotient = node.add("BinOp", quotient, node.materialise(zero), op="Add")
        return node.add("Cast", quotient, to=to, saturate=saturates)
    return _round_to_stored(node, quotient, steps, to, precision)


def _target_type(node: OnnxNode) -> str:
    """What is quantised to: the zero point's type, `output_dtype`, or u8."""
    kind = int(node.attribute("output_dtype", 0))
    named = element_name(kind) if kind else None
    if not node.has(2):
        return named or "u8"
    dtype = node.type(2).dtype
    if named not in (None, dtype):
        raise Unsound(f"`output_dtype` is `{named}`, the zero point has the type `{dtype}`")
    return dtype


def _quotient(node: OnnxNode, steps: ScaleAndZero, precision: str) -> int:
    """Operand 0 over the scale, in a type of its own."""
    scale = cast_tensor(node, broadcast_scales(node, steps.scale, node.shape(0), steps), precision)
    x = node.cast(node.value(0), precision)
    return node.add("BinOp", x, node.materialise(scale), op="Div")


def _round_to_stored(
    node: OnnxNode, quotient: int, steps: ScaleAndZero, to: str, precision: str
) -> int:
    """A quotient rounded and moved by the zero point: a division by 1 changes nothing."""
    zero = steps.zero
    dims = () if zero is None else shape_of(node, zero)
    ones = cast_tensor(node, np.ones(dims), precision)
    return add_quantize(
        node, quotient, ScaleAndZero(ones, zero, steps.axis, steps.block if dims else 0), to
    )


def broadcast_scales(
    node: OnnxNode, scale: Tensor, dims: Sequence[int], steps: ScaleAndZero
) -> Tensor:
    """Scales so that they broadcast against a tensor."""
    if shape_of(node, scale) == ():
        return scale
    axis = steps.axis
    if not steps.block:
        return with_shape(node, scale, [d if a == axis else 1 for a, d in enumerate(dims)])
    wide = repeat_along(node, scale, axis, steps.block)
    if isinstance(wide, np.ndarray):
        return wide[(slice(None),) * axis + (slice(0, dims[axis]),)]
    return slice_axis(node, wide, axis, 0, dims[axis])


@handles("DynamicQuantizeLinear")
def dynamic_quantize(node: OnnxNode) -> Sequence[Tensor]:
    """Integers of 8 bits with the scale and zero point that hold the range of x."""
    x = node.value(0)
    steps = dynamic_scale_and_zero(node, x)
    made = add_quantize(node, x, steps, "u8")
    assert steps.zero is not None
    return [made, steps.scale, steps.zero]


def dynamic_scale_and_zero(node: OnnxNode, x: int) -> ScaleAndZero:
    """The scale and zero point of u8 that hold the range of x and 0."""
    return ScaleAndZero(node.add("DynamicQuantizeScale", x), node.add("DynamicQuantizeZero", x))
