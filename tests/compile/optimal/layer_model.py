"""The tiles of one layer in every size, of which those of one size are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from nacre.compile.partition.layers import Access, Layer, TileCut
from tests.compile.optimal.chain_bounds import conflict
from tests.compile.optimal.model_writer import GRAIN, ModelWriter, OptionalTask, Sum
from tests.compile.optimal.tile_choices import (
    FROM_DDR,
    Part,
    TileChoice,
    TilePattern,
    part_of,
)


@dataclass(frozen=True, eq=False)
class Reach:
    """What a tile touches of a tensor, as it follows from the choice."""

    first: Sum
    last: Sum
    columns: tuple[Sum, Sum] | None  # None: all
    width: int  # columns of the layer


@dataclass(frozen=True, eq=False)
class Reader:
    """A task that reads a tensor, or the last that writes it, and what it touches."""

    task: OptionalTask
    reach: Reach


class LayerModel:
    """One layer; without tasks only the choice of its tiles."""

    def __init__(
        self, writer: ModelWriter, at: int, layer: Layer, choices: Sequence[TileChoice]
    ) -> None:
        self.layer, self.choices, self._writer, self._at = layer, choices, writer, at
        self.chosen = [writer.literal() for _ in choices]
        writer.model.add_exactly_one(self.chosen)
        self._patterns = {c.pattern.cut: c.pattern for c in choices}
        self._of_cut = {
            cut: [k for k, c in enumerate(choices) if c.pattern.cut == cut]
            for cut in self._patterns
        }
        self._shared: dict[TileCut, list[OptionalTask]] = {}
        self._weights: list[OptionalTask] = []
        self._tiles: dict[tuple[TileCut, int], list[OptionalTask]] = {}
        if writer.has_tasks:
            self._add_tasks()
            self._add_boxes()

    def total(self, values: Sequence[int]) -> Sum:
        """What follows from the choice that is made."""
        return _sum(self.chosen, values)

    # Tasks

    def _add_tasks(self) -> None:
        for cut, pattern in self._patterns.items():
            role = f"shared{int(cut.rows)}{int(cut.columns)}"
            self._shared[cut] = [
                self._writer.task(
                    (self._at, role, 0, n), task.units,
                    [(self.chosen[k], self.choices[k].shared_cycles[n]) for k in self._of_cut[cut]],
                )
                for n, task in enumerate(pattern.shared)
            ]  # fmt: skip
        for block in range(max(len(choice.blocks) for choice in self.choices)):
            found = [
                (self.chosen[k], c.weight_cycles[block])
                for k, c in enumerate(self.choices)
                if block < len(c.weight_cycles)
            ]
            if found:
                self._weights.append(
                    self._writer.task((self._at, "weights", block, 0), FROM_DDR, found)
                )
        for pattern in self._patterns.values():
            for q in range(max(self.choices[k].count for k in self._of_cut[pattern.cut])):
                self._tiles[pattern.cut, q] = self._tile_tasks(q, pattern)

    def _with_tile(self, cut: TileCut, q: int) -> list[int]:
        """The choices in which there is a tile."""
        return [k for k in self._of_cut[cut] if q < self.choices[k].count]

    def _tile_tasks(self, q: int, pattern: TilePattern) -> list[OptionalTask]:
        ks, writer = self._with_tile(pattern.cut, q), self._writer
        tasks = [
            writer.task(
                (self._at, "tile", q, n), task.units,
                [(self.chosen[k], int(self.choices[k].cycles[q, n])) for k in ks],
            )
            for n, task in enumerate(pattern.tasks)
        ]  # fmt: skip
        for n, task in enumerate(pattern.tasks):
            for m, earlier in enumerate(pattern.tasks[:n]):
                if conflict(task, earlier):
                    writer.after(tasks[n], tasks[m])
            for m, earlier in enumerate(pattern.shared):
                if conflict(task, earlier):
                    writer.after(tasks[n], self._shared[pattern.cut][m])
            if task.reads_weights:
                for block, literal in self._blocks(pattern.cut, q):
                    writer.after(tasks[n], self._weights[block], literal)
        return tasks

    def _blocks(self, cut: TileCut, q: int) -> Iterator[tuple[int, cp_model.IntVar]]:
        """The blocks that a tile may have, and whether it has them."""
        found: dict[int, list[cp_model.IntVar]] = {}
        for k in self._with_tile(cut, q):
            found.setdefault(q // len(self.choices[k].tiles), []).append(self.chosen[k])
        for block, chosen in found.items():
            yield block, self._writer.any_of(chosen)

    # Room in L1

    def _add_boxes(self) -> None:
        for cut, pattern in self._patterns.items():
            for space, fixed in enumerate(pattern.spaces.fixed):
                if fixed:
                    self._shared_box(cut, pattern, space)
        for (cut, q), tasks in self._tiles.items():
            self._ring_boxes(q, tasks, self._patterns[cut])
        for block, task in enumerate(self._weights):
            self._weights_box(block, task)

    def _shared_box(self, cut: TileCut, pattern: TilePattern, space: int) -> None:
        writer, home = self._writer, ("shared", space)
        first = next(n for n, t in enumerate(pattern.shared) if home in t.writes)
        task, end = self._shared[cut][first], writer.time()
        chosen = [self.chosen[k] for k in self._of_cut[cut]]
        sizes = [self.choices[k].shared_bytes[space] for k in self._of_cut[cut]]
        writer.box((self._at, *home), task.start, end, task.there, _room(chosen, sizes))
        writer.model.add(end >= task.end).only_enforce_if(task.there)
        for (of, _), tasks in self._tiles.items():
            for n, known in enumerate(pattern.tasks if of == cut else ()):
                if home in (*known.reads, *known.writes):
                    writer.model.add(end >= tasks[n].end).only_enforce_if(tasks[n].there)

    def _ring_boxes(self, q: int, tasks: list[OptionalTask], pattern: TilePattern) -> None:
        ks = self._with_tile(pattern.cut, q)
        for space in pattern.ring:
            home = ("ring", space)
            users = [n for n, t in enumerate(pattern.tasks) if home in (*t.reads, *t.writes)]
            if not users:  # what was there lies among the tensors in L1
                continue
            sizes = [int(self.choices[k].bytes[space][q]) for k in ks]
            first, last = tasks[users[0]], tasks[users[-1]]
            room = _room([self.chosen[k] for k in ks], sizes)
            self._writer.box((self._at, "ring", q, space), first.start, last.end, first.there, room)

    def _weights_box(self, block: int, task: OptionalTask) -> None:
        writer = self._writer
        end = writer.time()
        sizes = [c.weight_bytes[block] if block < len(c.weight_bytes) else 0 for c in self.choices]
        room = _room(self.chosen, sizes)
        writer.box((self._at, "weights", block), task.start, end, task.there, room)
        writer.model.add(end >= task.end).only_enforce_if(task.there)
        for (cut, q), tasks in self._tiles.items():
            literal = next((there for at, there in self._blocks(cut, q) if at == block), None)
            for n, known in enumerate(self._patterns[cut].tasks if literal is not None else ()):
                if known.reads_weights:
                    writer.model.add(end >= tasks[n].end).only_enforce_if(literal)

    # What other layers must know

    def last_tasks(self) -> list[OptionalTask]:
        """The last task of every tile."""
        return [tasks[-1] for tasks in self._tiles.values()]

    def makers_of(self, number: int, access: Access) -> list[Reader]:
        """The last task of every tile that writes a result."""
        found = []
        for (cut, q), tasks in self._tiles.items():
            writes = [
                n
                for n, t in enumerate(self._patterns[cut].tasks)
                if (t.role == "store" and t.number == number)
                or ("tensor", access.tensor) in t.writes
            ]
            found.append(Reader(tasks[writes[-1]], self._reach(cut, q, access)))
        return found

    def readers_of(self, access: Access) -> list[Reader]:
        """The tasks that read an operand where it lies, for every tile or for all."""
        local = next(n for n, a in enumerate(self.layer.operands) if a is access)
        found = []
        for cut, tasks in self._shared.items():
            for n, task in enumerate(self._patterns[cut].shared):
                if task.number == local:
                    part = part_of(self.layer, access, None, None)
                    whole = Reach(part.first, part.last, None, self.layer.columns)
                    found.append(Reader(tasks[n], whole))
        for (cut, q), tasks in self._tiles.items():
            for n, task in enumerate(self._patterns[cut].tasks):
                is_load = task.role == "load" and task.number == local
                if is_load or ("tensor", access.tensor) in task.reads:
                    found.append(Reader(tasks[n], self._reach(cut, q, access)))
        return found

    def users_of(self, tensor: int) -> list[OptionalTask]:
        """The tasks that touch a tensor in L1."""
        return [
            tasks[n]
            for (cut, _), tasks in self._tiles.items()
            for n, task in enumerate(self._patterns[cut].tasks)
            if ("tensor", tensor) in (*task.reads, *task.writes)
        ]

    def _reach(self, cut: TileCut, q: int, access: Access) -> Reach:
        """What a tile touches, over the choices in which it is there."""
        ks, parts = self._with_tile(cut, q), list[Part]()
        for k in ks:
            choice = self.choices[k]
            block, row = divmod(q, len(choice.tiles))
            parts.append(part_of(self.layer, access, choice.tiles[row], choice.blocks[block]))
        chosen = [self.chosen[k] for k in ks]
        blocks = [part.columns for part in parts if part.columns is not None]
        columns = None
        if blocks:
            first = _sum(chosen, [block[0] for block in blocks])
            columns = first, _sum(chosen, [sum(block) for block in blocks])
        first = _sum(chosen, [part.first for part in parts])
        last = _sum(chosen, [part.last for part in parts])
        return Reach(first, last, columns, self.layer.columns)


def _sum(chosen: Sequence[cp_model.IntVar], values: Sequence[int]) -> Sum:
    return sum(value * c for value, c in zip(values, chosen, strict=True))


def _room(chosen: Sequence[cp_model.IntVar], sizes: Sequence[int]) -> Sum:
    return _sum(chosen, [-(-size // GRAIN) for size in sizes])
