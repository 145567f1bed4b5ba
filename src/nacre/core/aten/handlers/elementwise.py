"""Calls on one element at a time that need more than their row says."""

from __future__ import annotations

from math import inf

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall, Number, Tensor
from nacre.core.aten.derived import add_elementwise
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
def add(call: AtenCall) -> int | Number:
    """A sum or difference; `alpha` scales the second operand. Of sizes it is a size."""
    first, second = ("other", "self") if call.name == "rsub" else ("self", "other")
    alpha = call.number("alpha", 1)
    operands = (call.get(first), call.get(second))
    if not any(isinstance(f, Tensor) for f in operands):
        a, b = call.number(first), call.number(second) * alpha
        return Number(a + b if call.name == "add" else a - b)
    dtype = call.common_type_of("self", "other")
    a, b = call.value(first, dtype), call.value(second, dtype)
    if alpha != 1:  # it belongs to `other`, or with `rsub` to `self`
        b = call.binary("Mul", b, call.scalar(alpha, dtype))
    return add_elementwise(call, OPS["BinOp"], "Add" if call.name == "add" else "Sub", a, b)


@handles("true_divide.Tensor")
def divide(call: AtenCall) -> int:
    """A true quotient."""
    dtype = call.common_type_of("self", "other")
    return add_elementwise(
        call, OPS["BinOp"], "Div", call.value("self", dtype), call.value("other", dtype)
    )


@handles("div.Tensor_mode", "div.Scalar_mode", "floor_divide.default")
def div_mode(call: AtenCall) -> int:
    """A quotient, rounded down or towards zero."""
    mode = "floor" if call.name == "floor_divide" else call.get("rounding_mode")
    dtype = call.common_type_of("self", "other")
    a, b = call.value("self", dtype), call.value("other", dtype)
    if mode is None:
        return add_elementwise(call, OPS["BinOp"], "Div", a, b)
    if mode == "trunc":
        quotient = call.binary("Div", a, b)
        return quotient if is_integer(dtype) else call.unary("Trunc", quotient)
    if is_integer(dtype):  # what is left has the sign of the divisor, so the rest divides evenly
        return call.binary("Div", call.binary("Sub", a, call.binary("Mod", a, b)), b)
    return _floor_quotient(call, a, b)


def _floor_quotient(call: AtenCall, a: int, b: int) -> int:
    """A quotient of floats, rounded down, right also where it would round up to a whole number."""
    dtype = call.type_of(a).dtype
    zero = call.scalar(0, dtype)
    left = call.binary("Rem", a, b)
    # It divides evenly, up to rounding. One less where what is left has another sign.
    whole = call.unary("Round", call.binary("Div", call.binary("Sub", a, left), b))
    signs = [call.add("Compare", side, zero, op="Lt") for side in (left, b)]
    is_less = call.binary("And", call.binary("Xor", *signs), call.cast(left, "bool"))
    quotient = call.binary("Sub", whole, call.cast(is_less, dtype))
    # One that is 0 has the sign of a plain division only where the dividend is 0.
    zeros = [call.add("Compare", side, zero, op="Eq") for side in (a, b)]
    plain = call.binary("Div", a, b)
    return call.add("Where", call.binary("Or", *zeros), plain, call.binary("Add", quotient, zero))


@handles("__lshift__.Scalar", "__lshift__.Tensor", "__rshift__.Scalar", "__rshift__.Tensor")
def shift(call: AtenCall) -> int:
    """Bits moved."""
    op, dtype = (
        "ShiftLeft" if "lshift" in call.name else "ShiftRight",
        call.common_type_of("self", "other"),
    )
    return call.binary(op, call.value("self", dtype), call.value("other", dtype))


@handles("pow.Tensor_Scalar")
def power(call: AtenCall) -> int:
    """A power, which is a number."""
    exponent, dtype = call.number("exponent"), call.common_type_of("self", "exponent")
    x = call.value("self", dtype)
    if exponent in (2, 3):
        square = call.binary("Mul", x, x)
        return square if exponent == 2 else call.binary("Mul", square, x)
    if exponent == 1:
        return x
    if float(exponent) in _POWERS and not is_integer(dtype):
        return call.unary(_POWERS[float(exponent)], x)
    return call.binary("Pow", x, call.scalar(exponent, dtype))


