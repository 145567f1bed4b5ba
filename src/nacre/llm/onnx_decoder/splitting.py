"""What operations become where a value is in two parts: rows of the cache and rows of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.llm.model.masks import StepMasks
from nacre.llm.model.problems import refusal
from nacre.llm.onnx_decoder.folding import fold_to_array
from nacre.llm.onnx_decoder.split_values import (
    Split,
    moved_axis,
    multiply,
    part_of,
    reshape,
    with_size,
)
from nacre.llm.onnx_decoder.visibility import Visibility, read_mask
from nacre.llm.rules.graph import LLM31

Value = int | Split
_EACH = frozenset({"Unary", "Neg", "Cast", "Relu"})
_LOW = -1e4  # what is put in the place of scores that are masked, or lower
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze"})


class Splitter:
    """Writes operations of a graph anew, scores of old rows and of new ones apart."""

    def __init__(
        self,
        name: str,
        b: Builder,
        caches: Mapping[int, int],
        masks: StepMasks,
        sizes: tuple[int, int],
    ) -> None:
        self._name, self.b, self._masks = name, b, masks
        self._caches = caches  # by value, which part of the cache it is
        self.context, self.tokens = sizes

    def write(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value:
        """An operation of the graph on values as they are now."""
        parts = [v for v in operands if isinstance(v, Split)]
        touches = any(v in self._caches for v in operands if isinstance(v, int))
        if not parts and not touches:
            return self.b.copy(op, tuple(v for v in operands if isinstance(v, int)))
        writer = _WRITERS.get(op.opcode)
        if touches and op.opcode != "Concat":
            writer = None
        made = writer(self, op, operands) if writer is not None else None
        if made is None:
            raise self.refusal(f"{backquote(op.opcode)} of {op.type} is computed of the cache")
        return made

    def refusal(self, message: str) -> Exception:
        """What cannot be computed apart."""
        help_ = "export it as `past` and `present` beside attention that is spelt out"
        return refusal(LLM31, self._name, f"{message}: that is not built", help_)

    # Where parts begin, and what keeps them

    def concat(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """Rows of the cache, and behind them new ones."""
        if len(operands) != 2 or not all(isinstance(v, int) for v in operands):
            return None
        old, new = (v for v in operands if isinstance(v, int))
        axis = _axis_of(op)
        if old not in self._caches or new in self._caches or axis != 2:
            return None
        return Split(old, new, axis, cache=self._caches[old])

    def view(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """Another shape that leaves the axis as it is."""
        (x,) = operands
        if not isinstance(x, Split):
            return None
        axis = moved_axis(self._whole_shape(x), x.axis, op.type.shape)
        if axis is None:
            return None
        sized = (with_size(op.type.shape, axis, size) for size in (self.context, self.tokens))
        pairs = zip((x.old, x.new), sized, strict=True)
        old, new = (reshape(self.b, part, shape) for part, shape in pairs)
        return Split(old, new, axis, x.seen)

    def broadcast(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """A larger shape, in which the axis is as long as it was."""
        (x,) = operands
        if not isinstance(x, Split):
            return None
        axis = x.axis + op.type.rank - len(self._whole_shape(x))
        old, new = (
            self.b.add("Broadcast", part, shape=with_size(op.type.shape, axis, size))
            for part, size in ((x.old, self.context), (x.new, self.tokens))
        )
        return Split(old, new, axis, x.seen)

    def transpose(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """Axes in another order."""
        (x,) = operands
        if not isinstance(x, Split):
            return None
        order = tuple(op.attributes["permutation"])
        old, new = (self.b.add("Transpose", part, permutation=order) for part in (x.old, x.new))
        return Split(old, new, order.index(x.axis), x.seen)

    def each(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """A function of each element."""
        (x,) = operands
        if not isinstance(x, Split):
            return None
        old, new = (self.b.add(op.opcode, part, **op.attributes) for part in (x.old, x.new))
        return Split(old, new, x.axis, x.seen)

    def binary(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """An operation of two; a mask that is added comes off, and is kept in mind."""
        a, c = operands
        x = a if isinstance(a, Split) else c
        if not isinstance(x, Split):
            return None
        if isinstance(a, Split) and isinstance(c, Split):
            return self._combine_splits(op, a, c)
        other = c if x is a else a
        if isinstance(other, Split):
            return None
        if self._is_the_same_for_rows(other, x):
            old, new = (self._add_binary(op, part, other, x is a) for part in (x.old, x.new))
            return Split(old, new, x.axis, x.seen)
        seen = self._read(other) if op.attributes["op"] == "Add" else None
        return None if seen is None or not self._is_last(x) else self._with_mask(x, seen)

    def where(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """Scores where a mask lets them be, else a number that is far below."""
        condition, yes, no = operands
        is_hidden = isinstance(no, Split)
        scores, low = (no, yes) if is_hidden else (yes, no)
        if (
            not isinstance(scores, Split)
            or not isinstance(condition, int)
            or isinstance(low, Split)
        ):
            return None
        number, type_ = fold_to_array(self.b, low), self.b.type_of(condition)
        is_low = number is not None and number.size == 1 and number.item() <= _LOW
        seen = self._read(condition, is_hidden=is_hidden) if is_low and type_.rank else None
        return None if seen is None or not self._is_last(scores) else self._with_mask(scores, seen)

    # Where parts meet again

    def matmul(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """Scores of keys, or what weighs values."""
        left, right = operands
        if not isinstance(left, int) or not isinstance(right, Split):
            return None
        rank = len(self._whole_shape(right))
        if right.axis == rank - 1:
            old, new = (multiply(self.b, left, part) for part in (right.old, right.new))
            return Split(old, new, op.type.rank - 1)
        if right.axis != rank - 2:
            return None
        return self._weigh_values(left, right)

    def softmax(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """Shares of old rows and of new ones, of which some are masked here."""
        (x,) = operands
        is_along = isinstance(x, Split) and _axis_of(op) == x.axis and self._is_last(x)
        return self._shares(x) if is_along and isinstance(x, Split) else None

    def attention(self, op: CoreOperation, operands: tuple[Value, ...]) -> Value | None:
        """The operation of Core IR, spelt out."""
        given = OPS["Attention"].with_defaults(op.attributes)
        query, keys, values, *mask = operands
        if not isinstance(keys, Split) or not isinstance(values, Split) or given["causal"]:
            return None
        if not isinstance(query, int):
            return None
        type_ = self.b.type_of(query)
        if keys.axis != type_.rank - 2 or values.axis != keys.axis:
            return None
        scale = given["scale"] or 1 / sqrt(type_.shape[-1])
        factor = self.b.constant(np.array(scale, np.float32), type_.dtype)
        scaled = self.b.add("BinOp", query, factor, op="Mul")
        order = (*range(type_.rank - 2), type_.rank - 1, type_.rank - 2)
        old, new = (
            multiply(self.b, scaled, self.b.add("Transpose", part, permutation=order))
            for part in (keys.old, keys.new)
        )
        seen: Visibility | None = Visibility()
        if mask:
            seen = self._read(mask[0]) if isinstance(mask[0], int) else None
        if seen is None:
            return None
        shares = self._shares(Split(old, new, type_.rank - 1, seen))
        return None if shares is None else self._weigh_values(shares, values)

    def _shares(self, scores: Split) -> int | None:
        """The softmax of scores, of which some are masked here."""
        b = self.b
        if self.tokens > 1 and not scores.seen.is_causal:
            raise self.refusal("tokens of a step see those after them, or a mask was not found")
        if b.type_of(scores.old).shape[-2] != self.tokens:
            return None
        whole = b.add("Concat", scores.old, scores.new, axis=scores.axis)
        mask, type_ = self._masks.of_window(scores.seen.window), b.type_of(whole)
        if b.type_of(mask).dtype != type_.dtype:
            mask = b.add("Cast", mask, to=type_.dtype)
        mask = reshape(b, mask, (*(1,) * (type_.rank - 2), *b.type_of(mask).shape[2:]))
        return b.add("Softmax", b.add("BinOp", whole, mask, op="Add"), axis=scores.axis)

    def _weigh_values(self, shares: int, values: Split) -> int | None:
        axis, width = self.b.type_of(shares).rank - 1, self.context + self.tokens
        if self.b.type_of(shares).shape[-1] != width:
            return None
        old = multiply(self.b, part_of(self.b, shares, axis, 0, self.context), values.old)
        new = multiply(self.b, part_of(self.b, shares, axis, self.context, width), values.new)
        return self.b.add("BinOp", old, new, op="Add")

    # Small parts

    def _whole_shape(self, x: Split) -> tuple[int, ...]:
        return with_size(self.b.type_of(x.old).shape, x.axis, self.context + self.tokens)

    def _is_last(self, x: Split) -> bool:
        return x.axis == len(self._whole_shape(x)) - 1

    def _with_mask(self, x: Split, seen: Visibility) -> Split:
        return Split(x.old, x.new, x.axis, x.seen.join(seen))

    def _read(self, mask: int, *, is_hidden: bool = False) -> Visibility | None:
        """What a mask lets tokens see; it must be the same however long the text is."""
        array = fold_to_array(self.b, mask)
        if array is None:
            return None
        seen = read_mask(~array if is_hidden else array, self.context, self.tokens)
        if seen is None:
            raise self.refusal("a mask weighs rows by their places, or hides them by other rules")
        return seen

    def _is_the_same_for_rows(self, other: int, x: Split) -> bool:
        """Whether an operand has no axis of rows."""
        shape = self.b.type_of(other).shape
        at = x.axis - len(self._whole_shape(x)) + len(shape)
        return len(shape) <= len(self._whole_shape(x)) and (at < 0 or shape[at] == 1)

    def _add_binary(self, op: CoreOperation, part: int, other: int, is_left: bool) -> int:
        pair = (part, other) if is_left else (other, part)
        return self.b.add("BinOp", *pair, **op.attributes)

    def _combine_splits(self, op: CoreOperation, a: Split, c: Split) -> Value | None:
        is_same = a.axis - len(self._whole_shape(a)) == c.axis - len(self._whole_shape(c))
        if not is_same:
            return None
        old = self.b.add("BinOp", a.old, c.old, **op.attributes)
        new = self.b.add("BinOp", a.new, c.new, **op.attributes)
        return Split(old, new, self.b.type_of(old).rank + a.axis - len(self._whole_shape(a)))


def _axis_of(op: CoreOperation) -> int:
    axis: Any = op.attributes["axis"]
    return int(axis) % op.type.rank


_Writer = Callable[[Splitter, CoreOperation, tuple[Value, ...]], Value | None]
_WRITERS: Mapping[str, _Writer] = MappingProxyType(
    {
        **dict.fromkeys(_VIEWS, Splitter.view),
        **dict.fromkeys(_EACH, Splitter.each),
        "Attention": Splitter.attention,
        "BinOp": Splitter.binary,
        "Broadcast": Splitter.broadcast,
        "Concat": Splitter.concat,
        "MatMul": Splitter.matmul,
        "Softmax": Splitter.softmax,
        "Transpose": Splitter.transpose,
        "Where": Splitter.where,
    }
)
