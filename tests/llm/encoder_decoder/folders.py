"""A small T5 by hand: its folder, and what NumPy makes of it with one token after another."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np

VOCABULARY, WIDTH, HEADS, SIZE, FF, BUCKETS, FARTHEST = 29, 16, 2, 8, 24, 8, 16
CONFIG: dict[str, Any] = {
    "model_type": "t5", "vocab_size": VOCABULARY, "d_model": WIDTH, "d_kv": SIZE, "d_ff": FF,
    "num_layers": 1, "num_heads": HEADS, "relative_attention_num_buckets": BUCKETS,
    "relative_attention_max_distance": FARTHEST, "feed_forward_proj": "relu",
    "layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0, "n_positions": 24,
}  # fmt: skip
Arrays = dict[str, np.ndarray]


def t5_arrays(seed: int = 0) -> Arrays:
    """Weights under the names of transformers."""
    random, found = np.random.default_rng(seed), Arrays()

    def matrix(name: str, rows: int, columns: int, scale: float = 2.0) -> None:
        array = random.standard_normal((rows, columns)) * scale * columns**-0.5
        found[f"{name}.weight"] = array.astype(np.float32)

    matrix("shared", VOCABULARY, WIDTH, 4.0)
    attentions = ["encoder.block.0.layer.0.SelfAttention", "decoder.block.0.layer.0.SelfAttention",
                  "decoder.block.0.layer.1.EncDecAttention"]  # fmt: skip
    for name in attentions:
        for part in "qkv":
            matrix(f"{name}.{part}", HEADS * SIZE, WIDTH)
        matrix(f"{name}.o", WIDTH, HEADS * SIZE)
        if name.endswith("SelfAttention"):
            matrix(f"{name}.relative_attention_bias", BUCKETS, HEADS)
    for name in ("encoder.block.0.layer.1", "decoder.block.0.layer.2"):
        matrix(f"{name}.DenseReluDense.wi", FF, WIDTH)
        matrix(f"{name}.DenseReluDense.wo", WIDTH, FF)
    norms = [f"encoder.block.0.layer.{i}.layer_norm" for i in (0, 1)]
    norms += [f"decoder.block.0.layer.{i}.layer_norm" for i in (0, 1, 2)]
    for name in (*norms, "encoder.final_layer_norm", "decoder.final_layer_norm"):
        found[f"{name}.weight"] = (1 + 0.2 * random.standard_normal(WIDTH)).astype(np.float32)
    return found


def reference_logits(arrays: Arrays, source: Sequence[int], ids: Sequence[int]) -> np.ndarray:
    """The logits after the last token, by loops over heads and pairs of places."""
    w = {name.removesuffix(".weight"): array.astype(np.float64) for name, array in arrays.items()}
    x = w["shared"][list(source)]
    stem = "encoder.block.0.layer.0"
    x = x + _attention(w, _norm(w, f"{stem}.layer_norm", x), None, f"{stem}.SelfAttention", "both")
    x = x + _products(w, x, "encoder.block.0.layer.1")
    heard = _norm(w, "encoder.final_layer_norm", x)
    x = w["shared"][list(ids)]
    stem = "decoder.block.0.layer.0"
    x = x + _attention(w, _norm(w, f"{stem}.layer_norm", x), None, f"{stem}.SelfAttention", "back")
    stem = "decoder.block.0.layer.1"
    normed = _norm(w, f"{stem}.layer_norm", x)
    x = x + _attention(w, normed, heard, f"{stem}.EncDecAttention", "all")
    x = x + _products(w, x, "decoder.block.0.layer.2")
    last: np.ndarray = _norm(w, "decoder.final_layer_norm", x)[-1] * WIDTH**-0.5
    return last @ w["shared"].T


def _norm(w: Arrays, name: str, x: np.ndarray) -> np.ndarray:
    made: np.ndarray = w[name] * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return made


def _products(w: Arrays, x: np.ndarray, stem: str) -> np.ndarray:
    inner = np.maximum(_norm(w, f"{stem}.layer_norm", x) @ w[f"{stem}.DenseReluDense.wi"].T, 0)
    made: np.ndarray = inner @ w[f"{stem}.DenseReluDense.wo"].T
    return made


def _attention(
    w: Arrays, x: np.ndarray, heard: np.ndarray | None, name: str, sees: str
) -> np.ndarray:
    looked_at = x if heard is None else heard
    query = x @ w[f"{name}.q"].T
    key, value = (looked_at @ w[f"{name}.{part}"].T for part in "kv")
    made = np.zeros_like(query)
    for head in range(HEADS):
        part = slice(head * SIZE, (head + 1) * SIZE)
        scores = query[:, part] @ key[:, part].T
        for at in range(len(x)) if sees != "all" else ():
            for to in range(len(looked_at)):
                bucket = _bucket(at - to, both=sees == "both")
                scores[at, to] += w[f"{name}.relative_attention_bias"][bucket, head]
                if sees == "back" and to > at:
                    scores[at, to] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        made[:, part] = shares / shares.sum(-1, keepdims=True) @ value[:, part]
    return made @ w[f"{name}.o"].T


def _bucket(behind: int, *, both: bool) -> int:
    count, first = (BUCKETS // 2, BUCKETS // 2 if behind < 0 else 0) if both else (BUCKETS, 0)
    away = abs(behind) if both else max(behind, 0)
    exact = count // 2
    if away < exact:
        return first + away
    return first + min(
        count - 1, exact + int(log(away / exact) / log(FARTHEST / exact) * (count - exact))
    )
