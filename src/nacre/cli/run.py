"""`nacre run`: run a NEM program and write what it computes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors, warnings_as_errors
from nacre.base.excerpt import safe
from nacre.base.files import write_whole
from nacre.base.rendering import summary, to_json
from nacre.cli.arrays import (
    OutputFile,
    OutputView,
    WrongUsage,
    as_array,
    file_bytes,
    output_view,
    parse_output,
    report_write_errors,
    require_writable,
    write_all_or_none,
)
from nacre.cli.bundles import OpenBundle, findings_to_show, open_bundle
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.machine import (
    Setup,
    check_program,
    drop_allowed,
    interpreter,
    load_inputs,
    machine_options,
    read_program,
    replay_order,
    show_findings,
)
from nacre.cli.options import form_option, repeated_option
from nacre.cli.outputs import require_distinct_files
from nacre.cli.terminal.progress import show_stages
from nacre.cli.timed import (
    PERFETTO_ENDINGS,
    Fusing,
    TimedOptions,
    find_fusing,
    set_profile,
    time_what_if,
    timed_options,
    timing_json,
    timing_text,
    write_page,
    write_trace,
)

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.estimate.result import Estimate
    from nacre.nem.api import NemInterpreter
    from nacre.nem.api.programs import LoadedProgram
    from nacre.nem.run.sessions.session import RunResult
    from nacre.nem.run.timing.result import TimedResult

_MODES = ("functional", "timed")
_TRACE_ENDINGS = (".json", ".csv")


@click.command()
@machine_options
@timed_options
@click.option("--mode", type=click.Choice(_MODES), default=_MODES[0], help="What decides order.")
@repeated_option(
    "--output",
    "outputs",
    parse_output,
    "BUF[:ELEM[:SHAPE]]=FILE",
    "Write a buffer after the run, as u8 or as ELEM; .npy, else raw bytes.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what ran: .json, .csv; of a timed run also .perfetto-trace.",
)
@click.option(
    "--fuse",
    is_flag=True,
    help="Pass values from task to task where a binder may; timed, say what that saves.",
)
@form_option
def run(
    setup: Setup,
    timed: TimedOptions,
    mode: str,
    fuse: bool,
    outputs: tuple[OutputFile, ...],
    trace: Path | None,
    form: str,
) -> int:
    """Run a NEM program or a compiled bundle, bit-true, with inputs and outputs in files.

    Inputs and outputs of a bundle, which is a folder, go by the model's names. With `--mode timed`
    the device's units decide when each task starts, and the report says where the time goes. FILE
    may be `-` for standard input. With `--fuse` values that nobody else reads pass from task to
    task and are never written, where a binder may do that; buffers of `--output` are written.

    Exit status: 0 completed without errors, 1 errors in the program, its inputs or its run, 2 wrong
    usage.
    """
    timed.require(mode, setup, has_outputs=bool(outputs))
    written = _require_targets(setup, timed, outputs, trace, mode)
    report = Report(form, setup.file, output_paths=tuple(file.path for file in outputs))
    try:
        with show_stages():
            bundle = open_bundle(setup, outputs, needs_inputs=not timed.no_values)
            if bundle is not None:
                setup, outputs, report.bundle = bundle.setup, (), bundle.bundle
            program = read_program(setup)
            report.program = program
            findings = findings_to_show(bundle, check_program(program, setup))
            require_distinct_files(written, _files_of_program(program, setup, bundle))
            views = [output_view(file, program.plan.program) for file in outputs]
            machine = interpreter(setup)
            machine.set_mode(mode)
            set_profile(machine, timed)
            report.what_if = time_what_if(machine, program, timed, setup.allow)
            observed = tuple(file.buffer for file in outputs) if fuse else None
            report.fusing = find_fusing(machine, program, mode, observed)
            if timed.no_values:
                return _time_only(machine, program, setup, timed, trace, report, findings)
            result = _run(machine, setup, program, bundle, observed)
    except InputError as error:
        return report.report_refusal(error.diagnostics)
    if _is_complete(result) or (result.timing is not None and result.timing.waiting):
        report.timing, report.timed = result.timing, timed
    elif timed.report is not None:
        report.output_paths = (*report.output_paths, timed.report)
    arrays = [as_array(result.read_buffer(v.file.buffer), v) for v in views if _is_complete(result)]
    during = _run_findings(result, setup, bundle)
    with write_all_or_none():
        if trace is not None:
            _write_trace(result, trace)
        _write_page(report)
        for view, array in zip(views, arrays, strict=False):
            _write(view.file.path, file_bytes(array, view.file.path))
        if bundle is not None and _is_complete(result):
            for path, data, what in bundle.files(result):
                _write(path, data)
                report.written.append((path, what))
    return report.report_run(result, [*findings, *during], views if arrays else [], trace)


def _time_only(
    machine: NemInterpreter,
    program: LoadedProgram,
    setup: Setup,
    timed: TimedOptions,
    trace: Path | None,
    report: Report,
    findings: list[Diagnostic],
) -> int:
    """Time a program without computing anything."""
    from nacre.nem.run.sessions.session import RunResult
    from nacre.nem.run.timing.status import deadlock_findings

    timing = machine.time(program, allow=setup.allow)
    report.timing, report.timed = timing, timed
    problems = deadlock_findings(timing)
    with write_all_or_none():
        if trace is not None:
            write_trace(timing, trace)
        _write_page(report)
    tasks = sum(1 for _ in timing.tasks) if not problems else 0
    result = RunResult("error" if problems else "completed", tuple(problems), None, tasks)
    return report.report_run(result, [*findings, *problems], [], trace)


def _write_page(report: Report) -> None:
    if report.timing is not None and report.timed is not None and report.timed.report is not None:
        write_page(report.timing, report.timed.report, report.name, report.layers)


def _files_of_options(setup: Setup, timed: TimedOptions) -> Iterator[str | Path]:
    """What is read, as far as the command names it."""
    yield setup.file
    yield from (file.path for file in setup.inputs)
    yield from (path for path in (setup.replay, timed.profile) if path is not None)


def _files_of_program(
    program: LoadedProgram, setup: Setup, bundle: OpenBundle | None
) -> Sequence[Path]:
    """A program with what it includes, or all that lies in its bundle."""
    return program.needed if bundle is None else list(Path(setup.file).parent.iterdir())


def _require_targets(
    setup: Setup, timed: TimedOptions, outputs: Sequence[OutputFile], trace: Path | None, mode: str
) -> list[Path]:
    """What is to be written; what would keep it from that is better known before a long run."""
    if trace is not None:
        endings = (*_TRACE_ENDINGS, *(PERFETTO_ENDINGS if mode == "timed" else ()))
        if not trace.name.lower().endswith(endings):
            known = " or ".join(endings)
            raise click.UsageError(f"a trace ends in {known}, found {safe(trace.name)}")
    named = (*(file.path for file in outputs), trace)
    for path in (path for path in named if path is not None):
        require_writable(path)
    written = [path for path in (*named, timed.report) if path is not None]
    require_distinct_files(written, _files_of_options(setup, timed))
    return written


def _run(
    machine: NemInterpreter,
    setup: Setup,
    program: LoadedProgram,
    bundle: OpenBundle | None,
    observed: tuple[str, ...] | None,
) -> RunResult:
    """Run it; fused where `observed` says which buffers are looked at."""
    memory = bundle.filled if bundle is not None else {}
    inputs, order = {**memory, **load_inputs(setup, program)}, replay_order(setup)
    return machine.run(
        program, inputs, allow=setup.allow, order=order, detect_races=setup.detect_races,
        fuse=observed is not None, observed=observed or (),
    )  # fmt: skip


def _is_complete(result: RunResult) -> bool:
    return result.status == "completed"


def _run_findings(result: RunResult, setup: Setup, bundle: OpenBundle | None) -> list[Diagnostic]:
    """What the run and reading its outputs brought up; what stopped it is never left out."""
    session = result.session
    findings = list(session.diagnostics if session is not None else result.diagnostics)
    if _is_complete(result):
        endless = [] if bundle is None else bundle.not_finite_warnings(result)
        findings = drop_allowed([*endless, *findings], setup.allow)
    return warnings_as_errors(findings) if setup.strict else findings


def _write(path: Path, data: bytes) -> None:
    with report_write_errors(path):
        write_whole(path, [data])


def _write_trace(result: RunResult, path: Path) -> None:
    if result.session is None:
        return
    if result.timing is not None and _is_complete(result):
        write_trace(result.timing, path)
        return
    try:
        result.session.export_trace(path)
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            with report_write_errors(path):
                raise error.__cause__ from None
        raise WrongUsage(safe(error.diagnostics[0].message)) from None


@dataclass
class Report:
    """How a run is told: as text or as JSON."""

    form: str
    file: str
    program: LoadedProgram | None = None
    timing: TimedResult | None = None
    what_if: TimedResult | None = None
    fusing: Fusing | None = None
    bundle: Bundle | None = None
    timed: TimedOptions | None = None
    output_paths: tuple[Path, ...] = ()  # the files that a whole run writes
    written: list[tuple[Path, str]] = field(default_factory=list)  # outputs of a bundle

    @property
    def name(self) -> str:
        """The program's name, or its file's."""
        return self.program.name if self.program is not None else self.file

    @cached_property
    def layers(self) -> Estimate | None:
        """Where the time of a bundle's run goes, by layer; None where it has none."""
        from nacre.compile.estimate.from_bundle import estimate_bundle

        if self.bundle is None or self.timing is None or self.timing.waiting:
            return None
        return estimate_bundle(self.bundle, timed=self.timing)

    @property
    def _device(self) -> str | None:
        return self.program.device.name if self.program is not None else None

    def report_refusal(self, findings: Sequence[Diagnostic]) -> int:
        """Nothing ran."""
        if self.form == "json":
            self._json("error", 0, findings, {})
            return ERRORS_FOUND
        show_findings(findings)
        click.echo(f"did not run {safe(self.name)}: {summary(findings)}")
        return ERRORS_FOUND

    def report_run(
        self,
        result: RunResult,
        findings: Sequence[Diagnostic],
        views: Sequence[OutputView],
        trace: Path | None,
    ) -> int:
        """A run came to its end, or to an error."""
        status = ERRORS_FOUND if has_errors(findings) or not _is_complete(result) else OK
        if self.form == "json":
            written: dict[str, Any] = {str(v.file.path): _as_json(v) for v in views}
            written |= {str(path): {"output": what} for path, what in self.written}
            self._json(result.status, result.tasks, findings, written)
            return status
        show_findings(findings)
        notes = f"; {summary(findings)}" if findings else ""
        how = result.status if _is_complete(result) else "stopped by an error"
        tasks = f"{result.tasks} task{'' if result.tasks == 1 else 's'}"
        click.echo(f"ran {tasks} of {safe(self.name)} on {safe(self._device or '')}: {how}{notes}")
        if not _is_complete(result) and self.output_paths:
            click.echo(f"did not write {', '.join(safe(str(path)) for path in self.output_paths)}")
        for view in views:
            click.echo(f"wrote {safe(str(view.file.path))}: {view.file.buffer} as {view.kind}")
        for path, what in self.written:
            click.echo(f"wrote {safe(str(path))}: {safe(what)}")
        if trace is not None:
            click.echo(f"wrote {safe(str(trace))}: the trace")
        if self.timed is not None and self.timed.report is not None and self.timing is not None:
            click.echo(f"wrote {safe(str(self.timed.report))}: the report")
        if self.timing is not None and self.timed is not None:
            click.echo(timing_text(self.timing, self.what_if, self.timed, self.layers))
        if self.fusing is not None and _is_complete(result):
            click.echo(self.fusing.text)
        return status

    def _json(
        self, status: str, tasks: int, findings: Sequence[Diagnostic], outputs: dict[str, Any]
    ) -> None:
        report = {
            "status": status,
            "program": self.name,
            "device": self._device,
            "tasks": tasks,
            "diagnostics": [to_json(d) for d in findings],
            "outputs": outputs,
        }
        if self.timing is not None and self.timed is not None:
            report |= timing_json(self.timing, self.what_if, self.timed, self.layers)
            report["status"] = status
        if self.fusing is not None:
            report["fusion"] = self.fusing.as_json()
        click.echo(json.dumps(report, indent=2))


def _as_json(view: OutputView) -> dict[str, Any]:
    return {"buffer": view.file.buffer, "elem": view.elem.name, "shape": list(view.shape)}
