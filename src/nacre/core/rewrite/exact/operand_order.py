"""Operands of commutative operations in one order."""

from __future__ import annotations

from nacre.core.module import Module
from nacre.core.ops import OPS, is_commutative
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.site import RewriteSite, Rules


def operand_order(module: Module) -> Module:
    """Order the operands of commutative operations by ascending id.

    - `Add(%b, %a)` to `Add(%a, %b)`, `Mul(%b, %a)` to `Mul(%a, %b)`, where a < b. `Sub` and `Div`
      stay as they are, and so do `Min` and `Max` of floats: which zero they give may depend on
      the order.
    """
    return simplify(module, OPERAND_ORDER)


def order_operands(site: RewriteSite) -> int | None:
    """The operation with its operands ascending."""
    first, second = site.operands
    if first <= second or not is_commutative(site.op.opcode, site.op.attributes):
        return None
    return site.replace(second, first)


OPERAND_ORDER: Rules = {
    name: [order_operands] for name, spec in OPS.items() if "commutative" in spec.traits
}
