"""The debugger's commands that only look: memory, tokens, tasks, the program, the trace."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import quoted, safe
from nacre.base.suggest import did_you_mean
from nacre.cli.debug_arguments import needed, no_argument, number, some
from nacre.nem.run.host import host_error
from nacre.nem.run.tables import aligned

if TYPE_CHECKING:
    from nacre.cli.debugger import Debugger
    from nacre.nem.run.arrays import RegionView

_LISTED_LINES = 5  # of the source, before and after
_TRACE_ROWS = 20
_HEX_BYTES = 256


def show_where(debugger: Debugger, argument: str) -> None:
    """Say where the run stands."""
    no_argument(argument)
    state = debugger.session.get_state()
    click.echo(f"{state.status}, {state.step} of {state.steps} steps taken")
    for variable, values in state.active_loops.items():
        click.echo(f"loop {variable}: in flight {some([str(v) for v in values])}")
    debugger.show_place()


def show_tasks(debugger: Debugger, argument: str) -> None:
    """Show what is completed, ready and waiting."""
    no_argument(argument)
    session = debugger.session
    completed = session.get_completed_tasks()
    click.echo(f"completed: {len(completed)}{', last ' + completed[-1] if completed else ''}")
    click.echo(f"ready: {some(session.get_ready_tasks()) or 'none'}")
    click.echo(f"waiting: {some(session.get_pending_tasks()) or 'none'}")


def show_tokens(debugger: Debugger, argument: str) -> None:
    """Show which tokens are satisfied."""
    found = debugger.session.get_tokens()
    shown = {n: e for n, e in found.items() if argument in (n, n.partition("[")[0]) or not argument}
    if argument and not shown:
        raise host_error(f"no token {quoted(argument)}", did_you_mean(argument, found))
    rows = [
        (name, "satisfied" if entry["satisfied"] else "-", entry["produced_by"])
        for name, entry in shown.items()
    ]
    click.echo(aligned(("Token", "Status", "Produced by"), rows) if rows else "no tokens")


def show_buffers(debugger: Debugger, argument: str) -> None:
    """Show where buffers lie."""
    no_argument(argument)
    debugger.session.dump_buffers()


def show_print(debugger: Debugger, argument: str) -> None:
    """Show the elements of a region, or with `/x` its bytes."""
    form, name = re.fullmatch(r"(/\S*)?\s*(.*)", argument, re.DOTALL).groups()  # type: ignore[union-attr]
    if form not in (None, "/x"):
        raise host_error(f"no form {quoted(form)}; there is `/x`, the bytes in hexadecimal")
    session = debugger.session
    located = session.locate(needed(name, "a region or buffer"))
    values = session.read_region(located.name)
    kind = values.elem.name if values.elem is not None else str(values.dtype)
    place = f"{located.buffer.name}[{located.offset}:{located.end}]"
    names = (located.region.debug_name if located.region else None, located.buffer.debug_name)
    place += "".join(f" (@debug {safe(name)})" for name in names if name is not None)
    click.echo(f"{safe(located.name)}: {kind} {list(values.shape)} in {place}")
    click.echo(_hex_rows(values.read_bytes(), located.offset) if form else _values(values))


def _values(values: RegionView) -> str:
    import numpy as np

    plain = np.asarray(values)
    if plain.dtype.isbuiltin != 1:  # bf16 and i4 are not NumPy's own, and do not print well
        integer = values.elem is not None and values.elem.is_integer
        plain = plain.astype(np.int8 if integer else np.float32)
    return np.array2string(plain, threshold=128, edgeitems=2, max_line_width=100)


def _hex_rows(data: bytes, offset: int) -> str:
    rows = [
        f"{offset + at:08x}  {data[at : at + 16].hex(' ')}"
        for at in range(0, min(len(data), _HEX_BYTES), 16)
    ]
    left = len(data) - _HEX_BYTES
    return "\n".join([*rows, *([f"... {left} more bytes"] if left > 0 else [])])


def show_who(debugger: Debugger, argument: str) -> None:
    """Show who wrote the bytes of a region last."""
    for part in debugger.session.who_wrote(needed(argument, "a region or buffer")):
        by = part.writer or "nobody"
        at = f", line {part.line}, step {part.step + 1}" if part.step is not None else ""
        click.echo(f"bytes {part.low}..{part.high - 1}: {by}{at}")


def show_list(debugger: Debugger, argument: str) -> None:
    """Show the program around the next step, or a line."""
    following = debugger.session.next_line
    centre = number(argument) if argument else following or 1
    last = len(debugger.source.line_starts) - debugger.source.text.endswith("\n")
    if not 1 <= centre <= last:
        raise host_error(f"the program has lines 1..{last}, not {centre}")
    first = max(1, centre - _LISTED_LINES)
    for line in range(first, min(last, centre + _LISTED_LINES) + 1):
        click.echo(debugger.source_line(line, ">" if line == following else " "))


def show_trace(debugger: Debugger, argument: str) -> None:
    """Show the last steps, or write all of them to a file."""
    if argument and not argument.isdecimal():
        debugger.session.export_trace(argument)
        click.echo(f"wrote {safe(argument)}")
        return
    rows = number(argument) if argument else _TRACE_ROWS
    with contextlib.redirect_stdout(io.StringIO()) as text:
        debugger.session.dump_trace()
    heading, *steps = text.getvalue().splitlines()
    if len(steps) > rows:
        click.echo(f"the last {rows} of {len(steps)} steps; `trace FILE` writes all")
    click.echo("\n".join([heading, *steps[max(0, len(steps) - rows) :]]))
