"""Devices fitted to measurements of real chips: figures, their errors, and what rows can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use

if TYPE_CHECKING:
    from nacre.calibrate.fit import Fit, fit
    from nacre.calibrate.measurements import Measurement, ModelFile, NemFile
    from nacre.calibrate.reading import read_measurements
    from nacre.calibrate.workloads import Workload

__all__ = ["Fit", "Measurement", "ModelFile", "NemFile", "Workload", "fit", "read_measurements"]

load_on_use(
    __name__,
    {
        "Fit": "fit",
        "Measurement": "measurements",
        "ModelFile": "measurements",
        "NemFile": "measurements",
        "Workload": "workloads",
        "fit": "fit",
        "read_measurements": "reading",
    },
)
