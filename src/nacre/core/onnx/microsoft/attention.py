"""Attention of the domain com.microsoft: with projections, biases, paddings and caches.

A key that is masked gets `mask_filter_value` added to its score, as onnxruntime has it, so a query
all of whose keys are masked looks at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

from nacre.core.importing.products import product
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.attention import Heads, add_attention, join_heads, rotate, split_heads
from nacre.core.onnx.handlers.attention_masks import Places, compare, join_masks, places_of
from nacre.core.onnx.handlers.quantized_products import integer_product, scale_sums
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.tensors import combine, in_type, optional, part, shape_of, with_shape
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported

_FILTER = -10000.0  # the default of `mask_filter_value`


class Masks(Struct, frozen=True):
    """What is said about keys: which are padding, and what is added to the scores."""

    padding: Tensor | None = None
    bias: Tensor | None = None


def _attend(use: OnnxNode, heads: Heads, masks: Masks, past: tuple[int, int] | None) -> list[int]:
    """The result with joined heads, and keys and values with those of the past before them."""
    k, v, offset = heads.k, heads.v, 0
    if past is not None:
        offset = use.builder.type_of(past[0]).shape[2]
        k, v = (use.add("Concat", *pair, axis=2) for pair in ((past[0], k), (past[1], v)))
    batch, _, queries, size = use.builder.type_of(heads.q).shape
    places = Places(batch, queries, use.builder.type_of(k).shape[2], offset)
    is_causal = bool(use.attribute("unidirectional", 0))
    allowed = places_of(use, places, -1, 0, None) if is_causal and offset else None
    dtype = use.builder.type_of(heads.q).dtype
    bias = masks.bias
    if masks.padding is not None:
        filtered = _filter_mask(use, _unpadded_keys(use, masks.padding, places), dtype)
        bias = filtered if bias is None else combine(use, "Add", filtered, bias)
    scale = float(use.attribute("scale", 0.0)) or 1 / sqrt(size)
    mask, whole = join_masks(use, bias, allowed), Heads(heads.q, k, v)
    made = add_attention(use, whole, mask, scale, is_causal=is_causal and not offset)
    return [join_heads(use, made), k, v]


def _unpadded_keys(use: OnnxNode, mask: Tensor, places: Places) -> Tensor:
    """Which keys are no padding, so that it broadcasts to [batch, heads, queries, keys]."""
    dims, batch, keys = shape_of(use, mask), places.batch, places.keys
    whole = in_type(use, mask, "i32")
    if dims in ((batch, keys), (batch, places.queries, keys)):
        shaped = with_shape(use, whole, (batch, 1, *((1,) if len(dims) == 2 else ()), *dims[1:]))
        return compare(use, "Ge", shaped, np.array(1, np.int32))
    index = np.arange(keys, dtype=np.int32)
    if dims == (batch,):
        return compare(use, "Lt", index, with_shape(use, whole, (batch, 1, 1, 1)))
    if dims == (2 * batch,):
        pair = use.materialise(with_shape(use, whole, (2, batch, 1, 1, 1)))
        end, start = (use.reshape(part(use, pair, 0, i, i + 1), (batch, 1, 1, 1)) for i in (0, 1))
        sides = compare(use, "Lt", index, end), compare(use, "Ge", index, start)
        return combine(use, "And", *sides)
    reason = f"the mask has the shape {list(dims)}, with {batch} batches of {keys} keys"
    raise Unsupported(reason, f"give a mask of the shape {[batch, keys]}")


def _filter_mask(use: OnnxNode, kept: Tensor, dtype: str) -> Tensor:
    """0 for what is kept, `mask_filter_value` for the rest."""
    low = use.scalar(float(use.attribute("mask_filter_value", _FILTER)), dtype)
    return use.add("Where", use.materialise(kept), use.scalar(0.0, dtype), low)


def _refuse(use: OnnxNode, names: Sequence[str], operands: Sequence[int]) -> None:
    for name in names:
        if use.attribute(name, 0):
            raise Unsupported(f"`{name}` is on", f"export the model without `{name}`")
    for index in operands:
        if use.has(index):
            reason = f"operand {index}, of a cache that is shared, is given"
            raise Unsupported(
                reason, "export the model with past and present as tensors of their own"
            )


@handles("com.microsoft.MultiHeadAttention")
def multi_head_attention(use: OnnxNode) -> Sequence[Tensor]:
    """Attention of queries, keys and values with biases of their own."""
    _refuse(use, (), (8, 9))
    if not (use.has(1) and use.has(2)):
        raise Unsupported("query, key and value are packed into one tensor", "split them")
    ranks = [len(use.shape(i)) for i in range(3)]
    if ranks[0] != 3 or ranks[1] not in (3, 4) or ranks[2] != ranks[1]:
        reason = f"query, key and value have {ranks} axes, expected 3, or 4 of key and value"
        raise Unsupported(reason, "reshape them")
    if len(use.node.outputs) > 3 and use.node.outputs[3]:
        reason = f"its output `{use.node.outputs[3]}`, the scores, is not supported"
        raise Unsupported(reason, "write the products and the softmax apart")
    count, start, heads = int(use.require("num_heads")), 0, []
    for index in range(3):
        value = use.value(index)
        if ranks[index] == 3:
            width = use.shape(index)[2]
            value = _add_bias(use, value, optional(use, 3), start)
            start += width
            value = split_heads(use, value, count)
        heads.append(value)
    past = (use.value(6), use.value(7)) if use.has(6) and use.has(7) else None
    return _attend(use, Heads(*heads), Masks(optional(use, 4), optional(use, 5)), past)


def _add_bias(use: OnnxNode, value: int, bias: Tensor | None, start: int) -> int:
    """A value plus the part of a bias that is meant for it."""
    if bias is None:
        return value
    width = use.builder.type_of(value).shape[-1]
    if len(shape_of(use, bias)) != 1:
        raise Unsound(f"the bias has the shape {list(shape_of(use, bias))}, expected one axis")
    own = part(use, use.materialise(bias), 0, start, start + width)
    return use.add("BinOp", value, own, op="Add")


@handles("com.microsoft.Attention")
def attention(use: OnnxNode) -> Sequence[Tensor]:
    """Self attention, its projections included."""
    _refuse(use, ("do_rotary", "past_present_share_buffer"), (6,))
    made = product(use, use.value(0), use.value(1))
    made = _add_bias(use, made, optional(use, 2), 0)
    return _attend_projected(use, made, Masks(optional(use, 3), optional(use, 5)), optional(use, 4))


@handles("com.microsoft.QAttention")
def quantized_attention(use: OnnxNode) -> Sequence[Tensor]:
    """Self attention whose projections are products of stored integers."""
    _refuse(use, ("do_rotary", "past_present_share_buffer"), ())
    sums = integer_product(use, use.tensor(0), use.tensor(1), optional(use, 6), optional(use, 7))
    made = scale_sums(use, sums, use.tensor(3), use.tensor(4), use.tensor(2))
    return _attend_projected(use, made, Masks(optional(use, 5)), optional(use, 8))


def _attend_projected(use: OnnxNode, made: int, masks: Masks, past: Tensor | None) -> list[Tensor]:
    """Attention of query, key and value that lie side by side; and the cache as one tensor."""
    width, count = use.builder.type_of(made).shape[2], int(use.require("num_heads"))
    sizes = use.ints("qkv_hidden_sizes", None, (width // 3,) * 3) or ()
    if len(sizes) != 3 or sum(sizes) != width:
        raise Unsound(f"{width} columns of weights, expected those of query, key and value")
    starts = (0, sizes[0], sizes[0] + sizes[1])
    heads = Heads(*(
        split_heads(use, part(use, made, 2, start, start + size), count)
        for start, size in zip(starts, sizes, strict=True)
    ))  # fmt: skip
    found, k, v = _attend(use, heads, masks, _pair(use, past))
    if not any(use.node.outputs[1:]):
        return [found]
    pair = [use.reshape(value, (1, *use.builder.type_of(value).shape)) for value in (k, v)]
    return [found, use.add("Concat", *pair, axis=0)]


def _pair(use: OnnxNode, past: Tensor | None) -> tuple[int, int] | None:
    """Keys and values of a cache [2, batch, heads, length, size]."""
    if past is None:
        return None
    dims = shape_of(use, past)
    if len(dims) != 5 or dims[0] != 2:
        raise Unsound(f"the past has the shape {list(dims)}, expected 2 and four axes more")
    value = use.materialise(past)
    k, v = (use.reshape(part(use, value, 0, i, i + 1), dims[1:]) for i in (0, 1))
    return k, v


@handles("com.microsoft.RotaryEmbedding")
def rotary_embedding(use: OnnxNode) -> int:
    """Positions as rotations; one position is that of the first element."""
    _refuse(use, ("is_packed_batching",), ())
    if float(use.attribute("scale", 1.0)) != 1.0:
        raise Unsupported(
            "`scale` is not 1", "multiply the positions, or the caches were made for them"
        )
    dims = use.shape(0)
    length = dims[1] if len(dims) == 3 else dims[2] if len(dims) == 4 else 0
    places = use.tensor(1)
    if len(shape_of(use, places)) < 2:
        first = with_shape(use, in_type(use, places, "i64"), (1, 1))
        places = combine(use, "Add", first, np.arange(length, dtype=np.int64)[None])
    indices = use.materialise(places)
    caches = [use.add("GatherAxis", use.value(i), indices, axis=0) for i in (2, 3)]
    return rotate(use, use.value(0), caches)
