"""Devices fitted to measurements of real chips: figures, their errors, and what rows can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use

if TYPE_CHECKING:
    from nacre.calibrate.device_file import device_file
    from nacre.calibrate.fit import Fit, fit
    from nacre.calibrate.measurements import Measurement, ModelFile, NemFile, NemText
    from nacre.calibrate.reading import read_measurements
    from nacre.calibrate.report import fit_json, fit_text
    from nacre.calibrate.workloads import Workload

__all__ = [
    "Fit",
    "Measurement",
    "ModelFile",
    "NemFile",
    "NemText",
    "Workload",
    "device_file",
    "fit",
    "fit_json",
    "fit_text",
    "read_measurements",
]

load_on_use(
    __name__,
    {
        "Fit": "fit",
        "Measurement": "measurements",
        "ModelFile": "measurements",
        "NemFile": "measurements",
        "NemText": "measurements",
        "Workload": "workloads",
        "device_file": "device_file",
        "fit": "fit",
        "fit_json": "report",
        "fit_text": "report",
        "read_measurements": "reading",
    },
)
