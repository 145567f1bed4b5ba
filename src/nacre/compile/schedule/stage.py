"""Sixth stage: the order of tasks, what each waits for, and how many tiles are in flight.

A layer of few tiles is written out: every task names what it waits for, which may be tasks of the
layer before. A layer of many tiles is a loop over those that differ in their place only; tiles at
the border, and a smaller last one, follow it. Weights are loaded one block ahead, and those of the
next layer before the loop of this one where L1 has room for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nacre.base.excerpt import safe
from nacre.compile.geometry import Tile, tiles
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.placement.stage import Location, Placement
from nacre.compile.program import Affine, Arrived, Loop, Program
from nacre.compile.schedule.copies import write_copies
from nacre.compile.schedule.fetches import FetchTasks
from nacre.compile.schedule.order import Touch
from nacre.compile.schedule.task_writer import LoopWriter, TaskWriter
from nacre.compile.schedule.tasks import LayerTasks, TilePosition
from nacre.compile.schedule.tokens import insert_waits
from nacre.compile.tiling.candidates import MOST_WRITTEN_OUT
from nacre.compile.tiling.stage import Tilings
from nacre.compile.tiling.tiling import Tiling

# Of the nodes that a comment names: how many, and how much of a name, which differ at their ends.
_MOST_NAMES = 4
_NAME = 60


def schedule(
    partition: Partition, tiled: Tilings, placement: Placement, options: Options
) -> Program:
    """The program of all layers, one after the other."""
    writer = TaskWriter(is_careful=bool(options.token_reserve))
    fetching = FetchTasks(placement, options)
    schedules = [
        None
        if layer.main == "copy"
        else _LayerSchedule(
            layer,
            tiling,
            placement,
            partition,
            writer,
            fetching,
            options,
            tiled.resident.loaded_by,
        )
        for layer, tiling in zip(partition.layers, tiled.layers, strict=True)
    ]
    for index, layer in enumerate(partition.layers):
        after = next(
            (i for i in range(index + 1, len(schedules)) if schedules[i] is not None), None
        )
        following = None if after is None else schedules[after]
        own = schedules[index]
        if own is None:
            writer.comment(f"{layer.name}: {_operations_text(layer)}")
            fetching.write(index, writer)
            write_copies(layer, placement, writer, options)
        else:
            # Copies in between are written down after what the next layer begins with.
            between = partition.layers[index:after]
            writes = frozenset(t for x in between for t in x.writes)
            own.run(following, writes, index)
    statements = tuple(writer.statements)
    if not options.token_reserve:
        engines = {placement.l1(e): e for e in range(options.device.num_engines)}
        statements = insert_waits(statements, options.tokens, engines)
    statements = tuple(s for s in statements if not isinstance(s, Arrived))
    return Program("model", placement.buffers, statements)


@dataclass(frozen=True)
class _Lane:
    """An engine in one round of tiles: which block it has, and which tile of the round."""

    engine: int
    block: int
    place: int


class _LayerSchedule:
    """Makes the statements of one layer."""

    def __init__(
        self,
        layer: Layer,
        tiling: Tiling,
        placement: Placement,
        partition: Partition,
        writer: TaskWriter,
        fetching: FetchTasks,
        options: Options,
        loaded_by: Mapping[tuple[int, ...], str],
    ) -> None:
        self.layer, self._tiling, self._placement = layer, tiling, placement
        self._partition, self._writer, self._fetching = partition, writer, fetching
        self._tasks = LayerTasks(layer, tiling, placement, options)
        self._blocks = tiling.column_blocks(layer.columns)
        self._tiles = tiles(layer.window, layer.rows, tiling.rows)
        self._l1_layout = placement.l1_layouts[layer.name]
        self._used: dict[int, int] = {}  # tiles so far, by engine: they take turns in the slots
        self._bringers = loaded_by  # layers that load weights which others use too
        self._is_begun = False
        self._shared: list[str] = []  # tokens of what all tiles read
        self._is_plain = options.token_reserve > 1
        self._is_ahead = "ahead" not in options.disabled

    # The order of it all

    def begin(self) -> None:
        """Bring what all tiles share, and the first weights, on their way; once."""
        if self._is_begun:
            return
        self._is_begun = True
        self._fetching.write_for(self.layer, self._writer)
        for engine in range(self._tiling.engines):
            for task in self._tasks.shared_loads(engine):
                self._writer.task(task)
                self._shared.append(task.statement.token)
        self._load_weights(0)

    def run(self, following: _LayerSchedule | None, writes: frozenset[int], index: int) -> None:
        """All tiles; the next layer's weights are asked for before the last of them.

        `writes` are tensors that are made before the next layer runs; `index` is the place of this.
        """
        self._writer.comment(
            f"{self.layer.name}: {_operations_text(self.layer)}, tiles of {self._tiling}"
        )
        self.begin()
        self._writer.make_room()
        is_first = self._begins_in_ddr
        self._write_fetches(0, index, is_first=is_first)
        # Every tile names these: waited for once, they do not live as long as the layer.
        self._writer.wait_for(self._shared)
        groups = self._groups()
        has_next = self._tiling.w_slots > 1  # room for the weights of the next block
        for number, lanes in enumerate(groups):
            if number:
                self._write_fetches(number, index, is_first=is_first)
            if number and not has_next:
                self._load_weights(number)
            if number + 1 < len(groups):
                if has_next:
                    self._load_weights(number + 1)
            elif not is_first:
                self._begin_next(following, writes)
            self._name_weights(number, lanes)
            self._tiles_of(number, lanes)
        if is_first:
            self._fetching.write(index, self._writer)
            self._begin_next(following, writes)

    def _write_fetches(self, number: int, index: int, *, is_first: bool) -> None:
        """What travels to L2 before a round of blocks: at least the weights of the next one."""
        if is_first:
            self._fetching.write_for(self.layer, self._writer, number + 1)
        else:
            self._fetching.write(index, self._writer, self.layer, number)

    @property
    def _begins_in_ddr(self) -> bool:
        """Whether tiles that are written out read what lies in DDR: nothing had better precede."""
        where = self._placement.tensors
        reads = any(where[tensor].level == "DDR" for tensor in self.layer.reads)
        return reads and self._rounds <= MOST_WRITTEN_OUT

    def _begin_next(self, following: _LayerSchedule | None, writes: frozenset[int]) -> None:
        if self._is_ahead and following is not None and self._leaves_room(following, writes):
            following.begin()

    def _groups(self) -> list[list[_Lane]]:
        """The lanes of every group of blocks that is computed at a time."""
        abreast, blocks, places = self._tiling.abreast, len(self._blocks), range(self._step)
        return [
            [
                _Lane((block - first) * len(places) + place, block, place)
                for block in range(first, min(first + abreast, blocks))
                for place in places
            ]
            for first in range(0, blocks, abreast)
        ]

    def _leaves_room(self, following: _LayerSchedule, writes: frozenset[int]) -> bool:
        """Whether what another layer begins with lies apart from all that this one uses."""
        l1_layout, own = following._l1_layout, self._l1_layout
        shared = l1_layout.footprint.shared_bytes
        begins = min(l1_layout.weights, l1_layout.shared if shared else l1_layout.weights)
        ends = max(
            l1_layout.weights + following._tiling.w_slots * l1_layout.footprint.w_bytes,
            l1_layout.shared + shared if shared else 0,
        )
        cut = following.layer.cut(following._tiling.rows, following._tiling.columns)
        reads = {a.tensor for a in following.layer.operands if a.is_fixed(cut)}
        is_apart = ends <= own.start or own.end <= begins
        return is_apart and not reads & writes and self._fetching.are_written(following.layer)

    def _load_weights(self, number: int) -> None:
        packed = self.layer.packed
        if packed is None or self._bringers.get(packed.key, self.layer.name) != self.layer.name:
            return
        slot = number % self._tiling.w_slots
        for lane in self._groups()[number]:
            for task in self._tasks.weights.loads(lane.engine, lane.block, slot):
                self._writer.task(task)

    def _name_weights(self, number: int, lanes: list[_Lane]) -> None:
        slot = number % self._tiling.w_slots
        for lane in lanes:
            for let in self._tasks.weights.lets(lane.engine, lane.block, slot):
                self._writer.declare(let)

    # Tiles

    def _tiles_of(self, number: int, lanes: list[_Lane]) -> None:
        layer = self.layer
        tag = f"b{number}" if len(self._blocks) > 1 else ""
        if self._rounds <= MOST_WRITTEN_OUT:
            tiles = [(n, tile) for n in range(layer.images) for tile in self._tiles]
            self._unroll(number, lanes, tag, [(Affine(n), tile) for n, tile in tiles])
        elif layer.images > 1 and len(self._tiles) == 1:
            self._loop_over_images(number, lanes, tag)
        elif layer.images == 1:
            self._loop_over_rows(number, lanes, tag, Affine(), self._writer)
        else:
            self._loop_over_both(number, lanes, tag)

    @property
    def _rounds(self) -> int:
        return self.layer.images * len(self._tiles) // self._step

    @property
    def _step(self) -> int:
        """Tiles in a round: engines that share out rows take one each."""
        return self._tiling.row_engines

    def _unroll(
        self, number: int, lanes: list[_Lane], tag: str, tiles: list[tuple[Affine, Tile]]
    ) -> None:
        """Every tile by itself."""
        self._write_tiles(number, lanes, tag, tiles, self._writer)

    def _write_tiles(
        self,
        number: int,
        lanes: list[_Lane],
        tag: str,
        tiles: list[tuple[Affine, Tile]],
        writer: TaskWriter,
    ) -> None:
        for first in range(0, len(tiles), self._step):
            for lane in lanes:
                at = first + lane.place
                if at >= len(tiles):
                    continue
                image, tile = tiles[at]
                used = self._used.get(lane.engine, 0)
                self._used[lane.engine] = used + 1
                name = f"{tag}t{at}" + (f"k{lane.block}" if len(lanes) > self._step else "")
                position = self._tile_position(
                    name, lane, image, tile, Affine(used % self._tiling.slots)
                )
                if self._is_plain:
                    writer.make_room()
                for task in self._tasks.tile(position, number % self._tiling.w_slots):
                    writer.task(task)

    def _tile_position(
        self, tag: str, lane: _Lane, image: Affine, tile: Tile, slot: Affine
    ) -> TilePosition:
        size = self.layer.size(tile.rows, self._blocks[lane.block][1])
        size = type(size)(tile.rows, tile.x_rows, size.columns)
        row, x_row = Affine(tile.first), Affine(tile.x_first)
        return TilePosition(
            tag, lane.engine, lane.block, image, row, x_row, size, slot, tile.above, tile.below
        )

    def _loop_over_images(self, number: int, lanes: list[_Lane], tag: str) -> None:
        """A loop over images of one tile each; those that do not fill a round follow it."""
        step, images = self._step, self.layer.images
        rounds = images // step
        tile = self._tiles[0]
        self._writer.wait(self._touched_by_tiles())
        body = LoopWriter(self._writer)
        for lane in lanes:
            image = Affine(lane.place, (("n", step),))
            position = self._tile_position(
                _lane_tag(tag, lane), lane, image, tile, self._slot_of_round("n")
            )
            for task in self._tasks.tile(position, number % self._tiling.w_slots):
                body.task(task)
        self._loop("n", rounds, self._tiling.slots, body)
        rest = [(Affine(n), tile) for n in range(rounds * step, images)]
        self._write_tiles(number, lanes, f"{tag}e", rest, self._writer)

    def _loop_over_rows(
        self, number: int, lanes: list[_Lane], tag: str, image: Affine, writer: TaskWriter
    ) -> None:
        """A loop over tiles of whole rows without padding; the others follow it."""
        rows, step = self._tiling.rows, self._step
        inner = [t for t in self._tiles if t.is_inner and t.rows == rows]
        rounds = len(inner) // step
        looped = inner[: rounds * step] if rounds > 1 else []
        if looped:
            writer.wait(self._touched_by_tiles())
            body = LoopWriter(writer)
            stride = self.layer.window.stride if self.layer.window is not None else 1
            for lane in lanes:
                first = looped[lane.place]
                position = self._tile_position(
                    _lane_tag(tag, lane), lane, image, first, self._slot_of_round("i")
                )
                moved = Affine(first.first, (("i", step * rows),))
                x_moved = Affine(first.x_first, (("i", step * rows * stride),))
                position = _position_at_row(position, moved, x_moved)
                for task in self._tasks.tile(position, number % self._tiling.w_slots):
                    body.task(task)
            self._loop("i", rounds, self._tiling.slots, body, writer)
        rest = [(image, t) for t in self._tiles if t not in looped]
        self._write_tiles(number, lanes, f"{tag}e", rest, writer)

    def _loop_over_both(self, number: int, lanes: list[_Lane], tag: str) -> None:
        """Images one after the other; each is complete before the next begins."""
        self._writer.wait(self._touched_by_tiles())
        body = LoopWriter(self._writer)
        self._loop_over_rows(number, lanes, tag, Affine(0, (("n", 1),)), body)
        self._loop("n", self.layer.images, 1, body)

    def _slot_of_round(self, variable: str) -> Affine:
        slots = self._tiling.slots
        return Affine(0, ((f"({variable} mod {slots})", 1),)) if slots > 1 else Affine()

    def _loop(
        self,
        variable: str,
        rounds: int,
        window: int,
        body: LoopWriter,
        writer: TaskWriter | None = None,
    ) -> None:
        """A loop, after all that it conflicts with; everything in it is done where it ends."""
        writer = writer or self._writer
        writer.statements.append(Loop(variable, 0, rounds - 1, window, tuple(body.statements)))
        writer.settle(body.named)
        self._used.clear()

    def _touched_by_tiles(self) -> list[Touch]:
        """Everything that the tiles of the layer touch, but not what is loaded once."""
        l1_layout, slots = self._l1_layout, self._tiling.slots
        touches = [
            Touch(
                self._placement.l1(e),
                l1_layout.ring,
                l1_layout.ring + slots * l1_layout.footprint.ring,
                True,
            )
            for e in range(self._tiling.engines)
        ]
        for tensor in self.layer.reads:
            touches.append(self._touch_of_tensor(tensor, False))
        for tensor in self.layer.writes:
            touches.append(self._touch_of_tensor(tensor, True))
        return touches

    def _touch_of_tensor(self, tensor: int, writes: bool) -> Touch:
        where: Location = self._placement.tensors[tensor]
        size = self._partition.tensors[tensor].bytes
        return Touch(where.buffer, where.offset, where.offset + size, writes)


def _lane_tag(tag: str, lane: _Lane) -> str:
    return f"{tag}e{lane.engine}" if lane.engine else tag


def _position_at_row(position: TilePosition, row: Affine, x_row: Affine) -> TilePosition:
    return replace(position, row=row, x_row=x_row)


def _operations_text(layer: Layer) -> str:
    done = " + ".join(op.opcode for op in layer.operations) or "elements moved"
    names = [safe(name[-_NAME:]) for name in layer.nodes[:_MOST_NAMES]]
    more = [f"{len(layer.nodes) - len(names)} more"] if len(layer.nodes) > len(names) else []
    return f"{done} of {', '.join((*names, *more))}" if names else done
