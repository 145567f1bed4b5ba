"""A timed run as text for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from nacre.nem.model.program import Task
from nacre.nem.run.sessions.naming import task_name
from nacre.nem.run.sessions.state import type_text
from nacre.nem.run.sessions.tables import align_table, align_table_with_debug
from nacre.nem.run.timing.result import TimedResult

_SHOWN_LINKS = 12
Nodes = Mapping[str, str]  # of a model, by the tokens of the statements that compute them
CAUSES = ("window", "dependence", "token", "unit")


def trace_rows(
    result: TimedResult, order: Sequence[int] | None = None
) -> Iterator[tuple[object, ...]]:
    """Step, task, type, start, end, unit, engine, debug: one row a task, by their starts."""
    timeline = result.timeline
    number = 0
    for step in timeline.order.tolist() if order is None else order:
        if timeline.start[step] < 0 or not isinstance(timeline.steps.statement(step), Task):
            continue
        number += 1
        units = "+".join(name.partition("@")[0] for name in result.unit_names(step))
        yield (
            number,
            timeline.steps.name(step),
            type_text(timeline.steps, step),
            int(timeline.start[step]),
            int(timeline.end[step]),
            units,
            "-" if result.is_on_device(step) else int(timeline.placement.engine[step]),
            timeline.steps.debug_name(step),
        )


TRACE_COLUMNS = ("Step", "Task", "Type", "Start", "End", "Unit", "Engine")


def trace_table(result: TimedResult, order: Sequence[int] | None = None) -> str:
    """Every task (of those that ran so far) with its start, end and unit."""
    return align_table_with_debug(TRACE_COLUMNS, trace_rows(result, order))


def summary(result: TimedResult, nodes: Nodes = MappingProxyType({})) -> str:
    """Cycles, the bottleneck, units, stalls and the critical path; of a model with its nodes."""
    parts = [f"cycles: {result.cycles}", result.sentence()]
    if result.waiting:
        listed = ", ".join(result.waiting[:8])
        more = f" and {len(result.waiting) - 8} more" if len(result.waiting) > 8 else ""
        parts.append(f"waiting: {listed}{more}")
    parts += ["", bounds_table(result), "", unit_table(result), "", stall_table(result, nodes)]
    if result.by_tag:
        parts += ["", tag_table(result)]
    if result.critical_path:
        parts += ["", "critical path: " + path_text(result)]
        parts += [f"  by node: {node_path(result, nodes)}"] if nodes else []
    return "\n".join(parts)


def bounds_table(result: TimedResult) -> str:
    """The lower bounds, and how far above each the run is."""
    bounds = result.bounds
    named = (
        ("compute", bounds.compute, "the busiest of NMU, CSTL and VPU"),
        ("dma", bounds.dma, "L2 to L1 and back"),
        ("ddr", bounds.ddr, "DDR to L2 and back"),
        ("chain", bounds.chain, "dependences and windows, unlimited units"),
    )
    rows = []
    for name, cycles, meaning in named:
        above = f"{100 * (result.cycles - cycles) / cycles:+.0f}%" if cycles else "-"
        rows.append((name, cycles, above, meaning))
    return align_table(("Bound", "Cycles", "Run", "Meaning"), rows)


def unit_table(result: TimedResult) -> str:
    """Busy cycles of every unit that did something."""
    total = max(1, result.cycles)
    rows = [
        (name, entry["tasks"], entry["busy"], f"{100 * entry['busy'] / total:.1f}%")
        for name, entry in result.units.items()
        if entry["tasks"]
    ]
    return align_table(("Unit", "Tasks", "Busy", "Share"), rows)


def stall_table(result: TimedResult, nodes: Nodes = MappingProxyType({})) -> str:
    """What the tasks of each statement waited for, all instances together."""
    stalls, steps = result.timeline.stalls, result.timeline.steps
    rows: list[Sequence[object]] = []
    totals = dict.fromkeys(CAUSES, 0)
    for task in steps.plan.program.tasks:
        mine = steps.numbers[task.position]
        cells = [int(getattr(stalls, cause)[mine].sum()) for cause in CAUSES]
        for cause, cycles in zip(CAUSES, cells, strict=True):
            totals[cause] += cycles
        name, line = task_name(steps.plan.program, task), steps.line_of[task.position]
        node = (nodes.get(task.token or "", "-"),) if nodes else ()
        rows.append((name, line, mine.size, *cells, *node, task.debug_name))
    of_all = sum(int(str(row[2])) for row in rows)
    rows.append(("all", "", of_all, *totals.values(), *(("-",) if nodes else ()), None))
    waits = (f"Wait: {cause}" for cause in CAUSES)
    heading = ("Task", "Line", "Times", *waits, *(("Node",) if nodes else ()))
    return align_table_with_debug(heading, rows)


def tag_table(result: TimedResult) -> str:
    """What `@profile(tag)` gathers."""
    rows = [(tag, *entry.values()) for tag, entry in result.by_tag.items()]
    return align_table(("Profile", "Tasks", "Busy", "Waits", "First", "Last"), rows)


def path_text(result: TimedResult) -> str:
    """The critical path in one line, its middle left out where it is long."""
    return _shorten_path([result.timeline.steps.name(link.step) for link in result.critical_path])


def node_path(result: TimedResult, nodes: Nodes) -> str:
    """The critical path as the model's nodes, each once in a row."""
    statements = (result.timeline.steps.statement(link.step) for link in result.critical_path)
    tokens = (one.token for one in statements if isinstance(one, Task))
    return _shorten_path(
        [node for node, _ in groupby(nodes.get(token or "", "-") for token in tokens)]
    )


def _shorten_path(names: list[str]) -> str:
    if len(names) > _SHOWN_LINKS:
        half = _SHOWN_LINKS // 2
        names = [*names[:half], f"... {len(names) - 2 * half} more ...", *names[-half:]]
    return " -> ".join(names)


def comparison(before: TimedResult, after: TimedResult, changes: str) -> str:
    """Two runs side by side: what a change of the device does."""
    rows: list[tuple[object, ...]] = [("cycles", *_cycles(before, after))]
    for name in ("compute", "dma", "ddr", "chain"):
        was, now = getattr(before.bounds, name), getattr(after.bounds, name)
        rows.append((f"bound: {name}", was, now, _describe_change(was, now)))
    for cause in CAUSES:
        was, now = before.stall_totals[cause], after.stall_totals[cause]
        rows.append((f"waits: {cause}", was, now, _describe_change(was, now)))
    units = dict.fromkeys([*before.cycles_by_unit, *after.cycles_by_unit])
    for unit in units:
        was, now = before.cycles_by_unit.get(unit, 0), after.cycles_by_unit.get(unit, 0)
        rows.append((f"busy: {unit}", was, now, _describe_change(was, now)))
    table = align_table(("", "as it is", changes, "change"), rows)
    return f"{table}\n\nas it is: {before.sentence()}\n{changes}: {after.sentence()}"


def _cycles(before: TimedResult, after: TimedResult) -> tuple[object, object, str]:
    """Both totals and how many times faster the second is; a run that is stuck has no total."""
    was, now = (result.cycles if result.status == "completed" else result.status
                for result in (before, after))  # fmt: skip
    if isinstance(was, int) and isinstance(now, int) and now:
        return was, now, f"{was / now:.2f}x"
    return was, now, "-"


def _describe_change(was: int, now: int) -> str:
    if was == now:
        return "="
    return f"{100 * (now - was) / was:+.0f}%" if was else "new"
