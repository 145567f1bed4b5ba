"""Schedule bounds beside all sets of jobs, and losses that add up to the cycles of a run."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from nacre.compile.estimate.bounds_rates import Rates
from nacre.compile.estimate.bounds_schedule import Job, one_machine_bound, schedule_bound
from nacre.compile.estimate.losses import KINDS
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.run.timing.profile import timing_profile
from tests.compile.models import linear_model, models, values

_numbers = st.integers(0, 12).map(float)
_jobs = st.lists(
    st.builds(Job, _numbers, st.integers(1, 9).map(float), _numbers), min_size=1, max_size=7
)


@given(_jobs)
def test_one_machine_is_bound_by_the_worst_set_of_jobs(jobs: list[Job]) -> None:
    sets = (some for n in range(1, len(jobs) + 1) for some in combinations(jobs, n))
    worst = max(
        min(job.head for job in some)
        + sum(job.cycles for job in some)
        + min(job.tail for job in some)
        for some in sets
    )
    assert one_machine_bound(jobs) == pytest.approx(worst)


def test_jobs_without_work_wait_for_nothing() -> None:
    assert one_machine_bound([Job(100.0, 0.0, 100.0)]) == 0.0
    assert one_machine_bound([]) == 0.0


def test_a_vector_is_complete_before_the_product_behind_it_begins() -> None:
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (1, 64))
    first = builder.add("Relu", builder.add("MatMul", x, builder.constant(values((64, 64), 1))))
    module = builder.module(builder.add("MatMul", first, builder.constant(values((64, 64), 2))))
    device = target_of("npm4k").device
    rates = Rates(device, timing_profile(device))
    alone = schedule_bound(module, rates, (), 0.0)
    # Two products of 64 x 64 MACs at 2,048 and the VPU's 32, one behind the other, and latencies
    # of a load, both products and a store.
    least = 2 * 64 * 64 / (2048 + 32) + 2 * rates.latency("sDMA") + 2 * rates.latency("NMU")
    assert alone >= least


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=12)
@given(models(), st.sampled_from(["npm4k", "npm64k"]))
def test_bounds_and_losses_are_the_cycles_of_any_plan(module: Module, device: str) -> None:
    found = nacre.estimate(module, device)
    assert found.plan is not None
    assert found.bounds is not None
    assert found.cycles is not None
    losses = found.plan.losses
    lost = sum(loss.cycles for loss in losses.losses)
    assert losses.bound + lost - losses.hidden == found.cycles
    assert all(loss.cycles > 0 and loss.kind in KINDS for loss in losses.losses)
    assert found.bounds.floor <= found.bounds.schedule <= found.cycles


def test_transpositions_are_named() -> None:
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (64, 48))
    found = nacre.estimate(builder.module(builder.add("Transpose", x, permutation=(1, 0))), "npm4k")
    assert found.plan is not None
    (layer,) = found.layers
    losses = found.plan.losses.losses
    assert "transposition" in {loss.kind for loss in losses}
    assert {loss.layer for loss in losses} == {layer.name}


def test_engines_without_work_are_a_loss() -> None:
    found = nacre.estimate(linear_model(1, 64, 64), "npm64k")
    assert found.plan is not None
    assert "engines idle" in {loss.kind for loss in found.plan.losses.losses}
