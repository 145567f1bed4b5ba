"""Traces of timed runs as JSON and CSV, streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from nacre.nem.model.program import Task
from nacre.nem.run.sessions.state import type_text
from nacre.nem.run.sessions.trace import csv_lines, write_by_ending
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.text import CAUSES, TRACE_COLUMNS, trace_rows

CSV_COLUMNS = (
    *(name.lower() for name in TRACE_COLUMNS),
    *(f"stall_{c}" for c in CAUSES),
)


def export_timed(
    result: TimedResult, order: Sequence[int], path: Path, status: str = "finished"
) -> None:
    """Write a trace as JSON or CSV, by the file's ending; of a part of a run, what ran of it."""
    status_ = result.status if status == "finished" else status
    write_by_ending(
        path, lambda: json_parts(result, order, status_), lambda: csv_parts(result, order)
    )


def json_parts(result: TimedResult, order: Sequence[int], status: str) -> Iterator[str]:
    """Tasks in the order of their starts, then units, bounds and the critical path."""
    steps = result.timeline.steps
    head = {
        "format": "nacre-trace-1",
        "mode": "timed",
        "program": steps.plan.program.source.name,
        "device": result.timeline.device.name,
        "status": status,
        "cycles": result.cycles_of(order),
    }
    yield json.dumps(head)[:-1] + ', "tasks": ['
    separator = "\n"
    for step in order:
        row = {"task": steps.name(step), "type": type_text(steps, step)}
        if isinstance(steps.statement(step), Task):
            row |= result.task_row(step)
        yield separator + json.dumps(row)
        separator = ",\n"
    bounds = result.bounds
    tail = {
        "units": result.units,
        "bounds": {
            "compute": bounds.compute,
            "dma": bounds.dma,
            "ddr": bounds.ddr,
            "chain": bounds.chain,
        },
        "critical_path": [steps.name(link.step) for link in result.critical_path],
    }
    yield "\n], " + json.dumps(tail)[1:] + "\n"


def csv_parts(result: TimedResult, order: Sequence[int]) -> Iterator[str]:
    """The columns of the interpreter text, and the stalls."""
    stalls, steps = result.timeline.stalls, result.timeline.steps
    tasks = [step for step in order if isinstance(steps.statement(step), Task)]
    columns = [getattr(stalls, cause) for cause in CAUSES]
    named = bool(steps.debug_names)  # else nobody needs the column
    rows = (
        (*row[:-1], *(int(column[step]) for column in columns), *row[-1:][:named])
        for row, step in zip(trace_rows(result, tasks), tasks, strict=True)
    )
    return csv_lines((*CSV_COLUMNS, *["debug"][:named]), rows)
