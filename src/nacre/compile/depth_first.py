"""Groups of layers that run depth first: tile by tile through all of them, where that is faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from nacre.compile.fusing import joined
from nacre.compile.layers import Layer
from nacre.compile.options import Options
from nacre.compile.partition import Partition
from nacre.compile.residency import Residency
from nacre.compile.spaces import aligned
from nacre.compile.tile import best_tiling

_GAIN = 0.9  # of the cycles: less is within what the estimate is off
_ZONE = 2  # a tensor of up to one part in so many of L1 may stay there by itself


def in_groups(partition: Partition, options: Options) -> Partition:
    """The same work with layers that run together, where that is estimated to take less time."""
    if "groups" in options.without:
        return partition
    grouping = _Grouping(partition, options)
    layers: list[Layer] = []
    for layer in partition.layers:
        found = grouping.together(layers[-1], layer) if layers else None
        if found is None:
            layers.append(layer)
        else:
            layers[-1] = found
    return replace(grouping.partition, layers=tuple(layers))


def as_described(whole: Partition, planned: Partition) -> Partition:
    """The layers of a partition under which people find its tasks: groups for their members."""
    groups = {layer.members[-1]: layer for layer in planned.layers if layer.members}
    inside = {name for layer in groups.values() for name in layer.members}
    layers = (groups.get(layer.name, layer) for layer in whole.layers)
    kept = tuple(layer for layer in layers if layer.members or layer.name not in inside)
    return replace(whole, layers=kept)


class _Grouping:
    """Decides about pairs of layers; `partition` gains the tensors that groups need."""

    def __init__(self, partition: Partition, options: Options) -> None:
        self.partition, self._options = partition, options
        self._touched = Counter(
            tensor for layer in partition.layers for tensor in {*layer.reads, *layer.writes}
        )
        self._lowest = min((0, *partition.tensors))  # of the numbers that tensors have
        self._known: dict[tuple[Layer, int | None], float | None] = {}  # cycles of single layers

    def together(self, first: Layer, second: Layer) -> Layer | None:
        """Two layers as one, where nobody else sees what is between them and it saves time."""
        if not first.results or first.part_of or second.part_of:
            return None
        tensor = first.results[0].access.tensor
        if self.partition.is_outside(tensor) or self._touched[tensor] != 2:
            return None
        found = joined(first, second, self._lowest - 1)
        if found is None or self._crowds(found.layer, tensor):
            return None
        grown = replace(self.partition, tensors={**self.partition.tensors, **found.tensors})
        own = best_tiling(found.layer, grown, self._options, Residency())
        if own is None or any(own[0] > _GAIN * both for both in self._apart(first, second, tensor)):
            return None
        self.partition, self._lowest = grown, min((self._lowest, *found.tensors))
        return found.layer

    def _crowds(self, layer: Layer, between: int) -> bool:
        """Whether what a group reads and writes does not fit in L2, where it did apart."""
        tensors = self.partition.tensors
        moved = {t for t in (*layer.reads, *layer.writes) if t in tensors}
        inside = [t for t in moved if not self.partition.is_in_ddr(t)]
        is_over = sum(tensors[t].bytes for t in inside) > self._options.l2_bytes
        return is_over and between not in self.partition.spilled

    def _apart(self, first: Layer, second: Layer, tensor: int) -> Iterator[float]:
        """What both take one after the other, also with the tensor in L1 where it may stay."""
        fits = self._size(tensor) * _ZONE <= self._options.l1_bytes
        stays = fits and "residency" not in self._options.without
        for held in (None, tensor) if stays else (None,):
            cycles = [self._cycles(layer, held) for layer in (first, second)]
            if None not in cycles:
                yield sum(c for c in cycles if c is not None)

    def _cycles(self, layer: Layer, held: int | None) -> float | None:
        key = layer, held
        if key not in self._known:
            zone = Residency() if held is None else Residency({held: 0}, self._size(held))
            chosen = best_tiling(layer, self.partition, self._options, zone)
            self._known[key] = None if chosen is None else chosen[0]
        return self._known[key]

    def _size(self, tensor: int) -> int:
        return aligned(self.partition.tensors[tensor].bytes)
