"""The schedule of memory: who follows it loses nothing that is still needed.

Commands of a tick happen after the instruction of that tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nacre.base.diagnostics import Diagnostic
from nacre.nac.checks.examination import Examination
from nacre.nac.checks.lifetimes import lifetimes
from nacre.nac.format.values import Command
from nacre.nac.rules.program import NAC32, NAC33, NAC34, NAC35
from nacre.nac.spec.instructions import (
    ACTIONS,
    FORWARD,
    FREE,
    INPUT,
    PARAMETER,
    PRELOAD,
    SAVE_RESULT,
    TRAINING_ACTIONS,
    Action,
)


def ticks(case: Examination) -> Iterator[Diagnostic]:
    """Ticks are instructions, in order."""
    if not case.has("MMAP", "OPS "):
        return
    before, count = -1, len(case.file.instructions)
    for record, tick in enumerate(case.file.schedule):
        place = case.position("MMAP", record)
        if tick.tick >= count:
            message = f"tick {tick.tick}, but the program has {count} instructions"
            yield case.at(NAC32, place, message)
        elif tick.tick <= before:
            yield case.at(NAC32, place, f"tick {tick.tick} comes after tick {before}")
        before = max(before, tick.tick)


def actions(case: Examination) -> Iterator[Diagnostic]:
    """Commands are known, and their targets are what they say."""
    if not case.has("MMAP", "OPS "):
        return
    known = ACTIONS if case.file.header.version == 1 else {**ACTIONS, **TRAINING_ACTIONS}
    uses = _uses(case)
    for record, tick in enumerate(case.file.schedule):
        place = case.position("MMAP", record)
        is_instruction = tick.tick < len(case.file.instructions)
        for command in tick.commands if is_instruction else ():
            if command.action not in known:
                message = f"memory command {command.action}, expected {_format_actions(known)}"
                yield case.at(NAC33, place, message)
                continue
            problem = _target_problem(case, tick.tick, command, uses)
            if problem is not None:
                name = known[command.action].name
                message = f"{name} -> {command.target} at tick {tick.tick}: {problem}"
                yield case.at(NAC34, place, message)


def _format_actions(known: Mapping[int, Action]) -> str:
    return ", ".join(f"{code} {action.name}" for code, action in sorted(known.items()))


def _uses(case: Examination) -> dict[int, list[int]]:
    """The instructions that use each result, in order."""
    found: dict[int, list[int]] = {}
    for index, offsets in enumerate(case.operands):
        for offset in {o for o in offsets if o < 0}:
            found.setdefault(index + offset, []).append(index)
    return found


def _target_problem(
    case: Examination, tick: int, command: Command, uses: dict[int, list[int]]
) -> str | None:
    instructions, target = case.file.instructions, command.target
    if target >= len(instructions):
        return f"the program has {len(instructions)} instructions"
    if command.action == SAVE_RESULT and target != tick:
        return "it saves the result of its own tick"
    if command.action == FREE and target > tick:
        return "that instruction was not executed yet"
    if command.action == FORWARD and target not in uses.get(tick, ()):
        return f"instruction {target} does not use the result of instruction {tick}"
    if command.action == PRELOAD:
        load = instructions[target]
        if (load.op, load.variant) != (INPUT, PARAMETER):
            return "it loads a parameter, and that instruction does not"
        if target < tick:
            return "that instruction was executed before"
    return None


def frees(case: Examination) -> Iterator[Diagnostic]:
    """Nothing is used after it went away, and nothing goes twice."""
    if not case.has("MMAP", "OPS "):
        return
    operands = [
        [index + offset for offset in offsets if offset < 0]
        for index, offsets in enumerate(case.operands)
    ]
    for violation in lifetimes(operands, case.file.schedule).violations:
        place = case.position("MMAP", violation.end.record)
        yield case.at(NAC35, place, violation.message)
