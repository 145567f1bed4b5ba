"""The schedule of memory followed step by step: what happens to every result.

Commands of a tick happen after the instruction of that tick; a result that is forwarded goes away
with its consumer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nacre.nac.format.values import Tick
from nacre.nac.spec.instructions import FORWARD, FREE


@dataclass(frozen=True)
class End:
    """When a result goes away: after the instruction of a tick."""

    tick: int
    word: str
    record: int  # of the schedule


@dataclass(frozen=True)
class Violation:
    """A result that is used after its end, or ends twice."""

    result: int
    end: End
    user: int | None = None  # the instruction that uses it
    first: End | None = None  # where it ended before

    @property
    def message(self) -> str:
        """What is wrong."""
        head = f"the result of instruction {self.result} is {self.end.word} at tick {self.end.tick}"
        if self.first is not None:
            return f"{head}, but was {self.first.word} at tick {self.first.tick}"
        return f"{head}, and instruction {self.user} uses it"


@dataclass
class Lifetimes:
    """When results go away in a run that follows a schedule, and what is wrong with that."""

    ends: dict[int, End] = field(default_factory=dict)  # by result
    violations: list[Violation] = field(default_factory=list)


def lifetimes(operands: Sequence[Sequence[int]], schedule: Sequence[Tick]) -> Lifetimes:
    """Every instruction in turn, with the instructions whose results it uses."""
    lives = Lifetimes()
    by_tick = _ends_by_tick(schedule, len(operands))
    reported: set[int] = set()
    for index, used in enumerate(operands):
        for result in dict.fromkeys(used):
            if result in lives.ends and result not in reported:
                reported.add(result)
                lives.violations.append(Violation(result, lives.ends[result], index))
        for result, end in by_tick.get(index, ()):
            if result in lives.ends:
                lives.violations.append(Violation(result, end, first=lives.ends[result]))
            else:
                lives.ends[result] = end
    return lives


def _ends_by_tick(schedule: Sequence[Tick], count: int) -> Mapping[int, list[tuple[int, End]]]:
    found: dict[int, list[tuple[int, End]]] = {}
    for result, end in ends_of(schedule, count):
        found.setdefault(end.tick, []).append((result, end))
    return found


def ends_of(schedule: Sequence[Tick], count: int) -> Iterator[tuple[int, End]]:
    """Every result that a schedule lets go of; commands that make no sense are left out."""
    for record, tick in enumerate(schedule):
        for command in tick.commands:
            if command.action == FREE and command.target <= tick.tick < count:
                yield command.target, End(tick.tick, "freed", record)
            elif command.action == FORWARD and tick.tick < command.target < count:
                yield tick.tick, End(command.target, "forwarded", record)
