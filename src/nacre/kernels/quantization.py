"""Between stored integers and the real values that they stand for, in f32 arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nacre.kernels.call import Array, Quantization, TensorType
from nacre.kernels.numbers import Float32, real_to_integer, rounded_even


def dequantizer(type_: TensorType) -> Callable[[Array], Float32]:
    """The function that turns a tensor's stored integers into real values."""
    scale, zero_point = _parameters(type_)
    return lambda stored: (stored.astype(np.int32) - zero_point).astype(np.float32) * scale


def quantizer(type_: TensorType) -> Callable[[Array], Array]:
    """The function that turns real values into a tensor's stored integers.

    `saturate(rint(value / scale) + zero_point)`, as ONNX QuantizeLinear; NaN gives the zero point.
    """
    scale, zero_point = _parameters(type_)
    element = type_.elem

    def run(values: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = rounded_even(values.astype(np.float32, copy=False) / scale)
        # NaN has no place on the scale; like any unknown it becomes the real value 0.
        return real_to_integer(np.nan_to_num(steps.astype(np.float64), nan=0.0) + zero_point, element)

    return run


def _parameters(type_: TensorType) -> tuple[Float32, Array]:
    if type_.quant is None:
        raise ValueError("the tensor carries no quantisation")
    return type_.quant.spread(type_.shape)


def per_tensor(scale: float, zero_point: int = 0) -> Quantization:
    """One scale and zero point for a whole tensor."""
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
