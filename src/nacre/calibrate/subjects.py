"""What was measured, made ready to be timed: read, checked, compiled and expanded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nacre.base.diagnostics import Diagnostic, InputError, Related
from nacre.base.excerpt import backquote
from nacre.base.source import Source, Unreadable
from nacre.base.stages import stage
from nacre.calibrate.measurements import Measurement, ModelFile, NemFile, NemText, Subject
from nacre.calibrate.rules import CAL06
from nacre.calibrate.workloads import UnfitError, Workload
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.estimate.estimate import estimate
from nacre.nac.models import read_model
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.bytecode.sources import read_program
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.devices import Device
from nacre.nem.run.sessions.steps import Steps, number_steps
from nacre.nem.run.timing.profile import TimingProfile, timing_profile
from nacre.nem.run.timing.resources import NoUnitError, StepCosts
from nacre.nem.run.timing.timeline import Timeline, time_placed
from nacre.nem.spec.limits import MAX_DIAGNOSTICS

_MOST_RELATED = 3  # findings of a program that a row names
_DDR_BYTES = 1 << 40  # what was measured had its memory


@dataclass(frozen=True, eq=False)
class LoadedSubject:
    """The steps of a plan, whose times depend on figures alone."""

    steps: Steps
    device: Device

    @cached_property
    def costs(self) -> StepCosts:
        """What its steps cost, as a function of figures."""
        return StepCosts(self.steps, self.device)

    def time(self, profile: TimingProfile, *, compile: bool | None = None) -> Timeline:
        """When its steps run with some figures."""
        placement = self.costs.place(profile)
        return time_placed(self.steps, self.device, profile, placement, compile=compile)


def load_subjects(
    rows: Sequence[Measurement], device: Device, include_roots: tuple[Path, ...] = ()
) -> tuple[tuple[LoadedSubject, ...], tuple[int, ...]]:
    """The distinct subjects of rows, and which of them each row has; InputError for all faults."""
    places: dict[tuple[object, ...], int] = {}
    loaded: list[LoadedSubject | None] = []
    findings: list[Diagnostic] = []
    index = []
    done = 0
    with stage("loading workloads", "rows", lambda: (done, len(rows))):
        for row in rows:
            key = (type(row.subject).__name__, *row.subject.key)
            if key not in places:
                places[key] = len(loaded)
                loaded.append(_load(row, device, include_roots, findings))
            index.append(places[key])
            done += 1
    if findings:
        raise InputError(findings[:MAX_DIAGNOSTICS])
    return tuple(one for one in loaded if one is not None), tuple(index)


def _load(
    row: Measurement,
    device: Device,
    include_roots: tuple[Path, ...],
    findings: list[Diagnostic],
) -> LoadedSubject | None:
    try:
        program = _program(row.subject, device, include_roots)
        program.require_runnable()
        subject = LoadedSubject(number_steps(program.plan), program.device)
        timeline = subject.time(timing_profile(subject.device))
    except (UnfitError, NoUnitError) as error:
        findings.append(CAL06.at(row.span, str(error)))
    except InputError as error:
        findings.append(_caused_finding(row, error))
    else:
        if not timeline.is_stuck and timeline.cycles > 0:
            return subject
        why = "waits for tokens for ever" if timeline.is_stuck else "takes no time"
        findings.append(CAL06.at(row.span, f"{row.subject} {why}"))
    return None


def _caused_finding(row: Measurement, error: InputError) -> Diagnostic:
    """What is wrong with a program or model, at the row that names it."""
    causes = [d for d in error.diagnostics if d.severity == "error"] or list(error.diagnostics)
    first = causes[0]
    message = f"{row.subject} cannot run on the device: {first.message} [{first.code}]"
    is_generated = isinstance(row.subject, Workload)
    related = () if is_generated else tuple(
        Related(d.span, f"{d.message} [{d.code}]") for d in causes[:_MOST_RELATED]
    )  # fmt: skip
    return CAL06.at(row.span, message, related=related, help=first.help)


def _program(subject: Subject, device: Device, include_roots: tuple[Path, ...]) -> LoadedProgram:
    options = CheckOptions(device=device, include_roots=include_roots, ddr_size_bytes=_DDR_BYTES)
    if isinstance(subject, Workload):
        return LoadedProgram(Source("<workload>", subject.program(device)), options)
    if isinstance(subject, NemFile):
        return LoadedProgram(_read_program(subject.path), options)
    if isinstance(subject, NemText):
        return LoadedProgram(Source(subject.name, subject.text), options)
    return LoadedProgram(Source(f"<{subject}>", _plan_text(subject, device)), options)


def _read_program(path: Path) -> Source:
    source = read_program(path)
    if isinstance(source, Unreadable):
        raise UnfitError(f"{backquote(str(path), 60)} {source.reason}")
    return source


def _plan_text(subject: ModelFile, device: Device) -> str:
    """The plan of a bundle, or of a model that is compiled for the device."""
    if not subject.path.exists():
        raise UnfitError(f"{backquote(str(subject.path), 60)} does not exist")
    if subject.path.is_dir():
        return Bundle.load(subject.path).program
    with stage(f"compiling {subject}"):
        found = estimate(read_model(str(subject.path), {}), device, subject.precision)  # type: ignore[arg-type]
    if found.plan is None:
        raise InputError(found.problems)
    return found.plan.bundle.program
