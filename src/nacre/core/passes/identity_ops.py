"""Operations that give back what they take."""

from __future__ import annotations

from nacre.core.module import CoreOperation, Module
from nacre.core.passes.sweep import Found, Seen, sweep

# Elements keep their order here, so the same type means the same tensor. A slice with positive
# steps that is as large as its input is all of it.
_BY_TYPE = frozenset(
    {"Reshape", "ExpandDims", "Squeeze", "Slice", "Broadcast", "Tile", "Concat", "Cast"}
)
_REDUCTIONS = frozenset({"Sum", "Mean"})


def identity_ops(module: Module) -> Module:
    """Remove operations that change nothing.

    - `Reshape` to the shape that is there, `ExpandDims` and `Squeeze` of no axis
    - `Transpose` by the identity
    - `Slice` of everything, `Broadcast` and `Tile` to the shape that is there, `Concat` of one
      tensor, `Cast` to the type that is there (a saturating one stays: it holds infinities)
    - `Sum` and `Mean` of integers over axes of size 1 that are kept, or of a scalar; of floats
      they stay: a sum that starts from 0 loses the sign of -0.0
    """
    return sweep(module, without_identity)


def without_identity(op: CoreOperation, seen: Seen) -> Found:
    """The operand of an operation that changes nothing."""
    opcode = op.opcode
    if opcode == "Cast" and op.attributes.get("saturate", False):
        return None  # infinities do not stay
    if opcode in _BY_TYPE:
        return op.operands[0] if _keeps_type(op, seen) else None
    if opcode == "Transpose":
        permutation = op.attributes["permutation"]
        return op.operands[0] if permutation == tuple(range(len(permutation))) else None
    if opcode in _REDUCTIONS and op.type.element.is_integer:
        return op.operands[0] if _keeps_type(op, seen) else None
    return None


def _keeps_type(op: CoreOperation, seen: Seen) -> bool:
    return seen.definitions[op.operands[0]].type == op.type
