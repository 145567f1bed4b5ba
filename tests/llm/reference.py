"""A Llama by plain NumPy in f64, without a cache: what a step is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.llm.gguf_bytes import F32, TEXT, U32, Pair, f32_tensor, gguf_bytes

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sizes:
    """A small Llama."""

    layers: int = 2
    width: int = 16
    heads: int = 4
    kv_heads: int = 2
    ff: int = 24
    vocabulary: int = 29
    context: int = 64
    window: int = 0

    @property
    def head(self) -> int:
        return self.width // self.heads


def random_weights(sizes: Sizes, seed: int = 0) -> dict[str, npt.NDArray[np.float32]]:
    """Weights by their names in GGUF, which has neighbours turned against each other."""
    draw = np.random.default_rng(seed)
    kv = sizes.kv_heads * sizes.head
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (sizes.vocabulary, sizes.width),
        "output_norm.weight": (sizes.width,),
    }
    for i in range(sizes.layers):
        inner = {
            "attn_norm": (sizes.width,), "attn_q": (sizes.width, sizes.width),
            "attn_k": (kv, sizes.width), "attn_v": (kv, sizes.width),
            "attn_output": (sizes.width, sizes.width), "ffn_norm": (sizes.width,),
            "ffn_gate": (sizes.ff, sizes.width), "ffn_up": (sizes.ff, sizes.width),
            "ffn_down": (sizes.width, sizes.ff),
        }  # fmt: skip
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in inner.items()}
    return {
        name: (draw.normal(size=shape) * shape[-1] ** -0.5 * 1.5 + (len(shape) == 1)).astype(
            np.float32
        )
        for name, shape in shapes.items()
    }


def keys_of(sizes: Sizes) -> list[Pair]:
    """What the file says of it."""
    numbers = {
        "block_count": sizes.layers, "context_length": sizes.context,
        "embedding_length": sizes.width, "feed_forward_length": sizes.ff,
        "attention.head_count": sizes.heads, "attention.head_count_kv": sizes.kv_heads,
        "vocab_size": sizes.vocabulary,
    }  # fmt: skip
    if sizes.window:
        numbers["attention.sliding_window"] = sizes.window
    pairs = [Pair("general.architecture", TEXT, "llama")]
    pairs += [Pair(f"llama.{key}", U32, value) for key, value in numbers.items()]
    return [*pairs, Pair("llama.attention.layer_norm_rms_epsilon", F32, 1e-5)]


def llama_bytes(sizes: Sizes | None = None, seed: int = 0, pairs: Sequence[Pair] = ()) -> bytes:
    """A file with a small Llama of random weights."""
    sizes = sizes or Sizes()
    tensors = [f32_tensor(name, array) for name, array in random_weights(sizes, seed).items()]
    return gguf_bytes([*keys_of(sizes), *pairs], tensors)


def reference_logits(
    weights: Mapping[str, npt.NDArray[np.float32]], sizes: Sizes, tokens: Sequence[int]
) -> Array:
    """The logits at every position, `[tokens, vocabulary]`."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    x = w["token_embd.weight"][list(tokens)]
    for i in range(sizes.layers):
        layer = {k.split(".")[2]: v for k, v in w.items() if k.startswith(f"blk.{i}.")}
        x = x + _attention(_norm(x, layer["attn_norm"]), layer, sizes)
        normed = _norm(x, layer["ffn_norm"])
        gate = normed @ layer["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ layer["ffn_up"].T)) @ layer["ffn_down"].T
    return _norm(x, w["output_norm.weight"]) @ w["token_embd.weight"].T


def _norm(x: Array, scale: Array) -> Array:
    made: Array = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale
    return made


def _turn(x: Array) -> Array:
    """Neighbours of heads `[tokens, heads, size]` turned by their position."""
    size = x.shape[-1]
    made = np.empty_like(x)
    for place in range(len(x)):
        for pair in range(size // 2):
            angle = place * 10_000.0 ** (-2 * pair / size)
            a, b = x[place, :, 2 * pair], x[place, :, 2 * pair + 1]
            made[place, :, 2 * pair] = a * np.cos(angle) - b * np.sin(angle)
            made[place, :, 2 * pair + 1] = a * np.sin(angle) + b * np.cos(angle)
    return made


def _attention(x: Array, layer: Mapping[str, Array], sizes: Sizes) -> Array:
    count = len(x)
    q, k, v = (
        (x @ layer[name].T).reshape(count, -1, sizes.head)
        for name in ("attn_q", "attn_k", "attn_v")
    )
    q, k = _turn(q), _turn(k)
    made = np.zeros_like(q)
    for head in range(sizes.heads):
        shared = head * sizes.kv_heads // sizes.heads
        for place in range(count):
            first = max(0, place - sizes.window + 1) if sizes.window else 0
            scores = k[first : place + 1, shared] @ q[place, head] / np.sqrt(sizes.head)
            shares = np.exp(scores - scores.max())
            made[place, head] = shares / shares.sum() @ v[first : place + 1, shared]
    return made.reshape(count, -1) @ layer["attn_output"].T
