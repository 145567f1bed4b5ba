"""Compute tasks bound to memory and to what carries out their opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from nacre.base.hints import setting
from nacre.base.rules import Rule
from nacre.kernels.interface.call import Array, Fault, Run
from nacre.kernels.interface.runs import is_widening
from nacre.nem.model.program import Task
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.actions import Action, ByteRange
from nacre.nem.run.machine.findings import Findings
from nacre.nem.run.machine.places import Places, elements
from nacre.nem.run.machine.signatures import Signature, Signatures
from nacre.nem.run.memory.bound_operands import BoundOperand, OperandOffsets
from nacre.nem.run.memory.memory import Memory
from nacre.nem.run.memory.written import first_unwritten, mark_written
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
    """A signature with its operands bound to memory, and the function that computes it."""

    __slots__ = ("inputs", "outputs", "packed", "run", "signature")

    def __init__(self, signature: Signature, operands: list[OperandOffsets], run: Run) -> None:
        self.signature = signature
        self.run = run
        bound = []
        for operand, layout in zip(operands, signature.layouts, strict=True):
            if layout is None:
                raise ValueError("a compute operand without type")
            bound.append(BoundOperand(operand, layout))
        self.inputs = [s for s in bound if s.offsets.operand.access == "read"]
        self.outputs = [s for s in bound if s.offsets.operand.access == "write"]
        # Elements of four bits are computed as bytes and packed afterwards.
        self.packed = [s for s in self.outputs if not s.layout.is_view]


class Compute(Action):
    """A compute task: reads, computes, writes."""

    def __init__(
        self,
        task: Task,
        grid: Grid,
        memory: Memory,
        task_signatures: Signatures,
        runs: list[Run],
        findings: Findings,
    ) -> None:
        self.task, self.grid = task, grid
        operands = [OperandOffsets(operand, grid, memory) for operand in task.operands]
        self._calls = [
            BoundCall(s, operands, run)
            for s, run in zip(task_signatures.distinct, runs, strict=True)
        ]
        self._index = task_signatures.index
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
        for operand in call.inputs:
            if operand.storage.missing and not self._may_read(operand, row):
                return False
            inputs.append(operand.array(row))
        outputs = [operand.array(row) for operand in call.outputs]
        fault = call.run(inputs, outputs)
        if fault is not None:
            self._report(fault, row)
            if fault.is_fatal:
                return False
        if call.packed:
            for operand, values in zip(call.outputs, outputs, strict=True):
                if not operand.layout.is_view:
                    operand.layout.put(operand.storage.data, operand.offsets.offset(row), values)
        for operand in call.outputs:
            if operand.storage.missing:
                mark_written(operand.layout, operand.storage, operand.offsets.offset(row))
        return not self._findings.has_error if fault is not None else True

    def _may_read(self, operand: BoundOperand, row: int) -> bool:
        """Report bytes that nobody wrote; False where that stops the run."""
        node = operand.offsets.operand.node
        if self._findings.is_known(INI02, node):
            return True
        gap = first_unwritten(operand.layout, operand.storage, operand.offsets.offset(row))
        if gap is None:
            return True
        spec = operand.offsets.operand.spec
        name = f"operand `{spec.name}` " if spec is not None else ""
        unwritten = Gap(operand.storage, *gap)
        origin = self._findings.origin(unwritten, self.task, row)
        self._findings.report(
            INI02,
            self.task,
            self.grid,
            row,
            f"reads {name}from {unwritten}, which hold data that nothing wrote{origin.sentence}",
            node=node,
            help=f"{origin.remedy}, or run with {_ZEROS}",
            related=origin.related,
        )
        return not self._findings.has_error

    def _report(self, fault: Fault, row: int) -> None:
        rule = _FAULT_RULES[fault.kind]
        where = f" at element {list(fault.position)}" if fault.position is not None else ""
        message = f"cannot go on: {fault.message}{where}" if fault.is_fatal else fault.message
        self._findings.report(rule, self.task, self.grid, row, message)

    def places(self, row: int) -> Places:
        """The elements of its operands."""
        call = self.call(row)
        reads, writes = (
            [elements(s.storage, s.layout, s.offsets.offset(row)) for s in operands]
            for operands in (call.inputs, call.outputs)
        )
        return Places(reads, writes)

    def can_hold(self, row: int) -> bool:
        """Whether nothing stands between its operands and the kernel."""
        call = self.call(row)
        return not call.packed and not any(s.storage.missing for s in (*call.inputs, *call.outputs))

    def widens(self, row: int) -> bool:
        """Whether the kernel begins by making f32 of its inputs."""
        return is_widening(self.call(row).run)

    def prepare(self, row: int, held: Mapping[int, Array]) -> Callable[[], bool]:
        """The kernel on arrays that stay where they are."""
        if not self.can_hold(row):
            return partial(self.run, row)
        call = self.call(row)
        run, outputs = call.run, [operand.array(row) for operand in call.outputs]
        inputs: list[Array | None] = [
            held[i] if i in held else s.array(row) for i, s in enumerate(call.inputs)
        ]
        unpacked = [
            (i, s) for i, s in enumerate(call.inputs) if i not in held and not s.layout.is_view
        ]

        def compute() -> bool:
            for i, operand in unpacked:
                inputs[i] = operand.array(row)
            fault = run(inputs, outputs)
            return fault is None or self._go_on_after(fault, row)

        return compute

    def _go_on_after(self, fault: Fault, row: int) -> bool:
        """Report a fault; whether the run goes on."""
        self._report(fault, row)
        return not fault.is_fatal and not self._findings.has_error

    def writes(self, row: int) -> list[ByteRange]:
        """From the first to the last element of every output."""
        return [(s.storage, *s.span(row)) for s in self.call(row).outputs]

    def reads(self, row: int) -> list[ByteRange]:
        """From the first to the last element of every input."""
        return [(s.storage, *s.span(row)) for s in self.call(row).inputs]
