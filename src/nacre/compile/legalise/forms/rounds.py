"""Forms applied until none applies: what one form makes, the next round may take apart.

Labels say which operations of the source a value comes from. What no form has labelled takes the
label of whoever uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nacre.base.diagnostics import InternalError
from nacre.core.inference.rewriting import Pattern, RewriteSite, rewritten
from nacre.core.module import Labels, Module
from nacre.core.passes.dead_code import dead_code
from nacre.core.passes.identities import without_identity_operand
from nacre.core.passes.identity_ops import without_identity
from nacre.core.passes.inverse_pairs import without_pair
from nacre.core.passes.sweep import sweep

Forms = Mapping[str, Sequence[Pattern]]
_MOST_ROUNDS = 40


def labelled(module: Module) -> Module:
    """The module with a label for every value that something labelled is made from."""
    own = module.labels or Labels()
    known = dict(own.nodes)
    for op in reversed(module.operations):
        mine = known.get(op.value_id)
        if mine is not None:
            for operand in op.operands:
                known.setdefault(operand, mine)
    return replace(module, labels=replace(own, nodes=known))


def in_rounds(module: Module, forms: Forms) -> Module:
    """The module with forms applied until none applies."""
    for _ in range(_MOST_ROUNDS):
        counted = _Counted(forms)
        made = labelled(rewritten(module, counted.forms))
        if not counted.applied:
            return module
        module = made
    raise InternalError(f"forms still apply after {_MOST_ROUNDS} rounds: {counted.applied}")


class _Counted:
    """Forms that note which of them applied."""

    def __init__(self, forms: Forms) -> None:
        self.applied: set[str] = set()
        self.forms: Forms = {
            opcode: [self._noting(opcode, pattern) for pattern in patterns]
            for opcode, patterns in forms.items()
        }

    def _noting(self, opcode: str, pattern: Pattern) -> Pattern:
        def noted(site: RewriteSite) -> int | None:
            made = pattern(site)
            if made is not None:
                self.applied.add(opcode)
            return made

        return noted


def tidied(module: Module) -> Module:
    """The module without operations that do nothing or undo each other.

    That is the canonical form but for what looks at every constant: it is done after each table.
    """
    made = sweep(module, without_identity, without_pair, without_identity_operand)
    return labelled(replace(dead_code(made), labels=made.labels))


def merged(*tables: Forms) -> Forms:
    """Several tables as one; those that come first are tried first."""
    found: dict[str, list[Pattern]] = {}
    for table in tables:
        for opcode, patterns in table.items():
            found.setdefault(opcode, []).extend(patterns)
    return found
