"""Hexagon's networks: ratios less the cost of a call, and errors beside simpler models."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.silicon.hexagon import CHIP_LIST, FREE
from benchmarks.silicon.hexagon_report import Network, error_lines, ratios
from nacre.calibrate import Measurement, NemText
from nacre.compile.target import target_of

NAMES = ("vit", "wideresnet50", "resnet50", "densenet121", "mnasnet05")
MEASURED = np.array([6000.0, 3000.0, 1300.0, 900.0, 400.0])  # us, of which a call takes 300
MACS = (17e9, 11e9, 4e9, 3e9, 0.1e9)


def fit_of(predicted: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401 - as much of a fit as is read
    rows = [
        Measurement(NemText(name, ""), time, "us", name, "model f16")
        for name, time in zip(NAMES, MEASURED, strict=True)
    ]
    call = SimpleNamespace(figure=SimpleNamespace(name="SEQ.call"), value=300_000)
    device = target_of(CHIP_LIST[0].file).device  # a cycle is a nanosecond
    return SimpleNamespace(
        rows=rows, measured=MEASURED, predicted=predicted, figures=[call], device=device
    )


def test_a_ratio_is_of_latencies_less_the_call() -> None:
    found = list(ratios(fit_of(MEASURED * 1.1)))
    # densenet121 is below three times the least latency, and no pair of others is asked for.
    assert [one.name for one in found] == ["model f16: vit / wideresnet50"]
    assert found[0].measured == pytest.approx(5700 / 2700)
    assert found[0].modelled == pytest.approx((6600 - 300) / (3300 - 300))


def test_errors_are_of_rows_left_out_beside_simpler_models() -> None:
    pytest.importorskip("scipy")
    networks = [Network(macs, macs / 10) for macs in MACS]
    found = dict(error_lines(fit_of(MEASURED * 1.1), networks))
    assert found["model f16: ours"].median == pytest.approx(0.1)
    assert found["model f16: call + MACs / rate"].count == len(NAMES)
    # A factor of all cycles changes nothing where a factor is fitted.
    simple = found["model f16: call + MACs / rate"].median
    assert found["model f16: first edition"].median == pytest.approx(simple, rel=1e-3)


@pytest.mark.parametrize("chip", CHIP_LIST, ids=lambda chip: chip.name)
def test_what_is_free_has_a_place_to_start_from(chip: Any) -> None:  # noqa: ANN401
    known = target_of(chip.file).device.characteristics
    for name, (low, high) in FREE[chip.precision].items():
        unit, _, key = name.partition(".")
        assert low < known[unit][key] < high
