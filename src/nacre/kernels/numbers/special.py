"""The error function and the normal distribution in f32, by rational approximations of our own.

Both are evaluated in f64 and rounded once. The coefficients are minimax fits in the sense of the
relative error, found by iteratively reweighted least squares:

- `erf(x) = x * P(x^2) / Q(x^2)` of degrees 6 and 5 for |x| up to 3.92, where f32 has reached 1:
  relative error 2^-29.0, so 0.54 ulp together with the rounding. It takes `+ * /` only and is
  the same on every platform.
- `normal_tail(t) = exp(-t^2 / 2) * P(t) / Q(t)` of degrees 5 and 6 for t from 0 to 14.5, where
  f32 has reached 0: relative error 2^-33.5. It keeps its relative precision where `1 + erf(x)`
  has lost all digits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nacre.kernels.interface.call import Array
from nacre.kernels.numbers.numbers import Float32

Float64 = npt.NDArray[np.float64]


def _coefficients(*values: float) -> tuple[Float64, ...]:
    # NumPy takes an array of rank 0 in half the time of a Python number.
    return tuple(np.array(value) for value in values)


# Ascending powers. A denominator begins with 1.
_ERF_LIMIT = np.array(3.92)
_ERF_ABOVE = _coefficients(
    1.1283791691468152,
    0.18513527524597095,
    0.054243999580737584,
    0.0038386240811810837,
    0.00037675968381568404,
    4.609254150172113e-06,
    -1.2799902385451073e-08,
)
_ERF_BELOW = _coefficients(
    1.0,
    0.49740527206752155,
    0.11387377044339689,
    0.015430053782562757,
    0.00130152613240767,
    6.239936542122699e-05,
)
_TAIL_LIMIT = np.array(14.5)
_TAIL_ABOVE = _coefficients(
    0.4999999999589385,
    0.5072597713628274,
    0.25032564569323174,
    0.07120435739974115,
    0.01161975564571307,
    0.0008870813611899972,
)
_TAIL_BELOW = _coefficients(
    1.0,
    1.812404095649806,
    1.4467406587270828,
    0.6564994901543405,
    0.1807120836531831,
    0.02912621897796888,
    0.0022235860428877078,
)
_HALF = np.array(-0.5)
_ZERO = np.array(0.0)


def erf(values: Array) -> Float32:
    """The error function of f32 values; within one ulp, NaN and the sign of zero are kept."""
    x = values.astype(np.float64)
    limited = np.minimum(np.maximum(x, -_ERF_LIMIT), _ERF_LIMIT)
    square = np.multiply(limited, limited)
    ratio = polynomial(square, _ERF_ABOVE)
    np.divide(ratio, polynomial(square, _ERF_BELOW), out=ratio)
    np.multiply(ratio, limited, out=ratio)
    return ratio.astype(np.float32)


def normal_tail(t: Float64) -> Float64:
    """How likely a normal variable exceeds t, which is 0 to 14.5, in f64 with 33 good bits."""
    ratio = polynomial(t, _TAIL_ABOVE)
    np.divide(ratio, polynomial(t, _TAIL_BELOW), out=ratio)
    power = np.multiply(t, t)
    np.multiply(power, _HALF, out=power)
    np.multiply(ratio, np.exp(power, out=power), out=ratio)
    return ratio


def gelu(values: Array) -> Float32:
    """`x * normal(x)` of f32 values, normal being the distribution function; within one ulp."""
    x = values.astype(np.float64)
    # max(x, 0) - |x| * tail(|x|): on neither side digits cancel, and infinities find their limit.
    t = np.minimum(np.abs(x), _TAIL_LIMIT)
    lost = normal_tail(t)
    np.multiply(lost, t, out=lost)
    np.subtract(np.maximum(x, _ZERO), lost, out=lost)
    return np.copysign(lost, x, out=lost).astype(np.float32)  # of zeros too


def polynomial(x: Float64, coefficients: tuple[Float64, ...]) -> Float64:
    """Horner's scheme, in one array that is used over and over."""
    total = np.multiply(x, coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        np.add(total, coefficient, out=total)
        np.multiply(total, x, out=total)
    return np.add(total, coefficients[0], out=total)
