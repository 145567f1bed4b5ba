"""Quantities over time: bytes in use in every memory, tokens alive on every engine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Buffer
from nacre.nem.run.timing.prepare import named_steps
from nacre.nem.run.timing.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Counter:
    """A value that holds from each time to the next."""

    name: str
    time: Column
    value: Column


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When a buffer was in use: from its first touch to its last."""

    buffer: Buffer
    begin: int
    end: int


def lifetimes(timeline: Timeline) -> list[Lifetime]:
    """When each buffer was in use. What no task writes the host has filled: it lives from 0."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    written: set[int] = set()
    for task in timeline.steps.plan.program.tasks:
        rows = timeline.steps.numbers[task.position]
        started = rows[timeline.start[rows] >= 0]
        if not started.size:
            continue
        first, last = int(timeline.start[started].min()), int(timeline.end[started].max())
        for operand in task.operands:
            buffer = operand.region.buffer if operand.region is not None else None
            if buffer is not None:
                begin[buffer.index] = min(first, begin.get(buffer.index, first))
                end[buffer.index] = max(last, end.get(buffer.index, 0))
                if operand.access == "write":
                    written.add(buffer.index)
    return [
        Lifetime(b, begin[b.index] if b.index in written else 0, end[b.index])
        for b in timeline.steps.plan.program.buffers
        if b.index in begin
    ]


def counters(timeline: Timeline) -> list[Counter]:
    """Every quantity: memories in the order of the levels, then engines."""
    return [*memory_counters(timeline), *token_counters(timeline)]


def memory_counters(timeline: Timeline) -> list[Counter]:
    """Bytes of buffers in use, memory by memory."""
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for life in lifetimes(timeline):
        size = life.buffer.size or 0
        changes[life.buffer.memory] += [(life.begin, size), (life.end, -size)]
    counters = []
    for memory in sorted(changes, key=lambda m: {"DDR": 0, "L2": 1}.get(m, 2)):
        times, amounts = (np.array(part, np.int64) for part in zip(*changes[memory], strict=True))
        counters.append(_running_sum(f"{memory} bytes", times, amounts))
    return counters


def token_counters(timeline: Timeline) -> list[Counter]:
    """Tokens alive: from the start of a task until it is complete and all that name it started."""
    steps = timeline.steps
    named, namer = named_steps(steps)
    released = timeline.end.copy()
    # A token whose namer never starts stays taken to the end.
    named_at = np.where(timeline.start[namer] < 0, timeline.cycles, timeline.start[namer])
    np.maximum.at(released, named, named_at)
    has_token = np.zeros(steps.count, np.bool_)
    for task in steps.plan.program.tasks:
        if task.token is not None:
            has_token[steps.numbers[task.position]] = True
    alive = has_token & (timeline.start >= 0)
    counters = []
    for engine in range(timeline.device.num_engines):
        mine = np.flatnonzero(alive & (timeline.placement.engine == engine))
        if mine.size:
            times = np.concatenate([timeline.start[mine], released[mine]])
            amounts = np.concatenate([np.ones(mine.size, np.int64), -np.ones(mine.size, np.int64)])
            counters.append(_running_sum(f"tokens of engine {engine}", times, amounts))
    return counters


def _running_sum(name: str, times: Column, amounts: Column) -> Counter:
    """The running sum after all changes of each time."""
    order = np.argsort(times, kind="stable")
    times, totals = times[order], np.cumsum(amounts[order])
    last = np.append(np.flatnonzero(np.diff(times)), times.size - 1)
    return Counter(name, times[last], totals[last])
