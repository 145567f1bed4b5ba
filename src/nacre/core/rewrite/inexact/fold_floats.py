"""Arithmetic on weights, done once: what a model computes from its parameters before it is run."""

from __future__ import annotations

from math import prod

from nacre.core.constants import CONSTANTS
from nacre.core.module import Module
from nacre.core.ops import OPS
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.exact.fold_constants import compute_safely
from nacre.core.rewrite.folding import known_operands
from nacre.core.rewrite.site import RewriteSite, Rules

# Elements of results that are larger than what they are computed from, in one walk.
_BUDGET = 1 << 24
_KINDS = frozenset({"elementwise", "reduction"})
# A cast stays where it is: kernels take weights as they are stored.
_OPCODES = {name for name, spec in OPS.items() if _KINDS & spec.traits and name != "Cast"}
_FOLDED = frozenset(_OPCODES | {"MatMul"})
_VIEWS = frozenset(name for name, spec in OPS.items() if "view" in spec.traits)


def fold_floats(module: Module) -> Module:
    """Compute what follows from float constants alone, with the kernels that would run it.

    - elementwise operations, reductions and `MatMul`, such as `1 + weight`, `weight * scale`,
      `w + a @ b`
    - `Reshape`, `Transpose` and other views between them

    Results may differ in their last bits from those of another platform, so this is no part of the
    canonical form: it is for a module that is run where it is rewritten. Parameters lose names.
    """
    return simplify(module.without_parameters(), _fold_rules())


def _fold_rules() -> Rules:
    """The rule, with a budget of its own."""
    left = _BUDGET
    folded: set[int] = set()  # what this walk has computed

    def fold(site: RewriteSite) -> int | None:
        nonlocal left
        op = site.op
        is_moved = op.opcode in _VIEWS and folded.issuperset(op.operands)
        if not (op.opcode in _FOLDED or is_moved) or not _is_float(site):
            return None
        sizes = [prod(site.type(value).shape) for value in op.operands]
        growth = max(prod(op.type.shape) - sum(sizes), 0)
        arrays = known_operands(site) if growth <= left else None
        result = None if arrays is None else compute_safely(site, arrays)
        if result is None:
            return None
        left -= growth
        folded.add(op.value_id)
        return site.replace_by_constant(result)

    return {opcode: [fold] for opcode in _FOLDED | _VIEWS}


def _is_float(site: RewriteSite) -> bool:
    """Whether an operation is on float constants alone, and gives floats."""
    given = [site.maker(value, *CONSTANTS) for value in site.operands]
    known = [source for source in given if source is not None]
    if not known or len(known) < len(given):
        return False
    return not any(one.type.element.is_integer for one in (*known, site.op))
