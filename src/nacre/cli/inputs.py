"""Files named on the command line, and how findings about them are shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import safe
from nacre.base.rendering import render_by_cause, render_json, render_text
from nacre.base.source import (
    MAX_SOURCE_BYTES,
    Source,
    Unreadable,
    read_stream,
)
from nacre.base.text_diff import unified_diff
from nacre.cli.terminal.streams import echo_as_is, echo_document
from nacre.nem.bytecode.magic import SUFFIX
from nacre.nem.bytecode.sources import decode_program, read_program
from nacre.nem.model.files import unreadable_finding
from nacre.nem.model.imports import Import, parse_import

STDIN = "-"


def _import(text: str) -> Import:
    try:
        return parse_import(text)
    except ValueError as error:
        raise click.BadParameter(safe(str(error))) from None


# Buffers whose contents come from outside; `check`, `run` and `debug` take it.
import_option = click.option(
    "--import",
    "imports",
    multiple=True,
    type=_import,
    metavar="BUF[:mutable][:noalias]",
    help="A buffer that the host provides; it may alias other imports.",
)


def read_argument(name: str) -> Source | Diagnostic | str:
    """The source that an argument names; a finding in the file; or why it cannot be read."""
    if name == STDIN:
        return _standard_input()
    path = Path(name)
    source = read_program(path, name=name)
    if isinstance(source, Source):
        return source
    if source.kind in ("too large", "not text"):
        return unreadable_finding(name, path, source)
    return f"{safe(name)} {source.reason}"


def require_text_name(path: Path) -> None:
    """UsageError where a text would get the name of bytecode, under which nobody could read it."""
    if path.suffix == SUFFIX:
        raise click.UsageError(
            f"{safe(str(path))} is a name of bytecode, and this is a text: write it to a file of "
            "another name, and `nacre pack` that"
        )


def program_in(name: str) -> str:
    """A file as it was named, or the program of the bundle in a folder."""
    if not os.path.isdir(name):
        return name
    from nacre.compile.storage.names import program_path

    inside = program_path(Path(name))
    return str(inside) if inside.is_file() else name


def _standard_input() -> Source | Diagnostic | str:
    if sys.stdin is None:  # closed by whoever started us
        return "standard input is closed"
    raw = read_stream(sys.stdin.buffer, MAX_SOURCE_BYTES)
    source: Source | Unreadable
    if len(raw) > MAX_SOURCE_BYTES:
        source = Unreadable(f"has more than {MAX_SOURCE_BYTES:,} bytes, the limit", "too large")
    else:
        source = decode_program(raw, name="<stdin>")
    return unreadable_finding("<stdin>", None, source) if isinstance(source, Unreadable) else source


def wants_colour() -> bool:
    """Whether standard output is a terminal that may be coloured."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(
    diagnostics: Sequence[Diagnostic], output: str, *, explain: bool = False, every: bool = True
) -> None:
    """Print findings on standard output as text, JSON or SARIF; text may join those of a cause."""
    if output == "json":
        click.echo(render_json(diagnostics))
    elif output == "sarif":
        from nacre.base.sarif import render_sarif

        click.echo(render_sarif(diagnostics))
    elif diagnostics:
        render = render_text if every else render_by_cause
        echo_as_is(render(diagnostics, colour=wants_colour(), explain=explain))


def show_diff(name: str, before: str, after: str) -> None:
    """Print what changes in a file: as it is for `patch`, harmless at a terminal."""
    echo_document(unified_diff(before, after, safe(name)))


def without_repetition(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings without repetition: several programs may include the same file."""
    return list({(d.code, d.location, d.message): d for d in diagnostics}.values())
