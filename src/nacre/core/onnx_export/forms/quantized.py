"""Between reals and the integers that stand for them, and operations on those integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.casts import truncate_floats
from nacre.core.onnx_export.forms.elementwise import clip_between
from nacre.core.onnx_export.forms.reductions import reduce_axes
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, writes

QUANTIZED = ("i4", "u4", "i8", "u8", "i16", "u16", "f8e4m3", "f8e5m2")


def _as_scalar(writer: OnnxWriter, value: Value) -> Value:
    """One scale or zero point for all as a scalar; ONNX takes a list of one for one channel."""
    return writer.reshape(value, ()) if value.shape == (1,) else value


def _broadcast_scales(writer: OnnxWriter, value: Value, x: Value) -> Value:
    """Scales or zero points, to be broadcast against a tensor."""
    if value.shape in ((), (1,)):
        return writer.reshape(value, ())
    axis, block = writer.attributes["axis"] % x.type.rank, writer.attributes["block"]
    if not block:
        return writer.reshape(value, [d if a == axis else 1 for a, d in enumerate(x.shape)])
    places = np.arange(x.shape[axis]) // block
    return writer.gather(value, writer.array(places, "i64"), axis)


def _axis_attributes(writer: OnnxWriter, value: Value) -> dict[str, object]:
    if value.shape in ((), (1,)):
        return {}
    block = writer.attributes["block"]
    return {"axis": writer.attributes["axis"], **({"block_size": block} if block else {})}


@writes("Quantize")
def quantize(writer: OnnxWriter) -> Value:
    """`Quantize`."""
    x, scale, *zero = writer.operands
    to = writer.type.dtype
    if x.dtype == "f64" or to not in QUANTIZED:
        return _divide_by_scale(writer, x, scale, zero)
    given = _axis_attributes(writer, scale)
    scale = _as_scalar(writer, writer.to_compute_type(scale))
    # It says the type of the result.
    offset = _as_scalar(writer, zero[0]) if zero else _zeros(writer, scale.shape, to)
    return writer.add(
        "QuantizeLinear", writer.to_compute_type(x), scale, offset, type_=writer.type, **given
    )


def _zeros(writer: OnnxWriter, shape: tuple[int, ...], dtype: str) -> Value:
    return writer.array(np.zeros(shape, GRAPH_TYPES[dtype].dtype), dtype)


def _divide_by_scale(writer: OnnxWriter, x: Value, scale: Value, zero: Sequence[Value]) -> Value:
    """By the formula: what is far outside stops at the ends either way."""
    real = writer.to_compute_type(x)
    steps = writer.elementwise(
        "Div", real, _broadcast_scales(writer, writer.to_compute_type(scale), x)
    )
    if not writer.type.element.is_integer:
        ends = writer.type.element
        return writer.to_result_type(clip_between(writer, steps, ends.lowest, ends.highest))
    offset = _broadcast_scales(writer, zero[0], x) if zero else writer.number(0, "i32")
    return round_steps(writer, steps, offset)


def round_steps(writer: OnnxWriter, steps: Value, zero: Value) -> Value:
    """Steps of a scale rounded, moved by a zero point and stopped at the ends; NaN counts as 0."""
    rounded = writer.elementwise("Round", steps)
    is_unknown = writer.elementwise("IsNaN", rounded, dtype="bool")
    known = writer.where(is_unknown, writer.number(0, steps.dtype), rounded)
    # f64 counts the steps of 32 bits.
    moved = writer.elementwise("Add", writer.cast(known, "f64"), writer.cast(zero, "f64"))
    return truncate_floats(writer, moved, writer.type.dtype)


@writes("Dequantize")
def dequantize(writer: OnnxWriter) -> Value:
    """`Dequantize`."""
    x, scale, *zero = writer.operands
    wide = writer.to_compute_type(scale)
    if wide.dtype == "f64" or (x.dtype == "i32" and zero):
        exact = "f64" if not x.type.element.is_integer or wide.dtype == "f64" else "i64"
        steps = writer.cast(x, exact)
        if zero:
            steps = writer.elementwise(
                "Sub", steps, writer.cast(_broadcast_scales(writer, zero[0], x), exact)
            )
        reals = writer.cast(steps, wide.dtype)
        return writer.to_result_type(
            writer.elementwise("Mul", reals, _broadcast_scales(writer, wide, x))
        )
    given = _axis_attributes(writer, scale)
    operands = (x, _as_scalar(writer, wide), *(_as_scalar(writer, value) for value in zero))
    type_ = TensorType(wide.dtype, x.shape)
    return writer.to_result_type(writer.add("DequantizeLinear", *operands, type_=type_, **given))


def _dynamic_range(writer: OnnxWriter) -> tuple[Value, Value]:
    """The scale of u8 that holds the range of x and 0, and where that range begins."""
    x = writer.to_compute_type(writer.operands[0])
    zero, axes = writer.number(0, x.dtype), tuple(range(x.type.rank))
    low, high = (
        writer.elementwise(
            word, writer.reshape(reduce_axes(writer, f"Reduce{word}", x, axes), ()), zero
        )
        for word in ("Min", "Max")
    )
    scale = writer.elementwise(
        "Div", writer.elementwise("Sub", high, low), writer.number(255, x.dtype)
    )
    is_flat = writer.elementwise("Equal", high, low, dtype="bool")
    return writer.where(is_flat, writer.number(1, x.dtype), scale), low


@writes("DynamicQuantizeScale")
def dynamic_scale(writer: OnnxWriter) -> Value:
    """`DynamicQuantizeScale`."""
    return writer.to_result_type(_dynamic_range(writer)[0])


@writes("DynamicQuantizeZero")
def dynamic_zero(writer: OnnxWriter) -> Value:
    """`DynamicQuantizeZero`."""
    scale, low = _dynamic_range(writer)
    steps = clip_between(
        writer, writer.elementwise("Div", writer.elementwise("Neg", low), scale), 0, 255
    )
    return truncate_floats(writer, writer.elementwise("Round", steps), "u8")
