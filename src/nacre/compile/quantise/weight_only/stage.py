"""Weights of products as integers of few bits in groups; what they meet stays f16.

In the module a product by such weights is `Linear` by a `Dequantize` of constants in blocks along
the sum, which is also how a model brings weights of its own in groups. A plan stores the integers,
packed, and their scales: tiles dequantise what they use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import inf, log10

import numpy as np

from nacre.compile.legalise.contract import escapes_at
from nacre.compile.legalise.legal_module import Legal, WeightLoss
from nacre.compile.legalise.origins import nodes_of
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.legalise.stage import without_labels
from nacre.compile.options import GROUP_SIZE, WEIGHT_BITS, Options
from nacre.compile.quantise.calibration import check_samples, mask_inputs
from nacre.compile.quantise.weight_only.calibrated import (
    MOST_DEPTH,
    CalibratedWeights,
    round_on_data,
)
from nacre.compile.quantise.weight_only.groups import (
    LEAST_GROUP,
    RoundedWeights,
    group_size_for,
    round_to_nearest,
)
from nacre.compile.quantise.weight_only.imported_groups import fingerprint, imported_groups
from nacre.compile.quantise.weight_only.shared_roundings import RoundingKey, shared_roundings
from nacre.core.grouped_weights import add_grouped_weights, grouped_weights_of
from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.graph import users_of
from nacre.core.rewrite.labels import complete_labels
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

_AT_A_TIME = 1 << 16  # elements that are compared together: more leave the cache
_LEAST_ELEMENTS = 4096  # fewer are not worth the tasks that dequantise them


def quantise_weights(legal: Legal, options: Options) -> Legal:
    """The module with integers for the weights of its products, and what each loses by them.

    Weights that the model brings in groups are taken as they are, others rounded for the
    calibration data, and without any to the nearest integers.
    """
    numbers = Labels(
        nodes={value: str(origins[0]) for value, origins in legal.origins.items()},
        fused={value: tuple(map(str, origins[1:])) for value, origins in legal.origins.items()},
    )
    assert legal.source is not None
    imported = imported_groups(legal.source)
    calibrated = _round_for_data(legal, options, imported)
    halves = _products_of_halves(legal.module)
    quantiser = _WeightQuantiser(options, imported, calibrated, halves)
    made = apply_once(replace(legal.module, labels=numbers), {"Linear": [quantiser.linear]})
    legal = replace(legal, notes=(*legal.notes, *quantiser.notes()))
    if not quantiser.ratios:
        return legal
    changed = without_labels(replace(legal, module=complete_labels(made)))
    # Values have other numbers now.
    escaped = escapes_at(legal.precision, changed.module, legal.lacking)
    return replace(changed, escaped=escaped, losses=_losses(changed, quantiser.ratios))


def _round_for_data(
    legal: Legal, options: Options, imported: Mapping[bytes, RoundedWeights]
) -> dict[bytes, CalibratedWeights]:
    """Weights that are rounded for the calibration data, by what they are in f16."""
    if options.calibration is None or "gptq" in options.quantise_without or legal.source is None:
        return {}
    masks = mask_inputs(legal.module)
    data = check_samples(legal.source, options.calibration, masks=masks)
    runner = StepwiseRunner(legal.module, legal)
    groups: dict[int, int] = {}
    prints: dict[int, bytes] = {}
    halves = _products_of_halves(legal.module)
    for op in legal.module.operations:
        weights = runner.constants.get(op.operands[1]) if op.opcode == "Linear" else None
        if weights is None or op.value_id in halves or not _is_worth_integers(op, weights):
            continue
        group, print_ = _group_of(weights, options), fingerprint(weights)
        if group is not None and weights.shape[1] <= MOST_DEPTH and print_ not in imported:
            groups[op.operands[1]], prints[op.operands[1]] = group, print_
    if not groups:
        return {}
    made = round_on_data(runner, data, groups, WEIGHT_BITS[options.precision])
    alike = Counter(prints.values())
    return {prints[value]: own for value, own in made.items() if alike[prints[value]] == 1}


def _products_of_halves(module: Module) -> frozenset[int]:
    """Products in f16 that are parts of one in f32: their weights are halves and corrections.

    What goes in are rounded numbers and what rounding left of them, and only a sum in f32, or a
    product that corrects another, takes what comes out.
    """
    users = users_of(module)
    found: set[int] = set()  # with what is joined for them
    for op in reversed(module.operations):
        wanted = "Linear" if op.opcode == "Concat" else "Concat"
        is_half = op.opcode in ("Linear", "Concat") and bool(users[op.value_id])
        if is_half and all(
            (user.opcode == wanted and user.value_id in found)
            or (op.opcode == "Linear" and user.opcode == "Cast" and user.type.dtype == "f32")
            for user in users[op.value_id]
        ):
            found.add(op.value_id)
    halves: set[int] = set()
    for op in module.operations:
        operands = op.operands[:1] if op.opcode == "Linear" else op.operands
        if op.value_id in found and all(
            value in halves or _is_rounded(module, value) for value in operands
        ):
            halves.add(op.value_id)
    return frozenset(halves)


def _is_rounded(module: Module, value: int) -> bool:
    op = module.by_id[value]
    return op.opcode == "Cast" and module.by_id[op.operands[0]].type.dtype == "f32"


def _is_worth_integers(op: CoreOperation, weights: Array) -> bool:
    """Whether a product by weights of f16 takes them as integers."""
    is_large = weights.size >= _LEAST_ELEMENTS and op.type.dtype == "f16"
    return is_large and bool(np.isfinite(weights).all())


def _group_of(weights: Array, options: Options) -> int | None:
    return group_size_for(weights.shape[1], options.group_size or GROUP_SIZE[options.precision])


class _WeightQuantiser:
    """Puts integers in the place of weights; what several products share is rounded once."""

    def __init__(
        self,
        options: Options,
        imported: Mapping[bytes, RoundedWeights],
        calibrated: Mapping[bytes, CalibratedWeights],
        halves: Collection[int] = frozenset(),
    ) -> None:
        self._imported, self._round_for_data, self._halves = imported, calibrated, halves
        self._options = options
        self._known: dict[int, tuple[int, float]] = {}
        self.ratios: list[float] = []  # signal over noise of the weights of each product
        self._undivided = 0  # products that no group divides

    def notes(self) -> Iterator[str]:
        """Which products keep their weights."""
        if self._undivided:
            count = self._undivided
            some = "1 product keeps its" if count == 1 else f"{count} products keep their"
            yield f"{some} weights of f16: no group of {LEAST_GROUP} or more divides the depth"
        elif not self.ratios:
            yield f"no weights are integers: no product has {_LEAST_ELEMENTS} of them or more"

    def linear(self, site: RewriteSite) -> int | None:
        """A product by constant weights of f16."""
        x, value, *bias = site.operands
        weights = site.constant(value)
        is_half = site.op.value_id in self._halves
        if weights is None or is_half or not _is_worth_integers(site.op, weights):
            return None
        if value not in self._known:
            found = self._round_weights(weights)
            if found is None:
                self._undivided += 1
                return None
            self._known[value] = add_grouped(site, found.rounded), found.sqnr
        stored, ratio = self._known[value]
        self.ratios.append(ratio)
        return site.add("Linear", x, stored, *bias)

    def _round_weights(self, weights: Array) -> CalibratedWeights | None:
        """Weights as the model brought them, or rounded; None where no group divides them."""
        shared = shared_roundings()
        is_known_by_print = self._imported or self._round_for_data or shared is not None
        print_ = fingerprint(weights) if is_known_by_print else b""
        if print_ in self._round_for_data:
            return self._round_for_data[print_]
        imported, group = self._imported.get(print_), _group_of(weights, self._options)
        if imported is not None:
            return CalibratedWeights(imported, _ratio(weights, imported))
        if group is None:
            return None
        bits = WEIGHT_BITS[self._options.precision]
        if shared is None:
            return _nearest(weights, group, bits)
        key = RoundingKey(print_, weights.shape, group, bits)
        if key not in shared:
            shared[key] = _nearest(weights, group, bits)
        return shared[key]


def _nearest(weights: Array, group: int, bits: int) -> CalibratedWeights:
    """Weights rounded to the nearest integers."""
    rounded = round_to_nearest(weights, group, bits)
    return CalibratedWeights(rounded, _ratio(weights, rounded))


def add_grouped(site: RewriteSite, grouped: RoundedWeights) -> int:
    """Weights in groups as a value of f16."""
    minimums = None if grouped.minimums is None else grouped.minimums[..., None]
    return add_grouped_weights(
        site,
        site.literal(grouped.integers, grouped.dtype),
        site.literal(grouped.scales, "f16"),
        grouped.group,
        None if grouped.zeros is None else site.literal(grouped.zeros, grouped.dtype),
        None if minimums is None else site.literal(minimums, "f16"),
        shape=(grouped.integers.shape[0], grouped.integers.shape[1]),
    )


def _ratio(weights: Array, grouped: RoundedWeights) -> float:
    """Signal over noise in dB."""
    step = max(1, _AT_A_TIME // weights.shape[1])
    signal = noise = 0.0
    for first in range(0, len(weights), step):
        some = slice(first, first + step)
        wide = weights[some].astype(np.float64)
        signal += float(np.square(wide).sum())
        wide -= grouped.columns(some).real()
        noise += float(np.square(wide, out=wide).sum())
    return 10 * log10(signal / noise) if noise and signal else inf


def _losses(legal: Legal, ratios: list[float]) -> tuple[WeightLoss, ...]:
    """What the weights of each product lose, in the order in which they were rounded."""
    products = (
        op
        for op in legal.module.operations
        if op.opcode == "Linear" and grouped_weights_of(legal.module, op.operands[1]) is not None
    )
    return tuple(
        WeightLoss(next(iter(nodes_of(legal, (op.value_id,))), f"%{op.value_id}"), op.opcode, ratio)
        for op, ratio in zip(products, ratios, strict=True)
    )
