"""Sixth stage: the order of tasks, what each waits for, and how many tiles are in flight.

A layer of few tiles is written out: every task names what it waits for. A layer of many tiles is a
loop over those that differ in their place only; tiles at the border, and a smaller last one,
follow it. Blocks of weights are loaded one ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from nacre.compile.geometry import Tile
from nacre.compile.lowerings import lowering_of
from nacre.compile.options import Options
from nacre.compile.partition import Layer, Partition
from nacre.compile.place import L1, WEIGHTS, Location, Placement
from nacre.compile.program import (
    Affine,
    Comment,
    Compute,
    Copy,
    Let,
    Loop,
    Program,
    Region,
    Statement,
    Wait,
)
from nacre.compile.tile import Slots, Tiling, slot_bytes
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS

_MOST_WRITTEN_OUT = 6  # tiles; more are a loop
_LAYOUTS = {"linear": ("MK", "KN", "MN"), "window": ("NHWC", "HWIO", "NHWC"), "map": ("MN",) * 3}


def schedule(
    partition: Partition, tilings: tuple[Tiling, ...], placement: Placement, options: Options
) -> Program:
    """The program of all layers, one after the other."""
    statements: list[Statement] = []
    open_tokens: tuple[str, ...] = ()  # of tasks that nothing has waited for
    for layer, tiling in zip(partition.layers, tilings, strict=True):
        if open_tokens:
            statements.append(Wait(open_tokens))
        made = _LayerSchedule(layer, tiling, placement, options)
        statements += made.statements()
        open_tokens = made.open_tokens
    return Program("model", placement.buffers, tuple(statements))


@dataclass(frozen=True)
class _Spot:
    """Where a tile is in its layer, and in L1."""

    tag: str  # of its tokens and regions
    tile: Tile
    image: Affine  # number of the image
    row: Affine  # first output row, as a multiple of loop variables
    slot: Affine  # number of the slot
    block: int
    x_deps: tuple[str, ...] = ()
    deps: tuple[str, ...] = ()  # of the product


class _LayerSchedule:
    """Makes the statements of one layer."""

    def __init__(
        self, layer: Layer, tiling: Tiling, placement: Placement, options: Options
    ) -> None:
        self._layer, self._tiling, self._placement = layer, tiling, placement
        self._geometry = layer.geometry
        self._slots: Slots = slot_bytes(self._geometry, tiling.rows, tiling.columns)
        self._blocks = tiling.column_blocks(self._geometry)
        self._tiles = self._geometry.tiles(tiling.rows)
        self._elem = options.precision
        self.open_tokens: tuple[str, ...] = ()

    def statements(self) -> list[Statement]:
        """The layer, under a comment that says what it is."""
        done = " + ".join(op.opcode for op in self._layer.operations)
        head = Comment(f"{self._layer.name}: {done}, tiles of {self._tiling}")
        count = self._geometry.images * len(self._tiles) * len(self._blocks)
        body = self._written_out() if count <= _MOST_WRITTEN_OUT else self._in_loops()
        return [head, *body]

    # Few tiles

    def _written_out(self) -> Iterator[Statement]:
        """Every tile by itself; a slot is free again when the tile before the last is done."""
        slots, number = self._tiling.slots, 0
        computed: list[str] = []
        stored: list[str] = []
        readers: dict[int, list[str]] = {}  # block: products that read it
        for block in range(len(self._blocks)):
            if block == 0:
                yield from self._loaded(0, ())
            if block + 1 < len(self._blocks):
                yield from self._loaded(block + 1, tuple(readers.get(block - 1, ())))
            for image in range(self._geometry.images):
                for tile in self._tiles:
                    old = number - slots
                    spot = _Spot(
                        f"{number}",
                        tile,
                        Affine(image),
                        Affine(tile.first),
                        Affine(number % slots),
                        block,
                        (computed[old],) if old >= 0 else (),
                        (stored[old],) if old >= 0 else (),
                    )
                    yield from self._tile(spot)
                    computed.append(self._token("c", spot.tag))
                    stored.append(self._token("s", spot.tag))
                    readers.setdefault(block, []).append(computed[-1])
                    number += 1
        self.open_tokens = tuple(stored[-slots:])

    # Many tiles

    def _in_loops(self) -> Iterator[Statement]:
        yield from self._loaded(0, ())
        for block in range(len(self._blocks)):
            if block + 1 < len(self._blocks):
                yield from self._loaded(block + 1, ())
            yield from self._block(block)
            is_last = block == len(self._blocks) - 1
            if self.open_tokens and not is_last:
                # The next block uses the same slots.
                yield Wait(self.open_tokens)
                self.open_tokens = ()

    def _block(self, block: int) -> Iterator[Statement]:
        """All tiles of a block of columns."""
        images, tag = self._geometry.images, f"b{block}" if len(self._blocks) > 1 else ""
        if images > 1 and len(self._tiles) == 1:
            yield self._over_images(block, tag)
            return
        if images == 1:
            yield from self._over_rows(block, tag, Affine())
            return
        body = tuple(self._over_rows(block, tag, Affine(0, (("n", 1),))))
        self.open_tokens = ()  # an iteration is complete before the next begins
        yield Loop("n", 0, images - 1, 1, body)

    def _over_images(self, block: int, tag: str) -> Loop:
        slots = self._tiling.slots
        spot = _Spot(
            tag, self._tiles[0], Affine(0, (("n", 1),)), Affine(0), _turn("n", slots), block
        )
        return Loop("n", 0, self._geometry.images - 1, slots, tuple(self._tile(spot)))

    def _over_rows(self, block: int, tag: str, image: Affine) -> Iterator[Statement]:
        slots, rows = self._tiling.slots, self._tiling.rows
        inner = [t for t in self._tiles if t.is_inner and t.rows == rows]
        rest = [t for t in self._tiles if not (t.is_inner and t.rows == rows)]
        if len(inner) > 1:
            first, last = inner[0].first // rows, inner[-1].first // rows
            spot = _Spot(tag, inner[0], image, Affine(0, (("i", rows),)), _turn("i", slots), block)
            yield Loop("i", first, last, slots, tuple(self._tile(spot)))
        else:
            rest = [*self._tiles]
        computed: list[str] = []
        stored: list[str] = []
        for number, tile in enumerate(rest):
            old = number - slots
            spot = _Spot(
                f"{tag}e{number}",
                tile,
                image,
                Affine(tile.first),
                Affine(number % slots),
                block,
                (computed[old],) if old >= 0 else (),
                (stored[old],) if old >= 0 else (),
            )
            yield from self._tile(spot)
            computed.append(self._token("c", spot.tag))
            stored.append(self._token("s", spot.tag))
        self.open_tokens = tuple(stored[-slots:])

    # Tasks

    def _token(self, letter: str, tag: str) -> str:
        return f"{self._layer.name}_{letter}{tag}"

    def _loaded(self, block: int, deps: tuple[str, ...]) -> Iterator[Statement]:
        """A block of weights on its way to L1."""
        if not self._slots.w:
            return
        yield from self._weight_lets(block)
        size = self._geometry.w_block_bytes(self._blocks[block][1])
        offset = self._placement.blocks[self._layer.name, block]
        yield Copy(
            self._token("w", str(block)),
            "transfer",
            Region(L1, self._w_offset(block), size),
            Region(WEIGHTS, Affine(offset), size),
            deps,
            self._layer.name,
        )

    def _w_offset(self, block: int) -> Affine:
        return Affine(block % max(1, self._tiling.w_slots) * self._slots.w)

    def _x_offset(self, spot: _Spot, source: int) -> Affine:
        base = self._tiling.w_slots * self._slots.w
        return _times(spot.slot, self._geometry.sources * self._slots.x).plus(
            base + source * self._slots.x
        )

    def _y_offset(self, spot: _Spot) -> Affine:
        rings = self._tiling.slots * self._geometry.sources * self._slots.x
        base = self._tiling.w_slots * self._slots.w + rings
        return _times(spot.slot, self._slots.y).plus(base)

    def _tile(self, spot: _Spot) -> Iterator[Statement]:
        """Load, compute in place, store."""
        layer, tag = self._layer, spot.tag
        loads = [self._token(f"x{i}" if i else "x", tag) for i in range(len(layer.sources))]
        x_names = [f"{layer.name}_X{i or ''}{tag}" for i in range(len(layer.sources))]
        y_name = f"{layer.name}_Y{tag}"
        for index, name in enumerate(x_names):
            yield Let(name, self._x_region(spot, index))
        yield Let(y_name, self._y_region(spot))
        for source, (load, name) in enumerate(zip(loads, x_names, strict=True)):
            yield Copy(
                load, "transfer", name, self._x_source(spot, source), spot.x_deps, layer.name
            )
        w_token = (self._token("w", str(spot.block)),) if self._slots.w else ()
        token = self._token("c", tag)
        yield Compute(
            token,
            _nem(layer.op),
            (*x_names, *self._weight_names(spot.block)),
            y_name,
            (*loads, *w_token, *spot.deps),
            self._attributes(spot),
            layer.name,
        )
        for index, op in enumerate(layer.epilogue):
            following = self._token(f"f{index}", tag)
            row = lowering_of(op)
            given = row.attributes(OPS[op.opcode].filled(op.attributes)) if row else {}
            yield Compute(following, _nem(op), (y_name,), y_name, (token,), given, layer.name)
            token = following
        yield self._stored(spot, y_name, token)

    def _stored(self, spot: _Spot, y_name: str, token: str) -> Copy:
        target = self._location(self._layer.result)
        op = "store" if target.level == "L2" else "transfer"
        region = self._y_target(spot, target)
        deps, debug = (token,), self._layer.name
        return Copy(self._token("s", spot.tag), op, region, y_name, deps, debug)

    def _attributes(self, spot: _Spot) -> dict[str, object]:
        row = lowering_of(self._layer.op)
        assert row is not None
        given = row.attributes(self._layer.attributes)
        if self._layer.kind != "window":
            return given
        filled = self._layer.attributes
        _, left, _, right = filled["pads"] or (0, 0, 0, 0)
        return {
            "pads": (spot.tile.above, left, spot.tile.below, right),
            "strides": filled["strides"] or (1, 1),
            "dilations": filled["dilations"] or (1, 1),
            "groups": filled["groups"],
            **given,
        }

    # Regions

    def _location(self, value: int) -> Location:
        return self._placement.tensors[value]

    def _x_region(self, spot: _Spot, source: int) -> Region:
        shape = self._shape(spot.tile.x_rows, self._geometry.x_inner)
        size = prod(shape) * self._geometry.element_bytes
        offset = self._x_offset(spot, source)
        return Region(L1, offset, size, self._elem, shape, _LAYOUTS[self._layer.kind][0])

    def _y_region(self, spot: _Spot) -> Region:
        inner = (*self._geometry.y_inner[:-1], self._blocks[spot.block][1])
        shape = self._shape(spot.tile.rows, inner)
        size = prod(shape) * self._geometry.element_bytes
        layout = _LAYOUTS[self._layer.kind][2]
        return Region(L1, self._y_offset(spot), size, self._elem, shape, layout)

    def _shape(self, rows: int, inner: tuple[int, ...]) -> tuple[int, ...]:
        return (1, rows, *inner) if self._layer.kind == "window" else (rows, *inner)

    def _weight_names(self, block: int) -> tuple[str, ...]:
        if not self._slots.w:
            return ()
        name = self._layer.name
        return (f"{name}_W{block}", f"{name}_B{block}")[: 1 + self._geometry.has_bias]

    def _weight_lets(self, block: int) -> Iterator[Let]:
        columns = self._blocks[block][1]
        shape = (*self._geometry.w_inner, columns)
        size = prod(shape) * self._geometry.element_bytes
        offset, layout = self._w_offset(block), _LAYOUTS[self._layer.kind][1]
        names = self._weight_names(block)
        yield Let(names[0], Region(L1, offset, size, self._elem, shape, layout))
        if self._geometry.has_bias:
            bias = columns * self._geometry.element_bytes
            region = Region(L1, offset.plus(size), bias, self._elem, (columns,), layout[-1])
            yield Let(names[1], region)

    def _x_source(self, spot: _Spot, source: int) -> Region:
        geometry, where = self._geometry, self._location(self._layer.sources[source])
        image = geometry.in_rows * geometry.x_row_bytes
        step = geometry.stride * geometry.x_row_bytes
        inside = spot.tile.x_first * geometry.x_row_bytes - spot.tile.first * step
        offset = _times(spot.row, step).plus(where.offset + inside)
        offset = _sum(offset, _times(spot.image, image))
        return Region(where.buffer, offset, spot.tile.x_rows * geometry.x_row_bytes)

    def _y_target(self, spot: _Spot, where: Location) -> Region:
        geometry, bytes_ = self._geometry, self._geometry.element_bytes
        first, columns = self._blocks[spot.block]
        row = prod(geometry.y_inner) * bytes_
        offset = _sum(_times(spot.row, row), _times(spot.image, geometry.out_rows * row))
        offset = offset.plus(where.offset + first * bytes_)
        if columns == geometry.columns:
            return Region(where.buffer, offset, spot.tile.rows * row)
        inner = (*geometry.y_inner[:-1], columns)
        shape = self._shape(spot.tile.rows, inner)
        whole = self._shape(spot.tile.rows, geometry.y_inner)
        strides = tuple(prod(whole[axis + 1 :]) for axis in range(len(whole)))
        reach = sum((dim - 1) * s for dim, s in zip(shape, strides, strict=True)) + 1
        return Region(where.buffer, offset, reach * bytes_, self._elem, shape, strides=strides)


def _nem(op: CoreOperation) -> str:
    row = lowering_of(op)
    assert row is not None
    return row.nem


def _turn(variable: str, slots: int) -> Affine:
    """Which slot an iteration uses."""
    return Affine(0, ((f"({variable} mod {slots})", 1),)) if slots > 1 else Affine(0)


def _times(value: Affine, factor: int) -> Affine:
    terms = tuple((name, n * factor) for name, n in value.terms if n * factor)
    return Affine(value.constant * factor, terms)


def _sum(a: Affine, b: Affine) -> Affine:
    return Affine(a.constant + b.constant, (*a.terms, *b.terms))
