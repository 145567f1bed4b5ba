"""Conflicting accesses that nothing orders: found exactly, without enumerating pairs of instances.

For every buffer and every body there are three ways in which two accesses can meet:

* both are tasks of the body itself, in the same iteration;
* one is a task of the body, the other lies in a loop further down, in the same iteration;
* both lie in the body of a loop, in iterations less than its window apart.

Everything else is ordered: loops join at their end, and a window holds back what is farther.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from nacre.nem.model.program import Loop
from nacre.nem.plan.extents import Extents
from nacre.nem.plan.flat import unordered_in_sequence
from nacre.nem.plan.footprints import Footprint, dense_pattern
from nacre.nem.plan.order import NEVER
from nacre.nem.plan.overlap import aligned_overlaps, shared_bytes
from nacre.nem.plan.plan import Access, Block, Plan
from nacre.nem.plan.windows import iteration_pairs

# Up to so many accesses every pair is looked at; beyond, a sweep over bytes finds the pairs.
_MOST_PAIRWISE = 48
# Of so few, order is asked about first: mostly it settles the question without looking at bytes.
_FEW, _FEW_PAIRS = 8, 32


@dataclass(frozen=True, eq=False)
class Conflict:
    """Two instances that touch a common byte, at least one writing, with nothing between them."""

    first: Access
    first_row: int
    second: Access
    second_row: int
    low: int  # the common bytes, counted from the start of the buffer
    high: int
    loop: Loop | None  # whose iterations they differ in; None: the same iteration

    @property
    def iterations(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The loop variables of both instances, outermost first."""
        return (
            self.first.grid.iteration(self.first_row),
            self.second.grid.iteration(self.second_row),
        )


def find_conflicts(plan: Plan) -> Iterator[Conflict]:
    """One conflict for every pair of accesses that can meet unordered, the first of its kind."""
    blocks = {block.key: block for block in plan.top.walk()}
    apart: set[object] = set()
    for by_block in plan.accesses.values():
        if any(access.is_write for accesses in by_block.values() for access in accesses):
            yield from _ConflictSearch(plan, blocks, by_block, apart).conflicts_in(plan.top)


def find_alias_conflicts(plan: Plan, aliases: Mapping[int, str]) -> Iterator[Conflict]:
    """The same between different buffers that may be the same memory, byte for byte unknown.

    `aliases` are buffers by their index, each with a group; only those of one group can meet.
    """
    blocks = {block.key: block for block in plan.top.walk()}
    groups: dict[str, dict[int, list[Access]]] = {}
    for buffer, by_block in plan.accesses.items():
        for key, accesses in by_block.items() if buffer in aliases else ():
            anywhere = [replace(access, footprint=_ANYWHERE) for access in accesses]
            groups.setdefault(aliases[buffer], {}).setdefault(key, []).extend(anywhere)
    for group in groups.values():
        for accesses in group.values():
            accesses.sort(key=lambda access: access.position)
        search = _ConflictSearch(plan, blocks, group, set(), across_buffers=True)
        yield from search.conflicts_in(plan.top)


# What an access to memory at an unknown place touches, so that any two of them meet.
_ANYWHERE = Footprint(0, (dense_pattern(1),), 0)


