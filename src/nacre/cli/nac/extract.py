"""`nacre nac extract`: what a file carries, as files of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.nac.files import nac, open_file
from nacre.cli.options import out_option
from nacre.cli.outputs import require_empty_folder, write_new_folder

if TYPE_CHECKING:
    from nacre.nac.tools.extraction import Parts

_PARTS = ("weights", "resources", "tokenizer", "plan", "kept")


@nac.command()
@click.argument("file")
@out_option(
    "FOLDER",
    "Write here; the folder is made, and must be empty if it is there.",
    is_folder=True,
    required=True,
)
@click.option(
    "--part",
    "chosen",
    multiple=True,
    type=click.Choice(_PARTS),
    help="Write this part only; may be repeated. Default: all of them.",
)
@click.option(
    "--dequantise", is_flag=True, help="Write weights as the program sees them, not as stored."
)
@format_option
def extract(file: str, out: Path, chosen: tuple[str, ...], dequantise: bool, output: str) -> int:
    """Write what FILE carries into a folder: weights, resources, tokenizer, plan."""
    require_empty_folder(out)

    def work() -> None:
        from nacre.nac.tools.extraction import PARTS, weights

        opened = open_file(file)
        entries: dict[str, Parts] = {}
        for name in chosen or _PARTS:
            if name == "weights":
                entries.update(weights(opened, as_stored=not dequantise))
            else:
                entries.update(PARTS[name](opened))
        if entries:
            write_new_folder(out, entries)
        sizes = {name: sum(map(len, parts)) for name, parts in entries.items()}
        if output == "json":
            click.echo(json.dumps({"folder": str(out), "files": sizes}, indent=2))
            return
        for name, size in sizes.items():
            click.echo(f"wrote {safe(str(out / name))}: {size:,} bytes")
        if not sizes:
            click.echo("the file carries nothing of that: no folder was made")

    return report_findings(work, output)
