"""A device fitted to measurements: `nacre.calibrate.fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.source import whole_file
from nacre.calibrate.cross_validation import HeldOutTimes, cross_validate
from nacre.calibrate.errors import error_band
from nacre.calibrate.free_figures import FreeFigure, Key, Range, fixed_figures, free_figures
from nacre.calibrate.identifiability import Combination, identify
from nacre.calibrate.least_squares import Problem
from nacre.calibrate.measurements import UNITS, Measurement, ModelFile, time_problem
from nacre.calibrate.reading import read_measurements
from nacre.calibrate.rules import (
    CAL03,
    CAL04,
    CAL07,
    CAL10,
    CAL11,
    CAL12,
    CAL13,
    CAL14,
    CAL16,
    CAL17,
)
from nacre.calibrate.search import fit_values
from nacre.calibrate.subjects import load_subjects
from nacre.calibrate.timed_rows import CLOCK, Floats, TimedRows
from nacre.compile.plan_digest import TIMES_ALONE
from nacre.compile.target import target_of
from nacre.nem.model.calibration import ErrorBand
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import timing_profile

ROWS_PER_FIGURE = 5
_CONTRADICTION = 2.0  # times of one workload that differ by more
_FAR_OFF = np.log(2.0)
_ABSURD = np.log(100.0)  # off from the fit, which no machine of others' times explains
_LEAST_OF_CLASS = 10  # rows for a band of their own
_REQUEST = whole_file("<calibrate>")

_CLOCK = ".".join(CLOCK)

T = TypeVar("T")
Ranges = Mapping[str, Range | None] | Iterable[tuple[str, Range | None]]


@dataclass(frozen=True)
class FittedFigure:
    """A free figure with the value that fits best."""

    figure: FreeFigure
    value: int
    error: float | None  # the standard error; None where no time depends on the figure

    @property
    def is_fitted(self) -> bool:
        """Whether the rows say anything about it."""
        return self.error is not None

    @property
    def is_at_edge(self) -> bool:
        """Whether it ended at the edge of its range."""
        return self.is_fitted and self.figure.is_edge(self.value)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found. `problems` are errors: a fit that has some is not written."""

    device: Device
    figures: tuple[FittedFigure, ...]
    fixed: Mapping[str, int]
    rows: tuple[Measurement, ...]
    measured: Floats  # cycles or microseconds, row by row
    before: Floats  # as the device was
    modelled: Floats  # as it is fitted
    left_out: HeldOutTimes | None  # None where all rows are of one group
    overall: ErrorBand
    classes: Mapping[str, ErrorBand]
    alike: tuple[Combination, ...]
    problems: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]

    @property
    def groups(self) -> int:
        """How many groups the rows are of."""
        return len({row.group_name for row in self.rows})

    @property
    def predicted(self) -> Floats:
        """Times of rows by a fit that did not see their group, where there are several."""
        return self.modelled if self.left_out is None else self.left_out.times


def fit(
    device: str | Path | Device,
    rows: str | Path | Sequence[Measurement],
    free: Ranges,
    *,
    fixed: Mapping[str, int] | None = None,
    clock_mhz: int | None = None,
    include_roots: tuple[Path, ...] = (),
    starts: int | None = None,
    seed: int = 0,
) -> Fit:
    """Fit figures of a device to measured times.

    `rows` are a CSV file or measurements; `free` are figures and their ranges, None for all that
    the figure can be; `fixed` are others that are set; `clock_mhz` is NMU.clock: seconds need it.
    `starts` is from how many places it starts: four, or one where a timing of all takes seconds.
    InputError says what is wrong with any of them, all at once as far as that can be.
    """
    target = target_of(device, include_roots).device
    given = {**({_CLOCK: clock_mhz} if clock_mhz is not None else {}), **(fixed or {})}
    figures, known, measurements = _read_request(target, rows, free, given)
    subjects, index = load_subjects(measurements, target, include_roots)
    in_cycles = [row.is_in_cycles for row in measurements]
    timed = TimedRows(subjects, index, in_cycles, figures, known)
    measured = np.array([row.amount for row in measurements], np.float64)
    problem = Problem(timed, np.log(measured), np.ones(len(measured), np.bool_))
    values = fit_values(problem, starts, seed)
    left_out = cross_validate(problem, [row.group_name for row in measurements], values)
    found = identify(problem, values)
    fitted = tuple(map(FittedFigure, figures, values, found.errors))
    before, modelled = timed.times(tuple(f.first for f in figures)), timed.exact_times(values)
    predicted = modelled if left_out is None else left_out.times
    folds = None if left_out is None else left_out.folds
    overall = error_band(predicted, measured, [r.group_name for r in measurements], folds)
    return Fit(
        target, fitted, given, measurements, measured, before, modelled, left_out, overall,
        _class_bands(measurements, predicted, measured, folds), found.alike,
        (*_edge_findings(fitted), *_absurd_rows(measurements, modelled, measured)),
        (*_contradictions(measurements, measured), *_warnings(fitted, found.alike),
         *_far_off(predicted, measured), *_plan_findings(measurements, figures)),
    )  # fmt: skip


