"""Functions of one element. Infinities give the limit of a function, as in the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, isfinite, log, pi, sqrt
from types import MappingProxyType

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, writes
from nacre.core.onnx_export.types import takes

Function = Callable[[OnnxWriter, Value], Value]


def elementwise(function: Function) -> Callable[[OnnxWriter], Value]:
    """A form from a function in the type that is computed in, rounded once."""

    def form(site: OnnxWriter) -> Value:
        return site.result(function(site, site.wide(site.operands[0])))

    return form


def native(operation: str) -> Function:
    """An operation of ONNX as it is."""
    return lambda site, x: site.each(operation, x)


def writes_each(*opcodes: str) -> Callable[[Function], Function]:
    """Register a function of one element as the form of operations."""

    def register(function: Function) -> Function:
        writes(*opcodes)(elementwise(function))
        return function

    return register


for _name in ("Neg", "Exp", "Log"):
    writes_each(_name)(native(_name))


@writes_each("Relu")
def relu(site: OnnxWriter, x: Value) -> Value:
    """By the formula `x if x > 0 else 0`, so that NaN and -0.0 become 0; ONNX keeps NaN."""
    zero = site.number(0, x.dtype)
    return site.where(site.each("Greater", x, zero, dtype="bool"), x, zero)


@writes_each("ReluNan")
def relu_nan(site: OnnxWriter, x: Value) -> Value:
    """`Relu`, which onnxruntime lacks for i64."""
    if takes("Relu", x.dtype):
        return site.each("Relu", x)
    return min_or_max(site, "Max", x, site.number(0, x.dtype))


def min_or_max(site: OnnxWriter, word: str, a: Value, b: Value) -> Value:
    """`Min` or `Max`; of i64 by a comparison.

    Some builds of onnxruntime compare the lower halves of i64 as signed where the upper ones are
    equal: the larger of 3000000000 and 0 is 0 then.
    """
    if a.dtype != "i64":
        return site.each(word, a, b)
    is_less = site.each("Less", a, b, dtype="bool")
    return site.where(is_less, b, a) if word == "Max" else site.where(is_less, a, b)


def sign(site: OnnxWriter, x: Value) -> Value:
    """-1, 0 or 1."""
    if x.dtype != "i64":  # for the same reason
        return site.each("Sign", x)
    zero, one = site.number(0, "i64"), site.number(1, "i64")
    is_above, is_below = (site.each(word, x, zero, dtype="bool") for word in ("Greater", "Less"))
    return site.where(is_above, one, site.where(is_below, site.number(-1, "i64"), zero))


def limit_infinity(site: OnnxWriter, x: Value) -> Value:
    """Minus infinity as the least finite number: times 0 it would be NaN."""
    return site.each("Max", x, site.number(GRAPH_TYPES[x.dtype].lowest, x.dtype))


def _trunc(site: OnnxWriter, x: Value) -> Value:
    is_below = site.each("Less", x, site.number(0, x.dtype), dtype="bool")
    return site.where(is_below, site.each("Ceil", x), site.each("Floor", x))


def _rsqrt(site: OnnxWriter, x: Value) -> Value:
    return site.each("Reciprocal", site.each("Sqrt", x))


def _tan(site: OnnxWriter, x: Value) -> Value:
    if takes("Tan", x.dtype):
        return site.each("Tan", x)
    return site.each("Div", site.each("Sin", x), site.each("Cos", x))


def _is_number(site: OnnxWriter, x: Value, number: float) -> Value:
    return site.each("Equal", x, site.number(number, x.dtype), dtype="bool")


def expm1(site: OnnxWriter, x: Value) -> Value:
    """e^x - 1 from an e^x that is rounded: `(u - 1) * x / log(u)` loses no digits."""
    one = site.number(1, x.dtype)
    power = site.each("Exp", x)
    less = site.each("Sub", power, one)
    exact = site.each("Div", site.each("Mul", less, x), site.each("Log", power))
    # Far out the formula has no value, and the plain difference is right.
    is_far = site.each("Greater", site.each("Abs", x), site.number(20, x.dtype), dtype="bool")
    found = site.where(is_far, less, exact)
    return site.where(_is_number(site, power, 1), x, found)


def log1p(site: OnnxWriter, x: Value) -> Value:
    """log(1 + x) from a 1 + x that is rounded: `log(u) * (x / (u - 1))` loses no digits."""
    one = site.number(1, x.dtype)
    sum_ = site.each("Add", x, one)
    logarithm = site.each("Log", sum_)
    exact = site.each("Mul", logarithm, site.each("Div", x, site.each("Sub", sum_, one)))
    found = site.where(_is_number(site, sum_, float("inf")), logarithm, exact)
    return site.where(_is_number(site, sum_, 1), x, found)


def _softplus(site: OnnxWriter, x: Value) -> Value:
    if takes("Softplus", x.dtype):
        return site.each("Softplus", x)
    rest = log1p(site, site.each("Exp", site.each("Neg", site.each("Abs", x))))
    return site.each("Add", site.each("Max", x, site.number(0, x.dtype)), rest)


def _softsign(site: OnnxWriter, x: Value) -> Value:
    ends = GRAPH_TYPES[x.dtype]
    finite = clip_between(site, x, ends.lowest, ends.highest)
    if takes("Softsign", x.dtype):
        return site.each("Softsign", finite)
    below = site.each("Add", site.each("Abs", finite), site.number(1, x.dtype))
    return site.each("Div", finite, below)


def _scaled_log(base: float) -> Function:
    def function(site: OnnxWriter, x: Value) -> Value:
        return site.each("Div", site.each("Log", x), site.number(log(base), x.dtype))

    return function


def _exp2(site: OnnxWriter, x: Value) -> Value:
    return site.each("Pow", site.number(2, x.dtype), x)


_PLAIN = ("Abs", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Erf", "Sin", "Cos",
          "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Tanh",
          "Sigmoid")  # fmt: skip
_UNARY: Mapping[str, Function] = MappingProxyType(
    {
        **{name: native(name) for name in _PLAIN},
        "Sign": sign,
        "Trunc": _trunc,
        "Rsqrt": _rsqrt,
        "Tan": _tan,
        "Softplus": _softplus,
        "Softsign": _softsign,
        "Log1p": log1p,
        "Expm1": expm1,
        "Log2": _scaled_log(2),
        "Log10": _scaled_log(10),
        "Exp2": _exp2,
    }
)
_TESTS = MappingProxyType({"IsNan": "IsNaN", "IsInf": "IsInf"})


@writes("Unary")
def unary(site: OnnxWriter) -> Value:
    """`Unary`."""
    word, (x,) = str(site.attributes["op"]), site.operands
    if word in _TESTS:
        return site.each(_TESTS[word], site.wide(x), dtype="bool")
    if word == "Not":
        return site.each("Not", x) if x.dtype == "bool" else invert_bits(site, x)
    return elementwise(_UNARY[word])(site)


def invert_bits(site: OnnxWriter, x: Value) -> Value:
    """Every bit of integers turned."""
    return site.moved("BitwiseNot", x, shape=x.shape)


@writes_each("LeakyRelu")
def leaky_relu(site: OnnxWriter, x: Value) -> Value:
    """`LeakyRelu`; of f64 by its formula."""
    alpha = float(site.attributes["alpha"])
    if takes("LeakyRelu", x.dtype):
        return site.each("LeakyRelu", x, alpha=alpha)
    return _choose_by_sign(site, x, site.each("Mul", x, site.number(alpha, x.dtype)))


def _choose_by_sign(site: OnnxWriter, x: Value, below: Value) -> Value:
    """X above 0, else another value."""
    return site.where(site.each("Greater", x, site.number(0, x.dtype), dtype="bool"), x, below)


@writes_each("Elu", "Selu")
def elu(site: OnnxWriter, x: Value) -> Value:
    """`Elu` and `Selu`; of f64 by their formula."""
    given = {name: float(site.attributes[name]) for name in ("alpha", "gamma")
             if name in site.attributes}  # fmt: skip
    if takes(site.op.opcode, x.dtype):
        return site.add(site.op.opcode, x, type_=x.type, **given)
    power = expm1(site, site.each("Min", x, site.number(0, x.dtype)))
    found = _choose_by_sign(site, x, site.each("Mul", power, site.number(given["alpha"], x.dtype)))
    return site.each("Mul", found, site.number(given.get("gamma", 1.0), x.dtype))


@writes_each("HardSigmoid")
def hard_sigmoid(site: OnnxWriter, x: Value) -> Value:
    """`HardSigmoid`; of f64 by its formula."""
    alpha, beta = (float(site.attributes[name]) for name in ("alpha", "beta"))
    if takes("HardSigmoid", x.dtype):
        return site.each("HardSigmoid", x, alpha=alpha, beta=beta)
    line = site.each("Mul", x, site.number(alpha, x.dtype))
    line = site.each("Add", line, site.number(beta, x.dtype))
    return clip_between(site, line, 0, 1)


def clip_between(site: OnnxWriter, x: Value, low: float, high: float) -> Value:
    """Between two numbers."""
    least, most = (site.number(end, x.dtype) for end in (low, high))
    if x.dtype == "i64":
        return min_or_max(site, "Min", min_or_max(site, "Max", x, least), most)
    return site.add("Clip", x, least, most, type_=x.type)


@writes_each("HardSwish")
def hard_swish(site: OnnxWriter, x: Value) -> Value:
    """`HardSwish`; of f64 by its formula."""
    if takes("HardSwish", x.dtype):
        return site.each("HardSwish", limit_infinity(site, x))
    least = site.each("Max", x, site.number(-3, x.dtype))
    share = clip_between(site, site.each("Add", least, site.number(3, x.dtype)), 0, 6)
    return site.each("Mul", least, site.each("Div", share, site.number(6, x.dtype)))


@writes_each("Gelu")
def gelu(site: OnnxWriter, x: Value) -> Value:
    """`Gelu`; of f64 by the formula with Tanh, for onnxruntime has no such `Erf`."""
    x = limit_infinity(site, x)
    word = str(site.attributes["approximate"])
    if word == "none" or takes("Gelu", x.dtype):
        return site.each("Gelu", x, approximate=word)
    cube = site.each("Mul", site.each("Mul", x, x), x)
    inner = site.each("Add", x, site.each("Mul", cube, site.number(0.044715, x.dtype)))
    bent = site.each("Tanh", site.each("Mul", inner, site.number(sqrt(2 / pi), x.dtype)))
    half = site.each("Mul", x, site.number(0.5, x.dtype))
    return site.each("Mul", half, site.each("Add", bent, site.number(1, x.dtype)))


@writes_each("Silu")
def silu(site: OnnxWriter, x: Value) -> Value:
    """`x * Sigmoid(x)`."""
    return site.each("Mul", limit_infinity(site, x), site.each("Sigmoid", x))


@writes("Clip")
def clip(site: OnnxWriter) -> Value:
    """`Clip`; bounds of integers are rounded inwards and stop at the ends of the type."""
    (x,), element = site.operands, site.type.element
    low, high = site.attributes["min"], site.attributes["max"]
    if element.is_integer:
        low = ceil(low) if isinstance(low, int) or isfinite(low) else low
        high = floor(high) if isinstance(high, int) or isfinite(high) else high
        low, high = (min(max(end, element.lowest), element.highest) for end in (low, high))
    return site.result(clip_between(site, site.wide(x), low, high))


@writes("PRelu")
def prelu(site: OnnxWriter) -> Value:
    """`PRelu`; of f64 by its formula."""
    x, slope = (site.wide(value) for value in site.operands)
    if takes("PRelu", x.dtype):
        return site.result(site.add("PRelu", x, slope, type_=x.type))
    return site.result(_choose_by_sign(site, x, site.each("Mul", x, slope)))
