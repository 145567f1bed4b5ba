"""Rockchip's chips, fitted together to the decoding of language models.

Four models are few: the share of DDR's bandwidth that decoding reaches is one figure of all chips,
beside a cost per token of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.silicon.fits import (
    Predictor,
    Rows,
    fit_parts,
    folds_of,
    part_factors,
    predict_left_out,
)
from benchmarks.silicon.llm import ROBUST, Decoding, rockchip_decodings
from nacre.calibrate import Fit, Measurement, Workload
from nacre.calibrate.cross_validation import HeldOutTimes
from nacre.calibrate.errors import error_band
from nacre.calibrate.fit import FittedFigure
from nacre.calibrate.free_figures import free_figures
from nacre.calibrate.timed_rows import Floats
from nacre.compile.estimate.bands import DECODE
from nacre.compile.target import target_of

SOURCE = (
    "airockchip/rknn-llm, benchmark.md of release 1.3.0 (commit 878f936): decoding of language "
    "models alone, on RK3588 and RK3576"
)
CHIP = "RK3588"
NAME = "rockchip_rk3588"
# GB/s of the pins: LPDDR4X-4266 of 64 and of 32 bits.
PINS: Mapping[str, float] = {"RK3588": 34.1, "RK3576": 17.1}
FREE = {"DDR.bandwidth": (1, 34), "SEQ.call": (1, 100_000_000)}
_SECONDS_PER_CYCLE = 1e-9


def decodings(folder: Path) -> list[Decoding]:
    """Rows of the chips whose memory is known."""
    return [one for one in rockchip_decodings(folder) if one.device in PINS]


def shared_rows(found: list[Decoding]) -> Rows:
    """Seconds per token beside seconds at the rate of the pins, and a cost for each chip."""
    at_pins = [one.size / (PINS[one.device] * 1e9) for one in found]
    costs = [[float(one.device == chip) for one in found] for chip in PINS]
    times = np.array([1 / one.rate for one in found])
    groups = tuple(one.decoder.architecture for one in found)
    return Rows(np.array([at_pins, *costs]).T, times, groups)


def fit_shared(parts: Floats, times: Floats) -> Predictor:
    """One share of the pins' rate, and costs."""
    return fit_parts(parts, times, ROBUST)


def fit_rk3588(chip: Path, folder: Path) -> Fit:
    """The chip with its bandwidth and its cost per token; errors are of rows of both chips."""
    found = decodings(folder)
    rows = shared_rows(found)
    measured = rows.measured * 1e6
    factors = part_factors(rows.modelled, rows.measured, ROBUST)
    values = (PINS[CHIP] / factors[0], factors[1] / _SECONDS_PER_CYCLE)
    errors = _standard_errors(rows, factors)[:2] * np.array(values)
    folds = tuple(folds_of(rows.groups).tolist())
    predicted = predict_left_out(rows, fit_shared) * 1e6
    device = target_of(chip).device
    figures = free_figures(device, list(FREE.items()), {})
    band = error_band(predicted, measured, rows.groups, folds)
    return Fit(
        device,
        tuple(
            FittedFigure(figure, round(value), float(error))
            for figure, value, error in zip(figures, values, errors, strict=True)
        ),
        {},
        tuple(map(_measurement, found)),
        measured,
        rows.modelled[:, 0] * 1e6,
        rows.modelled @ factors * 1e6,
        HeldOutTimes(predicted, folds),
        band,
        {DECODE: band},
        (),
        (),
        (),
    )


def _measurement(one: Decoding) -> Measurement:
    copy = Workload("transfer", size_bytes=round(one.size), source="DDR", target="L1")
    return Measurement(copy, 1 / one.rate, "s", one.decoder.architecture, DECODE)


def _standard_errors(rows: Rows, factors: Floats) -> Floats:
    """Of the logarithms of factors, by what the rows leave open."""
    times = rows.modelled @ factors
    slopes = rows.modelled * factors / times[:, None]
    off = np.log(times / rows.measured)
    variance = off @ off / (len(off) - len(factors))
    return np.sqrt(variance * np.diag(np.linalg.inv(slopes.T @ slopes)))
