"""How far a float result may be from the reference's, whatever order a backend adds in.

The definition of numbers gives every opcode a bound on its error (`docs/numerics.md`), in ulps that
some magnitude has in f32. The reference may be off by it one way and the backend the other, so the
two are at most twice the bound apart before they are rounded to the output's type, or quantised.
Both keep order: what may come out lies between the two ends, rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, TensorType
from nacre.kernels.interface.shapes import axis_of
from nacre.kernels.numbers import real_functions
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.numbers.quantization import dequantizer, quantizer
from nacre.kernels.reductions import normalization
from nacre.kernels.registry import PRIMITIVES

Float64 = npt.NDArray[np.float64]
_SUMS = frozenset(
    {"gemm", "matmul", "conv1d", "conv2d", "conv3d", "depthwise_conv2d", "avgpool", "reduce_sum"}
)
_SMALLEST_NORMAL, _LARGEST = 2.0**-126, 3e38


@dataclass(frozen=True, eq=False)
class Limits:
    """The least and the greatest result of a right computation, element by element."""

    low: Array
    high: Array
    unit: Float64  # what distances are counted in
    unit_name: Literal["ulps", "steps"]


def stated_ulps(opcode: str, call: Call) -> float:
    """The bound on an opcode's error in ulps of f32; 0 where there is one right result."""
    if call.output.elem.is_integer and not call.is_quantized:
        return 0.0
    is_tanh = call.attributes.get("approximate") == "tanh"
    name = f"{opcode}_tanh" if is_tanh else opcode
    if name in real_functions.ULPS:
        return real_functions.ULPS[name]
    if call.output.elem.is_integer:
        return 0.0
    if opcode in normalization.ULPS:
        return normalization.ULPS[opcode]
    return float(_depth(opcode, call) + 1) if opcode in _SUMS else 0.0


def _depth(opcode: str, call: Call) -> int:
    """How many terms a sum has."""
    work = PRIMITIVES[opcode].work(call)
    return work.scalar_operations // call.output.count


def limits_of(opcode: str, call: Call, inputs: tuple[Array, ...]) -> Limits | None:
    """How far results may be apart; None: only the reference's own is right."""
    ulps = stated_ulps(opcode, call)
    if ulps == 0:
        return None
    reals = [_reals(call.input(index), x) for index, x in enumerate(inputs)]
    with np.errstate(all="ignore"):
        center = _reference(opcode, _in_f32(call), reals).astype(np.float64)
        unit = _unit(_magnitude(opcode, call, reals, center))
        reach = 2 * ulps * unit
        # NaN and infinities leave nothing to choose.
        low, high = (
            np.where(np.isfinite(center), end, center) for end in (center - reach, center + reach)
        )
        type_ = call.output
        if type_.elem.is_integer:
            store = quantizer(type_)
            ones = np.ones(type_.shape)
            return Limits(
                store(low.astype(np.float32)), store(high.astype(np.float32)), ones, "steps"
            )
        spacing = _spacing(center, type_)
        return Limits(
            low.astype(type_.dtype), high.astype(type_.dtype), np.maximum(unit, spacing), "ulps"
        )


def _reals(type_: TensorType, values: Array) -> Array:
    return dequantizer(type_)(values) if type_.quant is not None else widen_to_f32(values)


def _reference(opcode: str, call: Call, inputs: list[Array]) -> Array:
    """What nacre's own kernel gives for a call with one output."""
    y = np.zeros(call.output.shape, call.output.dtype)
    PRIMITIVES[opcode].bind(call)(inputs, [y])
    return y


def _in_f32(call: Call) -> Call:
    """The same call with f32 in the place of every type."""

    def wide(type_: TensorType) -> TensorType:
        return TensorType(ELEMENT_TYPES["f32"], type_.shape)

    inputs = tuple(None if t is None else wide(t) for t in call.inputs)
    return replace(call, inputs=inputs, outputs=tuple(wide(t) for t in call.outputs))


def _unit(magnitude: Float64) -> Float64:
    """One ulp of f32 at a magnitude."""
    limited = np.clip(np.nan_to_num(magnitude), _SMALLEST_NORMAL, _LARGEST)
    return np.spacing(limited.astype(np.float32)).astype(np.float64)


def _spacing(values: Float64, type_: TensorType) -> Float64:
    """One ulp of a float type at some values."""
    largest = float(type_.elem.highest)
    stored = np.minimum(np.abs(np.nan_to_num(values)), largest).astype(type_.dtype)
    found: Float64 = np.spacing(stored).astype(np.float64)
    return found


def _magnitude(opcode: str, call: Call, reals: list[Array], center: Float64) -> Float64:
    """That whose ulps count: the terms of a sum, the largest along an axis, or the result."""
    if opcode in _SUMS:
        return _reference(opcode, _in_f32(call), [np.abs(x) for x in reals]).astype(np.float64)
    if opcode in normalization.ULPS:
        return _along_axis(opcode, call, reals, center)
    return np.abs(center)


def _along_axis(opcode: str, call: Call, reals: list[Array], center: Float64) -> Float64:
    axis = axis_of(call.attributes["axis"], center.ndim)
    largest = _largest(center, axis)
    if opcode == "layernorm":
        # Digits cancel where the mean is subtracted: what counts is the magnitude before.
        x = reals[0].astype(np.float64)
        root = np.sqrt(x.var(axis=axis, keepdims=True) + call.attributes["epsilon"])
        scale = _largest(reals[1].astype(np.float64), None) if len(reals) > 1 else np.ones(1)
        largest = np.maximum(largest, _largest(x, axis) / root * scale.max())
    return np.broadcast_to(largest, center.shape)


def _largest(values: Float64, axis: int | None) -> Float64:
    """The greatest finite magnitude along an axis, or of all."""
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    found: Float64 = finite.max(axis=axis, keepdims=True)
    return found
