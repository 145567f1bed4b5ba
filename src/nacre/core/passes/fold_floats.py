"""Arithmetic on weights, done once: what a model computes from its parameters before it is run."""

from __future__ import annotations

from math import prod

from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.passes.fold_constants import computed
from nacre.core.passes.sweep import CONSTANTS, Found, Rewrite, Seen, as_constant, sweep

# Elements of results that are larger than what they are computed from, in one walk.
_BUDGET = 1 << 24
_KINDS = frozenset({"elementwise", "reduction"})
# A cast stays where it is: kernels take weights as they are stored.
_OPCODES = {name for name, spec in OPS.items() if _KINDS & spec.traits and name != "Cast"}
_FOLDED = frozenset(_OPCODES | {"MatMul"})


def fold_floats(module: Module) -> Module:
    """Compute what follows from float constants alone, with the kernels that would run it.

    - elementwise operations, reductions and `MatMul`, such as `1 + weight`, `weight * scale`,
      `w + a @ b`
    - `Reshape`, `Transpose` and other views between them

    Results may differ in their last bits from those of another platform, so this is no part of the
    canonical form: it is for a module that is run where it is rewritten. Parameters lose names.
    """
    return sweep(module.without_parameters(), _folding())


def _folding() -> Rewrite:
    left = _BUDGET
    made: set[int] = set()  # what this walk has computed

    def fold(op: CoreOperation, seen: Seen) -> Found:
        nonlocal left
        is_moved = "view" in OPS[op.opcode].traits and made.issuperset(op.operands)
        if not (op.opcode in _FOLDED or is_moved) or not _is_float(op, seen):
            return None
        sizes = [prod(seen.definitions[value].type.shape) for value in op.operands]
        growth = max(prod(op.type.shape) - sum(sizes), 0)
        arrays = [seen.constant(value) for value in op.operands]
        known = [array for array in arrays if array is not None]
        if growth > left or len(known) < len(arrays):
            return None
        result = computed(op, known, seen)
        if result is None:
            return None
        left -= growth
        made.add(op.value_id)
        return as_constant(op, result)

    return fold


def _is_float(op: CoreOperation, seen: Seen) -> bool:
    """Whether an operation is on float constants alone, and gives floats."""
    given = [seen.definitions[value] for value in op.operands]
    if not given or not all(source.opcode in CONSTANTS for source in given):
        return False
    return not any(one.type.element.is_integer for one in (*given, op))
