"""How much of everything a decoder has: weights, rows of its cache, MACs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Literal

from nacre.llm.model.config import Config

Precision = Literal["f16", "w8f16", "w4f16", "i8"]
_WEIGHT_BITS = MappingProxyType({"f16": 16, "w8f16": 8, "w4f16": 4, "i8": 8})
PRECISIONS: tuple[Precision, ...] = ("f16", "w8f16", "w4f16", "i8")
_GROUPED = frozenset({"w8f16", "w4f16"})
_F16_BYTES = 2


@dataclass(frozen=True)
class ModelSizes:
    """A decoder counted; `layers` are all layers together."""

    config: Config
    is_tied: bool

    @property
    def layer_weights(self) -> int:
        """Weights of products in all layers."""
        c = self.config
        heads = (2 * c.heads + 2 * c.kv_heads) * c.head_size * c.width
        matrices = 2 if c.family.gate == "none" else 3
        return c.layers * (heads + matrices * c.width * c.ff)

    @property
    def head_weights(self) -> int:
        """Weights of the product that gives logits; the embedding has as many."""
        return self.config.vocabulary * self.config.width

    @property
    def vectors(self) -> int:
        """Elements of norms."""
        c = self.config
        norms = 1 if c.family.residual == "parallel" else 2
        norms += 2 * c.family.has_post_norms
        parts = 2 if c.family.norm == "layer" else 1
        heads = 2 * c.head_size * c.family.has_head_norms
        return c.layers * (norms * parts * c.width + heads) + parts * c.width

    @property
    def parameters(self) -> int:
        """All of them."""
        embeddings = self.head_weights * (1 if self.is_tied else 2)
        positions = 0 if self.config.rotary is not None else self.config.context * self.config.width
        return self.layer_weights + embeddings + self.vectors + positions

    @property
    def cache_row_bytes(self) -> int:
        """Bytes of a token's keys and values in f16."""
        c = self.config
        return 2 * c.layers * c.kv_heads * c.head_size * _F16_BYTES

    def cache_bytes(self, rows: int) -> int:
        """Bytes of the cache that a token reads where so many tokens are before it."""
        c = self.config
        a_layer = self.cache_row_bytes // c.layers
        seen = [min(rows, c.window_of(i) or rows) for i in range(c.layers)]
        return a_layer * sum(seen)

    def weight_bytes(self, precision: Precision, group: int) -> int:
        """Bytes of all that a step reads of weights: layers, norms and the head."""
        count = self.layer_weights + self.head_weights
        return packed_bytes(count, precision, group) + self.vectors * _F16_BYTES

    def stored_bytes(self, precision: Precision, group: int) -> int:
        """Bytes that weights take in memory: a table to look tokens up is of f16.

        A head that is the embedding shares its bytes at f16 alone.
        """
        shares = self.is_tied and precision == "f16"
        positions = 0 if self.config.rotary is not None else self.config.context * self.config.width
        tables = (0 if shares else self.head_weights) + positions
        return self.weight_bytes(precision, group) + tables * _F16_BYTES

    def attention_macs(self, tokens: int, rows: int) -> int:
        """MACs of scores and of what they weigh, of tokens that each see so many rows."""
        c = self.config
        seen = sum(min(rows, c.window_of(i) or rows) for i in range(c.layers))
        return 2 * tokens * seen * c.heads * c.head_size


def packed_bytes(count: int, precision: Precision, group: int) -> int:
    """Bytes of weights of products, with a scale of f16 a group where they have such."""
    data = ceil(count * _WEIGHT_BITS[precision] / 8)
    return data + (ceil(count / group) * _F16_BYTES if precision in _GROUPED else 0)
