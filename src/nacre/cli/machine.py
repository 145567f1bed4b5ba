"""What `run` and `debug` share: options, the program, the interpreter, and how findings show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.excerpt import safe
from nacre.base.rendering import render_by_cause
from nacre.base.source import Unreadable, read_bytes
from nacre.cli.arrays import (
    InputFile,
    WrongUsage,
    load_input,
    parse_input,
)
from nacre.cli.inputs import import_option, read_argument, wants_colour, without_repetition
from nacre.cli.options import (
    WholeNumber,
    ddr_size_option,
    include_root_option,
    max_instances_option,
    options_of,
    repeated_option,
)
from nacre.cli.terminal.streams import echo_as_is
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.imports import Import
from nacre.nem.model.target import UnknownDeviceError

if TYPE_CHECKING:
    from nacre.nem.api import NemInterpreter
    from nacre.nem.api.programs import LoadedProgram

# A trace has about 150 bytes a step; this is that of five million.
_MOST_TRACE_BYTES = 1 << 30


@dataclass(frozen=True)
class Setup:
    """A program and how it is to be run, as the options say."""

    file: str
    device: str | None
    schedule: Literal["deterministic", "random"]
    seed: int
    allow: tuple[str, ...]
    inputs: tuple[InputFile, ...]
    imports: tuple[Import, ...]
    strict: bool
    uninitialized: Literal["poison", "zero"]
    ordered: bool
    detect_races: bool
    replay: Path | None
    backend: str | None
    include_roots: tuple[Path, ...]
    ddr_size: int
    max_instances: int

    def require_one_order(self, mode: str) -> None:
        """Of a timed run the device decides the order, and nothing else may."""
        if mode == "timed" and self.replay is not None:
            raise click.UsageError("--replay gives an order, and so does --mode timed")
        if mode == "timed" and self.schedule == "random":
            raise click.UsageError("--schedule random and --mode timed both decide the order")


machine_options = options_of(
    Setup,
    "setup",
    click.argument("file", metavar="FILE"),
    click.option("--device", metavar="D", help="A built-in device or a file."),
    click.option(
        "--schedule",
        type=click.Choice(["deterministic", "random"]),
        default="deterministic",
        help="Take ready tasks in program order, or at random.",
    ),
    click.option("--seed", type=WholeNumber(), default=0, metavar="N",
                 help="Of a random schedule."),
    click.option("--replay", type=click.Path(path_type=Path), metavar="TRACE.json",
                 help="Run in the order of a trace."),
    click.option("--allow", multiple=True, metavar="CODE", help="Run in spite of such findings."),
    repeated_option("--input", "inputs", parse_input, "BUF=FILE",
             "Fill a buffer, or with BUF@OFFSET a part; .npy, else raw bytes."),
    import_option,
    click.option("--strict", is_flag=True, help="Warnings are errors."),
    click.option(
        "--uninitialized",
        type=click.Choice(["poison", "zero"]),
        default="poison",
        help="What bytes that nobody wrote are.",
    ),
    click.option("--ordered", is_flag=True, help="Floats the same on every platform, slowly."),
    click.option("--detect-races", is_flag=True, help="Look for races while the program runs."),
    click.option("--backend", metavar="NAME", help="What computes: numpy, npm, auto, a plugin."),
    include_root_option,
    ddr_size_option,
    max_instances_option,
)  # fmt: skip


# The program


def read_program(setup: Setup) -> LoadedProgram:
    """The program, not yet checked; InputError for what is no text, WrongUsage for no file."""
    from nacre.nem.api.programs import LoadedProgram

    source = read_argument(setup.file)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    options = CheckOptions(
        device=setup.device,
        strict=setup.strict,
        include_roots=setup.include_roots,
        ddr_size_bytes=setup.ddr_size,
        max_instances=setup.max_instances,
        imports=setup.imports,
        host_filled=frozenset(file.target.partition("@")[0] for file in setup.inputs),
    )
    return LoadedProgram(source, options)


def check_program(program: LoadedProgram, setup: Setup) -> list[Diagnostic]:
    """What checking brings up, allowed codes left out; with an error in it, as InputError."""
    from nacre.nem.api.programs import known_codes

    try:
        allowed = tuple(known_codes(setup.allow))
        findings = without_repetition(program.diagnostics)
    except InputError as error:
        raise usage_error(error) from None
    except UnknownDeviceError as error:
        raise click.UsageError(safe(str(error))) from None
    shown_findings = drop_allowed(findings, allowed)
    if has_errors(shown_findings):
        raise InputError(shown_findings)
    _ = program.facts  # a document without a program ends here
    return shown_findings


def drop_allowed(findings: Iterable[Diagnostic], allowed: Iterable[str]) -> list[Diagnostic]:
    """The findings whose codes are not allowed."""
    prefixes = tuple(code.upper() for code in allowed)
    return [d for d in findings if not (prefixes and d.code.startswith(prefixes))]


# The machine


def interpreter(setup: Setup) -> NemInterpreter:
    """A fresh interpreter as the options describe it."""
    from nacre.nem.api import NemInterpreter

    try:
        machine = NemInterpreter(
            ddr_size=setup.ddr_size,
            uninitialized=setup.uninitialized,
            ordered=setup.ordered,
            strict=setup.strict,
        )
        if setup.backend is not None:
            machine.set_compute_backend(setup.backend)
    except InputError as error:
        raise usage_error(error) from None
    machine.set_scheduling(setup.schedule, setup.seed)
    return machine


def load_inputs(setup: Setup, program: LoadedProgram) -> dict[str, Any]:
    """The arrays of `--input`, by buffer."""
    arrays: dict[str, Any] = {}
    for file in setup.inputs:
        if file.target in arrays:
            raise click.UsageError(f"`{file.target}` is given two inputs")
        arrays[file.target] = load_input(file, program.plan.program)
    return arrays


def replay_order(setup: Setup) -> list[str] | None:
    """The order that `--replay` asks for."""
    from nacre.nem.run.memory.host import host_error
    from nacre.nem.run.sessions.trace import recorded_order

    if setup.replay is None:
        return None
    name = safe(str(setup.replay))
    raw = read_bytes(setup.replay, limit=_MOST_TRACE_BYTES)
    if isinstance(raw, Unreadable):
        raise WrongUsage(f"{name} {raw.reason}")
    try:
        return recorded_order(raw.decode("utf-8", "replace"))
    except ValueError as error:
        raise host_error(f"`{name}`: {error}") from None


# Findings


def usage_error(error: InputError) -> click.UsageError:
    """A mistake in an option as click reports it."""
    return click.UsageError("; ".join(sentence(d) for d in error.diagnostics))


def sentence(diagnostic: Diagnostic) -> str:
    """A finding without a place, and its help."""
    help_ = f"; {diagnostic.help}" if diagnostic.help else ""
    return safe(f"{diagnostic.message}{help_}")


def findings_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Findings as `nacre check` shows them; what is about the host has no place."""
    from nacre.nem.run.memory.host_span import HOST

    return render_by_cause(diagnostics, colour=wants_colour(), unplaced=HOST.source.name)


def show_findings(diagnostics: Iterable[Diagnostic]) -> None:
    """Print findings, if there are any."""
    text = findings_text(diagnostics)
    if text:
        echo_as_is(text)
