"""All legal tiles of a layer, with what every task of every tile costs and takes of L1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nacre.base.term_columns import Column
from nacre.compile.geometry import Tile, tiles
from nacre.compile.options import Options
from nacre.compile.partition.layers import Access, Layer, TileCut
from nacre.compile.partition.stage import Partition
from nacre.compile.tiling.costs import TileSizes, copy_cycles, step_cycles, weight_work
from nacre.compile.tiling.spaces import Spaces, align_up, space_columns, spaces_of

Space = tuple[str, int]  # `ring` or `shared` and its number, or a tensor in L1
FROM_DDR = ("DMA", "sDMA")


class UnsupportedGraphError(Exception):
    """A graph of a kind that the model of schedules does not have."""


@dataclass(frozen=True)
class TileTask:
    """A load, a step or a store of a tile, in the order in which plans have them."""

    role: str
    number: int  # of the operand, step or result
    units: tuple[str, ...]
    reads: tuple[Space, ...]
    writes: tuple[Space, ...]
    reads_weights: bool = False


@dataclass(frozen=True, eq=False)
class TilePattern:
    """What tiles that cut the same axes do."""

    cut: TileCut
    spaces: Spaces
    shared: tuple[TileTask, ...]  # once for all tiles
    tasks: tuple[TileTask, ...]  # of each tile

    @property
    def ring(self) -> tuple[int, ...]:
        """The spaces that every tile has for itself."""
        return tuple(s for s, fixed in enumerate(self.spaces.fixed) if not fixed)


@dataclass(frozen=True, eq=False)
class TileChoice:
    """A size of tiles: their places, block by block, what they cost and take."""

    rows: int
    columns: int
    pattern: TilePattern
    tiles: tuple[Tile, ...]
    blocks: tuple[tuple[int, int], ...]  # first column and number of columns
    weight_bytes: tuple[int, ...]  # by block
    weight_cycles: tuple[int, ...]
    shared_cycles: tuple[int, ...]  # by task
    shared_bytes: dict[int, int]  # by space
    cycles: Column  # by tile and task
    bytes: dict[int, Column]  # by space: of every tile

    @property
    def count(self) -> int:
        """Tiles of all blocks."""
        return len(self.tiles) * len(self.blocks)

    @property
    def tasks(self) -> int:
        """Tasks of the whole layer."""
        brought = len(self.weight_cycles) + len(self.shared_cycles)
        return brought + self.count * len(self.pattern.tasks)


def tile_choices(
    layer: Layer, partition: Partition, options: Options, resident: frozenset[int], most_tiles: int
) -> list[TileChoice]:
    """Every number of rows and columns of which a tile fits in L1, of at most so many tiles."""
    if layer.images != 1 or layer.main not in ("linear", "window", "pool", "map"):
        raise UnsupportedGraphError(f"{layer.main} of {layer.images} images")
    found: list[TileChoice] = []
    patterns: dict[TileCut, TilePattern] = {}
    columns = range(1, layer.columns + 1) if layer.cuts_columns else [layer.columns]
    for count in columns:
        blocks = -(-layer.columns // count)
        for rows in range(1, layer.rows + 1):
            if -(-layer.rows // rows) * blocks > most_tiles:
                continue
            if layer.window is not None and not layer.window.is_sound(layer.rows, rows):
                continue
            cut = layer.cut(rows, count)
            if cut not in patterns:
                patterns[cut] = _pattern(layer, partition, cut, resident)
            choice = _choice(layer, partition, options, patterns[cut], rows, count)
            if _least_bytes(choice) <= options.l1_bytes:
                found.append(choice)
    return found


def _least_bytes(choice: TileChoice) -> int:
    """What its largest tile takes by itself."""
    ring = sum((choice.bytes[space] for space in choice.pattern.ring), np.zeros(1, np.int64))
    return int(
        ring.max(initial=0)
        + sum(choice.shared_bytes.values())
        + max(choice.weight_bytes, default=0)
    )


def _pattern(
    layer: Layer, partition: Partition, cut: TileCut, resident: frozenset[int]
) -> TilePattern:
    spaces = spaces_of(layer, cut, resident & {*layer.reads, *layer.writes})
    if any(step.repeats for step in layer.steps) or any(a.stays for a in layer.operands):
        raise UnsupportedGraphError("an operand that is stretched or stays")
    fixed = layer.fixed_locals(cut)
    first = len(layer.operands)
    weights = range(first, first + len(layer.packed.parts) if layer.packed else first)

    def home(local: int) -> tuple[Space, ...]:
        if local in weights:
            return ()
        if local in spaces.placed:
            return (("tensor", spaces.placed[local].tensor),)
        space = spaces.of_local[local]
        assert space is not None
        return (("shared" if spaces.fixed[space] else "ring", space),)

    shared, tasks = list[TileTask](), list[TileTask]()
    for local, access in enumerate(layer.operands):
        if local in spaces.placed:
            continue
        units = FROM_DDR if partition.is_in_ddr(access.tensor) else ("DMA",)
        load = TileTask("load", local, units, (), home(local))
        (shared if local in fixed else tasks).append(load)
    for number, step in enumerate(layer.steps):
        inputs = [operand.local for operand in step.inputs]
        reads = tuple(space for local in inputs for space in home(local))
        unit = _unit(layer, number)
        tasks.append(
            TileTask(
                "step", number, (unit,), reads, home(step.output.local),
                any(local in weights for local in inputs),
            )
        )  # fmt: skip
    for number, result in enumerate(layer.results):
        if result.local not in spaces.placed:
            outside = partition.is_in_ddr(result.access.tensor)
            units = FROM_DDR if outside else ("CSTL",)
            tasks.append(TileTask("store", number, units, home(result.local), ()))
    return TilePattern(cut, spaces, tuple(shared), tuple(tasks))


def _unit(layer: Layer, number: int) -> str:
    step = layer.steps[number]
    if step.work == "macs":
        return "NMU"
    is_scalar = step.work == "scalar" or step.nem in ("quantize", "dequantize")
    return "VPU" if is_scalar else "CSTL"


def _choice(
    layer: Layer,
    partition: Partition,
    options: Options,
    pattern: TilePattern,
    rows: int,
    columns: int,
) -> TileChoice:
    places = tiles(layer.window, layer.rows, rows)
    starts = range(0, layer.columns, columns)
    blocks = tuple((first, min(columns, layer.columns - first)) for first in starts)
    sizes = TileSizes(
        np.array([tile.rows for _ in blocks for tile in places], np.int64),
        np.array([tile.x_rows for _ in blocks for tile in places], np.int64),
        np.array([count for _, count in blocks for _ in places], np.int64),
        pattern.cut,
    )
    profile = options.profile

    def took(task: TileTask, sizes: TileSizes) -> Column:
        if task.role == "step":
            cycles = step_cycles(layer.steps[task.number], layer, sizes, profile)[1]
        else:
            access = _access(layer, task)
            cycles = copy_cycles(access, sizes, profile, task.units == FROM_DDR)
        return np.broadcast_to(np.asarray(cycles, np.int64), sizes.rows.shape)

    whole = TileSizes(sizes.rows[:1], sizes.x_rows[:1], sizes.columns[:1], pattern.cut)
    taken = space_columns(layer, pattern.spaces, sizes)
    packed = layer.packed
    weights = [count for _, count in blocks] if packed is not None else []
    assert packed is not None or not weights
    needed = [packed.block_bytes(count) for count in weights] if packed is not None else []
    work = (
        [int(weight_work(packed, np.array(count), profile)) for count in weights]
        if packed is not None
        else []
    )
    return TileChoice(
        rows,
        columns,
        pattern,
        places,
        blocks,
        tuple(int(align_up(size)) for size in needed),
        tuple(work),
        tuple(int(took(task, whole)[0]) for task in pattern.shared),
        {s: int(np.max(taken[s])) for s, fixed in enumerate(pattern.spaces.fixed) if fixed},
        np.stack([took(task, sizes) for task in pattern.tasks], axis=1),
        {s: np.broadcast_to(taken[s], sizes.rows.shape) for s in pattern.ring},
    )


def _access(layer: Layer, task: TileTask) -> Access:
    if task.role == "load":
        return layer.operands[task.number]
    return layer.results[task.number].access


# Which parts of tensors tiles touch


@dataclass(frozen=True)
class Part:
    """Elements from one to another, and columns of them."""

    first: int
    last: int
    columns: tuple[int, int] | None  # None: all


def part_of(layer: Layer, access: Access, tile: Tile | None, block: tuple[int, int] | None) -> Part:
    """What a tile touches of a tensor; None for a tile stands for all rows."""
    rows, x_rows = access.stride_of("rows"), access.stride_of("x_rows")
    stride = rows or x_rows
    extent = 1 + sum(
        (_length(axis, layer) - 1) * s
        for axis, s in zip(access.axes, access.strides, strict=True)
        if axis not in ("rows", "x_rows")
    )
    if tile is None:
        total = layer.window.in_rows if layer.window is not None and x_rows else layer.rows
        tile = Tile(0, layer.rows, 0, total)
    if stride and extent > stride:
        raise UnsupportedGraphError("rows that are not outermost")
    first, count = (tile.x_first, tile.x_rows) if x_rows else (tile.first, tile.rows)
    begins = access.offset + first * stride
    columns = block if block is not None and "columns" in access.axes else None
    if columns is not None and access.stride_of("columns") != 1:
        raise UnsupportedGraphError("columns with gaps")
    return Part(begins, begins + (count - 1) * stride + extent, columns)


def _length(axis: int | str, layer: Layer) -> int:
    if isinstance(axis, int):
        return axis
    return layer.columns if axis == "columns" else layer.rows


def writers_of(partition: Partition, tensor: int) -> Iterator[tuple[int, int]]:
    """The layers that write a tensor, and which of their results it is."""
    for at, layer in enumerate(partition.layers):
        for number, result in enumerate(layer.results):
            if result.access.tensor == tensor:
                yield at, number


def work_of(choice: TileChoice) -> dict[str, int]:
    """Cycles of each unit for the whole layer."""
    work: dict[str, int] = {}
    for at, task in enumerate(choice.pattern.tasks):
        for unit in task.units:
            work[unit] = work.get(unit, 0) + int(choice.cycles[:, at].sum())
    for task, cycles in zip(choice.pattern.shared, choice.shared_cycles, strict=True):
        for unit in task.units:
            work[unit] = work.get(unit, 0) + cycles
    for unit in FROM_DDR:
        work[unit] = work.get(unit, 0) + sum(choice.weight_cycles)
    return work
