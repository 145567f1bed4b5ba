"""Where a plan loses against the bounds of its layers: every cycle of the run, once.

The critical path leads from the first cycle to the last; each of its cycles belongs to a task. What
the unit that bounds a layer does there is work, and all else is a loss of a kind. So the bounds of
all layers, and all losses, less what is hidden behind other layers, are the cycles of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.hints import setting, text_for_reader
from nacre.compile.estimate.layer_times import LayerTime
from nacre.nem.model.program import Task
from nacre.nem.run.timing.critical import Link, critical_path
from nacre.nem.run.timing.timeline import Timeline


@dataclass(frozen=True)
class LossKind:
    """A way to lose cycles, and what can be done about it."""

    name: str
    meaning: str
    remedy: str


_NATIVE = setting("`--io-layout=native`", "`io_layout='native'`")
KINDS = {
    kind.name: kind
    for kind in (
        LossKind(
            "fill",
            "units wait for the first data of a layer",
            "more DMAs, or L1 that keeps what the layer before has made",
        ),
        LossKind(
            "drain",
            "units wait until results have left",
            "more L1, so that results stay for the layer that reads them",
        ),
        LossKind(
            "transposition",
            "elements change their order between layers or at the border",
            f"{_NATIVE}, where it is at the border; else operations that keep their order of axes",
        ),
        LossKind(
            "copies",
            "elements are moved and nothing is computed",
            "joining and cutting along channels, which needs no copy",
        ),
        LossKind(
            "slots",
            "a tile waits until another has left its place in L1",
            "more L1, or a precision of fewer bytes",
        ),
        LossKind(
            "tokens",
            "tasks wait for a token of the sequencer",
            "a device with more `max_active_tokens`",
        ),
        LossKind(
            "other units",
            "another unit than the one that bounds the layer is in the way",
            "more of that unit, which `nacre run --mode timed --what-if` tries",
        ),
        LossKind(
            "engines idle",
            "some engines, or instances of the unit, have nothing to do",
            "larger batches, or a device of fewer engines",
        ),
        LossKind(
            "tiles",
            "tiles take longer than their share: latencies, borders, what does not fill the unit",
            "more L1, for tiles that are fewer and larger",
        ),
    )
}

_TRANSPOSITION = "Transpose"
_UNIT_OF = {"NMU": "NMU", "CSTL": "CSTL", "DDR": "sDMA"}
_CAUSES = {"window": "slots", "token": "tokens"}
_COPIES = frozenset({"DMA", "sDMA"})


@dataclass(frozen=True)
class Loss:
    """Cycles that a layer loses in one way."""

    layer: str
    kind: str
    cycles: int
    unit: str = ""  # that the path went through meanwhile, where it was one

    @property
    def remedy(self) -> str:
        """What can be done about it."""
        return text_for_reader(KINDS[self.kind].remedy)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "layer": self.layer,
            "kind": self.kind,
            "cycles": self.cycles,
            "unit": self.unit,
            "meaning": KINDS[self.kind].meaning,
            "remedy": self.remedy,
        }


@dataclass(frozen=True)
class Losses:
    """All losses of a plan, the largest first: with `bound`, less `hidden`, they are its cycles."""

    bound: int  # of all layers
    losses: tuple[Loss, ...]
    hidden: int  # of bounds, by layers that overlap others and by tensors that need no store

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "bound": self.bound,
            "hidden": self.hidden,
            "losses": [loss.as_json() for loss in self.losses],
        }


def find_losses(timeline: Timeline, layers: Sequence[LayerTime]) -> Losses:
    """Every cycle of a run that its layers' bounds do not account for."""
    owners = {token: layer for layer in layers for token in layer.tasks}
    worked: dict[str, int] = defaultdict(int)
    lost: dict[tuple[str, str, str], int] = defaultdict(int)
    for task, link, after, cycles in _segments(timeline):
        layer = owners.get(task.token or "")
        name = layer.name if layer is not None else ""
        units = _units(timeline, link.step)
        if layer is not None and _bounding_unit(layer) in units:
            worked[name] += cycles
        else:
            kind = _kind(layer, units, after, is_store=_leaves_l1(task))
            lost[name, kind, "+".join(units)] += cycles
    bound = hidden = 0
    for layer, shared in zip(layers, _shared_work(timeline, layers), strict=True):
        floor = layer.bound.cycles if layer.bound is not None else 0
        bound += floor
        over = worked[layer.name] - floor
        if over < 0:
            hidden -= over
            continue
        unit, is_moving = _bounding_unit(layer), layer.operation == _TRANSPOSITION
        idle = 0 if is_moving else max(0, min(over, worked[layer.name] - shared))
        lost[layer.name, "engines idle", unit] += idle
        lost[layer.name, "transposition" if is_moving else "tiles", unit] += over - idle
    found = [
        Loss(name, kind, cycles, unit) for (name, kind, unit), cycles in lost.items() if cycles
    ]
    return Losses(bound, tuple(sorted(found, key=lambda loss: -loss.cycles)), hidden)


