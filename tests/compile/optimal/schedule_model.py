"""The tile of every layer, and the start of every task: one model for CP-SAT.

A task occupies its units for as long as the device's figures say, after all that wrote what it
reads. What lies in L1 takes room from its first task to its last. Tiles of a layer may come in any
order.
What plans must keep beside that, addresses and tokens, is left out: an optimum of this model is a
bound for every plan of this form, and an optimum itself where its answer, emitted, takes as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from ortools.sat.python import cp_model

from nacre.compile.options import Options
from nacre.compile.partition.stage import Partition
from tests.compile.optimal.chain_model import ChainModel
from tests.compile.optimal.layer_model import LayerModel, Reader
from tests.compile.optimal.model_writer import GRAIN, ModelWriter
from tests.compile.optimal.solution import Verdict
from tests.compile.optimal.tile_choices import (
    TileChoice,
    UnsupportedGraphError,
    work_of,
    writers_of,
)

_UNITS = ("NMU", "CSTL", "VPU", "DMA", "sDMA")


class ScheduleModel:
    """One graph, grouped in one way, with some tensors in L1.

    Without tasks it is a bound that is soon known: tiles, and what chains of them take.
    """

    def __init__(
        self,
        partition: Partition,
        options: Options,
        resident: frozenset[int],
        choices: Sequence[Sequence[TileChoice]],
        *,
        most_cycles: int,
        most_tasks: int,
        has_tasks: bool = True,
    ) -> None:
        self._partition, self._options, self._resident = partition, options, resident
        self._most_cycles = most_cycles
        self._writer = ModelWriter(most_cycles, options.l1_bytes, has_tasks=has_tasks)
        self._layers = [
            LayerModel(self._writer, at, layer, choices[at])
            for at, layer in enumerate(partition.layers)
        ]
        if has_tasks:
            self._order_layers()
            self._keep_residents()
            self._writer.limit_l1()
        ChainModel(self._writer, self._layers, partition, options)
        self._limit_units()
        self._limit_tasks(most_tasks)
        self._writer.model.minimize(self._writer.makespan)

    # What holds between layers

    def _order_layers(self) -> None:
        """Tiles of a layer after those of earlier ones that make what they read."""
        for at, reader in enumerate(self._layers):
            for access in reader.layer.operands:
                for index, number in writers_of(self._partition, access.tensor):
                    if index >= at:
                        continue
                    writer = self._layers[index]
                    result = writer.layer.results[number].access
                    makers = writer.makers_of(number, result)
                    for second in reader.readers_of(access):
                        for first in makers:
                            self._order_tiles(first, second)

    def _order_tiles(self, first: Reader, second: Reader) -> None:
        """One after the other, or they touch other elements."""
        writer, written, read = self._writer, first.reach, second.reach
        model = writer.model
        pairs = [(written.last, read.first), (read.last, written.first)]
        if written.columns is not None and read.columns is not None:
            if written.width != read.width:
                raise UnsupportedGraphError("columns of two kinds")
            pairs.append((written.columns[1], read.columns[0]))
            pairs.append((read.columns[1], written.columns[0]))
        apart = [writer.literal() for _ in pairs]
        for literal, (end, begin) in zip(apart, pairs, strict=True):
            model.add(end <= begin).only_enforce_if(literal)
        follows = writer.literal()
        model.add(second.task.start >= first.task.end).only_enforce_if(follows)
        absent = [first.task.there.negated(), second.task.there.negated()]
        model.add_bool_or([*apart, follows, *absent])

    def _keep_residents(self) -> None:
        """A tensor in L1 takes its room from the first task that writes it to the last user."""
        writer = self._writer
        for tensor in sorted(self._resident):
            start, end = writer.time(), writer.time()
            for one in self._layers:
                for task in one.users_of(tensor):
                    writer.model.add(start <= task.start).only_enforce_if(task.there)
                    writer.model.add(end >= task.end).only_enforce_if(task.there)
            size = -(-self._partition.tensors[tensor].bytes // GRAIN)
            writer.box(("tensor", tensor), start, end, writer.model.new_constant(1), size)

    def _limit_units(self) -> None:
        """No unit has two tasks at a time, or more work than time."""
        for unit in _UNITS:
            count = self._options.device.count(unit)
            self._writer.limit_unit(unit, count)
            work = [
                one.total([work_of(choice).get(unit, 0) for choice in one.choices])
                for one in self._layers
            ]
            self._writer.model.add(sum(work) <= count * self._writer.makespan)

    def _limit_tasks(self, most_tasks: int) -> None:
        tasks = [one.total([choice.tasks for choice in one.choices]) for one in self._layers]
        self._writer.model.add(sum(tasks) <= most_tasks)

    def solve(self, seconds: float) -> Verdict:
        """The fewest cycles that are found in so much time, as CP-SAT counts it."""
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = seconds
        solver.parameters.num_workers = 1
        solver.parameters.interleave_search = True
        solver.parameters.random_seed = 1
        # On small models what presolving finds is not worth its time.
        solver.parameters.cp_model_probing_level = 0
        solver.parameters.max_presolve_iterations = 1
        solver.parameters.merge_at_most_one_work_limit = 0
        solver.parameters.symmetry_level = 0
        status = solver.solve(self._writer.model)
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(self._writer.model.validate())
        took = solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            return Verdict(None, self._most_cycles + 1, True, took)
        bound = ceil(solver.best_objective_bound - 1e-6)
        if status == cp_model.UNKNOWN:
            return Verdict(None, bound, False, took)
        chosen = [
            next(k for k, literal in enumerate(one.chosen) if solver.value(literal))
            for one in self._layers
        ]
        found = self._writer.solution(solver, chosen)
        return Verdict(found, bound, status == cp_model.OPTIMAL, took)
