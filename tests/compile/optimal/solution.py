"""What a search found, as values: it may come from CP-SAT, or from trying everything."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskStart:
    """A task of an answer, and when it runs."""

    layer: int
    role: str  # weights, shared or tile
    tile: int  # or block of weights
    task: int  # of the pattern
    start: int
    end: int


@dataclass(frozen=True)
class Box:
    """Something in L1: from when to when, and how many bytes."""

    key: tuple[object, ...]
    start: int
    end: int
    size: int


@dataclass(frozen=True)
class Solution:
    """The tile of every layer, when every task runs, what lies in L1 when."""

    cycles: int
    choices: tuple[int, ...]  # by layer
    starts: tuple[TaskStart, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Verdict:
    """The best solution, if there is one, and cycles that none is below."""

    solution: Solution | None
    bound: int
    is_proven: bool
    seconds: float  # that the search took, as CP-SAT counts them: the same on every machine
