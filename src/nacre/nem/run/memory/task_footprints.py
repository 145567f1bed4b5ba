"""The exact bytes that an instance of a task touches, as the language counts them."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.elements import bytes_needed
from nacre.nem.model.program import Access, Task
from nacre.nem.plan.calls import lookup_at, tensor_type
from nacre.nem.plan.decompression import compressed_source
from nacre.nem.plan.footprints import Footprint, copies_elements
from nacre.nem.plan.plan import Plan

TouchedRun = tuple[int, Access, int, int]  # buffer, access, bytes low..high


class TaskFootprints:
    """Footprints of a plan's tasks, made when they are first asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._by_task: dict[int, list[tuple[int, Access, Footprint]]] = {}

    def _footprints_of_task(self, task: Task) -> list[tuple[int, Access, Footprint]]:
        footprints = self._by_task.get(task.position)
        if footprints is None:
            footprints = []
            for operand in task.operands:
                buffer = operand.region.buffer if operand.region is not None else None
                footprint = self._plan.footprint_of(task, operand)
                if buffer is not None and footprint is not None:
                    footprints.append((buffer.index, operand.access, footprint))
            self._by_task[task.position] = footprints
        return footprints

    def touched_runs(
        self, task: Task, row: int, access: Access | None = None
    ) -> Iterator[TouchedRun]:
        """The runs of bytes of an instance; of one kind of access, or of both."""
        for buffer, kind, footprint in self._footprints_of_task(task):
            if access is None or kind == access:
                start = footprint.low_at(row)
                for low, high in footprint.pattern(row).runs.tolist():
                    yield buffer, kind, start + low, start + high

    def _decompressed_bytes(self, task: Task, row: int) -> int | None:
        """What a transfer that decompresses fills; None where elements find their places."""
        source, grid = compressed_source(task), self._plan.grid_of(task.loops)
        if source is None or grid is None or copies_elements(task):
            return None
        type_ = tensor_type(source, lookup_at((*(source.shape or ()), source.quant), grid, row))
        return bytes_needed(type_.count, type_.elem)

    def written_runs(self, task: Task, row: int) -> Iterator[TouchedRun]:
        """The runs that an instance really fills: a copy of bytes has no more than its source."""
        most = None
        if compressed_source(task) is not None:
            most = self._decompressed_bytes(task, row)
        elif task.op in ("transfer", "store") and not copies_elements(task):
            most = sum(high - low for _, _, low, high in self.touched_runs(task, row, "read"))
        for buffer, kind, low, high in self.touched_runs(task, row, "write"):
            yield buffer, kind, low, high if most is None else min(high, low + most)
