"""Fit the devices that nacre ships to measurements: `python -m benchmarks.silicon.fit_devices`.

Each begins as a file of what is known of the chip (`devices/`), and ends as a device that
`nacre devices` lists, with its calibration beside it.

    python -m benchmarks.silicon.fit_devices                  all that are shipped
    python -m benchmarks.silicon.fit_devices intel_npu27      one
    python -m benchmarks.silicon.fit_devices --data FOLDER    tables that lie elsewhere
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.silicon import hexagon, intel, rockchip, stm32
from benchmarks.silicon.tasks import DATA
from nacre.base.diagnostics import InputError
from nacre.calibrate import Fit, fit
from nacre.calibrate.device_file import calibration_record
from nacre.calibrate.report import fit_text
from nacre.compile.target import target_of
from nacre.nem.model.calibration import companion_path

ROOT = Path(__file__).resolve().parents[2]
CHIPS = Path(__file__).resolve().parent / "devices"
SHIPPED = ROOT / "src" / "nacre" / "nem" / "spec" / "devices"


@dataclass(frozen=True)
class Fitting:
    """How a device is fitted: which table it needs, where that is from, and what fits it."""

    table: str
    source: str
    fit: Callable[[Path], Fit]
    is_shipped: bool = True  # else it is shown: its errors are too large


def fit_intel(device: str, folder: Path) -> Fit:
    """One of Intel's NPUs, fitted to single tasks and transfers."""
    chip = CHIPS / f"intel_{device}.nem"
    rows = intel.measurements(folder, device)
    return fit(chip, rows, intel.FREE)


def write_device(found: Fit, name: str, source: str) -> None:
    """One device of what is known of a chip and of what was fitted, and its calibration."""
    if found.problems:
        raise InputError(found.problems)
    path = SHIPPED / f"{name}.nem"
    text = (CHIPS / path.name).read_text(encoding="utf-8").replace(f"{name}_chip", name)
    for one in found.figures:
        reason = f"to {len(found.rows)} rows, standard error {one.error:.2g}"
        line = f"            {one.figure.key} = {one.value}  # fitted: {reason}\n"
        text = _with_figure(text, one.figure.unit, one.figure.key, line)
    for name, value in found.fixed.items():
        unit, _, key = name.partition(".")
        line = f"            {key} = {value}  # assumption: as fitted to networks of f16\n"
        text = _with_figure(text, unit, key, line)
    path.write_text(text, encoding="utf-8")
    record = calibration_record(found, target_of(path).device, source)
    companion_path(path).write_text(record.as_json(), encoding="utf-8")


def _with_figure(text: str, unit: str, key: str, line: str) -> str:
    """The text of a device with the line of a figure, in place of what was guessed of it."""
    start = text.index(f"        {unit} {{\n", text.index("unit_characteristics"))
    end = text.index("        }\n", start)
    kept = [
        one
        for one in text[start:end].splitlines(keepends=True)
        if not one.lstrip().startswith(f"{key} = ")
    ]
    return text[:start] + "".join([*kept, line]) + text[end:]


def fit_intel_device(name: str) -> Fitting:
    """How one of Intel's NPUs is fitted."""
    device = name.removeprefix("intel_")
    source = intel.SOURCE.format(device.removeprefix("npu"))
    return Fitting("vpunn.csv", source, lambda folder: fit_intel(device, folder))


def fit_hexagon_device(chip: hexagon.Chip) -> Fitting:
    """How one of Qualcomm's NPUs is fitted."""
    source = hexagon.SOURCE.format(chip.device)
    return Fitting("qualcomm.csv", source, lambda folder: hexagon.fit_chip(chip.name, folder))


def fit_rockchip(folder: Path) -> Fit:
    """The RK3588, fitted to the decoding of language models."""
    return rockchip.fit_rk3588(CHIPS / f"{rockchip.NAME}.nem", folder)


def fit_stm32(folder: Path) -> Fit:
    """The STM32N6, fitted to networks whose tensors stay on the chip."""
    return fit(stm32.CHIP, tuple(stm32.measurements(folder)), stm32.FREE)


DEVICES: dict[str, Fitting] = {
    **{f"intel_{device}": fit_intel_device(f"intel_{device}") for device in intel.DEVICES},
    rockchip.NAME: Fitting("rockchip_llm.csv", rockchip.SOURCE, fit_rockchip),
    stm32.NAME: Fitting("stm32n6.csv", stm32.SOURCE, fit_stm32, is_shipped=False),
    # Those of i8 are a quarter off and more at the median: shown by the benchmark, and not shipped.
    **{c.name: fit_hexagon_device(c) for c in hexagon.CHIP_LIST if c.precision == "float"},
}


def main() -> int:
    """Fit, print, write; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help=", ".join(DEVICES))
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    chosen = parser.parse_args()
    if unknown := set(chosen.devices) - set(DEVICES):
        parser.error(f"no device {', '.join(sorted(unknown))}; known are {', '.join(DEVICES)}")
    for name in chosen.devices or [one for one in DEVICES if DEVICES[one].is_shipped]:
        fitting = DEVICES[name]
        if not (chosen.data / fitting.table).is_file():
            print(f"{chosen.data} has no {fitting.table}", file=sys.stderr)
            return 2
        found = fitting.fit(chosen.data)
        print(f"{name}\n{fit_text(found)}\n", flush=True)
        if fitting.is_shipped:
            write_device(found, name, fitting.source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
