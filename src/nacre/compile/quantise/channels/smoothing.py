"""Channels made alike before they share a scale.

What a norm leaves often has a few channels that are many times larger than the others, and one
scale for all then has few steps left for most of them. Products by constant weights do not care
where a factor stands: each channel is divided by one, in floats behind the norm, and the weights
that meet it are multiplied. The factor is halfway between the ranges of channel and weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.quantise.calibration import SampleFeeds, Samples
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_NORMS = frozenset({"LayerNorm", "RmsNorm"})
_LEAST_SPREAD = 4.0  # how many times a channel must exceed the middle one
_FAINT = 1e-6


def smooth_channels(legal: Legal, data: Samples) -> Legal:
    """The module with a factor for each channel between norms and the products behind them."""
    module = legal.module
    products = _products(module)
    if not products:
        return legal
    reaches = _channel_magnitudes(module, data, frozenset(products))
    factors = {
        norm: made
        for norm, users in products.items()
        if (made := _factors(reaches[norm], [module.by_id[u] for u in users], module)) is not None
    }
    return _rewrite(legal, products, factors) if factors else legal


def _products(module: Module) -> dict[int, list[int]]:
    """Norms, and the products by constant weights that read each."""
    found: dict[int, list[int]] = {}
    for op in module.operations:
        if op.opcode == "Linear" and module.by_id[op.operands[0]].opcode in _NORMS:
            found.setdefault(op.operands[0], []).append(op.value_id)
    return found


def _channel_magnitudes(
    module: Module, data: Samples, wanted: frozenset[int]
) -> Mapping[int, Array]:
    """The largest magnitude of each channel."""
    runner, feeds = StepwiseRunner(module), SampleFeeds(data, module)
    largest: dict[int, Array] = {}
    for sample in feeds:
        for value, array in runner.run(sample):
            feeds.keep(value, array)
            if value in wanted:
                rows = np.abs(array.reshape(-1, array.shape[-1])).max(axis=0)
                largest[value] = np.maximum(largest[value], rows) if value in largest else rows
    return largest


def _factors(reach: Array, users: list[CoreOperation], module: Module) -> Array | None:
    """What each channel is divided by; None where channels are alike."""
    if not np.isfinite(reach).all() or reach.max() <= _LEAST_SPREAD * np.median(reach):
        return None
    weights = [constant_array(module.by_id[user.operands[1]]) for user in users]
    most = np.max([np.abs(w).max(axis=0) for w in weights if w is not None], axis=0)
    factors = np.sqrt(np.maximum(reach, _FAINT) / np.maximum(most, _FAINT))
    # The middle channel stays as it is, so that floats of 16 bits have room on both sides.
    alike: Array = np.clip(factors / np.median(factors), 1 / 64, 64).astype(np.float32)
    return alike


def _rewrite(
    legal: Legal, products: Mapping[int, list[int]], factors: Mapping[int, Array]
) -> Legal:
    module, builder = legal.module, Builder()
    of_user = {user: norm for norm, users in products.items() for user in users}
    ids: dict[int, int] = {}
    divided: dict[int, int] = {}
    origins: dict[int, tuple[int, ...]] = {}
    for op in module.operations:
        norm = of_user.get(op.value_id)
        operands = [ids[o] for o in op.operands]
        if norm is not None and norm in factors:
            factor = factors[norm]
            weights = constant_array(module.by_id[op.operands[1]])
            assert weights is not None  # `_products` looks for constants only
            operands[:2] = divided[norm], builder.constant(weights * factor)
        if op.opcode == "Input":
            name = str(op.attributes["name"])
            new = builder.input(name, op.type.dtype, op.type.shape)
        else:
            new = builder.add(op.opcode, *operands, **op.attributes)
        ids[op.value_id] = new
        _copy_origin(origins, legal, op.value_id, new)
        if op.value_id in factors:
            inverse = builder.constant((1 / factors[op.value_id]).astype(np.float32))
            divided[op.value_id] = builder.add("BinOp", new, inverse, op="Mul")
            _copy_origin(origins, legal, op.value_id, divided[op.value_id])
    outputs = tuple(ids[value] for value in module.outputs)
    escaped = {ids[value]: reason for value, reason in legal.escaped.items()}
    return replace(legal, module=builder.module(*outputs), origins=origins, escaped=escaped)


def _copy_origin(origins: dict[int, tuple[int, ...]], legal: Legal, old: int, new: int) -> None:
    if old in legal.origins:
        origins[new] = legal.origins[old]
