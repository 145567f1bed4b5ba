"""Algebraic identities that hold for every value, bit for bit."""

from __future__ import annotations

from math import copysign, prod

import numpy as np

from nacre.core.module import CoreOperation, Module
from nacre.core.passes.fold_constants import MAX_ELEMENTS
from nacre.core.passes.sweep import Found, Seen, as_constant, sweep

_NUMBERS = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "f16", "f32", "f64"})


def identities(module: Module) -> Module:
    """Apply identities that no value breaks.

    - x + 0 to x for integers, x + -0.0 to x for floats (-0.0 + 0.0 is 0.0, so x + 0.0 stays)
    - x - 0 to x for integers, x - 0.0 to x for floats (x - -0.0 stays)
    - x * 1 to x; the constant may also stand on the left of + and *
    - x * 0 to 0 for integers (of floats, NaN, infinities and -0.0 speak against it)
    - `Neg(Neg(x))` to x, `Relu(Relu(x))` to `Relu(x)`
    """
    return sweep(module, without_identity_operand)


def without_identity_operand(op: CoreOperation, seen: Seen) -> Found:
    """What an operation comes to whose constant or operand makes it simple."""
    if op.opcode == "BinOp":
        return _arithmetic(op, seen)
    if op.opcode in ("Neg", "Relu"):
        inner = seen.of(op.operands[0], op.opcode)
        if inner is not None:
            return inner.operands[0] if op.opcode == "Neg" else inner.value_id
    return None


def _arithmetic(op: CoreOperation, seen: Seen) -> Found:
    kind, (a, b) = op.attributes["op"], op.operands
    if kind not in ("Add", "Sub", "Mul") or op.type.dtype not in _NUMBERS:
        return None
    sides = ((a, b),) if kind == "Sub" else ((a, b), (b, a))
    for x, constant in sides:
        fill = seen.fill(constant)
        if fill is None:
            continue
        if _is_neutral(kind, fill) and seen.definitions[x].type == op.type:
            return x
        if (
            kind == "Mul"
            and type(fill) is int
            and fill == 0
            and prod(op.type.shape) <= MAX_ELEMENTS
        ):
            return as_constant(op, np.zeros(op.type.shape, op.type.element.dtype))
    return None


def _is_neutral(kind: str, fill: int | float) -> bool:
    """Whether x kind fill is x for every x."""
    if kind == "Mul":
        return fill == 1
    if fill != 0:
        return False
    if isinstance(fill, int):
        return True
    return copysign(1.0, fill) == (-1.0 if kind == "Add" else 1.0)
