"""Fifth stage: where tensors and weights lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.packing import pack_nibbles
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.tensors import Tensor
from nacre.compile.placement.buffer_reuse import reuse_chains
from nacre.compile.placement.capacity import require_room_for_all
from nacre.compile.placement.compression import (
    BlockCompressor,
    CompressedBlock,
    saved_by_layer,
)
from nacre.compile.placement.fetching import Fetch, fetch_weights
from nacre.compile.placement.ports import COMPRESSED, L2, SPILL, WEIGHTS, ports_of
from nacre.compile.placement.staging import StagedBlock, staged_blocks
from nacre.compile.program import Buffer
from nacre.compile.tiling.footprints import Footprint, footprint
from nacre.compile.tiling.occupied import OccupiedSpans
from nacre.compile.tiling.residency import lifetimes
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.stage import Tilings
from nacre.compile.tiling.tiling import Tiling
from nacre.core.values import Array

_L1 = "tiles_L1"


@dataclass(frozen=True)
class Location:
    """Where a tensor lies."""

    buffer: str
    level: str
    offset: int


@dataclass(frozen=True)
class L1Layout:
    """Where the parts of a layer lie in L1: blocks of weights, what tiles share, the ring."""

    footprint: Footprint
    weights: int
    shared: int
    ring: int
    end: int  # of the whole
    start: int

    def space(self, number: int) -> tuple[int, bool]:
        """Where a space begins, in the first slot of the ring; and whether it is in the ring."""
        fixed = self.footprint.spaces.fixed
        before = sum(
            size
            for other, size in enumerate(self.footprint.sizes[:number])
            if fixed[other] == fixed[number]
        )
        return (self.shared if fixed[number] else self.ring) + before, not fixed[number]


class WeightsPart(NamedTuple):
    """Where an array lies in the weights, its elements one behind the other."""

    offset: int
    array: Array
    elem: str = ""  # of integers of 4 bits, which lie two to a byte


@dataclass(frozen=True, eq=False)
class Placement:
    """Every tensor's place, every block of weights, and the buffers that hold them."""

    tensors: Mapping[int, Location]
    blocks: Mapping[tuple[str, int], int]  # layer, block: where it begins in the weights
    l1_layouts: Mapping[str, L1Layout]  # by layer
    weights: bytes
    parts: tuple[WeightsPart, ...]
    buffers: tuple[Buffer, ...]
    inputs: Mapping[str, str]  # buffers by the name of the input
    outputs: tuple[str, ...]  # buffers in order
    l2_peak: int
    l2_bound: int  # no placement can do with less
    staged: Mapping[tuple[str, int], StagedBlock] = field(
        default_factory=dict
    )  # layer, block: in L2
    compressed: Mapping[tuple[str, int], CompressedBlock] = field(default_factory=dict)
    saved: Mapping[str, int] = field(default_factory=dict)  # bytes of compressed weights, by layer
    fetches: tuple[Fetch, ...] = ()  # weights on their way to L2, in their order

    def l1(self, engine: int) -> str:
        """The buffer in an engine's L1."""
        return l1_name(engine)

    @property
    def spilled_tensors(self) -> frozenset[int]:
        """Tensors between layers that L2 had no room for."""
        return frozenset(t for t, where in self.tensors.items() if where.buffer == SPILL)

    def __str__(self) -> str:
        lines = [f"{b.name}: {b.level}, {b.size} bytes" for b in self.buffers]
        lines += [f"%{v}: {p.buffer}@{p.offset}" for v, p in self.tensors.items()]
        return "\n".join(lines) + "\n"


def l1_name(engine: int) -> str:
    """The name of the buffer in an engine's L1."""
    return f"{_L1}_{engine}" if engine else _L1


def is_l1(buffer: str) -> bool:
    """Whether a buffer is an engine's L1; the model's own names end in `_DDR`."""
    return buffer.startswith(_L1) and not buffer.endswith("_DDR")


