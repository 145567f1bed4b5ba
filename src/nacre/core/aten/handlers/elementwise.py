"""Calls on one element at a time that need more than their row says."""

from __future__ import annotations

from math import inf

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall, Number, Tensor
from nacre.core.aten.derived import function
from nacre.core.aten.dtypes import element_type
from nacre.core.aten.remedies import EVAL
from nacre.core.aten.table import handles
from nacre.core.ops import OPS
from nacre.core.unsupported import Unsupported

# ATen computes these powers in another way; so must we.
_POWERS = {0.5: "Sqrt", -0.5: "Rsqrt", -1.0: "Reciprocal"}
_WORDS = {"and": "And", "or": "Or", "xor": "Xor"}


def is_integer(dtype: str) -> bool:
    """Whether a type has integers, or truth values."""
    return GRAPH_TYPES[dtype].is_integer


@handles("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar")
def add(use: AtenCall) -> int | Number:
    """A sum or difference; `alpha` scales the second operand. Of sizes it is a size."""
    first, second = ("other", "self") if use.name == "rsub" else ("self", "other")
    alpha = use.number("alpha", 1)
    found = (use.get(first), use.get(second))
    if not any(isinstance(f, Tensor) for f in found):
        a, b = use.number(first), use.number(second) * alpha
        return Number(a + b if use.name == "add" else a - b)
    dtype = use.common("self", "other")
    a, b = use.value(first, dtype), use.value(second, dtype)
    if alpha != 1:  # it belongs to `other`, or with `rsub` to `self`
        b = use.binary("Mul", b, use.scalar(alpha, dtype))
    return function(use, OPS["BinOp"], "Add" if use.name == "add" else "Sub", a, b)


@handles("true_divide.Tensor")
def divide(use: AtenCall) -> int:
    """A true quotient."""
    dtype = use.common("self", "other")
    return function(use, OPS["BinOp"], "Div", use.value("self", dtype), use.value("other", dtype))


@handles("div.Tensor_mode", "div.Scalar_mode", "floor_divide.default")
def div_mode(use: AtenCall) -> int:
    """A quotient, rounded down or towards zero."""
    mode = "floor" if use.name == "floor_divide" else use.get("rounding_mode")
    dtype = use.common("self", "other")
    a, b = use.value("self", dtype), use.value("other", dtype)
    if mode is None:
        return function(use, OPS["BinOp"], "Div", a, b)
    if mode == "trunc":
        quotient = use.binary("Div", a, b)
        return quotient if is_integer(dtype) else use.unary("Trunc", quotient)
    if is_integer(dtype):  # what is left has the sign of the divisor, so the rest divides evenly
        return use.binary("Div", use.binary("Sub", a, use.binary("Mod", a, b)), b)
    return _floor_quotient(use, a, b)


def _floor_quotient(use: AtenCall, a: int, b: int) -> int:
    """A quotient of floats, rounded down, right also where it would round up to a whole number."""
    dtype = use.type_of(a).dtype
    zero = use.scalar(0, dtype)
    left = use.binary("Rem", a, b)
    # It divides evenly, up to rounding. One less where what is left has another sign.
    whole = use.unary("Round", use.binary("Div", use.binary("Sub", a, left), b))
    signs = [use.add("Compare", side, zero, op="Lt") for side in (left, b)]
    is_less = use.binary("And", use.binary("Xor", *signs), use.cast(left, "bool"))
    quotient = use.binary("Sub", whole, use.cast(is_less, dtype))
    # One that is 0 has the sign of a plain division only where the dividend is 0.
    zeros = [use.add("Compare", side, zero, op="Eq") for side in (a, b)]
    plain = use.binary("Div", a, b)
    return use.add("Where", use.binary("Or", *zeros), plain, use.binary("Add", quotient, zero))


@handles("__lshift__.Scalar", "__lshift__.Tensor", "__rshift__.Scalar", "__rshift__.Tensor")
def shift(use: AtenCall) -> int:
    """Bits moved."""
    op, dtype = "ShiftLeft" if "lshift" in use.name else "ShiftRight", use.common("self", "other")
    return use.binary(op, use.value("self", dtype), use.value("other", dtype))


