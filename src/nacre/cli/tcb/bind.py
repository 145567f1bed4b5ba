"""`nacre bind`: a plan or a bundle bound to the hardware of a device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import safe
from nacre.base.files import write_whole
from nacre.base.rendering import summary, to_json
from nacre.base.stages import stage
from nacre.cli.arrays import require_writable, write_all_or_none
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.inputs import program_in
from nacre.cli.machine import show_findings
from nacre.cli.options import form_option, out_option
from nacre.cli.outputs import echo_written, require_distinct_files
from nacre.cli.tcb.group import OpenProgram, ProgramOptions, open_program, program_options
from nacre.cli.terminal.progress import show_stages
from nacre.cli.terminal.streams import echo_as_is

if TYPE_CHECKING:
    from nacre.bind.measure.measured import MeasuredBinding
    from nacre.bind.report import BindReport
    from nacre.binding import TcbImage
    from nacre.tcbcheck.proof import Proof

_STDOUT = "-"


@click.command()
@program_options
@click.option(
    "--uarch", metavar="U", help="A built-in microarchitecture or a file. Default: the device's."
)
@click.option("--no-fuse", is_flag=True, help="Write every value: chain no tasks.")
@click.option("--no-wdm", is_flag=True, help="Move weights as they are: compress none.")
@click.option(
    "--allow-serialise", is_flag=True, help="Add order where the device has too few tags."
)
@out_option("FILE.tcb", "Write the image here.", required=True)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html|FILE.txt|-",
    help="Write a page for a browser: the program's timeline beside the image's, cycles by cause, "
    "banks, chains, weights and every decision with its reason. A file of another name, or `-` "
    "for standard output, has the decisions as text.",
)
@form_option
def bind(
    program: ProgramOptions,
    uarch: str | None,
    no_fuse: bool,
    no_wdm: bool,
    allow_serialise: bool,
    out: Path,
    report: Path | None,
    form: str,
) -> int:
    """Bind a NEM program or a compiled bundle to a device: units, addresses, chains, weights, tags.

    The image that is written has a stream of blocks for each engine; `nacre tcb` shows, proves,
    runs and times it. PLAN may be `-` for standard input.

    Exit status: 0 bound, 1 errors in the program or no way to bind it, 2 wrong usage.
    """
    file = None if report is None or str(report) == _STDOUT else report
    options = (program.device, uarch)
    read = [program_in(program.file), *(name for name in options if name is not None)]
    _require_targets(read, out, file)
    try:
        with show_stages():
            opened = open_program(program)
            _require_targets(list(map(str, opened.needed(program.file))), out, file)
            image = _bind(opened, uarch, not no_fuse, not no_wdm, allow_serialise)
            measured = _measure(image) if _is_page(file) or (report and form == "json") else None
    except InputError as error:
        return _report_refusal(program.file, error.diagnostics, form)
    found = _report_of(image, opened)
    with write_all_or_none():
        image.save(out)
        if file is not None:
            _write_report(file, found, measured)
    if report is not None and file is None and form == "text":
        echo_as_is(f"{found.decisions}\n")
    _report_image(_Outcome(found, measured, opened.findings, out, file), form)
    return OK


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What came of a binding, and where it was written."""

    report: BindReport
    measured: _Measured | None
    findings: Sequence[Diagnostic]
    out: Path
    file: Path | None  # of the report


@dataclass(frozen=True, eq=False)
class _Measured:
    """What only a page and JSON say."""

    binding: MeasuredBinding
    proof: Proof

    def as_json(self) -> dict[str, Any]:
        return {**self.binding.as_json(), "proof": self.proof.as_json()}


def _measure(image: TcbImage) -> _Measured:
    from nacre.binding import prove_binding

    measured = image.measure()
    with stage("proving"):
        proof = prove_binding(measured)
    _ = measured.steps
    return _Measured(measured, proof)


def _is_page(file: Path | None) -> bool:
    return file is not None and file.suffix.lower() in (".html", ".htm")


def _write_report(file: Path, found: BindReport, measured: _Measured | None) -> None:
    from nacre.viz.binding_page import write_binding

    if measured is not None and _is_page(file):
        write_binding(measured.binding, file, measured.proof)
    else:
        write_whole(file, [found.decisions, "\n"])


def _bind(
    opened: OpenProgram, uarch: str | None, fuse: bool, wdm: bool, allow_serialise: bool
) -> TcbImage:
    from nacre.binding import bind as bind_program

    return bind_program(opened.bindable, uarch, fuse=fuse, wdm=wdm, allow_serialise=allow_serialise)


def _report_of(image: TcbImage, opened: OpenProgram) -> BindReport:
    from nacre.bind.report import BindReport

    assert image.bound is not None
    return BindReport(image.bound, opened.loaded.plan.program)


def _require_targets(read: Sequence[str], out: Path, page: Path | None) -> None:
    """Whatever would keep a file from being written is better known before the work."""
    written = [path for path in (out, page) if path is not None]
    require_distinct_files(written, read)
    for path in written:
        require_writable(path)


def _report_refusal(file: str, findings: Sequence[Diagnostic], form: str) -> int:
    if form == "json":
        _echo_json("error", {}, findings)
    else:
        show_findings(findings)
        click.echo(f"did not bind {safe(file)}: {summary(findings)}")
    return ERRORS_FOUND


def _report_image(outcome: _Outcome, form: str) -> None:
    findings = [d for d in outcome.findings if d.severity != "info"]
    out, file = outcome.out, outcome.file
    size = out.stat().st_size if out.is_file() else 0
    if form == "json":
        measured = {} if outcome.measured is None else outcome.measured.as_json()
        about = {"file": str(out), "bytes": size, **outcome.report.as_json(), **measured}
        _echo_json("bound", about, findings)
        return
    show_findings(findings)
    click.echo(outcome.report.summary)
    echo_written(out, f": {size:,} bytes")
    if file is not None:
        what = "timelines, cycles by cause, every decision" if _is_page(file) else "every decision"
        echo_written(file, f": {what}")


def _echo_json(status: str, about: dict[str, Any], findings: Sequence[Diagnostic]) -> None:
    document = {"status": status, **about, "diagnostics": [to_json(d) for d in findings]}
    click.echo(json.dumps(document, indent=2))
