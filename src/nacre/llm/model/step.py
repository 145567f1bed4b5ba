"""A step of a decoder as a module of Core IR: some tokens in, logits and rows of the cache out.

The tokens are those of one text, or one of each of several. The cache is an input that no step
writes: the rows of the step's tokens are outputs, which whoever runs it puts where they belong. So
a step reads the cache once and moves a row of it a token, and the scores of the old rows and of
the new ones are computed apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nacre.core.builder import Builder
from nacre.core.grouped_weights import add_grouped_weights
from nacre.core.module import Labels, Module
from nacre.llm.model.cache import CacheSizes, cache_names, cache_shape, row_name
from nacre.llm.model.config import Config
from nacre.llm.model.layers import Affine, DecoderWeights, Layer
from nacre.llm.model.masks import StepMasks
from nacre.llm.model.problems import refusal
from nacre.llm.model.rotary import rotary_tables
from nacre.llm.rules.model import LLM06

TOKENS, POSITION, LAST, LOGITS = "tokens", "position", "last", "logits"
_INDEX = "i32"
_ACTIVATIONS: dict[str, Callable[[Builder, int], int]] = {
    "silu": lambda b, x: b.add("Silu", x),
    "gelu": lambda b, x: b.add("Gelu", x),
    "gelu_tanh": lambda b, x: b.add("Gelu", x, approximate="tanh"),
}


@dataclass(frozen=True)
class Step:
    """A module that takes `chunk` tokens at a position of a cache of `context` rows.

    Inputs are `tokens`, `position` (of the first token), with more than one token `last` (whose
    logits are wanted, counted from the first), and a cache of keys and one of values a layer.
    Outputs are `logits` and the new rows, in the order of the caches. Steps that give the logits of
    all tokens have no `last`; those of several `texts` take a token and a position of each.
    """

    module: Module
    context: int
    chunk: int
    texts: int = 1


def require_sizes(config: CacheSizes, name: str, context: int, chunk: int) -> None:
    """InputError where a step cannot have these sizes."""
    for what, size in (("context", context), ("chunk", chunk)):
        if type(size) is not int:
            message = f"the {what} is {size!r:.40}, expected a whole number"
            raise refusal(LLM06, name, message)
    if not 1 <= context <= config.context:
        message = f"the context is {context:,}, expected 1 to {config.context:,}, what it knows"
        raise refusal(LLM06, name, message)
    if not 1 <= chunk <= context:
        message = f"the chunk is {chunk:,} tokens, expected 1 to the context, {context:,}"
        raise refusal(LLM06, name, message)


def build_step(
    config: Config,
    weights: DecoderWeights,
    context: int,
    chunk: int,
    name: str = "<model>",
    *,
    keeps_blocks: bool = False,
    of_context: int | None = None,
    texts: int = 1,
    all_logits: bool = False,
) -> Step:
    """The step of so many tokens; weights of products may stay integers with scales.

    A step of a short cache may belong to texts of a longer context, by which positions turn. One of
    several texts takes one token of each.
    """
    require_sizes(config, name, context, chunk)
    whole = of_context or context
    require_sizes(config, name, whole, 1)
    if texts > 1 and chunk > 1:
        raise ValueError(f"{texts} texts in chunks of {chunk}, expected one token of each")
    writer = _StepWriter(config, weights, context, chunk, keeps_blocks, whole, texts, all_logits)
    return Step(writer.module(), context, chunk, texts)


class _StepWriter:
    """Writes the operations of a step, layer by layer."""

    def __init__(
        self,
        config: Config,
        weights: DecoderWeights,
        context: int,
        chunk: int,
        keeps_blocks: bool,
        of_context: int,
        texts: int,
        all_logits: bool,
    ) -> None:
        self._config, self._weights, self._of_context = config, weights, of_context
        self._context, self._chunk, self._keeps_blocks = context, chunk, keeps_blocks
        self._texts = texts
        self._b = b = Builder()
        self._tokens = b.input(TOKENS, _INDEX, (texts * chunk,))
        self._position = b.input(POSITION, _INDEX, (texts,))
        has_last = chunk > 1 and not all_logits
        self._last = b.input(LAST, _INDEX, (1,)) if has_last else None
        self._caches = [
            b.input(cache, "f32", cache_shape(config, cache, context, texts))
            for cache in cache_names(config)
        ]
        self._rows: list[int] = []
        offsets = np.arange(chunk, dtype=np.int32)
        self._places = (
            self._position
            if chunk == 1
            else b.add("BinOp", self._position, b.constant(offsets), op="Add")
        )
        self._masks = StepMasks(b, self._position, self._places, context, chunk, texts)
        self._turns = self._rotary_rows()
        self._embedding = b.constant(weights.embedding, copy=False)

    def module(self) -> Module:
        """All of it."""
        b, config = self._b, self._config
        x = b.add("Gather", self._embedding, self._tokens)
        if config.family.is_embedding_scaled:
            x = self._times(x, config.width**0.5)
        if self._weights.positions is not None:
            table = b.constant(self._weights.positions, copy=False)
            x = self._plus(x, b.add("Gather", table, self._places))
        for number, layer in enumerate(self._weights.layers):
            x = self._layer(x, layer, number)
        logits = self._logits(x)
        made = b.module(logits, *self._rows)
        names = (LOGITS, *map(row_name, cache_names(config)))
        return replace(made, labels=Labels(outputs=names, source="language model"))

    def _layer(self, x: int, layer: Layer, number: int) -> int:
        normed = self._norm(x, layer.attention_norm)
        attended = self._attention(normed, layer, number)
        if layer.attention_post_norm is not None:
            attended = self._norm(attended, layer.attention_post_norm)
        after = self._plus(x, attended)
        before_ffn = x if self._config.is_parallel else after
        taken = normed if layer.ffn_norm is None else self._norm(before_ffn, layer.ffn_norm)
        made = self._ffn(taken, layer)
        if layer.ffn_post_norm is not None:
            made = self._norm(made, layer.ffn_post_norm)
        return self._plus(after, made)

    def _ffn(self, x: int, layer: Layer) -> int:
        activation = _ACTIVATIONS[self._config.family.activation]
        up = self._product(x, layer.up)
        if layer.gate is None:
            return self._product(activation(self._b, up), layer.down)
        gate = activation(self._b, self._product(x, layer.gate))
        return self._product(self._b.add("BinOp", gate, up, op="Mul"), layer.down)

    def _logits(self, x: int) -> int:
        b, cap = self._b, self._config.logit_cap
        if self._last is not None:
            x = b.add("Gather", x, self._last)
        x = self._norm(x, self._weights.norm)
        return self._capped(self._product(x, self._weights.head), cap)

    # Attention

    def _attention(self, x: int, layer: Layer, number: int) -> int:
        b, c, t = self._b, self._config, self._chunk
        query = self._heads(self._product(x, layer.query), layer.query_norm, c.heads)
        key = self._heads(self._product(x, layer.key), layer.key_norm, c.kv_heads)
        value = self._heads(self._product(x, layer.value), None, c.kv_heads)
        query, key = self._turn(query), self._turn(key)
        keys, value = self._keys_and_values(key, value)
        # Heads that share keys are rows of one product.
        rows = (self._texts * c.kv_heads, c.group * t, c.head_size)
        query = self._reshape(self._times(query, c.query_scale), rows)
        old_keys, old_values = (
            self._reshape(cache, (rows[0], *b.type_of(cache).shape[-2:]))
            for cache in self._caches[2 * number : 2 * number + 2]
        )
        scores = [b.add("MatMul", query, some) for some in (old_keys, keys)]
        whole = self._capped(b.add("Concat", *scores, axis=-1), c.score_cap)
        width = self._context + t
        shape = (c.kv_heads, c.group, t) if self._texts == 1 else (self._texts, c.kv_heads, c.group)
        scores_of_heads = self._reshape(whole, (*shape, width))
        masked = self._plus(scores_of_heads, self._masks.of_window(c.window_of(number)))
        shares = self._reshape(b.add("Softmax", masked, axis=-1), (*rows[:2], width))
        old = b.add("MatMul", self._part(shares, 0, self._context), old_values)
        new = b.add("MatMul", self._part(shares, self._context, width), value)
        return self._product(self._side_by_side(self._plus(old, new)), layer.out)

    def _heads(self, x: int, norm: Affine | None, heads: int) -> int:
        """Rows of tokens as heads: `[heads, tokens, size]`, of texts `[texts, heads, size]`."""
        x = self._reshape(x, (self._texts * self._chunk, heads, self._config.head_size))
        if norm is not None:
            x = self._norm(x, norm)
        return x if self._texts > 1 else self._b.add("Transpose", x, permutation=(1, 0, 2))

    def _side_by_side(self, x: int) -> int:
        """Heads as rows of tokens again."""
        c, t = self._config, self._chunk
        if self._texts == 1:
            x = self._reshape(x, (c.heads, t, c.head_size))
            x = self._b.add("Transpose", x, permutation=(1, 0, 2))
        return self._reshape(x, (self._texts * t, c.heads * c.head_size))

    def _keys_and_values(self, key: int, value: int) -> tuple[int, int]:
        """Both as products take them, the keys as columns; as rows of the cache they are given."""
        c, t, heads = self._config, self._chunk, self._texts * self._config.kv_heads
        if t == 1:
            keys = self._reshape(key, (heads, c.head_size, 1))
        else:
            keys = self._b.add("Transpose", key, permutation=(0, 2, 1))
        values = self._reshape(value, (heads, t, c.head_size))
        for made, cache in ((keys, "cache.keys"), (values, "cache.values")):
            self._rows.append(self._reshape(made, cache_shape(c, cache, t, self._texts)))
        return keys, values

    def _turn(self, x: int) -> int:
        """Heads turned by their positions; dimensions that are not turned stand last."""
        if self._turns is None or self._config.rotary is None:
            return x
        b, size, turned = self._b, self._config.head_size, self._config.rotary.dimensions
        cosines, sines = self._turns
        head = x if turned == size else self._part(x, 0, turned)
        half = turned // 2
        halves = b.add("Concat", self._part(head, half, turned), self._part(head, 0, half), axis=-1)
        straight = b.add("BinOp", head, cosines, op="Mul")
        made = self._plus(straight, b.add("BinOp", halves, sines, op="Mul"))
        if turned == size:
            return made
        return b.add("Concat", made, self._part(x, turned, size), axis=-1)

    def _rotary_rows(self) -> tuple[int, int] | None:
        """Cosines and sines of the step's tokens."""
        rotary, weights = self._config.rotary, self._weights
        if rotary is None:
            return None
        tables = rotary_tables(
            rotary, self._of_context, weights.frequency_factors, weights.long_factors
        )
        cosines, sines = (
            self._b.add(
                "Gather", self._b.constant(table[: self._context], copy=False), self._places
            )
            for table in tables
        )
        if self._texts > 1:  # the same for all heads of a text
            shape = (self._texts, 1, rotary.dimensions)
            cosines, sines = self._reshape(cosines, shape), self._reshape(sines, shape)
        return cosines, sines

    # Small parts

    def _norm(self, x: int, norm: Affine) -> int:
        b, epsilon = self._b, self._config.epsilon
        operands = [x, b.constant(norm.weight, copy=False)]
        if self._config.family.norm == "layer" and norm.bias is not None:
            operands.append(b.constant(norm.bias, copy=False))
        opcode = "RmsNorm" if self._config.family.norm == "rms" else "LayerNorm"
        return b.add(opcode, *operands, axis=-1, epsilon=epsilon)

    def _product(self, x: int, affine: Affine) -> int:
        operands = [x, self._matrix(affine)]
        if affine.bias is not None:
            operands.append(self._b.constant(affine.bias, copy=False))
        return self._b.add("Linear", *operands)

    def _matrix(self, affine: Affine) -> int:
        """The weights of a product; a head may be the embedding."""
        b, blocks = self._b, affine.blocks
        if blocks is None or not self._keeps_blocks:
            is_embedding = affine.weight is self._weights.embedding
            return self._embedding if is_embedding else b.constant(affine.weight, copy=False)
        read = blocks.read()
        integers = b.constant(read.integers, read.dtype, copy=False)
        scales, least = b.constant(read.scales, copy=False), read.minimums
        rows, columns = read.integers.shape
        minimums = None if least is None else b.constant(least[..., None], copy=False)
        return add_grouped_weights(
            b, integers, scales, read.group, minimums=minimums, shape=(rows, columns)
        )

    def _capped(self, x: int, cap: float | None) -> int:
        """Scores that come no further than a cap."""
        if cap is None:
            return x
        small = self._b.add("Unary", self._times(x, 1 / cap), op="Tanh")
        return self._times(small, cap)

    def _plus(self, a: int, b: int) -> int:
        return self._b.add("BinOp", a, b, op="Add")

    def _times(self, x: int, factor: float) -> int:
        return self._b.add("BinOp", x, self._b.constant(np.float32(factor)), op="Mul")

    def _reshape(self, x: int, shape: tuple[int, ...]) -> int:
        if self._b.type_of(x).shape == shape:
            return x
        return self._b.add("Reshape", x, new_shape=shape)

    def _part(self, x: int, start: int, end: int) -> int:
        """A part of the last axis."""
        shape = self._b.type_of(x).shape
        starts, ends = (0,) * (len(shape) - 1) + (start,), (*shape[:-1], end)
        return self._b.add("Slice", x, starts=starts, ends=ends, steps=(1,) * len(shape))
