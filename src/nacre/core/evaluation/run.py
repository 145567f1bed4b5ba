"""A plan and its runs: every operation bound, every value in its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.core.evaluation.memory import Layout
from nacre.core.module import Module
from nacre.core.rules.evaluation import EVL04, EVL05
from nacre.core.sessions import Progress
from nacre.core.text.operations import operation_text
from nacre.core.values import Array
from nacre.kernels.interface.call import Fault, Run
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.runs import bare_run, quietly


class Step(Struct, frozen=True, gc=False):
    """One operation, or several that are computed as one, bound to their types."""

    index: int  # of the operation
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[KernelType, ...]  # of the results
    run: Run
    in_place_operands: tuple[int, ...] = ()  # operands over which the last result may be written


@dataclass(frozen=True, slots=True)
class _Workspace:
    """The memory of one run at a time, and every call with its arrays in it."""

    calls: list[tuple[Run, list[Array | None], list[Array | None]]]
    # Where values go that are new in every run: lists of arrays, and the places in them.
    slots: Mapping[int, list[tuple[list[Array | None], int]]]

    def put(self, values: Mapping[int, Array]) -> None:
        """Let every call that takes or makes one of these values have its array."""
        for value, places in self.slots.items():
            array = values[value]
            for arrays, at in places:
                arrays[at] = array

    def clear(self) -> None:
        """Forget what the caller gave, and what is handed out."""
        for places in self.slots.values():
            for arrays, at in places:
                arrays[at] = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Every step in order, and where its value lies."""

    module: Module
    constants: dict[int, Array]
    steps: tuple[Step, ...]
    peak_bytes: int
    layout: Layout  # of the values that do not leave the run
    views: Mapping[int, KernelType]  # values that lie within others: no step makes them
    leaving: Mapping[int, tuple[int, KernelType]]  # the others: by which operation, and their types
    fixed: Mapping[int, Array]  # constants that outputs and states name
    # Memory that no run is using. A run takes it out of here, so that several may go on at once.
    _workspaces: list[_Workspace] = field(default_factory=list, repr=False, compare=False)

    def run(
        self, inputs: Mapping[int, Array], progress: Progress | None = None
    ) -> Mapping[int, Array]:
        """The values that outputs and states name, as the kernels carry them.

        `progress` is told how many operations of how many are done.
        """
        try:
            room = self._workspaces.pop()
        except IndexError:
            room = self._new_workspace()
        try:
            values = {**self.fixed, **inputs, **self._new_values()}
            room.put(values)
            quietly(self._compute, room, progress)
            return values
        finally:
            room.clear()
            self._workspaces.append(room)

    def _compute(self, room: _Workspace, progress: Progress | None) -> None:
        done = 0
        for step, (run, operands, results) in zip(self.steps, room.calls, strict=True):
            try:
                fault = run(operands, results)  # type: ignore[arg-type]  # all are there by now
            except (ValueError, TypeError, MemoryError) as error:
                raise refusal(self.module, step.index, str(error)) from error
            if fault is not None and fault.is_fatal:
                raise refusal(self.module, step.index, _fault_text(fault, len(operands)))
            if progress is not None:
                done += 1
                progress(done, len(self.steps))

    def _new_values(self) -> dict[int, Array]:
        """Arrays for what leaves the run."""
        made: dict[int, Array] = {}
        for value, (index, type_) in self.leaving.items():
            try:
                made[value] = np.empty(type_.shape, type_.dtype)
            except (ValueError, MemoryError) as error:
                raise refusal(self.module, index, str(error)) from error
        return made

    def _new_workspace(self) -> _Workspace:
        layout = self.layout
        try:
            block = layout.block()
        except MemoryError as error:
            message = f"the values need {layout.size:,} bytes at one time, which cannot be had"
            raise InputError([EVL05.at(operation_span(self.module, 0), message)]) from error
        types = dict(self.views)
        for step in self.steps:
            types |= zip(step.results, step.types, strict=True)
        arrays = dict(self.constants)
        for value in layout.offsets:
            arrays[value] = layout.array(block, value, types[value])
        calls, slots = [], defaultdict[int, list[tuple[list[Array | None], int]]](list)
        for step in self.steps:
            operands = [arrays.get(operand) for operand in step.operands]
            results = [arrays.get(value) for value in step.results]
            calls.append((bare_run(step.run), operands, results))
            for held, values in ((operands, step.operands), (results, step.results)):
                for at, value in enumerate(values):
                    if value not in arrays:
                        slots[value].append((held, at))
        return _Workspace(calls, dict(slots))


def _fault_text(fault: Fault, operands: int) -> str:
    if fault.position is None or operands < 2:
        return fault.message
    return f"{fault.message}, at [{', '.join(map(str, fault.position))}]"


def refusal(module: Module, index: int, reason: str, rule: Rule = EVL04) -> InputError:
    """An error at an operation, with a reason."""
    op = module.operations[index]
    return InputError(
        [rule.at(operation_span(module, index), f"`{op.opcode}` %{op.value_id}: {reason}")]
    )


def value_span(module: Module, value: int) -> Span:
    """Where the operation stands that defines a value."""
    values = [op.value_id for op in module.operations]
    return operation_span(module, values.index(value) if value in values else len(values))


def operation_span(module: Module, index: int) -> Span:
    """Where an operation stands: in the text that was read, else in its line of canonical text."""
    spans = module.source_spans
    if spans is not None and index < len(spans.operations):
        return spans.source.span(*spans.operations[index])
    if index >= len(module.operations):
        return Source("<module>", "").span(0, 0)
    # The other lines are left empty: they may hold megabytes of constants.
    line = operation_text(module.operations[index])
    source = Source("<module>", "\n" * index + line)
    return source.span(index, index + len(line))