def place(partition: Partition, tiled: Tilings, options: Options) -> Placement:
    """Inputs, outputs and weights in DDR; tensors between layers in L2, in DDR where it is full."""
    layers, tilings, ports = partition.layers, tiled.layers, ports_of(partition)
    tensors = {tensor: Location(name, "DDR", 0) for tensor, name in ports.tensors.items()}
    buffers = list(ports.buffers)
    for tensor, offset in tiled.resident.offsets.items():
        tensors[tensor] = Location(l1_name(0), "L1", offset)
    taken, spilled = _place_between_layers(partition, tensors, options)
    staged = staged_blocks(layers, tiled, taken, options)
    weights = _Weights()
    left = options.l2_bytes - align_up(taken.end)
    compressor = BlockCompressor(options, left) if options.compress else None
    blocks, compressed = _pack_weights(layers, tilings, weights, compressor, staged)
    constants = _add_constants(partition, tensors, weights)
    room = options.l2_bytes - align_up(compressor.l2_bytes if compressor else 0)
    outside = {tensor for tensor, where in tensors.items() if where.level == "DDR"}
    fetches, fetched, moved = fetch_weights(
        partition, tiled, blocks, constants, {*staged, *compressed}, taken, outside, room, options
    )
    staged |= fetched
    tensors |= {tensor: Location(L2, "L2", offset) for tensor, offset in moved.items()}
    peak, bound = taken.end, _most_bytes_alive(taken, len(layers))
    packed = weights.packed
    buffers += [Buffer(SPILL, "DDR", spilled, "tensors between layers")] if spilled else []
    buffers += [Buffer(WEIGHTS, "DDR", len(packed), "packed by tiles")] if packed else []
    held = "tensors between layers" + (", and weights" if staged else "")
    buffers += [Buffer(L2, "L2", peak, held)] if peak else []
    if compressor is not None and compressor.l2_bytes:
        buffers.append(Buffer(COMPRESSED, "L2", compressor.l2_bytes, "weights on their way"))
    l1_layouts = _l1_layouts(layers, tiled, options)
    buffers += _l1_buffers(tiled, l1_layouts, options)
    require_room_for_all(partition, buffers, options)
    return Placement(
        tensors,
        blocks,
        l1_layouts,
        bytes(packed),
        tuple(weights.parts),
        tuple(buffers),
        ports.inputs,
        ports.outputs,
        peak,
        bound,
        staged,
        compressed,
        saved_by_layer(layers, compressed),
        fetches,
    )


def _l1_layouts(layers: tuple[Layer, ...], tiled: Tilings, options: Options) -> dict[str, L1Layout]:
    """Layers take turns at the two ends of L1, weights outermost: the next ones find room."""
    whole = options.l1_bytes // 64 * 64
    layouts: dict[str, L1Layout] = {}
    low = True
    for layer, tiling in zip(layers, tiled.layers, strict=True):
        if layer.main == "copy":
            continue
        needed = footprint(layer, tiling, tiled.resident)
        total, weights = needed.total(tiling), tiling.w_slots * needed.w_bytes
        base = tiled.resident.begin(layer)
        if low:
            shared = base + weights
            l1_layout = L1Layout(
                needed, base, shared, shared + needed.shared_bytes, base + total, base
            )
        else:
            start, ring = whole - total, tiling.slots * needed.ring
            l1_layout = L1Layout(needed, whole - weights, start + ring, start, whole, start)
        if layer.packed is not None and tiled.resident.holds_weights(layer):
            l1_layout = replace(l1_layout, weights=tiled.resident.weights[layer.packed.key])
        layouts[layer.name] = l1_layout
        low = not low
    return layouts


def _l1_buffers(
    tiled: Tilings, l1_layouts: Mapping[str, L1Layout], options: Options
) -> list[Buffer]:
    # Copies alone use L1 too, where tensors stay there.
    ends = (l1_layout.end for l1_layout in l1_layouts.values())
    size = max((tiled.resident.zone, *tiled.resident.begins.values(), *ends))
    if not size:
        return []
    used = max((tiling.engines for tiling in tiled.layers), default=1)
    many = options.device.num_engines > 1
    return [
        Buffer(l1_name(e), f"L1[{e}]" if many else "L1", size, "tiles of the layers that run")
        for e in range(used)
    ]


