"""What plans of a model take, from plans of small parts of it: no weights are needed.

Layers of a kind take as many cycles each, and what a layer takes grows evenly with the rows of its
products and of its cache, from a size on. So a few plans tell what the whole plan takes: of one
layer and of three, and two with more of everything that the model has more of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import cast

import numpy as np

from nacre.base.stages import stage
from nacre.compile.api import compile as compile_module
from nacre.compile.options import GROUP_SIZE
from nacre.llm.bundle.precisions import PlanPrecision
from nacre.llm.estimate.bounds import ModelEstimate
from nacre.llm.estimate.sizes import Precision
from nacre.llm.model.config import Config
from nacre.llm.model.layers import decoder_weights
from nacre.llm.model.runner import Decoder
from nacre.llm.model.weights import Array, Weights
from nacre.nem.model.devices import Device

# Weights of a layer and of a head that a small plan has at most: more take longer and tell no more.
_LAYER_WEIGHTS, _HEAD_WEIGHTS = 4_000_000, 2_000_000
_LEAST_HEAD_ROWS, _LEAST_FF = 512, 512
_LEAST_ROWS, _MOST_ROWS = 128, 4096  # of caches
# As much of something as a small plan has, in plans that tell what more of it takes.
_NEAR, _FAR = 2, 8
_DRAWN = (1 << 20) + 7  # values that are drawn once, for all weights
_LAYERS = 3  # of the plan that tells what a further layer takes: neighbours differ a little
_DDR_BYTES = 1 << 34
CHUNK = 128  # tokens of a prompt that a plan takes at once


class RandomWeights(Weights):
    """Whatever is asked for, of values that plans do not depend on."""

    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0
        self._drawn = np.random.default_rng(0).standard_normal(_DRAWN, dtype=np.float32)

    @property
    def name(self) -> str:
        """Whose configuration it is."""
        return self._name

    def has(self, name: str) -> bool:
        """The norms of layers, by which layers are counted."""
        return name.endswith(".attn_norm.weight")

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """Values of the size that training leaves."""
        # No two are equal, or a plan would have one of them.
        self._count += 1
        drawn = np.roll(self._drawn, self._count) * np.float32(shape[-1] ** -0.5)
        return np.resize(drawn, shape)

    def optional(self, name: str, shape: tuple[int, ...]) -> None:
        """Nothing that a decoder can do without."""

    def blocks(self, name: str) -> None:
        """No blocks."""

    def require_all_used(self) -> None:
        """All that was asked for was made for that."""


@dataclass(frozen=True)
class PlanCycles:
    """What plans of a model take by the rows of their cache."""

    tokens: int  # that a plan takes at once
    rows: int
    cycles: float  # at these rows
    cycles_a_row: float  # of the cache

    def at(self, rows: int) -> int:
        """Cycles of the plan whose cache has so many rows."""
        return round(self.cycles + (rows - self.rows) * self.cycles_a_row)


def with_plans(
    found: ModelEstimate,
    config: Config,
    device: Device,
    context: int,
    group_size: int | None = None,
) -> ModelEstimate:
    """The same with what plans take: of a token, and of prompts in chunks."""

    def cycles(tokens: int) -> PlanCycles:
        return plan_cycles(config, device, found.precision, tokens, context, group_size)

    token = cycles(1)
    decode = tuple(replace(s, plan_cycles=token.at(s.context)) for s in found.decode)
    if not found.prefill:
        return replace(found, decode=decode)
    chunk = min(CHUNK, context)
    whole = cycles(chunk).at(context)
    prefill = tuple(replace(s, plan_cycles=ceil(s.tokens / chunk) * whole) for s in found.prefill)
    return replace(found, decode=decode, prefill=prefill)


def plan_cycles(
    config: Config,
    device: Device,
    precision: Precision,
    tokens: int,
    context: int,
    group_size: int | None = None,
) -> PlanCycles:
    """What plans that take so many tokens at once should take."""
    probe = _Probe(device, precision, tokens, group_size)
    rows = min(context, _MOST_ROWS)
    small = _shrink(config)
    one = replace(small, layers=1)
    base = probe.cycles(one, rows)
    shares = config.kv_heads / one.kv_heads  # of the cache

    def layer(rows: int) -> float:
        """Cycles that a further layer takes."""
        more = probe.cycles(replace(small, layers=_LAYERS), rows)
        return (more - probe.cycles(one, rows)) / (_LAYERS - 1)

    def missing(whole: int, part: int, larger: Callable[[int], Config], times: int = _FAR) -> float:
        """Cycles that all that is missing of something takes, in a layer or in the head."""
        if whole == part:
            return 0.0
        near, far = (min(whole, times * part) for times in (_NEAR, _FAR))
        found = probe.cycles(larger(near), rows)
        if far == near:
            return (whole - part) * (found - base) / (near - part)
        # The first rows cost more than those behind them, which come while others are computed.
        a_row = (probe.cycles(larger(far), rows) - found) / (far - near)
        return found - base + (whole - near) * a_row

    total = base + (config.layers - 1) * layer(rows) if config.layers > 1 else float(base)
    total += missing(config.vocabulary, one.vocabulary, lambda n: replace(one, vocabulary=n))
    total += config.layers * missing(config.ff, one.ff, lambda n: replace(one, ff=n))
    total += config.layers * missing(config.kv_heads, one.kv_heads, lambda n: _with_heads(one, n))
    a_row = 0.0
    if tokens == 1 and rows > _LEAST_ROWS:
        fewer = max(rows // 2, _LEAST_ROWS)
        a_row = config.layers * shares * (layer(rows) - layer(fewer)) / (rows - fewer)
    return PlanCycles(tokens, rows, total, a_row)


def _shrink(config: Config) -> Config:
    """The same with fewer rows of what is wide, such that plans of it are soon made."""
    made = config
    if _layer_weights(made) > _LAYER_WEIGHTS:
        made = replace(made, ff=min(made.ff, _LEAST_FF))
        heads = made.kv_heads
        while heads % 2 == 0 and _layer_weights(_with_heads(made, heads)) > _LAYER_WEIGHTS:
            heads //= 2
        made = _with_heads(made, heads)
    head_rows = max(1, _HEAD_WEIGHTS // config.width // _LEAST_HEAD_ROWS) * _LEAST_HEAD_ROWS
    return replace(made, vocabulary=min(config.vocabulary, head_rows))


def _with_heads(config: Config, kv_heads: int) -> Config:
    return replace(config, kv_heads=kv_heads, heads=kv_heads * config.group)


def _layer_weights(config: Config) -> int:
    heads = 2 * (config.heads + config.kv_heads) * config.head_size
    matrices = 2 if config.family.gate == "none" else 3
    return config.width * (heads + matrices * config.ff)


class _Probe:
    """Makes small plans, and times them."""

    def __init__(
        self, device: Device, precision: Precision, tokens: int, group_size: int | None
    ) -> None:
        self._device, self._precision, self._tokens = device, precision, tokens
        self._group_size = group_size if precision in GROUP_SIZE else None
        self._known: dict[tuple[Config, int], int] = {}

    def cycles(self, config: Config, rows: int) -> int:
        """What the plan of these sizes takes."""
        if (config, rows) not in self._known:
            self._known[config, rows] = self._plan_cycles(config, rows)
        return self._known[config, rows]

    def _plan_cycles(self, config: Config, rows: int) -> int:
        name = f"a model of {config.layers:,} layers"
        weights = decoder_weights(config, RandomWeights(name))
        step = Decoder(config, weights, name).step(rows, min(self._tokens, rows))
        with stage(f"planning {name}"):
            plan = compile_module(
                step.module, self._device, cast(PlanPrecision, self._precision),
                ddr_bytes=_DDR_BYTES, group_size=self._group_size,
            )  # fmt: skip
        return plan.time().cycles
