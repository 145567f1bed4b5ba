"""Where the time of a plan goes, layer by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.term_columns import Column
from nacre.compile.bundle.manifest import LayerEntry, Manifest
from nacre.compile.estimate.bounds import LayerBound, ModelBounds
from nacre.compile.estimate.bounds_rates import CONVERSIONS
from nacre.nem.model.program import Task
from nacre.nem.run.timing.costs import ddr_bytes
from nacre.nem.run.timing.timeline import Timeline

OTHER = "(no layer)"
DEPENDENCES = "dependences"
_PRODUCTS = frozenset({"Conv", "Linear", "MatMul", "QConv", "QLinear"})
_LEAST_BUSY = 0.5  # a unit that is idle for longer does not limit a layer


@dataclass(frozen=True, eq=False)
class LayerTime:
    """A layer of a plan: when it ran, what it used, what limits it."""

    name: str
    operations: tuple[str, ...]
    nodes: tuple[str, ...]  # as the model calls them
    macs: int
    start: int  # of what does not come ahead of the layer, as its weights may
    end: int
    cycles: int  # from when all that ended earlier was done; over all layers they add up to the run
    busy: Mapping[str, int]  # by type of unit: cycles of its tasks over instances, busiest engine
    bottleneck: str
    ddr_bytes: int
    tasks: tuple[str, ...]  # tokens
    bound: LayerBound | None
    members: tuple[str, ...] = ()  # layers that run in it depth first

    @property
    def main_operations(self) -> tuple[str, ...]:
        """The operations without changes of type, unless it does nothing else."""
        return tuple(o for o in self.operations if o not in CONVERSIONS) or self.operations

    @property
    def operation(self) -> str:
        """The one that summaries count the layer under: its product, else what it does first."""
        products = (o for o in self.operations if self.macs and o in _PRODUCTS)
        return next(products, self.main_operations[0] if self.operations else self.name)

    @property
    def over_bound(self) -> float | None:
        """How many times its bound a layer takes."""
        floor = self.bound.cycles if self.bound is not None else 0
        return self.cycles / floor if floor else None

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        bound = self.bound
        return {
            "name": self.name,
            "operations": list(self.operations),
            "nodes": list(self.nodes),
            "macs": self.macs,
            "cycles": self.cycles,
            "start": self.start,
            "end": self.end,
            "bound": bound.cycles if bound is not None else None,
            "bound_by": bound.limit if bound is not None else None,
            "bottleneck": self.bottleneck,
            "busy": dict(self.busy),
            "ddr_bytes": self.ddr_bytes,
            "compulsory_ddr_bytes": bound.ddr_bytes if bound is not None else None,
            "tasks": list(self.tasks),
            "members": list(self.members),
        }


@dataclass(frozen=True)
class OperationTime:
    """The layers of one operation together."""

    operation: str
    layers: int
    macs: int
    cycles: int

    def as_json(self, total: int) -> dict[str, Any]:
        """All of it as plain values, with the share of a run's cycles."""
        return {
            "operation": self.operation,
            "layers": self.layers,
            "macs": self.macs,
            "cycles": self.cycles,
            "share": self.cycles / max(1, total),
        }


def operation_times(layers: Sequence[LayerTime]) -> tuple[OperationTime, ...]:
    """Where the time goes by operation, the costliest first."""
    by_operation: dict[str, list[LayerTime]] = defaultdict(list)
    for layer in layers:
        by_operation[layer.operation].append(layer)
    rows = [
        OperationTime(name, len(own), sum(x.macs for x in own), sum(x.cycles for x in own))
        for name, own in by_operation.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.cycles))