def _place_between_layers(
    partition: Partition, tensors: dict[int, Location], options: Options
) -> tuple[OccupiedSpans, int]:
    """Places for tensors between layers: what they take of L2, and bytes of DDR for the rest."""
    lives = lifetimes(partition)
    wanted = [
        value for value in lives if value not in tensors and not _is_constant(partition, value)
    ]
    sizes = {value: align_up(partition.tensors[value].bytes) for value in wanted}
    chains = reuse_chains(partition, sizes, lives)
    spilled = 0
    taken = OccupiedSpans()
    # Large ones first: they find a gap last.
    pending = sorted(chains, key=lambda c: (sizes[c[0]], -c[0]))
    while pending:
        chain = pending.pop()
        size, first, last = sizes[chain[0]], lives[chain[0]][0], lives[chain[-1]][1]
        offset = taken.lowest_gap(size, first, last)
        if offset + size <= options.l2_bytes:
            taken.add(offset, size, first, last)
            tensors.update(dict.fromkeys(chain, Location(L2, "L2", offset)))
        elif len(chain) > 1:  # each by itself has a shorter life
            pending += [(value,) for value in reversed(chain)]
        else:
            tensors[chain[0]] = Location(SPILL, "DDR", spilled)
            spilled += size
    return taken, spilled


def _most_bytes_alive(spans: OccupiedSpans, layers: int) -> int:
    """The most bytes that are alive at once."""
    change = [0] * (layers + 1)
    for span in spans:
        change[span.first] += span.end - span.begin
        change[span.last + 1] -= span.end - span.begin
    return int(np.cumsum(change).max(initial=0))


def _is_constant(partition: Partition, tensor: int) -> bool:
    return partition.tensors[tensor].constant is not None


class _Weights:
    """The weights as they lie in DDR, and the arrays that they are made of."""

    def __init__(self) -> None:
        self.packed = bytearray()
        self.parts: list[WeightsPart] = []

    def add(self, array: Array, elem: str = "") -> None:
        is_narrow = bool(elem) and GRAPH_TYPES[elem].bits < 8
        self.parts.append(WeightsPart(len(self.packed), array, elem if is_narrow else ""))
        self.packed += (
            pack_nibbles(array).tobytes() if is_narrow else np.ascontiguousarray(array).tobytes()
        )

    def align(self) -> None:
        self.packed += bytes(align_up(len(self.packed)) - len(self.packed))


def _pack_weights(
    layers: tuple[Layer, ...],
    tilings: tuple[Tiling, ...],
    weights: _Weights,
    compressor: BlockCompressor | None,
    staged: Mapping[tuple[str, int], StagedBlock],
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], CompressedBlock]]:
    """Weights as the tiles use them: a block of columns after the other, its bias behind it.

    What lies in L2 between layers is not compressed.
    """
    blocks: dict[tuple[str, int], int] = {}
    compressed: dict[tuple[str, int], CompressedBlock] = {}
    begins: dict[tuple[tuple[int, ...], int], str] = {}
    packed = weights.packed
    for layer, tiling in zip(layers, tilings, strict=True):
        if layer.packed is None:
            continue
        known = (layer.packed.key, tiling.columns)
        begins.setdefault(known, layer.name)
        for number, (first, count) in enumerate(tiling.column_blocks(layer.columns)):
            if begins[known] != layer.name:  # another layer's weights too, cut alike
                blocks[layer.name, number] = blocks[begins[known], number]
                if (begins[known], number) in compressed:
                    compressed[layer.name, number] = compressed[begins[known], number]
                continue
            begun = blocks[layer.name, number] = len(packed)
            array = layer.packed.array[..., first : first + count]
            made = None
            is_plain = not layer.packed.groups  # in groups they take a few bits already
            if compressor is not None and is_plain and (layer.name, number) not in staged:
                made = compressor.compressed_block(layer, tiling, array)
            if made is not None:
                compressed[layer.name, number], stored = made
                for part in stored:
                    weights.add(part)
            for at, one in enumerate(layer.packed.parts):
                if made is None:
                    packed += bytes(begun + layer.packed.part_offset(at, count) - len(packed))
                if made is None or at:
                    weights.add(one.array[..., first : first + count], one.elem)
            weights.align()
    return blocks, compressed


def _add_constants(
    partition: Partition, tensors: dict[int, Location], weights: _Weights
) -> dict[int, int]:
    """Constants that tiles or copies read as they are, behind the weights; where they begin."""
    begins: dict[int, int] = {}
    read = dict.fromkeys(t for layer in partition.layers for t in layer.reads)
    for value in read:
        tensor: Tensor = partition.tensors[value]
        if tensor.constant is not None and value not in tensors:
            begins[value] = len(weights.packed)
            tensors[value] = Location(WEIGHTS, "DDR", begins[value])
            weights.add(tensor.constant)
            weights.align()
    return begins
