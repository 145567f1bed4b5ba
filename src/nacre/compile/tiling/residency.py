"""Which tensors stay in L1 from the layer that makes them to the last one that reads them.

Such a tensor is neither stored nor loaded: tasks write and read it in its place. They share a zone
at the beginning of L1; behind it lie weights that layers keep for each other, as long as they do.
Tiles have the rest. L1 belongs to an engine, so all layers that touch such a tensor run on the
first one. Weights that are kept are shared out: each engine has those of some columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.tiling.occupied import OccupiedSpans
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.tiling import columns_of_engine, keeps_weights

Key = tuple[int, ...]


@dataclass(frozen=True)
class Residency:
    """Tensors in L1 and where they begin, and how much of it they take."""

    offsets: Mapping[int, int] = field(default_factory=dict)
    zone: int = 0
    # Weights that several layers share, by their constants: where they begin, who brings them.
    weights: Mapping[Key, int] = field(default_factory=dict)
    loaded_by: Mapping[Key, str] = field(default_factory=dict)
    # Where tiles begin, by layer; without such weights, behind the zone.
    begins: Mapping[str, int] = field(default_factory=dict)

    def begin(self, layer: Layer) -> int:
        """Where the tiles of a layer begin."""
        return self.begins.get(layer.name, self.zone)

    def __contains__(self, tensor: object) -> bool:
        return tensor in self.offsets

    def of(self, layer: Layer) -> frozenset[int]:
        """The tensors in L1 that a layer touches."""
        return frozenset(t for t in (*layer.reads, *layer.writes) if t in self.offsets)

    def keeps_together(self, layer: Layer) -> bool:
        """Whether a layer touches a tensor in L1."""
        return bool(self.of(layer)) or self.holds_weights(layer)

    def holds_weights(self, layer: Layer) -> bool:
        """Whether a layer finds its weights in L1."""
        return layer.packed is not None and layer.packed.key in self.weights


def residency(partition: Partition, options: Options, zone: int, most_macs: int) -> Residency:
    """Tensors for a zone of so many bytes: those that take the least room for the least time.

    On a device of several engines only layers of at most so many MACs give up the others.
    """
    lives = lifetimes(partition)
    engines = options.device.num_engines
    most = most_macs if engines > 1 else None
    wanted = [
        tensor
        for tensor, users in users_of_tensors(partition).items()
        if may_stay(tensor, users, partition, most)
        and not (engines > 1 and any(keeps_weights(user) for user in users))
    ]
    sizes = {t: align_up(partition.tensors[t].bytes) for t in wanted}

    def room(tensor: int) -> tuple[int, int]:
        first, last = lives[tensor]
        return sizes[tensor] * (last - first + 1), tensor

    taken = OccupiedSpans()
    users = users_of_weights(partition, most)
    weights = _shared_weights(partition, users, zone, taken)
    kept_by = {
        key: layers
        for key, layers in users_of_weights(partition).items()
        if keeps_weights(partition.layers[layers[0]]) and (engines > 1 or key in users)
    }
    offsets: dict[int, int] = {}
    for tensor in sorted(wanted, key=room):
        offset = taken.lowest_gap(sizes[tensor], *lives[tensor])
        if offset + sizes[tensor] <= zone:
            taken.add(offset, sizes[tensor], *lives[tensor])
            offsets[tensor] = offset
    used = taken.end
    kept, begins = _resident_weights(partition, kept_by, taken, engines)
    weights |= kept
    loaded_by = {key: partition.layers[{**users, **kept_by}[key][0]].name for key in weights}
    return Residency(offsets, used, weights, loaded_by, begins)


def users_of_weights(partition: Partition, most_macs: int | None = None) -> dict[Key, list[int]]:
    """The layers that use the same weights, where none of them has more MACs than given."""
    users: dict[Key, list[int]] = {}
    for index, layer in enumerate(partition.layers):
        if layer.packed is not None:
            users.setdefault(layer.packed.key, []).append(index)
    return {
        key: found
        for key, found in users.items()
        if most_macs is None or all(partition.layers[i].macs <= most_macs for i in found)
    }


def weights_lifetime(layers: Sequence[Layer], users: Sequence[int]) -> tuple[int, int]:
    """From when to when weights are kept for their users."""
    # They come while the layer before the first one runs; copies stand in between.
    earlier = (i for i in range(users[0] - 1, -1, -1) if layers[i].main != "copy")
    return next(earlier, 0), users[-1]


def _shared_weights(
    partition: Partition, users: Mapping[Key, list[int]], zone: int, occupied: OccupiedSpans
) -> dict[Key, int]:
    """Weights of several layers that fit in half of the zone together."""
    offsets: dict[Key, int] = {}
    for key, layers in sorted(users.items(), key=lambda item: -len(item[1])):
        user = partition.layers[layers[-1]]
        size = _weights_of(user, user.columns)
        first, last = weights_lifetime(partition.layers, layers)
        offset = occupied.lowest_gap(size, first, last)
        if len(layers) > 1 and not keeps_weights(user) and offset + size <= zone // 2:
            occupied.add(offset, size, first, last)
            offsets[key] = offset
    return offsets


def _resident_weights(
    partition: Partition, users: Mapping[Key, list[int]], occupied: OccupiedSpans, engines: int
) -> tuple[dict[Key, int], dict[str, int]]:
    """Weights that layers keep for each other, behind all else; and where tiles begin with them."""
    offsets: dict[Key, int] = {}
    heights = HighWaterMarks(len(partition.layers), occupied)
    beside = np.zeros(len(partition.layers), bool)  # layers that run while such weights are there
    for key, layers in users.items():
        user = partition.layers[layers[0]]
        first, last = weights_lifetime(partition.layers, layers)
        offsets[key] = heights.add(
            _weights_of(user, columns_of_engine(user.columns, engines)), first, last
        )
        beside[first : last + 1] = True
    begins: dict[str, int] = {}
    before = 0
    for index, layer in enumerate(partition.layers):
        if layer.main != "copy":
            # A layer begins while the one before it runs, which may be the last to need them.
            if beside[before : index + 1].any():
                begins[layer.name] = heights.top(before, index)
            before = index
    return offsets, begins


def _weights_of(layer: Layer, columns: int) -> int:
    """What the weights of some columns of a layer take in L1."""
    assert layer.packed is not None
    return align_up(layer.packed.block_bytes(columns))


class HighWaterMarks:
    """The end of all that is there while a layer runs, by the number of the layer."""

    def __init__(self, count: int, occupied: OccupiedSpans) -> None:
        self._ends = np.zeros(count, np.int64)
        for span in occupied:
            self._raise_ends(span.end, span.first, span.last)

    def _raise_ends(self, end: int, first: int, last: int) -> None:
        part = self._ends[first : last + 1]
        np.maximum(part, end, out=part)

    def top(self, first: int, last: int) -> int:
        """The end of all that is there at some time between two layers."""
        return int(self._ends[first : last + 1].max())

    def add(self, size: int, first: int, last: int) -> int:
        """Something more, behind all that is there at the time; where it begins."""
        begin = self.top(first, last)
        self._raise_ends(begin + size, first, last)
        return begin


def lifetimes(partition: Partition) -> dict[int, tuple[int, int]]:
    """The layer that begins a tensor, and the last one that reads or writes it."""
    lives: dict[int, tuple[int, int]] = {}
    for index, layer in enumerate(partition.layers):
        for tensor in (*layer.writes, *layer.reads):
            first, _ = lives.get(tensor, (index, index))
            lives[tensor] = (first, index)
    return lives


def users_of_tensors(partition: Partition) -> dict[int, list[Layer]]:
    """The layers that read or write each tensor, in the order of `lifetimes`."""
    users: dict[int, list[Layer]] = {}
    for layer in partition.layers:
        for tensor in dict.fromkeys((*layer.writes, *layer.reads)):
            users.setdefault(tensor, []).append(layer)
    return users


def may_stay(
    tensor: int, layers: Sequence[Layer], partition: Partition, most_macs: int | None
) -> bool:
    """Whether a tensor that these layers touch may stay in L1."""
    if partition.is_outside(tensor):
        return False
    if any(a.stays for x in layers for a in x.operands if a.tensor == tensor):
        return False  # the table of a gather is read where DMA finds it
    return most_macs is None or all(layer.macs <= most_macs for layer in layers)
