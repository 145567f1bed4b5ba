"""Results that are arrays: calls on their kernels, prepared once for operands of their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.operations.registry import find_operation
from nacre.nac.run.calls import FAULTS, REFUSALS, Budget, key_of, refusal, typed_call
from nacre.nac.run.convergence import merge_branches
from nacre.nac.run.interpreter import Operands, RunBranch
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import owner
from nacre.nac.run.opaque import (
    Randomness,
    call_types,
    is_opaque,
    is_selection,
    needed,
    run_kernel,
    select_result,
)
from nacre.nac.run.program import PreparedInstruction, Route
from nacre.nac.run.specialised import BoundCall, bind_call
from nacre.nac.spec.instructions import LIFTED, PARAMETER, STATE


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that was run."""

    call: BoundCall
    paths: tuple[Route, ...]


@dataclass(eq=False)
class RunDomain:
    """What runs and dry runs share: where values come from, and what may be taken for them."""

    program: LoadedProgram
    given: Mapping[int, Array]
    state: Mapping[int, Array]
    budget: Budget
    tensor: ClassVar[type[Any]] = np.ndarray
    refusals: ClassVar[tuple[type[Exception], ...]] = REFUSALS

    def number(self, tensor: Array) -> Any:  # noqa: ANN401 - a number of Python
        """The element of a tensor that has one."""
        return only_element(tensor)

    def choose(self, condition: Any, branches: Sequence[RunBranch]) -> Any:  # noqa: ANN401 - a result
        """By the only element, or a number."""
        is_true = self.number(condition) if isinstance(condition, np.ndarray) else condition
        return branches[0 if is_true else 1]()

    def refuse(self, index: int, operands: Sequence[Any], problem: Exception) -> Any:  # noqa: ANN401
        """InputError: the run ends here."""
        raise refusal(self.program, self.budget, index, operands, problem) from None


@dataclass(eq=False)
class ArrayDomain(RunDomain):
    """A run: results are arrays."""

    borrowed: set[int] = field(default_factory=set)  # owners of what belongs to somebody else
    entries: dict[int, RecordedCall] = field(default_factory=dict)
    is_static: bool = True  # what was run follows from the types of inputs
    randomness: Randomness = Randomness()  # noqa: RUF009 - a frozen value

    def load(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - tensor or number
        """What is given, kept in the file, or left of the run before."""
        if instruction.variant == PARAMETER:
            array: Any = self.program.weights[instruction.id]
        elif instruction.variant == STATE:
            array = self.given.get(index, self.state[instruction.id])
        elif instruction.variant == LIFTED and index not in self.given:
            array = self.program.lifted_constant(instruction.id)
        else:
            array = self.given[index]
        if isinstance(array, np.ndarray):
            self.borrowed.add(id(owner(array)))
        return array

    def call(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
        """A call on its kernels, which are bound once for types, or for types and weights."""
        if is_opaque(instruction, operands.tensors):
            self.is_static = False
            if is_selection(instruction):
                return select_result(instruction, operands)
            return self._run_opaque(index, instruction, operands)
        compiled = self._bound_call(instruction, operands)
        if compiled.is_for_elements:
            self.is_static = False
        self.entries[index] = RecordedCall(compiled, tuple(operands.routes))
        try:
            return self.run_bound(compiled, operands)
        except FAULTS as error:
            raise Unsupported(str(error)) from error

    def _run_opaque(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401 - an array, or several
        """A call that has no form in Core IR, on the kernel that is registered for it."""
        operation = find_operation(instruction.name)
        if operation is None:
            raise Unsupported("no kernel is registered for it")
        types = call_types(instruction, operands, operation)
        self.budget.spend(*needed(types, operands.tensors, operation))
        generator = self.randomness.generator(index)
        return run_kernel(instruction, operands, operation, types, generator)

    def run_bound(self, call: BoundCall, operands: Operands) -> Any:  # noqa: ANN401 - see BoundCall
        """What a call gives on the arrays at hand."""
        return call.run(operands.tensors)

    def _bound_call(self, instruction: PreparedInstruction, operands: Operands) -> BoundCall:
        prepared = instruction.call
        assert prepared is not None
        known = prepared.bound_for(key := key_of(operands), operands.routes)
        if known is not None:
            self.budget.spend(known.bytes, known.work)
            return known
        arrays, memory = operands.tensors, self.budget.memory
        call = typed_call(instruction, operands, memory, arrays.__getitem__)
        self.budget.spend(call.bytes, call.work)
        program, routes = self.program.program, enumerate(operands.routes)
        fixed = [at for at, (ref, _) in routes if self.program.is_kept(program[ref])]
        try:
            bound = bind_call(call, arrays, fixed)
        except FAULTS as error:
            raise Unsupported(f"its arguments make no sense ({error})") from error
        if not bound.is_for_elements:
            prepared.keep(key, operands.routes, bound)
        return bound

    def number(self, tensor: Array) -> Any:  # noqa: ANN401 - a number of Python
        """The element of a tensor that has one."""
        self.is_static = False
        return super().number(tensor)

    def choose(self, condition: Any, branches: Sequence[RunBranch]) -> Any:  # noqa: ANN401 - a result
        """By the only element, or a number."""
        self.is_static = False
        return super().choose(condition, branches)

    def merge(self, branches: Iterator[Any], percent: int) -> Array:
        """Branches that agree, averaged."""
        self.is_static = False
        return merge_branches(list(branches), percent)


def only_element(array: Array) -> Any:  # noqa: ANN401 - a number of Python
    """The number that a tensor of one element is."""
    if array.size != 1:
        raise Unsupported(f"a tensor {list(array.shape)} stands where a number is expected")
    return array.item()
