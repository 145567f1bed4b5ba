"""Where tasks run and what that costs: units, instances, engines."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.term_columns import Values
from nacre.base.terms import Term
from nacre.bind.counters import Counters, simplify
from nacre.bind.task_kinds import TaskKinds
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Task
from nacre.nem.plan.calls import TaskCall, TaskWork
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.placement import (
    Match,
    UnitCombination,
    capable_units,
    fixed_engine,
    present_units,
    requested_engine,
)
from nacre.nem.run.timing.costs import (
    DDR,
    CopyRate,
    copy_levels,
    copy_rate,
    cycles,
    ddr_cycles,
    latency_of,
    wire_cycles,
    work_cycles,
)
from nacre.nem.run.timing.profile import TimingProfile
from nacre.tcb.image import DEVICE, UnitUse


class UnitDecision(Struct, frozen=True, eq=False, gc=False):
    """Where a task runs, and how that agrees with what `@resource` asks for."""

    task: Task
    units: UnitCombination
    match: Match
    requested: str | None = None  # the unit that was asked for
    part: str | None = None  # of a CSTL whose parts work apart


class _UnitChoices(Struct, frozen=True, eq=False):
    """The units on which a task can run."""

    all: tuple[UnitCombination, ...]  # none: the device has none for it
    units: UnitCombination  # those that it prefers
    part: str | None  # of these


class _CopyRates(Struct, frozen=True, eq=False):
    """How fast copies from memory to memory are, whatever their size."""

    units: tuple[tuple[str, CopyRate, int], ...]  # with the latency
    part: str | None  # of a CSTL
    wires: int  # how often bytes go over those of DDR


class Target(NamedTuple):
    """All that the units of a task and its cycles on them depend on, beside the task."""

    device: str  # its digest
    cstl_parts: int


_CSTL, _POST_PROCESSING, _STORE_BACK = "CSTL", "CSTLA", "CSTLB"


class UnitDecisions(Struct, frozen=True, eq=False):
    """Where each of some tasks runs; made when asked for, since blocks follow from kinds alone."""

    units: UnitBinder
    tasks: tuple[Task, ...]

    def __iter__(self) -> Iterator[UnitDecision]:
        return map(self.units.decide, self.tasks)


class UnitBinder:
    """Binds tasks to units of a device by the Target Resource Validity Rule."""

    def __init__(self, device: Device, profile: TimingProfile, cstl_parts: int) -> None:
        self.kinds = TaskKinds()
        self._asking, self._requested = self.kinds.asking, self.kinds.requested
        self._device = device
        self._is_single = device.num_engines == 1
        self._has_parts = cstl_parts > 1
        self._profile = profile
        self.target = Target(device.digest, cstl_parts)
        self._choices: list[_UnitChoices] = []  # by kind
        self._choices_by_way: dict[Hashable, _UnitChoices] = {}
        self._latencies: dict[str, int] = {}  # of compute tasks, by unit
        self._rates: dict[Hashable, _CopyRates] = {}  # by their way

    def streams(self, tasks: Sequence[Task]) -> dict[int, int]:
        """The streams of tasks whose units are known, by position: their engines, or DEVICE."""
        if self._is_single and not self._asking:  # which is most programs
            return dict.fromkeys([task.position for task in tasks], 0)
        return {task.position: self._stream(task) for task in tasks}

    def _stream(self, task: Task) -> int:
        """The stream of a task: its engine; DEVICE where any will do."""
        if self._is_single and (
            task.position not in self._asking or requested_engine(task) is None
        ):
            return 0
        engine = fixed_engine(task)
        if isinstance(engine, int):
            return engine
        return 0 if self._is_single else DEVICE

    def engine(self, task: Task, counters: Counters) -> Term | None:
        """The engine of a task in the device's stream; None: engines take turns."""
        engine = fixed_engine(task)
        return None if engine is None else counters.term(engine)

    def look_at(self, tasks: Sequence[Task]) -> list[Task]:
        """Find out the units of the tasks of a program; those that the device has none for."""
        kinds = self.kinds
        kinds.look_at(tasks)
        self._choices = [self._choices_of(kind, task) for kind, task in enumerate(kinds.first)]
        if all(choices.all for choices in self._choices):
            return []
        return [task for task in tasks if not self._choices[kinds.numbers[task.position]].all]

    def decide(self, task: Task) -> UnitDecision:
        """The units of a task that was looked at."""
        choices = self._choices[self.kinds.numbers[task.position]]
        if not self._requested or (asked := self._requested.get(task.position)) is None:
            return UnitDecision(task, choices.units, "free", None, choices.part)
        way = next((way for way in choices.all if asked.unit in way), None)
        if way is None:
            return self._decision(task, choices.units, "translated", asked.unit)
        index, count = as_term(asked.index), self._device.count(asked.unit)
        is_exact = isinstance(index, int) and index < count
        return self._decision(task, way, "exact" if is_exact else "remapped", asked.unit)

    def _choices_of(self, kind: int, task: Task) -> _UnitChoices:
        """The units on which tasks of a kind can run, by the first of them."""
        way = self.kinds.way(kind)
        if way is None:
            return self._find_choices(task)
        found = self._choices_by_way.get(way)
        if found is None:
            found = self._choices_by_way[way] = self._find_choices(task)
        return found

    def _find_choices(self, task: Task) -> _UnitChoices:
        ways = present_units(capable_units(task), self._device)
        units = ways[0] if ways else ()
        return _UnitChoices(ways, units, self._part(task, units))

    def _decision(
        self, task: Task, units: UnitCombination, match: Match, requested: str
    ) -> UnitDecision:
        return UnitDecision(task, units, match, requested, self._part(task, units))

    def _part(self, task: Task, units: UnitCombination) -> str | None:
        """The part of a CSTL, where these have parts."""
        if not self._has_parts or _CSTL not in units:
            return None
        return _STORE_BACK if task.op == "store" else _POST_PROCESSING

    def uses(self, task: Task, row: Grid) -> tuple[UnitUse, ...]:
        """The units that a copy occupies, for how long in an iteration, of any instance."""
        profile = self._profile
        units, own_part = self._units_of(task)
        uses = []
        for name in units:
            latency = latency_of(task, name, profile)
            taken = _value(cycles(task, name, row, profile))
            uses.append(_use(name, latency, taken, own_part))
        return tuple(uses)

    def call_uses(self, task: Task, call: TaskCall, work: TaskWork) -> tuple[UnitUse, ...]:
        """The same of a compute task, by what it is called with in an iteration."""
        profile, latencies = self._profile, self._latencies
        units, own_part = self._units_of(task)
        uses = []
        for name in units:
            latency = latencies.get(name)
            if latency is None:
                latency = latencies[name] = latency_of(task, name, profile)
            taken = work_cycles(task, call, work, name, profile)
            uses.append(_use(name, latency, taken, own_part))
        return tuple(uses)

    def copy_uses(self, task: Task, size: int) -> tuple[tuple[UnitUse, ...], int]:
        """What `uses` and `shared` are of a copy of so many bytes without gaps."""
        way = self.kinds.way(self.kinds.numbers[task.position])
        rates = None if way is None else self._rates.get(way)
        if rates is None:
            rates = self._find_rates(task)
            if way is not None:
                self._rates[way] = rates
        profile, uses = self._profile, []
        for name, rate, latency in rates.units:
            taken = profile.scale(rate.cycles(1, size), name)
            uses.append(_use(name, latency, _value(taken), rates.part))
        wires = rates.wires
        return tuple(uses), _value(wire_cycles(size * wires, profile)) if wires else 0

    def _find_rates(self, task: Task) -> _CopyRates:
        profile, levels = self._profile, copy_levels(task)
        units, part = self._units_of(task)
        rates = [(name, copy_rate(task, name, profile)) for name in units]
        scaled = [(name, rate, profile.scale(rate.latency, name)) for name, rate in rates]
        return _CopyRates(tuple(scaled), part, levels.count(DDR))

    def _units_of(self, task: Task) -> tuple[UnitCombination, str | None]:
        """The units of a task whose kind is known, and the part of a CSTL among them."""
        position = task.position
        if position in self._requested:
            decision = self.decide(task)
            return decision.units, decision.part
        choices = self._choices[self.kinds.numbers[position]]
        return choices.units, choices.part

    def bind_instance(
        self, task: Task, uses: tuple[UnitUse, ...], counters: Counters
    ) -> tuple[UnitUse, ...]:
        """The same units, with the instance that `@resource` binds."""
        asked = self._requested.get(task.position)
        if asked is None or as_term(asked.index) is None:
            return uses
        count = max(1, self._device.count(asked.unit))
        instance = simplify("mod", counters.term(asked.index), count)
        return tuple(
            replace(use, instance=instance) if use.unit == asked.unit else use for use in uses
        )

    def shared(self, task: Task, row: Grid) -> int:
        """Cycles of DDR's bandwidth."""
        return _value(ddr_cycles(task, row, self._profile))


def _use(unit: str, latency: int, taken: int, part: str | None) -> UnitUse:
    return UnitUse(unit, latency, taken - latency, None, part if unit == _CSTL else None)


def _value(of_row: Values) -> int:
    """What a grid of one row has."""
    return of_row if isinstance(of_row, int) else int(of_row.reshape(-1)[0])
