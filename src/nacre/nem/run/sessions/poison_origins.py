"""Where bytes that nobody wrote came from: back through the copies that carried them along.

Copies pass on which bytes have been written and computing writes all of its outputs, so that the
last to touch a byte that counts as unwritten is a copy, or nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from nacre.base.diagnostics import Related
from nacre.base.term_columns import Column
from nacre.nem.model.program import Buffer, Operand, Task
from nacre.nem.run.machine.signatures import extents, offsets
from nacre.nem.run.sessions.gaps import Gap, Origin
from nacre.nem.run.sessions.stepper import Stepper

# Copies between strided regions are tried one by one; a chain of more copies is cut.
_MOST_TRIED = 1000
_MOST_COPIES = 8


class PoisonOrigins:
    """Answers for the steps that a session has taken."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self.steps = stepper.steps

    def origin_of(self, gap: Gap, reader: Task | None, row: int) -> Origin:
        """Where a gap came from, as seen before the instance that reads it, or now."""
        step = None if reader is None else int(self.steps.numbers[reader.position][row])
        steps_taken = self._stepper.steps_before(step)
        rank = np.full(self.steps.count, -1, np.int64)
        rank[steps_taken] = np.arange(len(steps_taken))
        copies: list[tuple[int, Gap]] = []
        before = len(steps_taken)
        while len(copies) < _MOST_COPIES:
            copy = self._last_copy(gap, rank, before)
            if copy is None:
                break
            before = int(rank[copy[0]])
            copies.append(copy)
            gap = copy[1]
        return self._describe(copies, gap, self._first_pending_write(gap, rank))

    def _describe(self, copies: list[tuple[int, Gap]], begin: Gap, later: int | None) -> Origin:
        """The copies, the latest first, and the buffer or the task that comes too late."""
        name, program = self.steps.name, self.steps.plan.program
        parts = [f"`{name(step)}` copied them from {gap}" for step, gap in copies]
        nodes = [self.steps.statement(step).node for step, _ in copies]
        related = [
            Related(program.span(node), part) for node, part in zip(nodes, parts, strict=True)
        ]
        if later is None:
            node, late = begin.buffer.node.name, f"neither a task nor the host has filled {begin}"
            remedy = f"fill `{begin.buffer.name}`"
            related.append(Related(program.span(node), late))
        else:
            late = f"`{name(later)}` writes {begin}, but has not run yet"
            remedy = f"wait for `{name(later)}`, which writes {begin}, before they are read"
            related.append(Related(program.span(self.steps.statement(later).node), late))
        sentence = "; " + ", where ".join(parts) if parts else ""
        return Origin(sentence, tuple(related), remedy)

    def _last_copy(self, gap: Gap, rank: Column, before: int) -> tuple[int, Gap] | None:
        """The last copy onto a gap's first byte, and what it copied."""
        writers = []
        for task, operand in self._writing_operands(gap.buffer):
            if task.op in ("transfer", "store"):
                steps = self._steps_covering(task, operand, gap.low)
                ranks = rank[steps]
                writers += steps[(ranks >= 0) & (ranks < before)].tolist()
        latest = sorted(writers, key=lambda step: rank[step], reverse=True)
        for step in islice(latest, _MOST_TRIED):
            position, row = int(self.steps.position[step]), int(self.steps.row[step])
            action = self._stepper.machine.action(position)
            source = None if action is None else action.source_of(row, gap.low)
            if source is not None:
                storage, low, size = source
                return step, Gap(storage, low, low + min(size, gap.high - gap.low))
        return None

    def _first_pending_write(self, gap: Gap, rank: Column) -> int | None:
        """The first step that writes a gap's first byte and has not been taken."""
        left = [
            int(steps[rank[steps] < 0].min())
            for task, operand in self._writing_operands(gap.buffer)
            if (steps := self._steps_covering(task, operand, gap.low)).size
            and (rank[steps] < 0).any()
        ]
        return min(left, default=None)

    def _writing_operands(self, buffer: Buffer) -> Iterator[tuple[Task, Operand]]:
        for task in self.steps.plan.program.tasks:
            for operand in task.operands:
                region = operand.region
                if operand.access == "write" and region is not None and region.buffer is buffer:
                    yield task, operand

    def _steps_covering(self, task: Task, operand: Operand, byte: int) -> Column:
        """The steps of a task whose region holds a byte."""
        region, grid = operand.region, self.steps.grid(task)
        if region is None:
            return np.zeros(0, np.int64)
        low = np.broadcast_to(np.asarray(offsets(region, grid)), (grid.rows,))
        size = np.broadcast_to(np.asarray(extents(region, grid)), (grid.rows,))
        covering: Column = self.steps.numbers[task.position][(low <= byte) & (byte < low + size)]
        return covering
