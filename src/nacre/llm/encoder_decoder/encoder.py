"""The encoder as a module: a source in, keys and values of every layer of the decoder out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nacre.core.builder import Builder
from nacre.core.module import Labels, Module
from nacre.llm.encoder_decoder.blocks import Blocks
from nacre.llm.encoder_decoder.config import EncoderDecoderConfig
from nacre.llm.encoder_decoder.relative import bias_of
from nacre.llm.model.masks import MASKED
from nacre.llm.model.weights import Weights

SOURCE, LENGTH, FEATURES = "source", "length", "features"


def cross_names(config: EncoderDecoderConfig) -> list[str]:
    """Keys and values of the source, of all layers of the decoder in order."""
    return [f"cross.{i}.{part}" for i in range(config.layers) for part in ("keys", "values")]


def cross_shape(config: EncoderDecoderConfig, name: str) -> tuple[int, ...]:
    """The shape of one of them: keys stand as columns, since queries multiply by them."""
    last = (config.head_size, config.source)
    return (config.kv_heads, *(last if name.endswith("keys") else last[::-1]))


def build_encoder(config: EncoderDecoderConfig, weights: Weights) -> Module:
    """The module that reads a source.

    Its inputs are `source`, tokens, and `length`, how many of them there are, or `features`, the
    logarithms of a spectrum by mels. What stands behind the tokens is not looked at.
    """
    b = Builder()
    blocks = Blocks(config, weights, b)
    if config.mels:
        x, mask, bias = _features(blocks), None, None
    else:
        tokens = b.input(SOURCE, "i32", (config.source,))
        mask = source_mask(b, b.input(LENGTH, "i32", (1,)), config.source)
        bias = blocks.plus(blocks.constant(_bias(config, weights)), mask)
        embedding = weights.get(blocks.names.embedding, (config.vocabulary, config.width))
        x = b.add("Gather", blocks.constant(embedding), tokens)
    for layer in range(config.encoder_layers):
        names = blocks.names.self_attention("encoder", layer)
        normed = blocks.norm(x, names.norm)
        pair = blocks.keys_and_values(normed, names)
        x = blocks.plus(x, blocks.attend(blocks.query(normed, names), [pair], bias, names))
        behind = blocks.names.feed_forward("encoder", layer)
        normed = blocks.norm(x, behind.norm)
        x = blocks.plus(x, blocks.feed_forward(normed, behind, config.encoder_ff))
    x = blocks.norm(x, blocks.names.last_norm("encoder"))
    found: list[int] = []
    for layer in range(config.layers):
        found += blocks.keys_and_values(x, blocks.names.cross_attention(layer))
    labels = Labels(outputs=tuple(cross_names(config)), source="encoder")
    return replace(b.module(*found), labels=labels)


def source_mask(b: Builder, length: int, rows: int) -> int:
    """What is added to scores of a source, `[1, 1, rows]`: tokens are seen, what is behind not."""
    places = b.constant(np.arange(rows, dtype=np.int32).reshape(1, 1, -1))
    seen = b.add("Compare", places, b.add("Reshape", length, new_shape=(1, 1, 1)), op="Lt")
    zero, masked = (b.constant(np.full((1, 1, 1), n, np.float32)) for n in (0, MASKED))
    return b.add("Where", seen, zero, masked)


def _features(blocks: Blocks) -> int:
    """Two convolutions of a spectrum, the second of which halves its length."""
    b, config, weights = blocks.b, blocks.config, blocks.weights
    x = b.input(FEATURES, "f32", (config.mels, 2 * config.source))
    x = b.add("Reshape", x, new_shape=(1, config.mels, 2 * config.source))
    for name, channels, stride in (("conv1", config.mels, 1), ("conv2", config.width, 2)):
        stem = f"model.encoder.{name}"
        weight = weights.get(f"{stem}.weight", (config.width, channels, 3))
        operands = [blocks.constant(weight)]
        operands.append(blocks.constant(weights.get(f"{stem}.bias", (config.width,))))
        x = b.add("Gelu", b.add("Conv", x, *operands, strides=(stride,), pads=(1, 1)))
    rows = b.add("Reshape", x, new_shape=(config.width, config.source))
    shape = (config.source, config.width)
    places = blocks.constant(weights.get("model.encoder.embed_positions.weight", shape))
    return blocks.plus(blocks.transpose(rows, (1, 0)), places)


def _bias(config: EncoderDecoderConfig, weights: Weights) -> np.ndarray:
    shape = (config.buckets, config.encoder_heads)
    name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    places = np.arange(config.source)
    distances = np.subtract.outer(places, places)
    return bias_of(weights.get(name, shape), distances, config.distance, both_ways=True)
