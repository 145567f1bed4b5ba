"""The tile of every layer, and the start of every task: one model for CP-SAT.

A task occupies its units for as long as the device's figures say, after all that wrote what it reads.
What lies in L1 takes room from its first task to its last. Tiles of a layer may come in any order.
What plans must keep beside that, addresses and tokens, is left out: an optimum of this model is a
bound for every plan of this form, and an optimum itself where its answer, emitted, takes as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from nacre.compile.options import Options
from nacre.compile.partition.layers import Access, Cut, Layer
from nacre.compile.partition.stage import Partition
from tests.compile.optimal.chain_bounds import TileBounds, conflict, reads_all_rows, tile_bounds
from tests.compile.optimal.tile_choices import (
    FROM_DDR,
    Part,
    TileChoice,
    TilePattern,
    UnsupportedGraphError,
    part_of,
    work_of,
    writers_of,
)

MOST_TASKS = 30
UNITS = ("NMU", "CSTL", "VPU", "DMA", "sDMA")
_GRAIN = 64  # bytes in which L1 is counted


@dataclass(frozen=True)
class TaskStart:
    """A task of the answer."""

    layer: int
    role: str  # weights, shared, tile
    tile: int  # or block of weights
    task: int
    start: int
    end: int


@dataclass(frozen=True)
class Box:
    """Something in L1: from when to when, and how many bytes."""

    key: tuple[object, ...]
    start: int
    end: int
    size: int


@dataclass(frozen=True)
class Solution:
    """What CP-SAT found: the tile of every layer, when every task starts, what lies in L1 when."""

    cycles: int
    choices: tuple[int, ...]  # by layer
    starts: tuple[TaskStart, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Verdict:
    """The best solution, if there is one, and cycles that none is below."""

    solution: Solution | None
    bound: int
    is_proven: bool
    seconds: float  # that the search took, as CP-SAT counts them: the same on every machine


@dataclass(eq=False)
class _Task:
    """A task that is there if its tile is."""

    start: cp_model.IntVar
    end: cp_model.IntVar
    there: cp_model.IntVar
    key: tuple[int, str, int, int]


@dataclass(eq=False)
class _Tile:
    """A tile that may be there: its tasks by cut, and the rows and columns that it touches."""

    there: cp_model.IntVar
    tasks: dict[Cut, list[_Task]] = field(default_factory=dict)


class ScheduleModel:
    """One graph, grouped in one way, with some tensors in L1."""

    def __init__(
        self,
        partition: Partition,
        options: Options,
        resident: frozenset[int],
        choices: Sequence[Sequence[TileChoice]],
        most_cycles: int,
        *,
        has_tasks: bool = True,
    ) -> None:
        """Without tasks it is a bound that is soon known: tiles, and what chains of them take."""
        self.has_tasks = has_tasks
        self._partition, self._options = partition, options
        self._resident, self._choices = resident, choices
        self._most = most_cycles
        self._model = cp_model.CpModel()
        self._chosen: list[list[cp_model.IntVar]] = []
        self._on_units: dict[str, list[cp_model.IntervalVar]] = {}
        self._demands: list[tuple[cp_model.IntervalVar, object]] = []
        self._boxes: list[tuple[tuple[object, ...], cp_model.IntVar, cp_model.IntVar,
                                object, cp_model.IntVar]] = []  # fmt: skip
        self._tasks: list[_Task] = []
        self._layers: list[_LayerModel] = []
        self.makespan = self._model.new_int_var(0, most_cycles, "cycles")
        for at, layer in enumerate(partition.layers):
            self._layers.append(_LayerModel(self, at, layer, choices[at]))
        if has_tasks:
            self._order_layers()
            self._keep_residents()
        self._chains()
        self._limit()

    # What layers are made of

    def literal(self) -> cp_model.IntVar:
        """A truth value."""
        return self._model.new_bool_var("")

    def time(self) -> cp_model.IntVar:
        """A time of the plan."""
        return self._model.new_int_var(0, self._most, "")

    def task(
        self,
        key: tuple[int, str, int, int],
        units: Iterable[str],
        chosen: Sequence[cp_model.IntVar],
        cycles: Sequence[int | None],
    ) -> _Task:
        """A task whose length follows from a choice; None where it is not there."""
        there = self.literal()
        pairs = [(c, took) for c, took in zip(chosen, cycles, strict=True) if took is not None]
        self._model.add(sum(c for c, _ in pairs) == there)
        least, most = min(took for _, took in pairs), max(took for _, took in pairs)
        start, end = self.time(), self.time()
        size = self._model.new_int_var(least, most, "")
        self._model.add(size == sum(took * c for c, took in pairs)).only_enforce_if(there)
        interval = self._model.new_optional_interval_var(start, size, end, there, "")
        for unit in units:
            self._on_units.setdefault(unit, []).append(interval)
        self._model.add(end <= self.makespan).only_enforce_if(there)
        task = _Task(start, end, there, key)
        self._tasks.append(task)
        return task

    def after(self, second: _Task, first: _Task, *when: cp_model.IntVar) -> None:
        """One task after another, where both are there."""
        self._model.add(second.start >= first.end).only_enforce_if(
            [first.there, second.there, *when]
        )

    def box(
        self,
        key: tuple[object, ...],
        start: cp_model.IntVar,
        end: cp_model.IntVar,
        there: cp_model.IntVar,
        size: object,
    ) -> None:
        """Room in L1 from one time to another."""
        if not isinstance(size, int):
            total, size = size, self._model.new_int_var(0, self._options.l1_bytes // _GRAIN, "")
            self._model.add(size == total)
        length = self.time()
        interval = self._model.new_optional_interval_var(start, length, end, there, "")
        self._demands.append((interval, size))
        self._boxes.append((key, start, end, size, there))

    @property
    def model(self) -> cp_model.CpModel:
        """The model of CP-SAT."""
        return self._model

    # What holds between layers

    def _order_layers(self) -> None:
        for at, reader in enumerate(self._layers):
            for access in {a.tensor: a for a in reader.layer.operands}.values():
                for writer, number in writers_of(self._partition, access.tensor):
                    if writer < at:
                        self._order(self._layers[writer], number, reader, access.tensor)

    def _order(self, writer: _LayerModel, number: int, reader: _LayerModel, tensor: int) -> None:
        """Tiles of a layer after those of an earlier one that make what they read."""
        result = writer.layer.results[number].access
        for access in reader.layer.operands:
            if access.tensor != tensor:
                continue
            written = [
                (tile, last, parts)
                for tile, last, parts in writer.ends_of(number, result)
            ]
            for first, there, read in reader.starts_of(access):
                for tile, last, parts in written:
                    self._order_tiles(last, tile, parts, first, there, read)

    def _order_tiles(
        self,
        last: _Task,
        tile: cp_model.IntVar,
        written: _Reach,
        first: _Task,
        there: cp_model.IntVar,
        read: _Reach,
    ) -> None:
        apart = [self.literal(), self.literal()]
        self._model.add(written.last <= read.first).only_enforce_if(apart[0])
        self._model.add(read.last <= written.first).only_enforce_if(apart[1])
        if written.columns is not None and read.columns is not None:
            if written.width != read.width:
                raise UnsupportedGraphError("columns of two kinds")
            sides = [self.literal(), self.literal()]
            self._model.add(written.columns[1] <= read.columns[0]).only_enforce_if(sides[0])
            self._model.add(read.columns[1] <= written.columns[0]).only_enforce_if(sides[1])
            apart += sides
        follows = self.literal()
        self._model.add(first.start >= last.end).only_enforce_if(follows)
        self._model.add_bool_or([
            *apart, follows, last.there.negated(), first.there.negated(),
            tile.negated(), there.negated(),
        ])  # fmt: skip

    def _keep_residents(self) -> None:
        """A tensor in L1 takes its room from the first task that writes it to the last user."""
        for tensor in sorted(self._resident):
            start, end = self.time(), self.time()
            for one in self._layers:
                for task in one.users_of(tensor):
                    self._model.add(start <= task.start).only_enforce_if(task.there)
                    self._model.add(end >= task.end).only_enforce_if(task.there)
            size = -(-self._partition.tensors[tensor].bytes // _GRAIN)
            there = self._model.new_constant(1)
            self.box(("tensor", tensor), start, end, there, size)

    def _chains(self) -> None:
        """Chains of tiles before and behind the work of every unit, through runs of layers."""
        firsts = [self.time() for _ in self._layers]  # when the first tile is done
        lasts = [self.time() for _ in self._layers]  # when all are
        one_way = self._options.device.count("sDMA") == 1
        runs: dict[int, list[_Run]] = {}  # that end in a layer
        for at, one in enumerate(self._layers):
            self._model.add(lasts[at] <= self.makespan)
            self._model.add(firsts[at] <= lasts[at])
            for task in one.last_tasks():
                self._model.add(task.end >= firsts[at]).only_enforce_if(task.there)
                self._model.add(task.end <= lasts[at]).only_enforce_if(task.there)
            for local, access in enumerate(one.layer.operands):
                writers = [w for w, _ in writers_of(self._partition, access.tensor) if w < at]
                if len(writers) > 1:
                    continue
                bounds = [
                    tile_bounds(c, access.tensor, local, one_way=one_way and not writers)
                    for c in one.choices
                ]
                begins: object = firsts[writers[0]] if writers else 0
                chain = one.total([b.chain for b in bounds])
                self._model.add(firsts[at] >= begins + chain)
                for task, _, _ in one.starts_of(access):
                    self._model.add(task.start >= begins).only_enforce_if(task.there)
                here = [_Run(begins, one, bounds, ())]
                if writers and reads_all_rows(one.layer, access):
                    self._model.add(lasts[at] >= lasts[writers[0]] + chain)
                    here += [
                        _Run(run.begins, run.first, run.before, (*run.works, (one, bounds)))
                        for run in runs.get(writers[0], ())
                    ]
                for run in here:
                    self._bound_run(run, one, bounds, lasts[at])
                runs.setdefault(at, []).extend(here)

    def _bound_run(
        self, run: _Run, last: _LayerModel, bounds: list[TileBounds], end: cp_model.IntVar
    ) -> None:
        """The work of each unit in some layers, behind what comes before and before the rest."""
        works = [(run.first, run.before), *run.works]
        for unit in {unit for b in run.before for unit in b.work}:
            if not any(unit in b.work for b in bounds):
                continue
            count = self._options.device.count(unit)
            parts = [one.total([b.work.get(unit, 0) for b in of]) for one, of in works]
            parts.append(run.first.total([count * b.before.get(unit, 0) for b in run.before]))
            parts.append(last.total([count * b.behind.get(unit, 0) for b in bounds]))
            self._model.add(count * (end - run.begins) >= sum(parts))

    def _limit(self) -> None:
        """Units, room, tasks; and that no unit has more work than time."""
        device = self._options.device
        for unit, intervals in self._on_units.items():
            count = device.count(unit)
            if count == 1:
                self._model.add_no_overlap(intervals)
            else:
                self._model.add_cumulative(intervals, [1] * len(intervals), count)
        for unit in UNITS:
            count = device.count(unit)
            work = [
                work_of(choice).get(unit, 0) * chosen
                for one in self._layers
                for choice, chosen in zip(one.choices, one.chosen, strict=True)
            ]
            self._model.add(sum(work) <= count * self.makespan)
        self._limit_tasks()
        if self.has_tasks:
            self._limit_l1()
        self._model.minimize(self.makespan)

    def _limit_l1(self) -> None:
        self._model.add_cumulative(
            [interval for interval, _ in self._demands],
            [size for _, size in self._demands],
            self._options.l1_bytes // _GRAIN,
        )

    def _limit_tasks(self) -> None:
        tasks = [
            choice.tasks * chosen
            for one in self._layers
            for choice, chosen in zip(one.choices, one.chosen, strict=True)
        ]
        self._model.add(sum(tasks) <= MOST_TASKS)

    # The answer

    def solve(self, seconds: float) -> Verdict:
        """The fewest cycles that are found in so much time."""
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = seconds
        solver.parameters.num_workers = 1
        solver.parameters.interleave_search = True
        # On small models what presolving finds is not worth its time.
        solver.parameters.cp_model_probing_level = 0
        solver.parameters.max_presolve_iterations = 1
        solver.parameters.merge_at_most_one_work_limit = 0
        solver.parameters.symmetry_level = 0
        solver.parameters.random_seed = 1
        status = solver.solve(self._model)
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(self._model.validate())
        took = solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            return Verdict(None, self._most + 1, True, took)
        bound = int(np.ceil(solver.best_objective_bound - 1e-6))
        if status == cp_model.UNKNOWN:
            return Verdict(None, bound, False, took)
        return Verdict(self._solution(solver), bound, status == cp_model.OPTIMAL, took)

    def _solution(self, solver: cp_model.CpSolver) -> Solution:
        starts = [
            TaskStart(*task.key, solver.value(task.start), solver.value(task.end))
            for task in self._tasks
            if solver.value(task.there)
        ]
        boxes = [
            Box(key, solver.value(start), solver.value(end), solver.value(size) * _GRAIN)
            for key, start, end, size, there in self._boxes
            if solver.value(there)
        ]
        choices = [
            next(k for k, chosen in enumerate(one.chosen) if solver.value(chosen))
            for one in self._layers
        ]
        return Solution(solver.value(self.makespan), tuple(choices), tuple(starts), tuple(boxes))


@dataclass(frozen=True, eq=False)
class _Reach:
    """What a tile touches of a tensor, as it follows from a choice."""

    first: object
    last: object
    columns: tuple[object, object] | None
    width: int


@dataclass(frozen=True, eq=False)
class _Run:
    """Layers of which each reads all that the one before it makes."""

    begins: object  # when the first of them may begin
    first: _LayerModel
    before: list[TileBounds]
    works: tuple[tuple[_LayerModel, list[TileBounds]], ...]  # of the layers behind the first


class _LayerModel:
    """The tiles of one layer, of which those of one choice are there."""

    def __init__(
        self, model: ScheduleModel, at: int, layer: Layer, choices: Sequence[TileChoice]
    ) -> None:
        self.layer, self.choices, self._model, self._at = layer, choices, model, at
        self.chosen = [model.literal() for _ in choices]
        model.model.add_exactly_one(self.chosen)
        self._tiles: list[_Tile] = []
        self._patterns = {c.pattern.cut: c.pattern for c in choices}
        self._of_cut = {
            cut: [k for k, c in enumerate(choices) if c.pattern.cut == cut]
            for cut in self._patterns
        }
        if not model.has_tasks:
            return
        self._cut_there = {cut: self._any(ks) for cut, ks in self._of_cut.items()}
        self._shared = {cut: self._shared_tasks(cut) for cut in self._patterns}
        self._weights = self._weight_tasks()
        most = max(choice.count for choice in choices)
        self._tiles = [self._tile(q) for q in range(most)]
        self._add_boxes()

    def _any(self, choices: Sequence[int]) -> cp_model.IntVar:
        """Whether one of some choices is made."""
        there = self._model.literal()
        self._model.model.add(sum(self.chosen[k] for k in choices) == there)
        return there

    def _shared_tasks(self, cut: Cut) -> list[_Task]:
        return [
            self._model.task(
                (self._at, f"shared{int(cut.rows)}{int(cut.columns)}", 0, n), task.units,
                self._of(cut), [self.choices[k].shared_cycles[n] for k in self._of_cut[cut]],
            )
            for n, task in enumerate(self._patterns[cut].shared)
        ]  # fmt: skip

    def _of(self, cut: Cut) -> list[cp_model.IntVar]:
        return [self.chosen[k] for k in self._of_cut[cut]]

    def _weight_tasks(self) -> list[_Task]:
        most = max(len(choice.weight_cycles) for choice in self.choices)
        return [
            self._model.task(
                (self._at, "weights", block, 0), FROM_DDR, self.chosen,
                [
                    c.weight_cycles[block] if block < len(c.weight_cycles) else None
                    for c in self.choices
                ],
            )
            for block in range(most)
        ]  # fmt: skip

    def _tile(self, q: int) -> _Tile:
        tile = _Tile(self._any([k for k, c in enumerate(self.choices) if q < c.count]))
        for cut, pattern in self._patterns.items():
            ks = [k for k in self._of_cut[cut] if q < self.choices[k].count]
            if ks:
                tile.tasks[cut] = self._tile_tasks(q, pattern, ks)
        return tile

    def _tile_tasks(self, q: int, pattern: TilePattern, ks: Sequence[int]) -> list[_Task]:
        tasks = [
            self._model.task(
                (self._at, "tile", q, n), task.units, [self.chosen[k] for k in ks],
                [int(self.choices[k].cycles[q, n]) for k in ks],
            )
            for n, task in enumerate(pattern.tasks)
        ]  # fmt: skip
        for n, task in enumerate(pattern.tasks):
            for m, earlier in enumerate(pattern.tasks[:n]):
                if conflict(task, earlier):
                    self._model.after(tasks[n], tasks[m])
            for m, earlier in enumerate(pattern.shared):
                if conflict(task, earlier):
                    self._model.after(tasks[n], self._shared[pattern.cut][m])
            if task.reads_weights:
                for block, k_of in self._by_block(q, ks).items():
                    self._model.after(tasks[n], self._weights[block], self._any(k_of))
        return tasks

    def _by_block(self, q: int, ks: Sequence[int]) -> dict[int, list[int]]:
        """The choices by the block that a tile has in them."""
        found: dict[int, list[int]] = {}
        for k in ks:
            found.setdefault(q // len(self.choices[k].tiles), []).append(k)
        return found

    def _add_boxes(self) -> None:
        model = self._model
        for cut, pattern in self._patterns.items():
            ends = {space: model.time() for space, fix in enumerate(pattern.spaces.fixed) if fix}
            for space, end in ends.items():
                first = next(
                    n for n, t in enumerate(pattern.shared) if ("shared", space) in t.writes
                )
                task = self._shared[cut][first]
                size = self._sum(cut, [c.shared_bytes[space] for c in self._all(cut)])
                model.box((self._at, "shared", space), task.start, end, task.there, size)
                model.model.add(end >= task.end).only_enforce_if(task.there)
            for q, tile in enumerate(self._tiles):
                if cut in tile.tasks:
                    self._tile_boxes(q, tile.tasks[cut], pattern, ends)
        for block, task in enumerate(self._weights):
            self._weights_box(block, task)

    def _tile_boxes(
        self,
        q: int,
        tasks: list[_Task],
        pattern: TilePattern,
        ends: dict[int, cp_model.IntVar],
    ) -> None:
        cut, model = pattern.cut, self._model
        for n, task in enumerate(pattern.tasks):
            for kind, space in (*task.reads, *task.writes):
                if kind == "shared":
                    model.model.add(ends[space] >= tasks[n].end).only_enforce_if(tasks[n].there)
        for space in pattern.ring:
            users = [n for n, t in enumerate(pattern.tasks) if ("ring", space) in t.reads + t.writes]
            if not users:  # what was there lies among the tensors in L1
                continue
            size = self._sum(
                cut, [int(c.bytes[space][q]) if q < c.count else 0 for c in self._all(cut)]
            )
            first, last = tasks[users[0]], tasks[users[-1]]
            model.box((self._at, "ring", q, space), first.start, last.end, first.there, size)

    def _weights_box(self, block: int, task: _Task) -> None:
        model = self._model
        end = model.time()
        sizes = [
            c.weight_bytes[block] if block < len(c.weight_bytes) else 0 for c in self.choices
        ]
        size = sum(s // _GRAIN * chosen for s, chosen in zip(sizes, self.chosen, strict=True))
        model.box((self._at, "weights", block), task.start, end, task.there, size)
        model.model.add(end >= task.end).only_enforce_if(task.there)
        for q, tile in enumerate(self._tiles):
            for cut, tasks in tile.tasks.items():
                ks = [k for k in self._of_cut[cut] if q < self.choices[k].count]
                there = self._by_block(q, ks).get(block)
                if there is None:
                    continue
                literal = self._any(there)
                for n, known in enumerate(self._patterns[cut].tasks):
                    if known.reads_weights:
                        model.model.add(end >= tasks[n].end).only_enforce_if(literal)

    def _all(self, cut: Cut) -> list[TileChoice]:
        return [self.choices[k] for k in self._of_cut[cut]]

    def _sum(self, cut: Cut, sizes: Sequence[int]) -> object:
        pairs = zip(sizes, self._of(cut), strict=True)
        return sum(-(-size // _GRAIN) * chosen for size, chosen in pairs)

    # What other layers must know

    def ends_of(
        self, number: int, access: Access
    ) -> list[tuple[cp_model.IntVar, _Task, _Reach]]:
        """The last task of every tile that writes a result."""
        found = []
        for q, tile in enumerate(self._tiles):
            for cut, tasks in tile.tasks.items():
                pattern = self._patterns[cut]
                last = next(
                    (
                        n
                        for n, t in reversed(list(enumerate(pattern.tasks)))
                        if (t.role == "store" and t.number == number)
                        or ("tensor", access.tensor) in t.writes
                    )
                )
                found.append((tile.there, tasks[last], self._reach(q, cut, access)))
        return found

    def starts_of(self, access: Access) -> list[tuple[_Task, cp_model.IntVar, _Reach]]:
        """The tasks that read a tensor first, for every tile or for all."""
        local = next(n for n, a in enumerate(self.layer.operands) if a is access)
        found = []
        for cut, pattern in self._patterns.items() if self._model.has_tasks else ():
            for n, task in enumerate(pattern.shared):
                if task.role == "load" and task.number == local:
                    reach = self._whole(access)
                    found.append((self._shared[cut][n], self._cut_there[cut], reach))
            for q, tile in enumerate(self._tiles):
                if cut not in tile.tasks:
                    continue
                for n, task in enumerate(pattern.tasks):
                    is_load = task.role == "load" and task.number == local
                    if is_load or ("tensor", access.tensor) in task.reads:
                        found.append(
                            (tile.tasks[cut][n], tile.there, self._reach(q, cut, access))
                        )
        return found

    def last_tasks(self) -> list[_Task]:
        """The last task of every tile."""
        return [tasks[-1] for tile in self._tiles for tasks in tile.tasks.values()]

    def total(self, values: Sequence[int]) -> object:
        """What follows from the choice that is made."""
        return sum(value * c for value, c in zip(values, self.chosen, strict=True))

    def users_of(self, tensor: int) -> list[_Task]:
        """The tasks that touch a tensor in L1."""
        return [
            tasks[n]
            for tile in self._tiles
            for cut, tasks in tile.tasks.items()
            for n, task in enumerate(self._patterns[cut].tasks)
            if ("tensor", tensor) in (*task.reads, *task.writes)
        ]

    def _whole(self, access: Access) -> _Reach:
        part = part_of(self.layer, access, None, None)
        return _Reach(part.first, part.last, None, self.layer.columns)

    def _reach(self, q: int, cut: Cut, access: Access) -> _Reach:
        """What a tile touches, over the choices in which it is there."""
        parts: list[Part] = []
        chosen: list[cp_model.IntVar] = []
        for k in self._of_cut[cut]:
            choice = self.choices[k]
            if q < choice.count:
                block, i = divmod(q, len(choice.tiles))
                parts.append(part_of(self.layer, access, choice.tiles[i], choice.blocks[block]))
                chosen.append(self.chosen[k])
        columns = None
        if parts[0].columns is not None:
            columns = (
                _choose(chosen, [p.columns[0] for p in parts if p.columns]),
                _choose(chosen, [sum(p.columns) for p in parts if p.columns]),
            )
        return _Reach(
            _choose(chosen, [p.first for p in parts]),
            _choose(chosen, [p.last for p in parts]),
            columns,
            self.layer.columns,
        )


def _choose(chosen: Sequence[cp_model.IntVar], values: Sequence[int]) -> object:
    if len(set(values)) == 1:
        return values[0]
    return sum(value * c for value, c in zip(values, chosen, strict=True))
