"""Operations that give back what they take."""

from __future__ import annotations

from nacre.core.module import Module
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.site import RewriteSite, Rules

# Elements keep their order here, so the same type means the same tensor. A slice with positive
# steps that is as large as its input is all of it.
_BY_TYPE = ("Reshape", "ExpandDims", "Squeeze", "Slice", "Broadcast", "Tile", "Concat", "Cast")
_REDUCTIONS = ("Sum", "Mean")


def identity_ops(module: Module) -> Module:
    """Remove operations that change nothing.

    - `Reshape` to the shape that is there, `ExpandDims` and `Squeeze` of no axis
    - `Transpose` by the identity
    - `Slice` of everything, `Broadcast` and `Tile` to the shape that is there, `Concat` of one
      tensor, `Cast` to the type that is there (a saturating one stays: it holds infinities)
    - `Sum` and `Mean` of integers over axes of size 1 that are kept, or of a scalar; of floats
      they stay: a sum that starts from 0 loses the sign of -0.0
    """
    return simplify(module, IDENTITY_OPS)


def same_type_view(site: RewriteSite) -> int | None:
    """The operand, where elements stay in order and the type says that all of them are there."""
    if site.op.opcode in _REDUCTIONS and not site.op.type.element.is_integer:
        return None
    if site.op.attributes.get("saturate", False):
        return None  # infinities do not stay
    return site.operands[0] if site.type(site.operands[0]) == site.op.type else None


def idle_transpose(site: RewriteSite) -> int | None:
    """The operand of a transposition that moves nothing."""
    permutation = site.op.attributes["permutation"]
    return site.operands[0] if permutation == tuple(range(len(permutation))) else None


IDENTITY_OPS: Rules = {
    "Transpose": [idle_transpose],
    **{opcode: [same_type_view] for opcode in (*_BY_TYPE, *_REDUCTIONS)},
}
