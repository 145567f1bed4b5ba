"""How the tests of this folder get at a timed run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import time_steps
from neminterp import NemInterpreter

Row = tuple[str, list[int], int, int, str]  # name, iteration, start, end, unit


def timed(
    text: str, profile: Mapping[str, Mapping[str, Any]] | None = None, *, compile: bool = False
) -> TimedResult:
    """Time a program that has no errors, races apart."""
    program = NemInterpreter().load_string(text)
    program.require_runnable(["HAZ", "DEC10"])
    figures = timing_profile(program.device, profile)
    steps = number_steps(program.plan)
    return TimedResult(time_steps(steps, program.device, figures, compile=compile))


def rows(result: TimedResult) -> list[Row]:
    """Every task: name, iteration, start, end, unit."""
    return [
        (task["name"], task["iteration"], task["start"], task["end"], task["unit"])
        for task in result.tasks
    ]


def timed_file(path: Path) -> TimedResult:
    """Time a program from a file."""
    program = NemInterpreter().load(path)
    program.require_runnable()
    figures = timing_profile(program.device)
    return TimedResult(time_steps(number_steps(program.plan), program.device, figures))
