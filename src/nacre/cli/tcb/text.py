"""`nacre tcb dis` and `asm`: images as text, and back."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.base.files import write_whole
from nacre.cli.arrays import report_write_errors, require_writable
from nacre.cli.core.files import report_findings
from nacre.cli.options import out_option
from nacre.cli.outputs import STDOUT, echo_written, require_distinct_files
from nacre.cli.tcb.group import open_image, plural, tcb
from nacre.cli.terminal.streams import echo_document


@tcb.command()
@click.argument("file", metavar="FILE.tcb")
@out_option("TEXT", "Write the text here. `-`, or nothing: print.", prints=True)
@click.option("--no-constants", is_flag=True, help="Name constants by their hashes: a listing.")
def dis(file: str, out: Path | None, no_constants: bool) -> int:
    """Write an image as assembler text, each block with the statement that it comes from.

    `nacre tcb asm` makes the same image of it again, unless constants are left out.
    """
    is_printed = out is None or str(out) == STDOUT
    if out is not None and not is_printed:
        _require_target(out, file)

    def work() -> None:
        from nacre.tcb.text.disassembly import disassemble

        text = disassemble(open_image(file).image, inline_constants=not no_constants)
        if out is None or is_printed:
            echo_document(text)
            return
        with report_write_errors(out):
            write_whole(out, [text])
        echo_written(out, f": {plural(text.count(chr(10)), 'line')}")

    return report_findings(work)


@tcb.command()
@click.argument("file", metavar="TEXT")
@out_option("FILE.tcb", "Write the image here.", required=True)
def asm(file: str, out: Path) -> int:
    """Make an image of assembler text; every mistake in it is reported. TEXT may be `-`."""
    _require_target(out, file)

    def work() -> None:
        image = open_image(file)
        with report_write_errors(out):
            image.save(out)
        size = f": {plural(out.stat().st_size, 'byte')}" if out.is_file() else ""
        echo_written(out, size)

    return report_findings(work)


def _require_target(out: Path, file: str) -> None:
    require_distinct_files([out], [file])
    require_writable(out)
