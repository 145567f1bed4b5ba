"""How fast units are: defaults, what a device declares, and what a profile says instead."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.base.term_columns import Column
from nacre.nem.model.devices import Device
from nacre.nem.spec.figures import PARAMETERS, bounds_of
from nacre.nem.spec.limits import MAX_FIGURE

Figures = Mapping[str, Mapping[str, Any]]


_CLOCK = ("NMU", "clock")
_LANES = "lanes"  # of the NMU: a pair
_Cycles = TypeVar("_Cycles", int, Column, int | Column)


class ProfileError(ValueError):
    """A timing profile that cannot be meant; the message lists every problem."""


class TileFigures(Struct, frozen=True):
    """The figures of an array; 0 where it does without, 1 where a tile has no such extent."""

    width: int
    height: int
    channels: int
    lanes: tuple[int, int]  # channels that are summed over, and those of results
    taps: int  # places of a window that share the depth
    issue: int
    weight_bandwidth: int
    operand_bandwidth: int
    operand_line: int


class ElementFigures(Struct, frozen=True):
    """How fast a CSTL is with elements; 0 where it does without a figure."""

    rate: int
    functions: int  # transcendental ones
    clamps: int  # on the way out of another pass
    width: int  # bytes


@dataclass(frozen=True, eq=False)
class TimingProfile:
    """The figures that hold for a run, and where each comes from."""

    figures: Mapping[tuple[str, str], int]
    sources: Mapping[tuple[str, str], str]
    lanes: tuple[int, int] | None = None  # rows and columns of the NMU's array

    def get(self, unit: str, key: str) -> int | None:
        """A figure; None where nobody gives one."""
        return self.figures.get((unit, key))

    def at(self, unit: str, key: str) -> int:
        """A figure that always has a value."""
        return self.figures[unit, key]

    def scale(self, cycles: _Cycles, unit: str) -> _Cycles:
        """Cycles of a unit in those of the NMU, which times are counted in."""
        counted = self.figures.get(_CLOCK)
        if not counted:  # which is most devices
            return cycles
        clock = self.get(unit, "clock")
        if not clock or counted == clock:
            return cycles
        return -(-cycles * counted // clock)

    def rate(self, unit: str, key: str) -> Fraction:
        """What a unit does at most in a cycle that times are counted in."""
        most = max(self.at(unit, key), self.get(unit, f"write_{key}") or 0)
        counted, clock = self.get("NMU", "clock"), self.get(unit, "clock")
        return most * (Fraction(clock, counted) if counted and clock else Fraction(1))

    @cached_property
    def tiles(self) -> TileFigures:
        """How the NMU's array cuts a product, asked for as often as there are products."""
        width, height, depth, channels, taps, line = (
            self.get("NMU", key) or 1
            for key in (
                *("tile_width", "tile_height", "tile_depth", "tile_channels", "tile_taps"),
                "operand_line",
            )
        )
        issue, weights, operands = (
            self.get("NMU", key) or 0
            for key in ("tile_issue", "weight_bandwidth", "operand_bandwidth")
        )
        lanes = self.lanes or (depth, channels)
        return TileFigures(width, height, channels, lanes, taps, issue, weights, operands, line)

    @cached_property
    def elements(self) -> ElementFigures:
        """What passes over elements take, asked for as often as there are any."""
        slow, clamps, width = (
            self.get("CSTL", key) or 0
            for key in ("transcendental_throughput", "clamp_throughput", "vector_bytes")
        )
        return ElementFigures(self.at("CSTL", "eltwise_throughput"), slow, clamps, width)

    def macs_per_two_cycles(self, bits: int, *, is_float: bool) -> int:
        """Twice the rate of an NMU, which is an integer even where f32 halves an odd one."""
        flat = self.get("NMU", "mac_throughput")
        if flat is not None:
            return 2 * flat
        fallback = self.at("NMU", "int8_macs")
        if is_float:
            half = self.get("NMU", "fp16_macs") or fallback
            return half if bits == 32 else 2 * half
        key = "int4_macs" if bits == 4 else "int8_macs" if bits == 8 else "int16_macs"
        return 2 * (self.get("NMU", key) or fallback)


