"""Runs within a limit of memory: weights come and go as a plan says, and pages with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.run.calls import Budget
from nacre.nac.run.interpreter import Interpreter, TimedInterpreter, Timing
from nacre.nac.run.limits import Limits
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory_plan import MemoryPlan, plan_memory
from nacre.nac.run.opaque import Randomness
from nacre.nac.run.streaming import StreamingDomain, WeightLoader

_MOST_PLANS = 64  # kept for inputs of different types


@dataclass(frozen=True)
class LimitedResult:
    """What a run returned, and the memory that it took."""

    outputs: list[Any]
    borrowed: set[int]  # owners of what belongs to somebody else
    peak_bytes: int
    timings: tuple[Timing, ...] = ()


class LimitedRuns:
    """The runs of a session that may take so many bytes, and their plans by types of inputs."""

    def __init__(self, program: LoadedProgram, limit: int) -> None:
        self._program = program
        self._limit = limit
        self._plans: dict[object, MemoryPlan] = {}

    def holds_all(self, peak_bytes: int) -> bool:
        """Whether all weights may stay, with what is made of them and what a run takes."""
        # As they lie in the file, as kernels take them, and rewritten.
        return peak_bytes + 3 * self._program.weights.wide_bytes <= self._limit

    def plan(
        self,
        key: object,
        given: Mapping[int, Array],
        state: Mapping[int, Array],
        limits: Limits,
    ) -> MemoryPlan:
        """The plan for inputs of these types; InputError where the limit cannot be met."""
        if key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan_memory(self._program, given, state, limits, self._limit)
        return self._plans[key]

    def run(
        self,
        plan: MemoryPlan,
        given: Mapping[int, Array],
        state: Mapping[int, Array],
        limits: Limits,
        is_timed: bool,
        randomness: Randomness,
    ) -> LimitedResult:
        """Run the program as a plan says."""
        budget = Budget(Limits(min(limits.bytes, self._limit), limits.work))
        with WeightLoader(self._program.weights) as loader:
            budget.memory.on_free = loader.free
            run = StreamingDomain(
                self._program, given, state, budget, loader=loader, randomness=randomness
            )
            kind = TimedInterpreter if is_timed else Interpreter
            interpreter = kind(self._program, run, budget.memory, plan.schedule)
            outputs = interpreter.outputs()
            for output in outputs:
                if isinstance(output, np.ndarray):
                    loader.wait(output)
        timings = interpreter.timings if isinstance(interpreter, TimedInterpreter) else ()
        return LimitedResult(outputs, run.borrowed, budget.memory.peak, tuple(timings))
