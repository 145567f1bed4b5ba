"""Compute tasks bound to memory and to what carries out their opcode."""

from __future__ import annotations

from nacre.base.hints import setting
from nacre.base.rules import Rule
from nacre.kernels.interface.call import Array, Fault, Run
from nacre.nem.model.program import Task
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.actions import Action, Reach
from nacre.nem.run.machine.findings import Findings
from nacre.nem.run.machine.signatures import Signature, Signatures
from nacre.nem.run.memory.layouts import first_unwritten, mark_written
from nacre.nem.run.memory.memory import Memory
from nacre.nem.run.memory.slots import Place, Slot
from nacre.nem.run.sessions.gaps import Gap
from nacre.nem.spec.rules.running import INI02, RUN01, RUN02, RUN03, RUN04

_ZEROS = setting("`--uninitialized zero`", '`uninitialized="zero"`')

_FAULT_RULES: dict[str, Rule] = {
    "index": RUN01,
    "division": RUN02,
    "exponent": RUN02,
    "wrap": RUN03,
    "backend": RUN04,
}


class BoundCall:
    """A signature with its operands' slots and the function that computes it."""

    __slots__ = ("inputs", "outputs", "packed", "run", "signature")

    def __init__(self, signature: Signature, places: list[Place], run: Run) -> None:
        self.signature = signature
        self.run = run
        slots = []
        for place, layout in zip(places, signature.layouts, strict=True):
            if layout is None:
                raise ValueError("a compute operand without type")
            slots.append(Slot(place, layout))
        self.inputs = [s for s in slots if s.place.operand.access == "read"]
        self.outputs = [s for s in slots if s.place.operand.access == "write"]
        # Elements of four bits are computed as bytes and packed afterwards.
        self.packed = [s for s in self.outputs if not s.layout.is_view]


class Compute(Action):
    """A compute task: reads, computes, writes."""

    def __init__(
        self,
        task: Task,
        grid: Grid,
        memory: Memory,
        made: Signatures,
        runs: list[Run],
        findings: Findings,
    ) -> None:
        self.task, self.grid = task, grid
        places = [Place(operand, grid, memory) for operand in task.operands]
        self._calls = [
            BoundCall(s, places, run) for s, run in zip(made.distinct, runs, strict=True)
        ]
        self._index = made.index
        self._findings = findings

    def call(self, row: int) -> BoundCall:
        """The call of a row."""
        index = self._index
        return self._calls[0 if index is None else index[row]]

    def run(self, row: int) -> bool:
        """Compute; a fatal fault leaves the outputs as they were."""
        index = self._index
        call = self._calls[0 if index is None else index[row]]
        inputs: list[Array | None] = []
        for slot in call.inputs:
            if slot.storage.missing and not self._may_read(slot, row):
                return False
            inputs.append(slot.array(row))
        outputs = [slot.array(row) for slot in call.outputs]
        fault = call.run(inputs, outputs)
        if fault is not None:
            self._report(fault, row)
            if fault.is_fatal:
                return False
        if call.packed:
            for slot, values in zip(call.outputs, outputs, strict=True):
                if not slot.layout.is_view:
                    slot.layout.put(slot.storage.data, slot.place.offset(row), values)
        for slot in call.outputs:
            if slot.storage.missing:
                mark_written(slot.layout, slot.storage, slot.place.offset(row))
        return not self._findings.has_error if fault is not None else True

    def _may_read(self, slot: Slot, row: int) -> bool:
        """Report bytes that nobody wrote; False where that stops the run."""
        node = slot.place.operand.node
        if self._findings.is_known(INI02, node):
            return True
        gap = first_unwritten(slot.layout, slot.storage, slot.place.offset(row))
        if gap is None:
            return True
        spec = slot.place.operand.spec
        name = f"operand `{spec.name}` " if spec is not None else ""
        found = Gap(slot.storage, *gap)
        origin = self._findings.origin(found, self.task, row)
        self._findings.report(
            INI02,
            self.task,
            self.grid,
            row,
            f"reads {name}from {found}, which hold data that nothing wrote{origin.sentence}",
            node=node,
            help=f"{origin.remedy}, or run with {_ZEROS}",
            related=origin.related,
        )
        return not self._findings.has_error

    def _report(self, fault: Fault, row: int) -> None:
        rule = _FAULT_RULES[fault.kind]
        place = f" at element {list(fault.position)}" if fault.position is not None else ""
        message = f"cannot go on: {fault.message}{place}" if fault.is_fatal else fault.message
        self._findings.report(rule, self.task, self.grid, row, message)

    def writes(self, row: int) -> list[Reach]:
        """From the first to the last element of every output."""
        return [(s.storage, *s.span(row)) for s in self.call(row).outputs]

    def reads(self, row: int) -> list[Reach]:
        """From the first to the last element of every input."""
        return [(s.storage, *s.span(row)) for s in self.call(row).inputs]
