"""Where and for how long every instance runs, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.term_columns import Column
from nacre.tcb.figures import Figures
from nacre.tcb.image import DEVICE, Machine, UnitUse
from nacre.tcb.machine.event_columns import MOST_UNITS
from nacre.tcb.machine.findings import place_of
from nacre.tcb.machine.hardware import MOST_CYCLES, REQUESTING, burst_cycles
from nacre.tcb.machine.instances import NONE, Instances
from nacre.tcb.machine.tree import PlacedBlock
from nacre.tcb.rules.running import TCB52

_CSTL = "CSTL"
_CSTL_PARTS = ("CSTLA", "CSTLB")
# What blocks say, beside the engine that they run on.
_OWN_COLUMNS = ("ideal", "duration", "shared", "pool", "bound", "first_output")


@dataclass(frozen=True, slots=True)
class Pool:
    """The instances of a unit type on an engine, or on the device."""

    unit: str
    engine: int | None
    first: int  # instance
    count: int

    def name(self, instance: int) -> str:
        """`NMU[0]@1`: instance 0 of engine 1; `sDMA[0]` belongs to the device."""
        where = "" if self.engine is None else f"@{self.engine}"
        return f"{self.unit}[{instance - self.first}]{where}"


def pools_of(machine: Machine, figures: Figures) -> tuple[Pool, ...]:
    """The units of a machine, instance after instance; a CSTL in parts is two units."""
    pools: list[Pool] = []
    first = 0
    own = [(u, k, n) for k in range(machine.engines) for u, n in machine.units]
    for unit, engine, count in [*own, *((u, None, n) for u, n in machine.device_units)]:
        for name in unit_parts(unit, None, figures):
            pools.append(Pool(name, engine, first, count))
            first += count
    return tuple(pools)


def unit_parts(unit: str, part: str | None, figures: Figures) -> tuple[str, ...]:
    """The units that something occupies: a part of a CSTL, or all of its parts."""
    if unit != _CSTL or figures.count("cstl.parts") < len(_CSTL_PARTS):
        return (unit,)
    return _CSTL_PARTS if part is None else (part,)


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """Columns over the instances; MOST_UNITS entries of `pool` and `bound` each."""

    pools: tuple[Pool, ...]
    ideal: Column  # cycles on ideal hardware
    duration: Column
    shared: Column
    pool: Column  # (instances, MOST_UNITS); -1: none
    bound: Column  # (instances, MOST_UNITS): the instance within the pool; -1: any
    engine: Column
    first_output: Column  # cycles until the first result is there


def place_instances(instances: Instances, figures: Figures) -> UnitColumns:
    """Units, bindings and cycles; InputError TCB52 where a block cannot run on the machine."""
    count = instances.count
    pools = pools_of(instances.image.machine, figures)
    made = UnitColumns(
        pools,
        ideal=np.zeros(count, np.int64),
        duration=np.zeros(count, np.int64),
        shared=np.zeros(count, np.int64),
        pool=np.full((count, MOST_UNITS), NONE, np.int64),
        bound=np.full((count, MOST_UNITS), NONE, np.int64),
        engine=engines_of(instances),
        first_output=np.zeros(count, np.int64),
    )
    _place_blocks(instances, range(len(instances.blocks)), figures, made)
    return made


def replace_units(
    instances: Instances, changed: Sequence[int], figures: Figures, before: UnitColumns
) -> UnitColumns:
    """The columns of instances of which only some blocks are others than those of `before`."""
    columns = {name: getattr(before, name).copy() for name in _OWN_COLUMNS}
    made = replace(before, **columns)
    for at in changed:
        rows = instances.numbers[at]
        made.pool[rows], made.bound[rows] = NONE, NONE
    _place_blocks(instances, changed, figures, made)
    return made


def _place_blocks(
    instances: Instances, blocks: Iterable[int], figures: Figures, made: UnitColumns
) -> None:
    index = {(pool.unit, pool.engine): at for at, pool in enumerate(made.pools)}
    for at in blocks:
        placed = instances.blocks[at]
        if placed.block.kind == "task" and placed.grid.rows:
            _place(instances, at, index, figures, made)


def _place(
    instances: Instances,
    at: int,
    index: dict[tuple[str, int | None], int],
    figures: Figures,
    made: UnitColumns,
) -> None:
    placed, rows = instances.blocks[at], instances.numbers[at]
    block = placed.block
    made.ideal[rows] = block.cycles
    made.shared[rows] = block.shared
    made.first_output[rows] = max((use.latency for use in block.units), default=0)
    try:
        longer = burst_cycles(placed, figures)
    except OverflowError:
        message = f"takes more than {MOST_CYCLES:,} cycles: the figures of `dma` are too high"
        raise _unit_error(instances, int(rows[0]), message) from None
    made.duration[rows] = np.maximum(block.shared, _busy_cycles(block.units, longer))
    engines = instances.image.machine.engines
    for slot, (use, unit) in enumerate(_occupied(block.units, figures)):
        by_engine = [index.get((unit, k), index.get((unit, None), NONE)) for k in range(engines)]
        pool = np.array(by_engine, np.int64)[made.engine[rows]]
        if slot >= MOST_UNITS or (pool == NONE).any():
            why = "is not there" if slot < MOST_UNITS else f"is one more than {MOST_UNITS}"
            raise _unit_error(instances, int(rows[0]), f"needs a {unit}, which {why}")
        made.pool[rows, slot] = pool
        if use.instance is not None:
            bound = placed.grid.column(use.instance)
            least = min(made.pools[p].count for p in set(pool.tolist()))
            if bound.min() < 0 or bound.max() >= least:
                raise _unit_error(instances, int(rows[0]), f"needs a {unit} that is not there")
            made.bound[rows, slot] = bound


def _busy_cycles(uses: tuple[UnitUse, ...], longer: Column) -> Column:
    """Cycles on the units; what requests cost is added to the one that makes them."""
    busy = np.zeros(longer.size, np.int64)
    for use in uses:
        extra = longer if use.unit in REQUESTING else 0
        busy = np.maximum(busy, use.latency + use.work + extra)
    return busy


def _occupied(uses: tuple[UnitUse, ...], figures: Figures) -> Iterator[tuple[UnitUse, str]]:
    for use in uses:
        for unit in unit_parts(use.unit, use.part, figures):
            yield use, unit


def _unit_error(instances: Instances, instance: int, message: str) -> InputError:
    name = instances.name(instance)
    return InputError([TCB52.at(place_of(instances, instance), f"`{name}` {message}")])


def engines_of(instances: Instances) -> Column:
    """The engine of every instance; tasks that may run anywhere take the engines in turn."""
    machine = instances.image.machine
    found = np.zeros(instances.count, np.int64)
    free = np.zeros(instances.count, np.bool_)
    for placed, rows in zip(instances.blocks, instances.numbers, strict=True):
        if placed.block.kind == "task" and placed.grid.rows:
            engine = _engine(placed)
            found[rows] = engine
            free[rows] = placed.stream == DEVICE and placed.block.engine is None
    found[free] = np.arange(int(free.sum())) % max(1, machine.engines)
    wrong = np.flatnonzero((found < 0) | (found >= machine.engines))
    if wrong.size and instances.count:
        at = int(wrong[0])
        raise _unit_error(instances, at, f"is for engine {found[at]}, of {machine.engines}")
    return found


def _engine(placed: PlacedBlock) -> Column:
    if placed.stream != DEVICE:
        return np.full(placed.grid.rows, placed.stream, np.int64)
    return placed.grid.column(0 if placed.block.engine is None else placed.block.engine)
