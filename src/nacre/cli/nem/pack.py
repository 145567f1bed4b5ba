"""`nacre pack` and `nacre unpack`: NEM as bytecode, and back."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import safe
from nacre.base.files import make_folder, write_together, write_whole
from nacre.base.source import Source
from nacre.cli.arrays import WrongUsage, report_write_errors
from nacre.cli.core.files import report_findings
from nacre.cli.inputs import STDIN, read_argument
from nacre.cli.nac.files import require_distinct_files
from nacre.cli.terminal.streams import echo_document
from nacre.nem.syntax.formatter import format_source

_OUT = click.Path(path_type=Path)
_UNNAMED = "program.nem"  # the only document of a file, which needs no name there


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
def pack(
    files: tuple[str, ...],
    out: Path,
    no_comments: bool,
    canonical_positions: bool,
    self_contained: bool,
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
        packed = pack_sources(sources, options, with_shipped=self_contained)
        with report_write_errors(out):
            write_whole(out, [packed])
        click.echo(f"wrote {safe(str(out))}: {len(packed):,} bytes")

    return report_findings(work)


@click.command()
@click.argument("file", metavar="FILE.nemb")
@click.option(
    "-o",
    "out",
    type=_OUT,
    metavar="OUT.nem",
    help="Write it here; into a folder, if the name has no suffix, with all that it includes. "
    "Default: standard output.",
)
def unpack(file: str, out: Path | None) -> int:
    """Write bytecode as NEM text, in canonical form.

    `lib.nemb/conv.nem` names one document of a library.
    """
    if out is not None:
        require_distinct_files([out], [file] if file != STDIN else [])

    def work() -> None:
        source = _read(file)
        texts = _texts(source, out)
        if out is None:
            echo_document(next(iter(texts.values())))
            return
        with report_write_errors(out), write_together():
            for path, text in texts.items():
                with make_folder(path.parent):
                    write_whole(path, [text])
        click.echo("\n".join(f"wrote {safe(str(path))}" for path in texts))

    return report_findings(work)


def _read(name: str) -> Source:
    source = read_argument(name)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    return source


def _texts(source: Source, out: Path | None) -> dict[Path, str]:
    """What is written where: the document alone, or all that its file holds."""
    from nacre.nem.bytecode.library import BytecodeSource, RefusedSource

    library = source.library if isinstance(source, BytecodeSource | RefusedSource) else None
    sources: dict[Path, Source]
    if out is not None and not out.suffix and library is not None:
        sources = {out / (name or _UNNAMED): library.document(name) for name in library.entries}
    else:
        sources = {out or Path(STDIN): source}
    return {path: format_source(one) for path, one in sources.items()}
