"""The weights of a decoder, layer by layer, whatever a file fused or permuted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.llm.gguf.kept_blocks import KeptBlocks
from nacre.llm.model.config import Config
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array, Weights
from nacre.llm.rules.model import LLM03


@dataclass(frozen=True, eq=False)
class Affine:
    """Rows of weights with a bias: of a product, or of a norm where the weight is a vector."""

    weight: Array
    bias: Array | None = None
    blocks: KeptBlocks | None = None  # the same weights as integers with scales

    def rows(self, some: slice | npt.NDArray[np.int64]) -> Affine:
        """Some of the rows."""
        bias = None if self.bias is None else self.bias[some]
        blocks = None if self.blocks is None else self.blocks.rows(some)
        return Affine(self.weight[some], bias, blocks)


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of a layer."""

    attention_norm: Affine
    query: Affine
    key: Affine
    value: Affine
    out: Affine
    up: Affine
    down: Affine
    gate: Affine | None = None
    ffn_norm: Affine | None = None  # None: the FFN takes what attention takes
    query_norm: Affine | None = None
    key_norm: Affine | None = None
    attention_post_norm: Affine | None = None
    ffn_post_norm: Affine | None = None


@dataclass(frozen=True, eq=False)
class DecoderWeights:
    """The weights of a decoder."""

    embedding: Array
    layers: tuple[Layer, ...]
    norm: Affine
    head: Affine
    positions: Array | None = None
    frequency_factors: Array | None = None  # what divides the frequencies of rotary positions
    long_factors: Array | None = None  # the same beyond the original context

    @property
    def is_tied(self) -> bool:
        """Whether the head's weights are the embedding."""
        return self.head.weight is self.embedding


def decoder_weights(config: Config, weights: Weights) -> DecoderWeights:
    """All weights; InputError for what is missing, has another shape or is left over."""
    _require_layers(config, weights)
    embedding = weights.get("token_embd.weight", (config.vocabulary, config.width))
    rotary = config.rotary
    factors = long_factors = positions = None
    if rotary is not None:
        shape = (rotary.dimensions // 2,)
        factors = weights.optional("rope_freqs.weight", shape)
        if factors is None:
            factors = weights.optional("rope_factors_short.weight", shape)
            long_factors = weights.optional("rope_factors_long.weight", shape)
    else:
        positions = weights.get("position_embd.weight", (config.context, config.width))
    found = DecoderWeights(
        embedding=embedding,
        layers=tuple(_layer(config, weights, i) for i in range(config.layers)),
        norm=_affine(weights, "output_norm", (config.width,)),
        head=_head(config, weights, embedding),
        positions=positions,
        frequency_factors=factors,
        long_factors=long_factors,
    )
    weights.require_all_used()
    return found


def _require_layers(config: Config, weights: Weights) -> None:
    last = f"blk.{config.layers - 1}.attn_norm.weight"
    if not weights.has(last):
        message = f"the file has no tensor `{last}` of the last of {config.layers:,} layers"
        raise refusal(LLM03, weights.name, message)


def _head(config: Config, weights: Weights, embedding: Array) -> Affine:
    shape = (config.vocabulary, config.width)
    weight = weights.optional("output.weight", shape)
    bias = weights.optional("output.bias", shape[:1])
    blocks = weights.blocks("token_embd.weight" if weight is None else "output.weight")
    return Affine(embedding if weight is None else weight, bias, blocks)


def _layer(config: Config, weights: Weights, number: int) -> Layer:
    blk = f"blk.{number}"
    family, width = config.family, config.width
    query, key, value = _projections(config, weights, blk)
    gate, up = _gate_and_up(config, weights, blk)
    is_shared = family.residual == "parallel"
    one = (width,)
    head = (config.head_size,)
    return Layer(
        attention_norm=_affine(weights, f"{blk}.attn_norm", one),
        query=query,
        key=key,
        value=value,
        out=_affine(weights, f"{blk}.attn_output", (width, config.heads * config.head_size)),
        up=up,
        down=_affine(weights, f"{blk}.ffn_down", (width, config.ff)),
        gate=gate,
        ffn_norm=None if is_shared else _affine(weights, f"{blk}.ffn_norm", one),
        query_norm=_norm_if(family.has_head_norms, weights, f"{blk}.attn_q_norm", head),
        key_norm=_norm_if(family.has_head_norms, weights, f"{blk}.attn_k_norm", head),
        attention_post_norm=_norm_if(
            family.has_post_norms, weights, f"{blk}.post_attention_norm", one
        ),
        ffn_post_norm=_norm_if(family.has_post_norms, weights, f"{blk}.post_ffw_norm", one),
    )


def _norm_if(is_there: bool, weights: Weights, name: str, shape: tuple[int, ...]) -> Affine | None:
    return _affine(weights, name, shape) if is_there else None


def _affine(weights: Weights, name: str, shape: tuple[int, ...]) -> Affine:
    weight = weights.get(f"{name}.weight", shape)
    blocks = weights.blocks(f"{name}.weight") if len(shape) > 1 else None
    return Affine(weight, weights.optional(f"{name}.bias", shape[:1]), blocks)


def _rows(affine: Affine, *counts: int) -> list[Affine]:
    """Parts of so many rows each; nothing is copied."""
    ends = np.cumsum(counts)
    spans = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return [affine.rows(span) for span in spans]


def _projections(config: Config, weights: Weights, blk: str) -> list[Affine]:
    """Queries, keys and values, with heads whose halves are turned against each other."""
    queries, keys = config.heads * config.head_size, config.kv_heads * config.head_size
    if config.family.is_qkv_fused and weights.has(f"{blk}.attn_qkv.weight"):
        whole = _affine(weights, f"{blk}.attn_qkv", (queries + 2 * keys, config.width))
        return _rows(whole, queries, keys, keys)
    query = _affine(weights, f"{blk}.attn_q", (queries, config.width))
    key = _affine(weights, f"{blk}.attn_k", (keys, config.width))
    value = _affine(weights, f"{blk}.attn_v", (keys, config.width))
    if config.family.is_permuted:
        query, key = (_halves(part, config) for part in (query, key))
    return [query, key, value]


def _halves(affine: Affine, config: Config) -> Affine:
    """Rows in pairs of neighbours as two halves, as far as positions turn them."""
    turned = config.rotary.dimensions if config.rotary is not None else 0
    order = np.arange(config.head_size)
    order[:turned] = order[:turned].reshape(-1, 2).T.reshape(-1)
    heads = len(affine.weight) // config.head_size
    rows = (np.arange(heads)[:, None] * config.head_size + order).reshape(-1)
    return affine.rows(rows)


def _gate_and_up(config: Config, weights: Weights, blk: str) -> tuple[Affine | None, Affine]:
    shape = (config.ff, config.width)
    if config.family.gate == "fused":
        whole = _affine(weights, f"{blk}.ffn_up", (2 * config.ff, config.width))
        gate, up = _rows(whole, config.ff, config.ff)
        return gate, up
    up = _affine(weights, f"{blk}.ffn_up", shape)
    return (
        (_affine(weights, f"{blk}.ffn_gate", shape), up)
        if config.family.gate == "beside"
        else (None, up)
    )
