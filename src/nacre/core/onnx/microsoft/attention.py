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
from nacre.core.onnx.handlers.attention_masks import (
    AttentionSizes,
    compare,
    join_masks,
    window_mask,
)
from nacre.core.onnx.handlers.quantized_products import integer_product, scale_sums
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import (
    cast_tensor,
    combine,
    optional_tensor,
    shape_of,
    slice_axis,
    with_shape,
)
from nacre.core.unsupported import Unsupported

_FILTER = -10000.0  # the default of `mask_filter_value`


class Masks(Struct, frozen=True):
    """What is said about keys: which are padding, and what is added to the scores."""

    padding: Tensor | None = None
    bias: Tensor | None = None


def _attend(node: OnnxNode, heads: Heads, masks: Masks, past: tuple[int, int] | None) -> list[int]:
    """The result with joined heads, and keys and values with those of the past before them."""
    k, v, offset = heads.k, heads.v, 0
    if past is not None:
        offset = node.builder.type_of(past[0]).shape[2]
        k, v = (node.add("Concat", *pair, axis=2) for pair in ((past[0], k), (past[1], v)))
    batch, _, queries, size = node.builder.type_of(heads.q).shape
    sizes = AttentionSizes(batch, queries, node.builder.type_of(k).shape[2], offset)
    is_causal = bool(node.attribute("unidirectional", 0))
    allowed = window_mask(node, sizes, -1, 0, None) if is_causal and offset else None
    dtype = node.builder.type_of(heads.q).dtype
    bias = masks.bias
    if masks.padding is not None:
        filtered = _filter_mask(node, _unpadded_keys(node, masks.padding, sizes), dtype)
        bias = filtered if bias is None else combine(node, "Add", filtered, bias)
    scale = float(node.attribute("scale", 0.0)) or 1 / sqrt(size)
    mask, whole = join_masks(node, bias, allowed), Heads(heads.q, k, v)
    attended = add_attention(node, whole, mask, scale, is_causal=is_causal and not offset)
    return [join_heads(node, attended), k, v]


def _unpadded_keys(node: OnnxNode, mask: Tensor, sizes: AttentionSizes) -> Tensor:
    """Which keys are no padding, so that it broadcasts to [batch, heads, queries, keys]."""
    dims, batch, keys = shape_of(node, mask), sizes.batch, sizes.keys
    whole = cast_tensor(node, mask, "i32")
    if dims in ((batch, keys), (batch, sizes.queries, keys)):
        shaped = with_shape(node, whole, (batch, 1, *((1,) if len(dims) == 2 else ()), *dims[1:]))
        return compare(node, "Ge", shaped, np.array(1, np.int32))
    index = np.arange(keys, dtype=np.int32)
    if dims == (batch,):
        return compare(node, "Lt", index, with_shape(node, whole, (batch, 1, 1, 1)))
    if dims == (2 * batch,):
        pair = node.materialise(with_shape(node, whole, (2, batch, 1, 1, 1)))
        end, start = (
            node.reshape(slice_axis(node, pair, 0, i, i + 1), (batch, 1, 1, 1)) for i in (0, 1)
        )
        sides = compare(node, "Lt", index, end), compare(node, "Ge", index, start)
        return combine(node, "And", *sides)
    reason = f"the mask has the shape {list(dims)}, with {batch} batches of {keys} keys"
    raise Unsupported(reason, f"give a mask of the shape {[batch, keys]}")


def _filter_mask(node: OnnxNode, kept: Tensor, dtype: str) -> Tensor:
    """0 for what is kept, `mask_filter_value` for the rest."""
    low = node.scalar(float(node.attribute("mask_filter_value", _FILTER)), dtype)
    return node.add("Where", node.materialise(kept), node.scalar(0.0, dtype), low)


def _refuse(node: OnnxNode, names: Sequence[str], operands: Sequence[int]) -> None:
    for name in names:
        if node.attribute(name, 0):
            raise Unsupported(f"`{name}` is on", f"export the model without `{name}`")
    for index in operands:
        if node.has(index):
            reason = f"operand {index}, of a cache that is shared, is given"
            raise Unsupported(
                reason, "export the model with past and present as tensors of their own"
            )


@handles("com.microsoft.MultiHeadAttention")
def multi_head_attention(node: OnnxNode) -> Sequence[Tensor]:
    """Attention of queries, keys and values with biases of their own."""
    _refuse(node, (), (8, 9))
    if not (node.has(1) and node.has(2)):
        raise Unsupported("query, key and value are packed into one tensor", "split them")
    ranks = [len(node.shape(i)) for i in range(3)]
    if ranks[0] != 3 or ranks[1] not in (3, 4) or ranks[2] != ranks[1]:
        reason = f"query, key and value have {ranks} axes, expected 3, or 4 of key and value"
        raise Unsupported(reason, "reshape them")
    if len(node.outputs) > 3 and node.outputs[3]:
        reason = f"its output `{node.outputs[3]}`, the scores, is not supported"
        raise Unsupported(reason, "write the products and the softmax apart")
    count, start, heads = int(node.require("num_heads")), 0, []
    for index in range(3):
        value = node.value(index)
        if ranks[index] == 3:
            width = node.shape(index)[2]
            value = _add_bias(node, value, optional_tensor(node, 3), start)
            start += width
            value = split_heads(node, value, count)
        heads.append(value)
    past = (node.value(6), node.value(7)) if node.has(6) and node.has(7) else None
    return _attend(
        node, Heads(*heads), Masks(optional_tensor(node, 4), optional_tensor(node, 5)), past
    )


