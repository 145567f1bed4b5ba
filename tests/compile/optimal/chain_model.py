"""Bounds of chains as constraints: they follow from the rest, and make it proved sooner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from nacre.compile.options import Options
from nacre.compile.partition.stage import Partition
from tests.compile.optimal.chain_bounds import TileBounds, reads_all_rows, tile_bounds
from tests.compile.optimal.layer_model import LayerModel
from tests.compile.optimal.model_writer import ModelWriter, Sum
from tests.compile.optimal.tile_choices import writers_of


@dataclass(frozen=True, eq=False)
class _Run:
    """Layers of which each reads all that the one before it makes."""

    begins: Sum  # when the first of them may begin
    layers: tuple[tuple[LayerModel, list[TileBounds]], ...]


class ChainModel:
    """Chains of tiles before and behind the work of every unit, through runs of layers."""

    def __init__(
        self,
        writer: ModelWriter,
        layers: Sequence[LayerModel],
        partition: Partition,
        options: Options,
    ) -> None:
        self._writer, self._partition, self._options = writer, partition, options
        self._firsts = [writer.time() for _ in layers]  # when the first tile is done
        self._lasts = [writer.time() for _ in layers]  # when all are
        self._runs: list[list[_Run]] = [[] for _ in layers]  # that end in a layer
        for at, layer in enumerate(layers):
            self._add_layer(at, layer)

    def _add_layer(self, at: int, one: LayerModel) -> None:
        model = self._writer.model
        first, last = self._firsts[at], self._lasts[at]
        model.add(last <= self._writer.makespan)
        model.add(first <= last)
        for task in one.last_tasks():
            model.add(task.end >= first).only_enforce_if(task.there)
            model.add(task.end <= last).only_enforce_if(task.there)
        for local in range(len(one.layer.operands)):
            self._add_operand(at, one, local)

    def _add_operand(self, at: int, one: LayerModel, local: int) -> None:
        model, access = self._writer.model, one.layer.operands[local]
        writers = [w for w, _ in writers_of(self._partition, access.tensor) if w < at]
        if len(writers) > 1:
            return
        is_one_way = not writers and self._options.device.count("sDMA") == 1
        bounds = [
            tile_bounds(choice, access.tensor, local, is_one_way=is_one_way)
            for choice in one.choices
        ]
        begins: Sum = self._firsts[writers[0]] if writers else 0
        chain = one.total([b.chain for b in bounds])
        model.add(self._firsts[at] >= begins + chain)
        for reader in one.readers_of(access):
            model.add(reader.task.start >= begins).only_enforce_if(reader.task.there)
        runs = [_Run(begins, ((one, bounds),))]
        if writers and reads_all_rows(one.layer, access):
            model.add(self._lasts[at] >= self._lasts[writers[0]] + chain)
            before = self._runs[writers[0]]
            runs += [_Run(run.begins, (*run.layers, (one, bounds))) for run in before]
        for run in runs:
            self._bound_run(run, self._lasts[at])
        self._runs[at] += runs

    def _bound_run(self, run: _Run, end: cp_model.IntVar) -> None:
        """The work of each unit in some layers, behind what comes before and before the rest."""
        (first, before), (last, behind) = run.layers[0], run.layers[-1]
        units = {unit for b in before for unit in b.work} & {u for b in behind for u in b.work}
        for unit in sorted(units):
            count = self._options.device.count(unit)
            parts = [one.total([b.work.get(unit, 0) for b in of]) for one, of in run.layers]
            parts.append(first.total([count * b.before.get(unit, 0) for b in before]))
            parts.append(last.total([count * b.behind.get(unit, 0) for b in behind]))
            self._writer.model.add(count * (end - run.begins) >= sum(parts))
