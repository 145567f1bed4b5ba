"""Elementwise functions in f32: `function(*operands, out=None)`, like NumPy's own.

An output may be the memory of an operand, so a function of several steps writes it last. The
functions keep the type of their operands: given f64, they compute in f64.

NaN in gives NaN out, for `min`, `max`, `relu` and `clamp` too. Which of two zeros `min` and `max`
take is not specified. Infinities give the limit of the function, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import pi, sqrt
from types import MappingProxyType

import numpy as np

from nacre.kernels.interface.call import Array, Attributes
from nacre.kernels.interface.fixed import FixedCall
from nacre.kernels.interface.runs import Function
from nacre.kernels.numbers import special
from nacre.kernels.numbers.gelu import gelu

# The greatest error against f64, in ulps of the f32 result, measured over 7 million values of
# all magnitudes (x86-64 with AVX-512, NumPy 2.4) and rounded up; the tests hold every function to
# it. What is missing here is rounded correctly, 0.5 ulp, and so is what is ordered but `gelu`.
# Of `silu` this holds from -87 on; below, sigmoid is subnormal, and the error is under 2^-143.
ULPS: Mapping[str, float] = MappingProxyType(
    {
        "sigmoid": 3.5,
        "tanh": 1.5,
        "exp": 2.5,
        "log": 3.5,
        "pow": 1.5,
        "gelu": 0.6,
        "gelu_tanh": 0.6,
        "silu": 4.5,
        "erf": 0.6,
    }
)


# Of rank 0, which NumPy takes in half the time of a number, and in the narrowest float type, so
# that f32 and f64 operands keep their types.
_ZERO, _ONE, _DEEP = (np.array(value, np.float16) for value in (0.0, 1.0, -256.0))
_ZEROS = np.zeros(1 << 14, np.float32)
_MANY = 1 << 11  # from here on the way of a function counts less than its elements
# From here on `exp(-x)` is finite in f32 and in f64, by the bytes of an element.
_LEAST: Mapping[int, float] = MappingProxyType({4: -87.0, 8: -708.0})
# `-2 u` of `gelu` with `tanh` is `x * (linear + cubic * x^2)`, in f64. Below the least, f32 has
# reached 0, and above it the exponential of f64 is finite.
_LINEAR, _CUBIC = (np.array(value * -2 * sqrt(2 / pi)) for value in (1.0, 0.044715))
_LEAST_TANH = np.full(2 * special.BLOCK, -20.0)  # for as many elements at a time


def real_function(name: str, attributes: Attributes, ordered: bool = False) -> Function:
    """A function by the name of its opcode; ordered, what depends on a library comes from f64."""
    if name in _WITH_ATTRIBUTES:
        return _WITH_ATTRIBUTES[name](attributes, ordered)
    function = BINARY[name] if name in BINARY else _PLAIN[name]
    return _through_double(function) if ordered and name in _TRANSCENDENTAL else function


def is_transcendental(name: str) -> bool:
    """Whether a scalar unit needs several operations for it."""
    return name in _TRANSCENDENTAL or name == "gelu"


def _through_double(function: Function) -> Function:
    """Computed in f64 and rounded to f32."""

    def run(*operands: Array, out: Array | None = None) -> Array:
        exact = function(*(operand.astype(np.float64) for operand in operands))
        return _round(exact, out)

    return run


def _round(exact: Array, out: Array | None) -> Array:
    if out is None:
        return exact.astype(np.float32)
    out[...] = exact
    return out


def relu(x: Array, out: Array | None = None) -> Array:
    """The larger of x and 0.

    NumPy takes a quarter of the time for an array of zeros that it takes for one zero.
    """
    if x.size < _MANY or x.dtype != np.float32 or out is None or x.shape != out.shape:
        larger: Array = np.maximum(x, _ZERO, out=out)
        return larger
    for call in relu_calls(x, out):
        call()
    return out


def relu_calls(x: Array, out: Array) -> Iterator[FixedCall]:
    """The calls that the larger of x and 0 takes."""
    if x.dtype != np.float32 or not (x.flags.c_contiguous and out.flags.c_contiguous):
        yield partial(np.maximum, x, _ZERO, out=out)
        return
    flat, target = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, _ZEROS.size):
        part, result = (array[start : start + _ZEROS.size] for array in (flat, target))
        yield partial(np.maximum, part, _ZEROS[: part.size], out=result)


def sigmoid(x: Array, out: Array | None = None) -> Array:
    """`1 / (1 + exp(-x))`, and `exp(x)` where that could overflow and nothing is left of the 1."""
    deep = _deep(x)
    if deep is None:
        whole: Array = np.divide(_ONE, _one_and_power(x), out=out)
        return whole
    return _select(deep, np.exp(np.where(deep, x, _ZERO)), _ONE / _one_and_power(x), out)


def silu(x: Array, out: Array | None = None) -> Array:
    """`x * sigmoid(x)`."""
    deep = _deep(x)
    if deep is None:
        whole: Array = np.divide(x, _one_and_power(x), out=out)
        return whole
    # From -104 on nothing is left; an infinity times 0 would be NaN.
    low = np.where(deep, np.maximum(x, _DEEP), _ZERO)
    return _select(deep, np.multiply(low, np.exp(low)), x / _one_and_power(x), out)


def _deep(x: Array) -> Array | None:
    """Where `exp(-x)` may be infinite; None where it is so nowhere, which costs a third of it."""
    least = _LEAST[x.dtype.itemsize]
    if np.minimum.reduce(x, axis=None, initial=0.0) > least:
        return None
    return np.asarray(x <= least)


def _select(condition: Array, a: Array, b: Array, out: Array | None) -> Array:
    """`a` where a condition holds, else `b`: an element does not depend on those beside it."""
    found = np.where(condition, a, b)
    if out is None:
        return found
    out[...] = found
    return out


def _one_and_power(x: Array) -> Array:
    """`1 + exp(-x)`."""
    below = np.negative(x)
    return np.add(np.exp(below, out=below), _ONE, out=below)


def _gelu(attributes: Attributes, ordered: bool) -> Function:
    if attributes.get("approximate", "none") == "tanh":
        return _gelu_tanh
    return special.exact_gelu if ordered else gelu


def _gelu_tanh(x: Array, out: Array | None = None) -> Array:
    return special.in_double(_gelu_tanh_double, x, out, _LEAST_TANH.size)


def _gelu_tanh_double(x: Array, out: Array) -> None:
    """`x / 2 * (1 + tanh(u))`, which is `x / (1 + exp(-2 u))`, where no digits cancel."""
    np.maximum(x, _LEAST_TANH[: x.size], out=x)
    np.multiply(x, x, out=out)
    np.multiply(out, _CUBIC, out=out)
    np.add(out, _LINEAR, out=out)
    np.multiply(out, x, out=out)
    np.add(np.exp(out, out=out), _ONE, out=out)
    np.divide(x, out, out=out)


def _leaky_relu(attributes: Attributes, ordered: bool) -> Function:
    alpha = np.array(attributes["alpha"], np.float32)

    def either(x: Array, out: Array | None = None) -> Array:
        scaled = x * alpha
        np.copyto(scaled, x, where=x > 0)
        return np.positive(scaled, out=out)

    def larger(x: Array, out: Array | None = None) -> Array:
        return np.maximum(x, x * alpha, out=out)

    return larger if 0 < alpha <= 1 else either


def _clamp(attributes: Attributes, ordered: bool) -> Function:
    low = np.array(attributes["min_val"], np.float32)
    high = np.array(attributes["max_val"], np.float32)

    def run(x: Array, out: Array | None = None) -> Array:
        return np.minimum(np.maximum(x, low), high, out=out)

    return run


# NumPy has these for f16 too: it widens, computes in f32 and rounds.
ARITHMETIC: Mapping[str, Function] = MappingProxyType(
    {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "min": np.minimum,
        "max": np.maximum,
    }
)
CHOICES = frozenset({"min", "max"})
BINARY: Mapping[str, Function] = MappingProxyType({**ARITHMETIC, "pow": np.power})
_PLAIN: Mapping[str, Function] = MappingProxyType(
    {
        "relu": relu,
        "sigmoid": sigmoid,
        "tanh": np.tanh,
        "exp": np.exp,
        "log": np.log,
        "sqrt": np.sqrt,
        "abs": np.abs,
        "neg": np.negative,
        "silu": silu,
    }
)
_WITH_ATTRIBUTES: Mapping[str, Callable[[Attributes, bool], Function]] = MappingProxyType(
    {"leaky_relu": _leaky_relu, "gelu": _gelu, "clamp": _clamp}
)
TRIED_WITH: Mapping[str, Attributes] = MappingProxyType(
    {"leaky_relu": {"alpha": 0.1}, "clamp": {"min_val": -1.5, "max_val": 2.25}}
)
UNARY = (*_PLAIN, *_WITH_ATTRIBUTES)
_TRANSCENDENTAL = frozenset({"sigmoid", "tanh", "exp", "log", "silu", "pow"})