@handles("pow.Tensor_Scalar")
def power(use: AtenCall) -> int:
    """A power, which is a number."""
    exponent, dtype = use.number("exponent"), use.common("self", "exponent")
    x = use.value("self", dtype)
    if exponent in (2, 3):
        square = use.binary("Mul", x, x)
        return square if exponent == 2 else use.binary("Mul", square, x)
    if exponent == 1:
        return x
    if float(exponent) in _POWERS and not is_integer(dtype):
        return use.unary(_POWERS[float(exponent)], x)
    return use.binary("Pow", x, use.scalar(exponent, dtype))


@handles("pow.Scalar", "pow.Tensor_Tensor")
def power_of(use: AtenCall) -> int:
    """A power that is computed."""
    dtype = use.common("self", "exponent")
    return use.binary("Pow", use.value("self", dtype), use.value("exponent", dtype))


@handles("square.default")
def square(use: AtenCall) -> int:
    """X times x."""
    x = use.value("self")
    return use.binary("Mul", x, x)


@handles("logical_and.default", "logical_or.default", "logical_xor.default")
def logical(use: AtenCall) -> int:
    """Truth values combined; a number is true where it is not 0."""
    op = _WORDS[use.name.removeprefix("logical_")]
    return use.binary(op, use.value("self", "bool"), use.value("other", "bool"))


@handles("__and__.Tensor", "__or__.Tensor", "__xor__.Tensor", "__and__.Scalar", "__or__.Scalar",
         "__xor__.Scalar")  # fmt: skip
def bitwise(use: AtenCall) -> int:
    """Bits, or truth values, combined."""
    dtype = use.common("self", "other")
    a, b = use.value("self", dtype), use.value("other", dtype)
    return use.binary(_WORDS[use.name.strip("_")], a, b)


@handles("logical_not.default")
def logical_not(use: AtenCall) -> int:
    """The opposite truth value."""
    return use.unary("Not", use.value("self", "bool"))


def mask(use: AtenCall, name: str) -> int:
    """An argument that chooses: truth values, or as of old bytes."""
    if isinstance(use.get(name), Tensor) and use.dtype_of(name) not in ("bool", "u8"):
        raise Unsupported(f"`{name}` is of {use.dtype_of(name)}, expected truth values")
    return use.value(name, "bool")


