"""Measurements: what was timed, how long it took, and which rows belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nacre.base.source import Span, whole_file
from nacre.calibrate.workloads import Workload

# Seconds of a unit; cycles are those of the NMU's clock.
SECONDS = MappingProxyType({"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0})
CYCLES = "cycles"
UNITS = (CYCLES, *SECONDS)
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e6
MOST_CYCLES = float(1 << 53)  # integers that a float can tell apart

ANYTHING = whole_file("<measurements>")


@dataclass(frozen=True)
class NemFile:
    """A program of NEM that was timed."""

    path: Path

    @property
    def key(self) -> tuple[object, ...]:
        """What tells whether two rows are of one workload."""
        return (str(self.path),)

    def __str__(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class NemText:
    """A program of NEM that was timed, by its text."""

    name: str
    text: str

    @property
    def key(self) -> tuple[object, ...]:
        """What tells whether two rows are of one workload."""
        return (self.text,)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ModelFile:
    """A model that was timed, or the folder of its bundle, which has its precision in it."""

    path: Path
    precision: str = "f16"

    @property
    def key(self) -> tuple[object, ...]:
        """What tells whether two rows are of one workload."""
        return (str(self.path), self.precision)

    def __str__(self) -> str:
        return f"{self.path.name} {self.precision}"


Subject = Workload | NemFile | NemText | ModelFile


@dataclass(frozen=True)
class Measurement:
    """One row: a workload and its time. Rows of a group are left out together."""

    subject: Subject
    time: float
    unit: str = CYCLES
    group: str | None = None  # None: that of its workload
    kind: str | None = None  # its class; None: the operation, `program` or `model`
    span: Span = ANYTHING

    @property
    def class_name(self) -> str:
        """The class that errors are reported by."""
        if self.kind is not None:
            return self.kind
        if isinstance(self.subject, Workload):
            return self.subject.operation
        return "model" if isinstance(self.subject, ModelFile) else "program"

    @property
    def group_name(self) -> str:
        """The group that is left out together."""
        return str(self.subject) if self.group is None else self.group

    @property
    def is_in_cycles(self) -> bool:
        """Whether the time is in cycles; else a clock says how many seconds those are."""
        return self.unit == CYCLES

    @property
    def amount(self) -> float:
        """The time in cycles, or in microseconds."""
        return self.time if self.is_in_cycles else self.time * SECONDS[self.unit] * 1e6


def time_problem(time: float, unit: str) -> str | None:
    """What is wrong with a time; None where it can be one."""
    if not time > 0:  # NaN is not
        return f"is {time:g}, expected a positive number"
    if unit == CYCLES:
        if 1 <= time <= MOST_CYCLES:
            return None
        return f"is {time:g} cycles, expected 1 to {MOST_CYCLES:g}"
    seconds = time * SECONDS[unit]
    if LEAST_SECONDS <= seconds <= MOST_SECONDS:
        return None
    return f"is {seconds:g} s, expected {LEAST_SECONDS:g} to {MOST_SECONDS:g}"
