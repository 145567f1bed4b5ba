"""Fourth stage: how many rows and columns a tile has, by a model of what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.geometry import Geometry
from nacre.compile.options import Options
from nacre.compile.partition import Layer, Partition
from nacre.compile.rules import CMP02
from nacre.core.evaluation_plan import place
from nacre.nem.run.timing.profile import TimingProfile, timing_profile

ALIGN = 64  # of everything in L1
_GRAIN = 16  # columns come in multiples of this, as long as there are several tiles


@dataclass(frozen=True)
class Tiling:
    """The size of a layer's tiles, and how many of each kind L1 holds at a time."""

    rows: int
    columns: int
    slots: int  # tiles of input, and of output
    w_slots: int  # blocks of weights

    def column_blocks(self, geometry: Geometry) -> tuple[tuple[int, int], ...]:
        """First column and number of columns of every block."""
        firsts = range(0, geometry.columns, self.columns)
        return tuple((c, min(self.columns, geometry.columns - c)) for c in firsts)

    def __str__(self) -> str:
        return f"{self.rows} rows by {self.columns} columns, {self.slots} slots"


@dataclass(frozen=True)
class Slots:
    """Bytes of one slot of each ring."""

    x: int
    y: int
    w: int


def slot_bytes(geometry: Geometry, rows: int, columns: int) -> Slots:
    """What a tile takes in L1; every slot begins on a boundary."""
    return Slots(
        aligned(geometry.x_tile_bytes(rows)),
        aligned(geometry.y_tile_bytes(rows, columns)),
        aligned(geometry.w_block_bytes(columns)),
    )


def aligned(size: int) -> int:
    """A size rounded up to the next boundary."""
    return -(-size // ALIGN) * ALIGN


def l1_bytes(geometry: Geometry, tiling: Tiling) -> int:
    """What a layer takes in L1."""
    slots = slot_bytes(geometry, tiling.rows, tiling.columns)
    ring = tiling.slots * (geometry.sources * slots.x + slots.y)
    return ring + tiling.w_slots * slots.w


def tile(partition: Partition, options: Options) -> tuple[Tiling, ...]:
    """The cheapest tiling of every layer that fits; InputError names the layers without one."""
    found: list[Tiling] = []
    refused: list[Diagnostic] = []
    for layer in partition.layers:
        chosen = _chosen(layer, partition, options)
        if chosen is None:
            refused.append(_no_fit(layer, partition, options))
        else:
            found.append(chosen)
    if refused:
        raise InputError(refused)
    return tuple(found)


def _chosen(layer: Layer, partition: Partition, options: Options) -> Tiling | None:
    geometry = layer.geometry
    fitting = [t for t in _tilings(geometry) if l1_bytes(geometry, t) <= options.l1_bytes]
    # Of tilings that cost the same, the largest tiles: fewer tasks.
    return min(
        fitting,
        key=lambda t: (_cycles(layer, t, partition, options), -t.rows * t.columns),
        default=None,
    )


def _tilings(geometry: Geometry) -> Iterator[Tiling]:
    for columns in _column_sizes(geometry):
        blocks = ceil(geometry.columns / columns)
        for rows in filter(geometry.is_sound, _parts(geometry.out_rows)):
            tiles = geometry.images * ceil(geometry.out_rows / rows) * blocks
            yield Tiling(rows, columns, min(2, tiles), min(2, blocks))


def _column_sizes(geometry: Geometry) -> list[int]:
    if not geometry.cuts_columns:
        return [geometry.columns]
    cut = {-(-size // _GRAIN) * _GRAIN for size in _parts(geometry.columns)}
    return sorted({geometry.columns, *(size for size in cut if size < geometry.columns)})


def _parts(size: int) -> list[int]:
    """Sizes of equal parts, from the whole down to one; each size once."""
    sizes, count = [], 1
    while True:
        part = -(-size // count)
        sizes.append(part)
        if part == 1:
            return sizes
        count = -(-size // (part - 1))


@dataclass(frozen=True)
class _Costs:
    """Cycles of the tasks of one tile, and of one block of weights."""

    load: int
    product: int
    each: int  # a pass over the output
    store: int
    weights: int
    passes: int

    @property
    def chain(self) -> int:
        """A tile from its first byte to its last."""
        return self.load + self.product + self.passes * self.each + self.store


def _cycles(layer: Layer, tiling: Tiling, partition: Partition, options: Options) -> int:
    """About how long a layer takes: the busiest unit, and filling and draining the pipe.

    What travels between DDR and L1 occupies an sDMA and a DMA of the engine.
    """
    geometry, device = layer.geometry, options.device
    blocks = ceil(geometry.columns / tiling.columns)
    count = geometry.images * ceil(geometry.out_rows / tiling.rows) * blocks
    costs = _costs(layer, tiling, count, timing_profile(device))
    reads_ddr = any(partition.is_outside(source) for source in layer.sources)
    writes_ddr = partition.is_outside(layer.result)
    work = {
        "NMU": count * costs.product,
        "CSTL": count * (costs.passes * costs.each + (0 if writes_ddr else costs.store)),
        "DMA": count * (costs.load + (costs.store if writes_ddr else 0)) + blocks * costs.weights,
        "sDMA": count * (reads_ddr * costs.load + writes_ddr * costs.store)
        + blocks * costs.weights,
    }
    busiest = max(cycles // max(1, device.count(unit)) for unit, cycles in work.items())
    return busiest + costs.weights + blocks * costs.chain


def _costs(layer: Layer, tiling: Tiling, count: int, profile: TimingProfile) -> _Costs:
    geometry = layer.geometry
    slots = slot_bytes(geometry, tiling.rows, tiling.columns)
    rate = profile.macs_per_two_cycles(8 * geometry.element_bytes, is_float=True)
    macs = ceil(geometry.macs / count)
    elements = geometry.y_tile_bytes(tiling.rows, tiling.columns) // geometry.element_bytes
    throughput = profile.at("CSTL", "eltwise_throughput")
    return _Costs(
        load=geometry.sources * _copied(slots.x, profile),
        product=profile.at("NMU", "latency") + ceil(2 * macs / rate) if macs else 0,
        each=profile.at("CSTL", "latency") + ceil(elements / throughput),
        store=_copied(slots.y, profile),
        weights=_copied(slots.w, profile) if slots.w else 0,
        passes=len(layer.epilogue) + (layer.kind in ("map", "turn")),
    )


def _copied(size: int, profile: TimingProfile) -> int:
    return profile.at("sDMA", "latency") + ceil(size / profile.at("sDMA", "bandwidth"))


def _no_fit(layer: Layer, partition: Partition, options: Options) -> Diagnostic:
    geometry = layer.geometry
    module = partition.legal.module
    index = next(i for i, op in enumerate(module.operations) if op is layer.op)
    least = min(_tilings(geometry), key=lambda t: l1_bytes(geometry, t), default=None)
    if least is None:
        message = f"every tile of `{layer.name}` has rows that see nothing but padding"
        help_ = "pad by less than the window's height"
        return CMP02.at(place(module, index), message, help=help_)
    slots = slot_bytes(geometry, least.rows, least.columns)
    message = (
        f"no tile of `{layer.name}` fits in the {options.l1_bytes} bytes of L1: the smallest, "
        f"{least}, takes {l1_bytes(geometry, least)} ({slots.x} a tile of input, {slots.y} of "
        f"output, {slots.w} a block of weights)"
    )
    help_ = f"a device with more L1 than {options.device.name}, or a narrower layer"
    return CMP02.at(place(module, index), message, help=help_)
