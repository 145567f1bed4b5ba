"""Which products suffer most from an input in 8 bits: what rounding adds, over what they leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.observers import Histogram, Observer
from nacre.compile.quantise.roles import Graph
from nacre.core.values import Array


def noisiest_products(
    graph: Graph, histograms: Mapping[int, Histogram], observer: Observer, products: Iterable[int]
) -> list[int]:
    """Products by the noise of their inputs' rounding over their signal, the loudest first.

    What is added to another value at once is judged by the sum: that is what is seen of it.
    """
    noises = {value: _noise(graph, histograms, observer, value) for value in products}
    return sorted(noises, key=lambda value: (-noises[value], value))


def _noise(
    graph: Graph, histograms: Mapping[int, Histogram], observer: Observer, value: int
) -> float:  # fmt: skip
    op = graph.op(value)
    x, user = histograms.get(op.operands[0]), graph.only_user(value)
    is_summed = user is not None and user.opcode == "BinOp" and user.attributes["op"] == "Add"
    y = histograms.get(user.value_id if is_summed and user is not None else value)
    if x is None or y is None or x.is_empty or y.is_empty:
        return 0.0
    weights = graph.constants[op.operands[1]].astype(np.float64)
    gain = float(np.square(weights).sum(axis=1).mean())
    energy = _mean(y, y.centres**2)
    return gain * _rounding_noise(x, observer(x, None)) / energy if energy > 0 else 0.0


def _rounding_noise(histogram: Histogram, affine: Affine) -> float:
    """The mean squared error of elements on integers; within a step all are equally likely."""
    reals = histogram.centres
    lost = affine.real(affine.quantise(reals)) - np.clip(reals, affine.low, affine.high)
    beyond = reals - np.clip(reals, affine.low, affine.high)
    is_fine = affine.scale < np.diff(reals[:2])[0]  # steps within a bin are not seen
    inside = np.full(reals.shape, affine.scale**2 / 12.0) if is_fine else lost**2
    return _mean(histogram, np.where(beyond == 0, inside, beyond**2))


def _mean(histogram: Histogram, of_bins: Array) -> float:
    total = int(histogram.counts.sum())
    return float(np.dot(histogram.counts, of_bins)) / total if total else 0.0
