"""Functions of two elements, and choices between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from nacre.core.onnx_export.forms.elementwise import invert_bits, min_or_max
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, writes
from nacre.core.unsupported import Unsupported

Function = Callable[[OnnxWriter, Value, Value], Value]


def _native(operation: str) -> Function:
    return lambda writer, a, b: writer.elementwise(operation, a, b)


def _is_float(value: Value) -> bool:
    return value.dtype in ("f32", "f64")


def _safe_divisor(writer: OnnxWriter, b: Value) -> tuple[Value, Value | None]:
    """A divisor without -1, by which the lowest number stops the machine; and where it was -1."""
    known = writer.elements(b)
    if known is not None and not (known == -1).any():
        return b, None
    is_minus = writer.elementwise("Equal", b, writer.number(-1, b.dtype), dtype="bool")
    return writer.where(is_minus, writer.number(1, b.dtype), b), is_minus


def _quotient(writer: OnnxWriter, a: Value, b: Value) -> Value:
    """Cut towards zero; the lowest number by -1 wraps to itself."""
    if _is_float(a):
        return writer.elementwise("Div", a, b)
    divisor, is_minus = _safe_divisor(writer, b)
    quotient = writer.elementwise("Div", a, divisor)
    return (
        quotient
        if is_minus is None
        else writer.where(is_minus, writer.elementwise("Neg", a), quotient)
    )


def _modulus(writer: OnnxWriter, a: Value, b: Value) -> Value:
    """With the sign of the divisor."""
    if not _is_float(a):
        return writer.elementwise("Mod", a, _safe_divisor(writer, b)[0])
    zero = writer.number(0, a.dtype)
    rest = writer.elementwise("Mod", a, b, fmod=1)
    is_negative = writer.elementwise("Less", b, zero, dtype="bool")
    differs = writer.elementwise(
        "Xor", is_negative, writer.elementwise("Less", rest, zero, dtype="bool")
    )
    modulus = writer.where(differs, writer.elementwise("Add", rest, b), rest)
    nothing = writer.where(is_negative, writer.number(-0.0, a.dtype), zero)
    return writer.where(writer.elementwise("Equal", rest, zero, dtype="bool"), nothing, modulus)


def _remainder(writer: OnnxWriter, a: Value, b: Value) -> Value:
    """With the sign of the dividend. Of integers onnxruntime has it by way of f64, so not that."""
    if _is_float(a):
        return writer.elementwise("Mod", a, b, fmod=1)
    divisor = _safe_divisor(writer, b)[0]
    whole = writer.elementwise("Mul", writer.elementwise("Div", a, divisor), divisor)
    return writer.elementwise("Sub", a, whole)


def _integer_power(writer: OnnxWriter, a: Value, b: Value) -> Value:
    """By squaring, for onnxruntime goes by way of f64; exponents must be known."""
    known = writer.elements(b)
    if known is None:
        raise Unsupported("an integer power whose exponents are not constant")
    exponents = known.astype(np.int64)
    if (exponents < 0).any():
        raise Unsupported("an integer power with a negative exponent, which fails in every run")
    one = writer.number(1, a.dtype)
    result, square = writer.expand(one, np.broadcast_shapes(a.shape, b.shape)), a
    for bit in range(int(exponents.max()).bit_length()):
        square = writer.elementwise("Mul", square, square) if bit else square
        is_set = writer.array((exponents >> bit & 1).astype(np.bool_), "bool")
        result = writer.elementwise("Mul", result, writer.where(is_set, square, one))
    return result


def _min_or_max(word: str, writer: OnnxWriter, a: Value, b: Value) -> Value:
    return min_or_max(writer, word, a, b)


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
def binop(writer: OnnxWriter) -> Value:
    """`BinOp`."""
    word, (a, b) = str(writer.attributes["op"]), writer.operands
    if word in _LOGIC:
        return _logic(writer, word, a, b)
    if word in _SHIFTS:
        return writer.to_result_type(_shift(writer, word, a, b))
    if word == "Pow" and writer.type.element.is_integer:
        return writer.to_result_type(_integer_power(writer, writer.to_compute_type(a), b))
    return writer.to_result_type(
        _NUMBERS[word](writer, writer.to_compute_type(a), writer.to_compute_type(b))
    )


def _logic(writer: OnnxWriter, word: str, a: Value, b: Value) -> Value:
    if a.dtype == "bool":
        return writer.elementwise(word, a, b)
    wide = {"i4": "i8", "u4": "u8"}.get(a.dtype, a.dtype)
    return writer.to_result_type(
        writer.elementwise(f"Bitwise{word}", writer.cast(a, wide), writer.cast(b, wide))
    )


_MOST_SHIFT = 63
_POWERS = np.left_shift(np.int64(1), np.arange(_MOST_SHIFT + 1))  # the last is the least integer


def _shift(writer: OnnxWriter, word: str, a: Value, b: Value) -> Value:
    """By powers of two in i64: onnxruntime shifts unsigned integers only."""
    wide, by = writer.cast(a, "i64"), writer.cast(b, "i64")
    most = writer.number(_MOST_SHIFT, "i64")
    powers = writer.gather(writer.array(_POWERS, "i64"), min_or_max(writer, "Min", by, most), 0)
    return _SHIFTS[word](
        writer, wide, powers, writer.elementwise("Greater", by, most, dtype="bool")
    )


def _shift_left(writer: OnnxWriter, a: Value, powers: Value, is_far: Value) -> Value:
    """Products wrap, as shifts do."""
    return writer.where(is_far, writer.number(0, "i64"), writer.elementwise("Mul", a, powers))


def _shift_right(writer: OnnxWriter, a: Value, powers: Value, is_far: Value) -> Value:
    """Negative numbers fill up with ones: their bits are turned before and after.

    What is not negative gives 0 by the last power too.
    """
    is_below = writer.elementwise("Less", a, writer.number(0, "i64"), dtype="bool")
    plain = writer.elementwise("Div", writer.where(is_below, invert_bits(writer, a), a), powers)
    return writer.where(is_below, invert_bits(writer, plain), plain)


_SHIFTS: Mapping[str, Callable[[OnnxWriter, Value, Value, Value], Value]] = MappingProxyType(
    {"ShiftLeft": _shift_left, "ShiftRight": _shift_right}
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
def compare(writer: OnnxWriter) -> Value:
    """`Compare`."""
    word = str(writer.attributes["op"])
    given = (
        writer.cast(x, "i32") if x.dtype == "bool" else writer.to_compute_type(x)
        for x in writer.operands
    )
    truth = writer.elementwise(_RELATIONS[word], *given, dtype="bool")
    return writer.elementwise("Not", truth) if word == "Ne" else truth


@writes("Where")
def where(writer: OnnxWriter) -> Value:
    """`Where`."""
    return writer.where(*writer.operands)
