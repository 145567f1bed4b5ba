"""`Cast` and what goes with it: floats to integers stop at the ends, which ONNX leaves open."""

from __future__ import annotations

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx_export.forms.elementwise import clip_between
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, writes

_I64_END = 2.0**63  # one more than the greatest


@writes("Cast")
def cast(site: OnnxWriter) -> Value:
    """`Cast`."""
    (x,), to = site.operands, site.type.dtype
    source, target = GRAPH_TYPES[x.dtype], GRAPH_TYPES[to]
    if x.dtype == to and not site.attributes["saturate"]:
        return x
    if target.kind == "bool" or source.kind == "bool":
        return site.cast(site.wide(x) if source.kind != "bool" else x, to)
    if source.kind == "float" and target.is_integer:
        return whole(site, site.wide(x), to)
    if site.attributes["saturate"]:
        x = saturate_numbers(site, x, to)
    return site.cast(x, to)


def saturate_numbers(site: OnnxWriter, x: Value, to: str) -> Value:
    """Numbers at the ends of a type, where that has fewer."""
    source, target = GRAPH_TYPES[x.dtype], GRAPH_TYPES[to]
    if not target.is_integer:
        if source.is_integer and source.highest <= target.highest:
            return x
        wide = site.cast(x, "f64") if to == "f64" else site.wide(x)
        return clip_between(site, wide, target.lowest, target.highest)
    return clip_between(site, site.cast(x, "i64"), target.lowest, target.highest)


def saturate_integers(site: OnnxWriter, x: Value, to: str) -> Value:
    """Integers in another type, stopped at its ends."""
    if x.dtype == to:
        return x
    return site.cast(saturate_numbers(site, x, to), to)


def whole(site: OnnxWriter, x: Value, to: str) -> Value:
    """F32 or f64 cut towards zero, stopped at the ends of a type; NaN gives 0."""
    known = site.where(site.each("IsNaN", x, dtype="bool"), site.number(0, x.dtype), x)
    if to == "i64":
        return _longest(site, known)
    element = GRAPH_TYPES[to]
    # f32 does not hold the ends of 32 bits.
    exact = site.cast(known, "f64") if element.bits == 32 else known
    inside = site.cast(clip_between(site, exact, element.lowest, element.highest), _way(to))
    return site.cast(inside, to)


def _way(to: str) -> str:
    """A type on the way to 4 bits and to u32, which readers cut floats to in several ways."""
    return {"i4": "i32", "u4": "i32", "u32": "i64"}.get(to, to)


def _longest(site: OnnxWriter, x: Value) -> Value:
    """The same for i64, whose greatest value is no float."""
    is_above = site.each("GreaterOrEqual", x, site.number(_I64_END, x.dtype), dtype="bool")
    is_below = site.each("Less", x, site.number(-_I64_END, x.dtype), dtype="bool")
    zero = site.number(0, x.dtype)
    inside = site.where(site.each("Or", is_above, is_below), zero, x)
    ends = GRAPH_TYPES["i64"]
    found = site.where(is_below, site.number(ends.lowest, "i64"), site.cast(inside, "i64"))
    return site.where(is_above, site.number(ends.highest, "i64"), found)
