"""Quantised operations for a device that computes in floats: between the integers that they meant.

Integers stay where a model has them. What a fused operation computes in between is done in floats:
its operands dequantised, its result quantised, as its own definition has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, Rules, either_order
from nacre.core.values import Array

_SHIFT = 128  # from u8 to i8, which is what the device's units have
_ROWS = ("Gather", "GatherAxis")
_WIDE = ("i16", "u16")
_PRODUCTS = ("MatMul", "Linear", "Conv")
_MOST = 255  # of a weight that was stored in 8 bits
_MOVES = (
    "Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Concat", "Broadcast", "MaxPool",
)  # fmt: skip


def _dequantise(site: RewriteSite, value: int, scale: float, zero: int) -> int:
    """A tensor of integers as the reals that it stands for."""
    dtype = site.type(value).dtype
    at = site.literal(np.array(scale), "f32"), site.literal(np.array(zero), dtype)
    return site.add("Dequantize", value, *at)


def _quantise(site: RewriteSite, value: int) -> int:
    """Reals as the integers of the result."""
    given = site.attributes
    scale, dtype = site.literal(np.array(given["y_scale"]), "f32"), str(given["to"])
    zero = site.literal(np.array(given["y_zero"]), dtype)
    return site.add("Quantize", value, scale, zero, to=dtype)


def product(site: RewriteSite) -> int | None:
    """`QConv` and `QLinear`: the product of dequantised tensors, quantised."""
    x, weights, *bias = site.operands
    given: Mapping[str, Any] = site.attributes
    known = site.constant(weights)
    if known is None or (bias and site.constant(bias[0]) is None):
        return None
    opcode = site.op.opcode.removeprefix("Q")
    is_last = opcode == "Linear" or given["layout"] == "NCHW"
    axis = 0 if is_last else known.ndim - 1
    scales, reals = _weights(known, given, axis)
    operands = [_dequantise(site, x, given["x_scale"], given["x_zero"]), site.literal(reals, "f32")]
    if bias:
        stored = site.constant(bias[0])
        assert stored is not None
        wide = stored.astype(np.float64) * (given["x_scale"] * scales)
        operands.append(site.literal(wide, "f32"))
    names = {a.name for a in OPS[opcode].attributes}
    kept = {name: value for name, value in given.items() if name in names}
    return _quantise(site, site.add(opcode, *operands, **kept))


def _weights(known: Array, given: Mapping[str, Any], axis: int) -> tuple[Array, Array]:
    """The scale of each output channel, and the weights as reals."""
    along = tuple(-1 if at == axis else 1 for at in range(known.ndim))
    scales = np.array(given["w_scales"], np.float64)
    zeros = np.array(given["w_zeros"] or (0,), np.float64)
    reals = (known.astype(np.float64) - zeros.reshape(along)) * scales.reshape(along)
    return scales, reals


def binary(site: RewriteSite) -> int | None:
    """`QBinOp`: the function of dequantised tensors, quantised."""
    given: Mapping[str, Any] = site.attributes
    a = _dequantise(site, site.operands[0], given["a_scale"], given["a_zero"])
    b = _dequantise(site, site.operands[1], given["b_scale"], given["b_zero"])
    return _quantise(site, site.add("BinOp", a, b, op=str(given["op"])))


def pool(site: RewriteSite) -> int | None:
    """`QPool`: the pooling of dequantised elements, quantised."""
    given: Mapping[str, Any] = site.attributes
    opcode = f"{given['op']}Pool"
    names = {a.name for a in OPS[opcode].attributes}
    kept = {name: value for name, value in given.items() if name in names}
    x = _dequantise(site, site.operands[0], given["x_scale"], given["x_zero"])
    return _quantise(site, site.add(opcode, x, **kept))


def pair_as_i8(site: RewriteSite) -> int | None:
    """U8 between `Quantize` and `Dequantize`: i8, with zero points that are 128 lower."""
    quantize = site.maker(site.operands[0], "Quantize", to="u8")
    if quantize is None or len(site.operands) < 3 or len(quantize.operands) < 3:
        return None
    zeros = site.constant(quantize.operands[2]), site.constant(site.operands[2])
    if zeros[0] is None or zeros[1] is None:
        return None
    first, second = (
        site.literal(zero.astype(np.int32) - _SHIFT, "i8") for zero in zeros if zero is not None
    )
    around = {
        name: quantize.attributes[name] for name in ("axis", "block") if name in quantize.attributes
    }
    stored = site.add("Quantize", *quantize.operands[:2], first, to="i8", **around)
    return site.add("Dequantize", stored, site.operands[1], second, **site.op.attributes)


def move_unsigned(site: RewriteSite) -> int | None:
    """U8 that is only moved before it is dequantized: reals are, so that a pair comes together."""
    makers = [site.maker(value, "Quantize", to="u8") for value in site.operands]
    first = makers[0] if makers else None
    count = len(makers) if site.op.opcode == "Concat" else 1
    if first is None or len(site.type(first.operands[1]).shape):
        return None
    found = [made for made in makers[:count] if made and made.operands[1:] == first.operands[1:]]
    if len(found) < count:
        return None
    reals = [made.operands[0] for made in found]
    taken = site.add(site.op.opcode, *reals, *site.operands[count:], **site.op.attributes)
    return site.add("Quantize", taken, *first.operands[1:], **first.attributes)


def widen_unsigned(site: RewriteSite) -> int | None:
    """U8 that is counted with: i8, and 128 more."""
    quantize = site.maker(site.operands[0], "Quantize", to="u8")
    zero = (
        None
        if quantize is None or len(quantize.operands) < 3
        else site.constant(quantize.operands[2])
    )
    to = str(site.op.attributes["to"])
    if quantize is None or zero is None or zero.size != 1 or to not in ("i32", "f32"):
        return None
    least = site.literal(zero.astype(np.int32) - _SHIFT, "i8")
    stored = site.add("Quantize", *quantize.operands[:2], least, to="i8")
    return site.add("BinOp", site.add("Cast", stored, to=to),
                    site.literal(np.array(_SHIFT), to), op="Add")  # fmt: skip


def product_of_integers(site: RewriteSite) -> int | None:
    """A product of whole numbers that becomes a float by one factor: of floats, on the NMU.

    The factor goes to both sides in equal parts, so that no sum leaves the floats of 16 bits.
    """
    for cast, factor in either_order(site.op):
        number, inner = site.number(factor), site.maker(cast, "Cast", to="f32")
        product = None if inner is None else site.maker(inner.operands[0], *_PRODUCTS)
        if site.attributes["op"] != "Mul" or number is None or number <= 0 or product is None:
            continue
        sides = [_as_floats(site, value) for value in product.operands]
        values = [side for side in sides if side is not None]
        if len(values) == len(sides) == 2 and product.type.shape == site.op.type.shape:
            part = site.literal(np.array(number**0.5), "f32")
            scaled = [site.add("BinOp", value, part, op="Mul") for value in values]
            return site.add(product.opcode, *scaled, **product.attributes)
    return None


def _as_floats(site: RewriteSite, value: int) -> int | None:
    """Integers of 32 bits that are stored integers less a number, as floats."""
    known = site.constant(value)
    if known is not None:
        return site.literal(known, "f32") if np.abs(known).max(initial=0) <= _MOST else None
    wide, views = site.maker(value, "Cast"), site.maker(value, *_MOVES[:4])
    if wide is not None and site.type(wide.operands[0]).dtype in ("i8", "u8"):
        return site.add("Cast", wide.operands[0], to="f32")
    inner = site.maker(value, "BinOp") if views is None else views
    source = None if inner is None else _as_floats(site, inner.operands[0])
    if inner is None or source is None:
        return None
    if inner is views:
        return site.add(inner.opcode, source, **inner.attributes)
    addend = site.constant(inner.operands[1])
    if addend is None or inner.attributes["op"] not in ("Add", "Sub"):
        return None
    return site.add("BinOp", source, site.literal(addend, "f32"), op=str(inner.attributes["op"]))


def clip_of_wide_pair(site: RewriteSite) -> int | None:
    """16 bits between `Quantize` and `Dequantize`: finer than the floats, so only their ends."""
    quantize = site.maker(site.operands[0], "Quantize")
    if quantize is None or site.type(quantize.value_id).dtype not in _WIDE:
        return None
    known = [site.constant(value) for value in (*quantize.operands[1:], *site.operands[1:])]
    numbers = [float(array.flat[0]) for array in known if array is not None and array.size == 1]
    half = len(numbers) // 2
    if len(numbers) < len(known) or half < 1 or numbers[:half] != numbers[half:]:
        return None
    element = GRAPH_TYPES[site.type(quantize.value_id).dtype]
    zero = numbers[1] if half > 1 else 0.0
    low, high = ((end - zero) * numbers[0] for end in (element.lowest, element.highest))
    return site.add("Clip", quantize.operands[0], min=low, max=high)


def table_as_i8(site: RewriteSite) -> int | None:
    """Rows of a constant table of u8: of i8, with a zero point that is 128 lower."""
    rows = site.maker(site.operands[0], *_ROWS)
    table = None if rows is None else site.constant(rows.operands[0])
    zero = site.constant(site.operands[2]) if len(site.operands) > 2 else np.zeros((), np.uint8)
    if rows is None or table is None or zero is None or table.dtype != np.uint8:
        return None
    moved, at = (site.literal(a.astype(np.int32) - _SHIFT, "i8") for a in (table, zero))
    taken = site.add(rows.opcode, moved, *rows.operands[1:], **rows.attributes)
    return site.add("Dequantize", taken, site.operands[1], at, **site.op.attributes)


def dequantise_by_steps(site: RewriteSite) -> int | None:
    """Integers that the device does not dequantize, or not by one scale: as floats, then scaled."""
    x, scale, *zeros = site.operands
    is_pair = site.maker(x, "Quantize") is not None
    if (_has_region_scale(site) and (is_pair or site.type(x).dtype == "i8")) or OPS[
        "Dequantize"
    ].with_defaults(site.op.attributes)["block"]:
        return None
    value = site.add("Cast", x, to=site.op.type.dtype)
    for part, op in (*((zero, "Sub") for zero in zeros), (scale, "Mul")):
        value = site.add("BinOp", value, _scale_along_axis(site, part, site.op.type.dtype), op=op)
    return value


def quantise_by_channel(site: RewriteSite) -> int | None:
    """A scale for each channel of a computed tensor, or an odd one: divided first."""
    x, scale, *zeros = site.operands
    filled, dtype = OPS["Quantize"].with_defaults(site.op.attributes), site.type(x).dtype
    if _has_region_scale(site) or filled["block"] or site.constant(scale) is None:
        return None
    steps = site.add("BinOp", x, _scale_along_axis(site, scale, dtype), op="Div")
    for zero in zeros:
        steps = site.add("BinOp", steps, _scale_along_axis(site, zero, dtype), op="Add")
    one, none = site.literal(np.ones(()), dtype), site.literal(np.zeros(()), str(filled["to"]))
    return site.add("Quantize", steps, one, none, to=filled["to"])


def _is_single(site: RewriteSite) -> bool:
    """Whether one scale holds for all of a tensor."""
    return site.type(site.operands[1]).shape in ((), (1,))


def _has_region_scale(site: RewriteSite) -> bool:
    """Whether a region can have the scale: one that is known, positive, and normal."""
    known = site.constant(site.operands[1])
    if known is None or not _is_single(site):
        return False
    return bool(np.finfo(np.float32).tiny <= known.flat[0] < np.inf)


def _scale_along_axis(site: RewriteSite, part: int, dtype: str) -> int:
    """A scale or zero point as a float that stretches to the tensor."""
    wide = part if site.type(part).dtype == dtype else site.add("Cast", part, to=dtype)
    if _is_single(site):
        return wide
    axis = OPS[site.op.opcode].with_defaults(site.op.attributes)["axis"]
    rank = len(site.op.type.shape)
    along = tuple(site.type(part).shape[0] if at == axis % rank else 1 for at in range(rank))
    return site.add("Reshape", wide, new_shape=along)


def integers_as_i8(site: RewriteSite) -> int | None:
    """`Quantize` to u8, where somebody wants the integers: to i8, and 128 added to those."""
    x, scale, *given = site.operands
    if site.attributes["to"] != "u8":
        return None
    zero = site.constant(given[0]) if given else np.zeros((), np.int64)
    if zero is None:
        return None
    moved = site.literal(zero.astype(np.int64) - _SHIFT, "i8")
    stored = site.add("Quantize", x, scale, moved, **{**site.op.attributes, "to": "i8"})
    wide = site.add("Cast", stored, to="i32")
    shifted = site.add("BinOp", wide, site.literal(np.array(_SHIFT), "i32"), op="Add")
    return site.add("Cast", shifted, to="u8")


# Behind the others: what has not met its `Dequantize` by then leaves the model, or is counted with.
UNSIGNED_RESULTS: Rules = {"Quantize": [integers_as_i8]}
QUANTIZED_FORMS: Rules = {
    "QConv": [product],
    "QLinear": [product],
    "QBinOp": [binary],
    "QPool": [pool],
    "Quantize": [quantise_by_channel],
    "Dequantize": [clip_of_wide_pair, pair_as_i8, table_as_i8, dequantise_by_steps],
    "Cast": [widen_unsigned],
    "BinOp": [product_of_integers],
    **{opcode: [move_unsigned] for opcode in _MOVES},
}
