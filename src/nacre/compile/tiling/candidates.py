"""Sizes of a layer's tiles as columns: what each takes of L1 and costs, and which is cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from nacre.base.term_columns import Column
from nacre.compile.partition.layers import Layer
from nacre.compile.tiling.costs import Cycles, TileCosts, TileSizes, tile_costs
from nacre.compile.tiling.footprints import FootprintColumns, footprint_columns, sizes_by_cut
from nacre.compile.tiling.problems import TileMachine, TileProblem
from nacre.compile.tiling.spaces import spaces_of
from nacre.compile.tiling.tiling import Tiling

_GRAIN = 16  # columns come in multiples of this, as long as there are several blocks
_FINE = (8, 4, 2, 1)  # columns of blocks where not even that fits
MOST_WRITTEN_OUT = 6  # tiles of an engine; more are a loop
_TASK_CYCLES = 2  # for which a task more is not worth it: people read the plan, and it is run
_LARGE_BLOCK = 1024  # cycles of a block's weights on one unit, beside which latencies are little
_SLACK = 1.25  # of the time that their tiles take
_ROUNDS_BEHIND = 4
_WEIGHT_BYTES = 32  # a cycle, of weights that come late

_ONE = np.ones((), np.int64)


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Sizes of tiles that fit one at a time, a row for each."""

    rows: Column
    columns: Column
    footprints: FootprintColumns
    costs: TileCosts
    lanes: Column  # tasks of a tile that begin before those of the tile before are done


@lru_cache(maxsize=4096)
def cheapest_tiling(problem: TileProblem) -> tuple[float, Tiling] | None:
    """The cheapest tiling that fits, and its cycles; None where none does."""
    shapes = _shapes(problem)
    if shapes is None:
        return None
    slots = np.arange(1, problem.machine.most_slots + 1)
    ways = [_evaluate_sharing(problem, shapes, most, slots) for most in _most_abreast(problem)]
    cycles = np.stack([way.cycles for way in ways], axis=1)  # by size, way, slots
    least = cycles.min(initial=inf)
    if least == inf:
        return None
    equal = np.argwhere(cycles == least)
    areas = (shapes.rows * shapes.columns)[equal[:, 0], 0]
    size, number, slot = (int(at) for at in equal[np.argmax(areas)])  # the first of the largest
    way = ways[number]
    tiling = Tiling(
        int(shapes.rows[size, 0]),
        int(shapes.columns[size, 0]),
        int(slots[slot]),
        int(way.w_slots[size, slot]),
        int(way.engines[size, 0]),
        int(way.abreast[size, 0]),
    )
    return float(least), tiling


def smallest_tile(layer: Layer, *, narrow_columns: bool = False) -> Tiling | None:
    """The tile that takes least of an L1 in which nothing else lies; None where there is none."""
    rows, columns = tile_shapes(layer, narrow_columns=narrow_columns)
    best: tuple[int, int] | None = None
    for at, sizes in sizes_by_cut(layer, rows, columns):
        spaces = spaces_of(layer, sizes.cut, frozenset())
        total = footprint_columns(layer, sizes, spaces, holds_weights=False).total(_ONE, _ONE)
        least = int(np.argmin(total))
        found = int(total[least]), int(at[least])
        best = found if best is None else min(best, found)
    return None if best is None else Tiling(int(rows[best[1]]), int(columns[best[1]]))


# Sizes


def tile_shapes(
    layer: Layer, *, held: int = 0, narrow_columns: bool = False
) -> tuple[Column, Column]:
    """Rows and columns of tiles; `held` columns of weights stay in L1 and are not cut."""
    sizes = [held] if held else _column_sizes(layer)
    if narrow_columns:
        sizes = [size for size in _FINE if _allows_narrow_columns(layer) and size < layer.columns]
    rows = [
        rows
        for rows in equal_parts(layer.rows)
        if layer.window is None or layer.window.is_sound(layer.rows, rows)
    ]
    return np.tile(np.array(rows, np.int64), len(sizes)), np.repeat(
        np.array(sizes, np.int64), len(rows)
    )


def _allows_narrow_columns(layer: Layer) -> bool:
    """Whether few columns at a time make sense: elsewhere operands would come in tiny pieces."""
    x = layer.main_step.inputs[0].local
    return layer.cuts_columns and layer.packed is not None and "columns" not in layer.locals[x].axes


