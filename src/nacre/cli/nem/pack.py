"""`nacre pack` and `nacre unpack`: NEM as bytecode, and back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import safe
from nacre.base.files import make_folder, write_together, write_whole
from nacre.base.source import Source
from nacre.cli.arrays import WrongUsage, report_write_errors
from nacre.cli.core.files import report_findings
from nacre.cli.inputs import STDIN, read_argument, require_text_name
from nacre.cli.nac.files import require_distinct_files
from nacre.cli.options import include_root_option
from nacre.cli.terminal.streams import echo_document
from nacre.nem.syntax.formatter import format_source

_OUT = click.Path(path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "out", required=True, type=_OUT, metavar="OUT.nemb", help="Write it here.")
@click.option("--no-comments", is_flag=True, help="Leave the comments out.")
@click.option(
    "--canonical-positions",
    is_flag=True,
    help="Places of findings are those in the canonical text, which a file need not keep.",
)
@click.option(
    "--self-contained",
    is_flag=True,
    help="Bring along what nacre ships, too: devices and families as they are now.",
)
@include_root_option
def pack(
    files: tuple[str, ...],
    out: Path,
    no_comments: bool,
    canonical_positions: bool,
    self_contained: bool,
    include_roots: tuple[Path, ...],
) -> int:
    """Write NEM files as bytecode, with the files that they include.

    Several FILEs make a library: `OUT.nemb/conv.nem` then names one of its programs.
    """
    require_distinct_files([out], [name for name in files if name != STDIN])

    def work() -> None:
        from nacre.nem.api.packing import pack_sources
        from nacre.nem.bytecode.packing import PackOptions

        options = PackOptions(comments=not no_comments, positions=not canonical_positions)
        sources = [_read(name) for name in files]
        packed = pack_sources(
            sources, options, include_roots=include_roots, with_shipped=self_contained
        )
        with report_write_errors(out):
            write_whole(out, [packed])
        click.echo(f"wrote {safe(str(out))}: {len(packed):,} bytes")

    return report_findings(work)


@click.command()
@click.argument("file", metavar="FILE.nemb")
@click.option(
    "-o",
    "out_name",
    metavar="OUT.nem",
    help="Write it here; into a folder, if the name has no suffix or ends in `/`, with all that it "
    "includes. Default: standard output.",
)
def unpack(file: str, out_name: str | None) -> int:
    """Write bytecode as NEM text, in canonical form.

    `lib.nemb/conv.nem` names one document of a library. In a folder, documents that are included
    as `x.nemb` are bytecode again.
    """
    out = None if out_name is None else Path(out_name)
    if out is not None:
        require_distinct_files([out], [file] if file != STDIN else [])
    is_folder = out is not None and (out_name or "").endswith(("/", os.sep))
    is_folder |= out is not None and (not out.suffix or out.is_dir())
    if out is not None and not is_folder:
        require_text_name(out)

    def work() -> None:
        source = _read(file)
        if out is None:
            echo_document(format_source(source))
            return
        files = _files(source, out, is_folder)
        with report_write_errors(out), write_together():
            for path, content in files.items():
                with make_folder(path.parent):
                    write_whole(path, [content])
        click.echo("\n".join(f"wrote {safe(str(path))}" for path in files))

    return report_findings(work)


def _read(name: str) -> Source:
    source = read_argument(name)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    return source


def _files(source: Source, out: Path, is_folder: bool) -> dict[Path, str | bytes]:
    """What is written where: the document alone, or all that its file holds."""
    from nacre.nem.api.packing import unpacked_files
    from nacre.nem.bytecode.library import BytecodeSource, RefusedSource

    library = source.library if isinstance(source, BytecodeSource | RefusedSource) else None
    if is_folder and library is not None:
        return {out / name: content for name, content in unpacked_files(library).items()}
    path = out / Path(source.name).name if is_folder else out
    return {path: format_source(source)}
