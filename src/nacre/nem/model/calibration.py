"""How a device was fitted to measurements, kept beside its file: `NAME.calibration.json`.

The device's file has the figures; this one has where each comes from, how many rows they were
fitted to, and how far times that were left out are off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Unreadable, read_bytes, whole_file
from nacre.nem.model.builtins import builtin_path
from nacre.nem.model.devices import Device
from nacre.nem.spec.rules.calibration import CAL15

FORMAT = 1
Provenance = Literal["fact", "fitted", "assumed"]
_SUFFIX = ".calibration.json"
_MOST_BYTES = 1 << 20


class FigureRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure of the device and where it comes from."""

    name: str  # NMU.latency
    value: int | None  # None: nobody gives it
    provenance: Provenance
    reason: str = ""
    error: float | None = None  # of one that was fitted: its standard error
    low: int | None = None  # and the range that it was to stay in
    high: int | None = None


class ErrorBand(Struct, frozen=True, forbid_unknown_fields=True):
    """How far modelled times are off, as shares, and the band in which 80 % of true times lie.

    A time of `t` is between `low * t` and `high * t`. Numbers are those of rows that were left out,
    group by group.
    """

    rows: int
    median: float  # of the distances from the measured time
    most: float  # that nine in ten stay below
    rank: float  # correlation of ranks
    low: float
    high: float
    inside: float | None = None  # the share of rows in a band that was found without them


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """What a device was fitted to, and how well."""

    format: int
    device: str
    digest: str  # of the device with the figures that this belongs to
    source: str  # of the measurements, in words
    rows: int
    groups: int
    is_left_out: bool  # else errors are of the very rows that were fitted
    overall: ErrorBand
    classes: Mapping[str, ErrorBand]
    figures: tuple[FigureRecord, ...]

    def band(self, kind: str | None = None) -> ErrorBand:
        """The band of a class; that of all rows where the class has none."""
        return self.classes.get(kind or "", self.overall)

    def is_of(self, device: Device) -> bool:
        """Whether a device still has the figures that were fitted."""
        return self.digest == device.digest

    def as_json(self) -> str:
        """The text of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def companion_path(device_file: Path) -> Path:
    """Where the calibration of a device's file lies: beside it, under the same stem."""
    return device_file.with_name(device_file.stem + _SUFFIX)


def calibration_of(device: Device) -> Calibration | None:
    """The calibration beside a device's file, if it belongs to these figures; CAL15 if damaged."""
    path = _file_of(device)
    if path is None or not companion_path(path).is_file():
        return None
    calibration = read_calibration(companion_path(path))
    return calibration if calibration.is_of(device) else None


def _file_of(device: Device) -> Path | None:
    source = device.source
    if source is None:
        return None
    return source.path or builtin_path(source.name)


def read_calibration(path: Path) -> Calibration:
    """A calibration from its file; InputError says what is wrong with it."""
    raw = read_bytes(path, limit=_MOST_BYTES)
    if isinstance(raw, Unreadable):
        raise _unreadable_error(path, raw.reason)
    try:
        calibration = msgspec.json.decode(raw, type=Calibration)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable_error(path, f"is no calibration: {error}") from None
    for problem in _problems(calibration):
        raise _unreadable_error(path, problem)
    return calibration


def _unreadable_error(path: Path, reason: str) -> InputError:
    message = f"{backquote(path.name, 60)} {reason}"
    return InputError([CAL15.at(whole_file(str(path)), message)])


def _problems(calibration: Calibration) -> Iterator[str]:
    if calibration.format != FORMAT:
        yield f"has format {calibration.format}, expected {FORMAT}"
    for name, band in {"all rows": calibration.overall, **calibration.classes}.items():
        shares = (band.median, band.most, band.low, band.high)
        if not all(math.isfinite(share) and share >= 0 for share in shares):
            yield f"has errors of {backquote(name)} that are no shares"
        if not 0 < band.low <= band.high:
            yield f"has a band of {backquote(name)} from {band.low:g} to {band.high:g}"
        if not -1 <= band.rank <= 1 or not 0 <= (band.inside or 0) <= 1 or band.rows < 1:
            yield f"has a rank, a share or a number of rows of {backquote(name)} that is none"
