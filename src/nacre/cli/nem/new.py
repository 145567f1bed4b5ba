"""`nacre nem new`: a program to start from."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.cli.arrays import report_write_errors, require_writable
from nacre.cli.core.files import report_findings
from nacre.cli.inputs import require_text_name
from nacre.cli.nem.group import nem
from nacre.cli.options import include_root_option, out_option
from nacre.cli.outputs import (
    STDOUT,
    echo_written,
    force_option,
    require_distinct_files,
    require_unchanged,
)
from nacre.cli.terminal.streams import echo_document
from nacre.nem.api.templates.names import TEMPLATE_NAMES


@nem.command()
@click.argument("name")
@click.option(
    "--template",
    type=click.Choice(TEMPLATE_NAMES),
    required=True,
    help="gemm: a product with bias and ReLU; conv2d: a convolution; attention: one head.",
)
@click.option("--device", required=True, metavar="NAME|FILE", help="What it is to run on.")
@include_root_option
@out_option("FILE", "Write here. `-`, or nothing: print.", prints=True)
@force_option
def new(
    name: str,
    template: str,
    device: str,
    include_roots: tuple[Path, ...],
    out: Path | None,
    force: bool,
) -> int:
    """Start a program NAME from a template: tiled, commented, sized for a device, and checked.

    Where the device cannot carry it, its findings say why, and nothing is written. A file that is
    there with other content is written over with --force alone.
    """
    from nacre.nem.api.templates.new_program import new_program
    from nacre.nem.model.target import UnknownDeviceError

    if not (name.isidentifier() and name.isascii()):
        form = "letters, digits and _, and no digit first"
        raise click.UsageError(f"{backquote(name)} is no name of a program: {form}")
    path = None if out is None or str(out) == STDOUT else out
    if path is not None:
        require_writable(path)
        require_text_name(path)
        require_distinct_files([path], [device])

    def work() -> None:
        text = new_program(name, template, device, path, include_roots)
        if path is None:
            echo_document(text)
            return
        require_unchanged({path: text}, force)
        with report_write_errors(path):
            write_whole(path, [text])
        echo_written(path, f": {template} for {safe(device)}, without findings")

    try:
        return report_findings(work)
    except UnknownDeviceError as error:
        raise click.UsageError(safe(str(error))) from None
