"""A program run block by block: what instructions are given and what they gave, by their numbers.

Nothing is let go between blocks, whatever the schedule of the file says: the next block, or
somebody who wants to see a result, may ask for any of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.run.arrays import ArrayDomain
from nacre.nac.run.calls import Budget
from nacre.nac.run.inputs import check_input
from nacre.nac.run.interpreter import Interpreter
from nacre.nac.run.limits import Limits, limits_for
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import keep_all
from nacre.nac.run.opaque import Randomness, require_kernels
from nacre.nac.run.states import initial_state
from nacre.nac.spec.instructions import USER


class BlockError(Exception):
    """A block that cannot be run, or a result that is not there."""


class BlockRun:
    """The results of one run of a program, of which any block may be run in any order."""

    def __init__(self, program: LoadedProgram, seed: int = 0) -> None:
        self._program = program
        self._given: dict[int, Array] = {}
        self._budget = Budget(self._limits())
        records = program.surroundings.states
        state = {id_: initial_state(program, record) for id_, record in records.items()}
        domain = ArrayDomain(program, self._given, state, self._budget, randomness=Randomness(seed))
        schedule = keep_all(len(program.program))
        self._interpreter = Interpreter(program, domain, self._budget.memory, schedule)

    def set_result(self, index: int, array: Array) -> None:
        """An array in the place of what an instruction gives; an input is checked against its type.

        The array must not change from now on.
        """
        self._require_instruction(index)
        if self._program.program[index].kind == "output":
            raise BlockError(f"instruction {index} is an output; set the results that it names")
        for wanted in self._program.all_inputs:
            if wanted.instruction == index:
                array = check_input(self._program, wanted, array)
        self._given[index] = array
        self._budget.limits = self._limits()
        self._budget.memory.limit = self._budget.limits.bytes
        self._interpreter.replace_result(index, array)

    def run(self, first: int, last: int) -> None:
        """Run instructions anew, both ends included. User inputs in between stay as they were set.

        BlockError where a block cuts a branch, or takes what no block has run before it; InputError
        as in any run.
        """
        self._require_whole(first, last)
        require_kernels(self._program, range(first, last + 1))
        self._budget.work = 0  # each block may take as much as a run
        program, behind = self._program.program, self._program.blocks.behind
        index = first
        while index <= last:
            instruction = program[index]
            if (instruction.kind, instruction.variant) == ("input", USER):
                self._require_result(index, index)
            elif instruction.kind != "output":
                inside = range(index, behind.get(index, index + 1))
                self._require_operands(inside)
                for each in inside:
                    self._interpreter.replace_result(each, None)
                self._interpreter.step(index, instruction)
            index = behind.get(index, index + 1)

    def result(self, index: int) -> Any:  # noqa: ANN401 - a tensor, several, a number
        """What an instruction gave; BlockError where it has not been run."""
        self._require_instruction(index)
        if self._program.program[index].kind == "output":
            raise BlockError(f"instruction {index} is an output; take the results that it names")
        found = self._require_result(index, index)
        return found.copy() if isinstance(found, np.ndarray) else found

    def _limits(self) -> Limits:
        program = self._program
        return limits_for(
            program.file_bytes, self._given.values(), program.max_bytes, program.max_work
        )

    def _require_instruction(self, index: int) -> None:
        count = len(self._program.program)
        if index >= count:
            raise BlockError(f"there is no instruction {index}, the program has {count:,} from 0")

    def _require_whole(self, first: int, last: int) -> None:
        """A block is instructions in order, with every branch that it begins or enters."""
        self._require_instruction(last)
        if first > last:
            raise BlockError(f"the block of instructions {first} to {last} ends before it begins")
        blocks = self._program.blocks
        if first in blocks.homes:
            raise BlockError(f"instruction {first} lies in a branch, where no block can begin")
        for index, behind in blocks.behind.items():
            if first <= index <= last < behind - 1:
                message = f"the block of instructions {first} to {last} cuts the branches of"
                raise BlockError(f"{message} {index}, which end at {behind - 1}")

    def _require_operands(self, inside: range) -> None:
        """What an instruction, with its branches, takes from before it has been run."""
        for index in inside:
            for ref in self._program.program[index].refs:
                if ref not in inside:
                    self._require_result(ref, index)

    def _require_result(self, index: int, user: int) -> Any:  # noqa: ANN401 - see result
        found = self._interpreter.results[index]
        if found is None:
            name = self._program.program[index].name
            wanted = "" if index == user else f", which instruction {user} takes"
            raise BlockError(f"instruction {index} (`{name}`) has not been run{wanted}")
        return found
