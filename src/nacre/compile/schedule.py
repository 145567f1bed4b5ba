"""Sixth stage: the order of tasks, what each waits for, and how many tiles are in flight.

A layer of few tiles is written out: every task names what it waits for. A layer of many tiles is a
loop over those that differ in their place only; tiles at the border, and a smaller last one,
follow it. Blocks of weights are loaded one ahead.
"""

from __future__ import annotations

from collections.abc import Iterator

from nacre.compile.geometry import Tile
from nacre.compile.lowerings import lowering_of
from nacre.compile.options import Options
from nacre.compile.partition import Layer, Partition
from nacre.compile.place import L1, WEIGHTS, Placement
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
from nacre.compile.regions import LayerRegions, Spot
from nacre.compile.tile import Tiling
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS

_MOST_WRITTEN_OUT = 6  # tiles; more are a loop


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


class _LayerSchedule:
    """Makes the statements of one layer."""

    def __init__(
        self, layer: Layer, tiling: Tiling, placement: Placement, options: Options
    ) -> None:
        self._layer, self._placement, self.slots = layer, placement, tiling.slots
        self._tiling, self._geometry = tiling, layer.geometry
        self._has_weights = layer.weights is not None
        self._blocks = tiling.column_blocks(self._geometry)
        self._tiles = self._geometry.tiles(tiling.rows)
        self._regions = LayerRegions(layer, tiling, placement, options.precision)
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
        """Every tile by itself."""
        line = _Line(self)
        readers: dict[int, list[str]] = {}  # block: products that read it
        for block in range(len(self._blocks)):
            if block == 0:
                yield from self._loaded(0, ())
            if block + 1 < len(self._blocks):
                yield from self._loaded(block + 1, tuple(readers.get(block - 1, ())))
            begun = len(line.computed)
            for image in range(self._geometry.images):
                for tile in self._tiles:
                    yield from line.tile(f"{len(line.computed)}", tile, Affine(image), block)
            readers[block] = line.computed[begun:]
        self.open_tokens = line.open_tokens

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
        slots = self.slots
        spot = Spot(
            tag, self._tiles[0], Affine(0, (("n", 1),)), Affine(0), _turn("n", slots), block
        )
        return Loop("n", 0, self._geometry.images - 1, slots, tuple(self.tile(spot)))

    def _over_rows(self, block: int, tag: str, image: Affine) -> Iterator[Statement]:
        slots, rows = self.slots, self._tiling.rows
        inner = [t for t in self._tiles if t.is_inner and t.rows == rows]
        rest = [t for t in self._tiles if not (t.is_inner and t.rows == rows)]
        if len(inner) > 1:
            first, last = inner[0].first // rows, inner[-1].first // rows
            spot = Spot(tag, inner[0], image, Affine(0, (("i", rows),)), _turn("i", slots), block)
            yield Loop("i", first, last, slots, tuple(self.tile(spot)))
        else:
            rest = [*self._tiles]
        line = _Line(self)
        for number, tile in enumerate(rest):
            yield from line.tile(f"{tag}e{number}", tile, image, block)
        self.open_tokens = line.open_tokens

    # Tasks

    def token(self, letter: str, tag: str) -> str:
        """The token of a task of a tile."""
        return f"{self._layer.name}_{letter}{tag}"

    def _loaded(self, block: int, deps: tuple[str, ...]) -> Iterator[Statement]:
        """A block of weights on its way to L1."""
        if not self._has_weights:
            return
        yield from self._regions.weight_lets(block)
        size = self._geometry.w_block_bytes(self._blocks[block][1])
        offset = self._placement.blocks[self._layer.name, block]
        yield Copy(
            self.token("w", str(block)),
            "transfer",
            Region(L1, self._regions.w_offset(block), size),
            Region(WEIGHTS, Affine(offset), size),
            deps,
            self._layer.name,
        )

    def tile(self, spot: Spot) -> Iterator[Statement]:
        """Load, compute in place, store."""
        layer, tag = self._layer, spot.tag
        loads = [self.token(f"x{i}" if i else "x", tag) for i in range(len(layer.sources))]
        x_names = [f"{layer.name}_X{i or ''}{tag}" for i in range(len(layer.sources))]
        y_name = f"{layer.name}_Y{tag}"
        for index, name in enumerate(x_names):
            yield Let(name, self._regions.x_region(spot, index))
        yield Let(y_name, self._regions.y_region(spot))
        for source, (load, name) in enumerate(zip(loads, x_names, strict=True)):
            yield Copy(
                load,
                "transfer",
                name,
                self._regions.x_source(spot, source),
                spot.x_deps,
                layer.name,
            )
        w_token = (self.token("w", str(spot.block)),) if self._has_weights else ()
        token = self.token("c", tag)
        yield Compute(
            token,
            _nem(layer.op),
            (*x_names, *self._regions.weight_names(spot.block)),
            y_name,
            (*loads, *w_token, *spot.deps),
            self._attributes(spot),
            layer.name,
        )
        for index, op in enumerate(layer.epilogue):
            following = self.token(f"f{index}", tag)
            row = lowering_of(op)
            given = row.attributes(OPS[op.opcode].filled(op.attributes)) if row else {}
            yield Compute(following, _nem(op), (y_name,), y_name, (token,), given, layer.name)
            token = following
        yield self._stored(spot, y_name, token)

    def _stored(self, spot: Spot, y_name: str, token: str) -> Copy:
        target = self._regions.location(self._layer.result)
        op = "store" if target.level == "L2" else "transfer"
        region = self._regions.y_target(spot, target)
        deps, debug = (token,), self._layer.name
        return Copy(self.token("s", spot.tag), op, region, y_name, deps, debug)

    def _attributes(self, spot: Spot) -> dict[str, object]:
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


class _Line:
    """Tiles written one after the other; a slot is free when the tile that had it is done."""

    def __init__(self, schedule: _LayerSchedule) -> None:
        self._schedule = schedule
        self.computed: list[str] = []
        self._stored: list[str] = []

    @property
    def open_tokens(self) -> tuple[str, ...]:
        """Of tasks that nothing has waited for."""
        return tuple(self._stored[-self._schedule.slots :])

    def tile(self, tag: str, tile: Tile, image: Affine, block: int) -> Iterator[Statement]:
        """One more tile."""
        number, slots = len(self.computed), self._schedule.slots
        old = number - slots
        spot = Spot(
            tag,
            tile,
            image,
            Affine(tile.first),
            Affine(number % slots),
            block,
            (self.computed[old],) if old >= 0 else (),
            (self._stored[old],) if old >= 0 else (),
        )
        yield from self._schedule.tile(spot)
        self.computed.append(self._schedule.token("c", tag))
        self._stored.append(self._schedule.token("s", tag))


def _nem(op: CoreOperation) -> str:
    row = lowering_of(op)
    assert row is not None
    return row.nem


def _turn(variable: str, slots: int) -> Affine:
    """Which slot an iteration uses."""
    return Affine(0, ((f"({variable} mod {slots})", 1),)) if slots > 1 else Affine(0)
