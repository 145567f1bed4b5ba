"""Hidden figures come back from their times; what rows cannot tell is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.calibrate import Measurement, fit
from tests.calibrate.hidden_device import DEVICE, convolution, cycles_of, measure, transfer
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

SIZES = [int(64 * 1.6**place) for place in range(16)]
TRANSFERS = [transfer(size) for size in SIZES]
CONVOLUTIONS = [
    convolution(rows, channels, window, outputs)
    for rows, channels, window, outputs in [
        (4, 16, 1, 16), (8, 32, 1, 32), (14, 64, 3, 64), (7, 128, 3, 96), (20, 48, 1, 128),
        (12, 16, 3, 16), (24, 96, 1, 64), (16, 64, 3, 32), (10, 8, 1, 8), (28, 32, 3, 32),
    ]
]  # fmt: skip


@settings(max_examples=scaled(10), deadline=None)
@given(
    latency=st.integers(20, 2000),
    bandwidth=st.integers(6, 120),
    seed=st.integers(0, 1000),
)
def test_hidden_figures_come_back_within_their_standard_errors(
    latency: int, bandwidth: int, seed: int
) -> None:
    hidden = {"DMA": {"latency": latency, "bandwidth": bandwidth}}
    rows = measure(TRANSFERS, hidden, noise=0.05, seed=seed)
    found = fit(DEVICE, rows, {"DMA.latency": (0, 20_000), "DMA.bandwidth": (1, 1024)}, starts=2)
    for one in found.figures:
        true = hidden[one.figure.unit][one.figure.key]
        assert one.error is not None
        # An integer is known to half a unit at best.
        assert abs(one.value - true) <= 4.5 * one.error + 1, one
    assert found.problems == ()


def test_times_without_noise_give_the_very_figures() -> None:
    hidden = {"NMU": {"latency": 137, "int8_macs": 1536}}
    rows = measure(CONVOLUTIONS, hidden)
    found = fit(DEVICE, rows, {"NMU.latency": (0, 5000), "NMU.int8_macs": (64, 65536)}, starts=2)
    assert [one.value for one in found.figures] == pytest.approx([137, 1536], rel=0.005)
    assert np.abs(found.modelled / found.measured - 1).max() < 0.01
    assert found.overall.rank > 0.99


def test_times_are_those_of_a_timed_run() -> None:
    rows = measure([*TRANSFERS[:6], *CONVOLUTIONS[:4]], {}, noise=0.1)
    found = fit(DEVICE, rows, {"DMA.latency": (0, 500), "NMU.latency": (0, 500)}, starts=1)
    figures = {one.figure.unit: {one.figure.key: one.value} for one in found.figures}
    expected = [cycles_of(row.subject, figures) for row in rows]  # type: ignore[arg-type]
    assert found.modelled.tolist() == expected


def test_a_figure_that_no_time_depends_on_stays_as_it_was() -> None:
    rows = measure(TRANSFERS, {"DMA": {"latency": 90}}, noise=0.02)
    found = fit(DEVICE, rows, {"DMA.latency": (0, 900), "VPU.latency": (0, 900)}, starts=1)
    assert [one.is_fitted for one in found.figures] == [True, False]
    assert [d.code for d in found.warnings] == ["CAL12"]
    assert "VPU.latency" in found.warnings[0].message


def test_figures_that_rows_cannot_tell_apart_are_named() -> None:
    # With one size only, a latency and a bandwidth say the same.
    rows = measure([transfer(4096 + 64 * place) for place in range(12)], {}, noise=0.02)
    found = fit(DEVICE, rows, {"DMA.latency": (0, 5000), "DMA.bandwidth": (1, 512)}, starts=2)
    codes = [d.code for d in (*found.warnings, *found.problems)]
    assert "CAL13" in codes
    assert {name for name, _ in found.alike[0].members} == {"DMA.latency", "DMA.bandwidth"}


def test_a_fit_at_the_edge_of_its_range_is_a_problem() -> None:
    rows = measure(TRANSFERS, {"DMA": {"latency": 900}})
    found = fit(DEVICE, rows, {"DMA.latency": (0, 100)}, starts=1)
    assert [d.code for d in found.problems] == ["CAL10"]
    assert "100, the edge of its range 0..100" in found.problems[0].message


def test_groups_are_left_out_whole() -> None:
    hidden = {"DMA": {"latency": 300}}
    rows = [
        Measurement(row.subject, row.time, group=f"g{place % 3}")
        for place, row in enumerate(measure(TRANSFERS, hidden, noise=0.05))
    ]
    found = fit(DEVICE, rows, {"DMA.latency": (0, 5000)}, starts=1)
    assert found.groups == 3
    assert found.left_out is not None
    by_group = {row.group: fold for row, fold in zip(rows, found.left_out.folds, strict=True)}
    assert sorted(by_group.values()) == [0, 1, 2]
    expected = [by_group[row.group] for row in rows]
    assert list(found.left_out.folds) == expected


def test_rows_of_one_group_have_errors_of_the_fit_itself() -> None:
    rows = [
        Measurement(row.subject, row.time, group="one")
        for row in measure(TRANSFERS, {}, noise=0.05)
    ]
    found = fit(DEVICE, rows, {"DMA.latency": (0, 5000)}, starts=1)
    assert found.left_out is None
    assert found.overall.inside is None


def test_seconds_need_a_clock_and_count_by_it() -> None:
    cycles = measure(TRANSFERS, {"DMA": {"latency": 300}})
    rows = [Measurement(row.subject, row.time / 975, "us") for row in cycles]
    with pytest.raises(InputError) as error:
        fit(DEVICE, rows, {"DMA.latency": (0, 5000)})
    assert [d.code for d in error.value.diagnostics] == ["CAL04"]
    found = fit(DEVICE, rows, {"DMA.latency": (0, 5000)}, clock_mhz=975, starts=1)
    assert found.figures[0].value == pytest.approx(300, abs=2)


def test_what_is_set_holds_for_every_row() -> None:
    hidden = {"DMA": {"latency": 300, "bandwidth": 11}}
    rows = measure(TRANSFERS, hidden)
    found = fit(DEVICE, rows, {"DMA.latency": (0, 5000)}, fixed={"DMA.bandwidth": 11}, starts=1)
    assert found.figures[0].value == pytest.approx(300, abs=2)
    assert np.allclose(found.modelled, found.measured, rtol=0.01)


@pytest.mark.heavy("sizes are tried one by one, each with a descent")
def test_sizes_come_back_though_no_slope_leads_to_them() -> None:
    hidden = {"NMU": {"latency": 60, "tile_channels": 16}}
    channels = [8, 16, 20, 24, 33, 40, 48, 56, 64, 72, 90, 100]
    rows = measure([convolution(10, 64, 1, count) for count in channels], hidden, noise=0.01)
    free = {"NMU.latency": (0, 1000), "NMU.tile_channels": (1, 64)}
    found = fit(DEVICE, rows, free, starts=3)
    assert found.figures[1].figure.is_size
    assert [one.value for one in found.figures] == [pytest.approx(60, rel=0.1), 16]
