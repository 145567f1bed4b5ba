"""GroupQueryAttention of the domain com.microsoft: the attention of decoders, with a cache.

Its cache is one of fixed length here: as long as what lies before the queries, all of it in use.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from msgspec import structs

from nacre.core.onnx.findings import BIND, Unsound
from nacre.core.onnx.handlers.attention import (
    Heads,
    add_attention,
    expand_attention,
    join_heads,
    rotate,
    split_heads,
)
from nacre.core.onnx.handlers.attention_masks import AttentionSizes, join_masks, window_mask
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import (
    cast_tensor,
    combine,
    optional_tensor,
    repeat_along,
    shape_of,
    slice_axis,
)
from nacre.core.unsupported import Unsupported

_PAST, _LENGTHS, _TOTAL, _COS, _SIN, _POSITIONS, _BIAS = (3, 4), 5, 6, 7, 8, 9, 10
# What changes the meaning of the cache or of the softmax: attributes, and operands by number.
_UNKNOWN = ("sliding_window_cache", "kv_cache_bit_width", "qk_output", "smooth_softmax")
_FURTHER = {11: "head_sink", 12: "k_scale", 13: "v_scale", 14: "q_norm_weight",
            15: "k_norm_weight"}  # fmt: skip


@handles("com.microsoft.GroupQueryAttention")
def grouped_query_attention(node: OnnxNode) -> list[Tensor]:
    """Causal attention in which several heads of the query share one of key and value."""
    _refuse(node)
    own = _transpose(node, _heads(node))
    past = _past(node)
    offset = 0 if past is None else node.builder.type_of(past[0]).shape[2]
    _require_whole(node, own, offset)
    k, v = own.k, own.v
    if past is not None:
        k, v = (node.add("Concat", *pair, axis=2) for pair in ((past[0], k), (past[1], v)))
    return [join_heads(node, _attend(node, Heads(own.q, k, v), offset)), k, v]


def _refuse(node: OnnxNode) -> None:
    for name in _UNKNOWN:
        if int(node.attribute(name, 0)) > 0:
            raise Unsupported(f"`{name}` is on", f"export the model without `{name}`")
    for index, name in _FURTHER.items():
        if node.has(index):
            raise Unsupported(f"`{name}` is given", f"export the model without `{name}`")


def _heads(node: OnnxNode) -> Heads:
    """Query, key and value as heads; all three may lie side by side in one tensor."""
    counts = int(node.require("num_heads")), int(node.require("kv_num_heads"))
    if len(node.shape(0)) != 3 or min(counts) < 1 or counts[0] % counts[1]:
        query_text = (
            f"a query of shape {list(node.shape(0))} with {counts[0]} and {counts[1]} heads"
        )
        raise Unsound(f"{query_text}, expected three axes and a whole number of heads for each key")
    if node.has(1) and node.has(2):
        return Heads(
            split_heads(node, node.value(0), counts[0]),
            split_heads(node, node.value(1), counts[1]),
            split_heads(node, node.value(2), counts[1]),
        )
    size, rest = divmod(node.shape(0)[2], counts[0] + 2 * counts[1])
    if rest:
        raise Unsound(f"{node.shape(0)[2]} columns are not those of {counts[0]} + 2 * {counts[1]}")
    ends = np.cumsum([counts[0] * size, counts[1] * size, counts[1] * size]).tolist()
    parts = [
        slice_axis(node, node.value(0), 2, start, end)
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    return Heads(*(
        split_heads(node, value, count)
        for value, count in zip(parts, (counts[0], counts[1], counts[1]), strict=True)
    ))  # fmt: skip


def _transpose(node: OnnxNode, heads: Heads) -> Heads:
    """Query and key turned by their positions, where that is asked for."""
    if not node.attribute("do_rotary", 0):
        return heads
    sizes = node.materialise(_positions(node))
    caches = [node.add("GatherAxis", node.value(i), sizes, axis=0) for i in (_COS, _SIN)]
    given = {
        "interleaved": node.attribute("rotary_interleaved", 0),
        "rotary_embedding_dim": 2 * node.shape(_COS)[-1],
    }
    own = OnnxNode(structs.replace(node.source, attributes=given), [], node.builder)
    return Heads(rotate(own, heads.q, caches), rotate(own, heads.k, caches), heads.v)


def _positions(node: OnnxNode) -> Tensor:
    """The positions of the queries; of a first prompt the first one says them all."""
    steps = np.arange(node.shape(0)[1], dtype=np.int64)[None]
    past = optional_tensor(node, _PAST[0])
    offset = 0 if past is None else shape_of(node, past)[2]
    if not node.has(_POSITIONS):
        return steps + offset
    given = cast_tensor(node, node.tensor(_POSITIONS), "i64")
    if offset:
        return given
    first = slice_axis(node, node.materialise(given), 1, 0, 1)
    return combine(node, "Add", first, steps)


def _past(node: OnnxNode) -> tuple[int, int] | None:
    """Keys and values that lie before; None where there are none yet."""
    given = [optional_tensor(node, index) for index in _PAST]
    if all(past is None or 0 in shape_of(node, past) for past in given):
        return None
    return node.value(_PAST[0]), node.value(_PAST[1])


def _require_whole(node: OnnxNode, heads: Heads, offset: int) -> None:
    """Every sequence is as long as the cache and the queries together."""
    total = int(np.ravel(node.require_known(_TOTAL, "`total_sequence_length`"))[0])
    lengths = node.known(_LENGTHS)
    if lengths is None:
        raise Unsupported("`seqlens_k` is computed when the model runs, expected a constant", BIND)
    expected = offset + node.builder.type_of(heads.q).shape[2]
    if total != expected or (lengths != expected - 1).any():
        lengths_text = f"`total_sequence_length` is {total}, `seqlens_k` {lengths.tolist()[:8]}"
        raise Unsupported(
            f"{lengths_text}, the cache and the queries have {expected} places together",
            f"give a past of {max(total - expected + offset, 0)} places, all of them in use",
        )


def _attend(node: OnnxNode, heads: Heads, offset: int) -> int:
    batch, count, queries, size = node.builder.type_of(heads.q).shape
    groups = count // node.builder.type_of(heads.k).shape[1]
    k, v = (node.materialise(repeat_along(node, value, 1, groups)) for value in (heads.k, heads.v))
    whole = Heads(heads.q, k, v)
    is_causal = bool(node.attribute("causal", 1))
    window = int(node.attribute("local_window_size", -1))
    scale = float(node.attribute("scale", 0.0)) or 1 / sqrt(size)
    bias, cap = optional_tensor(node, _BIAS), float(node.attribute("softcap", 0.0))
    if is_causal and not offset and window < 0 and not cap:
        return add_attention(node, whole, bias, scale, is_causal=True)
    sizes = AttentionSizes(batch, queries, node.builder.type_of(k).shape[2], offset)
    left = window - 1 if window > 0 else -1
    allowed = window_mask(node, sizes, left, 0 if is_causal else -1, None)
    mask = join_masks(node, bias, allowed)
    if cap:
        return expand_attention(node, whole, mask, scale, wants_scores=False)[0]
    return add_attention(node, whole, mask, scale)
