"""Functions of one element. Infinities give the limit of a function, as in the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, isfinite, log, pi, sqrt
from types import MappingProxyType

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.types import takes
from nacre.core.onnx_export.writer import OnnxWriter, writes

Function = Callable[[OnnxWriter, Value], Value]


def elementwise(function: Function) -> Callable[[OnnxWriter], Value]:
    """A form from a function in the type that is computed in, rounded once."""

    def form(writer: OnnxWriter) -> Value:
        return writer.to_result_type(function(writer, writer.to_compute_type(writer.operands[0])))

    return form


def native(operation: str) -> Function:
    """An operation of ONNX as it is."""
    return lambda writer, x: writer.elementwise(operation, x)


def writes_each(*opcodes: str) -> Callable[[Function], Function]:
    """Register a function of one element as the form of operations."""

    def register(function: Function) -> Function:
        writes(*opcodes)(elementwise(function))
        return function

    return register


for _name in ("Neg", "Exp", "Log"):
    writes_each(_name)(native(_name))


@writes_each("Relu")
def relu(writer: OnnxWriter, x: Value) -> Value:
    """By the formula `x if x > 0 else 0`, so that NaN and -0.0 become 0; ONNX keeps NaN."""
    zero = writer.number(0, x.dtype)
    return writer.where(writer.elementwise("Greater", x, zero, dtype="bool"), x, zero)


@writes_each("ReluNan")
def relu_nan(writer: OnnxWriter, x: Value) -> Value:
    """`Relu`, which onnxruntime lacks for i64."""
    if takes("Relu", x.dtype):
        return writer.elementwise("Relu", x)
    return min_or_max(writer, "Max", x, writer.number(0, x.dtype))


def min_or_max(writer: OnnxWriter, word: str, a: Value, b: Value) -> Value:
    """`Min` or `Max`; of i64 by a comparison.

    Some builds of onnxruntime compare the lower halves of i64 as signed where the upper ones are
    equal: the larger of 3000000000 and 0 is 0 then.
    """
    if a.dtype != "i64":
        return writer.elementwise(word, a, b)
    is_less = writer.elementwise("Less", a, b, dtype="bool")
    return writer.where(is_less, b, a) if word == "Max" else writer.where(is_less, a, b)


def sign(writer: OnnxWriter, x: Value) -> Value:
    """-1, 0 or 1."""
    if x.dtype != "i64":  # for the same reason
        return writer.elementwise("Sign", x)
    zero, one = writer.number(0, "i64"), writer.number(1, "i64")
    is_above, is_below = (
        writer.elementwise(word, x, zero, dtype="bool") for word in ("Greater", "Less")
    )
    return writer.where(is_above, one, writer.where(is_below, writer.number(-1, "i64"), zero))


def limit_infinity(writer: OnnxWriter, x: Value) -> Value:
    """Minus infinity as the least finite number: times 0 it would be NaN."""
    return writer.elementwise("Max", x, writer.number(GRAPH_TYPES[x.dtype].lowest, x.dtype))


def _trunc(writer: OnnxWriter, x: Value) -> Value:
    is_below = writer.elementwise("Less", x, writer.number(0, x.dtype), dtype="bool")
    return writer.where(is_below, writer.elementwise("Ceil", x), writer.elementwise("Floor", x))


def _rsqrt(writer: OnnxWriter, x: Value) -> Value:
    return writer.elementwise("Reciprocal", writer.elementwise("Sqrt", x))


def _tan(writer: OnnxWriter, x: Value) -> Value:
    if takes("Tan", x.dtype):
        return writer.elementwise("Tan", x)
    return writer.elementwise("Div", writer.elementwise("Sin", x), writer.elementwise("Cos", x))


def _is_number(writer: OnnxWriter, x: Value, number: float) -> Value:
    return writer.elementwise("Equal", x, writer.number(number, x.dtype), dtype="bool")


def expm1(writer: OnnxWriter, x: Value) -> Value:
    """e^x - 1 from an e^x that is rounded: `(u - 1) * x / log(u)` loses no digits."""
    one = writer.number(1, x.dtype)
    power = writer.elementwise("Exp", x)
    less = writer.elementwise("Sub", power, one)
    exact = writer.elementwise(
        "Div", writer.elementwise("Mul", less, x), writer.elementwise("Log", power)
    )
    # Far out the formula has no value, and the plain difference is right.
    is_far = writer.elementwise(
        "Greater", writer.elementwise("Abs", x), writer.number(20, x.dtype), dtype="bool"
    )
    result = writer.where(is_far, less, exact)
    return writer.where(_is_number(writer, power, 1), x, result)


def log1p(writer: OnnxWriter, x: Value) -> Value:
    """log(1 + x) from a 1 + x that is rounded: `log(u) * (x / (u - 1))` loses no digits."""
    one = writer.number(1, x.dtype)
    sum_ = writer.elementwise("Add", x, one)
    logarithm = writer.elementwise("Log", sum_)
    exact = writer.elementwise(
        "Mul", logarithm, writer.elementwise("Div", x, writer.elementwise("Sub", sum_, one))
    )
    result = writer.where(_is_number(writer, sum_, float("inf")), logarithm, exact)
    return writer.where(_is_number(writer, sum_, 1), x, result)


def _softplus(writer: OnnxWriter, x: Value) -> Value:
    if takes("Softplus", x.dtype):
        return writer.elementwise("Softplus", x)
    rest = log1p(
        writer, writer.elementwise("Exp", writer.elementwise("Neg", writer.elementwise("Abs", x)))
    )
    return writer.elementwise("Add", writer.elementwise("Max", x, writer.number(0, x.dtype)), rest)


def _softsign(writer: OnnxWriter, x: Value) -> Value:
    ends = GRAPH_TYPES[x.dtype]
    finite = clip_between(writer, x, ends.lowest, ends.highest)
    if takes("Softsign", x.dtype):
        return writer.elementwise("Softsign", finite)
    below = writer.elementwise("Add", writer.elementwise("Abs", finite), writer.number(1, x.dtype))
    return writer.elementwise("Div", finite, below)


def _scaled_log(base: float) -> Function:
    def function(writer: OnnxWriter, x: Value) -> Value:
        return writer.elementwise(
            "Div", writer.elementwise("Log", x), writer.number(log(base), x.dtype)
        )

    return function


def _exp2(writer: OnnxWriter, x: Value) -> Value:
    return writer.elementwise("Pow", writer.number(2, x.dtype), x)


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
def unary(writer: OnnxWriter) -> Value:
    """`Unary`."""
    word, (x,) = str(writer.attributes["op"]), writer.operands
    if word in _TESTS:
        return writer.elementwise(_TESTS[word], writer.to_compute_type(x), dtype="bool")
    if word == "Not":
        return writer.elementwise("Not", x) if x.dtype == "bool" else invert_bits(writer, x)
    return elementwise(_UNARY[word])(writer)


def invert_bits(writer: OnnxWriter, x: Value) -> Value:
    """Every bit of integers turned."""
    return writer.move("BitwiseNot", x, shape=x.shape)


@writes_each("LeakyRelu")
def leaky_relu(writer: OnnxWriter, x: Value) -> Value:
    """`LeakyRelu`; of f64 by its formula."""
    alpha = float(writer.attributes["alpha"])
    if takes("LeakyRelu", x.dtype):
        return writer.elementwise("LeakyRelu", x, alpha=alpha)
    return _choose_by_sign(writer, x, writer.elementwise("Mul", x, writer.number(alpha, x.dtype)))


def _choose_by_sign(writer: OnnxWriter, x: Value, below: Value) -> Value:
    """X above 0, else another value."""
    return writer.where(
        writer.elementwise("Greater", x, writer.number(0, x.dtype), dtype="bool"), x, below
    )


@writes_each("Elu", "Selu")
def elu(writer: OnnxWriter, x: Value) -> Value:
    """`Elu` and `Selu`; of f64 by their formula."""
    given = {name: float(writer.attributes[name]) for name in ("alpha", "gamma")
             if name in writer.attributes}  # fmt: skip
    if takes(writer.op.opcode, x.dtype):
        return writer.add(writer.op.opcode, x, type_=x.type, **given)
    power = expm1(writer, writer.elementwise("Min", x, writer.number(0, x.dtype)))
    result = _choose_by_sign(
        writer, x, writer.elementwise("Mul", power, writer.number(given["alpha"], x.dtype))
    )
    return writer.elementwise("Mul", result, writer.number(given.get("gamma", 1.0), x.dtype))


@writes_each("HardSigmoid")
def hard_sigmoid(writer: OnnxWriter, x: Value) -> Value:
    """`HardSigmoid`; of f64 by its formula."""
    alpha, beta = (float(writer.attributes[name]) for name in ("alpha", "beta"))
    if takes("HardSigmoid", x.dtype):
        return writer.elementwise("HardSigmoid", x, alpha=alpha, beta=beta)
    line = writer.elementwise("Mul", x, writer.number(alpha, x.dtype))
    line = writer.elementwise("Add", line, writer.number(beta, x.dtype))
    return clip_between(writer, line, 0, 1)


def clip_between(writer: OnnxWriter, x: Value, low: float, high: float) -> Value:
    """Between two numbers."""
    least, most = (writer.number(end, x.dtype) for end in (low, high))
    if x.dtype == "i64":
        return min_or_max(writer, "Min", min_or_max(writer, "Max", x, least), most)
    return writer.add("Clip", x, least, most, type_=x.type)


@writes_each("HardSwish")
def hard_swish(writer: OnnxWriter, x: Value) -> Value:
    """`HardSwish`; of f64 by its formula."""
    if takes("HardSwish", x.dtype):
        return writer.elementwise("HardSwish", limit_infinity(writer, x))
    least = writer.elementwise("Max", x, writer.number(-3, x.dtype))
    share = clip_between(writer, writer.elementwise("Add", least, writer.number(3, x.dtype)), 0, 6)
    return writer.elementwise(
        "Mul", least, writer.elementwise("Div", share, writer.number(6, x.dtype))
    )


@writes_each("Gelu")
def gelu(writer: OnnxWriter, x: Value) -> Value:
    """`Gelu`; of f64 by the formula with Tanh, for onnxruntime has no such `Erf`."""
    x = limit_infinity(writer, x)
    word = str(writer.attributes["approximate"])
    if word == "none" or takes("Gelu", x.dtype):
        return writer.elementwise("Gelu", x, approximate=word)
    cube = writer.elementwise("Mul", writer.elementwise("Mul", x, x), x)
    inner = writer.elementwise(
        "Add", x, writer.elementwise("Mul", cube, writer.number(0.044715, x.dtype))
    )
    bent = writer.elementwise(
        "Tanh", writer.elementwise("Mul", inner, writer.number(sqrt(2 / pi), x.dtype))
    )
    half = writer.elementwise("Mul", x, writer.number(0.5, x.dtype))
    return writer.elementwise(
        "Mul", half, writer.elementwise("Add", bent, writer.number(1, x.dtype))
    )


@writes_each("Silu")
def silu(writer: OnnxWriter, x: Value) -> Value:
    """`x * Sigmoid(x)`."""
    return writer.elementwise("Mul", limit_infinity(writer, x), writer.elementwise("Sigmoid", x))


@writes("Clip")
def clip(writer: OnnxWriter) -> Value:
    """`Clip`; bounds of integers are rounded inwards and stop at the ends of the type."""
    (x,), element = writer.operands, writer.type.element
    low, high = writer.attributes["min"], writer.attributes["max"]
    if element.is_integer:
        low = ceil(low) if isinstance(low, int) or isfinite(low) else low
        high = floor(high) if isinstance(high, int) or isfinite(high) else high
        low, high = (min(max(end, element.lowest), element.highest) for end in (low, high))
    return writer.to_result_type(clip_between(writer, writer.to_compute_type(x), low, high))


@writes("PRelu")
def prelu(writer: OnnxWriter) -> Value:
    """`PRelu`; of f64 by its formula."""
    x, slope = (writer.to_compute_type(value) for value in writer.operands)
    if takes("PRelu", x.dtype):
        return writer.to_result_type(writer.add("PRelu", x, slope, type_=x.type))
    return writer.to_result_type(_choose_by_sign(writer, x, writer.elementwise("Mul", x, slope)))
