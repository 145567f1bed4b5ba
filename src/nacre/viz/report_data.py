"""What the report page is made of: plain values, tasks as packed columns.

Tasks are numbered by statement and row, not by program order: the instances of a statement stand
side by side, and what is nearly the same in all of them packs well. Statements and grids are
numbered in the order of the text.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Buffer, Program, Task
from nacre.nem.plan.grid import TOP, Grid
from nacre.nem.run.sessions.naming import task_name
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import Timeline
from nacre.viz.blockers import NONE, blockers
from nacre.viz.occupancy import occupancy
from nacre.viz.packing import pack_column, pack_list
from nacre.viz.roofline import roofline
from nacre.viz.utilisation import UnitUse, utilisation

FORMAT = "nacre-report-1"
LONG_SOURCE = 200_000  # characters
MAX_WAITING = 200  # names of tasks that never started; more of them say nothing more


def report_data(result: TimedResult) -> dict[str, Any]:
    """Everything that the page shows, as values for JSON."""
    timeline = result.timeline
    program = timeline.steps.plan.program
    tasks = statement_tasks(timeline)
    columns = task_columns(timeline, tasks)
    return {
        "format": FORMAT,
        "program": program_name(program),
        "device": timeline.device.name,
        "status": result.status,
        "sentence": result.sentence(),
        "cycles": result.cycles,
        **program_text(timeline, tasks),
        "tasks": {name: pack_column(column) for name, column in columns.items()},
        "units": [_unit_row(use) for use in utilisation(timeline)],
        "memory": _memory(timeline),
        "bounds": _bounds(result),
        "critical": _critical(result, tasks),
        "roofline": _roofline(timeline, tasks),
        "waiting": result.waiting[:MAX_WAITING],
        "waiting_count": len(result.waiting),
        "profile": _profile(timeline),
    }


def program_text(timeline: Timeline, tasks: tuple[Task, ...]) -> dict[str, Any]:
    """The program: its source, its loops, its statements."""
    grids = [TOP, *timeline.steps.plan.grids.values()]
    number = {id(grid): index for index, grid in enumerate(grids)}
    return {
        "source": _source(timeline.steps.plan.program.source.text),
        "grids": [_grid_row(grid, number) for grid in grids],
        "statements": _statements(timeline, tasks, number),
    }


def statement_tasks(timeline: Timeline) -> tuple[Task, ...]:
    """The tasks of the program by their numbers as statements on the page."""
    tasks = timeline.steps.plan.program.tasks
    return tuple(task for task in tasks if task.position in timeline.steps.numbers)


def program_name(program: Program) -> str:
    """The name in the program's header, or that of its file."""
    header = program.document.header
    return program.source.name if header is None else header.name.name


def _source(text: str) -> str | dict[str, str]:
    """The program's text; that of a long one, which repeats itself, deflated."""
    if len(text) <= LONG_SOURCE:
        return text
    deflated = zlib.compress(text.encode("utf-8", "replace"))
    return {"deflated": base64.b64encode(deflated).decode("ascii")}


def _grid_row(grid: Grid, number: dict[int, int]) -> dict[str, Any]:
    """A grid as its trip counts and first values: the page rebuilds the rows from them."""
    if grid.parent is None:
        return {"parent": NONE, "rows": grid.rows}
    counts = np.bincount(grid.parent_row, minlength=grid.parent.rows)
    first = grid.values[-1][np.searchsorted(grid.parent_row, np.arange(grid.parent.rows))]
    return {
        "parent": number[id(grid.parent)],
        "rows": grid.rows,
        "variable": grid.loops[-1].variable.name,
        "counts": pack_column(counts),
        "first": pack_column(first),
    }


def _statements(
    timeline: Timeline, tasks: tuple[Task, ...], grid_number: dict[int, int]
) -> dict[str, Any]:
    """Columns over the statements; what they depend on is counted backwards from each."""
    program = timeline.steps.plan.program
    number = {task.position: index for index, task in enumerate(tasks)}
    locations = [program.span(task.node).location for task in tasks]
    ops = sorted({task.op for task in tasks})
    deps = [[i - number[d] for d in dict.fromkeys(t.deps)] for i, t in enumerate(tasks)]
    return {
        "name": [task_name(program, task) for task in tasks],
        **_debug_names(tasks),
        "ops": ops,
        "op": pack_list(ops.index(task.op) for task in tasks),
        "line": pack_list(location.line for location in locations),
        "lines": pack_list(location.end_line - location.line for location in locations),
        "grid": pack_list(grid_number[id(timeline.steps.grid(task))] for task in tasks),
        "dep_count": pack_list(len(entry) for entry in deps),
        "dep": pack_list(back for entry in deps for back in entry),
    }