def _add_bias(node: OnnxNode, value: int, bias: Tensor | None, start: int) -> int:
    """A value plus the part of a bias that is meant for it."""
    if bias is None:
        return value
    width = node.builder.type_of(value).shape[-1]
    if len(shape_of(node, bias)) != 1:
        raise Unsound(f"the bias has the shape {list(shape_of(node, bias))}, expected one axis")
    own = slice_axis(node, node.materialise(bias), 0, start, start + width)
    return node.add("BinOp", value, own, op="Add")


@handles("com.microsoft.Attention")
def attention(node: OnnxNode) -> Sequence[Tensor]:
    """Self attention, its projections included."""
    _refuse(node, ("do_rotary", "past_present_share_buffer"), (6,))
    projected = product(node, node.value(0), node.value(1))
    projected = _add_bias(node, projected, optional_tensor(node, 2), 0)
    return _attend_projected(
        node,
        projected,
        Masks(optional_tensor(node, 3), optional_tensor(node, 5)),
        optional_tensor(node, 4),
    )


@handles("com.microsoft.QAttention")
def quantized_attention(node: OnnxNode) -> Sequence[Tensor]:
    """Self attention whose projections are products of stored integers."""
    _refuse(node, ("do_rotary", "past_present_share_buffer"), ())
    sums = integer_product(
        node, node.tensor(0), node.tensor(1), optional_tensor(node, 6), optional_tensor(node, 7)
    )
    made = scale_sums(node, sums, node.tensor(3), node.tensor(4), node.tensor(2))
    return _attend_projected(node, made, Masks(optional_tensor(node, 5)), optional_tensor(node, 8))


def _attend_projected(
    node: OnnxNode, projected: int, masks: Masks, past: Tensor | None
) -> list[Tensor]:
    """Attention of query, key and value that lie side by side; and the cache as one tensor."""
    width, count = node.builder.type_of(projected).shape[2], int(node.require("num_heads"))
    sizes = node.ints("qkv_hidden_sizes", None, (width // 3,) * 3) or ()
    if len(sizes) != 3 or sum(sizes) != width:
        raise Unsound(f"{width} columns of weights, expected those of query, key and value")
    starts = (0, sizes[0], sizes[0] + sizes[1])
    heads = Heads(*(
        split_heads(node, slice_axis(node, projected, 2, start, start + size), count)
        for start, size in zip(starts, sizes, strict=True)
    ))  # fmt: skip
    attended, k, v = _attend(node, heads, masks, _split_cache(node, past))
    if not any(node.outputs[1:]):
        return [attended]
    pair = [node.reshape(value, (1, *node.builder.type_of(value).shape)) for value in (k, v)]
    return [attended, node.add("Concat", *pair, axis=0)]


def _split_cache(node: OnnxNode, past: Tensor | None) -> tuple[int, int] | None:
    """Keys and values of a cache [2, batch, heads, length, size]."""
    if past is None:
        return None
    dims = shape_of(node, past)
    if len(dims) != 5 or dims[0] != 2:
        raise Unsound(f"the past has the shape {list(dims)}, expected 2 and four axes more")
    value = node.materialise(past)
    k, v = (node.reshape(slice_axis(node, value, 0, i, i + 1), dims[1:]) for i in (0, 1))
    return k, v


@handles("com.microsoft.RotaryEmbedding")
def rotary_embedding(node: OnnxNode) -> int:
    """Positions as rotations; one position is that of the first element."""
    _refuse(node, ("is_packed_batching",), ())
    if float(node.attribute("scale", 1.0)) != 1.0:
        raise Unsupported(
            "`scale` is not 1", "multiply the positions, or the caches were made for them"
        )
    dims = node.shape(0)
    length = dims[1] if len(dims) == 3 else dims[2] if len(dims) == 4 else 0
    sizes = node.tensor(1)
    if len(shape_of(node, sizes)) < 2:
        first = with_shape(node, cast_tensor(node, sizes, "i64"), (1, 1))
        sizes = combine(node, "Add", first, np.arange(length, dtype=np.int64)[None])
    indices = node.materialise(sizes)
    caches = [node.add("GatherAxis", node.value(i), indices, axis=0) for i in (2, 3)]
    return rotate(node, node.value(0), caches)
