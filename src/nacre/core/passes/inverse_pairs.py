"""Operations that undo or swallow the one before them."""

from __future__ import annotations

from nacre.core.module import CoreOperation, Module
from nacre.core.passes.sweep import Found, Seen, sweep, with_operands
from nacre.core.values import attributes

_REGROUPINGS = ("Reshape", "ExpandDims", "Squeeze")  # elements stay in order, the shape changes


def inverse_pairs(module: Module) -> Module:
    """Join operations that undo each other, or of which the second swallows the first.

    - `Transpose(Transpose(x))` to one `Transpose`, or to x
    - `Reshape` of `Reshape`, `ExpandDims` or `Squeeze` to one `Reshape`, or to x
    - `Squeeze(ExpandDims(x))` and `ExpandDims(Squeeze(x))` with the type of x to x; in general,
      two of `Reshape`, `ExpandDims` and `Squeeze` that lead back to the type of x
    """
    return sweep(module, without_pair)


def without_pair(op: CoreOperation, seen: Seen) -> Found:
    """What an operation and the one before it come to."""
    if op.opcode == "Transpose":
        inner = seen.of(op.operands[0], "Transpose")
        return None if inner is None else _joined(op, inner)
    if op.opcode not in _REGROUPINGS:
        return None
    inner = seen.of(op.operands[0], *_REGROUPINGS)
    if inner is None:
        return None
    source = inner.operands[0]
    if seen.definitions[source].type == op.type:
        return source
    return with_operands(op, source) if op.opcode == "Reshape" else None


def _joined(outer: CoreOperation, inner: CoreOperation) -> CoreOperation | int:
    first, second = inner.attributes["permutation"], outer.attributes["permutation"]
    both = tuple([first[axis] for axis in second])
    if both == tuple(range(len(both))):
        return inner.operands[0]
    made = attributes({"permutation": both})
    return CoreOperation(outer.value_id, "Transpose", inner.operands, made, outer.type)
