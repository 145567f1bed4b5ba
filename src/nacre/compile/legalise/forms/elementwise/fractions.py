"""What is behind the point of a scaled number, before an offset has cost it digits.

Coordinates of pixels are `x * a + b`: of the sum, f16 keeps 1/32 of a pixel beyond 32. Its whole
part less the offset is exact, so the fraction is found against the product, which has more digits.
"""

from __future__ import annotations

import numpy as np

from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def whole_part(site: RewriteSite) -> int | None:
    """`Floor(x * a + b)`: the nearest whole number, and 1 less where the product is below it."""
    v = site.operands[0]
    is_held = site.maker(v, "Clip") is not None  # its ends must not be left
    affine = (
        _scale_and_offset(site, v) if site.attributes["op"] == "Floor" and not is_held else None
    )
    if affine is None:
        return None
    product, offset = affine
    nearest = site.add("Unary", v, op="Round")
    rest = site.add("BinOp", product, _shift(site, nearest, -offset), op="Sub")
    return site.add("BinOp", nearest, site.add("Unary", rest, op="Floor"), op="Add")


def fraction(site: RewriteSite) -> int | None:
    """`v - Floor(v)` and `Floor(v) + c - v` with v = x * a + b, which may be held in bounds."""
    if site.attributes["op"] != "Sub" or site.op.type.element.is_integer:
        return None
    for sign, (v, other) in ((1, site.operands), (-1, site.operands[::-1])):
        whole, more = _summands(site, v, other)
        affine = None if whole is None else _scale_and_offset(site, v)
        if whole is None or affine is None:
            continue
        product, offset = affine
        near = _shift(site, whole, more - offset)
        sides = (product, near) if sign > 0 else (near, product)
        difference = site.add("BinOp", *sides, op="Sub")
        if site.maker(v, "Clip") is None:
            return difference
        # The whole part of what was held may be 1 too high; it has no neighbour to make up for it.
        end = site.literal(np.asarray(more), site.op.type.dtype)
        return site.add("BinOp", difference, end, op="Max" if sign > 0 else "Min")
    return None


def _shift(site: RewriteSite, value: int, by: Array) -> int:
    return site.add("BinOp", value, site.literal(np.asarray(by), site.op.type.dtype), op="Add")


def _summands(site: RewriteSite, v: int, value: int) -> tuple[int | None, Array]:
    """The whole part of v, and a constant that is added to it."""
    if _is_whole_of(site, value, v):
        return value, np.zeros(())
    total = site.maker(value, "BinOp", op="Add")
    split = None if total is None else site.split(total)
    if split is None or not _is_whole_of(site, split[0], v):
        return None, np.zeros(())
    return split[0], split[1].astype(np.float64)


def _is_whole_of(site: RewriteSite, value: int, v: int) -> bool:
    """Whether a value is the whole part of another, in either way of finding it."""
    floor = site.maker(value, "Unary", op="Floor")
    if floor is not None:
        return floor.operands[0] == v
    total = site.maker(value, "BinOp", op="Add")
    nearest = None if total is None else site.maker(total.operands[0], "Unary", op="Round")
    less = None if total is None else site.maker(total.operands[1], "Unary", op="Floor")
    return nearest is not None and less is not None and nearest.operands[0] == v


def _scale_and_offset(site: RewriteSite, value: int) -> tuple[int, Array] | None:
    """The product and the offset of `x * a + b`."""
    bounds = site.maker(value, "Clip")
    affine = _affine(site, value if bounds is None else bounds.operands[0])
    if affine is None:
        return None
    x, scale, offset = affine
    if not offset.all():
        return None  # nothing is lost
    if bounds is not None:
        if scale.size != 1 or offset.size != 1 or not scale.min() > 0:
            return None
        ends = {
            name: (float(str(bounds.attributes[name])) - float(offset.min())) / float(scale.min())
            for name in ("min", "max")
            if name in bounds.attributes
        }
        x = site.add("Clip", x, **ends)
    return site.add("BinOp", x, site.literal(scale, site.op.type.dtype), op="Mul"), offset


def _affine(site: RewriteSite, value: int) -> tuple[int, Array, Array] | None:
    """x, a and b of `x * a + b`, or of `(x + c) * a`."""
    outer = site.maker(value, "BinOp")
    split = None if outer is None else site.split(outer)
    inner = None if split is None else site.maker(split[0], "BinOp")
    rest = None if inner is None else site.split(inner)
    if outer is None or inner is None or split is None or rest is None:
        return None
    words = outer.attributes["op"], inner.attributes["op"]
    last, first = split[1].astype(np.float64), rest[1].astype(np.float64)
    if words == ("Add", "Mul"):
        return rest[0], first, last
    return (rest[0], last, first * last) if words == ("Mul", "Add") else None


FRACTION_FORMS: Rules = {"Unary": [whole_part], "BinOp": [fraction]}