def timing_profile(device: Device, overrides: Figures | None = None) -> TimingProfile:
    """Defaults, what the device declares, the overrides; ProfileError where those are bad."""
    figures: dict[tuple[str, str], int] = {}
    sources: dict[tuple[str, str], str] = {}
    for parameter in PARAMETERS:
        if parameter.default is not None:
            figures[parameter.unit, parameter.key] = parameter.default
            sources[parameter.unit, parameter.key] = parameter.source
    for unit, entries in device.characteristics.items():
        for key, value in entries.items():
            if _problem(unit, key, value) is None:
                figures[unit, key] = value
                sources[unit, key] = f"device {device.name}"
    problems: list[str] = []
    lanes: tuple[int, int] | None = None
    for unit, entries in (overrides or {}).items():
        for key, value in _entries(unit, entries, problems):
            if (unit, key) == ("NMU", _LANES):
                lanes = (int(value[0]), int(value[1]))
            else:
                figures[unit, key] = operator.index(value)
                sources[unit, key] = "profile"
    if problems:
        raise ProfileError("; ".join(problems))
    return TimingProfile(MappingProxyType(figures), MappingProxyType(sources), lanes)


@dataclass(frozen=True, slots=True)
class TimingFigure:
    """A figure as it holds for a device; without value the machine does without it."""

    unit: str
    key: str
    value: int | None
    measure: str
    source: str


def timing_figures(device: Device, overrides: Figures | None = None) -> list[TimingFigure]:
    """Every figure that the timed machine knows, with its source."""
    profile = timing_profile(device, overrides)
    figures = []
    for parameter in PARAMETERS:
        key = (parameter.unit, parameter.key)
        source = profile.sources.get(key) or f"not given: {what_holds_without(*key)}"
        figures.append(TimingFigure(*key, profile.get(*key), parameter.measure, source))
    return figures


def what_holds_without(unit: str, key: str) -> str:
    """What the machine does where nobody gives a figure, or says 0 of one that may be absent."""
    return _WITHOUT.get((unit, key), "not modelled")


_WITHOUT = {
    ("NMU", "int4_macs"): "int8_macs holds",
    ("NMU", "int16_macs"): "int8_macs holds",
    ("NMU", "fp16_macs"): "int8_macs holds",
    ("NMU", "mac_throughput"): "the figure for the operands' types holds",
    ("CSTL", "transcendental_throughput"): "eltwise_throughput holds",
    ("CSTL", "clamp_throughput"): "those of other elements hold",
    ("DMA", "write_bandwidth"): "bandwidth holds",
    ("DMA", "write_latency"): "latency holds",
    ("sDMA", "write_bandwidth"): "bandwidth holds",
    ("sDMA", "write_latency"): "latency holds",
    ("NMU", "clock"): "whatever the caller says",
    **{
        (p.unit, p.key): "that of the NMU"
        for p in PARAMETERS
        if p.key == "clock" and p.unit != "NMU"
    },
    ("SEQ", "max_active_tokens"): "unlimited",
}


def _entries(unit: object, entries: object, problems: list[str]) -> list[tuple[str, Any]]:
    """The sound entries of one unit; what is wrong with the others goes into `problems`."""
    units = {p.unit for p in PARAMETERS}
    if unit not in units:
        hint = did_you_mean(str(unit), units)
        problems.append(f"no unit {backquote(str(unit))}{'; ' + hint if hint else ''}")
        return []
    if not isinstance(entries, Mapping):
        problems.append(f"`{unit}` needs keys with figures, found {backquote(repr(entries), 40)}")
        return []
    sound = []
    for key, value in entries.items():
        problem = _problem(str(unit), str(key), value)
        if problem is None:
            sound.append((str(key), value))
        else:
            problems.append(problem)
    return sound


def _problem(unit: str, key: str, value: object) -> str | None:
    if (unit, key) == ("NMU", _LANES):
        pair = value if isinstance(value, list | tuple) else ()
        if len(pair) == 2 and all(_is_count(v, 1) for v in pair):
            return None
        return f"`NMU.lanes` is {backquote(repr(value), 40)}, expected two positive integers"
    bounds = bounds_of(unit, key)
    known = [p.key for p in PARAMETERS if p.unit == unit]
    if bounds is None or key not in known:
        hint = did_you_mean(key, known) or f"known are {', '.join(known)}"
        return f"`{unit}` has no figure {backquote(key)}; {hint}"
    if not bounds.admit(as_integer(value)):
        return f"`{unit}.{key}` is {backquote(repr(value), 40)}, expected {bounds}"
    return None


def _is_count(value: object, least: int) -> bool:
    number = as_integer(value)
    return number is not None and least <= number <= MAX_FIGURE


def as_integer(value: object) -> int | None:
    """An integer of any library; None for floats, truth values and everything else."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
