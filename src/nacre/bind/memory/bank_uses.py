"""Tiles that are used at once: operands of one task, and of tasks near each other without order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from nacre.nem.model.program import Task
from nacre.nem.plan.plan import Access, Block, Plan

_NEAR = 8  # tasks behind one that are looked at: those further away seldom run with it


class Tile(Struct, frozen=True):
    """Bytes of a buffer that a task touches, in its first iteration."""

    buffer: int
    offset: int
    size: int


TilePair = tuple[Tile, Tile]  # of two buffers, the lower index first


def tiles_used_at_once(plan: Plan, buffers: frozenset[int]) -> dict[TilePair, int]:
    """Pairs of tiles in different ones of some buffers, and how often they are used together."""
    tiles: dict[int, list[Tile]] = {}  # by the position of the task
    for index in sorted(plan.accesses.keys() & buffers):
        for accesses in plan.accesses[index].values():
            for access in accesses:
                tiles.setdefault(access.position, []).append(_tile(access))
    pairs: Counter[TilePair] = Counter()
    for block in plan.top.walk():
        for found in _pairs_of_block(block, tiles):
            pairs[found] += block.grid.rows
    return dict(pairs)


def _tile(access: Access) -> Tile:
    footprint = access.footprint
    return Tile(access.buffer_index, footprint.low_at(0), footprint.pattern(0).span)


def _pairs_of_block(block: Block, tiles: dict[int, list[Tile]]) -> Iterator[TilePair]:
    overlaps = block.loop is not None and block.loop.window > 1  # iterations run side by side
    before: list[set[int]] = []  # of every task those near before it that it waits for
    for number, task in enumerate(block.tasks):
        near = range(max(0, number - _NEAR), number)
        before.append(_waited_for(task, near, block.tasks, before))
        mine = tiles.get(task.position, [])
        yield from _pairs(combinations(mine, 2))
        for other in near:
            if overlaps or other not in before[number]:
                theirs = tiles.get(block.tasks[other].position, [])
                yield from _pairs((a, b) for a in mine for b in theirs)


def _waited_for(
    task: Task, near: range, tasks: Sequence[Task], before: Sequence[set[int]]
) -> set[int]:
    """Those of some tasks before one that are over when it starts."""
    found = {other for other in near if tasks[other].position in task.deps or tasks[other].is_sync}
    return found.union(*(before[other] for other in found))


def _pairs(found: Iterator[TilePair]) -> Iterator[TilePair]:
    for a, b in found:
        if a.buffer != b.buffer:
            yield (a, b) if a.buffer < b.buffer else (b, a)
