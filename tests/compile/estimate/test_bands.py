"""How sure an estimate is: bands of calibrated devices, and the spread of assumptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.compile.estimate.bands import fitted_band, network_class
from nacre.compile.estimate.estimate import estimate
from nacre.compile.estimate.result import Estimate
from nacre.compile.estimate.text import estimate_text
from nacre.core import Builder, Module
from nacre.nem.model.calibration import (
    FORMAT,
    Calibration,
    ErrorBand,
    calibration_of,
    companion_path,
)
from nacre.nem.model.target import builtin_device

DEVICE = """include "npm4k.nem"
device board extends npm4k {
    unit_characteristics { NMU { latency = 100  clock = 500 } }
}
"""


def model() -> Module:
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (1, 8, 16, 16))
    return builder.module(builder.add("Relu", x))


@pytest.fixture
def board(tmp_path: Path) -> Path:
    path = tmp_path / "board.nem"
    path.write_text(DEVICE)
    return path


def calibrate(path: Path, **classes: ErrorBand) -> None:
    """Lay a calibration beside a device, as if somebody had fitted it."""
    device = estimate(model(), path).device
    band = ErrorBand(40, 0.1, 0.2, 0.9, 0.5, 3.0, 0.8)
    found = Calibration(FORMAT, device.name, device.digest, "", 40, 8, True, band, classes, ())
    companion_path(path).write_text(found.as_json())


def line_of(found: Estimate) -> str:
    return estimate_text("model", {"board": found}).splitlines()[2]


def test_a_calibrated_device_has_the_band_of_its_rows(board: Path) -> None:
    calibrate(board)
    found = estimate(model(), board)
    assert found.plan is not None
    assert found.clock_mhz == 500  # its own
    band = found.as_json()["band"]
    assert (band["calibrated"], band["low"], band["high"]) == (True, 0.5, 3.0)
    assert band["low_cycles"] == round(0.5 * found.plan.ideal.cycles)
    time = found.milliseconds or 0
    assert line_of(found) == (
        f"board: {time:.3g} ms ({0.5 * time:.3g} to {3 * time:.3g}, "
        "fitted to 40 rows of single tasks)"
    )
    layer = found.as_json()["layers"][0]
    assert (layer["low_cycles"], layer["high_cycles"]) == (
        round(0.5 * layer["cycles"]), round(3.0 * layer["cycles"]),
    )  # fmt: skip
    shown = f"{layer['cycles']:,}  {layer['low_cycles']:,} to {layer['high_cycles']:,}"
    assert shown in estimate_text("model", {"board": found})


def test_networks_that_were_measured_say_more_than_tasks(board: Path) -> None:
    calibrate(board, model=ErrorBand(12, 0.1, 0.2, 0.9, 0.8, 1.3, 0.8))
    found = estimate(model(), board)
    band = found.as_json()["band"]
    assert (band["low"], band["high"], band["basis"]) == (0.8, 1.3, "fitted to 40 rows")


def test_figures_that_changed_since_are_not_calibrated(board: Path) -> None:
    calibrate(board)
    board.write_text(DEVICE.replace("100", "101"))
    band = estimate(model(), board).as_json()["band"]
    assert not band["calibrated"]


def test_a_device_that_nobody_measured_shows_what_it_assumes() -> None:
    found = estimate(model(), "npm4k")
    again = estimate(model(), "npm4k")
    assert found.plan is not None
    band = found.plan.band
    assert again.plan is not None
    assert band == again.plan.band  # drawn from one seed
    assert not band.is_calibrated
    assert 0 < band.low < band.high
    assert "(not calibrated: " in line_of(found)
    # Latencies of a hundred times are in it, and half of a rate.
    assert band.high > 2


@pytest.mark.parametrize("name", ["intel_npu27", "intel_npu40"])
def test_fitted_devices_come_with_their_errors(name: str) -> None:
    calibration = calibration_of(builtin_device(name))
    assert calibration is not None
    assert calibration.is_left_out
    for kind in ("conv", "dw"):
        band = calibration.classes[kind]
        assert (band.median < 0.08, band.most < 0.2) == (True, True)  # of groups left out
    fitted = [one for one in calibration.figures if one.provenance == "fitted"]
    assert len(fitted) * 5 <= calibration.rows
    found = estimate(model(), name)
    assert found.as_json()["derated"]["cycles"] is None
    assert "fitted to" in line_of(found)


@pytest.mark.parametrize("generation", ["v73", "v75", "v79"])
def test_hexagons_are_fitted_to_networks(generation: str) -> None:
    calibration = calibration_of(builtin_device(f"hexagon_{generation}"))
    assert calibration is not None
    assert calibration.is_left_out
    band = calibration.classes[network_class("f16")]
    assert (band.median < 0.12, band.rank > 0.9) == (True, True)  # of networks left out
    assert band.inside == pytest.approx(0.8, abs=0.1)
    fitted = [one for one in calibration.figures if one.provenance == "fitted"]
    assert len(fitted) * 5 <= calibration.rows
    found = fitted_band(calibration, "f16")
    assert (found.low, found.high) == (band.low, band.high)
    assert found.basis == f"fitted to {calibration.rows} rows"
    # Of other precisions nothing was measured: all rows are what there is.
    assert fitted_band(calibration, "i8").low == calibration.overall.low
