"""Between reals and the integers that stand for them, and operations on those integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.casts import whole
from nacre.core.onnx_export.forms.elementwise import clip_between
from nacre.core.onnx_export.forms.reductions import reduce_axes
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, writes

QUANTIZED = ("i4", "u4", "i8", "u8", "i16", "u16", "f8e4m3", "f8e5m2")


def _one(site: OnnxWriter, value: Value) -> Value:
    """One scale or zero point for all as a scalar; ONNX takes a list of one for one channel."""
    return site.reshape(value, ()) if value.shape == (1,) else value


def _broadcast_scales(site: OnnxWriter, value: Value, x: Value) -> Value:
    """Scales or zero points, to be broadcast against a tensor."""
    if value.shape in ((), (1,)):
        return site.reshape(value, ())
    axis, block = site.attributes["axis"] % x.type.rank, site.attributes["block"]
    if not block:
        return site.reshape(value, [d if a == axis else 1 for a, d in enumerate(x.shape)])
    places = np.arange(x.shape[axis]) // block
    return site.gather(value, site.array(places, "i64"), axis)


def _where_to(site: OnnxWriter, value: Value) -> dict[str, object]:
    if value.shape in ((), (1,)):
        return {}
    block = site.attributes["block"]
    return {"axis": site.attributes["axis"], **({"block_size": block} if block else {})}


@writes("Quantize")
def quantize(site: OnnxWriter) -> Value:
    """`Quantize`."""
    x, scale, *zero = site.operands
    to = site.type.dtype
    if x.dtype == "f64" or to not in QUANTIZED:
        return _divide_by_scale(site, x, scale, zero)
    given = _where_to(site, scale)
    scale = _one(site, site.wide(scale))
    # It says the type of the result.
    offset = _one(site, zero[0]) if zero else _nothing(site, scale.shape, to)
    return site.add("QuantizeLinear", site.wide(x), scale, offset, type_=site.type, **given)


def _nothing(site: OnnxWriter, shape: tuple[int, ...], dtype: str) -> Value:
    return site.array(np.zeros(shape, GRAPH_TYPES[dtype].dtype), dtype)


def _divide_by_scale(site: OnnxWriter, x: Value, scale: Value, zero: Sequence[Value]) -> Value:
    """By the formula: what is far outside stops at the ends either way."""
    real = site.wide(x)
    steps = site.each("Div", real, _broadcast_scales(site, site.wide(scale), x))
    if not site.type.element.is_integer:
        ends = site.type.element
        return site.result(clip_between(site, steps, ends.lowest, ends.highest))
    offset = _broadcast_scales(site, zero[0], x) if zero else site.number(0, "i32")
    return round_steps(site, steps, offset)


def round_steps(site: OnnxWriter, steps: Value, zero: Value) -> Value:
    """Steps of a scale rounded, moved by a zero point and stopped at the ends; NaN counts as 0."""
    rounded = site.each("Round", steps)
    is_unknown = site.each("IsNaN", rounded, dtype="bool")
    known = site.where(is_unknown, site.number(0, steps.dtype), rounded)
    # f64 counts the steps of 32 bits.
    moved = site.each("Add", site.cast(known, "f64"), site.cast(zero, "f64"))
    return whole(site, moved, site.type.dtype)


@writes("Dequantize")
def dequantize(site: OnnxWriter) -> Value:
    """`Dequantize`."""
    x, scale, *zero = site.operands
    wide = site.wide(scale)
    if wide.dtype == "f64" or (x.dtype == "i32" and zero):
        exact = "f64" if not x.type.element.is_integer or wide.dtype == "f64" else "i64"
        steps = site.cast(x, exact)
        if zero:
            steps = site.each("Sub", steps, site.cast(_broadcast_scales(site, zero[0], x), exact))
        reals = site.cast(steps, wide.dtype)
        return site.result(site.each("Mul", reals, _broadcast_scales(site, wide, x)))
    given = _where_to(site, scale)
    operands = (x, _one(site, wide), *(_one(site, value) for value in zero))
    type_ = TensorType(wide.dtype, x.shape)
    return site.result(site.add("DequantizeLinear", *operands, type_=type_, **given))


def _range(site: OnnxWriter) -> tuple[Value, Value]:
    """The scale of u8 that holds the range of x and 0, and where that range begins."""
    x = site.wide(site.operands[0])
    zero, axes = site.number(0, x.dtype), tuple(range(x.type.rank))
    low, high = (
        site.each(word, site.reshape(reduce_axes(site, f"Reduce{word}", x, axes), ()), zero)
        for word in ("Min", "Max")
    )
    scale = site.each("Div", site.each("Sub", high, low), site.number(255, x.dtype))
    is_flat = site.each("Equal", high, low, dtype="bool")
    return site.where(is_flat, site.number(1, x.dtype), scale), low


@writes("DynamicQuantizeScale")
def dynamic_scale(site: OnnxWriter) -> Value:
    """`DynamicQuantizeScale`."""
    return site.result(_range(site)[0])


@writes("DynamicQuantizeZero")
def dynamic_zero(site: OnnxWriter) -> Value:
    """`DynamicQuantizeZero`."""
    scale, low = _range(site)
    steps = clip_between(site, site.each("Div", site.each("Neg", low), scale), 0, 255)
    return whole(site, site.each("Round", steps), "u8")
