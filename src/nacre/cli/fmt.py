"""`nacre fmt`: rewrite NEM files in canonical form."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import safe
from nacre.base.files import write_whole
from nacre.base.rendering import render_by_cause
from nacre.base.source import Source
from nacre.base.stages import stage
from nacre.cli.exit_status import ERRORS_FOUND, MACHINE_FAULTS, OK, WRONG_USAGE
from nacre.cli.inputs import STDIN, read_argument, show_diff
from nacre.cli.terminal.progress import show_stages
from nacre.cli.terminal.streams import echo_document
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import ParsedSource


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit 1 if a file would.")
@click.option("--diff", is_flag=True, help="The same, and show what would change.")
def fmt(files: tuple[str, ...], only_check: bool, diff: bool) -> int:
    """Rewrite NEM files in canonical form, comments kept.

    FILE may be `-`: standard input is formatted to standard output. A file with syntax errors is
    reported and left as it is. Bytecode has one form only: it is read, and left as it is; from `-`
    its text is written.
    """
    return max(_format_one(name, only_check or diff, diff) for name in files)


def _format_one(name: str, only_check: bool, diff: bool) -> int:
    source = read_argument(name)
    if isinstance(source, str):
        click.echo(f"nacre: {source}", err=True)
        return WRONG_USAGE
    if isinstance(source, Diagnostic):
        click.echo(render_by_cause([source]), err=True)
        return ERRORS_FOUND
    try:
        with show_stages(), stage("formatting"):
            formatted = format_source(source)
    except InputError as error:
        click.echo(render_by_cause(error.diagnostics), err=True)
        return ERRORS_FOUND
    if isinstance(source, ParsedSource) and name != STDIN:
        message = "is bytecode, which has one form only; `nacre unpack` writes it as text"
        click.echo(f"{safe(name)} {message}", err=True)
        return OK
    if name == STDIN and not only_check:
        echo_document(formatted)
        return OK
    return _apply(name, source, formatted, only_check, diff)


def _apply(name: str, source: Source, formatted: str, only_check: bool, diff: bool) -> int:
    if formatted == source.text:
        return OK
    if diff:
        show_diff(name, source.text, formatted)
        return ERRORS_FOUND
    if only_check:
        click.echo(f"would reformat {safe(name)}")
        return ERRORS_FOUND
    try:
        write_whole(Path(name), [formatted])
    except OSError as error:
        click.echo(f"nacre: cannot write {safe(name)}: {error.strerror}", err=True)
        return ERRORS_FOUND if error.errno in MACHINE_FAULTS else WRONG_USAGE
    click.echo(f"reformatted {safe(name)}")
    return OK
