"""Which tensors stay in L1 from the layer that makes them to the last one that reads them.

Such a tensor is neither stored nor loaded: tasks write and read it in its place. They share a zone
at the beginning of L1; tiles have the rest. L1 belongs to an engine, so all layers that touch such
a tensor run on the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nacre.compile.layers import Layer
from nacre.compile.options import Options
from nacre.compile.partition import Partition
from nacre.compile.spaces import aligned

Key = tuple[int, ...]
Span = tuple[int, int, int, int]  # offset, end, first layer, last layer


@dataclass(frozen=True)
class Residency:
    """Tensors in L1 and where they begin, and how much of it they take."""

    offsets: Mapping[int, int] = field(default_factory=dict)
    zone: int = 0
    # Weights that several layers share, by their constants: where they begin, who brings them.
    weights: Mapping[Key, int] = field(default_factory=dict)
    bringers: Mapping[Key, str] = field(default_factory=dict)

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
    most = most_macs if options.device.num_engines > 1 else None
    wanted = [t for t in lives if _may_stay(t, partition, most)]
    sizes = {t: aligned(partition.tensors[t].bytes) for t in wanted}

    def room(tensor: int) -> tuple[int, int]:
        first, last = lives[tensor]
        return sizes[tensor] * (last - first + 1), tensor

    taken: list[Span] = []
    weights = _shared_weights(partition, zone, most, taken)
    offsets: dict[int, int] = {}
    for tensor in sorted(wanted, key=room):
        offset = gap(taken, sizes[tensor], *lives[tensor])
        if offset + sizes[tensor] <= zone:
            taken.append((offset, offset + sizes[tensor], *lives[tensor]))
            offsets[tensor] = offset
    bringers = {
        key: next(x.name for x in partition.layers if x.packed and x.packed.key == key)
        for key in weights
    }
    used = max((end for _, end, _, _ in taken), default=0)
    return Residency(offsets, used, weights, bringers)


def _shared_weights(
    partition: Partition, zone: int, most_macs: int | None, taken: list[Span]
) -> dict[Key, int]:
    """Weights of several layers that fit in half of the zone together."""
    users: dict[Key, list[int]] = {}
    sizes: dict[Key, int] = {}
    for index, layer in enumerate(partition.layers):
        if layer.packed is not None:
            users.setdefault(layer.packed.key, []).append(index)
            sizes[layer.packed.key] = aligned(layer.packed.block_bytes(layer.columns))
    found: dict[Key, int] = {}
    for key, layers in sorted(users.items(), key=lambda item: -len(item[1])):
        if most_macs is not None and any(partition.layers[i].macs > most_macs for i in layers):
            continue
        # They come while the layer before the first one runs; copies stand in between.
        earlier = (i for i in range(layers[0] - 1, -1, -1) if partition.layers[i].main != "copy")
        first, last = next(earlier, 0), layers[-1]
        offset = gap(taken, sizes[key], first, last)
        if len(layers) > 1 and offset + sizes[key] <= zone // 2:
            taken.append((offset, offset + sizes[key], first, last))
            found[key] = offset
    return found


def gap(taken: list[Span], size: int, first: int, last: int) -> int:
    """The lowest offset at which nothing else lives at the same time."""
    offset = 0
    for start, end, begun, over in sorted(taken):
        if begun > last or over < first:
            continue
        if offset + size <= start:
            break
        offset = max(offset, end)
    return offset


def lifetimes(partition: Partition) -> dict[int, tuple[int, int]]:
    """The layer that begins a tensor, and the last one that reads or writes it."""
    lives: dict[int, tuple[int, int]] = {}
    for index, layer in enumerate(partition.layers):
        for tensor in (*layer.writes, *layer.reads):
            first, _ = lives.get(tensor, (index, index))
            lives[tensor] = (first, index)
    return lives


def _may_stay(tensor: int, partition: Partition, most_macs: int | None) -> bool:
    if partition.is_outside(tensor):
        return False
    layers = [x for x in partition.layers if tensor in (*x.reads, *x.writes)]
    if any(a.stays for x in layers for a in x.operands if a.tensor == tensor):
        return False  # the table of a gather is read where DMA finds it
    return most_macs is None or all(layer.macs <= most_macs for layer in layers)
