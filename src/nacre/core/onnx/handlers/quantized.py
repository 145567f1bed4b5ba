"""Operations of ONNX between reals and the integers that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from msgspec import Struct

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.tensors import (
    combine,
    in_type,
    optional,
    part,
    repeat_along,
    replace_operands,
    shape_of,
    single,
    with_shape,
)
from nacre.core.onnx.use import OnnxNode, Tensor
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


class Steps(Struct, frozen=True):
    """What one step of stored integers is worth, and which integer stands for 0."""

    scale: Tensor
    zero: Tensor | None = None
    axis: int = 1
    block: int = 0


def steps_of(use: OnnxNode, scale: int, zero: int) -> Steps:
    """One scale and zero point for a whole tensor, from two operands."""
    found = optional(use, zero)
    return Steps(single(use, use.tensor(scale)), None if found is None else single(use, found))


def add_dequantize(use: OnnxNode, x: Tensor, steps: Steps) -> int:
    """(x - zero) * scale, in the type of the scale."""
    if _is_odd(use, steps.zero, use.type_of(x).dtype):
        return _difference(use, x, steps)
    operands = [use.materialise(x), use.materialise(steps.scale)]
    operands += _zero_operands(use, steps.zero)
    return use.add("Dequantize", *operands, axis=steps.axis, block=steps.block)


def add_quantize(use: OnnxNode, x: int, steps: Steps, to: str) -> int:
    """round(x / scale) + zero, held inside the type."""
    operands = [x, use.materialise(steps.scale), *_zero_operands(use, steps.zero)]
    return use.add("Quantize", *operands, axis=steps.axis, block=steps.block, to=to)


def _zero_operands(use: OnnxNode, zero: Tensor | None) -> list[int]:
    """A zero point as an operand; floats of 8 bits have none in Core IR, as it is 0."""
    if zero is None or use.type_of(zero).dtype in _NARROW_FLOATS:
        return []
    return [use.materialise(zero)]


def _is_odd(use: OnnxNode, zero: Tensor | None, dtype: str) -> bool:
    """Whether floats of 8 bits have a zero point that is not known to be 0."""
    if zero is None or dtype not in _NARROW_FLOATS:
        return False
    return not isinstance(zero, np.ndarray) or bool(np.any(zero.astype(np.float32)))


def _difference(use: OnnxNode, x: Tensor, steps: Steps) -> int:
    """(x - zero) * scale written out, in the type of the scale."""
    assert steps.zero is not None
    dtype, dims = use.type_of(steps.scale).dtype, shape_of(use, x)
    zero = in_type(use, broadcast_scales(use, steps.zero, dims, steps), dtype)
    moved = combine(use, "Sub", in_type(use, x, dtype), zero)
    return use.materialise(
        combine(use, "Mul", moved, broadcast_scales(use, steps.scale, dims, steps))
    )


def _steps(use: OnnxNode) -> Steps:
    """Operands 1 and 2 with the attributes that say how they lie along operand 0."""
    x, scale = use.shape(0), use.tensor(1)
    _require_scale(scale, divides=use.node.op == "QuantizeLinear")
    zero = optional(use, 2)
    block = int(use.attribute("block_size", 0))
    dims = shape_of(use, scale)
    if zero is not None and prod(shape_of(use, zero)) == prod(dims) == 1:
        zero = single(use, zero)
    if prod(dims) == 1 and not block:
        return Steps(single(use, scale), zero)
    if use.opset < 13 and not use.node.domain:
        raise Unsound(f"the scale has the shape {list(dims)}, opset {use.opset} has one number")
    if len(dims) > 1 and not block:
        raise Unsound(f"the scale has the shape {list(dims)}, but `block_size` is missing")
    axis = use.axis(default=1, rank=len(x))
    if block and dims != (*x[:axis], -(-x[axis] // max(block, 1)), *x[axis + 1 :]):
        told = f"blocks of {block} along axis {axis} of {list(x)}"
        raise Unsound(f"the scale has the shape {list(dims)}, with {told}")
    return Steps(scale, zero, axis, block)


def _require_scale(scale: Tensor, *, divides: bool) -> None:
    """Refuse scales that are known and leave nothing of a number."""
    if not isinstance(scale, np.ndarray):
        return
    numbers = scale.astype(np.float64)
    lost = ~np.isfinite(numbers) | ((numbers == 0) & divides)
    if lost.any():
        found = numbers[lost].flat[0]
        raise Unsound(
            f"the scale has {found:g}, expected finite numbers{' that are not 0' * divides}",
            "quantise the model without this node, or with data in which no value is infinite",
        )


@handles("DequantizeLinear", "com.microsoft.DequantizeLinear")
def dequantize(use: OnnxNode) -> int:
    """Reals from integers, in the type of the scale or in `output_dtype`."""
    use = replace_operands(
        use, {i: _to_core_type(use, use.tensor(i)) for i in range(3) if use.has(i)}
    )
    steps = _steps(use)
    kind = int(use.attribute("output_dtype", 0))
    own = use.type_of(steps.scale).dtype
    target = element_name(kind) if kind else own
    if own not in _FLOATS or target not in _FLOATS:
        reason = f"the scale is `{own}` and the result `{target}`, expected floats"
        raise Unsupported(reason, "cast the scale to f32")
    if own != target:  # multiplied in f32, which holds every scale
        scale = in_type(use, steps.scale, "f32")
        steps = Steps(scale, steps.zero, steps.axis, steps.block)
    return use.cast(add_dequantize(use, use.tensor(0), steps), target)


def _to_core_type(use: OnnxNode, tensor: Tensor) -> Tensor:
    """Known elements of a type that Core IR lacks in one that it has."""
    if isinstance(tensor, np.ndarray) and tensor.dtype.name in _HELD_BY:
        return in_type(use, tensor, _HELD_BY[tensor.dtype.name])
    return tensor


@handles("QuantizeLinear", "com.microsoft.QuantizeLinear")
def quantize(use: OnnxNode) -> int:
    """Integers or floats of 8 bits from reals."""
    steps, to = _steps(use), _target(use)
    own, scale = use.type(0).dtype, use.type_of(steps.scale).dtype
    if scale not in _FLOATS:
        raise Unsupported(f"the scale is `{scale}`, expected a float", "cast the scale to f32")
    kind = int(use.attribute("precision", 0))
    precision = element_name(kind) if kind else scale
    saturates = bool(use.attribute("saturate", 1)) or to not in _NARROW_FLOATS
    is_odd = _is_odd(use, steps.zero, to)
    if saturates and not is_odd and own == scale == precision:
        return add_quantize(use, use.value(0), steps, to)
    if precision not in _FLOATS:
        raise Unsupported(
            f"`precision` is `{precision}`, expected a float", "leave `precision` out"
        )
    quotient = _quotient(use, steps, precision)
    if to in _NARROW_FLOATS:
        if is_odd and steps.zero is not None:
            zero = in_type(use, broadcast_scales(use, steps.zero, use.shape(0), steps), precision)
            quotient = use.add("BinOp", quotient, use.materialise(zero), op="Add")
        return use.add("Cast", quotient, to=to, saturate=saturates)
    return _round_to_stored(use, quotient, steps, to, precision)


def _target(use: OnnxNode) -> str:
    """What is quantised to: the zero point's type, `output_dtype`, or u8."""
    kind = int(use.attribute("output_dtype", 0))
    named = element_name(kind) if kind else None
    if not use.has(2):
        return named or "u8"
    found = use.type(2).dtype
    if named not in (None, found):
        raise Unsound(f"`output_dtype` is `{named}`, the zero point has the type `{found}`")
    return found


