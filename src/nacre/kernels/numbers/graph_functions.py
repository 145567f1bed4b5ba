"""Functions of one float that graphs have: `function(x, out)`, in f32 or in f64.

`out` is another array than `x`, both have an axis at least, and it may serve as room for what
comes between. Infinities give the limit of a function where there is one, and NaN gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nacre.kernels.interface.call import Array, Attributes
from nacre.kernels.interface.runs import Function, quietly
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.numbers import graph_functions_normal as normal
from nacre.kernels.numbers import real_functions, special
from nacre.kernels.products.products import same_nan

# The greatest error against f64, in ulps of the f32 result, measured over 5 million values of all
# magnitudes (x86-64 with AVX-512, NumPy 2.4) and rounded up; the tests hold every function to it.
# What is missing here is rounded correctly, 0.5 ulp, and so is what is transcendental and ordered
# but `Gelu`. `HardSigmoid` has an absolute error instead, of its two roundings. Of `Silu` this
# holds from -87 on; below, sigmoid is subnormal, and the error is under 2^-143.
ULPS: Mapping[str, float] = MappingProxyType({
    "Rsqrt": 1.5, "Softsign": 1.5, "HardSwish": 2.0, "Sin": 1.5, "Cos": 1.5, "Tan": 3.5,
    "Asin": 3.5, "Acos": 2.0, "Atan": 2.5, "Sinh": 2.0, "Cosh": 2.5, "Asinh": 1.0, "Acosh": 1.0,
    "Atanh": 1.5, "Tanh": 1.5, "Sigmoid": 3.5, "Softplus": 3.5, "Log1p": 2.0, "Expm1": 3.0,
    "Log2": 2.5, "Log10": 3.5, "Exp2": 2.5, "Erf": 0.6, "Silu": 4.5, "Gelu": 0.6, "Elu": 2.5,
    "Selu": 3.5,
})  # fmt: skip

# Of rank 0, which NumPy takes in half the time of a number, and in the narrowest float type, so
# that f32 and f64 operands keep their types.
_ZERO, _ONE = (np.array(value, np.float16) for value in (0.0, 1.0))

Make = Callable[[Attributes, "np.dtype[Any]", bool], Function]


@dataclass(frozen=True, slots=True)
class WithWorkspace:
    """A function that needs memory beside its operand and its result."""

    use: str
    compute: Callable[[Array, Array, Array], Array]  # x, out, room

    def __call__(self, x: Array, out: Array) -> Array:
        """The function in memory that is at hand."""
        return self.compute(x, out, scratch(self.use, x.shape, x.dtype))


class Real(NamedTuple):
    """A function by its attributes, the type it is computed in, and whether it is ordered."""

    make: Make
    is_transcendental: bool = False  # then it depends on a library


def real_function(
    name: str, attributes: Attributes, wide: np.dtype[Any], ordered: bool
) -> Function:
    """A function by its name, f32 or f64 to compute in; ordered, with the same bytes everywhere."""
    found = REALS[name]
    function = found.make(attributes, wide, ordered)
    if not ordered:
        return function
    if found.is_transcendental and wide == np.float32:
        function = _through_double(function)
    return _with_one_nan(function)


def _through_double(function: Function) -> Function:
    """Computed in f64 and rounded: the double functions of all libraries round to the same f32."""

    def run(x: Array, out: Array) -> Array:
        exact = x.astype(np.float64)
        out[...] = function(exact, out=np.empty_like(exact))
        return out

    return run


def _with_one_nan(function: Function) -> Function:
    def run(x: Array, out: Array) -> Array:
        function(x, out=out)
        return same_nan(out)

    return run


def number(attributes: Attributes, name: str) -> float:
    """A number among the attributes; integers beyond all floats are infinite."""
    value = attributes[name]
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def constant(attributes: Attributes, name: str, wide: np.dtype[Any]) -> Array:
    """A number among the attributes as an array of rank 0, rounded to a type."""
    return quietly(np.array, number(attributes, name), wide)


def _plain(function: Function) -> Make:
    return lambda attributes, wide, ordered: function


def _by_width(single: Function, double: Function) -> Make:
    """One function for f32, another for f64, which is also the way of ordered f32."""

    def make(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
        return single if wide == np.float32 and not ordered else double

    return make


def select(condition: Array, a: Array, b: Array, out: Array) -> Array:
    """`a` where a condition holds, else `b`, both of the type of `out`, which is another array.

    By masks, for NumPy's own ways take a branch an element: five times as long on mixed ones.
    """
    bits = np.dtype(f"i{out.dtype.itemsize}")
    mask = np.negative(condition.view(np.int8)).astype(bits, copy=False)
    result, other = out.view(bits), b.view(bits)
    np.bitwise_xor(a.view(bits), other, out=result)
    np.bitwise_and(result, mask, out=result)
    np.bitwise_xor(result, other, out=result)
    return out


def _rsqrt(x: Array, out: Array) -> Array:
    np.sqrt(x, out=out)
    return np.divide(_ONE, out, out=out)


def _softplus(x: Array, out: Array) -> Array:
    """`log(1 + e^x)`, by an exponential that cannot overflow."""
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.log1p(np.exp(out, out=out), out=out)
    return np.add(out, np.maximum(x, _ZERO), out=out)


def _softsign(x: Array, out: Array) -> Array:
    """`x / (1 + abs(x))`."""
    most = np.finfo(x.dtype).max
    limited = np.minimum(np.maximum(x, -most), most)
    np.add(np.abs(limited, out=out), _ONE, out=out)
    np.divide(limited, out, out=out)
    return out


def _hard_swish(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    """`x * clip(x + 3, 0, 6) / 6`."""
    zero, three, six = (np.array(value, wide) for value in (0.0, 3.0, 6.0))
    bits = np.dtype(f"i{wide.itemsize}")
    first, last = zero.view(bits), six.view(bits)

    def compute(x: Array, out: Array, room: Array) -> Array:
        np.add(x, three, room)
        # Their squares have no finite sum if one of them is not.
        if isfinite(np.vdot(x, x)):
            held, order = x, room.view(bits)
            order.clip(first, last, order)  # floats from 0 on have the order of their bits
        else:
            held = np.maximum(x, -three)  # an infinity times 0 would be NaN
            room.clip(zero, six, room)
        np.divide(room, six, room)
        result: Array = np.multiply(held, room, out)
        return result

    return WithWorkspace("hard swish", compute)


def _gelu(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    if wide == np.float32:  # ordered it is computed in f64 as it is
        return real_functions.real_function("gelu", attributes, ordered)
    return normal.gelu_tanh if attributes["approximate"] == "tanh" else normal.gelu


def _relu(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    return _larger_than_zero if ordered else real_functions.relu


def _larger_than_zero(x: Array, out: Array) -> Array:
    """The larger of x and 0.0, of both zeros too."""
    return select(np.asarray(x <= _ZERO), _ZERO.astype(x.dtype), x, out)


def clipping(low: Array, high: Array, ordered: bool) -> Function:
    """Between two numbers; where the lower is above the upper, that is the upper."""

    def run(x: Array, out: Array) -> Array:
        return x.clip(low, high, out=out)

    def run_ordered(x: Array, out: Array) -> Array:
        # Which of two zeros `maximum` takes depends on the platform.
        held = select(x < low, low, x, np.empty_like(x))
        return select(held > high, high, held, out)

    return run_ordered if ordered else run


def _clip(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    low, high = (constant(attributes, name, wide) for name in ("min", "max"))
    return clipping(low, high, ordered)


def _leaky_relu(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    alpha = constant(attributes, "alpha", wide)

    def either(x: Array, out: Array) -> Array:
        return select(x > _ZERO, x, np.multiply(x, alpha), out)

    def larger(x: Array, out: Array) -> Array:
        np.multiply(x, alpha, out=out)
        return np.maximum(x, out, out=out)

    return larger if 0 < alpha <= 1 else either


def _elu(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    """Selu too, which has a factor for both sides."""
    alpha = constant(attributes, "alpha", wide)
    gamma = constant({"gamma": 1.0, **attributes}, "gamma", wide)

    def run(x: Array, out: Array) -> Array:
        below = np.minimum(x, _ZERO)
        np.multiply(np.expm1(below, out=below), alpha, out=below)
        select(x > _ZERO, x, below, out)
        return out if gamma == 1 else np.multiply(out, gamma, out=out)

    return run


def _hard_sigmoid(attributes: Attributes, wide: np.dtype[Any], ordered: bool) -> Function:
    alpha, beta = (constant(attributes, name, wide) for name in ("alpha", "beta"))
    hold = clipping(np.array(0.0, wide), np.array(1.0, wide), ordered)

    def run(x: Array, out: Array) -> Array:
        np.multiply(x, alpha, out=out)
        return hold(np.add(out, beta, out=out), out=out)

    return run


_ROUNDED: Mapping[str, Function] = MappingProxyType(
    {
        "Abs": np.abs,
        "Sign": np.sign,
        "Ceil": np.ceil,
        "Floor": np.floor,
        "Round": np.rint,
        "Trunc": np.trunc,
        "Sqrt": np.sqrt,
        "Rsqrt": _rsqrt,
        "Reciprocal": np.reciprocal,
        "Softsign": _softsign,
    }
)
_TRANSCENDENTAL: Mapping[str, Function] = MappingProxyType(
    {
        "Sin": np.sin,
        "Cos": np.cos,
        "Tan": np.tan,
        "Asin": np.arcsin,
        "Acos": np.arccos,
        "Atan": np.arctan,
        "Sinh": np.sinh,
        "Cosh": np.cosh,
        "Asinh": np.arcsinh,
        "Acosh": np.arccosh,
        "Atanh": np.arctanh,
        "Tanh": np.tanh,
        "Sigmoid": real_functions.sigmoid,
        "Softplus": _softplus,
        "Log1p": np.log1p,
        "Expm1": np.expm1,
        "Log2": np.log2,
        "Log10": np.log10,
        "Exp2": np.exp2,
    }
)
UNARY: Mapping[str, Real] = MappingProxyType(
    {
        **{name: Real(_plain(function)) for name, function in _ROUNDED.items()},
        **{name: Real(_plain(made), True) for name, made in _TRANSCENDENTAL.items()},
        "Erf": Real(_by_width(special.erf, normal.erf), True),
    }
)
# Those that are operations of their own.
OPERATIONS: Mapping[str, Real] = MappingProxyType(
    {
        "ReluNan": Real(_relu),
        "LeakyRelu": Real(_leaky_relu),
        "Elu": Real(_elu, True),
        "Selu": Real(_elu, True),
        "HardSigmoid": Real(_hard_sigmoid),
        "HardSwish": Real(_hard_swish),
        "Gelu": Real(_gelu, True),
        "Silu": Real(_by_width(real_functions.silu, normal.silu), True),
        "Clip": Real(_clip),
    }
)
REALS: Mapping[str, Real] = MappingProxyType({**UNARY, **OPERATIONS})
