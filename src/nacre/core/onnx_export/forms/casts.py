"""`Cast` and what goes with it: floats to integers stop at the ends, which ONNX leaves open."""

from __future__ import annotations

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx_export.forms.elementwise import clip_between
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, writes

_I64_END = 2.0**63  # one more than the greatest


@writes("Cast")
def cast(writer: OnnxWriter) -> Value:
    """`Cast`."""
    (x,), to = writer.operands, writer.type.dtype
    source, target = GRAPH_TYPES[x.dtype], GRAPH_TYPES[to]
    if x.dtype == to and not writer.attributes["saturate"]:
        return x
    if target.kind == "bool" or source.kind == "bool":
        return writer.cast(writer.to_compute_type(x) if source.kind != "bool" else x, to)
    if source.kind == "float" and target.is_integer:
        return truncate_floats(writer, writer.to_compute_type(x), to)
    if writer.attributes["saturate"]:
        x = saturate_numbers(writer, x, to)
    return writer.cast(x, to)


def saturate_numbers(writer: OnnxWriter, x: Value, to: str) -> Value:
    """Numbers at the ends of a type, where that has fewer."""
    source, target = GRAPH_TYPES[x.dtype], GRAPH_TYPES[to]
    if not target.is_integer:
        if source.is_integer and source.highest <= target.highest:
            return x
        wide = writer.cast(x, "f64") if to == "f64" else writer.to_compute_type(x)
        return clip_between(writer, wide, target.lowest, target.highest)
    return clip_between(writer, writer.cast(x, "i64"), target.lowest, target.highest)


def saturate_integers(writer: OnnxWriter, x: Value, to: str) -> Value:
    """Integers in another type, stopped at its ends."""
    if x.dtype == to:
        return x
    return writer.cast(saturate_numbers(writer, x, to), to)


def truncate_floats(writer: OnnxWriter, x: Value, to: str) -> Value:
    """F32 or f64 cut towards zero, stopped at the ends of a type; NaN gives 0."""
    known = writer.where(writer.elementwise("IsNaN", x, dtype="bool"), writer.number(0, x.dtype), x)
    if to == "i64":
        return _truncate_to_i64(writer, known)
    element = GRAPH_TYPES[to]
    # f32 does not hold the ends of 32 bits.
    exact = writer.cast(known, "f64") if element.bits == 32 else known
    inside = writer.cast(
        clip_between(writer, exact, element.lowest, element.highest), _intermediate_type(to)
    )
    return writer.cast(inside, to)


def _intermediate_type(to: str) -> str:
    """A type on the way to 4 bits and to u32, which readers cut floats to in several ways."""
    return {"i4": "i32", "u4": "i32", "u32": "i64"}.get(to, to)


def _truncate_to_i64(writer: OnnxWriter, x: Value) -> Value:
    """The same for i64, whose greatest value is no float."""
    is_above = writer.elementwise(
        "GreaterOrEqual", x, writer.number(_I64_END, x.dtype), dtype="bool"
    )
    is_below = writer.elementwise("Less", x, writer.number(-_I64_END, x.dtype), dtype="bool")
    zero = writer.number(0, x.dtype)
    inside = writer.where(writer.elementwise("Or", is_above, is_below), zero, x)
    ends = GRAPH_TYPES["i64"]
    bounded = writer.where(is_below, writer.number(ends.lowest, "i64"), writer.cast(inside, "i64"))
    return writer.where(is_above, writer.number(ends.highest, "i64"), bounded)
