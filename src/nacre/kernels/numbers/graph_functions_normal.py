"""The error function and the normal distribution in f64, by rational approximations of our own.

Rational functions that meet the exact values in Chebyshev points, computed with 60 digits:

- `erf(x) = x * P(x^2) / Q(x^2)` of degrees 5 and 5 for |x| up to 1: relative error 2^-59.9.
- `normal_tail(t) = exp(-t^2 / 2) * P(t) / Q(t)` of degrees 10 and 11 for t from 0 to 38.6, where
  f64 has reached 0: relative error 2^-59. All coefficients are positive, so no digits cancel.

Measured over 60,000 values against 40 digits: `erf` within 3 ulps, `gelu` within 11 down to -37.5.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import numpy.typing as npt

from nacre.kernels.numbers.real_functions import sigmoid
from nacre.kernels.numbers.special import polynomial

Float64 = npt.NDArray[np.float64]


def _coefficients(*values: float) -> tuple[Float64, ...]:
    # NumPy takes an array of rank 0 in half the time of a Python number.
    return tuple(np.array(value) for value in values)


# Ascending powers. A denominator begins with 1.
_ERF_ABOVE = _coefficients(
    1.1283791670955126,
    0.14365581715028763,
    0.0455033341653278,
    0.0018829155471563983,
    0.00019709588069752516,
    8.625602445726376e-08,
)
_ERF_BELOW = _coefficients(
    1.0,
    0.46064498648983654,
    0.0938746087651241,
    0.010705251871973175,
    0.0006937362332349159,
    2.0866484101019162e-05,
)
_TAIL_LIMIT = np.array(38.6)
_TAIL_ABOVE = _coefficients(
    0.5,
    0.8261323540785918,
    0.6767558512918677,
    0.35510346226531647,
    0.13092728596718153,
    0.03528005250354116,
    0.00702644073630456,
    0.0010224883148904572,
    0.00010443111134241873,
    6.8062178620976e-06,
    2.1752017737252145e-07,
)
_TAIL_BELOW = _coefficients(
    1.0,
    2.450149268960049,
    2.8084479759493823,
    1.991911090146353,
    0.9735911137342169,
    0.3452806168291493,
    0.09096285424739936,
    0.017873354502129717,
    0.002580058778935434,
    0.0002623152186656246,
    1.7060658136463712e-05,
    5.452422269045782e-07,
)
_HIGH_BITS = np.int64(-1 << 27)  # 26 digits of a f64 stay, whose square is exact
_DEEP = np.array(-1024.0)  # below, nothing is left of a function that tends to 0


def erf(x: Float64, out: Float64) -> Float64:
    """The error function; NaN and the sign of zero are kept."""
    near = np.minimum(np.maximum(x, -1.0), 1.0)
    square = np.multiply(near, near)
    np.multiply(near, _ratio(square, _ERF_ABOVE, _ERF_BELOW), out=near)
    # f64 has reached 1 before 6.
    tail = normal_tail(np.minimum(np.abs(x), 6.0) * sqrt(2.0))
    np.copysign(np.subtract(1.0, np.multiply(tail, 2.0, out=tail), out=tail), x, out=out)
    np.copyto(out, near, where=np.abs(x) <= 1.0)
    return out


def normal_tail(t: Float64) -> Float64:
    """How likely a normal variable exceeds t, which is 0 to 38.6."""
    # An error of t^2 is one of the exponential a thousand times as large, so it is to be exact.
    high = np.bitwise_and(t.view(np.int64), _HIGH_BITS).view(np.float64)
    rest = np.multiply(np.subtract(t, high), np.add(t, high))
    np.exp(np.multiply(rest, -0.5, out=rest), out=rest)
    power = np.multiply(high, high, out=high)
    np.exp(np.multiply(power, -0.5, out=power), out=power)
    ratio = _ratio(t, _TAIL_ABOVE, _TAIL_BELOW)
    np.multiply(ratio, rest, out=ratio)
    return np.multiply(ratio, power, out=ratio)


def gelu(x: Float64, out: Float64) -> Float64:
    """`x * normal(x)`, normal being the distribution function."""
    # max(x, 0) - |x| * tail(|x|): on neither side digits cancel, and infinities find their limit.
    t = np.minimum(np.abs(x), _TAIL_LIMIT)
    lost = normal_tail(t)
    np.multiply(lost, t, out=lost)
    np.maximum(x, 0.0, out=out)
    np.subtract(out, lost, out=out)
    return np.copysign(out, x, out=out)  # of zeros too


def gelu_tanh(x: Float64, out: Float64) -> Float64:
    """`x / 2 * (1 + tanh(u))`, which is `x * sigmoid(2 u)`, where no digits cancel."""
    limited = np.maximum(x, _DEEP)
    inner = np.multiply(limited, limited)
    np.multiply(inner, 0.044715, out=inner)
    np.add(inner, 1.0, out=inner)
    np.multiply(inner, limited, out=inner)
    np.multiply(inner, 2.0 * sqrt(2.0 / pi), out=inner)
    np.multiply(limited, sigmoid(inner), out=out)
    return out


def silu(x: Float64, out: Float64) -> Float64:
    """`x * sigmoid(x)`."""
    limited = np.maximum(x, _DEEP)  # an infinity times 0 would be NaN
    np.multiply(limited, sigmoid(limited), out=out)
    return out


def _ratio(x: Float64, above: tuple[Float64, ...], below: tuple[Float64, ...]) -> Float64:
    quotient = polynomial(x, above)
    return np.divide(quotient, polynomial(x, below), out=quotient)