class _ConflictSearch:
    """The conflicts on one buffer; only blocks that touch it are visited."""

    def __init__(
        self,
        plan: Plan,
        blocks: dict[int, Block],
        by_block: dict[int, list[Access]],
        apart: set[object],  # bodies whose iterations share no byte, as `_shape` tells them
        *,
        across_buffers: bool = False,  # only between different buffers
    ) -> None:
        self._order = plan.order
        self._across_buffers = across_buffers
        self._by_block = by_block
        self._apart = apart
        self._inner: dict[int, dict[int, Block]] = {}
        for key in by_block:
            path = [-1, *(loop.position for loop in blocks[key].grid.loops)]
            for outer, inner in pairwise(path):
                self._inner.setdefault(outer, {})[inner] = blocks[inner]

    def conflicts_in(self, block: Block) -> Iterator[Conflict]:
        """Conflicts between accesses whose innermost common body is this block's, and inside."""
        accesses = self._by_block.get(block.key, [])
        yield from self._same_body(accesses)
        blocks = self._inner_blocks(block)
        if not blocks:
            return
        settled = self._order.settled
        begins = np.array([a.position for a in accesses], np.int64)
        ends = np.array([settled.get(a.position, NEVER) for a in accesses], np.int64)
        for inner in blocks:
            inside = self._accesses_inside(inner)
            if inner.loop is not None and accesses:
                start = inner.loop.position
                open_ = np.flatnonzero((begins < start) & (ends > start)).tolist()
                yield from self._into_loop([accesses[number] for number in open_], inside)
            yield from self._between_iterations(inner, inside)
            yield from self.conflicts_in(inner)

    def _inner_blocks(self, block: Block) -> list[Block]:
        blocks = self._inner.get(block.key, {})
        return [blocks[key] for key in sorted(blocks)]

    def _accesses_inside(self, block: Block) -> list[Access]:
        accesses = list(self._by_block.get(block.key, []))
        for inner in self._inner_blocks(block):
            accesses += self._accesses_inside(inner)
        return accesses

    def _same_body(self, accesses: list[Access]) -> Iterator[Conflict]:
        if len(accesses) > _MOST_PAIRWISE and not self._across_buffers:
            for a, b, row in unordered_in_sequence(accesses, self._order):
                yield _conflict(a, row, b, row, None)
            return
        if len(accesses) < 2 or (len(accesses) <= _FEW and not self._may_any_meet(accesses)):
            return
        every = slice(0, accesses[0].grid.rows)
        extents = Extents.of_rows(accesses, every.stop) or Extents.of_all_rows(accesses)
        meet = extents.meet(extents, slice(None), slice(None))
        for number, b in enumerate(accesses):
            for earlier in np.flatnonzero(meet[:number, number]).tolist():
                a = accesses[earlier]
                if not self._may_meet(a, b):
                    continue
                hits = aligned_overlaps(a.footprint, b.footprint, every, every, every.stop)
                if hits.size:
                    yield _conflict(a, int(hits[0]), b, int(hits[0]), None)

    def _may_any_meet(self, accesses: list[Access]) -> bool:
        """Whether any two of a few accesses of one body are left unordered, one writing."""
        return any(self._may_meet(a, b) for a, b in combinations(accesses, 2))

    def _may_meet(self, a: Access, b: Access) -> bool:
        return (
            self._is_pair(a, b)
            and a.position != b.position
            and not self._order.always_before(a.position, b.position)
        )

    def _is_pair(self, a: Access, b: Access) -> bool:
        """Whether two accesses are to be compared at all."""
        if self._across_buffers and a.buffer_index == b.buffer_index:
            return False
        return a.is_write or b.is_write

    def _into_loop(self, open_: list[Access], inside: list[Access]) -> Iterator[Conflict]:
        """Tasks of the body that may still run against what lies in a loop further down."""
        if not open_ or not inside:
            return
        if len(open_) * len(inside) <= _FEW_PAIRS and not any(
            self._may_meet(a, b) for a in open_ for b in inside
        ):
            return
        everywhere = slice(None)
        meet = Extents.of_all_rows(open_).meet(Extents.of_all_rows(inside), everywhere, everywhere)
        for number in np.flatnonzero(meet.any(axis=1)).tolist():
            a = open_[number]
            for other in np.flatnonzero(meet[number]).tolist():
                if self._may_meet(a, inside[other]):
                    yield from self._meeting_below(a, inside[other])

    def _meeting_below(self, a: Access, b: Access) -> Iterator[Conflict]:
        """`a` before and outside the loops that `b` lies in, in the same outer iteration."""
        rows = np.arange(b.grid.rows, dtype=np.int64)
        depth = len(a.grid.loops)
        for loop, ordinal in zip(b.grid.loops[depth:], b.grid.ordinals[depth:], strict=True):
            if self._order.done_inside(a.position, loop):
                rows = rows[ordinal[rows] < loop.window]
        outer = b.grid.row_in(a.grid, rows)
        hits = aligned_overlaps(a.footprint, b.footprint, outer, rows, rows.size)
        if hits.size:
            yield _conflict(a, int(outer[hits[0]]), b, int(rows[hits[0]]), None)

    def _between_iterations(self, block: Block, inside: list[Access]) -> Iterator[Conflict]:
        """Accesses of one loop in iterations that its window lets overlap."""
        loop = block.loop
        if loop is None or loop.window < 2:
            return
        shape = self._shape(block, inside)
        if shape in self._apart:
            return
        found = list(self._meetings(block, loop, inside))
        yield from found
        if not found and shape is not None:
            self._apart.add(shape)

    def _shape(self, block: Block, inside: list[Access]) -> object:
        """All that decides which iterations share bytes; None where that is too much to say."""
        known = block.grid.known
        if block.loop is None or len(inside) > _MOST_PAIRWISE or self._across_buffers:
            return None
        if any(access.grid.known is not known for access in inside):
            return None
        touched = tuple((id(access.footprint), access.is_write) for access in inside)
        return id(known), block.loop.window, touched

    def _meetings(self, block: Block, loop: Loop, inside: list[Access]) -> Iterator[Conflict]:
        extents = None
        if len(inside) <= _MOST_PAIRWISE and all(a.grid is block.grid for a in inside):
            extents = Extents.of_rows(inside, block.grid.rows)
        for pairing in iteration_pairs(block, loop.window):
            for first, second in np.argwhere(pairing.may_meet(inside, extents)).tolist():
                a, b = inside[first], inside[second]
                rows = pairing.first_meeting(a, b) if self._is_pair(a, b) else None
                if rows is not None:
                    yield _conflict(a, rows[0], b, rows[1], loop)


def _conflict(a: Access, row_a: int, b: Access, row_b: int, loop: Loop | None) -> Conflict:
    base = a.footprint.low_at(row_a)
    delta = b.footprint.low_at(row_b) - base
    shared = shared_bytes(a.footprint.pattern(row_a), b.footprint.pattern(row_b), delta)
    low, high = shared if shared is not None else (0, 0)
    return Conflict(a, row_a, b, row_b, base + low, base + high, loop)
