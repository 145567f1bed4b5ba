"""Slopes of large plans: a step of a figure changes a time by what it changes of the path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.calibrate import Measurement, NemFile, fit, timed_rows
from nacre.calibrate.free_figures import free_figures
from nacre.calibrate.subjects import load_subjects
from nacre.calibrate.timed_rows import TimedRows, Values
from nacre.nem.api.timing import time_plan
from nacre.nem.model.target import builtin_device
from nacre.nem.run.timing import compiled
from nacre.nem.run.timing.critical import critical_path
from tests.effort import scaled

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEVICE = "npm_lite"
NAMES = ("conv2d_relu.nem", "gemm_bias_relu.nem")
FREE = {
    "NMU.int8_macs": (64, 65536),
    "NMU.latency": (0, 5000),
    "CSTL.eltwise_throughput": (1, 4096),
    "CSTL.store_bandwidth": (1, 1024),
    "DMA.bandwidth": (1, 1024),
    "DMA.latency": (0, 5000),
    "SEQ.call": (0, 100_000),
}
FIRST = (4096, 2, 256, 32, 32, 4, 1000)


@pytest.fixture(autouse=True)
def every_plan_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_rows, "LARGE_STEPS", 0)
    monkeypatch.setattr(timed_rows, "COSTLY_STEPS", 0)
    for module in (timed_rows, compiled):
        monkeypatch.setattr(module, "is_available", lambda: False)  # which takes seconds, once


@pytest.fixture(scope="module")
def rows() -> TimedRows:
    device = builtin_device(DEVICE)
    measured = [Measurement(NemFile(EXAMPLES / name), 1.0) for name in NAMES]
    subjects, index = load_subjects(measured, device)
    free = free_figures(device, list(FREE.items()), {})
    return TimedRows(subjects, index, [True] * len(measured), free)


def paths(rows: TimedRows, values: Values) -> list[list[int]]:
    """The steps of the critical paths, timed anew."""
    profile = rows.profile(values)
    return [[k.step for k in critical_path(s.time(profile))] for s in rows.subjects]


def timed(rows: TimedRows, values: Values) -> list[int]:
    """Cycles as `nacre run --mode timed` has them: an oracle that knows of no path."""
    figures: dict[str, dict[str, int]] = {}
    for figure, value in zip(rows.free, values, strict=True):
        figures.setdefault(figure.unit, {})[figure.key] = value
    return [time_plan(s.steps.plan, s.device, figures).cycles for s in rows.subjects]


@settings(max_examples=scaled(20), deadline=None)
@given(place=st.integers(0, len(FREE) - 1), share=st.floats(0.8, 1.25), data=st.data())
def test_a_step_of_a_figure_is_a_difference_of_times_while_the_path_stays(
    rows: TimedRows, place: int, share: float, data: st.DataObject
) -> None:
    values = tuple(data.draw(st.integers(v // 2, 2 * v)) for v in FIRST)
    near = (*values[:place], max(1, round(values[place] * share)), *values[place + 1 :])
    found = rows.times_near(values, near)
    here, there = paths(rows, values), paths(rows, near)
    for cycles, expected, same in zip(
        found, timed(rows, near), map(list.__eq__, here, there), strict=True
    ):
        if same:
            assert cycles == expected
        else:  # the path that was critical is still there, and no longer the longest
            assert cycles == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("name", list(FREE))
def test_each_figure_has_a_step_that_leaves_the_path(rows: TimedRows, name: str) -> None:
    place = list(FREE).index(name)
    near = (*FIRST[:place], FIRST[place] + 1, *FIRST[place + 1 :])
    assert paths(rows, FIRST) == paths(rows, near)
    assert rows.times_near(FIRST, near).tolist() == timed(rows, near)
    assert rows.times_near(FIRST, FIRST).tolist() == timed(rows, FIRST)


def test_slopes_lead_to_hidden_figures() -> None:
    hidden = {"NMU": {"int8_macs": 1500}, "DMA": {"bandwidth": 20}}
    device = builtin_device(DEVICE)
    subjects = [NemFile(EXAMPLES / name) for name in NAMES]
    loaded, _ = load_subjects([Measurement(one, 1.0) for one in subjects], device)
    times = [time_plan(s.steps.plan, s.device, hidden).cycles for s in loaded]
    rng = np.random.default_rng(0)
    rows = [
        Measurement(subjects[place % 2], times[place % 2] * float(np.exp(rng.normal(0, 0.01))))
        for place in range(10)
    ]
    free = {"NMU.int8_macs": (256, 16384), "DMA.bandwidth": (4, 256)}
    found = fit(DEVICE, rows, free, starts=2)
    assert [one.value for one in found.figures] == pytest.approx([1500, 20], rel=0.05)
    assert found.problems == ()
