"""Races met while running: a second opinion on the static proof, from what the machine waits for.

Every byte remembers the step that wrote it last and the steps that read it since. When a step
touches a byte, whatever it conflicts with must lie before it in the graph of events; a search
backwards from the step decides that, and never looks further back than the other step ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.term_columns import distinct
from nacre.nem.model.program import Task
from nacre.nem.run.memory.task_footprints import TaskFootprints
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.spec.rules.running import RUN07

_NOBODY = -1


@dataclass(slots=True)
class _Shadow:
    """Who touched the bytes of a buffer."""

    writer: npt.NDArray[np.int32]  # a step and 1; 0: nobody
    readers: list[tuple[int, int, int]] = field(default_factory=list)  # step, low, high


class RaceDetector:
    """Watches the steps of a run."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._footprints = TaskFootprints(steps.plan)
        self._shadows: dict[int, _Shadow] = {}
        self._seen: dict[tuple[int, int], int] = {}  # pairs of positions, when they were met
        self._turn: dict[int, int] = {}  # when a step ran
        self.diagnostics: list[Diagnostic] = []  # one for every pair that was seen
        self._is_stale = False

    def note_step(self, step: int, task: Task, row: int, order: Sequence[int]) -> None:
        """A step ran; `order` are those before it."""
        if self._is_stale:
            self._replay(order)
        self._turn[step] = len(order)
        for buffer, _, low, high in self._footprints.touched_runs(task, row, "read"):
            self._record_read(step, buffer, low, high)
        for buffer, _, low, high in self._footprints.touched_runs(task, row, "write"):
            self._record_write(step, buffer, low, high)

    def note_undo(self, remaining: int) -> None:
        """Steps were taken back, all but the first so many."""
        self._seen = {pair: turn for pair, turn in self._seen.items() if turn < remaining}
        del self.diagnostics[len(self._seen) :]
        self._is_stale = True

    def _replay(self, order: Sequence[int]) -> None:
        """Who touched what, from the start: what was found stays found."""
        self._is_stale = False
        self._shadows.clear()
        self._turn.clear()
        for turn, step in enumerate(order):
            statement = self._steps.statement(step)
            if isinstance(statement, Task):
                self.note_step(step, statement, int(self._steps.row[step]), range(turn))

    def _shadow_of(self, buffer: int) -> _Shadow:
        if buffer not in self._shadows:
            size = self._steps.plan.program.buffers[buffer].size or 0
            self._shadows[buffer] = _Shadow(np.zeros(size, np.int32))
        return self._shadows[buffer]

    def _record_read(self, step: int, buffer: int, low: int, high: int) -> None:
        shadow = self._shadow_of(buffer)
        for writer in distinct(shadow.writer[low:high].astype(np.int64)).tolist():
            self._require_order(writer - 1, step, buffer, "reads", "writes")
        shadow.readers.append((step, low, high))

    def _record_write(self, step: int, buffer: int, low: int, high: int) -> None:
        shadow = self._shadow_of(buffer)
        for writer in distinct(shadow.writer[low:high].astype(np.int64)).tolist():
            self._require_order(writer - 1, step, buffer, "writes", "writes")
        readers = []
        for reader, first, last in shadow.readers:
            if first < high and low < last:
                self._require_order(reader, step, buffer, "writes", "reads")
            if first < low or high < last:  # some of its bytes keep their reader
                readers.append((reader, first, last))
        shadow.readers = readers
        shadow.writer[low:high] = step + 1

    def _require_order(self, earlier: int, later: int, buffer: int, verb: str, other: str) -> None:
        if earlier in (_NOBODY, later) or self._is_before(earlier, later):
            return
        pair = (int(self._steps.position[earlier]), int(self._steps.position[later]))
        if pair in self._seen:
            return
        self._seen[pair] = self._turn[later]
        program = self._steps.plan.program
        span, name = program.span, program.buffers[buffer].name
        first, second = self._steps.statement(earlier), self._steps.statement(later)
        self.diagnostics.append(
            RUN07.at(
                span(second.node),
                f"`{self._steps.name(later)}` {verb} bytes of `{name}` that "
                f"`{self._steps.name(earlier)}` {other}, and nothing made it wait",
                related=(Related(span(first.node), f"`{self._steps.name(earlier)}`"),),
                help="order the two with `deps`, `wait` or a smaller `@max_in_flight`",
            )
        )

    def _is_before(self, earlier: int, later: int) -> bool:
        """Whether the graph leads from one step to the other."""
        goal, oldest = int(self._steps.node[earlier]), self._turn[earlier]
        stack, seen = [int(self._steps.node[later])], set[int]()
        while stack:
            node = stack.pop()
            for source in self._steps.graph.before.of(node):
                if source == goal:
                    return True
                if source in seen:
                    continue
                seen.add(source)
                step = int(self._steps.step_of_node[source])
                # What ran before the goal cannot have the goal before it; a wait has no turn.
                if step == _NOBODY or self._turn.get(step, oldest + 1) > oldest:
                    stack.append(source)
        return False
