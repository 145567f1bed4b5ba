"""The fastest plan of a small graph, over all tiles, groups and tensors in L1, beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Options
from nacre.compile.pipeline import Compiled, bundle_of, run_stages
from nacre.compile.program import tasks_of
from nacre.compile.target import Target
from nacre.core.module import Module
from tests.compile.optimal.addresses import addresses
from tests.compile.optimal.alternatives import Alternative, alternatives
from tests.compile.optimal.answer import Answer
from tests.compile.optimal.schedule_model import ScheduleModel
from tests.compile.optimal.solution import Solution
from tests.compile.optimal.tile_choices import TileChoice, UnsupportedGraphError, tile_choices

MOST_TASKS = 60  # of a plan that is compared
_LEAST_TASKS = 30  # that every plan of a search may have
_SECONDS_OF_BOUND = 0.2
_TASKS_OF_TILE = 3.5  # about: how many tiles a layer may have where there are several


@dataclass(frozen=True, eq=False)
class Comparison:
    """What the compiler's plan takes, and the fastest that was found."""

    ours: int
    our_tasks: int
    best: int  # cycles of the fastest plan, ours or that of the search
    bound: int  # that none is below
    alternatives: int
    plan: Bundle | None  # the fastest, where it is not ours
    timed: int | None  # what it takes once it is emitted

    @property
    def is_proven(self) -> bool:
        """Whether nothing is faster than the best, which takes that long."""
        return self.bound >= self.best and (self.plan is None or self.timed == self.best)

    @property
    def ratio(self) -> float:
        """Ours over the best."""
        return self.ours / self.best


def compare(module: Module, target: Target, options: Options, seconds: float) -> Comparison:
    """The compiler's plan, and the fastest of all in so much time, as CP-SAT counts it."""
    compiled = run_stages(module, target, options)
    ours = Bundle.of(bundle_of(module, compiled, options))
    cycles, tasks = ours.time().cycles, len(tasks_of(compiled.program.statements))
    if tasks > MOST_TASKS or any(layer.part_of for layer in compiled.cut.layers):
        raise UnsupportedGraphError(f"{tasks} tasks, or layers in strips")
    search = _Search(compiled, options, cycles, max(tasks, _LEAST_TASKS))
    search.run(seconds)
    plan = search.plan(module, target)
    timed = None if plan is None else plan.time().cycles
    return Comparison(cycles, tasks, search.best, search.bound, search.count, plan, timed)


@dataclass(frozen=True, eq=False)
class _Bounded:
    """An alternative with the tiles that its layers may have, and cycles that it is not below."""

    least: int
    alternative: Alternative
    choices: Sequence[Sequence[TileChoice]]


class _Search:
    def __init__(self, compiled: Compiled, options: Options, cycles: int, most_tasks: int) -> None:
        self._compiled, self._options, self._most_tasks = compiled, options, most_tasks
        self.best, self.bound, self.count = cycles, cycles, 0
        self._found: tuple[_Bounded, Solution] | None = None

    def run(self, seconds: float) -> None:
        """Alternatives in the order of their bounds."""
        left, bounded = seconds, sorted(self._bounded(), key=lambda one: one.least)
        self.count = len(bounded)
        for one in bounded:
            if one.least >= self.best:
                break
            if left <= 0:
                self.bound = min(self.bound, one.least)
                break
            verdict = self._model(one.alternative, one.choices).solve(left)
            left -= verdict.seconds
            if verdict.solution is not None:
                self.best, self._found = verdict.solution.cycles, (one, verdict.solution)
            if not verdict.is_proven:
                self.bound = min(self.bound, max(one.least, verdict.bound))
        self.bound = min(self.bound, self.best)

    def _bounded(self) -> list[_Bounded]:
        """Every alternative that has tiles at all."""
        known: dict[object, list[TileChoice]] = {}
        found = []
        for alternative in alternatives(self._compiled.partition, self._options):
            partition, choices = alternative.partition, list[list[TileChoice]]()
            for layer in partition.layers:
                key = layer, alternative.resident & {*layer.reads, *layer.writes}
                if key not in known:
                    known[key] = tile_choices(
                        layer, partition, self._options, key[1], self._most_tiles
                    )
                choices.append(known[key])
            if all(choices):
                model = self._model(alternative, choices, has_tasks=False)
                least = model.solve(_SECONDS_OF_BOUND).bound
                found.append(_Bounded(least, alternative, choices))
        return found

    def _model(
        self,
        alternative: Alternative,
        choices: Sequence[Sequence[TileChoice]],
        *,
        has_tasks: bool = True,
    ) -> ScheduleModel:
        """The question whether an alternative has anything faster than the best so far."""
        return ScheduleModel(
            alternative.partition, self._options, alternative.resident, choices,
            most_cycles=self.best - 1, most_tasks=self._most_tasks, has_tasks=has_tasks,
        )  # fmt: skip

    @property
    def _most_tiles(self) -> int:
        """As many tiles of a layer as leave room for the tasks of others, and those of the plan."""
        layers = self._compiled.cut.layers
        own = [
            -(-layer.rows // t.rows) * -(-layer.columns // t.columns)
            for layer, t in zip(layers, self._compiled.tilings.layers, strict=True)
        ]
        return max(*own, int(self._most_tasks / _TASKS_OF_TILE / len(layers)), 1)

    def plan(self, module: Module, target: Target) -> Bundle | None:
        """What was found as a plan that was checked; None where ours is as fast, or L1 too small.

        Where tasks would overtake each other, they are kept in the order that was found.
        """
        if self._found is None:
            return None
        one, solution = self._found
        places = addresses(solution.boxes, self._options.l1_bytes)
        if places is None:
            return None
        answer = Answer(one.alternative, one.choices, solution, self._options, places)
        plans = []
        for in_order in (False, True):
            compiled = answer.compiled(self._compiled, target, in_order=in_order)
            plans.append(Bundle.of(bundle_of(module, compiled, self._options)))
            if plans[-1].problems:
                raise RuntimeError(plans[-1].problems[0].message)
            if plans[-1].time().cycles <= solution.cycles:
                break
        return min(plans, key=lambda plan: plan.time().cycles)
