"""Attention of ONNX: heads, caches and masks around the operation of Core IR.

Where something asks for what lies between (a soft cap, the scores themselves, another precision)
the products and the softmax are written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from msgspec import Struct

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.attention_masks import (
    AttentionSizes,
    additive_mask,
    fully_masked_queries,
    join_masks,
    window_mask,
)
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import optional_tensor, repeat_along, shape_of
from nacre.core.unsupported import Unsupported

_FLOATS = ("f16", "bf16", "f32", "f64")


class Heads(Struct, frozen=True):
    """Query, key and value as [batch, heads, length, size]."""

    q: int
    k: int
    v: int


def split_heads(node: OnnxNode, value: int, heads: int) -> int:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, width = node.builder.type_of(value).shape
    if heads < 1 or width % heads:
        raise Unsound(f"{width} elements are not split evenly into {heads} heads")
    apart = node.reshape(value, (batch, length, heads, width // heads))
    return node.transpose(apart, (0, 2, 1, 3))


def join_heads(node: OnnxNode, value: int) -> int:
    """[batch, heads, length, size] as [batch, length, heads * size]."""
    batch, heads, length, size = node.builder.type_of(value).shape
    return node.reshape(node.transpose(value, (0, 2, 1, 3)), (batch, length, heads * size))


@handles("Attention")
def attention(node: OnnxNode) -> Sequence[Tensor]:
    """Scaled dot product attention, of 3 or 4 axes."""
    rank = len(node.shape(0))
    if rank not in (3, 4) or len(node.shape(1)) != rank or len(node.shape(2)) != rank:
        raise Unsound("query, key and value have different ranks, or neither 3 nor 4 axes")
    own = _heads(node, rank)
    past = _past_key_value(node)
    present = own if past is None else Heads(own.q, *(
        node.add("Concat", *pair, axis=2) for pair in ((past[0], own.k), (past[1], own.v))
    ))  # fmt: skip
    offset = 0 if past is None else node.builder.type_of(past[0]).shape[2]
    attended, scores = _attention_outputs(node, present, offset)
    output = join_heads(node, attended) if rank == 3 else attended
    return [output, present.k, present.v, *([] if scores is None else [scores])]


def _heads(node: OnnxNode, rank: int) -> Heads:
    values = [node.value(i) for i in range(3)]
    if rank == 4:
        return Heads(*values)
    counts = int(node.require("q_num_heads")), int(node.require("kv_num_heads"))
    return Heads(
        split_heads(node, values[0], counts[0]),
        split_heads(node, values[1], counts[1]),
        split_heads(node, values[2], counts[1]),
    )


def _past_key_value(node: OnnxNode) -> tuple[int, int] | None:
    if node.has(4) != node.has(5):
        raise Unsound("of the past key and value one is missing")
    if not node.has(4):
        return None
    if node.has(6):
        raise Unsound("`nonpad_kv_seqlen` is given together with a past key")
    return node.value(4), node.value(5)


def _attention_outputs(node: OnnxNode, heads: Heads, offset: int) -> tuple[int, int | None]:
    """The result with 4 axes, and the scores where they are asked for."""
    q_dims, k_dims = (node.builder.type_of(v).shape for v in (heads.q, heads.k))
    if k_dims[1] < 1 or q_dims[1] % k_dims[1]:
        raise Unsound(f"{q_dims[1]} heads of the query, {k_dims[1]} of the key")
    count = q_dims[1] // k_dims[1]
    wide = Heads(
        heads.q,
        *(node.materialise(repeat_along(node, value, 1, count)) for value in (heads.k, heads.v)),
    )
    sizes = AttentionSizes(q_dims[0], q_dims[2], k_dims[2], offset)
    wants_scores = len(node.outputs) > 3 and bool(node.outputs[3])
    scale = float(node.attribute("scale", 1 / sqrt(q_dims[3])))
    given = _mask(node, heads.q, sizes)
    if wants_scores or node.attribute("softcap", 0.0) or _precision(node, heads.q):
        mask = join_masks(node, given, _allowed_pairs(node, sizes))
        return expand_attention(node, wide, mask, scale, wants_scores=wants_scores)
    is_causal = _is_core_causal(node, sizes)
    mask = given if is_causal else join_masks(node, given, _allowed_pairs(node, sizes))
    return add_attention(node, wide, mask, scale, is_causal=is_causal), None


def _is_core_causal(node: OnnxNode, sizes: AttentionSizes) -> bool:
    """Whether a query sees the keys up to its own number, which Core IR has an attribute for."""
    if not node.attribute("is_causal", 0) or sizes.offset or node.has(6):
        return False
    return all(node.attribute(f"{side}_window_size", -1) == -1 for side in ("left", "right"))


def add_attention(
    node: OnnxNode, heads: Heads, mask: Tensor | None, scale: float, *, is_causal: bool = False
) -> int:
    """The operation of Core IR."""
    values = [heads.q, heads.k, heads.v]
    if scale == 0.0:  # which Core IR reads as its default
        raise Unsupported(
            "`scale` is 0", "leave the attribute out, or write the mean of the values"
        )
    if mask is not None:
        values.append(node.materialise(mask))
    return node.add("Attention", *values, scale=scale, causal=is_causal)


def _precision(node: OnnxNode, q: int) -> str | None:
    """The type that the softmax is computed in, where it is one that narrows."""
    kind = node.attribute("softmax_precision", None)
    if kind is None:
        return None
    dtype = element_name(int(kind))
    if dtype not in _FLOATS:
        raise Unsound(f"`softmax_precision` is `{dtype}`, expected a float")
    own = node.builder.type_of(q).dtype
    # Core IR computes in f32, in f64 for f64.
    return None if dtype == ("f64" if own == "f64" else "f32") else dtype


def _mask(node: OnnxNode, q: int, sizes: AttentionSizes) -> Tensor | None:
    """The mask that is given, as long as there are keys; integers count as numbers."""
    mask = optional_tensor(node, 3)
    if mask is None:
        return None
    dims = shape_of(node, mask)
    missing = sizes.keys - dims[-1] if dims else 0
    own = node.builder.type_of(q).dtype
    is_bool = node.type_of(mask).dtype == "bool"
    if missing > 0:
        value = node.materialise(mask)
        value = value if is_bool else node.cast(value, own)
        pads = (*(0 for _ in dims), *(0 for _ in dims[:-1]), missing)
        mask = node.add("Pad", value, pads=pads, value=0.0 if is_bool else float("-inf"))
    if is_bool or node.type_of(mask).dtype == own:
        return mask
    return node.cast(node.materialise(mask), own)


def _allowed_pairs(node: OnnxNode, sizes: AttentionSizes) -> Tensor | None:
    """What `is_causal`, the windows and `nonpad_kv_seqlen` let take part."""
    left = int(node.attribute("left_window_size", -1))
    right = int(node.attribute("right_window_size", -1))
    if min(left, right) < -1:
        raise Unsound("a window size is less than -1")
    if node.attribute("is_causal", 0):
        right = 0 if right < 0 else min(right, 0)
    return window_mask(node, sizes, left, right, optional_tensor(node, 6))


def expand_attention(
    node: OnnxNode, heads: Heads, mask: Tensor | None, scale: float, *, wants_scores: bool
) -> tuple[int, int | None]:
    """Products and softmax one by one, with the scores of the stage that is asked for."""
    dtype = node.builder.type_of(heads.q).dtype
    stages: dict[int, int] = {}
    stages[0] = _scores(node, heads, scale)
    stages[1] = _cap_scores(node, stages[0], float(node.attribute("softcap", 0.0)))
    stages[2] = stages[1]
    if mask is not None:
        bias = node.materialise(additive_mask(node, mask, dtype))
        stages[2] = node.add("BinOp", stages[1], bias, op="Add")
    precision = _precision(node, heads.q) or ("f64" if dtype == "f64" else "f32")
    shares = node.add("Softmax", node.cast(stages[2], precision), axis=3)
    blind = None if mask is None else fully_masked_queries(node, mask)
    if blind is not None:
        shares = node.add("Where", node.materialise(blind), node.scalar(0.0, precision), shares)
    stages[3] = node.cast(shares, dtype)
    mode = int(node.attribute("qk_matmul_output_mode", 0))
    if mode not in stages:
        raise Unsound(f"`qk_matmul_output_mode` is {mode}, expected 0 to 3")
    return node.add("MatMul", stages[3], heads.v), stages[mode] if wants_scores else None


def _scores(node: OnnxNode, heads: Heads, scale: float) -> int:
    """Query by key, each scaled by the root, as the definition has it."""
    if scale < 0:
        raise Unsupported(
            f"`scale` is {scale}, which has no root", "negate the query, and the scale"
        )
    root = node.scalar(sqrt(scale), node.builder.type_of(heads.q).dtype)
    k = node.transpose(heads.k, (0, 1, 3, 2))
    sides = (node.add("BinOp", side, root, op="Mul") for side in (heads.q, k))
    return node.add("MatMul", *sides)


def _cap_scores(node: OnnxNode, scores: int, cap: float) -> int:
    if cap <= 0:
        return scores
    limit = node.scalar(cap, node.builder.type_of(scores).dtype)
    bent = node.add("Unary", node.add("BinOp", scores, limit, op="Div"), op="Tanh")
    return node.add("BinOp", bent, limit, op="Mul")


@handles("RotaryEmbedding")
def rotary_embedding(node: OnnxNode) -> int:
    """Positions as rotations of pairs of elements."""
    caches = [node.tensor(1), node.tensor(2)]
    if node.has(3):
        caches = [
            node.add("GatherAxis", node.materialise(c), node.value(3), axis=0) for c in caches
        ]
    return rotate(node, node.value(0), caches)


def rotate(node: OnnxNode, value: int, caches: Sequence[Tensor]) -> int:
    """X turned by cosines and sines [batch, length, half], which the attributes describe."""
    dims = node.builder.type_of(value).shape
    if len(dims) == 3:
        heads = int(node.attribute("num_heads", 0))
        return join_heads(node, _transpose(node, split_heads(node, value, heads), caches))
    if len(dims) != 4:
        raise Unsound(f"the input has {len(dims)} axes, expected 3 or 4")
    return _transpose(node, value, caches)


def _transpose(node: OnnxNode, x: int, caches: Sequence[Tensor]) -> int:
    batch, _, length, size = node.builder.type_of(x).shape
    turning = int(node.attribute("rotary_embedding_dim", 0)) or size
    if turning % 2 or not 0 < turning <= size:
        raise Unsound(f"{turning} elements of {size} are to be turned, expected an even number")
    half = turning // 2
    cos, sin = (_rotary_cache(node, cache, (batch, 1, length, half)) for cache in caches)
    is_woven = bool(node.attribute("interleaved", 0))
    step = (1, half) if not is_woven else (2, 1)
    first = _strided_columns(node, x, 0, step[0], half)
    second = _strided_columns(node, x, step[1], step[0], half)
    parts = [
        _sum_of_products(node, "Sub", cos, first, sin, second),
        _sum_of_products(node, "Add", sin, first, cos, second),
    ]
    if is_woven:
        dims = node.builder.type_of(first).shape
        apart = [node.reshape(p, (*dims, 1)) for p in parts]
        parts = [node.reshape(node.add("Concat", *apart, axis=4), (*dims[:3], turning))]
    if turning < size:
        parts.append(_strided_columns(node, x, turning, 1, size - turning))
    return node.add("Concat", *parts, axis=3) if len(parts) > 1 else parts[0]


def _rotary_cache(node: OnnxNode, cache: Tensor, dims: tuple[int, ...]) -> int:
    """Cosines or sines with an axis for the heads."""
    found = shape_of(node, cache)
    batch, _, length, half = dims
    if len(found) != 3 or found[0] not in (1, batch) or found[1:] != (length, half):
        raise Unsound(f"a cache has the shape {list(found)}, expected {[batch, length, half]}")
    return node.reshape(node.materialise(cache), (found[0], 1, length, half))


def _strided_columns(node: OnnxNode, x: int, start: int, step: int, count: int) -> int:
    """Elements of the last axis from one on."""
    dims = node.builder.type_of(x).shape
    given: dict[str, Any] = {
        "starts": (0, 0, 0, start),
        "ends": (*dims[:3], min(start + step * count, dims[3])),
        "steps": (1, 1, 1, step),
    }
    return node.add("Slice", x, **given)


def _sum_of_products(node: OnnxNode, op: str, a: int, x: int, b: int, y: int) -> int:
    left, right = node.add("BinOp", a, x, op="Mul"), node.add("BinOp", b, y, op="Mul")
    return node.add("BinOp", left, right, op=op)
