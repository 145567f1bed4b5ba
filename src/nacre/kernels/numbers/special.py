"""The error function and the normal distribution in f32, by approximations of our own.

The coefficients of two are minimax fits in the sense of the relative error, found by iteratively
reweighted least squares; they are evaluated in f64 and rounded once:

- `erf(x) = x * P(x^2) / Q(x^2)` of degrees 6 and 5 for |x| up to 3.92, where f32 has reached 1:
  relative error 2^-29.0, so 0.54 ulp together with the rounding. It takes `+ * /` only and is
  the same on every platform.
- `normal_tail(t) = exp(-t^2 / 2) * P(t) / Q(t)` of degrees 5 and 6 for t from 0 to 14.5, where
  f32 has reached 0: relative error 2^-33.5. It keeps its relative precision where `1 + erf(x)`
  has lost all digits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.numbers.numbers import Float32

Float64 = npt.NDArray[np.float64]
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
BLOCK = 1 << 13  # elements that are computed at a time: they stay in caches


def _coefficients(*values: float) -> tuple[Float64, ...]:
    # NumPy takes an array of rank 0 in half the time of a Python number.
    return tuple(np.array(value) for value in values)


# Ascending powers. A denominator begins with 1.
# NumPy takes a third of the time for a row of bounds that it takes for one bound.
_ERF_LEAST, _ERF_MOST = (np.full(BLOCK, value) for value in (-3.92, 3.92))
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


def erf(values: Array, out: Array | None = None) -> Float32:
    """The error function of f32 values; within one ulp, NaN and the sign of zero are kept."""
    return in_double(_erf, values, out)


def _erf(x: Float64, out: Float64) -> None:
    limited, square, below = _rooms(x.shape, 3)
    np.maximum(x, _ERF_LEAST[: x.size], out=limited)
    np.minimum(limited, _ERF_MOST[: x.size], out=limited)
    np.multiply(limited, limited, out=square)
    polynomial(square, _ERF_ABOVE, out)
    np.divide(out, polynomial(square, _ERF_BELOW, below), out=out)
    np.multiply(out, limited, out=out)


def exact_gelu(values: Array, out: Array | None = None) -> Float32:
    """`x * normal(x)` of f32 values, all of it in f64."""
    return in_double(_exact_gelu, values, out)


def _exact_gelu(x: Float64, out: Float64) -> None:
    # max(x, 0) - |x| * tail(|x|): on neither side digits cancel, and infinities find their limit.
    t, lost, room = _rooms(x.shape, 3)
    np.minimum(np.abs(x, out=t), _TAIL_LIMIT, out=t)
    normal_tail(t, lost, room)
    np.multiply(lost, t, out=lost)
    np.subtract(np.maximum(x, _ZERO, out=out), lost, out=out)
    np.copysign(out, x, out=out)  # of zeros too


def normal_tail(t: Float64, out: Float64, room: Float64) -> None:
    """How likely a normal variable exceeds t, which is 0 to 14.5, in f64 with 33 good bits."""
    polynomial(t, _TAIL_ABOVE, out)
    np.divide(out, polynomial(t, _TAIL_BELOW, room), out=out)
    np.multiply(t, t, out=room)
    np.multiply(room, _HALF, out=room)
    np.multiply(out, np.exp(room, out=room), out=out)


def by_blocks(
    compute: Callable[[Array, Array], object],
    values: Array,
    out: Array | None,
    size: int = BLOCK,
) -> Float32:
    """A function that fills one array from another, of a few elements at a time."""
    result = np.empty(values.shape, np.float32) if out is None else out
    target = result if result.flags.c_contiguous else np.empty(values.shape, np.float32)
    flat, made = np.ascontiguousarray(values).reshape(-1), target.reshape(-1)
    for start in range(0, flat.size, size):
        compute(flat[start : start + size], made[start : start + size])
    if target is not result:
        result[...] = target
    return result


def in_double(
    compute: Callable[[Float64, Float64], object],
    values: Array,
    out: Array | None,
    size: int = BLOCK,
) -> Float32:
    """A function of f64 that fills another array, of f32 values, rounded once; `out` may be x.

    Memory of a few pages is used over and over: new memory takes longer than the function.
    """

    def run(part: Array, made: Array) -> None:
        x, y = scratch("double", (2, part.size), _F64)
        np.copyto(x, part)
        compute(x, y)
        np.copyto(made, y, casting="same_kind")

    return by_blocks(run, values, out, size)


def _rooms(shape: tuple[int, ...], count: int) -> Array:
    return scratch("special", (count, *shape), _F64)


def polynomial(
    x: Float64, coefficients: tuple[Float64, ...], out: Float64 | None = None
) -> Float64:
    """Horner's scheme, in one array that is used over and over; `out` is another than x."""
    total = np.multiply(x, coefficients[-1], out=out)
    for coefficient in coefficients[-2:0:-1]:
        np.add(total, coefficient, out=total)
        np.multiply(total, x, out=total)
    return np.add(total, coefficients[0], out=total)
