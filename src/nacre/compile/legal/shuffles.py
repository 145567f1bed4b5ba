"""Products of pixels before the pixels are moved, where that leaves fewer elements to move.

A transposed convolution is a product and a shuffle of pixels. Where another product of single
pixels follows that leaves fewer channels, the shuffle can wait for it.
"""

from __future__ import annotations

from nacre.compile.legal.rounds import Forms
from nacre.compile.legal.windows import reshaped
from nacre.core.inference.rewriting import Site


def before_a_shuffle(site: Site) -> int | None:
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
    made = site.add("Linear", moved.operands[0], *site.operands[1:], **site.op.attributes)
    return reshaped(site, site.add("Transpose", made, permutation=order), shape)


SHUFFLE_FORMS: Forms = {"Linear": [before_a_shuffle]}
