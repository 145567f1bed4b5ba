"""Operations that undo or swallow the one before them."""

from __future__ import annotations

from nacre.core.module import Module
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import attributes

_REGROUPINGS = ("Reshape", "ExpandDims", "Squeeze")  # elements stay in order, the shape changes


def inverse_pairs(module: Module) -> Module:
    """Join operations that undo each other, or of which the second swallows the first.

    - `Transpose(Transpose(x))` to one `Transpose`, or to x
    - `Reshape` of `Reshape`, `ExpandDims` or `Squeeze` to one `Reshape`, or to x
    - `Squeeze(ExpandDims(x))` and `ExpandDims(Squeeze(x))` with the type of x to x; in general,
      two of `Reshape`, `ExpandDims` and `Squeeze` that lead back to the type of x
    """
    return simplify(module, INVERSE_PAIRS)


def joined_transposes(site: RewriteSite) -> int | None:
    """Two transpositions are one, or none."""
    inner = site.maker(site.operands[0], "Transpose")
    if inner is None:
        return None
    first = inner.attributes["permutation"]
    both = tuple([first[axis] for axis in site.op.attributes["permutation"]])
    if both == tuple(range(len(both))):
        return inner.operands[0]
    return site.replace(*inner.operands, attributes=attributes({"permutation": both}))


def joined_views(site: RewriteSite) -> int | None:
    """A view of a view: none where it leads back, else one `Reshape`."""
    inner = site.maker(site.operands[0], *_REGROUPINGS)
    if inner is None:
        return None
    source = inner.operands[0]
    if site.type(source) == site.op.type:
        return source
    return site.replace(source) if site.op.opcode == "Reshape" else None


INVERSE_PAIRS: Rules = {
    "Transpose": [joined_transposes],
    **{opcode: [joined_views] for opcode in _REGROUPINGS},
}