def _read_request(
    device: Device,
    rows: str | Path | Sequence[Measurement],
    free: Ranges,
    fixed: Mapping[str, int],
) -> tuple[tuple[FreeFigure, ...], dict[Key, int], tuple[Measurement, ...]]:
    """Figures and rows; InputError says what is wrong with either."""
    ranges = list(free.items() if isinstance(free, Mapping) else free)
    findings: list[Diagnostic] = []
    figures = _try(findings, lambda: free_figures(device, ranges, fixed))
    known = _try(findings, lambda: fixed_figures(fixed))
    measurements = _try(
        findings, lambda: tuple(read_measurements(rows) if isinstance(rows, str | Path) else rows)
    )
    has_clock = _CLOCK in {*fixed, *(name for name, _ in ranges)} or bool(
        timing_profile(device).get(*CLOCK)
    )
    findings += _time_findings(measurements or (), has_clock)
    if measurements is not None:
        findings += _row_findings(measurements, len(ranges))
    if findings or figures is None or known is None or measurements is None:
        raise InputError(findings)
    return figures, known, measurements


def _try(findings: list[Diagnostic], work: Callable[[], T]) -> T | None:
    """What something gives; None where it is wrong, and why among the findings."""
    try:
        return work()
    except InputError as error:
        findings += error.diagnostics
        return None


def _time_findings(rows: Sequence[Measurement], has_clock: bool) -> list[Diagnostic]:
    """Times that are none; seconds that no clock says the cycles of."""
    findings = []
    for row in rows:
        if row.unit not in UNITS:
            findings.append(CAL04.at(row.span, f"{backquote(row.unit)} is no unit of time"))
        elif (problem := time_problem(row.time, row.unit)) is not None:
            findings.append(CAL03.at(row.span, f"the time {problem}"))
    in_seconds = [row for row in rows if not row.is_in_cycles]
    if in_seconds and not has_clock and not findings:
        units = ", ".join(dict.fromkeys(row.unit for row in in_seconds))
        mixed = "; other rows are in cycles" if len(in_seconds) < len(rows) else ""
        message = f"times are in {units}, and no clock says how many cycles they are{mixed}"
        help_ = f"give `{_CLOCK}` in MHz: {setting('`--clock`', '`clock_mhz=`')}"
        findings.append(CAL04.at(in_seconds[0].span, message, help=help_))
    return findings


def _row_findings(rows: Sequence[Measurement], figures: int) -> list[Diagnostic]:
    needed = ROWS_PER_FIGURE * figures
    if len(rows) >= needed:
        return []
    message = f"{len(rows)} rows for {figures} free figures, expected {needed} or more"
    help_ = f"measure more, or free {len(rows) // ROWS_PER_FIGURE} figures at most"
    return [CAL07.at(rows[0].span if rows else _REQUEST, message, help=help_)]


