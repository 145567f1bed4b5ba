"""The debugger's commands that only look: memory, tokens, tasks, the program, the trace."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.suggest import did_you_mean
from nacre.cli.arrays import unreadable_reason
from nacre.cli.debug.arguments import list_some, parse_number, refuse_argument, require_argument
from nacre.cli.debug.model_values import (
    ModelValue,
    ValueName,
    buffer_name,
    parse_value,
    read_values,
)
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.memory.regions import UnknownNameError
from nacre.nem.run.sessions.references import parse_reference
from nacre.nem.run.sessions.statistics import compare, describe
from nacre.nem.run.sessions.tables import align_table

if TYPE_CHECKING:
    import numpy as np

    from nacre.base.elements import ElementType
    from nacre.cli.debug.debugger import Debugger
    from nacre.nem.run.sessions.references import Selection
    from nacre.nem.run.sessions.session import Session

_LISTED_LINES = 5  # of the source, before and after
_TRACE_ROWS = 20
_HEX_ROWS = 16
_MOST_SHOWN, _MOST_SELECTED = 128, 1024  # elements of a region, and of a part that was asked for
_FORMS = {"/x": "the bytes in hexadecimal", "/d": "dequantised values"}
_FILE = r"(?P<file>.+?)(?:\s+within\s+(?P<tolerance>\S+))?"
_COMPARISON = re.compile(
    rf"(?P<region>\w+\s*(?:\[[^\]]*\]\s*)*)(?:=|(?<=\s))\s*{_FILE}",
)


def show_where(debugger: Debugger, argument: str) -> None:
    """Say where the run stands."""
    refuse_argument(argument)
    state = debugger.session.get_state()
    click.echo(f"{state.status}, {state.step} of {state.steps} steps taken")
    for variable, values in state.active_loops.items():
        click.echo(f"loop {variable}: in flight {list_some([str(v) for v in values])}")
    debugger.show_position()


def show_tasks(debugger: Debugger, argument: str) -> None:
    """Show what is completed, ready and waiting."""
    refuse_argument(argument)
    session = debugger.session
    completed = session.get_completed_tasks()
    click.echo(f"completed: {len(completed)}{', last ' + completed[-1] if completed else ''}")
    click.echo(f"ready: {list_some(session.get_ready_tasks()) or 'none'}")
    click.echo(f"waiting: {list_some(session.get_pending_tasks()) or 'none'}")


def show_tokens(debugger: Debugger, argument: str) -> None:
    """Show which tokens are satisfied."""
    tokens = debugger.session.get_tokens()
    chosen = {
        n: e for n, e in tokens.items() if argument in (n, n.partition("[")[0]) or not argument
    }
    if argument and not chosen:
        raise host_error(f"no token {backquote(argument)}", did_you_mean(argument, tokens))
    rows = [
        (name, "satisfied" if entry["satisfied"] else "-", entry["produced_by"])
        for name, entry in chosen.items()
    ]
    click.echo(align_table(("Token", "Status", "Produced by"), rows) if rows else "no tokens")


def show_buffers(debugger: Debugger, argument: str) -> None:
    """Show where buffers lie."""
    refuse_argument(argument)
    debugger.session.dump_buffers()


def show_print(debugger: Debugger, argument: str) -> None:
    """Show elements of a region, with `/x` its bytes, with `/d` dequantised; or a number."""
    form, text = re.fullmatch(r"(/\S*)?\s*(.*)", argument, re.DOTALL).groups()  # type: ignore[union-attr]
    if form not in (None, *_FORMS):
        listed = ", ".join(f"`{name}` ({meaning})" for name, meaning in _FORMS.items())
        raise host_error(f"no form {backquote(form)}; there are {listed}")
    session = debugger.session
    require_argument(text, "a region, a buffer, or an expression such as `i * 4`")
    values_of_model = _values_of_model(debugger, text)
    if values_of_model is not None and form != "/x":
        for value in values_of_model:
            click.echo(value.heading)
            _show_value(value)
        return
    text = buffer_name(debugger.names, text) if values_of_model is not None else text
    if _is_number(session, text):
        if form is not None:
            raise host_error(f"{backquote(form)} goes with a region, not with a number")
        click.echo(f"{safe(text)} = {_evaluate(session, text)}")
        return
    selection = session.select(text)
    values = session.read_selection(selection, real=form == "/d")
    if form == "/x":
        click.echo(f"{_heading(selection)}\n{_hex_rows(session, selection)}")
        return
    click.echo(_heading(selection) + (", dequantised" if form == "/d" else ""))
    click.echo(
        _values_text(values, values.elem, _MOST_SHOWN if not selection.index else _MOST_SELECTED)
    )


def _values_of_model(debugger: Debugger, text: str) -> list[ModelValue] | None:
    """The values of the model that a text names, all of it; None where it is about the program."""
    named = parse_value(debugger.names, text)
    if debugger.names is None or named is None or named.rest:
        return None
    return read_values(debugger.names, debugger.session, named)


def _show_value(value: ModelValue) -> None:
    """The elements, and how many of them nobody wrote."""
    if value.written.any() or not value.written.size:
        click.echo(_values_text(value.values, value.element, _MOST_SHOWN))
    if value.warning is not None:
        click.echo(value.warning)


def _is_number(session: Session, text: str) -> bool:
    """Whether a text is an expression; what has the form of a region is one, also if unknown."""
    try:
        reference = parse_reference(text)
    except UnknownNameError:  # wrong brackets: said when it is looked up
        return False
    return reference is None or session.scope.is_number(reference)


def _evaluate(session: Session, text: str) -> str:
    value = session.evaluate(text)
    if value is not None:
        return str(value)
    return "no value: a loop variable outside its loop, bytes that nobody wrote, or a zero divisor"


def _heading(selection: Selection) -> str:
    kind, shape = selection.elem.name, list(selection.shape)
    located = selection.located
    names = (located.region.debug_name if located.region else None, located.buffer.debug_name)
    debug = "".join(f" (@debug {safe(name)})" for name in names if name is not None)
    name = f"{safe(selection.name)}{selection.iteration_text}"
    return f"{name}: {kind} {shape} in {selection.bytes_text}{debug}"


def show_statistics(debugger: Debugger, argument: str) -> None:
    """Show the range of a region's elements, and how many are NaN or saturated."""
    session = debugger.session
    for value in _values_of_model(debugger, require_argument(argument, "a region or buffer")) or ():
        click.echo(value.heading)
        click.echo(describe(value.values, value.written, value.element))
        if value.overwritten is not None:
            click.echo(value.overwritten)
    if parse_value(debugger.names, argument) is not None:
        return
    selection = session.select(argument)
    storage = session.memory.storage(selection.located.buffer)
    written = selection.written_mask(storage)
    click.echo(_heading(selection))
    is_typed = selection.located.type is not None
    click.echo(describe(selection.values(storage), written, selection.elem, is_typed=is_typed))
    if selection.type.quant is not None and written.any():
        real = selection.real_values(storage)[written]
        click.echo(
            f"dequantised: min {real.min():.6g}, max {real.max():.6g}, mean {real.mean():.6g}"
        )


