"""Functions of two elements, and choices between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from nacre.core.onnx_export.forms.elementwise import invert_bits, min_or_max
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, writes
from nacre.core.unsupported import Unsupported

Function = Callable[[OnnxWriter, Value, Value], Value]


def _native(operation: str) -> Function:
    return lambda site, a, b: site.each(operation, a, b)


def _is_float(value: Value) -> bool:
    return value.dtype in ("f32", "f64")


def _safe_divisor(site: OnnxWriter, b: Value) -> tuple[Value, Value | None]:
    """A divisor without -1, by which the lowest number stops the machine; and where it was -1."""
    known = site.elements(b)
    if known is not None and not (known == -1).any():
        return b, None
    is_minus = site.each("Equal", b, site.number(-1, b.dtype), dtype="bool")
    return site.where(is_minus, site.number(1, b.dtype), b), is_minus


def _quotient(site: OnnxWriter, a: Value, b: Value) -> Value:
    """Cut towards zero; the lowest number by -1 wraps to itself."""
    if _is_float(a):
        return site.each("Div", a, b)
    divisor, is_minus = _safe_divisor(site, b)
    found = site.each("Div", a, divisor)
    return found if is_minus is None else site.where(is_minus, site.each("Neg", a), found)


def _modulus(site: OnnxWriter, a: Value, b: Value) -> Value:
    """With the sign of the divisor."""
    if not _is_float(a):
        return site.each("Mod", a, _safe_divisor(site, b)[0])
    zero = site.number(0, a.dtype)
    rest = site.each("Mod", a, b, fmod=1)
    is_negative = site.each("Less", b, zero, dtype="bool")
    differs = site.each("Xor", is_negative, site.each("Less", rest, zero, dtype="bool"))
    found = site.where(differs, site.each("Add", rest, b), rest)
    nothing = site.where(is_negative, site.number(-0.0, a.dtype), zero)
    return site.where(site.each("Equal", rest, zero, dtype="bool"), nothing, found)


def _remainder(site: OnnxWriter, a: Value, b: Value) -> Value:
    """With the sign of the dividend. Of integers onnxruntime has it by way of f64, so not that."""
    if _is_float(a):
        return site.each("Mod", a, b, fmod=1)
    divisor = _safe_divisor(site, b)[0]
    whole = site.each("Mul", site.each("Div", a, divisor), divisor)
    return site.each("Sub", a, whole)


def _integer_power(site: OnnxWriter, a: Value, b: Value) -> Value:
    """By squaring, for onnxruntime goes by way of f64; exponents must be known."""
    known = site.elements(b)
    if known is None:
        raise Unsupported("an integer power whose exponents are not constant")
    exponents = known.astype(np.int64)
    if (exponents < 0).any():
        raise Unsupported("an integer power with a negative exponent, which fails in every run")
    one = site.number(1, a.dtype)
    result, square = site.expand(one, np.broadcast_shapes(a.shape, b.shape)), a
    for bit in range(int(exponents.max()).bit_length()):
        square = site.each("Mul", square, square) if bit else square
        is_set = site.array((exponents >> bit & 1).astype(np.bool_), "bool")
        result = site.each("Mul", result, site.where(is_set, square, one))
    return result


def _min_or_max(word: str, site: OnnxWriter, a: Value, b: Value) -> Value:
    return min_or_max(site, word, a, b)


# Numbers, in the type that is computed in.
_NUMBERS: Mapping[str, Function] = MappingProxyType(
    {
        **{name: _native(name) for name in ("Add", "Sub", "Mul", "Pow")},
        "Min": partial(_min_or_max, "Min"),
        "Max": partial(_min_or_max, "Max"),
        "Div": _quotient,
        "Mod": _modulus,
        "Rem": _remainder,
    }
)
_LOGIC = frozenset({"And", "Or", "Xor"})


@writes("BinOp")
def binop(site: OnnxWriter) -> Value:
    """`BinOp`."""
    word, (a, b) = str(site.attributes["op"]), site.operands
    if word in _LOGIC:
        return _logic(site, word, a, b)
    if word in _SHIFTS:
        return site.result(_shift(site, word, a, b))
    if word == "Pow" and site.type.element.is_integer:
        return site.result(_integer_power(site, site.wide(a), b))
    return site.result(_NUMBERS[word](site, site.wide(a), site.wide(b)))


def _logic(site: OnnxWriter, word: str, a: Value, b: Value) -> Value:
    if a.dtype == "bool":
        return site.each(word, a, b)
    wide = {"i4": "i8", "u4": "u8"}.get(a.dtype, a.dtype)
    return site.result(site.each(f"Bitwise{word}", site.cast(a, wide), site.cast(b, wide)))


_MOST_SHIFT = 63
_POWERS = np.left_shift(np.int64(1), np.arange(_MOST_SHIFT + 1))  # the last is the least integer


def _shift(site: OnnxWriter, word: str, a: Value, b: Value) -> Value:
    """By powers of two in i64: onnxruntime shifts unsigned integers only."""
    wide, by = site.cast(a, "i64"), site.cast(b, "i64")
    most = site.number(_MOST_SHIFT, "i64")
    powers = site.gather(site.array(_POWERS, "i64"), min_or_max(site, "Min", by, most), 0)
    return _SHIFTS[word](site, wide, powers, site.each("Greater", by, most, dtype="bool"))


def _shift_left(site: OnnxWriter, a: Value, powers: Value, is_far: Value) -> Value:
    """Products wrap, as shifts do."""
    return site.where(is_far, site.number(0, "i64"), site.each("Mul", a, powers))


def _right(site: OnnxWriter, a: Value, powers: Value, is_far: Value) -> Value:
    """Negative numbers fill up with ones: their bits are turned before and after.

    What is not negative gives 0 by the last power too.
    """
    is_below = site.each("Less", a, site.number(0, "i64"), dtype="bool")
    plain = site.each("Div", site.where(is_below, invert_bits(site, a), a), powers)
    return site.where(is_below, invert_bits(site, plain), plain)


_SHIFTS: Mapping[str, Callable[[OnnxWriter, Value, Value, Value], Value]] = MappingProxyType(
    {"ShiftLeft": _shift_left, "ShiftRight": _right}
)
_RELATIONS: Mapping[str, str] = MappingProxyType(
    {
        "Eq": "Equal",
        "Ne": "Equal",
        "Lt": "Less",
        "Le": "LessOrEqual",
        "Gt": "Greater",
        "Ge": "GreaterOrEqual",
    }
)


@writes("Compare")
def compare(site: OnnxWriter) -> Value:
    """`Compare`."""
    word = str(site.attributes["op"])
    given = (site.cast(x, "i32") if x.dtype == "bool" else site.wide(x) for x in site.operands)
    found = site.each(_RELATIONS[word], *given, dtype="bool")
    return site.each("Not", found) if word == "Ne" else found


@writes("Where")
def where(site: OnnxWriter) -> Value:
    """`Where`."""
    return site.where(*site.operands)
