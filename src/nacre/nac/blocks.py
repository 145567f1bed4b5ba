"""Branches: which stretches of a program `<CONTROL_FLOW>` and `<CONVERGENCE>` choose between.

The branches of CONTROL_FLOW follow it, first the one for true, then the one for false; those of
CONVERGENCE begin where its offsets say and end where the next one begins. Every branch ends in
`<OUTPUT B=1>`. Execution goes on behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nacre.nac.format.values import Instruction
from nacre.nac.spec.instructions import BRANCH, CONTROL_FLOW, CONVERGENCE, OUTPUT

Stretch = tuple[int, int]  # first instruction, and the one behind the last


@dataclass(frozen=True)
class Blocks:
    """The branches of a program."""

    branches: Mapping[int, tuple[Stretch, ...]] = field(default_factory=dict)  # by instruction
    behind: Mapping[int, int] = field(default_factory=dict)  # where execution goes on
    homes: Mapping[int, Stretch] = field(default_factory=dict)  # the innermost branch around one
    parents: Mapping[Stretch, Stretch | None] = field(default_factory=dict)
    problems: tuple[tuple[int, str], ...] = ()  # instruction, what is wrong

    def sees(self, user: int, maker: int) -> bool:
        """Whether an instruction may use the result of another: it lies around it, not beside."""
        wanted = self.homes.get(maker)
        home: Stretch | None = self.homes.get(user)
        while home != wanted:
            if home is None:
                return False
            home = self.parents[home]
        return True


def blocks_of(instructions: Sequence[Instruction]) -> Blocks:
    """The branches; those that do not fit are among the problems."""
    branches: dict[int, tuple[Stretch, ...]] = {}
    behind: dict[int, int] = {}
    homes: dict[int, Stretch] = {}
    parents: dict[Stretch, Stretch | None] = {}
    problems: list[tuple[int, str]] = []
    for index, instruction in enumerate(instructions):
        if instruction.op not in (CONTROL_FLOW, CONVERGENCE):
            continue
        home = homes.get(index)
        made, problem = _stretches(index, instruction, home[1] if home else len(instructions))
        problem = problem or _unended(instructions, made)
        if problem is not None:
            problems.append((index, problem))
            continue
        branches[index] = made
        behind[index] = max(end for _, end in made)
        for stretch in made:
            parents[stretch] = home
            homes.update(dict.fromkeys(range(*stretch), stretch))
    for index, instruction in enumerate(instructions):
        if (instruction.op, instruction.variant) == (OUTPUT, BRANCH) and index not in homes:
            problems.append((index, "a branch's output stands in no branch"))
    return Blocks(branches, behind, homes, parents, tuple(problems))


def _stretches(
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
    if end > limit:
        return (), f"the branches end at instruction {end}, expected {limit} at most"
    return tuple(zip(starts, bounds[1:], strict=True)), None


def _unended(instructions: Sequence[Instruction], made: tuple[Stretch, ...]) -> str | None:
    for start, end in made:
        last = instructions[end - 1]
        if (last.op, last.variant) != (OUTPUT, BRANCH):
            return f"the branch of instructions {start} to {end - 1} does not end in <OUTPUT B=1>"
    return None