def _debug_names(tasks: tuple[Task, ...]) -> dict[str, Any]:
    """What `@debug` calls the statements: the names, and for each statement its name's number."""
    by_statement = [task.debug_name for task in tasks]
    names = list(dict.fromkeys(name for name in by_statement if name is not None))
    if not names:
        return {}
    number = {name: index for index, name in enumerate(names)}
    return {
        "debug_names": names,
        "debug": pack_list(NONE if name is None else number[name] for name in by_statement),
    }


def _order(timeline: Timeline, tasks: tuple[Task, ...]) -> Column:
    """The steps of the tasks in the page's order."""
    numbers = [timeline.steps.numbers[task.position] for task in tasks]
    return np.concatenate([np.zeros(0, np.int64), *numbers])


def task_columns(timeline: Timeline, tasks: tuple[Task, ...]) -> dict[str, Column]:
    """Columns over the tasks; a task that never started starts at -1 and waited for nothing."""
    order = _order(timeline, tasks)
    page_number = np.full(timeline.steps.count + 1, NONE, np.int64)
    page_number[order] = np.arange(order.size)
    has_started = timeline.start[order] >= 0
    stalls = timeline.stalls
    return {
        "start": timeline.start[order],
        "duration": np.where(has_started, timeline.end[order] - timeline.start[order], 0),
        "unit": timeline.unit[order, 0],
        "second_unit": timeline.unit[order, 1],
        "window": np.where(has_started, stalls.window[order], 0),
        "dependence": np.where(has_started, stalls.dependence[order], 0),
        "token": np.where(has_started, stalls.token[order], 0),
        "unit_wait": np.where(has_started, stalls.unit[order], 0),
        "blocker": page_number[blockers(timeline)[order]],
    }


def _unit_row(use: UnitUse) -> dict[str, Any]:
    return {
        "name": use.name,
        "unit": use.unit,
        "engine": use.engine,
        "busy": use.busy,
        "tasks": use.tasks,
        "idle": use.idle,
    }


def _memory(timeline: Timeline) -> list[dict[str, Any]]:
    return [
        {
            "place": memory.place,
            "capacity": memory.capacity,
            "peak": memory.peak,
            "times": pack_column(memory.times),
            "alive": pack_column(memory.alive),
            "buffers": {
                "name": [_buffer_name(life.buffer) for life in memory.buffers],
                "size": [life.buffer.size or 0 for life in memory.buffers],
                "first": [life.begin for life in memory.buffers],
                "last": [life.end for life in memory.buffers],
            },
        }
        for memory in occupancy(timeline)
    ]


def _buffer_name(buffer: Buffer) -> str:
    """A buffer's name and, where it has one, the name that `@debug` gives it."""
    debug = buffer.debug_name
    return buffer.name if debug is None else f"{buffer.name} ({debug})"


def _bounds(result: TimedResult) -> dict[str, Any]:
    b = result.bounds
    kinds = {"compute": b.compute, "dma": b.dma, "ddr": b.ddr, "chain": b.chain}
    return {"kinds": kinds, "units": {name: cycles for name, cycles in b.by_unit.items() if cycles}}


def _critical(result: TimedResult, tasks: tuple[Task, ...]) -> dict[str, Any]:
    """The path's tasks in the page's numbers, and the first letter of each one's cause."""
    order = _order(result.timeline, tasks)
    page_number = np.full(result.timeline.steps.count, NONE, np.int64)
    page_number[order] = np.arange(order.size)
    path = np.array([link.step for link in result.critical_path], np.int64)
    causes = "".join(link.cause[0] for link in result.critical_path)
    return {"task": pack_column(page_number[path]), "cause": causes}


def _roofline(timeline: Timeline, tasks: tuple[Task, ...]) -> dict[str, Any] | None:
    chart = roofline(timeline)
    if chart is None:
        return None
    number = {task.position: index for index, task in enumerate(tasks)}
    return {
        "border": chart.border,
        "bytes_per_cycle": chart.bytes_per_cycle,
        "roofs": [{"types": r.types, "macs_per_cycle": r.macs_per_cycle} for r in chart.roofs],
        "points": {
            "statement": [number[p.position] for p in chart.points],
            "macs": [p.macs for p in chart.points],
            "bytes": [round(p.bytes_moved, 3) for p in chart.points],
            "busy": [p.busy for p in chart.points],
        },
        "macs": chart.macs,
        "bytes": chart.bytes_moved,
    }


def _profile(timeline: Timeline) -> list[list[Any]]:
    """The figures that the times rest on, with their sources."""
    profile = timeline.profile
    return [
        [f"{unit}.{key}", value, profile.sources.get((unit, key), "")]
        for (unit, key), value in profile.figures.items()
    ]
