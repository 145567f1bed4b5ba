"""The exact bytes that an instance of a task touches, as the language counts them."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.nem.model.program import Access, Task
from nacre.nem.plan.footprints import Footprint, copies_elements
from nacre.nem.plan.plan import Plan

Touch = tuple[int, Access, int, int]  # buffer, access, bytes low..high


class Touching:
    """Footprints of a plan's tasks, made when they are first asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: dict[int, list[tuple[int, Access, Footprint]]] = {}

    def _footprints(self, task: Task) -> list[tuple[int, Access, Footprint]]:
        found = self._made.get(task.position)
        if found is None:
            found = []
            for operand in task.operands:
                buffer = operand.region.buffer if operand.region is not None else None
                made = self._plan.footprint_of(task, operand)
                if buffer is not None and made is not None:
                    found.append((buffer.index, operand.access, made))
            self._made[task.position] = found
        return found

    def of(self, task: Task, row: int, access: Access | None = None) -> Iterator[Touch]:
        """The runs of bytes of an instance; of one kind of access, or of both."""
        for buffer, kind, footprint in self._footprints(task):
            if access is None or kind == access:
                start = footprint.low_at(row)
                for low, high in footprint.pattern(row).runs.tolist():
                    yield buffer, kind, start + low, start + high

    def written(self, task: Task, row: int) -> Iterator[Touch]:
        """The runs that an instance really fills: a copy of bytes has no more than its source."""
        most = None
        if task.op in ("transfer", "store") and not copies_elements(task):
            most = sum(high - low for _, _, low, high in self.of(task, row, "read"))
        for buffer, kind, low, high in self.of(task, row, "write"):
            yield buffer, kind, low, high if most is None else min(high, low + most)
