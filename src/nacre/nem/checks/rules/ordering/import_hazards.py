"""HAZ08: imported buffers that may be the same memory."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import in_iteration, task_text
from nacre.nem.model.program import Buffer, Operand
from nacre.nem.plan.conflicts import find_alias_conflicts
from nacre.nem.plan.plan import Access
from nacre.nem.spec.limits import MAX_DIAGNOSTICS


@rule("HAZ08", "imported-buffers-may-alias", "Hazards and Aliasing Rules 5")
def imported_buffers_may_alias(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Nothing orders a task that writes an imported buffer and one that touches another import.

    Imported buffers of one memory level are taken to alias each other, at places that nobody
    knows, unless the host says `noalias`. Buffers that are not imported never alias.
    """
    for number, conflict in enumerate(_conflicts(facts)):
        if number >= MAX_DIAGNOSTICS:
            return
        yield conflict
    yield from _within_tasks(facts)


def _conflicts(facts: ProgramFacts) -> Iterator[Diagnostic]:
    seen: set[frozenset[int]] = set()
    for conflict in find_alias_conflicts(facts.plan, _aliases(facts)):
        pair = frozenset({conflict.first.position, conflict.second.position})
        if pair in seen:
            continue
        seen.add(pair)
        first = _access_text(conflict.first, conflict.first_row)
        second = _access_text(conflict.second, conflict.second_row)
        yield imported_buffers_may_alias.at(
            facts.span(conflict.second.operand.node.value),
            f"{second}, {first}, both buffers are imported and may be the same memory, and "
            "nothing orders the two",
            related=(Related(facts.span(conflict.first.operand.node.value), f"{first} here"),),
            help=_mend(conflict.second.operand),
        )


def _within_tasks(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Source and destination of one task."""
    aliases = _aliases(facts)
    for task in facts.program.tasks:
        if task.decorator("memmove") is not None:
            continue
        placed = [(o, b) for o in task.operands if (b := _buffer(o)) and b.index in aliases]
        writes = [(o, b) for o, b in placed if o.access == "write"]
        for operand, buffer in writes:
            other = next((b for _, b in placed if b != buffer and b.memory == buffer.memory), None)
            if other is not None:
                yield imported_buffers_may_alias.at(
                    facts.span(operand.node.value),
                    f"{task_text(task)} writes `{buffer.name}` and touches `{other.name}`; both "
                    "are imported and may be the same memory",
                    help=_mend(operand),
                )
                break


def _aliases(facts: ProgramFacts) -> dict[int, str]:
    """The buffers that may alias others, and the memory in which each lies."""
    memories: dict[int, str] = {}
    for buffer in facts.program.buffers:
        mark = facts.imports.get(buffer.name)
        if mark is not None and mark.may_alias:
            memories[buffer.index] = buffer.memory
    return memories


def _buffer(operand: Operand) -> Buffer | None:
    return operand.region.buffer if operand.region is not None else None


def _access_text(access: Access, row: int) -> str:
    buffer = _buffer(access.operand)
    verb = "writes" if access.is_write else "reads"
    name = buffer.name if buffer is not None else "?"
    return f"{task_text(access.task)} {verb} `{name}`{in_iteration(access.grid, row)}"


def _mend(operand: Operand) -> str:
    buffer = _buffer(operand)
    name = buffer.name if buffer is not None else "BUF"
    return f"order them, or import `{name}:mutable:noalias` where it is memory of its own"