def show_comparison(debugger: Debugger, argument: str) -> None:
    """Compare a region's elements with an array in a file."""
    named = parse_value(debugger.names, require_argument(argument, "REGION=FILE.npy"))
    if named is not None:
        _compare_value(debugger, named)
        return
    match = _COMPARISON.fullmatch(argument)
    if match is None:
        raise host_error(
            f"{backquote(argument)} does not have the form REGION=FILE.npy [within TOL]"
        )
    session = debugger.session
    selection = session.select(match["region"])
    expected = _reference_array(Path(match["file"]), selection.shape)
    is_real = expected.dtype.kind == "f" and selection.type.quant is not None
    actual = session.read_selection(selection, real=is_real)
    click.echo(_heading(selection) + (", dequantised" if is_real else ""))
    _show_differences(debugger, _numpy_values(actual, actual.elem), expected, match)


def _compare_value(debugger: Debugger, named: ValueName) -> None:
    """Compare values of the model with an array in a file."""
    match = re.fullmatch(rf"=?\s*{_FILE}", named.rest)
    if match is None:
        raise host_error(f"{backquote(named.name)} is to be compared with FILE.npy [within TOL]")
    assert debugger.names is not None
    for value in read_values(debugger.names, debugger.session, named):
        expected = _reference_array(Path(match["file"]), value.values.shape)
        click.echo(value.heading)
        if value.warning is not None:
            click.echo(value.warning)
        _show_differences(debugger, _numpy_values(value.values, value.element), expected, match)


