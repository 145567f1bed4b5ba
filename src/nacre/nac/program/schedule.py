"""The schedule of memory for a program, by the text's meaning and complete.

A result with one consumer, the next instruction that is no load of a weight, is FORWARDed to it.
Others are SAVEd and FREEd at the tick after their last use, as are inputs and weights. A weight is
PRELOADed at the last instruction before it that computes, so that it is there in time and not long
before. What the program returns is not freed.

What is computed in a branch goes in it, at its end at the latest, when its result is the choice's.
What is computed before a choice and used in a branch goes behind all branches, whichever was taken.
A weight at the beginning of a branch is loaded there: nobody knows before that it will be needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from nacre.nac.checks.examination import operand_offsets
from nacre.nac.format.packing import limit_error
from nacre.nac.format.values import Command, Instruction, NacFile, Tick
from nacre.nac.program.blocks import Stretch, blocks_of
from nacre.nac.spec.instructions import (
    FINAL,
    FORWARD,
    FREE,
    INPUT,
    MOST_COMMANDS,
    OUTPUT,
    PARAMETER,
    PRELOAD,
    SAVE_RESULT,
)

# In which order commands of a tick are listed.
_ORDER = {FREE: 0, FORWARD: 1, SAVE_RESULT: 2, PRELOAD: 3}


def make_schedule(file: NacFile) -> tuple[Tick, ...]:
    """The schedule of a program that breaks no promise."""
    return _Scheduler(file.instructions).ticks()


class _Scheduler:
    """Says when each result is kept, and when it goes."""

    def __init__(self, instructions: tuple[Instruction, ...]) -> None:
        self._instructions = instructions
        self._last = len(instructions) - 1
        self._blocks = blocks_of(instructions)
        self._users, self._returned = _users(instructions)
        self._commands: dict[int, list[Command]] = {}

    def ticks(self) -> tuple[Tick, ...]:
        """The schedule."""
        for index, instruction in enumerate(self._instructions):
            if instruction.op != OUTPUT:
                self._schedule(index, instruction)
        return tuple(_ticks(self._commands, self._last))

    def _at(self, tick: int, action: int, target: int) -> None:
        self._commands.setdefault(tick, []).append(Command(action, target))

    def _schedule(self, index: int, instruction: Instruction) -> None:
        uses = self._users.get(index, [])
        if _is_weight(instruction):
            before = self._computed_before(index)
            if before is not None:
                self._at(before, PRELOAD, index)
        elif instruction.op != INPUT:
            if self._is_forwarded(index, uses):
                self._at(index, FORWARD, uses[0])
                return
            self._at(index, SAVE_RESULT, index)
        if index not in self._returned:
            self._at(self._free_from(index, uses), FREE, index)

    def _free_from(self, index: int, uses: Sequence[int]) -> int:
        """The tick at which nobody needs a result any more, whichever branches were taken."""
        home = self._blocks.homes.get(index)
        end = self._last if home is None else home[1] - 1
        last = uses[-1] if uses else index
        behind = self._blocks.behind.get(last, last + 1)  # and behind its branches
        return min(max(behind, self._behind_branches(last, home)), end)

    def _behind_branches(self, user: int, home: Stretch | None) -> int:
        """Where a program goes on behind the branches around a user that a result is not in."""
        found, around = user, self._blocks.homes.get(user)
        while around != home and around is not None:
            found = self._ends[around]
            around = self._blocks.parents[around]
        return found

    @cached_property
    def _ends(self) -> dict[Stretch, int]:
        """Where a program goes on behind each branch and those beside it."""
        branches = self._blocks.branches.items()
        return {branch: self._blocks.behind[index] for index, found in branches for branch in found}

    def _is_forwarded(self, index: int, uses: Sequence[int]) -> bool:
        """Whether the only consumer is the next instruction that is no load of a weight."""
        if len(uses) != 1 or index in self._returned or index in self._blocks.branches:
            return False
        if self._blocks.homes.get(index) != self._blocks.homes.get(uses[0]):
            return False
        return all(_is_weight(i) for i in self._instructions[index + 1 : uses[0]])

    def _computed_before(self, index: int) -> int | None:
        """The last instruction before a weight that is none itself and has been executed by then.

        The first one where a program begins with weights; none at the beginning of a branch, for
        nobody knows before that it will be taken.
        """
        home = self._blocks.homes.get(index)
        for at in range(index - 1, -1 if home is None else home[0] - 1, -1):
            inner = self._blocks.homes.get(at)
            if inner != home:  # behind branches: they are over when their choice is
                return self._blocks.step_of(at, home)
            if not _is_weight(self._instructions[at]):
                return at
        return 0 if home is None else None


def _ticks(commands: Mapping[int, Sequence[Command]], last: int) -> Iterator[Tick]:
    """Records in order. Of what is too much for a tick, that waits which can wait longest."""
    waiting: list[Command] = []
    for tick in range(last + 1):
        due = sorted([*waiting, *commands.get(tick, ())], key=lambda c: _deadline(c, last))
        commands_now, waiting = due[:MOST_COMMANDS], due[MOST_COMMANDS:]
        if commands_now:
            yield Tick(
                tick, tuple(sorted(commands_now, key=lambda c: (_ORDER[c.action], c.target)))
            )
    if waiting:
        message = f"{MOST_COMMANDS + len(waiting)} memory commands at tick {last}"
        raise limit_error("memory command", message)


def _deadline(command: Command, last: int) -> int:
    """A result is kept at once, a weight comes before its instruction, freeing can wait."""
    return {PRELOAD: command.target, FREE: last + 1}.get(command.action, -1)


def _users(instructions: tuple[Instruction, ...]) -> tuple[dict[int, list[int]], set[int]]:
    """Who uses each result, in order, and what is returned."""
    users: dict[int, list[int]] = {}
    returned: set[int] = set()
    for index, instruction in enumerate(instructions):
        offsets = operand_offsets(instruction.op, instruction.c, instruction.d)
        for target in dict.fromkeys(index + offset for offset in offsets if offset):
            users.setdefault(target, []).append(index)
            if (instruction.op, instruction.variant) == (OUTPUT, FINAL):
                returned.add(target)
    return users, returned


def _is_weight(instruction: Instruction) -> bool:
    return (instruction.op, instruction.variant) == (INPUT, PARAMETER)
