"""What follows from tiles alone about when layers can begin and end.

No task of a layer comes before the first tile of the layer that it reads is done, and the last
tile of that is read by another tile: so chains of tiles go before and behind all that a unit has to
do. The model of schedules implies all this; said in so many words, it is proved much sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.base.term_columns import Column
from nacre.compile.partition.layers import Access, Layer
from tests.compile.optimal.tile_choices import FROM_DDR, TileChoice, TileTask


@dataclass(frozen=True)
class TileBounds:
    """Of one size of tiles: the least that every tile takes from when it may read an operand."""

    chain: int  # to its end
    before: dict[str, int]  # on the way to a unit
    behind: dict[str, int]  # from a unit to the end
    work: dict[str, int]  # of each unit in all tiles


def tile_bounds(choice: TileChoice, tensor: int, local: int, *, is_one_way: bool) -> TileBounds:
    """What holds for all tiles; `is_one_way`: weights and the operand come over the same unit."""
    tasks, offset = choice.pattern.tasks, 0
    first = next((n for n, t in enumerate(tasks) if _reads(t, tensor, local)), None)
    is_outside = first is not None and tasks[first].units == FROM_DDR
    if first is None:  # all tiles share it
        at = next(n for n, t in enumerate(choice.pattern.shared) if _reads(t, tensor, local))
        load = choice.pattern.shared[at]
        offset, is_outside = choice.shared_cycles[at], load.units == FROM_DDR
        first = next(n for n, t in enumerate(tasks) if {*load.writes} & {*t.reads})
    late = min(choice.weight_cycles, default=0) if is_one_way and is_outside else 0
    starts = _longest(choice, first, offset, late)
    ends = [s + choice.cycles[:, n] if s is not None else None for n, s in enumerate(starts)]
    tails = _tails(choice)
    last = np.max([e for e in ends if e is not None], axis=0)
    before, behind, work = dict[str, int](), dict[str, int](), dict[str, int]()
    for n, task in enumerate(tasks):
        begun = starts[n]
        if begun is None:
            continue  # a load of something else may come any time
        for unit in task.units:
            before[unit] = min(before.get(unit, 1 << 40), int(begun.min()))
            behind[unit] = min(behind.get(unit, 1 << 40), int(tails[n].min()))
            work[unit] = work.get(unit, 0) + int(choice.cycles[:, n].sum())
    return TileBounds(int(last.min()), before, behind, work)


def _reads(task: TileTask, tensor: int, local: int) -> bool:
    return (task.role == "load" and task.number == local) or ("tensor", tensor) in task.reads


def conflict(second: TileTask, first: TileTask) -> bool:
    """Whether two tasks of a tile touch the same, one of them writing."""
    written = {*first.writes}
    return bool(written & {*second.reads, *second.writes} or {*first.reads} & {*second.writes})


def _longest(choice: TileChoice, first: int, offset: int, late: int) -> list[Column | None]:
    """When the tasks behind one begin at the least, in every tile; weights are `late`."""
    tasks = choice.pattern.tasks
    starts: list[Column | None] = [None] * len(tasks)
    starts[first] = np.full(choice.count, offset + late * tasks[first].reads_weights, np.int64)
    for n in range(first + 1, len(tasks)):
        for m in range(first, n):
            begun = starts[m]
            if begun is not None and conflict(tasks[n], tasks[m]):
                ready = begun + choice.cycles[:, m] + late * tasks[n].reads_weights
                known = starts[n]
                starts[n] = ready if known is None else np.maximum(known, ready)
    return starts


def _tails(choice: TileChoice) -> list[Column]:
    """What comes behind a task of a tile at the least."""
    tasks = choice.pattern.tasks
    tails = [np.zeros(choice.count, np.int64) for _ in tasks]
    for m in reversed(range(len(tasks))):
        for n in range(m + 1, len(tasks)):
            if conflict(tasks[n], tasks[m]):
                tails[m] = np.maximum(tails[m], choice.cycles[:, n] + tails[n])
    return tails


def reads_all_rows(layer: Layer, access: Access) -> bool:
    """Whether every row of an operand is read by some tile."""
    window = layer.window
    if window is None or not access.stride_of("x_rows"):
        return True
    whole = window.tile(0, layer.rows)
    return window.height >= window.stride and whole.x_rows == window.in_rows
