"""`nacre pack` and `nacre unpack`: NEM as bytecode, and back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.files import make_folder, write_together, write_whole
from nacre.base.source import Source
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable
from nacre.cli.core.files import report_findings
from nacre.cli.inputs import read_argument, require_text_name
from nacre.cli.options import include_root_option, out_option
from nacre.cli.outputs import (
    STDOUT,
    echo_written,
    force_option,
    require_distinct_files,
    require_unchanged,
)
from nacre.cli.terminal.streams import echo_bytes, echo_document
from nacre.nem.syntax.formatter import format_source


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@out_option("OUT.nemb", "Write it here; `-`: to standard output.", required=True, prints=True)
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

    Several FILEs make a library: `OUT.nemb/conv.nem` then names one of its programs. A library
    among them stands for all its programs.
    """
    is_printed = str(out) == STDOUT
    if not is_printed:
        require_writable(out)
        require_distinct_files([out], files)

    def work() -> None:
        from nacre.nem.api.packing import gather_files, pack_files
        from nacre.nem.bytecode.packing import PackOptions

        options = PackOptions(comments=not no_comments, positions=not canonical_positions)
        sources = [program for name in files for program in _programs(_read(name))]
        gathered = gather_files(sources, include_roots, with_shipped=self_contained)
        if not is_printed:
            require_distinct_files([out], gathered.paths)
        packed = pack_files(gathered, options)
        if is_printed:
            echo_bytes(packed)
        else:
            with report_write_errors(out):
                write_whole(out, [packed])
        echo_written(out, f": {len(packed):,} bytes")

    return report_findings(work)


@click.command()
@click.argument("file", metavar="FILE.nemb")
@click.option(
    "-o",
    "out_name",
    metavar="OUT.nem",
    help="Write it here; into a folder, if the name has no suffix or ends in `/`, with all that it "
    "includes. `-`, or nothing: print.",
)
@force_option
def unpack(file: str, out_name: str | None, force: bool) -> int:
    """Write bytecode as NEM text, in canonical form.

    `lib.nemb/conv.nem` names one document of a library. In a folder, documents that are included
    as `x.nemb` are bytecode again. Files that are there with other content are written over with
    --force alone.
    """
    out = None if out_name is None or out_name == STDOUT else Path(out_name)
    is_folder = out is not None and _names_folder(out, (out_name or "").endswith(("/", os.sep)))
    if out is not None:
        require_distinct_files([out], [file])
    if out is not None and not is_folder:
        require_writable(out)
        require_text_name(out)

    def work() -> None:
        source = _read(file)
        if out is None:
            echo_document(format_source(source))
            return
        files = _files(source, out, is_folder)
        require_distinct_files(files, [file])
        require_unchanged(files, force)
        with report_write_errors(out), write_together():
            for path, content in files.items():
                with make_folder(path.parent):
                    write_whole(path, [content])
        for path in files:
            echo_written(path, "")

    return report_findings(work)


def _names_folder(out: Path, is_said: bool) -> bool:
    """Whether a name is that of a folder: what is there decides, else how it is written."""
    with report_write_errors(out):
        try:
            return out.is_dir() or is_said or (not out.suffix and not out.exists())
        except ValueError as error:  # a name with a NUL byte
            raise WrongUsage(f"cannot write there: {error}") from None


def _read(name: str) -> Source:
    source = read_argument(name)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    return source


def _programs(source: Source) -> list[Source]:
    """The programs of a library where none of them is named; else what is there."""
    from nacre.nem.bytecode.library import RefusedSource

    if not isinstance(source, RefusedSource) or source.library is None or source.member:
        return [source]
    return [source.library.document(name) for name in source.library.entry_names]


def _files(source: Source, out: Path, is_folder: bool) -> dict[Path, str | bytes]:
    """What is written where: the document alone, or all that its file holds."""
    from nacre.nem.api.packing import unpacked_files
    from nacre.nem.bytecode.library import BytecodeSource, RefusedSource

    library = source.library if isinstance(source, BytecodeSource | RefusedSource) else None
    if is_folder and library is not None:
        return {out / name: content for name, content in unpacked_files(library).items()}
    path = out / Path(source.name).name if is_folder else out
    return {path: format_source(source)}
