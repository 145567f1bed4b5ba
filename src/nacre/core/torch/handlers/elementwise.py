"""Operations of ATen on one element at a time that need more than their row says."""

from __future__ import annotations

from nacre.base.elements import GRAPH_TYPES
from nacre.core.ops import OPS
from nacre.core.torch.handlers.derived import function
from nacre.core.torch.handlers.table import handles
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import EVAL
from nacre.core.torch.use import AtenCall, Tensor
from nacre.core.unsupported import Unsupported

# PyTorch computes these powers in another way; so must we.
_POWERS = {0.5: "Sqrt", -0.5: "Rsqrt", -1.0: "Reciprocal"}


@handles("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar")
def add(use: AtenCall) -> int:
    """A sum or difference; `alpha` scales the second operand."""
    alpha = use.get("alpha", 1)
    other = use.value("other", use.dtype)
    if alpha != 1:
        other = use.binary("Mul", other, use.scalar(alpha, use.dtype))
    op = "Add" if use.name.startswith("add") else "Sub"
    return function(use, OPS["BinOp"], op, use.value("self", use.dtype), other)


@handles("div.Tensor_mode", "div.Scalar_mode")
def div_mode(use: AtenCall) -> int:
    """A quotient, rounded down or towards zero."""
    mode = use.get("rounding_mode")
    a, b = use.value("self", use.dtype), use.value("other", use.dtype)
    is_integer = GRAPH_TYPES[use.dtype].is_integer
    if mode is None:
        return use.binary("Div", a, b)
    if mode == "trunc":
        quotient = use.binary("Div", a, b)
        return quotient if is_integer else use.add("Unary", quotient, op="Trunc")
    if is_integer:  # what is left has the sign of the divisor, so the rest divides evenly
        return use.binary("Div", use.binary("Sub", a, use.binary("Mod", a, b)), b)
    return _floored(use, a, b)


def _floored(use: AtenCall, a: int, b: int) -> int:
    """A quotient of floats, rounded down, right also where it would round up to a whole number."""
    zero = use.scalar(0, use.dtype)
    left = use.binary("Rem", a, b)
    # It divides evenly, up to rounding. One less where what is left has another sign.
    whole = use.add("Unary", use.binary("Div", use.binary("Sub", a, left), b), op="Round")
    signs = [use.add("Compare", side, zero, op="Lt") for side in (left, b)]
    is_less = use.binary("And", use.binary("Xor", *signs), truth_of(use, left))
    quotient = use.binary("Sub", whole, use.cast(is_less, use.dtype))
    # One that is 0 has the sign of a plain division only where the dividend is 0.
    zeros = [use.add("Compare", side, zero, op="Eq") for side in (a, b)]
    plain = use.binary("Div", a, b)
    return use.add("Where", use.binary("Or", *zeros), plain, use.binary("Add", quotient, zero))


@handles("__lshift__.Scalar", "__lshift__.Tensor", "__rshift__.Scalar", "__rshift__.Tensor")
def shift(use: AtenCall) -> int:
    """Bits moved."""
    op = "ShiftLeft" if "lshift" in use.name else "ShiftRight"
    return use.binary(op, use.value("self", use.dtype), use.value("other", use.dtype))


@handles("pow.Tensor_Scalar")
def power(use: AtenCall) -> int:
    """A power, which is a number."""
    exponent = use.get("exponent")
    x = use.value("self", use.dtype)
    if exponent in (2, 3):
        square = use.binary("Mul", x, x)
        return square if exponent == 2 else use.binary("Mul", square, x)
    if exponent == 1:
        return x
    if float(exponent) in _POWERS and not GRAPH_TYPES[use.dtype].is_integer:
        return use.add("Unary", x, op=_POWERS[float(exponent)])
    return use.binary("Pow", x, use.scalar(exponent, use.dtype))


@handles("pow.Scalar", "pow.Tensor_Tensor")
def power_of(use: AtenCall) -> int:
    """A power that is computed."""
    return use.binary("Pow", use.value("self", use.dtype), use.value("exponent", use.dtype))


@handles("logical_and.default", "logical_or.default", "logical_xor.default")
def logical(use: AtenCall) -> int:
    """Truth values combined; a number is true where it is not 0."""
    op = {"and": "And", "or": "Or", "xor": "Xor"}[use.name.split(".")[0].split("_")[1]]
    return use.binary(op, truth(use, "self"), truth(use, "other"))


