"""A run on shapes alone: what every instruction would make, take and cost, before it does.

What follows from elements is not seen, nor is what follows from that: such calls are looked at when
the run comes to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.operations.registry import find_operation
from nacre.nac.run.arrays import RunDomain
from nacre.nac.run.calls import REFUSALS, Budget, typed_call
from nacre.nac.run.convergence import require_alike
from nacre.nac.run.interpreter import MISSING, Interpreter, Operands, RunBranch
from nacre.nac.run.limits import Limits
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import owner
from nacre.nac.run.opaque import (
    call_types,
    is_opaque,
    is_selection,
    needed,
    select_result,
)
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.run.shape_only import ShapeOnlyArray, shape_only_array
from nacre.nac.run.specialised import TypedCall
from nacre.nac.run.states import require_next_state
from nacre.nac.spec.instructions import LIFTED, PARAMETER, STATE


class ElementsUnknown(Exception):  # noqa: N818 - no failure: the run will see
    """Something depends on elements that are not there yet."""


@dataclass(eq=False)
class ShapeDomain(RunDomain):
    """A dry run: results are arrays without elements."""

    refusals = (ElementsUnknown, *REFUSALS)
    taken: dict[int, int] = field(default_factory=dict)  # bytes of calls, by instruction

    def load(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - tensor or number
        """The type of what is loaded; the elements of a weight can be had."""
        if instruction.variant == PARAMETER:
            weights, id_ = self.program.weights, instruction.id
            return shape_only_array(*weights.type_of(id_), lambda: weights[id_])
        if instruction.variant == LIFTED and index not in self.given:
            value = self.program.lifted_constant(instruction.id)
            return MISSING if isinstance(value, str) else value  # it must be given
        array = self.given.get(index)
        if array is None and instruction.variant == STATE:
            array = self.state.get(instruction.id)
        return MISSING if array is None else shape_only_array(array.dtype, array.shape)

    def call(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
        """The types of what a call gives, and what it takes."""
        arrays = operands.tensors
        if is_opaque(instruction, arrays) and is_selection(instruction):
            return select_result(instruction, operands)
        if is_opaque(instruction, arrays):
            return self._opaque_call(index, instruction, operands)
        call = typed_call(
            instruction, operands, self.budget.memory, lambda value: _elements(arrays[value])
        )
        self.budget.spend(call.bytes, call.work)
        self.taken[index] = call.bytes
        if call.number is not None:
            return call.number.number
        results = [_result_of(call, value, arrays) for value in call.results]
        return results if call.is_list else results[0]

    def _opaque_call(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401 - see call
        """The same of a call that has no form in Core IR, as far as its types are known."""
        operation = find_operation(instruction.name)
        types = call_types(instruction, operands, operation)
        bytes_, work = needed(types, operands.tensors, operation)
        self.budget.spend(bytes_, work)
        self.taken[index] = bytes_
        if types is None:
            raise ElementsUnknown
        if isinstance(types, list):
            return [MISSING if t is None else shape_only_array(t.dtype, t.shape) for t in types]
        return shape_only_array(types.dtype, types.shape)

    def number(self, tensor: Array) -> Any:  # noqa: ANN401 - a number of Python
        """The element of a tensor that has one, where it can be had."""
        return super().number(_elements(tensor))

    def choose(self, condition: Any, branches: Sequence[RunBranch]) -> Any:  # noqa: ANN401 - see load
        """The branch that is taken, or where only a run sees it, what both give."""
        try:
            return super().choose(condition, branches)
        except ElementsUnknown:
            true, false = (_try(branch) for branch in branches)
        if isinstance(true, list) and isinstance(false, list) and len(true) == len(false):
            return [_either(*pair) for pair in zip(true, false, strict=True)]
        return _either(true, false)

    def merge(self, branches: Iterator[Any], percent: int) -> Any:  # noqa: ANN401 - see load
        """The type that all branches have."""
        every = list(branches)
        if any(branch is MISSING for branch in every):
            return MISSING
        require_alike(every)
        return shape_only_array(every[0].dtype, every[0].shape)

    def refuse(self, index: int, operands: Sequence[Any], problem: Exception) -> Any:  # noqa: ANN401
        """Nothing for what only a run sees; InputError where it would fail."""
        if isinstance(problem, ElementsUnknown):
            return MISSING
        return super().refuse(index, operands, problem)


def _try(branch: RunBranch) -> Any:  # noqa: ANN401 - a result
    """What a branch gives; nothing where it would fail, for it may not be taken."""
    try:
        return branch()
    except InputError:
        return MISSING


def _either(true: Any, false: Any) -> Any:  # noqa: ANN401 - results
    """What is one of two results: its type, if they have one; else only a run tells."""
    if not isinstance(true, np.ndarray) or not isinstance(false, np.ndarray):
        return MISSING
    if (true.dtype, true.shape) != (false.dtype, false.shape):
        return MISSING
    return shape_only_array(true.dtype, true.shape)


def _elements(array: Array) -> Array:
    if not isinstance(array, ShapeOnlyArray):
        return array
    if array.elements is None:
        raise ElementsUnknown
    return array.elements()


def _result_of(call: TypedCall, value: int, arrays: Sequence[Array]) -> Array:
    """A result; one that only has another shape than an operand is held with it."""
    type_, root = call.types[value], call.root(value)
    if root >= len(arrays):
        return shape_only_array(type_.elem.dtype, type_.shape)
    if root == value:
        return arrays[value]
    source = arrays[root]
    if not isinstance(source, ShapeOnlyArray):
        return source.reshape(type_.shape)
    return shape_only_array(type_.elem.dtype, type_.shape, None, owner(source))


def dry_run(
    program: LoadedProgram, given: Mapping[int, Array], state: Mapping[int, Array], limits: Limits
) -> int:
    """The most bytes that a run holds at a time; InputError says where it would fail, and why."""
    budget = Budget(limits)
    domain = ShapeDomain(program, given, state, budget)
    outputs = Interpreter(program, domain, budget.memory, program.schedule).outputs()
    for record in program.surroundings.states.values():
        if outputs[record.output] is not MISSING:
            require_next_state(program, record, outputs)
    return budget.memory.peak
