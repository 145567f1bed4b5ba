"""Where the parts of a layer's tile lie: in L1, and in the tensors that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from nacre.compile.geometry import Tile
from nacre.compile.partition import Layer
from nacre.compile.place import L1, Location, Placement
from nacre.compile.program import Affine, Let, Region
from nacre.compile.tile import Slots, Tiling, slot_bytes

# Of input, weights and output.
_LAYOUTS = {
    "linear": ("MK", "KN", "MN"),
    "window": ("NHWC", "HWIO", "NHWC"),
    "map": ("MN", "", "MN"),
    "turn": ("ABC", "", "BAC"),
}


@dataclass(frozen=True)
class Spot:
    """Where a tile is in its layer, and in L1."""

    tag: str  # of its tokens and regions
    tile: Tile
    image: Affine  # number of the image
    row: Affine  # first output row, as a multiple of loop variables
    slot: Affine  # number of the slot
    block: int
    x_deps: tuple[str, ...] = ()
    deps: tuple[str, ...] = ()  # of the product


class LayerRegions:
    """The regions of one layer."""

    def __init__(self, layer: Layer, tiling: Tiling, placement: Placement, elem: str) -> None:
        self._layer, self._tiling, self._placement, self._elem = layer, tiling, placement, elem
        self._geometry = layer.geometry
        self._slots: Slots = slot_bytes(self._geometry, tiling.rows, tiling.columns)
        self._blocks = tiling.column_blocks(self._geometry)

    def w_offset(self, block: int) -> Affine:
        """Where a block of weights begins in L1."""
        return Affine(block % max(1, self._tiling.w_slots) * self._slots.w)

    def x_offset(self, spot: Spot, source: int) -> Affine:
        """Where a tile of input begins in L1."""
        base = self._tiling.w_slots * self._slots.w
        return times(spot.slot, self._geometry.sources * self._slots.x).plus(
            base + source * self._slots.x
        )

    def y_offset(self, spot: Spot) -> Affine:
        """Where a tile of output begins in L1."""
        rings = self._tiling.slots * self._geometry.sources * self._slots.x
        base = self._tiling.w_slots * self._slots.w + rings
        return times(spot.slot, self._slots.y).plus(base)

    def location(self, value: int) -> Location:
        """Where a tensor lies."""
        return self._placement.tensors[value]

    def x_region(self, spot: Spot, source: int) -> Region:
        """A tile of input in L1."""
        shape = self._x_shape(spot)
        size = prod(shape) * self._geometry.element_bytes
        offset = self.x_offset(spot, source)
        return Region(L1, offset, size, self._elem, shape, _LAYOUTS[self._layer.kind][0])

    def y_region(self, spot: Spot) -> Region:
        """A tile of output in L1."""
        inner = (*self._geometry.y_inner[:-1], self._blocks[spot.block][1])
        if self._geometry.swap:
            inner = (self._geometry.swap[0], self._geometry.swap[2])
        shape = self._shape(spot.tile.rows, inner)
        size = prod(shape) * self._geometry.element_bytes
        layout = _LAYOUTS[self._layer.kind][2]
        return Region(L1, self.y_offset(spot), size, self._elem, shape, layout)

    def _x_shape(self, spot: Spot) -> tuple[int, ...]:
        if self._geometry.swap:
            a, _, d = self._geometry.swap
            return (a, spot.tile.rows, d)
        return self._shape(spot.tile.x_rows, self._geometry.x_inner)

    def _shape(self, rows: int, inner: tuple[int, ...]) -> tuple[int, ...]:
        return (1, rows, *inner) if self._layer.kind == "window" else (rows, *inner)

    def weight_names(self, block: int) -> tuple[str, ...]:
        """The names of a block of weights and of its bias."""
        if not self._slots.w:
            return ()
        name = self._layer.name
        return (f"{name}_W{block}", f"{name}_B{block}")[: 1 + self._geometry.has_bias]

    def weight_lets(self, block: int) -> Iterator[Let]:
        """The regions of a block of weights and of its bias."""
        columns = self._blocks[block][1]
        shape = (*self._geometry.w_inner, columns)
        size = prod(shape) * self._geometry.element_bytes
        offset, layout = self.w_offset(block), _LAYOUTS[self._layer.kind][1]
        names = self.weight_names(block)
        yield Let(names[0], Region(L1, offset, size, self._elem, shape, layout))
        if self._geometry.has_bias:
            bias = columns * self._geometry.element_bytes
            region = Region(L1, offset.plus(size), bias, self._elem, (columns,), layout[-1])
            yield Let(names[1], region)

    def x_source(self, spot: Spot, source: int) -> Region:
        """The rows that a tile reads, where they lie."""
        geometry, where = self._geometry, self.location(self._layer.sources[source])
        image = geometry.in_rows * geometry.x_row_bytes
        step = geometry.stride * geometry.x_row_bytes
        inside = spot.tile.x_first * geometry.x_row_bytes - spot.tile.first * step
        offset = times(spot.row, step).plus(where.offset + inside)
        offset = plus(offset, times(spot.image, image))
        if geometry.swap:
            return self._swapped(spot, where)
        return Region(where.buffer, offset, spot.tile.x_rows * geometry.x_row_bytes)

    def _swapped(self, spot: Spot, where: Location) -> Region:
        """The part [A, rows, D] of a tensor [A, C, D]."""
        a, c, d = self._geometry.swap
        bytes_ = self._geometry.element_bytes
        shape, strides = self._x_shape(spot), (c * d, d, 1)
        offset = plus(times(spot.row, d * bytes_), times(spot.image, a * c * d * bytes_))
        reach = (a - 1) * c * d + spot.tile.rows * d
        size = reach * bytes_
        offset = offset.plus(where.offset)
        return Region(where.buffer, offset, size, self._elem, shape, strides=strides)

    def y_target(self, spot: Spot, where: Location) -> Region:
        """Where a tile of output goes; part of the columns is a region with gaps."""
        geometry, bytes_ = self._geometry, self._geometry.element_bytes
        first, columns = self._blocks[spot.block]
        row = prod(geometry.y_inner) * bytes_
        offset = plus(times(spot.row, row), times(spot.image, geometry.out_rows * row))
        offset = offset.plus(where.offset + first * bytes_)
        if columns == geometry.columns:
            return Region(where.buffer, offset, spot.tile.rows * row)
        inner = (*geometry.y_inner[:-1], columns)
        shape = self._shape(spot.tile.rows, inner)
        whole = self._shape(spot.tile.rows, geometry.y_inner)
        strides = tuple(prod(whole[axis + 1 :]) for axis in range(len(whole)))
        reach = sum((dim - 1) * s for dim, s in zip(shape, strides, strict=True)) + 1
        return Region(where.buffer, offset, reach * bytes_, self._elem, shape, strides=strides)


def times(value: Affine, factor: int) -> Affine:
    """Every term of an offset times a number."""
    terms = tuple((name, n * factor) for name, n in value.terms if n * factor)
    return Affine(value.constant * factor, terms)


def plus(a: Affine, b: Affine) -> Affine:
    """Two offsets together."""
    return Affine(a.constant + b.constant, (*a.terms, *b.terms))
