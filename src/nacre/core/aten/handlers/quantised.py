"""Calls between reals and stored integers: what PT2E and torchao leave in an exported program."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall
from nacre.core.aten.dtypes import element_type
from nacre.core.aten.remedies import OTHERWISE
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

_NS = "quantized_decomposed."
_OF_TENSOR = ("per_tensor.default", "per_tensor.tensor")
_FOUR_BITS = {"i8": "i4", "u8": "u4"}  # what holds them where their bounds say so
_STORED = ("i8", "u8", "i16", "u16", "i32", "i4", "u4")


@handles(*(f"{_NS}quantize_{kind}" for kind in _OF_TENSOR))
def quantize_per_tensor(call: AtenCall) -> int:
    """round(x / scale) + zero, held between two bounds."""
    scale, to = _number(call, "scale"), _stored_type(call)
    zero = call.constant(np.array(int(_number(call, "zero_point"))), to)
    x = call.value("input", "f32")
    return _bounded(call, call.add("Quantize", x, call.scalar(scale, "f32"), zero, to=to), to)


@handles(*(f"{_NS}dequantize_{kind}" for kind in _OF_TENSOR))
def dequantize_per_tensor(call: AtenCall) -> int:
    """(x - zero) * scale."""
    x, to = call.value("input"), call.dtype_of("input")
    _require_stored(to)
    zero = call.constant(np.array(int(_number(call, "zero_point"))), to)
    real = call.add("Dequantize", x, call.scalar(_number(call, "scale"), "f32"), zero)
    return _in_result_type(call, real)


@handles(f"{_NS}quantize_per_channel.default")
def quantize_per_channel(call: AtenCall) -> int:
    """The same with a scale for each place of an axis."""
    to, axis = _stored_type(call), call.axis("axis", "input")
    operands = [call.value("input", "f32"), call.value("scales", "f32"), *_zeros(call, to)]
    return _bounded(call, call.add("Quantize", *operands, axis=axis, to=to), to)


@handles(f"{_NS}dequantize_per_channel.default")
def dequantize_per_channel(call: AtenCall) -> int:
    """(x - zero) * scale, of each place of an axis."""
    (stored, to), axis = _stored_weights(call), call.axis("axis", "input")
    operands = [stored, call.value("scales", "f32"), *_zeros(call, to)]
    return _in_result_type(call, call.add("Dequantize", *operands, axis=axis))


@handles(f"{_NS}dequantize_per_channel_group.default")
def dequantize_per_channel_group(call: AtenCall) -> int:
    """(x - zero) * scale, of so many neighbours along the last axis."""
    weights, to = _stored_weights(call)
    group = call.integer("group_size")
    dims, scales = call.shape_of("input"), call.shape_of("scales")
    if group < 1 or len(dims) != 2 or scales != (dims[0], -(-dims[1] // group)):
        raise Unsupported(f"scales of the shape {list(scales)} for groups of {group} in {dims}")
    operands = [weights, call.value("scales", "f32"), *_zeros(call, to)]
    real = call.add("Dequantize", *operands, axis=1, block=group)
    return _in_result_type(call, real, "output_dtype")


@handles("_weight_int8pack_mm.default")
def int8_weights(call: AtenCall) -> int:
    """Rows by weights [out, in] of 8 bits, each column with a scale."""
    dtype = call.dtype_of("self")
    scales = call.value("scales", "f32")
    weights = call.add("Dequantize", call.value("mat2"), scales, axis=0)
    return call.cast(call.add("Linear", call.value("self", "f32"), weights), dtype)


def _stored_weights(call: AtenCall) -> tuple[int, str]:
    """Stored integers and their type: bytes that are known and have bounds of 4 bits as those."""
    dtype = call.dtype_of("input")
    _require_stored(dtype)
    narrow, known = _FOUR_BITS.get(dtype, ""), call.elements(call.get("input"))
    if narrow and known is not None:
        element = GRAPH_TYPES[narrow]
        low, high = call.integer("quant_min"), call.integer("quant_max")
        fits = known.min() >= element.lowest and known.max() <= element.highest
        if element.lowest <= low and high <= element.highest and fits:
            return call.constant(known.astype(element.dtype), narrow), narrow
    return call.value("input"), dtype


def _number(call: AtenCall, name: str) -> float:
    """A number, or a tensor of one that is known."""
    found = call.get(name)
    if isinstance(found, int | float):
        return float(found)
    elements = call.elements(found)
    if elements is None or elements.size != 1:
        raise Unsupported(f"`{name}` is computed when the model runs", OTHERWISE)
    return float(elements.astype(np.float64).reshape(-1)[0])


def _stored_type(call: AtenCall) -> str:
    to = element_type(str(call.get("dtype")))
    _require_stored(to)
    return to


def _require_stored(dtype: str) -> None:
    if dtype not in _STORED:
        raise Unsupported(f"integers of the type `{dtype}`, expected one of {', '.join(_STORED)}")


def _zeros(call: AtenCall, dtype: str, name: str = "zero_points") -> list[int]:
    """Zero points in the type of the integers; none where all are 0."""
    found = call.elements(call.get(name)) if call.has(name) else np.zeros(1)
    if found is None:
        raise Unsupported(f"`{name}` is computed when the model runs", OTHERWISE)
    if not found.any():
        return []
    element = GRAPH_TYPES[dtype]
    if not (np.rint(found) == found).all() or found.min() < element.lowest or (
        found.max() > element.highest
    ):  # fmt: skip
        raise Unsupported(f"`{name}` has what is no `{dtype}`, as of floats that are added")
    return [call.constant(found.astype(element.dtype), dtype)]


def _bounded(call: AtenCall, stored: int, to: str) -> int:
    """Held between `quant_min` and `quant_max`, where these are not the ends of the type."""
    element = GRAPH_TYPES[to]
    low, high = call.integer("quant_min"), call.integer("quant_max")
    if low <= element.lowest and high >= element.highest:
        return stored
    for op, bound in (("Max", max(low, element.lowest)), ("Min", min(high, element.highest))):
        stored = call.binary(op, stored, call.scalar(bound, to))
    return stored


def _in_result_type(call: AtenCall, real: int, name: str = "out_dtype") -> int:
    return call.cast(real, element_type(str(call.get(name)))) if call.has(name) else real
