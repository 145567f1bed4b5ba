"""Scales and shifts of channels, moved into the weights and the bias before them."""

from __future__ import annotations

import numpy as np
from ml_dtypes import finfo

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, per_channel
from nacre.core.values import Array

# The axis of output channels of a product's result, and that of its weights.
_PRODUCTS = ("Conv", "ConvTranspose", "Linear", "MatMul")


def batch_norm(site: RewriteSite) -> int | None:
    """`BatchNorm` of constants after a product: into its weights and bias."""
    x, *parameters = site.operands
    known = [site.constant(p) for p in parameters]
    if any(array is None for array in known):
        return None
    scale, bias, mean, variance = (a.astype(np.float64) for a in known if a is not None)
    epsilon = site.attributes["epsilon"]
    assert isinstance(epsilon, float)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        shift = bias - mean * factor
    product = site.only(x, *_PRODUCTS)
    axis = site.attributes["axis"]
    is_finite = np.isfinite(factor).all() and np.isfinite(shift).all()
    if product is None or axis != _channel_axis(product) or not is_finite:
        return None
    return scale_product(site, product, factor, shift)


def scale(site: RewriteSite) -> int | None:
    """A product times, over, plus or minus a number a channel: into its weights and bias."""
    kind = site.attributes["op"]
    if kind not in ("Mul", "Add", "Div", "Sub"):
        return None
    split = site.split(site.op)
    if split is None or (kind in ("Div", "Sub") and split[0] != site.operands[0]):
        return None
    value, constant = split
    product = site.only(value, *_PRODUCTS)
    if product is None or site.op.type != product.type:
        return None
    numbers = per_channel(constant, product.type.shape, _channel_axis(product))
    if numbers is None or not np.isfinite(numbers).all():
        return None
    if kind in ("Add", "Sub"):
        return scale_product(site, product, None, numbers if kind == "Add" else -numbers)
    if kind == "Div" and (numbers == 0).any():
        return None
    return scale_product(site, product, numbers if kind == "Mul" else 1 / numbers, None)


def _channel_axis(product: CoreOperation) -> int:
    """The axis of channels in the result of a product."""
    if product.opcode in ("Linear", "MatMul"):
        return product.type.rank - 1
    filled = OPS[product.opcode].with_defaults(product.attributes)
    return 1 if filled["layout"] == "NCHW" else product.type.rank - 1


def scale_product(
    site: RewriteSite, product: CoreOperation, factor: Array | None, shift: Array | None
) -> int | None:
    """The product with its channels scaled and shifted; None where its weights are not known."""
    weights = site.constant(product.operands[1])
    if weights is None or product.type.element.is_integer:
        return None
    old = site.constant(product.operands[2]) if len(product.operands) > 2 else None
    if len(product.operands) > 2 and old is None:
        return None
    dtype = product.type.dtype
    new_weights = product.operands[1]
    if factor is not None:
        scaled = _scaled_weights(product, weights, factor)
        if scaled is None or not _is_representable(scaled, weights, product):
            return None
        new_weights = site.literal(scaled, dtype)
    bias = None if old is None else old.astype(np.float64)
    if bias is not None and factor is not None:
        bias = bias * factor
    if shift is not None:
        bias = shift if bias is None else bias + shift
    start = np.zeros(1) if old is None else old
    if bias is not None and not _is_representable(bias, start, product):
        return None
    return _product(site, product, new_weights, bias)


def _is_representable(wide: Array, before: Array, product: CoreOperation) -> bool:
    """Whether the element type of a product holds numbers as it held those before them.

    None may be too large. Some may be so small that they lose digits, which others outweigh.
    """
    limits = finfo(product.type.element.dtype)  # type: ignore[no-untyped-call]
    least, most = float(limits.smallest_normal), float(limits.max)
    size, old = _largest(wide), _largest(before)
    if not size <= most:  # or one is no number: only now is each looked at beside the old one
        sizes, olds = np.abs(wide), np.abs(before.astype(np.float64))
        if bool(((sizes > most) & (olds <= most)).any()):
            return False
    return not 0 < size < least <= old


def _largest(array: Array) -> float:
    """The largest magnitude, without a copy."""
    numbers = _in_floats(array)
    return max(float(numbers.max(initial=0.0)), -float(numbers.min(initial=0.0)))


def _in_floats(array: Array) -> Array:
    """Numbers that NumPy multiplies by those of 64 bits."""
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _scaled_weights(product: CoreOperation, weights: Array, factor: Array) -> Array | None:
    """Weights with their output channels scaled."""
    wide = _in_floats(weights)  # factors are of 64 bits, and so is what comes out
    if product.opcode == "MatMul":
        return wide * factor if weights.ndim == 2 else None
    filled = OPS[product.opcode].with_defaults(product.attributes)
    if product.opcode == "ConvTranspose":
        if filled["groups"] != 1 or filled["layout"] != "NCHW":
            return None
        return wide * factor.reshape(1, -1, *(1,) * (weights.ndim - 2))
    if product.opcode == "Linear" or filled["layout"] == "NCHW":
        return wide * factor.reshape(-1, *(1,) * (weights.ndim - 1))
    return wide * factor


def _product(
    site: RewriteSite, product: CoreOperation, weights: int, bias: Array | None
) -> int | None:
    x, dtype = product.operands[0], product.type.dtype
    if product.opcode != "MatMul":
        rest = () if bias is None else (site.literal(bias, dtype),)
        return site.add(product.opcode, x, weights, *rest, **product.attributes)
    if bias is None:
        return site.add("MatMul", x, weights)
    matrix = site.constant(weights)
    if matrix is None or matrix.ndim != 2:
        return None
    transpose = site.literal(np.ascontiguousarray(matrix.T), dtype)
    return site.add("Linear", x, transpose, site.literal(bias, dtype))


def pad(site: RewriteSite) -> int | None:
    """`Conv` of a `Pad` with zeros: the pads of the convolution."""
    before = site.only(site.operands[0], "Pad", mode="constant", value=0.0)
    if before is None:
        return None
    pads, rank = before.attributes["pads"], site.op.type.rank
    begins, ends = pads[:rank], pads[rank:]
    first = 2 if site.attributes["layout"] == "NCHW" else 1
    inner = slice(first, first + rank - 2)
    outside = [
        p
        for side in (begins, ends)
        for i, p in enumerate(side)
        if not first <= i < first + rank - 2
    ]
    if any(outside) or site.type(site.operands[0]).element.is_integer:
        return None
    own = site.attributes["pads"] or (0,) * (2 * (rank - 2))
    assert isinstance(own, tuple)
    if min(pads) < 0:  # what is cut off would be seen again where the convolution pads
        return None
    joined = tuple(a + b for a, b in zip(own, (*begins[inner], *ends[inner]), strict=True))
    given = {**site.op.attributes, "pads": joined}
    return site.add("Conv", before.operands[0], *site.operands[1:], **given)