@handles("logical_not.default")
def logical_not(use: AtenCall) -> int:
    """The opposite truth value."""
    return use.add("Unary", truth(use, "self"), op="Not")


def truth(use: AtenCall, name: str) -> int:
    """An operand as truth values."""
    return truth_of(use, use.value(name))


def truth_of(use: AtenCall, value: int) -> int:
    """A value as truth values."""
    dtype = use.type_of(value).dtype
    if dtype == "bool":
        return value
    return use.add("Compare", value, use.scalar(0, dtype), op="Ne")


@handles("where.self")
def where(use: AtenCall) -> int:
    """The one or the other."""
    a, b = use.value("self", use.dtype), use.value("other", use.dtype)
    return use.add("Where", truth(use, "condition"), a, b)


@handles("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(use: AtenCall) -> int:
    """A number where a mask is true."""
    x, filling = use.value("self"), use.value("value", use.dtype)
    return use.add("Where", use.value("mask"), filling, x)


@handles("clamp.default", "clamp.Tensor", "hardtanh.default")
def clamp(use: AtenCall) -> int:
    """X between two ends, either of which may be open."""
    x, dtype = use.value("self", use.dtype), use.dtype
    low, high = (use.get(name, use.get(f"{name}_val")) for name in ("min", "max"))
    plain = all(end is None or isinstance(end, int | float) for end in (low, high))
    if plain and not GRAPH_TYPES[dtype].is_integer:
        ends = {"min": low, "max": high}
        return use.add("Clip", x, **{k: float(v) for k, v in ends.items() if v is not None})
    for end, op in ((low, "Max"), (high, "Min")):
        x = x if end is None else use.binary(op, x, use.taken(end, dtype))
    return x


@handles("_to_copy.default")
def cast(use: AtenCall) -> Tensor:
    """The same values in another element type."""
    value, target = use.value("self"), use.dtype
    if target == "bool":
        return truth(use, "self")
    return use.cast(value, target)


@handles("clone.default", "detach.default", "alias.default", "lift_fresh_copy.default",
         "dropout.default", "native_dropout.default")  # fmt: skip
def identity(use: AtenCall) -> int | list[int]:
    """The tensor itself; a dropout drops nothing at inference."""
    if "dropout" in use.name and use.get("train", False) and use.get("p", 0.5) > 0:
        raise Unsupported("it drops at random; Core IR has no random numbers", EVAL)
    value = use.value("self" if "self" in use.names else "input")
    return [value] if use.name.startswith("native") else value


@handles("isfinite.default")
def is_finite(use: AtenCall) -> int:
    """Whether x is neither infinite nor NaN."""
    x = use.value("self", "f64" if GRAPH_TYPES[use.dtype_of("self")].is_integer else None)
    odd = use.binary("Or", use.add("Unary", x, op="IsNan"), use.add("Unary", x, op="IsInf"))
    return use.add("Unary", odd, op="Not")


@handles("copy.default")
def copy(use: AtenCall) -> int:
    """The source in the type and shape of the destination."""
    return use.broadcast_to(use.value("src", use.dtype), use.shape)


@handles("fill.Scalar", "fill.Tensor")
def fill(use: AtenCall) -> Tensor:
    """One number everywhere."""
    number = use.get("value")
    if isinstance(number, int | float):
        return torch().full(use.shape, number, dtype=use.result.dtype)
    return use.broadcast_to(use.value("value", use.dtype), use.shape)


@handles("maximum.default", "minimum.default", "fmax.default", "fmin.default")
def extremum(use: AtenCall) -> int:
    """The larger or smaller one; NaN wins, or with `fmax` and `fmin` loses."""
    name = use.name.split(".")[0]
    op = "Max" if "ma" in name else "Min"
    a, b = use.value("self", use.dtype), use.value("other", use.dtype)
    made = function(use, OPS["BinOp"], op, a, b)
    if name in ("fmax", "fmin") and not GRAPH_TYPES[use.dtype].is_integer:
        for one, other in ((a, b), (b, a)):
            made = use.add("Where", use.add("Unary", one, op="IsNan"), other, made)
    return made
