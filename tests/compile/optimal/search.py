"""The fastest plan of a small graph over all tiles, groups and tensors in L1, beside the compiler's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from nacre.compile.bundle.bundle import Bundle
from nacre.compile.emission.stage import emit
from nacre.compile.options import Options
from nacre.compile.pipeline import Compiled, bundle_of, run_stages
from nacre.compile.program import tasks_of
from nacre.compile.target import Target
from nacre.core.module import Module
from tests.compile.optimal.alternatives import Alternative, alternatives
from tests.compile.optimal.answer import solved_program
from tests.compile.optimal.schedule_model import MOST_TASKS, ScheduleModel, Solution
from tests.compile.optimal.tile_choices import TileChoice, UnsupportedGraphError, tile_choices

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
        """Whether nothing is faster than the best."""
        return self.bound >= self.best

    @property
    def ratio(self) -> float:
        """Ours over the best."""
        return self.ours / self.best


def compare(module: Module, target: Target, options: Options, seconds: float) -> Comparison:
    """The compiler's plan, and the fastest of all in about so much time."""
    compiled = run_stages(module, target, options)
    ours = Bundle.of(bundle_of(module, compiled, options))
    cycles, tasks = ours.time().cycles, len(tasks_of(compiled.program.statements))
    if tasks > MOST_TASKS or any(layer.part_of for layer in compiled.cut.layers):
        raise UnsupportedGraphError(f"{tasks} tasks, or layers in strips")
    search = _Search(compiled, options, cycles)
    search.run(seconds)
    plan, timed = search.plan(module, target)
    return Comparison(
        cycles, tasks, search.best, search.bound, search.count, plan, timed
    )


class _Search:
    def __init__(self, compiled: Compiled, options: Options, cycles: int) -> None:
        self._compiled, self._options = compiled, options
        self.best, self.bound, self.count = cycles, cycles, 0
        self._found: tuple[Alternative, list[list[TileChoice]], Solution] | None = None
        self._most_tiles = _most_tiles(compiled)

    def run(self, seconds: float) -> None:
        """Alternatives in the order of their bounds."""
        left = seconds
        wanted = sorted(self._bounded(), key=lambda found: (found[0], found[1]))
        self.count = len(wanted)
        for least, _, alternative, choices in wanted:
            if least >= self.best:
                break
            if left <= 0:
                self.bound = min(self.bound, least)
                break
            model = ScheduleModel(
                alternative.partition, self._options, alternative.resident, choices, self.best - 1
            )
            verdict = model.solve(left)
            left -= verdict.seconds
            if verdict.solution is not None:
                self.best = verdict.solution.cycles
                self._found = alternative, choices, verdict.solution
            if not verdict.is_proven:
                self.bound = min(self.bound, max(least, verdict.bound))
        self.bound = min(self.bound, self.best)

    def _bounded(self) -> list[tuple[int, int, Alternative, list[list[TileChoice]]]]:
        """Every alternative that has tiles at all, and what its busiest unit takes at least."""
        numbers, found = count(), []
        known: dict[object, list[TileChoice]] = {}
        for alternative in alternatives(self._compiled.partition, self._options):
            choices = []
            for layer in alternative.partition.layers:
                resident = alternative.resident & {*layer.reads, *layer.writes}
                key = layer, resident
                if key not in known:
                    known[key] = tile_choices(
                        layer, alternative.partition, self._options, resident, self._most_tiles
                    )
                choices.append(known[key])
            if all(choices):
                model = ScheduleModel(
                    alternative.partition, self._options, alternative.resident, choices,
                    self.best - 1, has_tasks=False,
                )  # fmt: skip
                found.append((model.solve(_SECONDS_OF_BOUND).bound, next(numbers), alternative, choices))
        return found

    def plan(self, module: Module, target: Target) -> tuple[Bundle | None, int | None]:
        """The answer as a plan that was checked, and its cycles."""
        if self._found is None:
            return None, None
        best: tuple[Bundle | None, int | None] = None, None
        for in_order in (False, True):
            made = solved_program(*self._found, self._options, in_order=in_order)
            if made is None:
                return None, None
            program, placement, tilings = made
            text = emit(program, target)
            partition = self._found[0].partition
            compiled = replace(
                self._compiled, cut=partition, tilings=tilings, placement=placement,
                program=program, text=text,
            )  # fmt: skip
            bundle = Bundle.of(bundle_of(module, compiled, self._options))
            assert not bundle.problems, bundle.problems[0]
            cycles = bundle.time().cycles
            if best[1] is None or cycles < best[1]:
                best = bundle, cycles
            if cycles <= self.best:
                break
        return best


def _most_tiles(compiled: Compiled) -> int:
    """As many tiles of a layer as leave room for the tasks of others, and those of the plan."""
    layers = compiled.cut.layers
    own = [
        -(-layer.rows // t.rows) * -(-layer.columns // t.columns)
        for layer, t in zip(layers, compiled.tilings.layers, strict=True)
    ]
    return max(*own, int(MOST_TASKS / _TASKS_OF_TILE / len(layers)), 1)
