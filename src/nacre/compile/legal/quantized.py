"""Quantised operations for a device that computes in floats: between the integers that they meant.

Integers stay where a model has them. What a fused operation computes in between is done in floats:
its operands dequantised, its result quantised, as its own definition has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.compile.legal.rounds import Forms
from nacre.core.inference.rewriting import Site
from nacre.core.ops import OPS
from nacre.core.values import Array

_SHIFT = 128  # from u8 to i8, which is what the device's units have


def _reals(site: Site, value: int, scale: float, zero: int) -> int:
    """A tensor of integers as the reals that it stands for."""
    dtype = site.type(value).dtype
    at = site.literal(np.array(scale), "f32"), site.literal(np.array(zero), dtype)
    return site.add("Dequantize", value, *at)


def _stored(site: Site, value: int) -> int:
    """Reals as the integers of the result."""
    given = site.attributes
    scale, dtype = site.literal(np.array(given["y_scale"]), "f32"), str(given["to"])
    zero = site.literal(np.array(given["y_zero"]), dtype)
    return site.add("Quantize", value, scale, zero, to=dtype)


def product(site: Site) -> int | None:
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
    operands = [_reals(site, x, given["x_scale"], given["x_zero"]), site.literal(reals, "f32")]
    if bias:
        stored = site.constant(bias[0])
        assert stored is not None
        wide = stored.astype(np.float64) * (given["x_scale"] * scales)
        operands.append(site.literal(wide, "f32"))
    names = {a.name for a in OPS[opcode].attributes}
    kept = {name: value for name, value in given.items() if name in names}
    return _stored(site, site.add(opcode, *operands, **kept))


def _weights(known: Array, given: Mapping[str, Any], axis: int) -> tuple[Array, Array]:
    """The scale of each output channel, and the weights as reals."""
    along = tuple(-1 if at == axis else 1 for at in range(known.ndim))
    scales = np.array(given["w_scales"], np.float64)
    zeros = np.array(given["w_zeros"] or (0,), np.float64)
    reals = (known.astype(np.float64) - zeros.reshape(along)) * scales.reshape(along)
    return scales, reals


def binary(site: Site) -> int | None:
    """`QBinOp`: the function of dequantised tensors, quantised."""
    given: Mapping[str, Any] = site.attributes
    a = _reals(site, site.operands[0], given["a_scale"], given["a_zero"])
    b = _reals(site, site.operands[1], given["b_scale"], given["b_zero"])
    return _stored(site, site.add("BinOp", a, b, op=str(given["op"])))


def pool(site: Site) -> int | None:
    """`QPool`: the pooling of dequantised elements, quantised."""
    given: Mapping[str, Any] = site.attributes
    opcode = f"{given['op']}Pool"
    names = {a.name for a in OPS[opcode].attributes}
    kept = {name: value for name, value in given.items() if name in names}
    x = _reals(site, site.operands[0], given["x_scale"], given["x_zero"])
    return _stored(site, site.add(opcode, x, **kept))


def shifted_pair(site: Site) -> int | None:
    """U8 between `Quantize` and `Dequantize`: i8, with zero points that are 128 lower."""
    made = site.maker(site.operands[0], "Quantize", to="u8")
    if made is None or len(site.operands) < 3 or len(made.operands) < 3:
        return None
    zeros = site.constant(made.operands[2]), site.constant(site.operands[2])
    if zeros[0] is None or zeros[1] is None:
        return None
    first, second = (
        site.literal(zero.astype(np.int32) - _SHIFT, "i8") for zero in zeros if zero is not None
    )
    around = {name: made.attributes[name] for name in ("axis", "block") if name in made.attributes}
    stored = site.add("Quantize", *made.operands[:2], first, to="i8", **around)
    return site.add("Dequantize", stored, site.operands[1], second, **site.op.attributes)


QUANTIZED_FORMS: Forms = {
    "QConv": [product],
    "QLinear": [product],
    "QBinOp": [binary],
    "QPool": [pool],
    "Dequantize": [shifted_pair],
}
