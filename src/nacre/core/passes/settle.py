"""All local rewrites at once."""

from __future__ import annotations

from nacre.core.module import Module
from nacre.core.passes.common_subexpressions import joining
from nacre.core.passes.fold_constants import folding
from nacre.core.passes.identities import without_identity_operand
from nacre.core.passes.identity_ops import without_identity
from nacre.core.passes.inverse_pairs import without_pair
from nacre.core.passes.operand_order import in_order
from nacre.core.passes.sweep import sweep


def settle(module: Module) -> Module:
    """Apply the rewrites of the passes above together, until none of them applies.

    - what one rewrite lays open, another takes up: `Transpose(Neg(Neg(Transpose(x))))` is x. One
      walk does it, however deep they are nested, and makes the pipeline idempotent
    """
    return sweep(
        module,
        in_order,
        folding(),
        without_identity,
        without_pair,
        without_identity_operand,
        joining(),
    )
