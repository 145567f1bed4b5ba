"""Which of the steps that may run comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nacre.nem.run.sessions.frontier import Frontier


class Schedule(Protocol):
    """A choice among ready steps.

    It depends on how many steps were taken and on nothing else, so that a step that is taken back
    and taken again is the same step.
    """

    def choose(self, frontier: Frontier, taken: int) -> int | None:
        """The step to take after `taken` others; None where the order has none to offer."""
        ...


class ProgramOrder:
    """Always the first ready step: the order of the text, iteration after iteration."""

    def choose(self, frontier: Frontier, taken: int) -> int | None:
        """The first in program order."""
        return frontier.ready[0] if frontier.ready else None


class TimedOrder:
    """The order of a timed run, which is legal: nothing need be asked."""

    def __init__(self, steps: Sequence[int]) -> None:
        self.steps = tuple(steps)

    def choose(self, frontier: Frontier, taken: int) -> int | None:
        """The next of the list."""
        return self.steps[taken] if taken < len(self.steps) else None


class RandomOrder:
    """Any ready step, each with equal chance, the same every time for one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def choose(self, frontier: Frontier, taken: int) -> int | None:
        """One of the ready steps."""
        ready = frontier.ready
        return ready[_splitmix64(self.seed, taken) % len(ready)] if ready else None


def _splitmix64(seed: int, number: int) -> int:
    """A well-stirred function of both: splitmix64."""
    mask = (1 << 64) - 1
    value = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xD1B54A32D192ED03) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


class RecordedOrder:
    """An order from a trace or a witness; steps that it does not name follow in program order."""

    def __init__(self, steps: Sequence[int]) -> None:
        self.steps = tuple(steps)

    def choose(self, frontier: Frontier, taken: int) -> int | None:
        """The next of the list if it is ready; None where the order is not legal."""
        if taken >= len(self.steps):
            return frontier.ready[0] if frontier.ready else None
        step = self.steps[taken]
        return step if frontier.is_ready(step) else None
