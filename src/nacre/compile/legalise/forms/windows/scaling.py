"""Numbers that whole tensors are multiplied by, moved up to weights that take them in."""

from __future__ import annotations

import numpy as np

from nacre.core.rewrite.site import RewriteSite, Rules, either_order

_VIEWS = ("Reshape", "ExpandDims", "Squeeze", "Transpose")
_PRODUCTS = ("Linear", "Conv")


def scale_before_views(site: RewriteSite) -> int | None:
    """A product by a number: before the views that lead to known weights."""
    if site.attributes["op"] != "Mul":
        return None
    split = site.split(site.op)
    if split is None or split[1].size != 1 or site.type(split[0]).shape != site.op.type.shape:
        return None
    views, value = [], split[0]
    view = site.only(value, *_VIEWS)
    while view is not None:
        views.append(view)
        value = view.operands[0]
        view = site.only(value, *_VIEWS)
    product = site.only(value, *_PRODUCTS)
    if not views or product is None or site.constant(product.operands[1]) is None:
        return None
    number = site.literal(split[1].reshape(()), site.op.type.dtype)
    scaled = site.add("BinOp", value, number, op="Mul")
    for view in reversed(views):
        scaled = site.add(view.opcode, scaled, **view.attributes)
    return scaled


def join_factors(site: RewriteSite) -> int | None:
    """A number times a product that has a number in it: one number."""
    if site.attributes["op"] != "Mul" or site.op.type.element.is_integer:
        return None
    split = site.split(site.op)
    if split is None or split[1].size != 1:
        return None
    return _scale_inner_number(site, split[0], float(split[1].reshape(())), 2)


def _scale_inner_number(site: RewriteSite, value: int, factor: float, depth: int) -> int | None:
    """A product by a factor, taken up by a number inside of it; None where there is none."""
    inner = site.only(value, "BinOp", op="Mul")
    if inner is None or depth == 0 or inner.type.shape != site.op.type.shape:
        return None
    split = site.split(inner)
    if split is not None:
        if split[1].size != 1:
            return None
        number = float(split[1].reshape(())) * factor
        literal = site.literal(np.array(number), site.op.type.dtype)
        return site.add("BinOp", split[0], literal, op="Mul")
    for one, other in either_order(inner):
        scaled = _scale_inner_number(site, other, factor, depth - 1)
        if scaled is not None:
            return site.add("BinOp", one, scaled, op="Mul")
    return None


SCALING_FORMS: Rules = {"BinOp": [scale_before_views, join_factors]}
