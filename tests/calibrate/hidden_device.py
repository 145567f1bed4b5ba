"""Measurements of a device whose figures are known to the test and hidden from the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nacre.base.source import Source
from nacre.calibrate import Measurement, Workload
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.target import builtin_device

DEVICE = "npm_lite"


def transfer(size: int) -> Workload:
    return Workload("transfer", size_bytes=size, source="L2", target="L1")


def convolution(rows: int, channels: int, window: int, outputs: int) -> Workload:
    side = rows + window - 1
    inputs = ((1, side, side, channels), (window, window, channels, outputs))
    return Workload("conv2d", inputs)


def cycles_of(workload: Workload, figures: Mapping[str, Mapping[str, int]]) -> int:
    """As `nacre run --mode timed` has them."""
    device = builtin_device(DEVICE)
    source = Source("workload", workload.program(device))
    program = LoadedProgram(source, CheckOptions(device=device))
    program.require_runnable()
    return time_plan(program.plan, device, figures).cycles


def measure(
    workloads: Sequence[Workload],
    figures: Mapping[str, Mapping[str, int]],
    noise: float = 0.0,
    seed: int = 0,
) -> list[Measurement]:
    """The times of a device with these figures, with noise as a share of them."""
    rng = np.random.default_rng(seed)
    factors = np.exp(rng.normal(0, noise, len(workloads)))
    return [
        Measurement(workload, float(cycles_of(workload, figures) * factor))
        for workload, factor in zip(workloads, factors, strict=True)
    ]
