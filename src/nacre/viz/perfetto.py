"""A timed run as a Perfetto trace: a track per unit, flows for dependences, counters.

The format is protobuf; the few messages that a trace needs are written by hand, packet by packet,
so that a million events stream to a file without any of them being held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from nacre.base.files import write_whole
from nacre.nem.model.program import Task
from nacre.nem.run.timing.counters import Counter, counters
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import Timeline

_SEQUENCE = 1
_BEGIN, _END, _COUNTER = 1, 2, 4
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_UNITS, _COUNTERS = 1, 2  # tracks above the others
_FIRST_UNIT, _FIRST_COUNTER = 16, 1 << 20


def varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number_field(field: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(field << 3) + varint(value)


def fixed64_field(field: int, value: int) -> bytes:
    """A field that holds eight bytes."""
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def bytes_field(field: int, content: bytes) -> bytes:
    """A field that holds bytes, a string or another message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def text_field(field: int, value: str) -> bytes:
    """A field that holds a string."""
    return bytes_field(field, value.encode())


def packet(content: bytes) -> bytes:
    """A packet of the trace."""
    return bytes_field(1, content + number_field(10, _SEQUENCE))


def write_perfetto(result: TimedResult, path: Path) -> None:
    """Write a trace file; one cycle is shown as a nanosecond."""
    write_whole(path, packets(result))


def packets(result: TimedResult) -> Iterator[bytes]:
    """The trace, packet by packet, in the order of time on every track."""
    timeline = result.timeline
    yield packet(number_field(13, _STATE_CLEARED) + bytes_field(12, _interned_names(timeline)))
    yield from _tracks(timeline)
    yield from _slices(timeline)
    for index, counter in enumerate(counters(timeline)):
        yield from _counter_events(_FIRST_COUNTER + index, counter)


def _tracks(timeline: Timeline) -> Iterator[bytes]:
    program = timeline.steps.plan.program.source.name
    yield _track(_UNITS, f"{program} on {timeline.device.name}")
    for pool in timeline.placement.pools:
        for instance in range(pool.first, pool.first + pool.count):
            yield _track(_FIRST_UNIT + instance, pool.name(instance), _UNITS)


def _track(uuid: int, name: str, parent: int | None = None, extra: bytes = b"") -> bytes:
    above = b"" if parent is None else number_field(5, parent)
    return packet(bytes_field(60, number_field(1, uuid) + text_field(2, name) + above + extra))


def _interned_names(timeline: Timeline) -> bytes:
    """The names of statements, by their positions: events refer to them by number."""
    steps = timeline.steps
    tasks = [s for s in steps.statements.values() if isinstance(s, Task)]
    names = b"".join(
        bytes_field(2, number_field(1, task.position + 1) + text_field(2, task.token or task.op))
        for task in tasks
    )
    return names + b"".join(
        bytes_field(3, number_field(1, i) + text_field(2, key)) for i, key in enumerate(_NOTES, 1)
    )


_NOTES = ("iteration", "line", "window", "dependence", "token", "unit", "debug")


def _slices(timeline: Timeline) -> Iterator[bytes]:
    """Begin and end of every task on its units, by time; ends before begins."""
    steps = timeline.steps
    busy = np.flatnonzero((timeline.unit[:, 0] >= 0) & (timeline.start >= 0))
    order = np.lexsort(
        (
            np.concatenate([busy, busy]),
            np.concatenate([np.ones(busy.size), np.zeros(busy.size)]),
            np.concatenate([timeline.start[busy], timeline.end[busy]]),
        )
    )
    flows = _Flows(timeline)
    for entry in order.tolist():
        is_begin = entry < busy.size
        step = int(busy[entry % busy.size])
        for unit in timeline.unit[step].tolist():
            if unit < 0:
                continue
            track = number_field(11, _FIRST_UNIT + unit)
            if is_begin:
                event = (
                    number_field(9, _BEGIN)
                    + number_field(10, int(steps.position[step]) + 1)
                    + track
                )
                event += _annotations(timeline, step) + flows.at(step)
                yield _event_packet(int(timeline.start[step]), event)
            else:
                yield _event_packet(int(timeline.end[step]), number_field(9, _END) + track)


def _event_packet(time: int, event: bytes) -> bytes:
    return packet(number_field(8, time) + bytes_field(11, event) + number_field(13, _NEEDS_STATE))


def _annotations(timeline: Timeline, step: int) -> bytes:
    stalls = timeline.stalls
    iteration = timeline.steps.iteration(step)
    notes = (
        [bytes_field(4, number_field(1, 1) + text_field(6, ",".join(map(str, iteration))))]
        if iteration
        else []
    )
    notes.append(bytes_field(4, number_field(1, 2) + number_field(3, timeline.steps.line(step))))
    columns = (stalls.window, stalls.dependence, stalls.token, stalls.unit)
    for iid, column in enumerate(columns, 3):
        if column[step]:
            notes.append(bytes_field(4, number_field(1, iid) + number_field(3, int(column[step]))))
    debug = timeline.steps.debug_name(step)
    if debug is not None:
        notes.append(bytes_field(4, number_field(1, len(_NOTES)) + text_field(6, debug)))
    return b"".join(notes)


class _Flows:
    """Arrows from a task to those that name its token: one flow a pair of statements."""

    def __init__(self, timeline: Timeline) -> None:
        self._steps = timeline.steps
        self._tasks = timeline.steps.plan.program.task_at
        self._named = {d for task in self._tasks.values() for d in task.deps}

    def at(self, step: int) -> bytes:
        """The flows that begin or end at a step; a flow is known by the step that makes it."""
        statement = self._steps.statement(step)
        flows = fixed64_field(47, step + 1) if statement.position in self._named else b""
        if not isinstance(statement, Task):
            return flows
        grid, row = self._steps.grid(statement), np.array([self._steps.row[step]])
        for dep in statement.deps:
            above = grid.row_in(self._steps.grid(self._tasks[dep]), row)
            flows += fixed64_field(47, int(self._steps.numbers[dep][above[0]]) + 1)
        return flows


def _counter_events(uuid: int, counter: Counter) -> Iterator[bytes]:
    yield _track(uuid, counter.name, None, bytes_field(8, b""))
    for time, value in _changes(counter):
        event = number_field(9, _COUNTER) + number_field(11, uuid) + number_field(30, value)
        yield _event_packet(time, event)


def _changes(counter: Counter) -> Iterable[tuple[int, int]]:
    return zip(counter.time.tolist(), counter.value.tolist(), strict=True)
