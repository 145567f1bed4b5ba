"""Operands of commutative operations in one order."""

from __future__ import annotations

from nacre.core.module import CoreOperation, Module
from nacre.core.ops import is_commutative
from nacre.core.passes.sweep import Found, Seen, sweep, with_operands


def operand_order(module: Module) -> Module:
    """Order the operands of commutative operations by ascending id.

    - `Add(%b, %a)` to `Add(%a, %b)`, `Mul(%b, %a)` to `Mul(%a, %b)`, where a < b. `Sub` and `Div`
      stay as they are, and so do `Min` and `Max` of floats: which zero they give may depend on
      the order.
    """
    return sweep(module, in_order)


def in_order(op: CoreOperation, seen: Seen) -> Found:
    """The operation with its operands ascending."""
    operands = op.operands
    if len(operands) != 2 or operands[0] <= operands[1]:
        return None
    if not is_commutative(op.opcode, op.attributes):
        return None
    if op.attributes.get("op") in ("Min", "Max") and not op.type.element.is_integer:
        return None
    return with_operands(op, operands[1], operands[0])
