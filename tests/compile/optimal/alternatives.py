"""Every way to group the layers of a graph, and every set of tensors that may stay in L1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.tensors import Tensor
from nacre.compile.tiling.fusing import join_layers
from nacre.compile.tiling.residency import may_stay, users_of_tensors
from nacre.compile.tiling.spaces import align_up


@dataclass(frozen=True, eq=False)
class Alternative:
    """Layers, some of them groups, and tensors that lie in L1."""

    partition: Partition
    resident: frozenset[int]


def alternatives(partition: Partition, options: Options) -> Iterator[Alternative]:
    """All of them; tensors that do not fit in L1 leave it."""
    for grouped in groupings(partition):
        users = users_of_tensors(grouped)
        wanted = [
            tensor
            for tensor, layers in users.items()
            if may_stay(tensor, layers, grouped, None)
            and align_up(grouped.tensors[tensor].bytes) <= options.l1_bytes
        ]
        subsets = (combinations(wanted, count) for count in range(len(wanted) + 1))
        for subset in chain.from_iterable(subsets):
            yield Alternative(grouped, frozenset(subset))


def groupings(partition: Partition) -> Iterator[Partition]:
    """Layers apart, and all ways to run neighbours together that the compiler has a form for."""
    touched = Counter(t for layer in partition.layers for t in {*layer.reads, *layer.writes})
    yield from _from(partition, touched, 0, ())


def _from(
    partition: Partition, touched: Counter[int], at: int, before: tuple[Layer, ...]
) -> Iterator[Partition]:
    if at == len(partition.layers):
        yield replace(partition, layers=before)
        return
    for length, (layer, tensors) in enumerate(_runs(partition, touched, at), 1):
        grown = replace(partition, tensors={**partition.tensors, **tensors})
        yield from _from(grown, touched, at + length, (*before, layer))


def _runs(
    partition: Partition, touched: Counter[int], first: int
) -> Iterator[tuple[Layer, dict[int, Tensor]]]:
    """A layer alone, then with one more behind it as long as they can run together."""
    layer, tensors = partition.layers[first], dict[int, Tensor]()
    yield layer, tensors
    for second in islice(partition.layers, first + 1, None):
        if not layer.results:
            return
        between = layer.results[0].access.tensor
        if partition.is_outside(between) or touched[between] != 2:
            return
        joined = join_layers(layer, second, min((0, *partition.tensors, *tensors)) - 1)
        if joined is None:
            return
        layer, tensors = joined.layer, {**tensors, **joined.tensors}
        yield layer, tensors


def between_layers(layers: Sequence[Layer], partition: Partition) -> list[int]:
    """Tensors that one layer writes and that do not leave."""
    written = dict.fromkeys(t for layer in layers for t in layer.writes)
    return [tensor for tensor in written if not partition.is_outside(tensor)]