def _column_sizes(layer: Layer) -> list[int]:
    if not layer.cuts_columns:
        return [layer.columns]
    cut = {-(-size // _GRAIN) * _GRAIN for size in equal_parts(layer.columns)}
    return sorted({layer.columns, *(size for size in cut if size < layer.columns)})


def equal_parts(size: int) -> list[int]:
    """Sizes of about equal parts, from the whole down to one; ever fewer as they get small."""
    sizes: list[int] = []
    count = 1
    while True:
        part = -(-size // count)
        if not sizes or part < sizes[-1]:
            sizes.append(part)
        if part == 1:
            return sizes
        count = max(count + 1, count * 5 // 4)


def _shapes(problem: TileProblem) -> _Shapes | None:
    """All sizes of which one tile fits, in their order; None where there are none."""
    layer, around, machine = problem.layer, problem.around, problem.machine
    rows, columns = tile_shapes(
        layer,
        held=(around.kept_columns or layer.columns) if around.has_weights else 0,
        narrow_columns=problem.narrow_columns,
    )
    places, parts = list[Column](), list[_Shapes]()
    for at, all_sizes in sizes_by_cut(layer, rows, columns):
        spaces = spaces_of(layer, all_sizes.cut, around.in_l1)
        needed = footprint_columns(layer, all_sizes, spaces, holds_weights=around.has_weights)
        fit = np.flatnonzero(needed.total(_ONE, _ONE) <= problem.room)
        if not len(fit):
            continue
        sizes = TileSizes.of(layer, all_sizes.rows[fit], all_sizes.columns[fit], all_sizes.cut)
        costs = tile_costs(layer, sizes, around, machine.device, machine.profile)
        fixed = layer.fixed_locals(sizes.cut)
        loads = sum(not a.stays and i not in fixed for i, a in enumerate(layer.operands))
        lanes = np.full(len(fit), max(1, loads + len(layer.results) - 1))
        needed = FootprintColumns(needed.ring[fit], needed.shared[fit], needed.weights[fit])
        places.append(at[fit])
        parts.append(_Shapes(sizes.rows, sizes.columns, needed, costs, lanes))
    if not parts:
        return None
    made: _Shapes = _concatenate(parts, np.argsort(np.concatenate(places)))
    return made


def _concatenate(parts: Sequence[Any], order: Column) -> Any:  # noqa: ANN401 - columns of any kind
    """Columns behind each other; 1 wide, since each has a row for every size and no slots."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)[order, None]
    names = [one.name for one in fields(parts[0])]
    return type(parts[0])(*(_concatenate([getattr(p, n) for p in parts], order) for n in names))


# What they cost


@dataclass(frozen=True, eq=False)
class _EngineShares:
    """What of a layer one engine computes; columns over sizes."""

    engines: Column  # that take part
    abreast: Column  # blocks that are computed at a time
    tiles: Column  # of each block
    blocks: Column

    @staticmethod
    def of(layer: Layer, shapes: _Shapes, engines: int, most_abreast: int) -> _EngineShares:
        blocks = -(-layer.columns // shapes.columns)
        tiles = layer.images * -(-layer.rows // shapes.rows)
        abreast = np.minimum(most_abreast, blocks)
        rows = np.minimum(engines // most_abreast, tiles)
        return _EngineShares(rows * abreast, abreast, -(-tiles // rows), -(-blocks // abreast))

    @property
    def count(self) -> Column:
        """Tiles of all blocks."""
        return self.tiles * self.blocks


@dataclass(frozen=True, eq=False)
class _EngineSharing:
    """One way to share out tiles of every size among engines, with one in flight or more."""

    cycles: Cycles  # by size and slots; infinite where it does not fit
    w_slots: Column  # by size and slots
    engines: Column  # by size
    abreast: Column  # by size: blocks that are computed at a time


def _most_abreast(problem: TileProblem) -> list[int]:
    """How many blocks engines may compute at a time: one, all that there are, what divides them.

    Where engines keep weights, each computes the block that it has.
    """
    engines = problem.machine.engines
    if problem.around.kept_columns:
        return [engines]
    return [1, *(n for n in range(engines, 1, -1) if engines % n == 0)]


def _evaluate_sharing(
    problem: TileProblem, shapes: _Shapes, most_abreast: int, slots: Column
) -> _EngineSharing:
    """What tiles cost where engines share out rows, columns, or both."""
    layer, machine, needed = problem.layer, problem.machine, shapes.footprints
    shares = _EngineShares.of(layer, shapes, machine.engines, most_abreast)
    most = np.minimum(2, shares.blocks)
    w_slots = np.where(needed.total(slots, most) > problem.room, 1, most)
    total = needed.total(slots, w_slots)
    cycles = _cycles(layer, machine, shapes, shares, slots, w_slots, problem.is_first)
    is_late = total + problem.next_weights > problem.room
    cycles += np.where(is_late, problem.next_weights / _WEIGHT_BYTES, 0.0)
    is_legal = (slots <= machine.free_slots) | (slots * shapes.lanes <= machine.most_tokens)
    is_legal &= (slots <= shares.count) & (total <= problem.room)
    if most_abreast > 1 and not problem.around.kept_columns:
        is_legal &= shapes.columns < layer.columns
    return _EngineSharing(np.where(is_legal, cycles, inf), w_slots, shares.engines, shares.abreast)


def _cycles(
    layer: Layer,
    machine: TileMachine,
    shapes: _Shapes,
    shares: _EngineShares,
    slots: Column,
    w_slots: Column,
    is_first: bool,
) -> Cycles:
    """About how long a layer takes: the busiest unit, and filling and draining the pipe."""
    costs, blocks = shapes.costs, shares.blocks
    chain = _chain(costs, np.minimum(slots, shares.count))
    busiest = _busiest_unit(machine, costs, shares)
    # Weights of a single engine come from DDR block by block, and tiles wait for each.
    has_many = machine.device.num_engines > 1
    is_by_block = (shares.tiles == 1) & (costs.weight_work >= _LARGE_BLOCK) & has_many
    # What is about as long as the way of the weights falls behind it, and has to be made up for.
    slack = np.where(is_by_block, _SLACK, 1.0)
    busiest = np.maximum(busiest, -(-shares.count // slots) * chain * slack)
    # Behind a block of weights waits what tiles bring to DDR: but for those that have slots,
    # they run when it is there, and the next one not yet on its way.
    waits = (costs.sdma > 0) & (machine.device.count("sDMA") <= shares.engines)
    waiting = blocks * (costs.weights + (-(-shares.tiles // slots) - 1) * chain)
    busiest = np.where(waits, np.maximum(busiest, waiting), busiest)
    # So do stores to DDR, behind what travels ahead: where a tile has to wait for that of the one
    # before, some rounds are still to be computed when the last weights are there.
    is_behind = waits & is_by_block & (slots == 1)
    busiest = busiest + np.where(is_behind, _ROUNDS_BEHIND * chain, 0.0)
    # Loops drain. So do, more or less, many blocks that wait for weights or come in pieces. Large
    # blocks of a tile each do not: one begins where the one before has left room.
    rounds = np.where((layer.main == "matmul") | is_by_block, shares.tiles, shares.count)
    drains = np.where(rounds > MOST_WRITTEN_OUT, blocks, 1)
    # With one slot, each block's weights come when the last is done.
    busiest = busiest + np.where(w_slots < np.minimum(2, blocks), blocks * costs.weights, 0)
    if layer.images > 1:  # each is complete before the next begins
        drains = np.where(shapes.rows < layer.rows, drains * layer.images, drains)
    tasks = len(layer.operands) + len(layer.steps) + len(layer.results)
    # Most of a block's weights come while the layer before computes, if there is one.
    late = costs.weights / (1 if is_first else 4) + costs.shared / 4
    return busiest + drains * chain + late + _TASK_CYCLES * shares.count * tasks


def _chain(costs: TileCosts, in_flight: Column) -> Cycles:
    """A tile from its first byte to its last, where loads come in parts if there are few tiles."""
    parts = np.maximum(1, costs.paths // in_flight)
    return costs.chain - costs.longest + costs.longest / parts


def _busiest_unit(machine: TileMachine, costs: TileCosts, shares: _EngineShares) -> Cycles:
    """The work of the unit that has most of it."""
    count = shares.count
    # Engines that share out rows want the same weights, which come from DDR once.
    shared = shares.engines * (count * costs.sdma + costs.shared)
    work = {
        "NMU": count * costs.nmu,
        "CSTL": count * costs.cstl,
        "VPU": count * costs.vpu,
        "DMA": count * costs.dma + shares.blocks * costs.weight_work + costs.shared,
        "sDMA": shared + shares.abreast * shares.blocks * costs.weight_ddr,
    }
    each = (used / max(1, machine.device.count(unit)) for unit, used in work.items())
    busiest: Cycles = np.maximum.reduce(list(each))
    return busiest
