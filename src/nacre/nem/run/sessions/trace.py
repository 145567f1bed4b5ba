"""What ran, row by row: for tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from nacre.base.files import write_whole
from nacre.nem.run.sessions.state import dep_names, type_text
from nacre.nem.run.sessions.steps import Steps

COLUMNS = ("step", "task", "type", "status", "token", "deps", "iteration", "line")


def trace_rows(steps: Steps, order: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One row for every step taken."""
    for number, step in enumerate(order, 1):
        statement = steps.statement(step)
        token = getattr(statement, "token", None)
        name, debug = steps.name(step), steps.debug_name(step)
        yield {
            "step": number,
            "task": name,
            "type": type_text(steps, step),
            "status": "completed",
            "token": name if token is not None else None,
            "deps": dep_names(steps, step),
            "iteration": list(steps.iteration(step)),
            "line": steps.line(step),
            **({"debug": debug} if debug is not None else {}),
        }


def export_trace(steps: Steps, order: Sequence[int], path: Path) -> None:
    """Write a trace as JSON or CSV, by the file's ending."""
    write_by_ending(path, lambda: _as_json(steps, order), lambda: _as_csv(steps, order))


def write_by_ending(
    path: Path, as_json: Callable[[], Iterable[str]], as_csv: Callable[[], Iterable[str]]
) -> None:
    """Write the one or the other; ValueError for a file of another kind."""
    ending = path.suffix.lower()
    if ending not in (".json", ".csv"):
        raise ValueError(f"a trace ends in .json or .csv, found `{path.name}`")
    write_whole(path, as_json() if ending == ".json" else as_csv())


def _as_json(steps: Steps, order: Sequence[int]) -> Iterator[str]:
    name = json.dumps(steps.plan.program.source.name)
    yield f'{{"format": "nacre-trace-1", "mode": "functional", "program": {name}, "tasks": ['
    for number, row in enumerate(trace_rows(steps, order)):
        yield (",\n" if number else "\n") + json.dumps(row)
    yield "\n]}\n"


def _as_csv(steps: Steps, order: Sequence[int]) -> Iterator[str]:
    columns = (*COLUMNS, "debug") if steps.debug_names else COLUMNS
    rows = (
        [" ".join(map(str, v)) if isinstance(v := row.get(key), list) else v for key in columns]
        for row in trace_rows(steps, order)
    )
    return csv_lines(columns, rows)


def csv_lines(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A table as CSV, line by line."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([heading], rows):
        writer.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def recorded_order(text: str) -> list[str]:
    """The instances that a JSON trace names, in its order; ValueError says what is wrong."""
    try:
        trace = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no trace of nacre: {error}") from None
    rows = trace.get("tasks") if isinstance(trace, dict) else None
    entries = rows if isinstance(rows, list) else [None]
    named = [row.get("task") if isinstance(row, dict) else None for row in entries]
    names = [name for name in named if isinstance(name, str)]
    if len(names) < len(entries):
        raise ValueError("this is no trace of nacre: it has no list `tasks` of named tasks")
    return names
