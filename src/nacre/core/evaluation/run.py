"""A plan and its runs: every operation bound, every value in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.core.constants import kernel_type
from nacre.core.evaluation.memory import Layout
from nacre.core.evaluation.workspace import Step, Workspace, new_workspace
from nacre.core.module import Module
from nacre.core.rules.evaluation import EVL04, EVL05
from nacre.core.sessions import Progress
from nacre.core.text.operations import operation_text
from nacre.core.values import Array
from nacre.kernels.interface.call import Fault
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.runs import quietly


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
    _workspaces: list[Workspace] = field(default_factory=list, repr=False, compare=False)

    def run(
        self, inputs: Mapping[int, Array], progress: Progress | None = None
    ) -> Mapping[int, Array]:
        """The values that outputs and states name, as the kernels carry them.

        `progress` is told how many operations of how many are done.
        """
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            workspace = self._new_workspace()
        try:
            values = {**self.fixed, **inputs, **self._new_values(workspace)}
            workspace.put(values)
            quietly(self._compute, workspace, progress)
            values |= workspace.outputs()
            return values
        finally:
            workspace.clear()
            self._workspaces.append(workspace)

    def _compute(self, workspace: Workspace, progress: Progress | None) -> None:
        for done, (step, calls, run) in enumerate(workspace.steps, 1):
            try:
                for call in calls:
                    call()
                fault = None if run is None else run()
            except (ValueError, TypeError, MemoryError) as error:
                raise refusal(self.module, step.index, str(error)) from error
            if fault is not None and fault.is_fatal:
                raise refusal(self.module, step.index, _fault_text(fault, len(step.operands)))
            if progress is not None:
                progress(done, len(self.steps))

    def _new_values(self, workspace: Workspace) -> dict[int, Array]:
        """Arrays for what leaves the run."""
        values: dict[int, Array] = {}
        for value, (index, type_) in self.leaving.items():
            if value in workspace.copied_outputs:
                continue
            try:
                values[value] = np.empty(type_.shape, type_.dtype)
            except (ValueError, MemoryError) as error:
                raise refusal(self.module, index, str(error)) from error
        return values

    def _new_workspace(self) -> Workspace:
        types = dict(self.views)
        for step in self.steps:
            types |= zip(step.results, step.types, strict=True)
        inputs = {op.value_id: kernel_type(op.type) for op in self.module.inputs}
        outputs = {value: type_ for value, (_, type_) in self.leaving.items()}
        try:
            block = self.layout.block()
            arrays = {
                **self.constants,
                **{v: self.layout.array(block, v, types[v]) for v in self.layout.offsets},
            }
            return new_workspace(self.steps, arrays, inputs, outputs)
        except MemoryError as error:
            size = self.layout.size
            message = f"the values need {size:,} bytes at one time, which cannot be had"
            raise InputError([EVL05.at(operation_span(self.module, 0), message)]) from error


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