def _class_bands(
    rows: Sequence[Measurement], predicted: Floats, measured: Floats, folds: Sequence[int] | None
) -> dict[str, ErrorBand]:
    kinds = np.array([row.class_name for row in rows], np.object_)
    bands = {}
    for kind in sorted(set(kinds.tolist())):
        own = kinds == kind
        if int(own.sum()) >= _LEAST_OF_CLASS or len(set(kinds.tolist())) == 1:
            parts = None if folds is None else np.asarray(folds)[own].tolist()
            groups = [row.group_name for row, is_own in zip(rows, own, strict=True) if is_own]
            bands[kind] = error_band(predicted[own], measured[own], groups, parts)
    return bands


def _edge_findings(fitted: Sequence[FittedFigure]) -> list[Diagnostic]:
    findings = []
    for one in fitted:
        if one.is_at_edge:
            figure = one.figure
            message = (f"`{figure.name}` fits best at {one.value}, the edge of its range "
                       f"{figure.low}..{figure.high}")  # fmt: skip
            given = setting(f"`--set {figure.name}={one.value}`", "`fixed=`")
            help_ = f"widen the range, or set it: {given}"
            findings.append(CAL10.at(_REQUEST, message, help=help_))
    return findings


def _contradictions(rows: Sequence[Measurement], measured: Floats) -> list[Diagnostic]:
    by_subject: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(rows):
        by_subject.setdefault((row.is_in_cycles, row.subject.key), []).append(place)
    findings = []
    for places in by_subject.values():
        least, most = min(places, key=measured.__getitem__), max(places, key=measured.__getitem__)
        if measured[most] > _CONTRADICTION * measured[least]:
            unit = "cycles" if rows[most].is_in_cycles else "us"
            message = (f"{rows[most].subject} takes {measured[most]:.6g} {unit} here, and "
                       f"{measured[least]:.6g} in another row")  # fmt: skip
            findings.append(CAL11.at(rows[most].span, message))
    return findings


def _warnings(fitted: Sequence[FittedFigure], alike: Sequence[Combination]) -> list[Diagnostic]:
    findings = [
        CAL12.at(_REQUEST, f"no measured time depends on `{one.figure.name}`")
        for one in fitted
        if not one.is_fitted
    ]
    for combination in alike:
        names = " and ".join(f"`{name}`" for name, _ in combination.members)
        message = f"the rows cannot tell {names} apart: {combination} changes next to nothing"
        findings.append(CAL13.at(_REQUEST, message))
    return findings


def _plan_findings(
    rows: Sequence[Measurement], figures: Sequence[FreeFigure]
) -> Iterator[Diagnostic]:
    """Free figures by which the compiler chooses, where models were compiled."""
    names = [f"`{f.name}`" for f in figures if (f.unit, f.key) not in TIMES_ALONE]
    planned = next((row for row in rows if isinstance(row.subject, ModelFile)), None)
    if names and planned is not None:
        message = f"plans of models depend on {', '.join(names)}, which is free"
        help_ = "fit the fitted device once more, or free what times alone depend on: clocks, "
        help_ += "`SEQ.call`, `DDR.bandwidth` and the like"
        yield CAL16.at(planned.span, message, help=help_)


def _absurd_rows(
    rows: Sequence[Measurement], modelled: Floats, measured: Floats
) -> Iterator[Diagnostic]:
    """Rows that were fitted and are far off all the same, where most rows are not."""
    off = np.log(measured / modelled)
    if np.median(np.abs(off)) > _FAR_OFF:
        return
    for place in np.flatnonzero(np.abs(off) > _ABSURD).tolist():
        row, factor = rows[place], float(np.exp(abs(off[place])))
        way = "longer" if off[place] > 0 else "shorter"
        message = f"{row.subject} takes a time {factor:.2g} times {way} than other rows let expect"
        yield CAL17.at(row.span, message, help="mend the time or its unit, or remove the row")


def _far_off(predicted: Floats, measured: Floats) -> list[Diagnostic]:
    off = float(np.median(np.abs(np.log(predicted / measured))))
    if off <= _FAR_OFF:
        return []
    message = f"the median time is off by a factor of {np.exp(off):.2g}"
    return [CAL14.at(_REQUEST, message)]
