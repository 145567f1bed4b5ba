"""One interpreter of programs: instructions in order, their operands, branches, and memory.

What results are is left to a domain: arrays in a run, shapes alone in a dry run, values of a module
where a program is lifted. The interpreter knows the stream: which results an instruction takes,
which stretch of a program comes next, and when the schedule lets go of a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from nacre.core.aten.call import Value
from nacre.core.unsupported import Unsupported
from nacre.nac.program.binding import Given, Ref
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import Memory, Schedule
from nacre.nac.run.program import Operand, PreparedInstruction, Route, single_result
from nacre.nac.spec.instructions import BRANCH, PARAMETER

_TENSORS = "Ta"  # kinds of arguments that a tensor may be
_SEVERAL = "a"  # the kind that takes a list as it is


class MissingResult:
    """Stands for a result that is not there: of a refused call, or known only in a run."""


MISSING = MissingResult()


@dataclass(slots=True)
class Operands:
    """What a call is given: arguments by name, in which `Value(i)` stands for the i-th tensor."""

    arguments: dict[str, Given] = field(default_factory=dict)
    tensors: list[Any] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)  # where each tensor comes from
    leaves: list[Any] = field(default_factory=list)  # tensors and numbers in order


RunBranch = Callable[[], Any]  # what a branch gives, when it is run


class Domain(Protocol):
    """What results are, and what instructions do with them."""

    @property
    def tensor(self) -> type[Any] | tuple[type[Any], ...]:
        """The classes of results that are one tensor."""

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What is raised where something cannot be done; it goes to `refuse`."""

    def load(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - a result
        """An input, a parameter, a state or a constant."""

    def call(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
        """What a call gives: a tensor, a list of them, a number."""

    def number(self, tensor: Any) -> Any:  # noqa: ANN401 - a tensor; a number of Python
        """The number that a tensor is, where one is asked for."""

    def choose(self, condition: Any, branches: Sequence[RunBranch]) -> Any:  # noqa: ANN401 - a result
        """What the branch that is taken gives, the first for true."""

    def merge(self, branches: Iterator[Any], percent: int) -> Any:  # noqa: ANN401 - a result
        """What branches converge to; each is run when it is asked for."""

    def refuse(self, index: int, operands: Sequence[Any], problem: Exception) -> Any:  # noqa: ANN401
        """What stands for a result that cannot be had, or InputError."""


class Interpreter:
    """One walk down a program."""

    def __init__(
        self, program: LoadedProgram, domain: Domain, memory: Memory, schedule: Schedule
    ) -> None:
        self.results: list[Any] = [None] * len(program.program)
        self._program = program
        self._domain = domain
        self._tensor = domain.tensor
        self._memory = memory
        self._schedule = schedule
        self._handed_on: list[list[Any]] = []  # what branches gave, until it is their choice's

    def outputs(self) -> list[Any]:
        """What the program returns."""
        made = self._run_stretch(0, len(self.results))
        return made if isinstance(made, list) else [made]

    def _run_stretch(self, start: int, end: int) -> Any:  # noqa: ANN401 - what an output gives
        """Run instructions up to the output of their stretch."""
        index, program, behind = start, self._program.program, self._program.blocks.behind
        while index < end:
            instruction = program[index]
            if instruction.kind == "output":
                outputs = [self._output(index, ref) for ref in instruction.refs]
                if instruction.variant == BRANCH:  # the schedule lets go of what is handed on here
                    self._memory.hold(outputs)
                    self._handed_on.append(outputs)
                self._apply_schedule(index)
                return (
                    outputs[0] if instruction.variant == BRANCH and len(outputs) == 1 else outputs
                )
            self.step(index, instruction)
            index = behind.get(index, index + 1)
        return []

    def step(self, index: int, instruction: PreparedInstruction) -> None:
        """One instruction, and what happens to memory after it."""
        is_fetched = self._schedule.is_planned and is_weight(instruction)
        if self.results[index] is None and not is_fetched:  # a weight may have come ahead
            self._store_result(index, self._result(index, instruction))
            while self._handed_on:
                self._memory.drop(self._handed_on.pop())
        self._apply_schedule(index)

    def _store_result(self, index: int, result: Any) -> None:  # noqa: ANN401 - a result
        # What stays between runs does so whatever the schedule says.
        self._memory.hold(result, self._program.is_kept(self._program.program[index]))
        self.results[index] = result

    def replace_result(self, index: int, result: Any) -> None:  # noqa: ANN401 - a result, or None
        """Put a result in the place of another, or none, so that it is computed again."""
        self._memory.drop(self.results[index])
        self._memory.hold(result)
        self.results[index] = result

    def _output(self, index: int, ref: int) -> Any:  # noqa: ANN401 - a result
        try:
            return self._single_result(ref, "an output")
        except Unsupported as problem:
            return self._refuse(index, problem)

    def _single_result(self, index: int, name: str) -> Any:  # noqa: ANN401 - a result
        return single_result(self.results[index], self._program.program[index], name)

    def _result(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - of any domain
        for ref in instruction.refs:
            if self.results[ref] is MISSING:
                return MISSING
        try:
            if instruction.kind == "call":
                return self._domain.call(index, instruction, self._operands(instruction))
            if instruction.kind == "input":
                return self._domain.load(index, instruction)
            return self._branch(index, instruction)
        except self._domain.refusals as problem:
            return self._refuse(index, problem)

    def _refuse(self, index: int, problem: Exception) -> Any:  # noqa: ANN401 - a result
        operands = [self.results[ref] for ref in self._program.program[index].refs]
        return self._domain.refuse(index, operands, problem)

    def _branch(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - a result
        branches = self._program.blocks.branches[index]
        if instruction.kind == "branch":
            runs = [partial(self._run_stretch, *branch) for branch in branches]
            return self._domain.choose(self.results[instruction.refs[0]], runs)
        each = (self._run_stretch(*branch) for branch in branches)
        return self._domain.merge(each, instruction.variant)

    def _operands(self, instruction: PreparedInstruction) -> Operands:
        made = Operands()
        for operand in instruction.operands:
            made.arguments[operand.name] = self._argument(operand, made)
        return made

    def _argument(self, operand: Operand, operands: Operands) -> Given:
        source = operand.source
        if isinstance(source, Ref):
            return self._operand_of_result(source.index, operand, operands)
        return tuple(
            self._operand_of_result(part.index, operand, operands)
            if isinstance(part, Ref)
            else part
            for part in source
        )

    def _operand_of_result(self, index: int, operand: Operand, operands: Operands) -> Given:
        found, kind = self.results[index], operand.kind
        if isinstance(found, list) and kind == _SEVERAL:
            parts = enumerate(found)
            return tuple(self._add_leaf(part, kind, (index, at), operands) for at, part in parts)
        if isinstance(found, list):
            found = self._single_result(index, f"`{operand.name}`")
        return self._add_leaf(found, kind, (index, 0), operands)

    def _add_leaf(self, leaf: Any, kind: str, route: Route, operands: Operands) -> Given:  # noqa: ANN401
        if isinstance(leaf, self._tensor):
            if kind in _TENSORS:
                operands.tensors.append(leaf)
                operands.routes.append(route)
                operands.leaves.append(leaf)
                return Value(len(operands.tensors) - 1)
            leaf = self._domain.number(leaf)
        operands.leaves.append(leaf)
        return leaf

    def _apply_schedule(self, index: int) -> None:
        """The memory commands of a tick: what goes makes room for what comes."""
        for target in self._schedule.drops[index]:
            self._memory.drop(self.results[target])
            self.results[target] = None
        for target in self._schedule.loads[index]:
            if self.results[target] is None:
                self._store_result(target, self._domain.load(target, self._program.program[target]))


def is_weight(instruction: PreparedInstruction) -> bool:
    """Whether an instruction loads a parameter."""
    return instruction.kind == "input" and instruction.variant == PARAMETER


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one instruction took."""

    instruction: int
    name: str
    seconds: float
    bytes: int  # of the results alive after it


class TimedInterpreter(Interpreter):
    """The same, and how long each instruction took; a branch has the time of what is in it."""

    def __init__(
        self, program: LoadedProgram, domain: Domain, memory: Memory, schedule: Schedule
    ) -> None:
        super().__init__(program, domain, memory, schedule)
        self.timings: list[Timing] = []

    def step(self, index: int, instruction: PreparedInstruction) -> None:
        """One instruction with a watch."""
        begun = time.perf_counter()
        super().step(index, instruction)
        spent = time.perf_counter() - begun
        self.timings.append(Timing(index, instruction.name, spent, self._memory.live))
