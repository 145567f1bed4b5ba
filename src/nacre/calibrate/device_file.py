"""A fitted device as its file, and the calibration that lies beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nacre.base.diagnostics import InputError
from nacre.base.files import write_together, write_whole
from nacre.base.source import Source
from nacre.calibrate.fit import Fit, FittedFigure
from nacre.compile.target import target_of
from nacre.nem.api import format as format_nem
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.builtins import builtin_file, builtin_path
from nacre.nem.model.calibration import FORMAT, Calibration, FigureRecord, companion_path
from nacre.nem.model.devices import Device
from nacre.nem.model.files import default_roots, load
from nacre.nem.model.linking import link
from nacre.nem.model.provenance import figures as declared_figures
from nacre.nem.model.target import file_target
from nacre.nem.run.timing.profile import timing_figures
from nacre.nem.syntax.parser import parse

_NO_NAME = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True)
class DeviceFile:
    """The text of a fitted device, and of the calibration beside it."""

    path: Path
    text: str
    device: Device
    calibration: Calibration

    @property
    def contents(self) -> dict[Path, str]:
        """What is written, by path."""
        return {self.path: self.text, companion_path(self.path): self.calibration.as_json()}

    def save(self) -> None:
        """Write both files, or none."""
        with write_together():
            for path, text in self.contents.items():
                write_whole(path, [text])


def device_file(fit: Fit, path: Path, name: str | None = None, source: str = "") -> DeviceFile:
    """The files of a fitted device; InputError where the fit is not sound, or the device is not.

    `source` says in words where the measurements are from.
    """
    if fit.problems:
        raise InputError(fit.problems)
    text = format_nem("\n".join(_lines(fit, name or device_name(path))))
    document = Source(str(path), text, path)
    errors = [
        d for d in check_source(document, CheckOptions()).diagnostics if d.severity == "error"
    ]
    if errors:
        raise InputError(errors)
    root = load(parse(document), default_roots(path, ()))
    device = file_target(root, link(root)).device
    return DeviceFile(path, text, device, calibration_record(fit, device, source))


def device_name(path: Path) -> str:
    """The name of a device in a file of that name."""
    name = _NO_NAME.sub("_", path.stem) or "fitted"
    return f"_{name}" if name[0].isdigit() else name


def _lines(fit: Fit, name: str) -> Iterator[str]:
    device = fit.device
    is_builtin = device.source is not None and builtin_path(device.source.name) is not None
    if is_builtin:
        yield f'include "{builtin_file(device.name)}"'
    else:
        yield from target_of(device).head
    yield ""
    yield f"device {name} extends {device.name} {{"
    yield "unit_characteristics {"
    for unit, entries in _by_unit(fit).items():
        yield f"{unit} {{"
        yield from entries
        yield "}"
    yield "}"
    yield "}"


def _by_unit(fit: Fit) -> dict[str, list[str]]:
    """The lines of figures, by unit."""
    units: dict[str, list[str]] = {}
    for one in fit.figures:
        if one.is_fitted:
            line = f"{one.figure.key} = {one.value}  # fitted: {_reason(fit, one)}"
            units.setdefault(one.figure.unit, []).append(line)
    for name, value in fit.fixed.items():
        unit, _, key = name.partition(".")
        units.setdefault(unit, []).append(f"{key} = {value}  # assumption: set for the fit")
    return units


def _reason(fit: Fit, one: FittedFigure) -> str:
    return f"to {len(fit.rows)} rows, standard error {one.error:.2g}"


def calibration_record(fit: Fit, device: Device, source: str) -> Calibration:
    """What lies beside the file of a fitted device."""
    return Calibration(
        FORMAT,
        device.name,
        device.digest,
        source,
        len(fit.rows),
        fit.groups,
        fit.left_out is not None,
        fit.overall,
        fit.classes,
        tuple(_records(fit, device)),
    )


def _records(fit: Fit, device: Device) -> Iterator[FigureRecord]:
    """Every figure of the timed machine, and where it comes from."""
    fitted = {one.figure.name: one for one in fit.figures if one.is_fitted}
    declared = {one.name: one for one in declared_figures(device)}
    for row in timing_figures(device):
        name = f"{row.unit}.{row.key}"
        if name in fitted:
            one = fitted[name]
            yield FigureRecord(name, row.value, "fitted", f"to {len(fit.rows)} rows", one.error,
                               one.figure.low, one.figure.high)  # fmt: skip
            continue
        known = declared.get(name)
        if known is not None and known.basis == "fact":
            yield FigureRecord(name, row.value, "fact", known.reason)
        else:
            reason = known.reason if known is not None else row.source
            yield FigureRecord(name, row.value, "assumed", reason)
