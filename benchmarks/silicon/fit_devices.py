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
from nacre.calibrate import Fit, fit
from nacre.calibrate.device_file import device_file
from nacre.calibrate.report import fit_text

ROOT = Path(__file__).resolve().parents[2]
CHIPS = Path(__file__).resolve().parent / "devices"
SHIPPED = ROOT / "src" / "nacre" / "nem" / "spec" / "devices"


def fit_intel(device: str, folder: Path) -> Fit:
    """One of Intel's NPUs, fitted to single tasks and transfers."""
    chip = CHIPS / f"intel_{device}.nem"
    rows = intel.measurements(folder, device)
    return fit(chip, rows, intel.FREE)


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
        device_file(found, SHIPPED / f"{name}.nem", source=source).save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
