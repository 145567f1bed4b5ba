"""Transpositions before what enlarges a tensor: there is less to move."""

from __future__ import annotations

from math import prod

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.inexact.transposes import inverse, slice_attributes
from nacre.core.rewrite.site import RewriteSite, Rules


def transpose_before_resize(site: RewriteSite) -> int | None:
    """The transposition of what a resize enlarges, before it.

    Repetition along the last axis would also move every element alone.
    """
    enlarging = _enlarging_operand(site, "Resize")
    if enlarging is None:
        return None
    order = site.op.attributes["permutation"]
    transposed = site.add("Transpose", enlarging.operands[0], permutation=order)
    filled = OPS["Resize"].with_defaults(enlarging.attributes)
    given = {n: tuple(filled[n][a] for a in order) for n in ("sizes", "scales") if filled[n]}
    return site.add("Resize", transposed, **{**enlarging.attributes, **given})


def transpose_before_mixing_resize(site: RewriteSite) -> int | None:
    """The same before it becomes products and copies, unless those would go along the last axis."""
    enlarging = _enlarging_operand(site, "Resize")
    if enlarging is None:
        return None
    is_mixing = OPS["Resize"].with_defaults(enlarging.attributes)["mode"] != "nearest"
    last = site.op.attributes["permutation"][-1]
    is_kept = enlarging.type.shape[last] == site.type(enlarging.operands[0]).shape[last]
    return transpose_before_resize(site) if is_mixing or is_kept else None


def transpose_before_concat(site: RewriteSite) -> int | None:
    """The transposition of a tensor with slices of itself around it, as reflected borders are.

    Not where those would be slices along the last axis, which are moved element by element.
    """
    enlarging = _enlarging_operand(site, "Concat")
    order = tuple(site.op.attributes["permutation"])
    if enlarging is None or order[-1] == enlarging.attributes["axis"]:
        return None
    slices = [site.maker(value, "Slice") for value in enlarging.operands]
    pairs = zip(enlarging.operands, slices, strict=True)
    sources = {value if part is None else part.operands[0] for value, part in pairs}
    if len(sources) != 1:
        return None
    transposed = site.add("Transpose", sources.pop(), permutation=order)
    parts = [
        transposed if part is None else _slice_before(site, transposed, part, order)
        for part in slices
    ]
    return site.add("Concat", *parts, axis=inverse(order)[enlarging.attributes["axis"]])


def _slice_before(
    site: RewriteSite, transpose: int, part: CoreOperation, order: tuple[int, ...]
) -> int:
    filled = OPS["Slice"].with_defaults(part.attributes)
    return site.add("Slice", transpose, **slice_attributes(filled, inverse(order)))


def _enlarging_operand(site: RewriteSite, opcode: str) -> CoreOperation | None:
    """What a transposition alone sees of an operation that makes more elements than it takes."""
    found = site.only(site.operands[0], opcode)
    if found is None:
        return None
    most = max(prod(site.type(value).shape) for value in found.operands)
    return found if prod(found.type.shape) > most else None


TRANSPOSES_BEFORE_RESIZE: Rules = {"Transpose": [transpose_before_resize]}
TRANSPOSES_BEFORE_ENLARGING: Rules = {
    "Transpose": [transpose_before_mixing_resize, transpose_before_concat]
}
