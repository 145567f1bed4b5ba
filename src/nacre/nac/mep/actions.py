"""Instructions made ready: what is the same each time is looked up once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nacre.nac.mep.operations.registry import Operation
from nacre.nac.mep.program import Program
from nacre.nac.mep.table import Operand
from nacre.nac.mep.work import Work


@dataclass(frozen=True, slots=True)
class Action:
    """An instruction made ready."""

    do: Operation
    fixed: Mapping[str, Any]  # operands that are the same each time
    reads: tuple[tuple[str, int | tuple[int, ...]], ...]  # slots, by operand
    writes: tuple[int, ...]  # slots
    is_single: bool  # it makes one value, not a row of them

    def perform(self, work: Work) -> None:
        """Do it; Fault says why it cannot be done."""
        reads = {
            name: work.value(slot) if isinstance(slot, int) else [work.value(one) for one in slot]
            for name, slot in self.reads
        }
        results = self.do(work, **self.fixed, **reads)
        if self.is_single:
            work.put(self.writes[0], results)
        elif self.writes:
            for slot, value in zip(self.writes, results, strict=True):
                work.put(slot, value)


def actions_of(program: Program) -> tuple[Action, ...]:
    """The instructions made ready."""
    from nacre.nac.mep.operations.catalogue import operations

    known = operations()
    return tuple([_action(program, index, known) for index in range(len(program.steps))])


def _action(program: Program, index: int, known: Mapping[tuple[str, str], Operation]) -> Action:
    step = program.steps[index]
    word = ""
    fixed: dict[str, Any] = {}
    reads: list[tuple[str, int | tuple[int, ...]]] = []
    writes: list[int] = []
    for place, (operand, field) in enumerate(step.operands_with_fields()):
        if operand.kind in ("slot", "slots"):
            reads.append((operand.name, field))
        elif isinstance(field, tuple):  # of the kind outs
            writes += field
            fixed[operand.name] = len(field)
        elif operand.kind == "out":
            writes.append(field)
        elif operand.kind == "optional_out":
            fixed[operand.name] = field != 0
            writes += [field] if field else []
        elif operand.kind == "choice" and not place:
            word = operand.words[field]
        else:
            fixed[operand.name] = _fixed_operand(program, index, operand, field)
    kinds = [operand.kind for operand in step.row.operands]
    is_single = kinds.count("out") == 1 and "optional_out" not in kinds
    do = known[step.row.mnemonic, word]
    return Action(do, fixed, tuple(reads), tuple(writes), is_single)


def _fixed_operand(program: Program, index: int, operand: Operand, field: int) -> Any:  # noqa: ANN401
    """What an operation gets for an operand that is no slot."""
    if operand.kind == "choice":
        return operand.words[field]
    if operand.kind == "jump":
        return program.target(index, field)
    return program.pool[field].value if operand.kind in ("const", "text") else field
