"""Weights that come to L2 before they are needed: once for all engines, by all sDMAs at a time.

DDR is far and narrow. Without this, a layer's weights travel while the layer before it runs, and
every engine brings them for itself. L2 is shared, and what it has room for can travel earlier,
while layers run that ask for little of DDR; each engine then has a short and wide way to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.placement.staging import StagedBlock
from nacre.compile.tiling.occupied import OccupiedSpans
from nacre.compile.tiling.residency import lifetimes
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.stage import Tilings
from nacre.compile.tiling.tiling import Tiling

_PART = 4096  # bytes that are worth a task of their own
_TOKENS = 8  # one in so many tokens of an engine is for what travels ahead
_LARGE_PART = 4 * _PART  # bytes whose arrival is far enough from their start to be told
_SMALL = 1024  # bytes of a constant that travels with others
_OVERLAP = 0.8  # of the time that layers take one after the other
_MARGIN = 1.5  # of what travel takes
_IN_TIME = 3.0  # times what travel takes, until what comes in few parts is needed
_PLENTY = 3  # tokens for each sDMA
_LATENCY = 50  # cycles until the first bytes are there
_SHORT_HOP = 8  # times as fast as DDR: weights of a single engine travel by L2 from there on

Block = tuple[str, int]  # of a layer, by its number


@dataclass(frozen=True)
class Fetch:
    """Weights on their way from DDR to L2, as tasks of several sDMAs."""

    layer: str  # that needs them
    title: str  # of the layer, or of what it is a part of
    number: int  # among all
    round: int  # of the layer's blocks that needs it; -1: all tiles may
    at: int  # the layer that runs when it begins, by its place
    until: int  # the layer that runs when it is likely to be there
    source: int  # in the weights
    offset: int  # in L2
    size: int
    parts: int


@dataclass(frozen=True)
class _Item:
    """What lies behind each other in the weights and is needed at one time."""

    first: int  # the layer that needs it, by its place
    last: int  # the last that does
    number: int  # among those of the layer
    source: int
    size: int
    blocks: tuple[Block, ...] = ()
    tensors: tuple[int, ...] = ()


def most_tokens_in_flight(options: Options) -> int:
    """How many tokens weights may hold on their way where tiles need tokens, too."""
    return max(1, options.tokens // _TOKENS) * options.device.num_engines


def fetch_weights(
    partition: Partition,
    tiled: Tilings,
    blocks: Mapping[Block, int],
    constants: Mapping[int, int],
    others: Set[Block],
    occupied: OccupiedSpans,
    outside: Set[int],
    room: int,
    options: Options,
) -> tuple[tuple[Fetch, ...], dict[Block, StagedBlock], dict[int, int]]:
    """What travels when, and where blocks and constants lie in L2, as far as gaps there go.

    `blocks` and `constants` say where they begin in the weights; `others` are blocks that come
    another way. What layers read of the tensors `outside` is in DDR. There are `room` bytes of L2.
    """
    engines = options.device.num_engines
    if not _is_second_hop_worth_it(options) or "ahead" in options.disabled or options.token_reserve:
        return (), {}, {}
    layers = partition.layers
    most = most_tokens_in_flight(options)
    used = [0] * len(layers)  # tokens of weights on their way, by the layer that runs
    fetches: list[Fetch] = []
    arriving: list[tuple[_Item, int]] = []  # and where in L2
    earliest = 0
    items = [*_weights(layers, tiled, blocks, others), *_constants(partition, constants)]
    items.sort(key=lambda item: (item.first, item.number))
    clock = _Clock(tiled.cycles_of, options)
    if clock.is_busy_with(items):
        most *= 2
    for item, begin in zip(items, clock.latest(items), strict=True):
        # One engine has one queue: what is in it before the way is free holds up its inputs.
        free = clock.free_layer if engines == 1 else 0
        for at in range(max(earliest, begin, min(free, item.first)), item.first + 1):
            for parts in clock.part_counts(item, at, most):
                on_the_way = clock.layers_in_flight(item, at, parts)
                if at == item.first or max(used[place] for place in on_the_way) + parts <= most:
                    break
            else:
                continue
            if at < item.first and engines == 1 and not outside.isdisjoint(layers[at].reads):
                continue
            offset = occupied.lowest_gap(item.size, at, item.last)
            if offset + item.size > room:
                continue
            occupied.add(offset, item.size, at, item.last)
            for place in on_the_way:
                used[place] += parts
            reader = layers[item.first]
            until, number = clock.begin(item, at, parts), len(fetches)
            fetches.append(
                Fetch(reader.name, reader.title, number, item.number, at, until, item.source,
                      offset, item.size, parts)
            )  # fmt: skip
            arriving.append((item, offset))
            earliest = at
            break
    return tuple(fetches), *_places_in_l2(arriving, blocks, constants)


def _places_in_l2(
    arriving: Iterable[tuple[_Item, int]],
    blocks: Mapping[Block, int],
    constants: Mapping[int, int],
) -> tuple[dict[Block, StagedBlock], dict[int, int]]:
    """Where the blocks and the constants of items lie that begin at these bytes of L2."""
    staged: dict[Block, StagedBlock] = {}
    moved: dict[int, int] = {}
    for item, offset in arriving:
        shift = offset - item.source
        staged.update({b: StagedBlock(blocks[b] + shift, is_first=False) for b in item.blocks})
        moved.update({tensor: constants[tensor] + shift for tensor in item.tensors})
    return staged, moved


def _is_second_hop_worth_it(options: Options) -> bool:
    """Whether a second hop is worth it: several engines share one way, or the hop is short."""
    if options.device.num_engines > 1:
        return True
    near, far = (options.profile.at(unit, "bandwidth") for unit in ("DMA", "sDMA"))
    return near >= _SHORT_HOP * far


class _Clock:
    """When layers run and weights travel, about: one after the other, by all sDMAs at a time."""

    def __init__(self, cycles: Sequence[float], options: Options) -> None:
        self._starts = np.concatenate([[0.0], np.cumsum(cycles)]) * _OVERLAP
        self._count = options.device.count("sDMA")
        self._rate = options.profile.at("sDMA", "bandwidth")
        self._busy = 0.0  # until when sDMAs are

    def is_busy_with(self, items: Sequence[_Item]) -> bool:
        """Whether what travels takes most of the time: then nothing is a better use of tokens."""
        return 3 * sum(self._shared(item) for item in items) > float(self._starts[-1])

    def part_counts(self, item: _Item, at: int, tokens: int) -> list[int]:
        """How many tasks an item may come in: all it is worth, and fewer that are well in time.

        Where tokens are few, items of one task each keep the sDMAs busy for longest; where they are
        many, an item of many tasks is there soonest.
        """
        most = self._most_parts(item)
        left = float(self._starts[item.first]) - self._begin(at)
        fewer = [p for p in range(1, most) if _IN_TIME * self._alone(item, p) <= left]
        return [*fewer, most] if tokens < _PLENTY * self._count else [most, *reversed(fewer)]

    def _most_parts(self, item: _Item) -> int:
        return max(1, min(self._count, item.size // _PART))

    def _shared(self, item: _Item) -> float:
        return item.size / (self._rate * self._count)

    def _alone(self, item: _Item, parts: int) -> float:
        return item.size / (self._rate * parts) + _LATENCY

    def latest(self, items: Sequence[_Item]) -> list[int]:
        """For each item the layer in whose time it should begin: what waits takes tokens and L2."""
        found: list[int] = []
        following = np.inf
        for item in reversed(items):
            end = min(float(self._starts[item.first]), following)
            following = min(
                end - _MARGIN * self._alone(item, self._most_parts(item)),
                following - _MARGIN * self._shared(item),
            )
            found.append(max(0, self._layer_at(following)))
        return found[::-1]

    def _arrival(self, item: _Item, at: int, parts: int) -> int:
        """The layer that is likely to run when an item is there that begins with another."""
        begin = self._begin(at)
        return min(self._layer_at(begin + self._alone(item, parts)) + 1, item.first)

    def layers_in_flight(self, item: _Item, at: int, parts: int) -> range:
        """The layers that run while an item is likely to hold tokens.

        Small ones are many, and what is wrong about when each arrives adds up.
        """
        is_large = item.size >= parts * _LARGE_PART
        return range(at, (self._arrival(item, at, parts) if is_large else item.first) + 1)

    def begin(self, item: _Item, at: int, parts: int) -> int:
        """Begin with an item when a layer does, or when all before it are there; its arrival."""
        arrival = self._arrival(item, at, parts)
        self._busy = self._begin(at) + self._shared(item)
        return arrival

    def _begin(self, at: int) -> float:
        return max(self._busy, float(self._starts[at]))

    @property
    def free_layer(self) -> int:
        """The layer that is likely to run when all that was asked for is there."""
        return self._layer_at(self._busy)

    def _layer_at(self, time: float) -> int:
        return int(np.searchsorted(self._starts, time, "right")) - 1


def _weights(
    layers: tuple[Layer, ...],
    tiled: Tilings,
    blocks: Mapping[Block, int],
    others: Set[Block],
) -> Iterator[_Item]:
    """Blocks of weights that engines need at one time."""
    for index, (layer, tiling) in enumerate(zip(layers, tiled.layers, strict=True)):
        packed = layer.packed
        if packed is None:
            continue
        if tiled.resident.loaded_by.get(packed.key, layer.name) != layer.name:
            continue
        counts = [count for _, count in tiling.column_blocks(layer.columns)]
        for number, numbers in enumerate(_rounds(tiling, len(counts))):
            names = tuple((layer.name, block) for block in numbers)
            if not others.isdisjoint(names):
                continue
            end = blocks[names[-1]] + align_up(packed.block_bytes(counts[numbers[-1]]))
            first = blocks[names[0]]
            yield _Item(index, index, number, first, end - first, blocks=names)


def _rounds(tiling: Tiling, count: int) -> Iterator[range]:
    """The blocks that engines compute at a time."""
    for first in range(0, count, tiling.abreast):
        yield range(first, min(first + tiling.abreast, count))


def _constants(partition: Partition, begins: Mapping[int, int]) -> Iterator[_Item]:
    """Constants that tiles read as they are: small ones together, before the first layer."""
    lives = lifetimes(partition)
    large = _large_tables(partition)
    small: list[_Item] = []
    for tensor, source in begins.items():
        first, last = lives[tensor]
        size = align_up(partition.tensors[tensor].bytes)
        item = _Item(first, last, -1, source, size, tensors=(tensor,))
        if tensor in large:
            continue
        if size > _SMALL:
            yield item
        elif small and small[-1].source + small[-1].size != source:
            yield _join_constants(small)
            small = [item]
        else:
            small.append(item)
    if small:
        yield _join_constants(small)


def _large_tables(partition: Partition) -> frozenset[int]:
    """Tables that have more bytes than the rows that are taken from them."""
    sizes = {tensor: known.bytes for tensor, known in partition.tensors.items()}
    taken: dict[int, int] = {}
    for layer in partition.layers:
        for access in layer.operands:
            if access.stays:
                rows = sum(sizes[tensor] for tensor in layer.writes)
                taken[access.tensor] = taken.get(access.tensor, 0) + rows
    return frozenset(tensor for tensor, rows in taken.items() if sizes[tensor] > rows)


def _join_constants(items: Sequence[_Item]) -> _Item:
    """Constants behind each other as one."""
    tensors = tuple(tensor for item in items for tensor in item.tensors)
    last = max(item.last for item in items)
    size = sum(item.size for item in items)
    return _Item(min(item.first for item in items), last, -1, items[0].source, size, (), tensors)
