"""The parts that encoders and decoders have in common, as operations of Core IR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.core.builder import Builder
from nacre.llm.encoder_decoder.config import EncoderDecoderConfig
from nacre.llm.encoder_decoder.names import AttentionNames, FeedForwardNames, Names
from nacre.llm.model.weights import Array, Weights


class Blocks:
    """Writes products, norms and attentions with the weights of a model."""

    def __init__(self, config: EncoderDecoderConfig, weights: Weights, b: Builder) -> None:
        self.config, self.weights, self.b = config, weights, b
        self.names = Names(config.kind)
        self._has_biases = config.kind == "whisper"

    # Attention

    def query(self, x: int, names: AttentionNames) -> int:
        """Queries by heads, scaled."""
        query = self.heads(self.product(x, names.query, self._inner, self.config.width))
        scale = self.config.query_scale
        return query if scale == 1 else self.times(query, scale)

    def keys_and_values(self, x: int, names: AttentionNames) -> tuple[int, int]:
        """Keys by heads as columns, `[heads, size, rows]`, and values as rows."""
        key = self.product(x, names.key, self._inner, self.config.width, has_bias=False)
        value = self.product(x, names.value, self._inner, self.config.width)
        return self.transpose(self.heads(key), (0, 2, 1)), self.heads(value)

    def attend(
        self, query: int, parts: Sequence[tuple[int, int]], mask: int | None, names: AttentionNames
    ) -> int:
        """What queries take of keys, as columns, and values; parts of them stay apart."""
        b = self.b
        scores = [b.add("MatMul", query, keys) for keys, _ in parts]
        whole = scores[0] if len(scores) == 1 else b.add("Concat", *scores, axis=-1)
        shares = b.add("Softmax", whole if mask is None else self.plus(whole, mask), axis=-1)
        total, at = -1, 0
        for _, value in parts:
            size = b.type_of(value).shape[1]
            part = shares if len(parts) == 1 else self.columns(shares, at, at + size)
            taken = b.add("MatMul", part, value)
            total, at = taken if at == 0 else self.plus(total, taken), at + size
        return self.product(self.join(total), names.out, self.config.width, self._inner)

    def feed_forward(self, x: int, names: FeedForwardNames, ff: int) -> int:
        """Two products with an activation between, or three with a gate."""
        width = self.config.width
        if self.config.is_gated:
            gate = self.activate(self.product(x, names.gate, ff, width))
            up = self.product(x, names.up, ff, width)
            return self.product(self.b.add("BinOp", gate, up, op="Mul"), names.down, width, ff)
        first = names.up if self.config.kind == "whisper" else names.up.replace("wi_1", "wi")
        return self.product(self.activate(self.product(x, first, ff, width)), names.down, width, ff)

    # Parts

    def product(self, x: int, name: str, rows: int, columns: int, *, has_bias: bool = True) -> int:
        """Rows by a matrix, with its bias where the kind has such."""
        operands = [x, self.constant(self.weights.get(f"{name}.weight", (rows, columns)))]
        if self._has_biases and has_bias:
            operands.append(self.constant(self.weights.get(f"{name}.bias", (rows,))))
        return self.b.add("Linear", *operands)

    def norm(self, x: int, name: str) -> int:
        """A norm of each row."""
        width, b = self.config.width, self.b
        operands = [x, self.constant(self.weights.get(f"{name}.weight", (width,)))]
        if self._has_biases:
            operands.append(self.constant(self.weights.get(f"{name}.bias", (width,))))
        opcode = "LayerNorm" if self._has_biases else "RmsNorm"
        return b.add(opcode, *operands, axis=-1, epsilon=self.config.epsilon)

    def activate(self, x: int) -> int:
        """The function of each element."""
        if self.config.activation == "relu":
            return self.b.add("Relu", x)
        if self.config.activation == "gelu":
            return self.b.add("Gelu", x)
        return self.b.add("Gelu", x, approximate="tanh")

    def heads(self, x: int) -> int:
        """Rows as heads: `[heads, rows, size]`."""
        rows, size = self.b.type_of(x).shape[0], self.config.head_size
        apart = self.b.add("Reshape", x, new_shape=(rows, self._inner // size, size))
        return self.transpose(apart, (1, 0, 2))

    def join(self, x: int) -> int:
        """Heads as rows again."""
        rows = self.b.type_of(x).shape[1]
        side = self.transpose(x, (1, 0, 2))
        return self.b.add("Reshape", side, new_shape=(rows, self._inner))

    def constant(self, array: Array) -> int:
        """Weights, which are not copied."""
        return self.b.constant(array, copy=False)

    def plus(self, a: int, c: int) -> int:
        """A sum."""
        return self.b.add("BinOp", a, c, op="Add")

    def times(self, x: int, factor: float) -> int:
        """A multiple."""
        return self.b.add("BinOp", x, self.b.constant(np.float32(factor)), op="Mul")

    def transpose(self, x: int, order: tuple[int, ...]) -> int:
        """Axes in another order."""
        return self.b.add("Transpose", x, permutation=order)

    def columns(self, x: int, start: int, end: int) -> int:
        """A part of the last axis."""
        shape = self.b.type_of(x).shape
        starts, ends = (*(0,) * (len(shape) - 1), start), (*shape[:-1], end)
        return self.b.add("Slice", x, starts=starts, ends=ends, steps=(1,) * len(shape))

    @property
    def _inner(self) -> int:
        return self.config.kv_heads * self.config.head_size
