"""Between stored integers and the real values that they stand for, in f32 arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, Fault, Quantization, Run, TensorType
from nacre.kernels.interface.runs import quietly
from nacre.kernels.numbers.numbers import Float32


def dequantizer(type_: TensorType) -> Callable[[Array], Float32]:
    """The function that turns a tensor's stored integers into real values.

    `float32(stored - zero_point) * scale`, the difference exact, as ONNX DequantizeLinear.
    """
    scale, zero_point = _parameters(type_)
    if not zero_point.any():
        return lambda stored: quietly(np.multiply, stored.astype(np.float32), scale)
    if type_.elem.bits <= 16 and np.abs(zero_point.astype(np.int64)).max() <= 1 << 16:
        # f32 holds every difference of such numbers.
        offset = zero_point.astype(np.float32)

        def run(stored: Array) -> Float32:
            steps = stored.astype(np.float32)
            np.subtract(steps, offset, out=steps)
            return quietly(np.multiply, steps, scale, out=steps)

        return run
    wide = zero_point.astype(np.int64)
    return lambda stored: quietly(np.multiply, (stored - wide).astype(np.float32), scale)


def quantizer(type_: TensorType) -> Callable[[Array], Array]:
    """The function that turns real values into a tensor's stored integers.

    `saturate(rint(value / scale) + zero_point)`, as ONNX QuantizeLinear; NaN gives the zero point.
    """
    scale, zero_point = _parameters(type_)
    element = type_.elem
    # Within the range of a type of up to 16 bits f32 counts steps exactly, far outside of it
    # rounding changes nothing; 32 bits need f64.
    is_narrow = element.bits <= 16 and np.abs(zero_point.astype(np.int64)).max() <= 1 << 16
    wide: np.dtype[Any] = np.dtype(np.float32 if is_narrow else np.float64)
    offset, dtype = zero_point.astype(wide), type_.dtype
    lowest, highest = np.array(element.lowest, wide), np.array(element.highest, wide)

    def run(values: Array) -> Array:
        # NumPy divides an array of rank 0 into a number, which cannot be written to.
        steps = np.asarray(np.divide(values, scale, dtype=np.float32))
        np.rint(steps, out=steps)
        unknown = np.isnan(steps)
        if unknown.any():
            # NaN has no place on the scale; like any unknown it becomes the real value 0.
            np.copyto(steps, 0, where=unknown)
        moved = steps.astype(wide, copy=False)
        np.add(moved, offset, out=moved)
        np.maximum(moved, lowest, out=moved)
        np.minimum(moved, highest, out=moved)
        return moved.astype(dtype)

    return lambda values: quietly(run, values)


def _parameters(type_: TensorType) -> tuple[Float32, Array]:
    if type_.quant is None:
        raise ValueError("the tensor carries no quantisation")
    return type_.quant.broadcast_parameters(type_.shape)


def through_reals(bind: Callable[[Call], Run]) -> Callable[[Call], Run]:
    """An operation on real values, also for integers that carry a quantisation.

    Those are dequantised, computed in f32 and quantised again; floats are taken and rounded as
    ever. Integers without a quantisation have no real value: ValueError.
    """

    def bound(call: Call) -> Run:
        if not any(t is not None and t.elem.is_integer for t in (*call.inputs, *call.outputs)):
            return bind(call)
        reals = tuple(None if t is None else _as_real(t) for t in call.inputs)
        results = tuple(_as_real(t) for t in call.outputs)
        inner = bind(replace(call, inputs=reals, outputs=results, known={}))
        to_reals = [None if t is None else _to_real(t) for t in call.inputs]
        to_stored = [quantizer(t) if t.elem.is_integer else None for t in call.outputs]

        def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
            given = [
                x if x is None or to_real is None else to_real(x)
                for to_real, x in zip(to_reals, inputs, strict=True)
            ]
            made = [np.empty(t.shape, t.dtype) for t in results]
            fault = inner(given, made)
            if fault is None or not fault.is_fatal:
                for store, values, output in zip(to_stored, made, outputs, strict=True):
                    output[...] = values if store is None else store(values)
            return fault

        return run

    return bound


_F32 = ELEMENT_TYPES["f32"]


def _as_real(type_: TensorType) -> TensorType:
    return TensorType(_F32, type_.shape) if type_.elem.is_integer else type_


def _to_real(type_: TensorType) -> Callable[[Array], Float32] | None:
    return dequantizer(type_) if type_.elem.is_integer else None


def per_tensor(scale: float, zero_point: int = 0) -> Quantization:
    """One scale and zero point for a whole tensor."""
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
