"""All local rewrites at once."""

from __future__ import annotations

from nacre.core.module import Module
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.exact.common_subexpressions import join_rules
from nacre.core.rewrite.exact.fold_constants import fold_rules
from nacre.core.rewrite.exact.identities import IDENTITIES
from nacre.core.rewrite.exact.identity_ops import IDENTITY_OPS
from nacre.core.rewrite.exact.inverse_pairs import INVERSE_PAIRS
from nacre.core.rewrite.exact.operand_order import OPERAND_ORDER
from nacre.core.rewrite.site import Rules, merge_rules

# Operations that do nothing or undo each other.
IDLE: Rules = merge_rules(IDENTITY_OPS, INVERSE_PAIRS, IDENTITIES)


def settle(module: Module) -> Module:
    """Apply the rewrites of the passes above together, until none of them applies.

    - what one rewrite lays open, another takes up: `Transpose(Neg(Neg(Transpose(x))))` is x. One
      walk does it, however deep they are nested, and makes the pipeline idempotent
    """
    return simplify(module, merge_rules(OPERAND_ORDER, fold_rules(), IDLE, join_rules()))
