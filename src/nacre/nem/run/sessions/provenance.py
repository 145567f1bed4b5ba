"""Who wrote what: found from the order of the steps taken, so that running costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nacre.nem.model.program import Task
from nacre.nem.run.memory.memory import Storage
from nacre.nem.run.memory.regions import LocatedRegion
from nacre.nem.run.memory.task_footprints import TaskFootprints
from nacre.nem.run.sessions.stepper import HostWrite
from nacre.nem.run.sessions.steps import Steps

_NOBODY, _HOST = -1, -2


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """A run of bytes, counted from the start of the buffer, and its last writer."""

    low: int
    high: int
    writer: str | None  # an instance such as `tC[3]`; "host"; None: nobody
    line: int | None  # of the task
    step: int | None  # how many steps came before it in this run


def who_wrote(
    located: LocatedRegion,
    steps: Steps,
    order: Sequence[int],
    host_writes: Sequence[HostWrite],
    storage: Storage,
) -> list[WrittenRun]:
    """The last writer of every byte of a region, neighbours with one writer together."""
    footprints = TaskFootprints(steps.plan)
    writer = np.full(located.extent, _NOBODY, np.int64)
    turn = np.full(located.extent, -1, np.int64)
    written = storage.written[located.offset : located.end]
    # Where nothing is missing, steps need not have marked what they wrote.
    unknown = written.copy() if storage.missing else np.ones_like(written)
    hosts = [w for w in host_writes if w[1] is storage]
    for number in range(len(order), -1, -1):
        if not unknown.any():
            break
        # What the host wrote after so many steps is younger than the step before it.
        for after, _, low, high in hosts:
            if after == number:
                _mark_writer(unknown, writer, turn, located, low, high, _HOST, -1)
        if number == 0:
            break
        step = order[number - 1]
        statement = steps.statement(step)
        if isinstance(statement, Task):
            for buffer, _, low, high in footprints.written_runs(statement, int(steps.row[step])):
                if buffer == located.buffer.index:
                    _mark_writer(unknown, writer, turn, located, low, high, step, number - 1)
    writer[unknown & written] = _HOST  # written before the session's first step
    return _written_runs(writer, turn, located, steps)


def _mark_writer(
    unknown: np.ndarray, writer: np.ndarray, turn: np.ndarray, located: LocatedRegion,
    low: int, high: int, who: int, when: int,
) -> None:  # fmt: skip
    """Bytes of the region that nobody younger wrote belong to this writer."""
    first, last = max(low, located.offset), min(high, located.end)
    if first >= last:
        return
    part = slice(first - located.offset, last - located.offset)
    fresh = unknown[part].copy()
    writer[part][fresh] = who
    turn[part][fresh] = when
    unknown[part] = False


def _written_runs(
    writer: np.ndarray, turn: np.ndarray, located: LocatedRegion, steps: Steps
) -> list[WrittenRun]:
    changes = np.flatnonzero((np.diff(writer) != 0) | (np.diff(turn) != 0)) + 1
    edges = [0, *changes.tolist(), writer.size]
    runs = []
    for low, high in pairwise(edges):
        step = int(writer[low])
        is_task = step >= 0
        name = steps.name(step) if is_task else "host" if step == _HOST else None
        runs.append(
            WrittenRun(
                located.offset + low,
                located.offset + high,
                name,
                steps.line(step) if is_task else None,
                int(turn[low]) if is_task else None,
            )
        )
    return runs
