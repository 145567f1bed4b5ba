"""What CP-SAT found, as a program: its tiles at its addresses, in the order of its starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nacre.compile.emission.stage import emit
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.pipeline import Compiled
from nacre.compile.placement.ports import L2
from nacre.compile.placement.stage import L1Layout, Location, Placement, l1_name, place
from nacre.compile.program import Affine, Arrived, Buffer, Compute, Copy, Program
from nacre.compile.schedule.task import Task
from nacre.compile.schedule.task_writer import TaskWriter
from nacre.compile.schedule.tasks import LayerTasks, TilePosition
from nacre.compile.schedule.tokens import insert_waits
from nacre.compile.target import Target
from nacre.compile.tiling.footprints import Footprint
from nacre.compile.tiling.residency import Residency
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.stage import Tilings
from nacre.compile.tiling.tiling import Tiling
from tests.compile.optimal.alternatives import Alternative, between_layers
from tests.compile.optimal.solution import Solution, TaskStart
from tests.compile.optimal.tile_choices import TileChoice

_GRAIN = 64

Addresses = dict[tuple[object, ...], int]


@dataclass(frozen=True)
class _SolvedLayout(L1Layout):
    """Where the spaces of one tile lie: anywhere, each by itself."""

    starts: tuple[int, ...] = ()

    def space(self, number: int) -> tuple[int, bool]:
        """Where a space begins; no tile is another's neighbour."""
        return self.starts[number], False


