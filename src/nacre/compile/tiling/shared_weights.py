"""Weights that several layers use, as steps of a recurrence do: as many of them as L1 can keep.

What fits beside the tiles stays in L1 from the first of these layers to the last. Where that is not
all of them, each layer becomes two: one of the columns whose weights stay, one of the others.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.tiling.layer_parts import column_layer, number_parts
from nacre.compile.tiling.occupied import OccupiedSpans
from nacre.compile.tiling.residency import HighWaterMarks, users_of_weights, weights_lifetime
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.tiling import columns_of_engine

PARTS = (0.875, 0.625)  # of L1, for such weights; with more, blocks of the others get tiny
_GRAIN = 16  # columns that stay come in multiples of this
_LEAST_USES = 3  # for two, a layer more is not worth it


def keep_shared_weights(partition: Partition, options: Options, part: float) -> Partition:
    """The same work with shared weights that stay in L1, in up to a part of it."""
    if "residency" in options.disabled:
        return partition
    room, layers = int(options.l1_bytes * part), partition.layers
    heights, engines = HighWaterMarks(len(layers), OccupiedSpans()), options.device.num_engines
    cut: dict[int, list[Layer]] = {}
    for users in sorted(users_of_weights(partition).values(), key=lambda found: -len(found)):
        if len(users) < _LEAST_USES or not all(_may_be_cut(layers[user]) for user in users):
            continue
        first, last = weights_lifetime(layers, users)
        count = _columns_that_fit(layers[users[0]], room - heights.top(first, last), engines)
        if count:
            heights.add(_bytes(layers[users[0]], count, engines), first, last)
            cut.update({user: _parts(layers[user], count) for user in users})
    if not cut:
        return partition
    parts = (cut.get(place, [layer]) for place, layer in enumerate(layers))
    return replace(partition, layers=tuple(layer for some in parts for layer in some))


def _may_be_cut(layer: Layer) -> bool:
    return layer.main == "linear" and layer.cuts_columns


def _bytes(layer: Layer, count: int, engines: int) -> int:
    assert layer.packed is not None
    return align_up(layer.packed.block_bytes(columns_of_engine(count, engines)))


def _columns_that_fit(layer: Layer, room: int, engines: int) -> int:
    """How many columns have weights that fit; 0 where it is not worth it."""
    if _bytes(layer, layer.columns, engines) <= room:
        return layer.columns
    count = layer.columns // _GRAIN * _GRAIN
    while count and _bytes(layer, count, engines) > room:
        count -= _GRAIN
    return count


def _parts(layer: Layer, count: int) -> list[Layer]:
    """A layer that keeps the weights of its first columns."""
    if count == layer.columns:
        return [_with_resident_weights(layer)]
    kept = _with_resident_weights(column_layer(layer, 0, count))
    return number_parts(layer, [kept, column_layer(layer, count, layer.columns - count)])


def _with_resident_weights(layer: Layer) -> Layer:
    assert layer.packed is not None
    return replace(layer, packed=replace(layer.packed, stays=True))
