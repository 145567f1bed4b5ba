"""Attention of ONNX and of com.microsoft against onnxruntime, or against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.onnx.single_node import (
    MICROSOFT,
    Array,
    NodeModel,
    expect_close,
    opcodes,
    rng,
)

_SEEDS = st.integers(0, 2**32 - 1)


def _reals(seed: int, *shape: int) -> Array:
    return rng(seed, *shape).normal(size=shape).astype(np.float32)


def _naive(q: Array, k: Array, v: Array, bias: Array, scale: float, cap: float) -> dict[int, Array]:
    """Scores by stage, and the result under -1; loops over batch, head and query."""
    group = q.shape[1] // k.shape[1]
    stages: dict[int, Array] = {i: np.zeros((*q.shape[:3], k.shape[2])) for i in range(4)}
    stages[-1] = np.zeros((*q.shape[:3], v.shape[3]))
    for place in np.ndindex(*q.shape[:3]):
        b, h = place[:2]
        row = np.array(
            [float(np.dot(q[place].astype(np.float64), key)) for key in k[b, h // group]]
        )
        stages[0][place] = row * scale
        stages[1][place] = cap * np.tanh(stages[0][place] / cap) if cap else stages[0][place]
        stages[2][place] = stages[1][place] + bias[place]
        seen = stages[2][place]
        if seen.max() > -np.inf:
            powers = np.exp(seen - seen.max())
            stages[3][place] = powers / powers.sum()
        stages[-1][place] = stages[3][place] @ v[b, h // group].astype(np.float64)
    return stages


def _bias(seed: int, kind: str, dims: tuple[int, ...]) -> tuple[Array | None, Array]:
    """A mask as an operand, and what it adds to the scores."""
    if kind == "none":
        return None, np.zeros(dims)
    if kind == "float":
        mask = _reals(seed, *dims[2:])
        return mask, np.broadcast_to(mask, dims).astype(np.float64)
    allowed = rng(seed).integers(0, 2, (dims[0], 1, *dims[2:])).astype(bool)
    allowed[..., 0] = True
    allowed[0, 0, 0] = kind != "blind"
    return allowed, np.broadcast_to(np.where(allowed, 0.0, -np.inf), dims)


_MASKS = st.sampled_from(["none", "float", "bool", "blind"])


@given(_SEEDS, _MASKS, st.booleans(), st.booleans(), st.sampled_from([3, 4]), st.integers(0, 2))
def test_attention(
    seed: int, kind: str, is_causal: bool, is_grouped: bool, rank: int, past: int
) -> None:
    heads, own, queries, keys = 4, 2 if is_grouped else 4, 3, 5
    q, k, v = (
        _reals(seed, 2, heads, queries, 6),
        _reals(seed, 2, own, keys, 6),
        _reals(seed, 2, own, keys, 7),
    )
    before = [_reals(seed, 2, own, past, 6), _reals(seed, 2, own, past, 7)] if past else []
    mask, bias = _bias(seed, kind, (2, heads, queries, keys + past))
    operands: list[Array | None] = [q, k, v, mask, *before]
    given: dict[str, Any] = {"is_causal": int(is_causal)}
    if rank == 3:
        operands[:3] = [t.transpose(0, 2, 1, 3).reshape(2, t.shape[2], -1) for t in (q, k, v)]
        given |= {"q_num_heads": heads, "kv_num_heads": own}
    outputs = ("y", "key", "value") if past else ("y",)
    model = NodeModel("Attention", operands, opset=23, outputs=outputs, **given)
    whole = (
        [np.concatenate([b, t], 2) for b, t in zip(before, (k, v), strict=True)] if past else [k, v]
    )
    if is_causal:
        behind = np.arange(keys + past) > np.arange(queries)[:, None] + past
        bias = np.where(behind, -np.inf, bias)
    wanted = _naive(q, whole[0], whole[1], bias, 1 / np.sqrt(6), 0.0)[-1]
    if rank == 3:
        wanted = wanted.transpose(0, 2, 1, 3).reshape(2, queries, -1)
    found = model.by_module()
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)
    for cache, tensor in zip(found[1:], whole, strict=False):
        np.testing.assert_array_equal(cache, tensor)


@given(_SEEDS, st.integers(0, 3), _MASKS, st.sampled_from([0.0, 2.0]))
def test_scores_of_each_stage(seed: int, mode: int, kind: str, cap: float) -> None:
    q, k, v = (_reals(seed + i, 2, 2, n, 6) for i, n in enumerate((3, 5, 5)))
    mask, bias = _bias(seed, kind, (2, 2, 3, 5))
    model = NodeModel(
        "Attention", [q, k, v, mask], opset=24, outputs=("y", "", "", "scores"), types=[1] * 4,
        qk_matmul_output_mode=mode, softcap=cap, scale=0.4,
    )  # fmt: skip
    wanted = _naive(q, k, v, bias, 0.4, cap)
    found = model.by_module()
    np.testing.assert_allclose(found[0], wanted[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[-1], wanted[mode], rtol=1e-4, atol=1e-5)


@given(_SEEDS, st.integers(-1, 2), st.integers(-1, 2), st.booleans(), st.booleans())
def test_windows_and_lengths(
    seed: int, left: int, right: int, is_causal: bool, has_lengths: bool
) -> None:
    q, k, v = (_reals(seed + i, 2, 2, n, 4) for i, n in enumerate((3, 5, 5)))
    lengths = rng(seed).integers(1, 6, 2)
    operands = [q, k, v, *((None, None, None, lengths) if has_lengths else ())]
    model = NodeModel(
        "Attention", operands, opset=25, is_causal=int(is_causal),
        left_window_size=left, right_window_size=right,
    )  # fmt: skip
    bias: Array = np.zeros((2, 2, 3, 5))
    for b, _, i, j in np.ndindex(*bias.shape):
        stands = i + (int(lengths[b]) - 3 if has_lengths else 0)
        hidden = has_lengths and j >= lengths[b]
        hidden |= is_causal and j > stands
        hidden |= (left >= 0 and j < stands - left) or (right >= 0 and j > stands + right)
        bias[b, :, i, j] = -np.inf if hidden else 0
    wanted = _naive(q, k, v, bias, 0.5, 0.0)[-1]
    np.testing.assert_allclose(model.by_module()[0], wanted, rtol=1e-4, atol=1e-5)


@given(_SEEDS, st.booleans(), _MASKS.filter(lambda kind: kind != "blind"))
def test_attention_as_onnxruntime_has_it(seed: int, is_causal: bool, kind: str) -> None:
    q, k, v = (_reals(seed + i, 2, 2, n, 4) for i, n in enumerate((3, 5, 5)))
    mask, _ = _bias(seed, kind, (2, 2, 3, 5))
    model = NodeModel("Attention", [q, k, v, mask], opset=23, is_causal=int(is_causal))
    expect_close(model, rtol=1e-4)


def test_plain_attention_is_one_operation() -> None:
    q, k, v = (_reals(i, 2, 2, n, 4) for i, n in enumerate((3, 5, 5)))
    assert opcodes(NodeModel("Attention", [q, k, v], opset=23)) == ["Attention"]


# com.microsoft


def _model(op: str, operands: list[Array | None], **given: Any) -> NodeModel:  # noqa: ANN401
    return NodeModel(op, operands, domain=MICROSOFT, **given)


def _kept(seed: int, *dims: int) -> Array:
    """Keys that are no padding, the first one being none: 10000 leaves few bits of a score."""
    found: Array = rng(seed).integers(0, 2, dims).astype(np.int32)
    found[..., 0] = 1
    return found


@given(
    _SEEDS,
    st.booleans(),
    st.sampled_from(["none", "keys", "lengths"]),
    st.booleans(),
    st.booleans(),
)
def test_multi_head_attention(
    seed: int, has_bias: bool, padding: str, has_scores: bool, is_causal: bool
) -> None:
    batch, queries, heads, size = 2, 3, 2, 4
    keys = queries if is_causal else 5
    width = heads * size
    operands: list[Array | None] = [
        _reals(seed, batch, queries, width),
        _reals(seed + 1, batch, keys, width),
        _reals(seed + 2, batch, keys, width),
        _reals(seed, 3 * width) if has_bias else None,
        {
            "none": None,
            "keys": _kept(seed, batch, keys),
            "lengths": rng(seed).integers(1, keys + 1, batch).astype(np.int32),
        }[padding],
        _reals(seed, 1, heads, queries, keys) if has_scores else None,
    ]
    model = _model("MultiHeadAttention", operands, num_heads=heads, unidirectional=int(is_causal))
    expect_close(model, rtol=1e-3, atol=1e-4)


@given(_SEEDS, st.booleans())
def test_multi_head_attention_with_a_past(seed: int, has_scores: bool) -> None:
    past = [_reals(seed + 3 + i, 2, 2, 3, 4) for i in range(2)]
    operands = [*(_reals(seed + i, 2, 2, 8) for i in range(3)), None, None,
                _reals(seed, 1, 2, 2, 5) if has_scores else None, *past]  # fmt: skip
    model = _model(
        "MultiHeadAttention", operands, num_heads=2, outputs=("y", "key", "value"), types=[1] * 3
    )
    expect_close(model, rtol=1e-4)


@given(
    _SEEDS, st.sampled_from(["none", "keys", "square", "lengths", "ends"]), st.booleans(),
    st.integers(0, 1),
)  # fmt: skip
def test_self_attention(seed: int, mask: str, has_past: bool, is_causal: int) -> None:
    batch, queries, heads, size = 2, 4, 2, 4
    total = queries + 3 if has_past else queries
    draw = rng(seed)
    lengths = draw.integers(1, total + 1, batch)
    found: dict[str, Array | None] = {
        "none": None,
        "keys": _kept(seed, batch, total),
        "square": _kept(seed, batch, queries, total),
        "lengths": lengths.astype(np.int32),
        "ends": np.concatenate([lengths, lengths * 0]).astype(np.int32),
    }
    past = _reals(seed, 2, batch, heads, 3, size) if has_past else None
    operands = [_reals(seed, batch, queries, 6), _reals(seed, 6, 3 * heads * size),
                _reals(seed, 3 * heads * size), found[mask], past]  # fmt: skip
    outputs = ("y", "present") if has_past else ("y",)
    model = _model(
        "Attention", operands, num_heads=heads, outputs=outputs, unidirectional=is_causal,
        known={1, 2},
    )  # fmt: skip
    expect_close(model, rtol=1e-3, atol=1e-4)


@given(_SEEDS, st.booleans())
def test_quantised_self_attention(seed: int, has_mask: bool) -> None:
    draw = rng(seed)
    operands: list[Array | None] = [
        draw.integers(0, 256, (2, 3, 6)).astype(np.uint8),
        draw.integers(-64, 64, (6, 24)).astype(np.int8),
        _reals(seed, 24),
        np.array(0.01, np.float32),
        np.array(0.02, np.float32),
        np.array([2, 3], np.int32) if has_mask else None,
        np.array(127, np.uint8),
        np.array(0, np.int8),
    ]
    expect_close(_model("QAttention", operands, num_heads=2, known={1, 4, 7}), 1e-3, 1e-4)


@given(_SEEDS, st.booleans(), st.sampled_from([0, 4]), st.sampled_from([3, 4]), st.booleans())
def test_rotary_embedding(
    seed: int, is_woven: bool, turning: int, rank: int, is_microsoft: bool
) -> None:
    x = _reals(seed, 2, 3, 5, 8) if rank == 4 else _reals(seed, 2, 5, 24)
    caches = [_reals(seed + i, 9, (turning or 8) // 2) for i in (1, 2)]
    places = rng(seed).integers(0, 9, (2, 5))
    given: dict[str, Any] = {"interleaved": int(is_woven), "rotary_embedding_dim": turning}
    if rank == 3 or turning:
        given["num_heads"] = 3
    if is_microsoft:
        expect_close(_model("RotaryEmbedding", [x, places, *caches], **given))
    else:
        expect_close(NodeModel("RotaryEmbedding", [x, *caches, places], opset=23, **given))


def test_rotary_embedding_from_one_position_on() -> None:
    caches = [_reals(i, 9, 4) for i in (1, 2)]
    operands: list[Array | None] = [_reals(0, 2, 5, 24), np.array([3], np.int64), *caches]
    expect_close(_model("RotaryEmbedding", operands, num_heads=3))


_Q: Array = np.zeros((2, 3, 8), np.float32)


@pytest.mark.parametrize(
    ("domain", "op", "operands", "attributes", "wanted"),
    [
        ("", "Attention", [_Q, _Q, _Q], {}, "`q_num_heads` is missing"),
        ("", "Attention", [_Q, _Q, _Q], {"q_num_heads": 3, "kv_num_heads": 3}, "into 3 heads"),
        ("", "Attention", [_Q, _Q, _Q], {"q_num_heads": 2, "kv_num_heads": 4}, "2 heads of"),
        ("", "Attention", [_Q[0], _Q, _Q], {}, "different ranks"),
        ("", "RotaryEmbedding", [_Q, np.ones((2, 3, 9), np.float32),
                                 np.ones((2, 3, 9), np.float32)], {"num_heads": 2}, "a cache has"),
        (MICROSOFT, "MultiHeadAttention", [_Q], {"num_heads": 2}, "packed into one tensor"),
        (MICROSOFT, "MultiHeadAttention", [_Q, _Q, _Q, None, np.ones((7, 7), np.int32)],
         {"num_heads": 2}, "the mask has the shape [7, 7]"),
        (MICROSOFT, "Attention", [_Q, np.ones((8, 24), np.float32)],
         {"num_heads": 2, "do_rotary": 1}, "`do_rotary` is on"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(
    domain: str, op: str, operands: list[Array | None], attributes: dict[str, Any], wanted: str
) -> None:
    assert wanted in NodeModel(op, operands, domain=domain, opset=23, **attributes).refused()
