"""Fit the devices that nacre ships to measurements: `python -m benchmarks.silicon.fit_devices`.

Each begins as a file of what is known of the chip (`devices/`), and ends as a device that
`nacre devices` lists, with its calibration beside it.

    python -m benchmarks.silicon.fit_devices                  all of them
    python -m benchmarks.silicon.fit_devices intel_npu27      one
    python -m benchmarks.silicon.fit_devices --data FOLDER    tables that lie elsewhere
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.silicon import intel
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
        line = f"            {one.figure.key} = {one.value}  # fitted: to {len(found.rows)} rows, "
        line += f"standard error {one.error:.2g}\n"
        head = f"        {one.figure.unit} {{\n"
        end = text.index("        }\n", text.index(head, text.index("unit_characteristics")))
        text = text[:end] + line + text[end:]
    path.write_text(text, encoding="utf-8")
    record = calibration_record(found, target_of(path).device, source)
    companion_path(path).write_text(record.as_json(), encoding="utf-8")


def main() -> int:
    """Fit, print, write; the exit status."""
    names = [f"intel_{device}" for device in intel.DEVICES]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help=", ".join(names))
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    chosen = parser.parse_args()
    if unknown := set(chosen.devices) - set(names):
        parser.error(f"no device {', '.join(sorted(unknown))}; known are {', '.join(names)}")
    if not (chosen.data / "vpunn.csv").is_file():
        print(f"{chosen.data} has no vpunn.csv", file=sys.stderr)
        return 2
    for name in chosen.devices or names:
        found = fit_intel(name.removeprefix("intel_"), chosen.data)
        print(f"{name}\n{fit_text(found)}\n", flush=True)
        source = intel.SOURCE.format(name.removeprefix("intel_npu"))
        write_device(found, name, source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
