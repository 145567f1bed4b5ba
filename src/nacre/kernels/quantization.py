"""Between stored integers and the real values that they stand for, in f32 arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nacre.kernels.call import Array, Quantization, TensorType
from nacre.kernels.numbers import Float32
from nacre.kernels.runs import quietly


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
    return type_.quant.spread(type_.shape)


def per_tensor(scale: float, zero_point: int = 0) -> Quantization:
    """One scale and zero point for a whole tensor."""
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
