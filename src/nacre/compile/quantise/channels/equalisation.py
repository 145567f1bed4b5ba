"""Cross-layer equalisation: channels between two products made alike before they share a scale.

A product by constant weights has a scale for each of its own channels, and what it leaves has one
for all. Where nothing stands between two products but a function to which a positive factor is
nothing (Nagel et al., 2019), each channel is divided by a factor in the weights and the bias of the
one and multiplied in the weights of the others: powers of two, so that floats keep every bit. The
paper balances the ranges of both weights; here the first have a scale for each channel, so that the
range of the channel on data counts in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.quantise.affine import HIGH
from nacre.compile.quantise.calibration import SampleFeeds, Samples
from nacre.compile.quantise.channels.channel_pairs import (
    ChannelPair,
    by_input_channel,
    channel_pairs,
    with_input_factors,
)
from nacre.compile.quantise.observers import Histogram, Observer
from nacre.compile.quantise.rewrite import with_data
from nacre.compile.quantise.roles import Graph
from nacre.core.module import CoreOperation
from nacre.core.values import Array

_SHARES = (0.5, 1.0)  # of the way to channels of one range, the rest goes to weights of one range
_MOST_FACTOR = 64.0  # beside the middle channel, so that f16 has room on both sides
_MOST_SAMPLES, _MOST_ROWS = 16, 1024
_LEAST_GAIN = 0.9  # of the noise, that factors must leave less than


@dataclass(frozen=True, eq=False)
class _Channels:
    """What data showed of the channels between products."""

    reach: Array  # the largest magnitude of each
    rows: Array  # some elements of each, [rows, channels]


def equalise_channels(legal: Legal, data: Samples, observer: Observer) -> Legal:
    """The module with factors in the weights of products that follow each other.

    They are there where noise is less with them, by what data show of the channels.
    """
    graph = Graph(legal.module)
    pairs = tuple(channel_pairs(graph))
    if not pairs:
        return legal
    channel_values = _observe(legal, data, {pair.stored for pair in pairs})
    changed = dict(graph.constants)
    for pair in pairs:
        factors = _best_factors(graph, pair, channel_values[pair.stored], observer)
        if factors is not None:
            _apply_factors(graph, pair, factors, changed)
    operations = tuple(
        op if changed.get(op.value_id) is graph.constants.get(op.value_id) else
        with_data(op, changed[op.value_id]) for op in legal.module.operations
    )  # fmt: skip
    return replace(legal, module=replace(legal.module, operations=operations))


def _observe(legal: Legal, data: Samples, wanted: set[int]) -> Mapping[int, _Channels]:
    runner = StepwiseRunner(legal.module)
    feeds = SampleFeeds(data, legal.module)
    reaches: dict[int, Array] = {}
    rows: dict[int, list[Array]] = {value: [] for value in wanted}
    for count, sample in enumerate(feeds):
        if count == _MOST_SAMPLES:
            break
        for value, array in runner.run(sample):
            feeds.keep(value, array)
            if value in wanted:
                flat = array.reshape(-1, array.shape[-1])
                reach = np.abs(flat).max(axis=0)
                reaches[value] = np.maximum(reaches.get(value, reach), reach)
                rows[value].append(flat[:: -(-len(flat) // _MOST_ROWS)].copy())
    return {value: _Channels(reaches[value], np.concatenate(rows[value])) for value in wanted}


def _best_factors(
    graph: Graph, pair: ChannelPair, channel_values: _Channels, observer: Observer
) -> Array | None:  # fmt: skip
    """What each channel is divided by; None where nothing is gained."""
    readers = [graph.op(reader) for reader in pair.readers]
    if not np.isfinite(channel_values.rows).all() or not channel_values.reach.any():
        return None
    weights = [by_input_channel(op, graph.constants[op.operands[1]]) for op in readers]
    most = np.max([np.abs(own).max(axis=1) for own in weights], axis=0)
    ones = np.ones(len(channel_values.reach), np.float32)
    tried = {share: _factors(channel_values.reach, most, share) for share in _SHARES}
    noises: dict[float | None, float] = {
        share: _noise(graph, readers, channel_values, one, observer) for share, one in tried.items()
    }
    noises[None] = _LEAST_GAIN * _noise(graph, readers, channel_values, ones, observer)
    best = min(noises, key=lambda share: noises[share])
    return None if best is None else tried[best]


def _factors(reach: Array, most: Array, share: float) -> Array:
    """Powers of two near `reach ** share / most ** (1 - share)`, around 1."""
    is_used = (reach > 0) & (most > 0)
    raw = np.ones(len(reach), np.float64)
    raw[is_used] = reach[is_used] ** share / most[is_used].astype(np.float64) ** (1 - share)
    raw[is_used] /= np.median(raw[is_used]) if is_used.any() else 1.0
    held = np.clip(raw, 1 / _MOST_FACTOR, _MOST_FACTOR)
    return np.exp2(np.rint(np.log2(held))).astype(np.float32)


def _noise(
    graph: Graph, readers: Sequence[CoreOperation], channel_values: _Channels, factors: Array,
    observer: Observer,
) -> float:  # fmt: skip
    """What rounding of the channels and of the weights behind adds to products, over their size."""
    rows = channel_values.rows / factors
    histogram = Histogram()
    histogram.add(rows)
    affine = observer(histogram, None)
    lost = np.square(affine.real(affine.quantise(rows)) - rows).mean(axis=0, dtype=np.float64)
    power = np.square(rows).mean(axis=0, dtype=np.float64)
    total = 0.0
    for op in readers:
        own = with_input_factors(op, graph.constants[op.operands[1]], factors)
        squares = np.square(own, dtype=np.float64)
        by_channel = by_input_channel(op, squares).sum(axis=1)
        signal = float(by_channel @ power)
        if signal > 0:
            rounding = by_input_channel(op, np.broadcast_to(_step_noise(op, own), own.shape))
            total += float(by_channel @ lost + rounding.sum(axis=1) @ power) / signal
    return total


def _step_noise(op: CoreOperation, weights: Array) -> Array:
    """The mean squared error of rounding weights, for each channel of the result."""
    axes = (1,) if op.opcode == "Linear" else tuple(range(weights.ndim - 1))
    most = np.abs(weights).max(axis=axes, keepdims=True)
    return np.asarray(np.square(most.astype(np.float64) / HIGH) / 12.0)


def _apply_factors(
    graph: Graph, pair: ChannelPair, factors: Array, changed: dict[int, Array]
) -> None:  # fmt: skip
    """Divide what makes channels, multiply what reads them."""
    maker = graph.op(pair.maker)
    for operand, array in _parameters(maker, changed):
        is_row = maker.opcode == "Linear" and array.ndim == 2
        changed[operand] = array / (factors[:, None] if is_row else factors)
    for reader in map(graph.op, pair.readers):
        weights = reader.operands[1]
        changed[weights] = with_input_factors(reader, changed[weights], factors)


def _parameters(op: CoreOperation, constants: Mapping[int, Array]) -> Iterator[tuple[int, Array]]:
    for operand in op.operands[1:]:
        yield operand, constants[operand]