def layer_times(
    timeline: Timeline, manifest: Manifest, bounds: ModelBounds
) -> tuple[LayerTime, ...]:
    """The layers in the order of the plan; tasks that belong to none come last."""
    program = timeline.steps.plan.program
    by_token = {task.token: task for task in program.tasks if task.token is not None}
    tasks = {
        entry.name: [by_token[t] for t in (*entry.tasks, *entry.loads) if t in by_token]
        for entry in manifest.layers
    }
    owned = {task.position for found in tasks.values() for task in found}
    rest = [task for task in program.tasks if task.position not in owned]
    entries: list[LayerEntry | None] = [*manifest.layers]
    if rest:
        tasks[OTHER] = rest
        entries.append(None)
    names = [OTHER if entry is None else entry.name for entry in entries]
    steps = {name: _steps(timeline, tasks[name]) for name in names}
    added = _added_cycles(timeline, steps)
    return tuple(
        _time(
            timeline,
            entry,
            name,
            tasks[name],
            steps[name],
            added[name],
            None if entry is None else bounds.of(entry.members or (name,)),
        )
        for entry, name in zip(entries, names, strict=True)
    )


def _time(
    timeline: Timeline,
    entry: LayerEntry | None,
    name: str,
    tasks: Sequence[Task],
    steps: Column,
    cycles: int,
    bound: LayerBound | None,
) -> LayerTime:
    busy = _busy(timeline, steps)
    ahead = entry.loads if entry is not None else ()
    own = _steps(timeline, [task for task in tasks if task.token not in ahead])
    origins = entry.operations if entry is not None else ()
    return LayerTime(
        name,
        tuple(origin.opcode for origin in origins),
        entry.nodes if entry is not None else (),
        bound.macs if bound is not None else entry.macs if entry is not None else 0,
        int(timeline.start[own].min()) if own.size else 0,
        int(timeline.end[steps].max(initial=0)),
        cycles,
        busy,
        _bottleneck(busy, cycles),
        _ddr_bytes(timeline, tasks),
        tuple(task.token for task in tasks if task.token is not None),
        bound,
        entry.members if entry is not None else (),
    )


def _steps(timeline: Timeline, tasks: Sequence[Task]) -> Column:
    numbers = [timeline.steps.numbers.get(task.position) for task in tasks]
    return np.concatenate([np.zeros(0, np.int64), *(n for n in numbers if n is not None)])


def _added_cycles(timeline: Timeline, steps: Mapping[str, Column]) -> dict[str, int]:
    """Cycles that each layer adds to the run, the layers taken in the order in which they end."""
    ends = {name: int(timeline.end[mine].max(initial=0)) for name, mine in steps.items()}
    added: dict[str, int] = {}
    done = 0
    for name in sorted(ends, key=lambda layer: ends[layer]):
        added[name] = max(0, ends[name] - done)
        done = max(done, ends[name])
    return added


def _busy(timeline: Timeline, steps: Column) -> dict[str, int]:
    """Work over instances of every pool; of the engines, the one that has most."""
    placed = timeline.placement
    busy: dict[str, int] = defaultdict(int)
    pools, durations = placed.pool[steps], placed.duration[steps]
    for number in np.unique(pools[pools >= 0]).tolist():
        pool = placed.pools[number]
        work = int((durations[:, None] * (pools == number)).sum())
        busy[pool.unit] = max(busy[pool.unit], -(-work // pool.count))
    return dict(busy)


def _bottleneck(busy: Mapping[str, int], cycles: int) -> str:
    """The unit that has most to do; none where it is idle for most of the layer's own cycles."""
    unit = max(busy, key=lambda name: busy[name], default=DEPENDENCES)
    return unit if busy.get(unit, 0) >= _LEAST_BUSY * cycles else DEPENDENCES


def _ddr_bytes(timeline: Timeline, tasks: Sequence[Task]) -> int:
    total = 0
    for task in tasks:
        rows = timeline.steps.numbers.get(task.position)
        if rows is not None:
            moved = ddr_bytes(task, timeline.steps.grid(task))
            total += moved * rows.size if isinstance(moved, int) else int(moved.sum())
    return total
