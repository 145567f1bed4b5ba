"""Branches: which stretches of a program `<CONTROL_FLOW>` and `<CONVERGENCE>` choose between.

The branches of CONTROL_FLOW follow it, first the one for true, then the one for false; those of
CONVERGENCE begin where its offsets say and end where the next one begins. Every branch ends in
`<OUTPUT B=1>`. Execution goes on behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nacre.nac.format.values import Instruction
from nacre.nac.spec.instructions import BRANCH, CONTROL_FLOW, CONVERGENCE, OUTPUT

MOST_NESTED = 64  # branches that lie in each other
Stretch = tuple[int, int]  # first instruction, and the one behind the last


@dataclass(frozen=True)
class Blocks:
    """The branches of a program."""

    branches: Mapping[int, tuple[Stretch, ...]] = field(default_factory=dict)  # by instruction
    behind: Mapping[int, int] = field(default_factory=dict)  # where execution goes on
    homes: Mapping[int, Stretch] = field(default_factory=dict)  # the innermost branch around one
    parents: Mapping[Stretch, Stretch | None] = field(default_factory=dict)
    problems: tuple[tuple[int, str], ...] = ()  # instruction, what is wrong

    def may_use(self, user: int, maker: int) -> bool:
        """Whether an instruction may use the result of another: it lies around it, not beside."""
        wanted = self.homes.get(maker)
        home: Stretch | None = self.homes.get(user)
        while home != wanted:
            if home is None:
                return False
            home = self.parents[home]
        return True

    @cached_property
    def choices(self) -> dict[Stretch, int]:
        """The instruction that each branch belongs to."""
        return {branch: at for at, found in self.branches.items() for branch in found}

    def step_of(self, index: int, home: Stretch | None) -> int:
        """The instruction of a branch, or of none, as part of which another is executed."""
        around = self.homes.get(index)
        while around != home and around is not None:
            index = self.choices[around]
            around = self.parents[around]
        return index

    def end_of(self, index: int) -> int:
        """The last instruction that is executed as part of one."""
        return self.behind.get(index, index + 1) - 1


def blocks_of(instructions: Sequence[Instruction]) -> Blocks:
    """The branches; those that do not fit are among the problems."""
    stack = _BranchStack(instructions)
    for index, instruction in enumerate(instructions):
        stack.enter(index)
        if instruction.op in (CONTROL_FLOW, CONVERGENCE):
            stack.branch(index, instruction)
        elif (instruction.op, instruction.variant) == (OUTPUT, BRANCH) and not stack.open:
            stack.problems.append((index, "a branch's output stands in no branch"))
    problems = tuple(sorted(stack.problems))
    return Blocks(stack.branches, stack.behind, stack.homes, stack.parents, problems)


@dataclass
class _BranchStack:
    """Goes down a program once, and knows the branches around each instruction."""

    instructions: Sequence[Instruction]
    branches: dict[int, tuple[Stretch, ...]] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)
    homes: dict[int, Stretch] = field(default_factory=dict)
    parents: dict[Stretch, Stretch | None] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)
    open: list[Stretch] = field(default_factory=list)  # around the instruction, innermost last
    _next: list[Stretch] = field(default_factory=list)  # that begin later, the nearest last
    _passed: int = 0  # what lies before is nested too deep to be looked at

    def enter(self, index: int) -> None:
        """Close the branches that end before an instruction, open the one that begins at it."""
        while self.open and self.open[-1][1] <= index:
            self.open.pop()
        if self._next and self._next[-1][0] == index:
            self.open.append(self._next.pop())
        if self.open:
            self.homes[index] = self.open[-1]

    def branch(self, index: int, instruction: Instruction) -> None:
        """Take in the branches of an instruction, or what is wrong with them."""
        if index < self._passed:
            return
        home = self.open[-1] if self.open else None
        limit = home[1] if home else len(self.instructions)
        stretches, problem = _branch_stretches(index, instruction, limit)
        problem = problem or _end_problem(self.instructions, stretches)
        if problem is None and len(self.open) == MOST_NESTED:
            problem = f"its branches lie {MOST_NESTED + 1} deep in others, at most {MOST_NESTED}"
            self._passed = stretches[-1][1]
        if problem is not None:
            self.problems.append((index, problem))
            return
        self.branches[index] = stretches
        self.behind[index] = stretches[-1][1]
        self.parents.update(dict.fromkeys(stretches, home))
        self._next += reversed(stretches)


def _branch_stretches(
    index: int, instruction: Instruction, limit: int
) -> tuple[tuple[Stretch, ...], str | None]:
    starts: tuple[int, ...]
    if instruction.op == CONTROL_FLOW:
        starts = (index + 1, index + 1 + instruction.c[1])
        end = starts[1] + instruction.c[2]
    else:
        starts = tuple(index + offset for offset in instruction.d[2:])
        end = index + instruction.d[0]
    if not starts:
        return (), "there is no branch"
    bounds = (*starts, end)
    if any(b <= a for a, b in zip((index, *bounds), bounds, strict=False)):
        return (), "branches are empty, overlap or lie before the instruction"
    if starts[0] != index + 1:
        return (), f"the first branch begins at instruction {starts[0]}, expected {index + 1}"
    if end > limit:
        return (), f"the branches end at instruction {end}, expected {limit} at most"
    return tuple(zip(starts, bounds[1:], strict=True)), None


def _end_problem(instructions: Sequence[Instruction], stretches: tuple[Stretch, ...]) -> str | None:
    for start, end in stretches:
        last = instructions[end - 1]
        if (last.op, last.variant) != (OUTPUT, BRANCH):
            return f"the branch of instructions {start} to {end - 1} does not end in <OUTPUT B=1>"
    return None