@handles("pow.Scalar", "pow.Tensor_Tensor")
def power_tensor(call: AtenCall) -> int:
    """A power that is computed."""
    dtype = call.common_type_of("self", "exponent")
    return call.binary("Pow", call.value("self", dtype), call.value("exponent", dtype))


@handles("square.default")
def square(call: AtenCall) -> int:
    """X times x."""
    x = call.value("self")
    return call.binary("Mul", x, x)


@handles("logical_and.default", "logical_or.default", "logical_xor.default")
def logical(call: AtenCall) -> int:
    """Truth values combined; a number is true where it is not 0."""
    op = _WORDS[call.name.removeprefix("logical_")]
    return call.binary(op, call.value("self", "bool"), call.value("other", "bool"))


@handles("__and__.Tensor", "__or__.Tensor", "__xor__.Tensor", "__and__.Scalar", "__or__.Scalar",
         "__xor__.Scalar")  # fmt: skip
def bitwise(call: AtenCall) -> int:
    """Bits, or truth values, combined."""
    dtype = call.common_type_of("self", "other")
    a, b = call.value("self", dtype), call.value("other", dtype)
    return call.binary(_WORDS[call.name.strip("_")], a, b)


@handles("logical_not.default")
def logical_not(call: AtenCall) -> int:
    """The opposite truth value."""
    return call.unary("Not", call.value("self", "bool"))


def mask_argument(call: AtenCall, name: str) -> int:
    """An argument that chooses: truth values, or as of old bytes."""
    if isinstance(call.get(name), Tensor) and call.dtype_of(name) not in ("bool", "u8"):
        raise Unsupported(f"`{name}` is of {call.dtype_of(name)}, expected truth values")
    return call.value(name, "bool")


