"""A step of the decoder: as a decoder's own, and what it looks at of the source beside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nacre.core.builder import Builder
from nacre.core.module import Labels, Module
from nacre.llm.encoder_decoder.blocks import Blocks
from nacre.llm.encoder_decoder.config import EncoderDecoderConfig
from nacre.llm.encoder_decoder.encoder import LENGTH, cross_names, cross_shape, source_mask
from nacre.llm.encoder_decoder.relative import bias_of
from nacre.llm.model.cache import cache_names, cache_shape, row_name
from nacre.llm.model.masks import StepMasks
from nacre.llm.model.problems import refusal
from nacre.llm.model.step import LAST, LOGITS, POSITION, TOKENS, Step, require_sizes
from nacre.llm.model.weights import Weights
from nacre.llm.rules.model import LLM06

_MOST_BIAS = 1 << 26  # elements of a table of relative positions


def build_cross_step(
    config: EncoderDecoderConfig, weights: Weights, context: int, chunk: int, name: str
) -> Step:
    """The module that takes so many tokens at a position of a cache of so many rows."""
    require_sizes(config, name, context, chunk)
    if config.buckets and config.kv_heads * context**2 > _MOST_BIAS:
        message = f"a context of {context:,} needs a table of {config.kv_heads * context**2:,}"
        raise refusal(LLM06, name, f"{message} relative positions, which is not built")
    return Step(_StepWriter(config, weights, context, chunk).module(), context, chunk)


class _StepWriter:
    """Writes the operations of a step, layer by layer."""

    def __init__(
        self, config: EncoderDecoderConfig, weights: Weights, context: int, chunk: int
    ) -> None:
        self._config, self._weights = config, weights
        self._context, self._chunk = context, chunk
        self._b = b = Builder()
        self._blocks = Blocks(config, weights, b)
        self._tokens = b.input(TOKENS, "i32", (chunk,))
        self._position = b.input(POSITION, "i32", (1,))
        self._last = b.input(LAST, "i32", (1,)) if chunk > 1 else None
        length = None if config.mels else b.input(LENGTH, "i32", (1,))
        names = cache_names(config)
        self._caches = [b.input(n, "f32", cache_shape(config, n, context)) for n in names]
        self._cross = [b.input(n, "f32", cross_shape(config, n)) for n in cross_names(config)]
        offsets = b.constant(np.arange(chunk, dtype=np.int32))
        self._places = (
            self._position if chunk == 1 else b.add("BinOp", self._position, offsets, op="Add")
        )
        self._source_mask = None if length is None else source_mask(b, length, config.source)
        self._mask = self._self_mask()

    def module(self) -> Module:
        """All of it."""
        b, config, blocks, names = self._b, self._config, self._blocks, self._blocks.names
        table = self._weights.get(names.embedding, (config.vocabulary, config.width))
        embedding = blocks.constant(table)
        x = b.add("Gather", embedding, self._tokens)
        if not config.buckets:
            shape = (config.context, config.width)
            places = self._weights.get("model.decoder.embed_positions.weight", shape)
            x = blocks.plus(x, b.add("Gather", blocks.constant(places), self._places))
        rows: list[int] = []
        for layer in range(config.layers):
            x, made = self._layer(x, layer)
            rows += made
        if self._last is not None:
            x = b.add("Gather", x, self._last)
        x = blocks.norm(x, names.last_norm("decoder"))
        if config.output_scale != 1:
            x = blocks.times(x, config.output_scale)
        own = self._weights.optional(names.head, (config.vocabulary, config.width))
        is_tied = own is None or np.array_equal(own, table)
        head = embedding if is_tied or own is None else blocks.constant(own)
        made_module = b.module(b.add("Linear", x, head), *rows)
        outputs = (LOGITS, *map(row_name, cache_names(config)))
        return replace(made_module, labels=Labels(outputs=outputs, source="decoder"))

    def _layer(self, x: int, layer: int) -> tuple[int, tuple[int, int]]:
        blocks, at = self._blocks, slice(2 * layer, 2 * layer + 2)
        names = blocks.names.self_attention("decoder", layer)
        normed = blocks.norm(x, names.norm)
        new = blocks.keys_and_values(normed, names)
        old = self._caches[at]
        query = blocks.query(normed, names)
        x = blocks.plus(x, blocks.attend(query, [(old[0], old[1]), new], self._mask, names))
        names = blocks.names.cross_attention(layer)
        query = blocks.query(blocks.norm(x, names.norm), names)
        keys, values = self._cross[at]
        x = blocks.plus(x, blocks.attend(query, [(keys, values)], self._source_mask, names))
        behind = blocks.names.feed_forward("decoder", layer)
        made = blocks.feed_forward(blocks.norm(x, behind.norm), behind, self._config.ff)
        return blocks.plus(x, made), new

    def _self_mask(self) -> int:
        """What is added to scores of the text: what must not be seen, and relative positions."""
        b, t, context = self._b, self._chunk, self._context
        masks = StepMasks(b, self._position, self._places, context, t)
        mask = b.add("Reshape", masks.of_window(None), new_shape=(1, t, context + t))
        if not self._config.buckets:
            return mask
        heads, table = self._config.kv_heads, self._relative_table()
        places = np.arange(context)
        behind = np.maximum(np.subtract.outer(places, places), 0)
        rows = np.swapaxes(self._bias(table, behind), 0, 1).reshape(context, -1)
        old = b.add("Gather", self._blocks.constant(np.ascontiguousarray(rows)), self._places)
        old = b.add("Reshape", old, new_shape=(t, heads, context))
        old = self._blocks.transpose(old, (1, 0, 2))
        near = np.maximum(np.subtract.outer(np.arange(t), np.arange(t)), 0)
        new = self._blocks.constant(self._bias(table, near))
        return self._blocks.plus(b.add("Concat", old, new, axis=-1), mask)

    def _relative_table(self) -> np.ndarray:
        shape = (self._config.buckets, self._config.kv_heads)
        name = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        return self._weights.get(name, shape)

    def _bias(self, table: np.ndarray, distances: np.ndarray) -> np.ndarray:
        return bias_of(table, distances, self._config.distance, both_ways=False)
