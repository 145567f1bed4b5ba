"""Every decision of a binding as a row: what it is about, what was decided, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from nacre.bind.measure.measured import MeasuredBinding
from nacre.nem.model.program import Program, Task
from nacre.nem.run.sessions.naming import task_name
from nacre.tcb.image import Block
from nacre.tcb.text.written import tag_text
from nacre.viz.packing import pack_list, pack_words

MOST_DECISIONS = 50_000
NONE = -1


class Decision(NamedTuple):
    """One row; `line` 0 and `statement` -1 where it is about no task."""

    kind: str
    subject: str
    line: int
    statement: int
    decided: str
    because: str


def decision_rows(
    measured: MeasuredBinding, facts: dict[str, Any], tasks: Sequence[Task]
) -> dict[str, Any]:
    """All decisions as packed columns, or the first of very many."""
    number = {task.position: index for index, task in enumerate(tasks)}
    found = list(_decisions(measured, facts, number))
    rows = found[:MOST_DECISIONS]
    return {
        "count": len(found),
        "kind": pack_words(row.kind for row in rows),
        "subject": pack_words(row.subject for row in rows),
        "line": pack_list(row.line for row in rows),
        "statement": pack_list(row.statement for row in rows),
        "decided": pack_words(row.decided for row in rows),
        "because": pack_words(row.because for row in rows),
    }


def _decisions(
    measured: MeasuredBinding, facts: dict[str, Any], number: dict[int, int]
) -> Iterator[Decision]:
    program = measured.request.plan.program
    for one in facts["serialised"]:
        loop = one["loop"]
        subject = "outside of loops" if loop is None else f"loop {loop}"
        yield Decision("order", subject, one["line"] or 0, NONE, "serialised", one["because"])
    yield from map(_tag_decision, facts["tags"])
    yield from _address_decisions(facts)
    for decision, unit in zip(measured.bound.units, facts["units"], strict=True):
        statement = number.get(decision.task.position, NONE)
        units = " + ".join(unit["units"])
        yield Decision("units", unit["task"], unit["line"], statement, units, unit["because"])
    yield from _block_decisions(measured, program, number)


def _tag_decision(tags: dict[str, Any]) -> Decision:
    most = "any number" if tags["available"] is None else f"{tags['available']:,}"
    why = "counters that blocks wait for, each used again where nobody can still wait for it"
    return Decision("tags", tags["of"], 0, NONE, f"{tags['used']:,} of {most}", why)


def _address_decisions(facts: dict[str, Any]) -> Iterator[Decision]:
    pushed = {
        buffer["buffer"]: (buffer["pushed"], memory["because"])
        for memory in facts["banks"]
        for buffer in memory["buffers"]
        if buffer["pushed"]
    }
    for place in facts["addresses"]:
        end = place["address"] + place["bytes"]
        where = f"{place['memory']} {place['address']:#x} to {end:#x}"
        because = "behind the buffers before it in its memory, at its alignment"
        if place["buffer"] in pushed:
            size, why = pushed[place["buffer"]]
            because = f"pushed back by {size:,} bytes, to other banks: {why}"
        yield Decision("address", place["buffer"], 0, NONE, where, because)


def _block_decisions(
    measured: MeasuredBinding, program: Program, number: dict[int, int]
) -> Iterator[Decision]:
    """Tags and store formats of tasks: those of the first block of each."""
    seen: dict[int, Block] = {}
    for stream in measured.bound.image.streams:
        for block, _ in stream.blocks():
            if block.kind == "task":
                seen.setdefault(block.position, block)
    stores = {one.store.position: one for one in measured.bound.fused.conversions}
    for task in program.tasks:
        found = seen.get(task.position)
        if found is None:
            continue
        place = (
            task_name(program, task),
            program.span(task.node).location.line,
            number.get(task.position, NONE),
        )
        if found.op == "store":
            done = stores.get(task.position)
            does = None if done is None else task_name(program, done.task)
            yield Decision("format", *place, found.format, _format_reason(found, does))
        if found.signal is not None:
            decided = f"signals {tag_text(found.signal)}"
            yield Decision("tag", *place, decided, _tag_reason(program, task))


def _format_reason(block: Block, does: str | None) -> str:
    if does is not None:
        return f"it does {does} on its way: nothing else sees the value, and `store.formats` has it"
    if block.format == "raw":
        return "elements are written as they are"
    return "elements are converted on their way, to the type and quantisation of the region"


def _tag_reason(program: Program, task: Task) -> str:
    names = [task_name(program, program.task_at[dep]) for dep in islice(task.deps, 4)]
    if not names:
        return "others wait for it; it names no token itself"
    more = f" and {len(task.deps) - len(names)} more" if len(task.deps) > len(names) else ""
    return f"others wait for it, and it for {', '.join(names)}{more}"
