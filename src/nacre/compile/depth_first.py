"""Groups of layers that run depth first: tile by tile through all of them, where that is faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from nacre.compile.fusing import Joined, joined
from nacre.compile.layers import Layer
from nacre.compile.options import Options
from nacre.compile.partition import Partition
from nacre.compile.residency import Residency
from nacre.compile.spaces import aligned
from nacre.compile.tensors import Tensor
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
    tensors = {**partition.tensors, **grouping.tensors}
    return replace(partition, layers=tuple(layers), tensors=tensors)


def as_described(whole: Partition, planned: Partition) -> Partition:
    """The layers of a partition under which people find its tasks: groups for their members."""
    groups = {layer.members[-1]: layer for layer in planned.layers if layer.members}
    inside = {name for layer in groups.values() for name in layer.members}
    layers = (groups.get(layer.name, layer) for layer in whole.layers)
    kept = tuple(layer for layer in layers if layer.members or layer.name not in inside)
    return replace(whole, layers=kept)


class _Grouping:
    """Decides about pairs of layers, and collects the tensors that groups need."""

    def __init__(self, partition: Partition, options: Options) -> None:
        self._partition, self._options = partition, options
        self._touched = Counter(
            tensor for layer in partition.layers for tensor in {*layer.reads, *layer.writes}
        )
        self.tensors: dict[int, Tensor] = {}

    def together(self, first: Layer, second: Layer) -> Layer | None:
        """Two layers as one, where nobody else sees what is between them and it saves time."""
        if not first.results or first.part_of or second.part_of:
            return None
        tensor = first.results[0].access.tensor
        if self._partition.is_outside(tensor) or self._touched[tensor] != 2:
            return None
        known: Mapping[int, Tensor] = {**self._partition.tensors, **self.tensors}
        found = joined(first, second, min(known) - 1 if min(known) < 0 else -1)
        if found is None or self._crowds(found.layer, tensor):
            return None
        if not self._is_faster(found, first, second, tensor):
            return None
        self.tensors.update(found.tensors)
        return found.layer

    def _crowds(self, layer: Layer, between: int) -> bool:
        """Whether what a group reads and writes does not fit in L2, where it did apart."""
        tensors = self._partition.tensors
        moved = {t for t in (*layer.reads, *layer.writes) if t in tensors}
        inside = [t for t in moved if not self._partition.is_in_ddr(t)]
        is_over = sum(tensors[t].bytes for t in inside) > self._options.l2_bytes
        return is_over and between not in self._partition.spilled

    def _is_faster(self, found: Joined, first: Layer, second: Layer, tensor: int) -> bool:
        own = self._cycles(found.layer, Residency(), found.tensors)
        if own is None:
            return False
        apart = [Residency()]
        size = aligned(self._partition.tensors[tensor].bytes)
        if size * _ZONE <= self._options.l1_bytes and "residency" not in self._options.without:
            apart.append(Residency({tensor: 0}, size))
        for held in apart:
            cycles = [self._cycles(layer, held, {}) for layer in (first, second)]
            if None not in cycles and own > _GAIN * sum(c for c in cycles if c is not None):
                return False
        return True

    def _cycles(self, layer: Layer, held: Residency, new: Mapping[int, Tensor]) -> float | None:
        tensors = {**self._partition.tensors, **self.tensors, **new}
        partition = replace(self._partition, tensors=tensors)
        chosen = best_tiling(layer, partition, self._options, held)
        return None if chosen is None else chosen[0]
