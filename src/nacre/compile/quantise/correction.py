"""Bias correction: products on integers get the means that they have in floats.

Rounded weights move the mean of a channel, and what comes after sees that as a change of the
network, not as noise. Layer by layer, on integers that are corrected up to there, the bias takes
back the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nacre.compile.legalise.running import Step, StepwiseRunner, Values, bind_operation
from nacre.compile.quantise.affine import MOST_BIAS
from nacre.compile.quantise.calibration import Sample, channel_means
from nacre.compile.quantise.rewrite import Rewritten, with_data
from nacre.compile.quantise.walking import Product
from nacre.core.values import Array
from nacre.kernels.interface.runs import quietly

MOST_SAMPLES = 16
_LEAST_ROWS = 32  # that a mean must be of: fewer say more of the samples than of the model
_FINE = 2.0**-12  # the step in which means are taken, of the result's own


def correct_biases(
    rewritten: Rewritten, means: Mapping[int, Array], samples: Sequence[Sample]
) -> Rewritten:  # fmt: skip
    """The module with biases that give back the means that the float module had."""
    runner = StepwiseRunner(rewritten.module)
    uses = Counter(product.bias for product in rewritten.products)
    # A bias of several products has no mean of its own.
    products = {product.value: product for product in rewritten.products if uses[product.bias] == 1}
    live = [runner.start(sample) for sample in samples]
    biases: dict[int, Array] = {}
    for step in runner.steps:
        product = products.get(step.op.value_id)
        if product is not None and product.source in means:
            biases[product.bias] = _corrected_bias(
                runner, step, product, means[product.source], live
            )
            for values in live:
                values[product.bias] = biases[product.bias]
        for values in live:
            values[step.op.value_id] = runner.compute(step, values)
            for value in step.dead:
                del values[value]
    operations = tuple(
        with_data(op, biases[op.value_id]) if op.value_id in biases else op
        for op in rewritten.module.operations
    )
    return replace(rewritten, module=replace(rewritten.module, operations=operations))


def _corrected_bias(
    runner: StepwiseRunner, step: Step, product: Product, wanted: Array, live: Sequence[Values]
) -> Array:  # fmt: skip
    """The bias with which a product has the mean of each channel that is wanted."""
    bias, shape = live[0][product.bias], step.op.type.shape
    if len(live) * int(np.prod(shape[:-1])) < _LEAST_ROWS:
        return bias
    # In fine steps of 32 bits nothing is cut off.
    unit = float(np.float32(step.op.attributes["y_scale"] * _FINE))
    probe = bind_operation(runner.module, step.op, y_scale=unit, y_zero=0, to="i32")
    means = np.zeros(wanted.shape, np.float64)
    result = np.empty(shape, np.int32)
    for values in live:
        quietly(probe, [values[operand] for operand in step.op.operands], [result])
        means += channel_means(result)
    missing = wanted - means * (unit / len(live))
    moved = bias.astype(np.float64) + np.rint(missing / product.units)
    # A mean that cannot be had without leaving the accumulator is left alone.
    fits = np.isfinite(moved) & (np.abs(moved) <= MOST_BIAS)
    return np.where(fits, moved, bias).astype(np.int32)
