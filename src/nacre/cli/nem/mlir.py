"""`nacre nem to-mlir`, `from-mlir` and `irdl`: programs as modules of MLIR, and the dialect."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.base.rendering import summary
from nacre.base.source import Source
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable
from nacre.cli.core.files import report_findings
from nacre.cli.exit_status import ERRORS_FOUND
from nacre.cli.inputs import read_argument, require_text_name, show
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

_OUT = out_option("FILE", "Write here. `-`, or nothing: print.", prints=True)


def _source(name: str) -> Source:
    source = read_argument(name)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    return source


def _print_or_write(text: str, out: Path | None) -> None:
    """Print a text, or write it whole."""
    if out is None or str(out) == STDOUT:
        echo_document(text)
        return
    with report_write_errors(out):
        write_whole(out, [text])
    echo_written(out, "")


def _require_target(out: Path | None, *read: str) -> None:
    """Whatever would keep a file from being written is better known before the work."""
    if out is not None and str(out) != STDOUT:
        require_writable(out)
        require_distinct_files([out], read)


def _require_mlir_name(out: Path | None) -> None:
    """UsageError where a module would get the name of a program, or take its place."""
    if out is None:
        return
    require_text_name(out)
    if out.suffix == ".nem":
        problem = f"{safe(str(out))} is a name of NEM, and this is MLIR"
        raise click.UsageError(f"{problem}: take another one, as {safe(out.stem)}.mlir")


@nem.command("to-mlir")
@click.argument("file")
@_OUT
def to_mlir(file: str, out: Path | None) -> int:
    """Write a NEM document as a module of MLIR, in the dialect `nem`.

    FILE may be `-` for standard input. Comments and places are kept.
    """
    from nacre.nem.mlir.export import export_source

    _require_target(out, file)
    _require_mlir_name(out)

    def work() -> None:
        source = _source(file)
        _print_or_write(export_source(source), out)
        _warn_of_includes(source)

    return report_findings(work)


def _warn_of_includes(source: Source) -> None:
    """Say which files a packed one has inside that a module of it will look for."""
    from nacre.nem.bytecode.library import BytecodeSource

    if not isinstance(source, BytecodeSource):
        return
    paths = [include.path.value for include in source.parsed.document.includes]
    inside = [path for path in paths if source.enclosed(path) is not None]
    if inside:
        names = ", ".join(backquote(path) for path in inside)
        file = safe(source.library.name)
        problem = f"the module includes {names}, which {file} has inside and the module has not"
        click.echo(f"warning: {problem}", err=True)
        click.echo(f"help: `nacre unpack {file} -o FOLDER` writes them beside each other", err=True)


@nem.command("from-mlir")
@click.argument("file")
@_OUT
@click.option("--check", "is_checked", is_flag=True,
              help="Find mistakes too, where the module's locations say.")  # fmt: skip
@click.option("--device", metavar="D", help="With --check: replaces the program's device.")
@click.option("--strict", is_flag=True, help="With --check: warnings are errors.")
@include_root_option
@force_option
def from_mlir(
    file: str,
    out: Path | None,
    is_checked: bool,
    device: str | None,
    strict: bool,
    include_roots: tuple[Path, ...],
    force: bool,
) -> int:
    """Write a module of MLIR, in the dialect `nem`, as a NEM document.

    FILE may be `-` for standard input. A file that is there with other content is written over with
    --force alone. Needs the package xdsl: pip install "nacre[mlir]".
    """
    if not is_checked and (device is not None or strict or include_roots):
        raise click.UsageError("--device, --strict and --include-root are for --check")
    _require_target(out, file)
    if out is not None:
        require_text_name(out)
    diagnostics: list[Diagnostic] = []

    def work() -> None:
        from nacre.nem.api.mlir import findings
        from nacre.nem.checks.engine import CheckOptions
        from nacre.nem.mlir.importing import import_source

        imported = import_source(_source(file))
        if is_checked:
            options = CheckOptions(device=device, strict=strict, include_roots=include_roots)
            diagnostics.extend(findings(imported, options))
        if not has_errors(diagnostics) and (out is not None or not is_checked):
            if out is not None and str(out) != STDOUT:
                require_unchanged({out: imported.text}, force)
            _print_or_write(imported.text, out)

    status = report_findings(work)
    if is_checked and not status:
        show(diagnostics, "text")
        click.echo(f"checked {safe(file)}: {summary(diagnostics)}")
    return ERRORS_FOUND if has_errors(diagnostics) else status


@nem.command()
@_OUT
def irdl(out: Path | None) -> int:
    """Write the dialect `nem` as an IRDL file, for `mlir-opt --irdl-file`."""
    from nacre.nem.mlir.irdl import irdl_text

    _require_target(out)
    _require_mlir_name(out)
    return report_findings(lambda: _print_or_write(irdl_text(), out))