def _segments(timeline: Timeline) -> Iterator[tuple[Task, Link, str, int]]:
    """Tasks of the critical path, why the next one waited for it, and cycles until that began."""
    path = critical_path(timeline)
    for at, link in enumerate(path):
        following = path[at + 1] if at + 1 < len(path) else None
        end = timeline.cycles if following is None else int(timeline.start[following.step])
        start = int(timeline.start[link.step]) if at else 0
        statement = timeline.steps.statement(link.step)
        assert isinstance(statement, Task)
        yield statement, link, "" if following is None else following.cause, end - start


def _units(timeline: Timeline, step: int) -> tuple[str, ...]:
    placed = timeline.placement
    return tuple(placed.pools[n].unit for n in placed.pool[step].tolist() if n >= 0)


def _bounding_unit(layer: LayerTime) -> str:
    """The unit of which a layer's bound comes; none where it may cost nothing."""
    limit = layer.bound.limit if layer.bound is not None else None
    return _UNIT_OF[limit] if limit is not None else ""


def _kind(layer: LayerTime | None, units: Sequence[str], after: str, *, is_store: bool) -> str:
    """What a task is there for that is not the work of its layer."""
    if layer is not None and layer.operation == _TRANSPOSITION:
        return "transposition"
    if after in _CAUSES:
        return _CAUSES[after]
    if layer is None or not _bounding_unit(layer):
        return "copies"
    if _COPIES & {*units}:
        return "drain" if is_store else "fill"
    return "other units"


def _leaves_l1(task: Task) -> bool:
    """Whether a copy brings something out of L1."""
    written = (o.region for o in task.operands if "write" in o.access and o.region is not None)
    target = next(written, None)
    return target is not None and target.buffer is not None and target.buffer.level != "L1"


def _shared_work(timeline: Timeline, layers: Sequence[LayerTime]) -> list[int]:
    """How long each layer's work would take if all instances of its bounding unit shared it."""
    placed = timeline.placement
    owner = np.full(timeline.steps.count, -1, np.int64)
    number_of = {token: number for number, layer in enumerate(layers) for token in layer.tasks}
    for task in timeline.steps.plan.program.tasks:
        steps = timeline.steps.numbers.get(task.position)
        if steps is not None:
            owner[steps] = number_of.get(task.token or "", -1)
    shared: list[int] = []
    for number, layer in enumerate(layers):
        unit = _bounding_unit(layer)
        pools = [n for n, pool in enumerate(placed.pools) if pool.unit == unit]
        mine = np.flatnonzero(owner == number)
        is_of_unit = np.isin(placed.pool[mine], pools).any(axis=1)
        instances = sum(placed.pools[n].count for n in pools)
        shared.append(-(-int(placed.duration[mine[is_of_unit]].sum()) // max(1, instances)))
    return shared