@handles("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(call: AtenCall) -> int:
    """The one or the other."""
    dtype = call.common_type_of("self", "other")
    a, b = call.value("self", dtype), call.value("other", dtype)
    return call.add("Where", mask_argument(call, "condition"), a, b)


@handles("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(call: AtenCall) -> int:
    """A number where a mask is true."""
    filling = call.value("value", call.dtype_of("self"))
    return call.add("Where", mask_argument(call, "mask"), filling, call.value("self"))


@handles("clamp.default", "clamp.Tensor", "clip.default", "clamp_min.default",
         "clamp_max.default", "hardtanh.default", "relu6.default")  # fmt: skip
def clamp(call: AtenCall) -> int:
    """X between two ends, either of which may be open."""
    low, high = (call.get(name, call.get(f"{name}_val")) for name in ("min", "max"))
    if call.name == "relu6":
        low, high = 0, 6
    names = ["self", *(n for n in ("min", "max") if call.has(n))]
    dtype = call.common_type_of(*names)
    x = call.value("self", dtype)
    if not any(isinstance(end, Tensor) for end in (low, high)) and not is_integer(dtype):
        ends = {"min": low, "max": high}
        return call.add("Clip", x, **{k: float(v) for k, v in ends.items() if v is not None})
    for end, op in ((low, "Max"), (high, "Min")):
        x = x if end is None else call.binary(op, x, call.as_value(end, dtype))
    return x


@handles("threshold.default")
def threshold(call: AtenCall) -> int:
    """X, and a number where it is not above a threshold."""
    x, dtype = call.value("self"), call.dtype_of("self")
    below = call.add("Compare", x, call.scalar(call.number("threshold"), dtype), op="Le")
    return call.add("Where", below, call.scalar(call.number("value"), dtype), x)


def wanted_type(call: AtenCall, default: str) -> str:
    """The element type that the argument `dtype` names."""
    return element_type(str(call.get("dtype"))) if call.has("dtype") else default


@handles("_to_copy.default", "to.dtype")
def cast(call: AtenCall) -> int:
    """The same values in another element type."""
    return call.cast(call.value("self"), wanted_type(call, call.dtype_of("self")))


@handles("type_as.default")
def type_as(call: AtenCall) -> int:
    """The same values in the element type of another tensor."""
    return call.cast(call.value("self"), call.dtype_of("other"))


@handles("clone.default", "detach.default", "alias.default", "lift_fresh_copy.default",
         "contiguous.default")  # fmt: skip
def identity(call: AtenCall) -> int:
    """The tensor itself."""
    return call.value("self")


@handles("dropout.default", "native_dropout.default", "feature_dropout.default",
         "alpha_dropout.default")  # fmt: skip
def dropout(call: AtenCall) -> int | list[int]:
    """The tensor itself: a dropout drops nothing at inference."""
    if call.get("train", False) and call.number("p", 0.5) > 0:
        raise Unsupported("it drops at random; Core IR has no random numbers", EVAL)
    return [call.value("input")] if call.name == "native_dropout" else call.value("input")


@handles("isfinite.default")
def is_finite(call: AtenCall) -> int:
    """Whether x is neither infinite nor NaN."""
    x = call.value("self", "f64" if is_integer(call.dtype_of("self")) else None)
    odd = call.binary("Or", call.unary("IsNan", x), call.unary("IsInf", x))
    return call.unary("Not", odd)


@handles("copy.default")
def copy(call: AtenCall) -> int:
    """The source in the type and shape of the destination."""
    return call.broadcast_to(call.value("src", call.dtype_of("self")), call.shape_of("self"))


@handles("fill.Scalar", "fill.Tensor")
def fill(call: AtenCall) -> int:
    """One number everywhere."""
    return call.broadcast_to(call.value("value", call.dtype_of("self")), call.shape_of("self"))


@handles("maximum.default", "minimum.default", "max.other", "min.other", "fmax.default",
         "fmin.default")  # fmt: skip
def extremum(call: AtenCall) -> int:
    """The larger or smaller one; NaN wins, or with `fmax` and `fmin` loses."""
    op = "Max" if "ma" in call.name else "Min"
    dtype = call.common_type_of("self", "other")
    a, b = call.value("self", dtype), call.value("other", dtype)
    picked = add_elementwise(call, OPS["BinOp"], op, a, b)
    if call.name in ("fmax", "fmin") and not is_integer(dtype):
        for one, other in ((a, b), (b, a)):
            picked = call.add("Where", call.unary("IsNan", one), other, picked)
    return picked


@handles("addcmul.default", "addcdiv.default")
def add_product(call: AtenCall) -> int:
    """Self + value * tensor1 * tensor2, or with a quotient."""
    dtype = call.common_type_of("self", "tensor1", "tensor2")
    x, a, b = (call.value(name, dtype) for name in ("self", "tensor1", "tensor2"))
    op = "Mul" if call.name == "addcmul" else "Div"
    factor = call.number("value", 1)
    a = a if factor == 1 else call.binary("Mul", a, call.scalar(factor, dtype))
    return call.binary("Add", x, call.binary(op, a, b))


@handles("lerp.Scalar")
def lerp(call: AtenCall) -> int:
    """Between two ends: start + weight * (end - start), from the nearer end."""
    a, b, weight = call.value("self"), call.value("end"), call.number("weight")
    dtype = call.type_of(a).dtype
    way = call.binary("Sub", b, a)
    if abs(weight) < 0.5:
        return call.binary("Add", a, call.binary("Mul", way, call.scalar(weight, dtype)))
    back = call.binary("Mul", way, call.scalar(1 - weight, dtype))
    return call.binary("Sub", b, back)


@handles("erfc.default")
def erfc(call: AtenCall) -> int:
    """1 - erf(x), exact for small results only to the rounding of 1."""
    x = call.as_float(call.value("self"))
    return call.binary("Sub", call.scalar(1, call.type_of(x).dtype), call.unary("Erf", x))


@handles("nan_to_num.default")
def nan_to_num(call: AtenCall) -> int:
    """NaN and the infinities as numbers."""
    x, dtype = call.value("self"), call.dtype_of("self")
    if is_integer(dtype):
        return x
    element = GRAPH_TYPES[dtype]
    result = x
    for end, name, default in ((inf, "posinf", element.highest), (-inf, "neginf", element.lowest)):
        is_end = call.add("Compare", x, call.scalar(end, dtype), op="Eq")
        result = call.add(
            "Where", is_end, call.scalar(call.number(name, float(default)), dtype), result
        )
    return call.add(
        "Where", call.unary("IsNan", x), call.scalar(call.number("nan", 0.0), dtype), result
    )
