"""Groups of layers that run depth first: tile by tile through all of them, where that is faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.tensors import Tensor
from nacre.compile.tiling.fusing import join_layers
from nacre.compile.tiling.residency import Residency
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.stage import best_tiling

_GAIN = 0.9  # of the cycles: less is within what the estimate is off
_ZONE = 2  # a tensor of up to one part in so many of L1 may stay there by itself


def group_layers(partition: Partition, options: Options) -> Partition:
    """The same work with layers that run together, where that is estimated to take less time."""
    if "groups" in options.disabled:
        return partition
    search = _GroupSearch(partition, options)
    runs = [search.runs(at) for at in range(len(partition.layers))]
    chosen = _best(runs)
    grown = {n: t for run in chosen for n, t in run.tensors.items()}
    layers = tuple(run.layer for run in chosen)
    return replace(partition, layers=layers, tensors={**partition.tensors, **grown})


def _best(runs: Sequence[Sequence[_Run]]) -> list[_Run]:
    """Runs that follow each other from the first layer to the last, and save most together."""
    saved, step = [0.0] * (len(runs) + 1), [0] * len(runs)
    for at in reversed(range(len(runs))):
        sums = [run.saved + saved[at + length] for length, run in enumerate(runs[at], 1)]
        step[at] = max(range(len(sums)), key=lambda n: (sums[n], n))
        saved[at] = sums[step[at]]
    chosen, at = list[_Run](), 0
    while at < len(runs):
        chosen.append(runs[at][step[at]])
        at += step[at] + 1
    return chosen


def layers_for_manifest(whole: Partition, planned: Partition) -> Partition:
    """The layers of a partition under which people find its tasks: groups for their members."""
    groups = {layer.members[-1]: layer for layer in planned.layers if layer.members}
    inside = {name for layer in groups.values() for name in layer.members}
    layers = (groups.get(layer.name, layer) for layer in whole.layers)
    kept = tuple(layer for layer in layers if layer.members or layer.name not in inside)
    return replace(whole, layers=kept)


@dataclass(frozen=True, eq=False)
class _Run:
    """Layers behind each other as one: the cycles that this saves, the tensors that it needs."""

    layer: Layer
    saved: float
    tensors: Mapping[int, Tensor]


class _GroupSearch:
    """What layers that run together save; their tensors have numbers that no others have."""

    def __init__(self, partition: Partition, options: Options) -> None:
        self.partition, self._options = partition, options
        self._touched = Counter(
            tensor for layer in partition.layers for tensor in {*layer.reads, *layer.writes}
        )
        self._lowest = min((0, *partition.tensors))  # of the numbers that tensors have
        self._known: dict[tuple[Layer, int | None], float | None] = {}  # cycles of single layers

    def runs(self, first: int) -> list[_Run]:
        """A layer alone, then with one more behind it as long as that saves time."""
        layers = self.partition.layers
        runs = [_Run(layers[first], 0.0, {})]
        for layer in islice(layers, first + 1, None):
            longer = self._extended_run(runs[-1], layer)
            if longer is None:
                break
            runs.append(longer)
        return runs

    def _extended_run(self, run: _Run, second: Layer) -> _Run | None:
        """A run with one more layer, where nobody else sees what is between them."""
        first = run.layer
        if not first.results or first.part_of or second.part_of:
            return None
        tensor = first.results[0].access.tensor
        if self.partition.is_outside(tensor) or self._touched[tensor] != 2:
            return None
        joined = join_layers(first, second, self._lowest - 1)
        if joined is None or self._overflows_l2(joined.layer, tensor):
            return None
        tensors = {**run.tensors, **joined.tensors}
        grown = replace(self.partition, tensors={**self.partition.tensors, **tensors})
        own = best_tiling(joined.layer, grown, self._options, Residency())
        apart = min(self._separate_cycles(first, second, tensor, run.tensors), default=inf)
        if own is None or own[0] > _GAIN * apart:
            return None
        self._lowest = min((self._lowest, *joined.tensors))
        return _Run(joined.layer, run.saved + apart - own[0], tensors)

    def _overflows_l2(self, layer: Layer, between: int) -> bool:
        """Whether what a group reads and writes does not fit in L2, where it did apart."""
        tensors = self.partition.tensors
        moved = {t for t in (*layer.reads, *layer.writes) if t in tensors}
        inside = [t for t in moved if not self.partition.is_in_ddr(t)]
        is_over = sum(tensors[t].bytes for t in inside) > self._options.l2_bytes
        return is_over and between not in self.partition.spilled

    def _separate_cycles(
        self, first: Layer, second: Layer, tensor: int, new_tensors: Mapping[int, Tensor]
    ) -> Iterator[float]:
        """What both take one after the other, also with the tensor in L1 where it may stay."""
        fits = self._size(tensor) * _ZONE <= self._options.l1_bytes
        stays = fits and "residency" not in self._options.disabled
        for resident in (None, tensor) if stays else (None,):
            cycles = [self._cycles(layer, resident, new_tensors) for layer in (first, second)]
            if None not in cycles:
                yield sum(c for c in cycles if c is not None)

    def _cycles(
        self, layer: Layer, resident: int | None, new_tensors: Mapping[int, Tensor]
    ) -> float | None:
        key = layer, resident
        if key not in self._known:
            zone = (
                Residency() if resident is None else Residency({resident: 0}, self._size(resident))
            )
            grown = replace(self.partition, tensors={**self.partition.tensors, **new_tensors})
            chosen = best_tiling(layer, grown, self._options, zone)
            self._known[key] = None if chosen is None else chosen[0]
        return self._known[key]

    def _size(self, tensor: int) -> int:
        return align_up(self.partition.tensors[tensor].bytes)
