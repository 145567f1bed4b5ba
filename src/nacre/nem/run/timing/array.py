"""What the shape of an NMU's array costs: whole tiles, operands through a port, weights.

An array computes tiles: some places of some rows in some channels, summing over some channels at a
time. What a tile has too much is computed all the same. Operands come from L1 through a port, for
every place of a window again: a depthwise convolution, whose operands serve one channel alone, is
as slow as that port. Where a device gives none of these figures, MACs over their rate are all.
"""

from __future__ import annotations

from math import prod

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column, Values
from nacre.kernels.interface.call import Call, Work
from nacre.nem.run.timing.profile import TileFigures, TimingProfile
from nacre.nem.spec.opcodes import OPCODES

_CONVOLUTIONS = frozenset(name for name, o in OPCODES.items() if o.category == "convolution")


class ProductShape(Struct, frozen=True, eq=False):
    """A product as an array sees it; of many tiles at once, a column for what differs."""

    planes: Values  # that have no place in common: pictures, slices, matrices
    height: Values
    width: Values
    taps: Values  # places of a window
    depth: Values  # channels that one result is a sum over
    channels: Values  # of results
    place_bytes: Values  # of operands, at one place, in all channels
    weight_bytes: Values
    is_window: bool
    is_grouped: bool = False  # results are sums over a part of the channels


def product_shape(call: Call, operation: str) -> ProductShape | None:
    """The shape of a convolution or of a product of matrices; None where weights are missing."""
    x, weights = call.inputs[:2]
    result = call.outputs[0].shape
    if x is None or weights is None or not (x.shape and result):
        return None
    *taps, depth, channels = weights.shape  # groups stand side by side
    if operation == "depthwise_conv2d":  # one input channel a group, and all output channels
        depth, channels = 1, depth * channels
    place_bytes = -(-x.shape[-1] * x.elem.bits // 8)
    weight_bytes = -(-weights.count * weights.elem.bits // 8)
    if operation in _CONVOLUTIONS:  # before the rows and places of a window stands the batch
        *outer, height, width = (1, 1, *result[:-1])
        sizes = (prod(outer), height, width, prod(taps), depth, channels)
        return ProductShape(*sizes, place_bytes, weight_bytes, True, depth < x.shape[-1])
    # The rows of a matrix lie in one row of places.
    sizes = (prod(result[:-2]), 1, prod(result[-2:-1]), 1, depth, channels)
    return ProductShape(*sizes, place_bytes, weight_bytes, False)


def array_cycles(call: Call, work: Work, operation: str, rate: int, profile: TimingProfile) -> int:
    """Cycles of a product without latency; `rate` are MACs in two cycles."""
    shape = product_shape(call, operation) if work.macs else None
    if shape is None:
        return -(-2 * work.macs // rate)
    return int(shape_cycles(shape, work.macs, rate, profile))


def shape_cycles(shape: ProductShape, macs: Values, rate: int, profile: TimingProfile) -> Values:
    """Cycles of a product of a shape without latency; `rate` are MACs in two cycles."""
    figures = profile.tiles
    tiles = _tiles(shape, figures)
    computed = -(-2 * _padded_macs(macs, shape, tiles, figures) // rate)
    fetched = _fetch_cycles(shape, tiles, figures)
    issued = tiles.count * figures.issue
    loading = figures.weight_bandwidth
    loaded = -(-shape.weight_bytes // loading) if loading else 0
    return _maximum(computed, fetched) + issued + loaded


class _Tiles(Struct, frozen=True, eq=False):
    """How results are cut."""

    places: Values  # of all tiles of one block of channels, with those that are too many
    count: Values


def _tiles(shape: ProductShape, figures: TileFigures) -> _Tiles:
    width, height = figures.width, figures.height
    if not shape.is_window:  # the rows of a matrix have no neighbours above: any fill a tile
        width, height = width * height, 1
    count = shape.planes * -(-shape.height // height) * -(-shape.width // width)
    blocks = -(-shape.channels // figures.channels)
    return _Tiles(count * height * width, count * blocks)


def _padded_macs(macs: Values, shape: ProductShape, tiles: _Tiles, figures: TileFigures) -> Values:
    """MACs with the places of the array that stay empty, where its geometry is given."""
    depth, channels = figures.lanes
    full_depth = -(-shape.depth // depth) * depth
    full_channels = -(-shape.channels // channels) * channels
    filled = shape.planes * shape.height * shape.width * shape.depth * shape.channels
    taps = macs // _maximum(filled, 1)
    taps = -(-taps // _folded_taps(shape, depth, figures.taps))
    return taps * (tiles.places * full_depth * full_channels)


def _folded_taps(shape: ProductShape, depth: int, most: int) -> int:
    """Places of a window that stand side by side where channels leave most of the depth empty."""
    if shape.is_grouped or not shape.is_window or not isinstance(shape.depth, int):
        return 1
    return max(1, min(most, depth // max(1, shape.depth)))


def _fetch_cycles(shape: ProductShape, tiles: _Tiles, figures: TileFigures) -> Values:
    """Cycles in which operands come through their port, again for every place of a window."""
    rate, line = figures.operand_bandwidth, figures.operand_line
    if not rate:
        return 0
    lines = -(-shape.place_bytes // line)
    return -(-tiles.places * shape.taps * lines * line // rate)


def _maximum(a: Values, b: Values) -> Values:
    """The larger of two, row by row; plain integers may be larger than those of a column."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    found: Column = np.maximum(a, b)
    return found
