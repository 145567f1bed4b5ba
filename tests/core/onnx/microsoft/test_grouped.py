"""GroupQueryAttention against onnxruntime: prompts and steps behind a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.onnx.single_node import MICROSOFT, Array, NodeModel, expect_close, rng

HEADS, SHARED, SIZE = 4, 2, 16
CASES = [(1, 5, 0), (2, 4, 0), (1, 1, 4), (2, 1, 3), (1, 3, 4)]  # batch, queries, keys before


def _model(batch: int, length: int, past: int, *given: Array | None, **kw: Any) -> NodeModel:  # noqa: ANN401
    random = rng(batch, length, past)

    def floats(*dims: int) -> Array:
        return random.standard_normal(dims).astype(np.float32)

    operands: list[Array | None] = [floats(batch, length, HEADS * SIZE)]
    operands += [floats(batch, length, SHARED * SIZE) for _ in range(2)]
    if kw.pop("is_packed", False):
        packed = np.concatenate([o for o in operands if o is not None], axis=2)
        operands = [packed, None, None]
    before = [floats(batch, SHARED, past, SIZE) if past else None for _ in range(2)]
    lengths = kw.pop("lengths", np.full(batch, past + length - 1, np.int32))
    total = np.array(kw.pop("total", past + length), np.int32)
    angles = [floats(32, SIZE // 2) if kw.get("do_rotary") else None for _ in range(2)]
    operands += [*before, lengths, total, *angles, *given]
    while operands[-1] is None:
        operands.pop()
    counts: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": SHARED}
    return NodeModel("GroupQueryAttention", operands, domain=MICROSOFT, outputs=("y", "k", "v"),
                     known=kw.pop("known", {5, 6}), **counts, **kw)  # fmt: skip


@pytest.mark.parametrize(("batch", "length", "past"), CASES)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"is_packed": True},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"local_window_size": 2},
        {"softcap": 2.0},
        {"scale": 0.3},
        {"causal": 0},
    ],
)
def test_attention_of_groups(batch: int, length: int, past: int, given: dict[str, Any]) -> None:
    expect_close(_model(batch, length, past, **given), 1e-5, 1e-5)


@pytest.mark.parametrize(("batch", "length", "past"), CASES)
def test_positions_and_a_bias(batch: int, length: int, past: int) -> None:
    places = np.tile(np.arange(length) + past + 2, (batch, 1))
    expect_close(_model(batch, length, past, places, do_rotary=1))
    bias = rng(7).standard_normal((1, 1, length, past + length)).astype(np.float32)
    expect_close(_model(batch, length, past, None, bias))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lengths": np.array([2, 4], np.int32)}, "`seqlens_k` [2, 4]"),
        ({"total": 9}, "`total_sequence_length` is 9"),
        ({"known": {6}}, "`seqlens_k` is computed when the model runs"),
        ({"known": {5}}, "`total_sequence_length` is computed when the model runs"),
        ({"smooth_softmax": 1}, "`smooth_softmax` is on"),
        ({"sliding_window_cache": 1}, "`sliding_window_cache` is on"),
    ],
)
def test_what_is_refused(given: dict[str, Any], told: str) -> None:
    assert told in _model(2, 5, 0, **given).refused()