class Answer:
    """A solution with places in L1, on its way to a program."""

    def __init__(
        self,
        alternative: Alternative,
        choices: Sequence[Sequence[TileChoice]],
        solution: Solution,
        options: Options,
        addresses: Addresses,
    ) -> None:
        self._partition, self._resident = alternative.partition, alternative.resident
        self._solution, self._options, self._addresses = solution, options, addresses
        self._chosen = [of[k] for of, k in zip(choices, solution.choices, strict=True)]
        tilings = tuple(Tiling(c.rows, c.columns) for c in self._chosen)
        zone = {t: addresses["tensor", t] for t in self._resident}
        self.tilings = Tilings(tilings, Residency(zone, 0), (0.0,) * len(tilings))
        self._placement = _apart(place(self._partition, self.tilings, options), self._partition,
                                 options)  # fmt: skip

    def compiled(self, compiled: Compiled, target: Target, *, in_order: bool) -> Compiled:
        """The same model with this plan; `in_order` keeps the order of each unit's tasks."""
        program = self._program(in_order=in_order)
        return replace(
            compiled, cut=self._partition, tilings=self.tilings, placement=self._placement,
            program=program, text=emit(program, target),
        )  # fmt: skip

    def cycles_of_tokens(self) -> dict[str, int]:
        """What each task of the program takes by the solution."""
        return {
            task.statement.token: start.end - start.start
            for start in self._solution.starts
            for task in self._tasks(start, TaskWriter())
        }

    def _program(self, *, in_order: bool) -> Program:
        """All tasks by their start."""
        writer = TaskWriter()
        writer.comment("all layers, by the starts that were found")
        last: dict[str, list[tuple[int, str]]] = {}
        for start in sorted(self._solution.starts, key=_by_start):
            for task in self._tasks(start, writer):
                if in_order:
                    self._write_after(start, task, writer, last)
                else:
                    writer.task(task)
        engines = {self._placement.l1(0): 0}
        statements = insert_waits(tuple(writer.statements), self._options.tokens, engines)
        kept = tuple(s for s in statements if not isinstance(s, Arrived))
        return Program("model", self._placement.buffers, kept)

    def _write_after(
        self,
        start: TaskStart,
        task: Task,
        writer: TaskWriter,
        last: dict[str, list[tuple[int, str]]],
    ) -> None:
        """A task after the one before it on its units, even where nothing else makes it wait."""
        writer.task(task)
        token = task.statement.token
        units = self._units(start)
        names = list[str]()
        for unit in units:
            ends = last.setdefault(unit, [])
            done = [entry for entry in ends if entry[0] <= start.start]
            if len(ends) >= self._options.device.count(unit) and done:
                names.append(max(done)[1])
                ends.remove(max(done))
            ends.append((start.end, token))
        written = writer.statements[-1]
        assert isinstance(written, Copy | Compute)
        writer.statements[-1] = replace(written, deps=tuple(dict.fromkeys((*written.deps, *names))))

    def _units(self, start: TaskStart) -> tuple[str, ...]:
        pattern = self._chosen[start.layer].pattern
        if start.role == "weights":
            return ("DMA", "sDMA")
        tasks = pattern.tasks if start.role == "tile" else pattern.shared
        return tasks[start.task].units

    def _tasks(self, start: TaskStart, writer: TaskWriter) -> list[Task]:
        """The task of a start; names of weights are declared before the first tile of a block."""
        layer, choice = self._partition.layers[start.layer], self._chosen[start.layer]
        block, row = (0, 0) if start.role != "tile" else divmod(start.tile, len(choice.tiles))
        if start.role == "weights":
            block = start.tile
        maker = self._maker(start.layer, layer, choice, block, start.tile)
        if start.role == "weights":
            return list(maker.weights.loads(0, block, 0))
        if start.role != "tile":
            return [list(maker.shared_loads(0))[start.task]]
        for let in maker.weights.lets(0, block, 0):
            writer.declare(let)
        tile = choice.tiles[row]
        size = replace(
            layer.size(tile.rows, choice.blocks[block][1]), rows=tile.rows, x_rows=tile.x_rows
        )
        position = TilePosition(
            f"b{block}t{row}", 0, block, Affine(), Affine(tile.first), Affine(tile.x_first),
            size, Affine(), tile.above, tile.below,
        )  # fmt: skip
        return [list(maker.tile(position, 0))[start.task]]

    def _maker(
        self, at: int, layer: Layer, choice: TileChoice, block: int, tile: int
    ) -> LayerTasks:
        """What makes the tasks of a layer, with the spaces of one tile where they were found."""
        spaces = choice.pattern.spaces
        starts = tuple(
            self._addresses.get((at, "shared", s) if fixed else (at, "ring", tile, s), 0)
            for s, fixed in enumerate(spaces.fixed)
        )
        sizes = tuple(
            choice.shared_bytes[s] if fixed else int(np.max(choice.bytes[s]))
            for s, fixed in enumerate(spaces.fixed)
        )
        w_bytes = max(choice.weight_bytes, default=0)
        weights = self._addresses.get((at, "weights", block), 0)
        layout = _SolvedLayout(Footprint(spaces, sizes, w_bytes), weights, 0, 0, 0, 0, starts)
        placement = replace(self._placement, l1_layouts={layer.name: layout})
        return LayerTasks(layer, self.tilings.layers[at], placement, self._options)


def _by_start(start: TaskStart) -> tuple[int, int, int, int]:
    return start.start, start.end, start.layer, start.tile


def _apart(placement: Placement, partition: Partition, options: Options) -> Placement:
    """Every tensor between layers has a place in L2 of its own: layers may run side by side."""
    tensors, end = dict(placement.tensors), 0
    for tensor in between_layers(partition.layers, partition):
        if tensors[tensor].level == "L2":
            tensors[tensor] = Location(L2, "L2", end)
            end += align_up(partition.tensors[tensor].bytes)
    assert end <= options.l2_bytes
    kept = [b for b in placement.buffers if b.level == "DDR"]
    inside = [Buffer(L2, "L2", end, "tensors between layers")] if end else []
    size = options.l1_bytes // _GRAIN * _GRAIN
    l1 = Buffer(l1_name(0), "L1", size, "tiles of the layers that run")
    return replace(placement, tensors=tensors, buffers=(*kept, *inside, l1))
