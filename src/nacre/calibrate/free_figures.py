"""Figures that a fit may change: their ranges, and the integers in them that it tries."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.calibrate.rules import CAL08, CAL09
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.spec.figures import PARAMETERS, Bounds, Kind, bounds_of

Key = tuple[str, str]  # unit and figure, as profiles have them
Range = tuple[int, int]

_REQUEST = whole_file("<calibrate>")
_STEP = 1.03  # between neighbouring integers that are tried, where they are not neighbours already
_UNKNOWN_MOST = 1 << 16  # where starts are drawn for a figure that nobody has given
_START_FACTOR = 64  # how far from a value that is known
_RANGE = re.compile(r"(?P<low>[0-9]{1,13})\.\.(?P<high>[0-9]{1,13})")


@dataclass(frozen=True)
class FreeFigure:
    """A figure that is fitted, and the range that it stays in."""

    unit: str
    key: str
    kind: Kind
    low: int
    high: int
    start: int | None  # as the device has it; None where nobody has given it

    @property
    def name(self) -> str:
        """`NMU.latency`."""
        return f"{self.unit}.{self.key}"

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """The integers that a fit tries, a few per cent apart; it interpolates between them."""
        rungs = [self.low]
        while rungs[-1] < self.high:
            rungs.append(min(self.high, max(rungs[-1] + 1, round(rungs[-1] * _STEP))))
        return tuple(rungs)

    @property
    def is_size(self) -> bool:
        """Whether it is the size of something, and neither a rate, a cost nor a clock."""
        return self.kind == "size"

    @property
    def first(self) -> int:
        """Where a fit starts: what the device has; else where the figure changes least."""
        if self.start is not None:
            return min(max(self.start, self.low), self.high)
        return self.start_range[1] if self.kind == "rate" else self.low

    @property
    def start_range(self) -> Range:
        """Where starts are drawn: not far from what is known."""
        known = self.start
        if known is None:
            return self.low, max(self.low, min(self.high, _UNKNOWN_MOST))
        low = max(self.low, known // _START_FACTOR)
        high = min(self.high, max(known, 1) * _START_FACTOR)
        return (low, high) if low < high else (self.low, self.high)

    def ladder_position(self, value: float) -> float:
        """Where a value lies on the ladder."""
        rungs = self.ladder
        if value <= rungs[0]:
            return 0.0
        if value >= rungs[-1]:
            return float(len(rungs) - 1)
        above = bisect_left(rungs, value)
        low, high = rungs[above - 1], rungs[above]
        return above - 1 + (value - low) / (high - low)

    def value(self, place: float) -> float:
        """What lies at a place of the ladder."""
        rungs = self.ladder
        at = min(int(place), len(rungs) - 2) if len(rungs) > 1 else 0
        next_rung = rungs[min(at + 1, len(rungs) - 1)]
        return rungs[at] + (place - at) * (next_rung - rungs[at])

    def is_edge(self, value: int) -> bool:
        """Whether a value lies at an end of the range."""
        return value in (self.low, self.high)


def parse_free(text: str) -> tuple[str, Range | None]:
    """`NMU.latency=0..5000`, or the name alone; ValueError where it is neither."""
    name, sign, bounds = text.partition("=")
    if not sign:
        return name, None
    found = _RANGE.fullmatch(bounds)
    if not name or found is None:
        raise ValueError(f"{backquote(text)} is no figure such as NMU.latency=0..5000")
    return name, (int(found["low"]), int(found["high"]))


def free_figures(
    device: Device, ranges: Iterable[tuple[str, Range | None]], fixed: Mapping[str, int]
) -> tuple[FreeFigure, ...]:
    """The figures that are free; InputError says what is wrong with all of them."""
    given = list(ranges)
    findings = [f for f in (_name_finding(name) for name, _ in given) if f is not None]
    names = [name for name, _ in given]
    findings += [
        CAL08.at(_REQUEST, f"`{name}` is named {names.count(name)} times")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    findings += [
        CAL08.at(_REQUEST, f"`{name}` is free and set to {fixed[name]}", help="leave out one")
        for name in dict.fromkeys(names)
        if name in fixed
    ]
    if not given:
        help_ = "name one, such as NMU.latency=0..5000"
        findings.append(CAL08.at(_REQUEST, "no figure is free", help=help_))
    known = [(name, range_) for name, range_ in given if _name_finding(name) is None]
    findings += [f for f in (_range_finding(*pair) for pair in known) if f is not None]
    if findings:
        raise InputError(findings)
    figures = timing_profile(device).figures
    return tuple(_free_figure(name, range_, figures) for name, range_ in known)


def fixed_figures(fixed: Mapping[str, int]) -> dict[Key, int]:
    """Figures that are set for good; InputError says what is wrong with all of them."""
    findings = []
    for name, value in fixed.items():
        finding = _name_finding(name)
        if finding is None and not _bounds(name).admit(value):
            finding = CAL09.at(_REQUEST, f"`{name}` is {value}, expected {_bounds(name)}")
        findings += [] if finding is None else [finding]
    if findings:
        raise InputError(findings)
    return {_key(name): value for name, value in fixed.items()}


def _free_figure(name: str, range_: Range | None, figures: Mapping[Key, int]) -> FreeFigure:
    unit, key = _key(name)
    bounds = _bounds(name)
    kind = next(p.kind for p in PARAMETERS if (p.unit, p.key) == (unit, key))
    # A rate or a size of 0 is none at all: from there to 1 is no small step.
    least = bounds.least if kind == "cost" else max(1, bounds.least)
    low, high = range_ or (least, bounds.most)
    return FreeFigure(unit, key, kind, low, high, figures.get((unit, key)))


def _name_finding(name: str) -> Diagnostic | None:
    known = [f"{p.unit}.{p.key}" for p in PARAMETERS]
    if name in known:
        return None
    message = f"no figure {backquote(name)} of the timed machine"
    of_unit = [other for other in known if other.partition(".")[0] == name.partition(".")[0]]
    hint = did_you_mean(name, known) or f"there are {', '.join(of_unit or known)}"
    return CAL08.at(_REQUEST, message, help=hint)


def _range_finding(name: str, range_: Range | None) -> Diagnostic | None:
    if range_ is None:
        return None
    low, high = range_
    bounds = _bounds(name)
    if low >= high:
        message = f"the range of `{name}` is empty: {low}..{high}"
        return CAL09.at(_REQUEST, message, help="give the lower end first, and another upper one")
    if not (bounds.admit(low) and bounds.admit(high)):
        message = f"the range of `{name}` is {low}..{high}, and it is {bounds}"
        return CAL09.at(_REQUEST, message)
    return None


def _key(name: str) -> Key:
    unit, _, key = name.partition(".")
    return unit, key


def _bounds(name: str) -> Bounds:
    bounds = bounds_of(*_key(name))
    if bounds is None:
        raise ValueError(f"{name} has no bounds")
    return bounds
