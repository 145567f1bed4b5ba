"""The schedule of memory for a program, by the text's meaning and complete.

A result with one consumer, the next instruction that is no load of a weight, is FORWARDed to it.
Others are SAVEd and FREEd at the tick after their last use, as are inputs and weights. A weight is
PRELOADed at the last instruction before it that computes, so that it is there in time and not long
before. What the program returns is not freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nacre.nac.checks.examination import operand_offsets
from nacre.nac.format.packing import limit_error
from nacre.nac.format.values import Command, Instruction, NacFile, Tick
from nacre.nac.spec.instructions import (
    CONTROL_FLOW,
    CONVERGENCE,
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
    """The schedule; a program with branches has none, for what runs is not known."""
    instructions = file.instructions
    if any(i.op in (CONTROL_FLOW, CONVERGENCE) for i in instructions):
        return ()
    commands: dict[int, list[Command]] = {}

    def at(tick: int, action: int, target: int) -> None:
        commands.setdefault(tick, []).append(Command(action, target))

    users, returned = _users(instructions)
    for index, instruction in enumerate(instructions):
        uses = users.get(index, [])
        if _is_weight(instruction):
            at(_compute_before(instructions, index), PRELOAD, index)
        elif instruction.op not in (INPUT, OUTPUT):
            if uses and _is_forwarded(instructions, index, uses, returned):
                at(index, FORWARD, uses[0])
                continue
            at(index, SAVE_RESULT, index)
        if index not in returned and instruction.op != OUTPUT:
            last = uses[-1] if uses else index
            at(min(last + 1, len(instructions) - 1), FREE, index)
    return tuple(_ticks(commands, len(instructions) - 1))


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
            if instruction.op == OUTPUT:
                returned.add(target)
    return users, returned


def _is_weight(instruction: Instruction) -> bool:
    return (instruction.op, instruction.variant) == (INPUT, PARAMETER)


def _is_forwarded(
    instructions: tuple[Instruction, ...], index: int, uses: list[int], returned: set[int]
) -> bool:
    if len(uses) != 1 or index in returned:
        return False
    return all(_is_weight(i) for i in instructions[index + 1 : uses[0]])


def _compute_before(instructions: tuple[Instruction, ...], index: int) -> int:
    """The last instruction before a weight that is none itself; the first where there is none."""
    for before in range(index - 1, -1, -1):
        if not _is_weight(instructions[before]):
            return before
    return 0
