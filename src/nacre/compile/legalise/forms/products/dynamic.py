"""Products whose scale is found at run time, in floats.

Such a model rounds what a layer is given to 8 bits by the range that it has just then. The device
has no scales that are computed, so the product is done with what was rounded, in the precision; a
note says so. Its values differ from the model's own by what the model had lost.
"""

from __future__ import annotations

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.rewrite.site import RewriteSite, Rules, either_order
from nacre.core.values import Array

_PRODUCTS = ("Conv", "ConvTranspose", "Linear", "MatMul")
_VIEWS = ("Reshape", "ExpandDims", "Squeeze")


def product(site: RewriteSite) -> int | None:
    """Scale * (integers of x) * (integers of weights), plus a bias in units of the scale."""
    if site.attributes["op"] != "Mul":
        return None
    for factor, cast in either_order(site.op):
        inner = site.maker(cast, "Cast")
        if inner is None or site.type(inner.operands[0]).dtype != "i32":
            continue
        inner_product, addend = _summands(site, inner.operands[0])
        source = (
            None if inner_product is None else _quantised_source(site, inner_product.operands[0])
        )
        if inner_product is None or source is None:
            continue
        x, scale = source
        channels = _factor_beside_scale(site, factor, scale)
        weights = site.constant(inner_product.operands[1])
        if channels is None or weights is None:
            continue
        bias = None if addend is None else _bias(site, addend, factor)
        if addend is not None and bias is None:
            continue
        literal = site.literal(weights.astype(np.float64), site.op.type.dtype)
        result = site.add(inner_product.opcode, x, literal, **inner_product.attributes)
        result = site.add("BinOp", result, site.literal(channels, site.op.type.dtype), op="Mul")
        if bias is None:
            return result
        return site.add("BinOp", result, site.literal(bias, site.op.type.dtype), op="Add")
    return None


def _summands(site: RewriteSite, value: int) -> tuple[CoreOperation | None, int | None]:
    """A product of integers, and what is added to it."""
    product = site.maker(value, *_PRODUCTS)
    if product is not None:
        return (product, None) if len(product.operands) == 2 else (None, None)
    total = site.maker(value, "BinOp", op="Add")
    for one, other in either_order(total):
        product = site.maker(one, *_PRODUCTS)
        if product is not None and len(product.operands) == 2:
            return product, other
    return None, None


def _quantised_source(site: RewriteSite, value: int) -> tuple[int, int] | None:
    """What was quantised, and the scale that was found for it."""
    less = site.maker(value, "BinOp", op="Sub")
    wide = None if less is None else site.maker(less.operands[0], "Cast")
    stored = None if wide is None else site.maker(wide.operands[0], "Quantize")
    if less is None or stored is None or len(stored.operands) < 3:
        return None
    x, scale, zero = stored.operands
    makers = site.maker(scale, "DynamicQuantizeScale"), site.maker(zero, "DynamicQuantizeZero")
    if any(found is None or found.operands[0] != x for found in makers):
        return None
    behind = site.maker(_before_views(site, less.operands[1]), "Cast")
    return (x, scale) if behind is not None and behind.operands[0] == zero else None


def _before_views(site: RewriteSite, value: int) -> int:
    found = site.maker(value, *_VIEWS)
    return value if found is None else _before_views(site, found.operands[0])


def _factor_beside_scale(site: RewriteSite, factor: int, scale: int) -> Array | None:
    """The constant that a factor has beside the scale of x."""
    factor = _before_views(site, factor)
    if factor == scale:
        return np.ones(())
    both = site.maker(factor, "BinOp", op="Mul")
    if both is None:
        return None
    split = site.split(both)
    return split[1] if split is not None and _before_views(site, split[0]) == scale else None


def _bias(site: RewriteSite, value: int, factor: int) -> Array | None:
    """The bias of which a value is the whole number of scales."""
    shape = site.type(value).shape
    whole = site.maker(_before_views(site, value), "Cast")
    floor = None if whole is None else site.maker(whole.operands[0], "Unary")
    if floor is None or floor.attributes["op"] not in ("Floor", "Round", "Trunc"):
        return None
    over = site.maker(floor.operands[0], "BinOp", op="Div")
    known = None if over is None else site.constant(over.operands[0])
    if over is None or known is None:
        return None
    if _before_views(site, over.operands[1]) != _before_views(site, factor):
        return None
    return np.broadcast_to(known, floor.type.shape).reshape(shape)


DYNAMIC_FORMS: Rules = {"BinOp": [product]}
