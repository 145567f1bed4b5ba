"""Weights in groups that are rounded for the inputs that products have on calibration data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, log10

import numpy as np

from nacre.compile.legalise.running import StepwiseRunner, Values
from nacre.compile.quantise.calibration import Sample, SampleFeeds, Samples
from nacre.compile.quantise.rounding.error_feedback import product_loss, round_with_feedback
from nacre.compile.quantise.weight_only.groups import (
    RoundedWeights,
    group_scales,
    round_to_nearest,
)
from nacre.core.module import CoreOperation
from nacre.core.values import Array

MOST_DEPTH = 4096  # of a sum: the moments of its inputs are a square of that
_MOST_SAMPLES = 256


@dataclass(frozen=True, eq=False)
class CalibratedWeights:
    """Rounded weights, and how well their product is that of the model on the data, in dB."""

    rounded: RoundedWeights
    sqnr: float


def round_on_data(
    runner: StepwiseRunner, data: Samples, groups: Mapping[int, int], bits: int
) -> dict[int, CalibratedWeights]:
    """Rounded weights by their value in a module of f16; `groups` are those to round.

    All samples go through the module together, so that the moments of one product at a time are
    there.
    """
    module = runner.module
    uses = Counter(value for op in module.operations for value in op.operands)
    live = [runner.start(sample) for sample in _with_states(runner, data)]
    made: dict[int, CalibratedWeights] = {}
    for step in runner.steps:
        value = _weights_of(step.op)
        if value in groups and uses[value] == 1:  # what several share has no moments of its own
            weights = runner.constants[value].astype(np.float32)
            found = round_weights(weights, _moments(live, step.op), groups[value], bits)
            if found is not None:
                made[value] = found
        for values in live:
            values[step.op.value_id] = runner.compute(step, values)
            for dead in step.dead:
                del values[dead]
    return made


def round_weights(
    weights: Array, moments: Array, group: int, bits: int
) -> CalibratedWeights | None:  # fmt: skip
    """Weights [columns, depth] by the second moments of their inputs.

    A column that loses more on the data than by the nearest integers has those. None where the
    moments say nothing.
    """
    most = 1 << (bits - 1)
    choose = lambda parts, importance: group_scales(parts, bits, importance)  # noqa: E731
    found = round_with_feedback(weights, moments, group, choose, (-most, most - 1))
    if found is None:
        return None
    nearest = round_to_nearest(weights, group, bits)
    learned = RoundedWeights(found[0], found[1].astype(np.float16), nearest.dtype)
    wide = moments.astype(np.float64)
    lost, plain = (product_loss(weights - own.real(), wide) for own in (learned, nearest))
    is_worse = (plain < lost)[:, None]
    best = replace(
        nearest,
        integers=np.where(is_worse, nearest.integers, learned.integers),
        scales=np.where(is_worse, nearest.scales, learned.scales),
    )
    noise = float(np.minimum(lost, plain).sum())
    signal = float(product_loss(weights.astype(np.float64), wide).sum())
    return CalibratedWeights(best, 10 * log10(signal / noise) if noise > 0 and signal else inf)


def _with_states(runner: StepwiseRunner, data: Samples) -> Iterator[Sample]:
    """Samples as the module takes them; state goes on from one to the next."""
    feeds = SampleFeeds(data, runner.module)
    for count, sample in enumerate(feeds):
        if count == _MOST_SAMPLES:
            return
        yield sample
        if data.source.states:
            for value, array in runner.run(sample):
                feeds.keep(value, array)


def _weights_of(op: CoreOperation) -> int:
    return op.operands[1] if op.opcode == "Linear" else -1


def _moments(live: list[Values], op: CoreOperation) -> Array:
    """The second moments of what a product is given."""
    x = op.operands[0]
    depth = live[0][x].shape[-1]
    total = np.zeros((depth, depth), np.float32)
    for values in live:
        rows = values[x].reshape(-1, depth).astype(np.float32)
        total += rows.T @ rows
    return total
