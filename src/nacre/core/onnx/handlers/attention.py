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
    Places,
    additive,
    blind_rows,
    join_masks,
    places_of,
)
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.tensors import optional, repeat_along, shape_of
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported

_FLOATS = ("f16", "bf16", "f32", "f64")


class Heads(Struct, frozen=True):
    """Query, key and value as [batch, heads, length, size]."""

    q: int
    k: int
    v: int


def split_heads(use: OnnxNode, value: int, heads: int) -> int:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, width = use.builder.type_of(value).shape
    if heads < 1 or width % heads:
        raise Unsound(f"{width} elements are not split evenly into {heads} heads")
    apart = use.reshape(value, (batch, length, heads, width // heads))
    return use.transpose(apart, (0, 2, 1, 3))


def join_heads(use: OnnxNode, value: int) -> int:
    """[batch, heads, length, size] as [batch, length, heads * size]."""
    batch, heads, length, size = use.builder.type_of(value).shape
    return use.reshape(use.transpose(value, (0, 2, 1, 3)), (batch, length, heads * size))


@handles("Attention")
def attention(use: OnnxNode) -> Sequence[Tensor]:
    """Scaled dot product attention, of 3 or 4 axes."""
    rank = len(use.shape(0))
    if rank not in (3, 4) or len(use.shape(1)) != rank or len(use.shape(2)) != rank:
        raise Unsound("query, key and value have different ranks, or neither 3 nor 4 axes")
    own = _heads(use, rank)
    past = _past(use)
    present = own if past is None else Heads(own.q, *(
        use.add("Concat", *pair, axis=2) for pair in ((past[0], own.k), (past[1], own.v))
    ))  # fmt: skip
    offset = 0 if past is None else use.builder.type_of(past[0]).shape[2]
    made, scores = _attention_outputs(use, present, offset)
    output = join_heads(use, made) if rank == 3 else made
    return [output, present.k, present.v, *([] if scores is None else [scores])]


def _heads(use: OnnxNode, rank: int) -> Heads:
    values = [use.value(i) for i in range(3)]
    if rank == 4:
        return Heads(*values)
    counts = int(use.require("q_num_heads")), int(use.require("kv_num_heads"))
    return Heads(
        split_heads(use, values[0], counts[0]),
        split_heads(use, values[1], counts[1]),
        split_heads(use, values[2], counts[1]),
    )


def _past(use: OnnxNode) -> tuple[int, int] | None:
    if use.has(4) != use.has(5):
        raise Unsound("of the past key and value one is missing")
    if not use.has(4):
        return None
    if use.has(6):
        raise Unsound("`nonpad_kv_seqlen` is given together with a past key")
    return use.value(4), use.value(5)


def _attention_outputs(use: OnnxNode, heads: Heads, offset: int) -> tuple[int, int | None]:
    """The result with 4 axes, and the scores where they are asked for."""
    q_dims, k_dims = (use.builder.type_of(v).shape for v in (heads.q, heads.k))
    if k_dims[1] < 1 or q_dims[1] % k_dims[1]:
        raise Unsound(f"{q_dims[1]} heads of the query, {k_dims[1]} of the key")
    count = q_dims[1] // k_dims[1]
    wide = Heads(
        heads.q,
        *(use.materialise(repeat_along(use, value, 1, count)) for value in (heads.k, heads.v)),
    )
    places = Places(q_dims[0], q_dims[2], k_dims[2], offset)
    wants_scores = len(use.node.outputs) > 3 and bool(use.node.outputs[3])
    scale = float(use.attribute("scale", 1 / sqrt(q_dims[3])))
    given = _mask(use, heads.q, places)
    if wants_scores or use.attribute("softcap", 0.0) or _precision(use, heads.q):
        mask = join_masks(use, given, _allowed_pairs(use, places))
        return expand_attention(use, wide, mask, scale, wants_scores=wants_scores)
    is_causal = _is_plainly_causal(use, places)
    mask = given if is_causal else join_masks(use, given, _allowed_pairs(use, places))
    return add_attention(use, wide, mask, scale, is_causal=is_causal), None


def _is_plainly_causal(use: OnnxNode, places: Places) -> bool:
    """Whether a query sees the keys up to its own number, which Core IR has an attribute for."""
    if not use.attribute("is_causal", 0) or places.offset or use.has(6):
        return False
    return all(use.attribute(f"{side}_window_size", -1) == -1 for side in ("left", "right"))


def add_attention(
    use: OnnxNode, heads: Heads, mask: Tensor | None, scale: float, *, is_causal: bool = False
) -> int:
    """The operation of Core IR."""
    values = [heads.q, heads.k, heads.v]
    if scale == 0.0:  # which Core IR reads as its default
        raise Unsupported(
            "`scale` is 0", "leave the attribute out, or write the mean of the values"
        )
    if mask is not None:
        values.append(use.materialise(mask))
    return use.add("Attention", *values, scale=scale, causal=is_causal)


def _precision(use: OnnxNode, q: int) -> str | None:
    """The type that the softmax is computed in, where it is one that narrows."""
    kind = use.attribute("softmax_precision", None)
    if kind is None:
        return None
    found = element_name(int(kind))
    if found not in _FLOATS:
        raise Unsound(f"`softmax_precision` is `{found}`, expected a float")
    own = use.builder.type_of(q).dtype
    # Core IR computes in f32, in f64 for f64.
    return None if found == ("f64" if own == "f64" else "f32") else found


def _mask(use: OnnxNode, q: int, places: Places) -> Tensor | None:
    """The mask that is given, as long as there are keys; integers count as numbers."""
    mask = optional(use, 3)
    if mask is None:
        return None
    dims = shape_of(use, mask)
    missing = places.keys - dims[-1] if dims else 0
    own = use.builder.type_of(q).dtype
    is_bool = use.type_of(mask).dtype == "bool"
    if missing > 0:
        value = use.materialise(mask)
        value = value if is_bool else use.cast(value, own)
        pads = (*(0 for _ in dims), *(0 for _ in dims[:-1]), missing)
        mask = use.add("Pad", value, pads=pads, value=0.0 if is_bool else float("-inf"))
    if is_bool or use.type_of(mask).dtype == own:
        return mask
    return use.cast(use.materialise(mask), own)


def _allowed_pairs(use: OnnxNode, places: Places) -> Tensor | None:
    """What `is_causal`, the windows and `nonpad_kv_seqlen` let take part."""
    left = int(use.attribute("left_window_size", -1))
    right = int(use.attribute("right_window_size", -1))
    if min(left, right) < -1:
        raise Unsound("a window size is less than -1")
    if use.attribute("is_causal", 0):
        right = 0 if right < 0 else min(right, 0)
    return places_of(use, places, left, right, optional(use, 6))


def expand_attention(
    use: OnnxNode, heads: Heads, mask: Tensor | None, scale: float, *, wants_scores: bool
) -> tuple[int, int | None]:
    """Products and softmax one by one, with the scores of the stage that is asked for."""
    dtype = use.builder.type_of(heads.q).dtype
    stages: dict[int, int] = {}
    stages[0] = _scores(use, heads, scale)
    stages[1] = _cap_scores(use, stages[0], float(use.attribute("softcap", 0.0)))
    stages[2] = stages[1]
    if mask is not None:
        bias = use.materialise(additive(use, mask, dtype))
        stages[2] = use.add("BinOp", stages[1], bias, op="Add")
    precision = _precision(use, heads.q) or ("f64" if dtype == "f64" else "f32")
    shares = use.add("Softmax", use.cast(stages[2], precision), axis=3)
    blind = None if mask is None else blind_rows(use, mask)
    if blind is not None:
        shares = use.add("Where", use.materialise(blind), use.scalar(0.0, precision), shares)
    stages[3] = use.cast(shares, dtype)
    mode = int(use.attribute("qk_matmul_output_mode", 0))
    if mode not in stages:
        raise Unsound(f"`qk_matmul_output_mode` is {mode}, expected 0 to 3")
    return use.add("MatMul", stages[3], heads.v), stages[mode] if wants_scores else None


def _scores(use: OnnxNode, heads: Heads, scale: float) -> int:
    """Query by key, each scaled by the root, as the definition has it."""
    if scale < 0:
        raise Unsupported(
            f"`scale` is {scale}, which has no root", "negate the query, and the scale"
        )
    root = use.scalar(sqrt(scale), use.builder.type_of(heads.q).dtype)
    k = use.transpose(heads.k, (0, 1, 3, 2))
    sides = (use.add("BinOp", side, root, op="Mul") for side in (heads.q, k))
    return use.add("MatMul", *sides)


def _cap_scores(use: OnnxNode, scores: int, cap: float) -> int:
    if cap <= 0:
        return scores
    limit = use.scalar(cap, use.builder.type_of(scores).dtype)
    bent = use.add("Unary", use.add("BinOp", scores, limit, op="Div"), op="Tanh")
    return use.add("BinOp", bent, limit, op="Mul")


@handles("RotaryEmbedding")
def rotary_embedding(use: OnnxNode) -> int:
    """Positions as rotations of pairs of elements."""
    caches = [use.tensor(1), use.tensor(2)]
    if use.has(3):
        caches = [use.add("GatherAxis", use.materialise(c), use.value(3), axis=0) for c in caches]
    return rotate(use, use.value(0), caches)


def rotate(use: OnnxNode, value: int, caches: Sequence[Tensor]) -> int:
    """X turned by cosines and sines [batch, length, half], which the attributes describe."""
    dims = use.builder.type_of(value).shape
    if len(dims) == 3:
        heads = int(use.attribute("num_heads", 0))
        return join_heads(use, _transpose(use, split_heads(use, value, heads), caches))
    if len(dims) != 4:
        raise Unsound(f"the input has {len(dims)} axes, expected 3 or 4")
    return _transpose(use, value, caches)


def _transpose(use: OnnxNode, x: int, caches: Sequence[Tensor]) -> int:
    batch, _, length, size = use.builder.type_of(x).shape
    turning = int(use.attribute("rotary_embedding_dim", 0)) or size
    if turning % 2 or not 0 < turning <= size:
        raise Unsound(f"{turning} elements of {size} are to be turned, expected an even number")
    half = turning // 2
    cos, sin = (_cache(use, cache, (batch, 1, length, half)) for cache in caches)
    is_woven = bool(use.attribute("interleaved", 0))
    step = (1, half) if not is_woven else (2, 1)
    first = _every(use, x, 0, step[0], half)
    second = _every(use, x, step[1], step[0], half)
    parts = [
        _sum_of_products(use, "Sub", cos, first, sin, second),
        _sum_of_products(use, "Add", sin, first, cos, second),
    ]
    if is_woven:
        dims = use.builder.type_of(first).shape
        apart = [use.reshape(p, (*dims, 1)) for p in parts]
        parts = [use.reshape(use.add("Concat", *apart, axis=4), (*dims[:3], turning))]
    if turning < size:
        parts.append(_every(use, x, turning, 1, size - turning))
    return use.add("Concat", *parts, axis=3) if len(parts) > 1 else parts[0]


def _cache(use: OnnxNode, cache: Tensor, dims: tuple[int, ...]) -> int:
    """Cosines or sines with an axis for the heads."""
    found = shape_of(use, cache)
    batch, _, length, half = dims
    if len(found) != 3 or found[0] not in (1, batch) or found[1:] != (length, half):
        raise Unsound(f"a cache has the shape {list(found)}, expected {[batch, length, half]}")
    return use.reshape(use.materialise(cache), (found[0], 1, length, half))


def _every(use: OnnxNode, x: int, start: int, step: int, count: int) -> int:
    """Elements of the last axis from one on."""
    dims = use.builder.type_of(x).shape
    given: dict[str, Any] = {
        "starts": (0, 0, 0, start),
        "ends": (*dims[:3], min(start + step * count, dims[3])),
        "steps": (1, 1, 1, step),
    }
    return use.add("Slice", x, **given)


def _sum_of_products(use: OnnxNode, op: str, a: int, x: int, b: int, y: int) -> int:
    left, right = use.add("BinOp", a, x, op="Mul"), use.add("BinOp", b, y, op="Mul")
    return use.add("BinOp", left, right, op=op)