def _quotient(use: OnnxNode, steps: Steps, precision: str) -> int:
    """Operand 0 over the scale, in a type of its own."""
    scale = in_type(use, broadcast_scales(use, steps.scale, use.shape(0), steps), precision)
    x = use.cast(use.value(0), precision)
    return use.add("BinOp", x, use.materialise(scale), op="Div")


def _round_to_stored(use: OnnxNode, quotient: int, steps: Steps, to: str, precision: str) -> int:
    """A quotient rounded and moved by the zero point: a division by 1 changes nothing."""
    zero = steps.zero
    dims = () if zero is None else shape_of(use, zero)
    ones = in_type(use, np.ones(dims), precision)
    return add_quantize(
        use, quotient, Steps(ones, zero, steps.axis, steps.block if dims else 0), to
    )


def broadcast_scales(use: OnnxNode, scale: Tensor, dims: Sequence[int], steps: Steps) -> Tensor:
    """Scales so that they broadcast against a tensor."""
    if shape_of(use, scale) == ():
        return scale
    axis = steps.axis
    if not steps.block:
        return with_shape(use, scale, [d if a == axis else 1 for a, d in enumerate(dims)])
    wide = repeat_along(use, scale, axis, steps.block)
    if isinstance(wide, np.ndarray):
        return wide[(slice(None),) * axis + (slice(0, dims[axis]),)]
    return part(use, wide, axis, 0, dims[axis])


@handles("DynamicQuantizeLinear")
def dynamic_quantize(use: OnnxNode) -> Sequence[Tensor]:
    """Integers of 8 bits with the scale and zero point that hold the range of x."""
    x = use.value(0)
    steps = dynamic_steps(use, x)
    made = add_quantize(use, x, steps, "u8")
    assert steps.zero is not None
    return [made, steps.scale, steps.zero]


def dynamic_steps(use: OnnxNode, x: int) -> Steps:
    """The scale and zero point of u8 that hold the range of x and 0."""
    return Steps(use.add("DynamicQuantizeScale", x), use.add("DynamicQuantizeZero", x))