def _show_differences(
    debugger: Debugger,
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    match: re.Match[str],
) -> None:
    tolerance = _tolerance(match["tolerance"])
    result = compare(actual, expected, tolerance or 0.0)
    click.echo(f"{safe(match['file'])}: {result}")
    # Who names a tolerance wants to hear, in a batch by the exit status, when it is exceeded.
    debugger.has_failed |= tolerance is not None and result.count > 0


def _tolerance(text: str | None) -> float | None:
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?", text) is None:
        raise host_error(f"the tolerance is {backquote(text)}, expected a number such as 1e-3")
    return float(text)


def _reference_array(path: Path, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    from nacre.nem.api.ddr import load_npy

    if path.suffix != ".npy":
        raise host_error(f"{backquote(str(path))} is no .npy file")
    reason = unreadable_reason(path)
    if reason is not None:
        raise host_error(reason)
    array = load_npy(path)
    if array.dtype.kind not in "iufb":
        raise host_error(f"`{path}` holds {array.dtype}, expected numbers")
    if array.size != math.prod(shape):
        raise host_error(f"`{path}` has shape {list(array.shape)}, the region {list(shape)}")
    return array.reshape(shape)


def _numpy_values(values: np.ndarray[Any, Any], elem: ElementType | None) -> np.ndarray[Any, Any]:
    """The values in a type of NumPy's own: bf16 and i4 are not, and do not print well."""
    import numpy as np

    plain = np.asarray(values)
    if plain.dtype.isbuiltin == 1:
        return plain
    integer = elem is not None and elem.is_integer
    return plain.astype(np.int8 if integer else np.float32)


def _values_text(values: np.ndarray[Any, Any], elem: ElementType | None, most: int) -> str:
    import numpy as np

    return np.array2string(
        _numpy_values(values, elem), threshold=most, edgeitems=2, max_line_width=100
    )


def _hex_rows(session: Session, selection: Selection) -> str:
    data = session.memory.storage(selection.located.buffer).data
    rows: list[str] = []
    remaining = sum(high - low for low, high in selection.runs)
    for low, high in selection.runs:
        for at in range(low, high, 16):
            if len(rows) == _HEX_ROWS:
                return "\n".join([*rows, f"... {remaining} more bytes"])
            part = data[at : min(at + 16, high)].tobytes()
            remaining -= len(part)
            rows.append(f"{at:08x}  {part.hex(' ')}")
    return "\n".join(rows)


def show_who(debugger: Debugger, argument: str) -> None:
    """Show who wrote the bytes of a region last."""
    region = buffer_name(debugger.names, require_argument(argument, "a region or buffer"))
    for part in debugger.session.who_wrote(region):
        by = part.writer or "nobody"
        at = f", line {part.line}, step {part.step + 1}" if part.step is not None else ""
        click.echo(f"bytes {part.low}..{part.high - 1}: {by}{at}")


def show_list(debugger: Debugger, argument: str) -> None:
    """Show the program around the next step, or a line."""
    following = debugger.session.next_line
    centre = parse_number(argument) if argument else following or 1
    last = len(debugger.source.line_starts) - debugger.source.text.endswith("\n")
    if not 1 <= centre <= last:
        raise host_error(f"the program has lines 1..{last}, not {centre}")
    first = max(1, centre - _LISTED_LINES)
    for line in range(first, min(last, centre + _LISTED_LINES) + 1):
        click.echo(debugger.source_line(line, ">" if line == following else " "))


def show_trace(debugger: Debugger, argument: str) -> None:
    """Show the last steps, or write all of them to a file."""
    if argument and not is_digits(argument):
        debugger.session.export_trace(argument)
        click.echo(f"wrote {safe(argument)}")
        return
    rows = parse_number(argument) if argument else _TRACE_ROWS
    with contextlib.redirect_stdout(io.StringIO()) as text:
        debugger.session.dump_trace()
    heading, *steps = text.getvalue().splitlines()
    if len(steps) > rows:
        click.echo(f"the last {rows} of {len(steps)} steps; `trace FILE` writes all")
    click.echo("\n".join([heading, *steps[max(0, len(steps) - rows) :]]))
