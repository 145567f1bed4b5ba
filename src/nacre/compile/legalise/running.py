"""A module run operation by operation, so that every value can be looked at while it lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.source import Span
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import place_of, source_operation_text
from nacre.core.constants import constant_array, kernel_type
from nacre.core.evaluation.run import operation_span
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.core.rules.evaluation import EVL04
from nacre.core.values import Array
from nacre.core.verify import verify
from nacre.kernels.interface.call import Call, Run
from nacre.kernels.interface.runs import quietly
from nacre.kernels.registry import PRIMITIVES

Values = dict[int, Array]


@dataclass(frozen=True, eq=False)
class Step:
    """One operation made ready, and the values that nothing needs after it."""

    index: int
    op: CoreOperation
    run: Run
    dead: tuple[int, ...]


class StepwiseRunner:
    """A module made ready once; each run gives its values one by one and forgets the dead."""

    def __init__(self, module: Module, legal: Legal | None = None) -> None:
        findings = verify(module, "nacre-1")
        if has_errors(findings):
            raise InputError(findings)
        self.module, self._legal = module, legal
        self.constants = {
            op.value_id: array
            for op in module.operations
            if (array := constant_array(op)) is not None
        }
        dead = _dead_after(module, self.constants)
        self.steps = tuple(
            Step(index, op, bind_operation(module, op), dead[index])
            for index, op in enumerate(module.operations)
            if op.opcode != "Input" and op.value_id not in self.constants
        )

    def run(self, inputs: Mapping[str, Array]) -> Iterator[tuple[int, Array]]:
        """Every input and every computed value with its id, in order."""
        values = self.start(inputs)
        for op in self.module.inputs:
            yield op.value_id, values[op.value_id]
        for step in self.steps:
            values[step.op.value_id] = result = self.compute(step, values)
            yield step.op.value_id, result
            for value in step.dead:
                del values[value]

    def start(self, inputs: Mapping[str, Array]) -> Values:
        """What is there before the first step: constants and inputs."""
        given = {op.value_id: inputs[str(op.attributes["name"])] for op in self.module.inputs}
        return {**self.constants, **given}

    def compute(self, step: Step, values: Mapping[int, Array]) -> Array:
        """The value of one step; InputError where a kernel refuses the elements."""
        type_ = kernel_type(step.op.type)
        result: Array = np.empty(type_.shape, type_.dtype)
        fault = quietly(step.run, [values[operand] for operand in step.op.operands], [result])
        if fault is not None and fault.is_fatal:
            raise InputError([EVL04.at(*self._locate_problem(step, fault.message))])
        return result

    def _locate_problem(self, step: Step, problem: str) -> tuple[Span, str]:
        """Where the model has the operation of a step, and what is wrong with it."""
        legal, value = self._legal, step.op.value_id
        if legal is None:
            return operation_span(
                self.module, step.index
            ), f"`{step.op.opcode}` %{value}: {problem}"
        return place_of(legal, (value,)), f"{source_operation_text(legal, step.op)}: {problem}"


def bind_operation(module: Module, op: CoreOperation, **changed: object) -> Run:
    """An operation ready to run, some of its attributes changed."""
    primitive = OPS[op.opcode].primitive
    assert primitive is not None
    return PRIMITIVES[primitive].bind(kernel_call(module, op, **changed))


def kernel_call(module: Module, op: CoreOperation, **changed: object) -> Call:
    """How the kernel of an operation is called, some of its attributes changed."""
    inputs = tuple(kernel_type(module.by_id[operand].type) for operand in op.operands)
    result = kernel_type(op.type)
    attributes = {**OPS[op.opcode].with_defaults(op.attributes), **changed}
    if "to" in changed:
        result = kernel_type(TensorType(str(changed["to"]), op.type.shape))
    return Call(inputs, (result,), attributes)


def _dead_after(module: Module, constants: Mapping[int, Array]) -> list[tuple[int, ...]]:
    """For every operation the values that nothing needs after it; constants stay."""
    last: dict[int, int] = {}
    for index, op in enumerate(module.operations):
        for value in (op.value_id, *op.operands):
            if value not in constants:
                last[value] = index
    dead: list[list[int]] = [[] for _ in module.operations]
    for value, index in last.items():
        if value not in module.outputs and module.operations[index].opcode != "Input":
            dead[index].append(value)
    return [tuple(values) for values in dead]