@handles("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(use: AtenCall) -> int:
    """The one or the other."""
    dtype = use.common("self", "other")
    a, b = use.value("self", dtype), use.value("other", dtype)
    return use.add("Where", mask(use, "condition"), a, b)


@handles("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(use: AtenCall) -> int:
    """A number where a mask is true."""
    filling = use.value("value", use.dtype_of("self"))
    return use.add("Where", mask(use, "mask"), filling, use.value("self"))


@handles("clamp.default", "clamp.Tensor", "clip.default", "clamp_min.default",
         "clamp_max.default", "hardtanh.default", "relu6.default")  # fmt: skip
def clamp(use: AtenCall) -> int:
    """X between two ends, either of which may be open."""
    low, high = (use.get(name, use.get(f"{name}_val")) for name in ("min", "max"))
    if use.name == "relu6":
        low, high = 0, 6
    names = ["self", *(n for n in ("min", "max") if use.has(n))]
    dtype = use.common(*names)
    x = use.value("self", dtype)
    if not any(isinstance(end, Tensor) for end in (low, high)) and not is_integer(dtype):
        ends = {"min": low, "max": high}
        return use.add("Clip", x, **{k: float(v) for k, v in ends.items() if v is not None})
    for end, op in ((low, "Max"), (high, "Min")):
        x = x if end is None else use.binary(op, x, use.as_value(end, dtype))
    return x


@handles("threshold.default")
def threshold(use: AtenCall) -> int:
    """X, and a number where it is not above a threshold."""
    x, dtype = use.value("self"), use.dtype_of("self")
    below = use.add("Compare", x, use.scalar(use.number("threshold"), dtype), op="Le")
    return use.add("Where", below, use.scalar(use.number("value"), dtype), x)


def wanted_type(use: AtenCall, default: str) -> str:
    """The element type that the argument `dtype` names."""
    return element_type(str(use.get("dtype"))) if use.has("dtype") else default


@handles("_to_copy.default", "to.dtype")
def cast(use: AtenCall) -> int:
    """The same values in another element type."""
    return use.cast(use.value("self"), wanted_type(use, use.dtype_of("self")))


@handles("type_as.default")
def type_as(use: AtenCall) -> int:
    """The same values in the element type of another tensor."""
    return use.cast(use.value("self"), use.dtype_of("other"))


@handles("clone.default", "detach.default", "alias.default", "lift_fresh_copy.default",
         "contiguous.default")  # fmt: skip
def identity(use: AtenCall) -> int:
    """The tensor itself."""
    return use.value("self")


@handles("dropout.default", "native_dropout.default", "feature_dropout.default",
         "alpha_dropout.default")  # fmt: skip
def dropout(use: AtenCall) -> int | list[int]:
    """The tensor itself: a dropout drops nothing at inference."""
    if use.get("train", False) and use.number("p", 0.5) > 0:
        raise Unsupported("it drops at random; Core IR has no random numbers", EVAL)
    return [use.value("input")] if use.name == "native_dropout" else use.value("input")


@handles("isfinite.default")
def is_finite(use: AtenCall) -> int:
    """Whether x is neither infinite nor NaN."""
    x = use.value("self", "f64" if is_integer(use.dtype_of("self")) else None)
    odd = use.binary("Or", use.unary("IsNan", x), use.unary("IsInf", x))
    return use.unary("Not", odd)


@handles("copy.default")
def copy(use: AtenCall) -> int:
    """The source in the type and shape of the destination."""
    return use.broadcast_to(use.value("src", use.dtype_of("self")), use.shape_of("self"))


@handles("fill.Scalar", "fill.Tensor")
def fill(use: AtenCall) -> int:
    """One number everywhere."""
    return use.broadcast_to(use.value("value", use.dtype_of("self")), use.shape_of("self"))


@handles("maximum.default", "minimum.default", "max.other", "min.other", "fmax.default",
         "fmin.default")  # fmt: skip
def extremum(use: AtenCall) -> int:
    """The larger or smaller one; NaN wins, or with `fmax` and `fmin` loses."""
    op = "Max" if "ma" in use.name else "Min"
    dtype = use.common("self", "other")
    a, b = use.value("self", dtype), use.value("other", dtype)
    made = function(use, OPS["BinOp"], op, a, b)
    if use.name in ("fmax", "fmin") and not is_integer(dtype):
        for one, other in ((a, b), (b, a)):
            made = use.add("Where", use.unary("IsNan", one), other, made)
    return made


@handles("addcmul.default", "addcdiv.default")
def add_product(use: AtenCall) -> int:
    """Self + value * tensor1 * tensor2, or with a quotient."""
    dtype = use.common("self", "tensor1", "tensor2")
    x, a, b = (use.value(name, dtype) for name in ("self", "tensor1", "tensor2"))
    op = "Mul" if use.name == "addcmul" else "Div"
    factor = use.number("value", 1)
    a = a if factor == 1 else use.binary("Mul", a, use.scalar(factor, dtype))
    return use.binary("Add", x, use.binary(op, a, b))


@handles("lerp.Scalar")
def lerp(use: AtenCall) -> int:
    """Between two ends: start + weight * (end - start), from the nearer end."""
    a, b, weight = use.value("self"), use.value("end"), use.number("weight")
    dtype = use.type_of(a).dtype
    way = use.binary("Sub", b, a)
    if abs(weight) < 0.5:
        return use.binary("Add", a, use.binary("Mul", way, use.scalar(weight, dtype)))
    back = use.binary("Mul", way, use.scalar(1 - weight, dtype))
    return use.binary("Sub", b, back)


@handles("erfc.default")
def erfc(use: AtenCall) -> int:
    """1 - erf(x), exact for small results only to the rounding of 1."""
    x = use.as_float(use.value("self"))
    return use.binary("Sub", use.scalar(1, use.type_of(x).dtype), use.unary("Erf", x))


@handles("nan_to_num.default")
def nan_to_num(use: AtenCall) -> int:
    """NaN and the infinities as numbers."""
    x, dtype = use.value("self"), use.dtype_of("self")
    if is_integer(dtype):
        return x
    element = GRAPH_TYPES[dtype]
    made = x
    for end, name, default in ((inf, "posinf", element.highest), (-inf, "neginf", element.lowest)):
        is_end = use.add("Compare", x, use.scalar(end, dtype), op="Eq")
        made = use.add("Where", is_end, use.scalar(use.number(name, float(default)), dtype), made)
    return use.add("Where", use.unary("IsNan", x), use.scalar(use.number("nan", 0.0), dtype), made)
