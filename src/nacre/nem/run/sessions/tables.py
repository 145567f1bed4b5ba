"""Sessions as text for terminals: buffers, a region, the trace, the state."""

from __future__ import annotations

import html
from collections.abc import Container, Iterable, Sequence

from nacre.base.excerpt import safe
from nacre.nem.model.program import Decorator, Program, debug_name
from nacre.nem.run.memory.memory import Memory
from nacre.nem.run.memory.regions import LocatedRegion
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.sessions.trace import trace_rows

_SHOWN_BYTES = 32


def align_table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in columns, two spaces apart, nothing at the ends of lines."""
    lines = [list(heading), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heading))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def align_table_with_debug(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose rows end in what `@debug` says; a column of its own where any has a name."""
    listed = list(rows)
    if not any(row[-1] is not None for row in listed):
        return align_table(heading, (row[:-1] for row in listed))
    named = ((*row[:-1], "-" if row[-1] is None else safe(str(row[-1]))) for row in listed)
    return align_table((*heading, "Debug"), named)


def buffer_table(program: Program, memory: Memory, imports: Container[str] = ()) -> str:
    """Every buffer and where it lies."""
    rows = []
    for buffer in program.buffers:
        name = f"{buffer.name}[{buffer.engine}]" if buffer.level == "L1" else buffer.name
        base = memory.base(buffer)
        status = "imported" if buffer.name in imports else "allocated"
        cells = (name, buffer.memory, f"0x{base:04X}", buffer.size, buffer.align, status)
        rows.append((*cells, buffer.debug_name))
    return align_table_with_debug(("Buffer", "Level", "Offset", "Size", "Align", "Status"), rows)


def region_text(located: LocatedRegion, memory: Memory) -> str:
    """A region in words, with its first bytes."""
    region, type_ = located.region, located.type
    kind = "(none)"
    if type_ is not None:
        kind = f"{type_.elem.name}, shape=[{','.join(map(str, type_.shape))}]"
        if region is not None and region.layout is not None:
            kind += f", layout={region.layout}"
        elif region is not None and region.strides is not None:
            kind += ", strided"
    decorators = " ".join(map(_decorator_text, region.decorators)) if region is not None else ""
    storage = memory.storage(located.buffer)
    some = storage.data[located.offset : min(located.end, located.offset + _SHOWN_BYTES)]
    contents = ", ".join(f"0x{byte:02X}" for byte in some.tolist())
    more = f", ...]  (first {_SHOWN_BYTES} bytes)" if located.extent > _SHOWN_BYTES else "]"
    gap = storage.first_gap(located.offset, located.offset + some.size)
    if gap is not None:
        more += f"  (nothing has written bytes {gap[0]}..{gap[1] - 1})"
    return (
        f"Region: {located.name}\n"
        f"  Buffer: {located.buffer.name}{_debug_text(located.buffer.debug_name)}, "
        f"offset={located.offset}, extent={located.extent}\n"
        f"  Type: {kind}\n"
        f"  Decorators: {decorators or '(none)'}\n"
        f"  Contents: [{contents}{more}"
    )


def _decorator_text(decorator: Decorator) -> str:
    name = debug_name([decorator.node])
    return f"@{decorator.name}" if name is None else f"@debug({safe(name)})"


def _debug_text(name: str | None) -> str:
    return "" if name is None else f" @debug({safe(name)})"


def trace_table(steps: Steps, order: Sequence[int]) -> str:
    """The steps taken."""
    rows = [
        (
            row["step"],
            "-" if row["type"].startswith("wait") else row["task"],
            row["type"],
            row["status"],
            row["token"] or "-",
            f"[{', '.join(row['deps'])}]",
            row.get("debug"),
        )
        for row in trace_rows(steps, order)
    ]
    return align_table_with_debug(("Step", "Task", "Type", "Status", "Token", "Deps"), rows)


def session_html(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A heading and a table of two columns, for notebooks."""
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<div><b>{html.escape(title)}</b><table>{cells}</table></div>"
