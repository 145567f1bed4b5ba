"""Products and the moves of pixels around them.

A transposed convolution is a product and a shuffle of pixels. Where another product of single
pixels follows that leaves fewer channels, the shuffle can wait for it. Channels that are put in
another order can be computed in that order.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.windows.windows import Ints
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, Rules


def product_before_shuffle(site: RewriteSite) -> int | None:
    """`Linear` of pixels that were moved about: the product first, and then the move."""
    shape, weights = site.op.type.shape, site.type(site.operands[1]).shape
    if weights[0] >= weights[1]:
        return None
    view = site.only(site.operands[0], "Reshape")
    moved = site.only(site.operands[0] if view is None else view.operands[0], "Transpose")
    if moved is None:
        return None
    order, source = tuple(moved.attributes["permutation"]), site.type(moved.operands[0]).shape
    is_of_pixels = order[-1] == len(order) - 1 and source[-1] == weights[1]
    if not is_of_pixels:
        return None
    product = site.add("Linear", moved.operands[0], *site.operands[1:], **site.op.attributes)
    return site.reshape(site.add("Transpose", product, permutation=order), shape)


def channels_in_order(site: RewriteSite) -> int | None:
    """Channels that are split and transposed: the product's weights in the order that follows."""
    view = site.only(site.operands[0], "Reshape")
    product = None if view is None else _product(site, view.operands[0])
    if view is None or product is None:
        return None
    split, order = view.type.shape, tuple(site.op.attributes["permutation"])
    first = _first_of_channels(split, product.type.shape[-1])
    wanted = [axis for axis in order if first is not None and axis >= first]
    if first is None or wanted == sorted(wanted):
        return None
    places = np.arange(prod(split[first:])).reshape(split[first:])
    places = places.transpose([axis - first for axis in wanted]).ravel()
    axis = 0 if product.opcode == "Linear" else -1
    constants = [(product.operands[1], axis), *((value, 0) for value in product.operands[2:])]
    others = []
    for value, along in constants:
        array = site.constant(value)
        if array is None:
            return None
        others.append(site.literal(np.take(array, places, along), site.type(value).dtype))
    again = site.add(product.opcode, product.operands[0], *others, **product.attributes)
    parts = site.reshape(again, (*split[:first], *(split[a] for a in wanted)))
    now = [axis if axis < first else first + wanted.index(axis) for axis in order]
    return site.add("Transpose", parts, permutation=tuple(now))


def _product(site: RewriteSite, value: int) -> CoreOperation | None:
    """A product with channels last that nothing else sees, each made of all channels before."""
    found = site.only(value, "Linear") or site.only(value, "Conv")
    if found is None or found.opcode == "Linear":
        return found
    filled = OPS["Conv"].with_defaults(found.attributes)
    return found if filled["layout"] == "NHWC" and filled["groups"] == 1 else None


def _first_of_channels(split: Ints, channels: int) -> int | None:
    """The first of the axes that channels are split into; None where they are joined with more."""
    for first in range(len(split) - 1, -1, -1):
        if prod(split[first:]) == channels:
            return first
    return None


SHUFFLE_FORMS: Rules = {"Linear": [product_before_shuffle]}
CHANNEL_ORDER: Rules = {"Transpose": [channels_in_order]}
