"""Random models of transformers, and the GGUF files that converters make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.llm.gguf_bytes import BOOL, F32, TEXT, U32, Pair, f32_tensor, gguf_bytes

VOCABULARY = 61
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}
COMMON = {
    **SIZES,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 256,
}
GQA = {**COMMON, "num_key_value_heads": 2}

Arrays = dict[str, np.ndarray]
Settings = Mapping[str, Any]
Network = Any  # of transformers, which may not be installed, or its configuration

# Names of transformers' layers, and what GGUF calls them.
_LLAMA = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}
_TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_GEMMA2 = {
    **_LLAMA,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_PHI2 = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.dense": "attn_output",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
}
_PHI3 = {
    **_LLAMA,
    "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up",
}
_GPT2 = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
_GPT2_TOP = {
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "lm_head": "output",
}
_NEO = {
    **_GPT2,
    "attn.attention.q_proj": "attn_q",
    "attn.attention.k_proj": "attn_k",
    "attn.attention.v_proj": "attn_v",
    "attn.attention.out_proj": "attn_output",
}
_NEOX = {
    "input_layernorm": "attn_norm",
    "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
}
_STARCODER = {**_LLAMA, "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


@dataclass(frozen=True)
class Made:
    """A family as converters have it."""

    architecture: str
    config: str  # the class of transformers
    settings: Settings
    layers: Mapping[str, str]
    top: Mapping[str, str]
    prefix: str = "model.layers."
    keys: Settings | None = None  # beside those that every family has
    change: Callable[[str, np.ndarray, Network], np.ndarray] = lambda _name, array, _config: array
    is_tied: bool = False


def permuted(name: str, array: np.ndarray, config: Network) -> np.ndarray:
    """Rows of Q and K as llama.cpp wants them: halves of heads become neighbours."""
    if ".attn_q." in name or ".attn_k." in name:
        heads = config.num_attention_heads if ".attn_q." in name else config.num_key_value_heads
        shape = (heads, 2, len(array) // heads // 2, *array.shape[1:])
        return array.reshape(shape).swapaxes(1, 2).reshape(array.shape)
    return array


def one_added(name: str, array: np.ndarray, _config: Network) -> np.ndarray:
    return array + np.float32(1) if name.endswith("norm.weight") else array


def conv_1d(name: str, array: np.ndarray, _config: Network) -> np.ndarray:
    is_product = name.startswith("blk.") and array.ndim == 2
    return np.ascontiguousarray(array.T) if is_product else array


def neox(name: str, array: np.ndarray, config: Network) -> np.ndarray:
    """Rows of each head's query, key and value become all queries, all keys, all values."""
    if "attn_qkv" not in name:
        return array
    shape = (config.num_attention_heads, 3, -1, *array.shape[1:])
    return array.reshape(shape).swapaxes(0, 1).reshape(array.shape)


FAMILIES: dict[str, Made] = {
    "llama": Made(
        "llama", "LlamaConfig", {**GQA, "rms_norm_eps": 1e-5}, _LLAMA, _TOP, change=permuted
    ),
    "llama tied": Made(
        "llama",
        "LlamaConfig",
        {**GQA, "tie_word_embeddings": True, "rope_theta": 500_000.0},
        _LLAMA,
        _TOP,
        change=permuted,
        is_tied=True,
    ),
    "llama biased": Made(
        "llama",
        "LlamaConfig",
        {**COMMON, "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1},
        _LLAMA,
        _TOP,
        change=permuted,
    ),
    "mistral window": Made(
        "llama",
        "MistralConfig",
        {**GQA, "sliding_window": 7, "head_dim": 16},
        _LLAMA,
        _TOP,
        change=permuted,
        keys={"attention.sliding_window": 7},
    ),
    "qwen2": Made("qwen2", "Qwen2Config", GQA, _LLAMA, _TOP),
    "qwen3": Made("qwen3", "Qwen3Config", {**GQA, "head_dim": 16}, _LLAMA, _TOP),
    "gemma": Made(
        "gemma",
        "GemmaConfig",
        {**GQA, "head_dim": 16},
        _LLAMA,
        _TOP,
        change=one_added,
        is_tied=True,
    ),
    "gemma2": Made(
        "gemma2",
        "Gemma2Config",
        {**GQA, "head_dim": 16, "sliding_window": 9, "query_pre_attn_scalar": 16},
        _GEMMA2,
        _TOP,
        change=one_added,
        is_tied=True,
        keys={
            "attention.sliding_window": 9,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
    ),
    "gpt2": Made(
        "gpt2",
        "GPT2Config",
        {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256},
        _GPT2,
        _GPT2_TOP,
        "transformer.h.",
        change=conv_1d,
        is_tied=True,
    ),
    "gptneo": Made(
        "gptneo",
        "GPTNeoConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 7,
            "max_position_embeddings": 256,
        },
        _NEO,
        _GPT2_TOP,
        "transformer.h.",
        is_tied=True,
        keys={"attention.sliding_window": 7},
    ),
    "phi2": Made(
        "phi2",
        "PhiConfig",
        {**COMMON, "partial_rotary_factor": 0.5},
        _PHI2,
        {**_TOP, "model.final_layernorm": "output_norm"},
    ),
    "phi3": Made("phi3", "Phi3Config", {**GQA, "pad_token_id": 0}, _PHI3, _TOP),
    "gptneox": Made(
        "gptneox",
        "GPTNeoXConfig",
        {**COMMON, "rotary_pct": 0.5},
        _NEOX,
        {
            "gpt_neox.embed_in": "token_embd",
            "gpt_neox.final_layer_norm": "output_norm",
            "lm_head": "output",
        },
        "gpt_neox.layers.",
        change=neox,
        keys={"use_parallel_residual": True},
    ),
    "gptneox serial": Made(
        "gptneox",
        "GPTNeoXConfig",
        {**COMMON, "use_parallel_residual": False},
        _NEOX,
        {
            "gpt_neox.embed_in": "token_embd",
            "gpt_neox.final_layer_norm": "output_norm",
            "lm_head": "output",
        },
        "gpt_neox.layers.",
        change=neox,
        keys={"use_parallel_residual": False},
    ),
    "starcoder2": Made(
        "starcoder2", "Starcoder2Config", {**GQA, "sliding_window": None}, _STARCODER, _TOP
    ),
}


def random_model(name: str, seed: int = 0) -> Network:
    """A model with weights that are large enough for its tokens to differ."""
    import torch
    import transformers

    made = FAMILIES[name]
    torch.manual_seed(seed)
    config = getattr(transformers, made.config)(**made.settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.eval().float()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            is_norm = "norm" in key or ".ln_" in key
            spread = 0.2 if is_norm or parameter.ndim < 2 else parameter.shape[-1] ** -0.5 * 1.5
            centre = (
                1.0
                if is_norm and key.endswith("weight") and not made.config.startswith("Gemma")
                else 0.0
            )
            parameter.copy_(centre + spread * torch.randn_like(parameter))
    return model


def gguf_of(model: Network, name: str) -> bytes:
    """The file that a converter makes of a model."""
    made = FAMILIES[name]
    config = model.config
    tensors = [
        f32_tensor(key, np.ascontiguousarray(made.change(key, array, config)))
        for key, array in _arrays(model, made).items()
    ]
    return gguf_bytes(_pairs(config, made), tensors)


def _arrays(model: Network, made: Made) -> Arrays:
    found: Arrays = {}
    for key, value in model.state_dict().items():
        module, _, part = key.rpartition(".")
        if module == "lm_head" and made.is_tied:
            continue
        if module.startswith(made.prefix):
            number, _, inner = module.removeprefix(made.prefix).partition(".")
            if inner not in made.layers:
                continue  # a buffer
            found[f"blk.{number}.{made.layers[inner]}.{part}"] = value.numpy()
        elif module in made.top:
            found[f"{made.top[module]}.{part}"] = value.numpy()
    return found


def _pairs(config: Network, made: Made) -> Sequence[Pair]:
    a = made.architecture
    heads = config.num_attention_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // heads
    ff = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    rope = getattr(config, "rope_parameters", None) or {}
    epsilon = next(
        getattr(config, n)
        for n in ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
        if hasattr(config, n)
    )
    norm = "rms_epsilon" if hasattr(config, "rms_norm_eps") else "epsilon"
    numbers: dict[str, float] = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": ff,
        "attention.head_count": heads,
        "attention.head_count_kv": getattr(config, "num_key_value_heads", None) or heads,
        "attention.key_length": head_size,
        "attention.value_length": head_size,
        "vocab_size": VOCABULARY,
        "rope.dimension_count": int(head_size * rope.get("partial_rotary_factor", 1.0)),
        "rope.freq_base": float(rope.get("rope_theta", 10_000.0)),
        f"attention.layer_norm_{norm}": float(epsilon),
        **(made.keys or {}),
    }
    pairs = [Pair("general.architecture", TEXT, a)]
    for key, value in numbers.items():
        type_ = BOOL if isinstance(value, bool) else U32 if isinstance(value, int) else F32
        pairs.append(Pair(f"{a}.{key}", type_, value))
    return pairs


def greedy(model: Network, prompt: Sequence[int], count: int) -> list[int]:
    """The tokens that transformers goes on with."""
    import torch

    ids = list(prompt)
    cache = None
    with torch.no_grad():
        for _ in range(count):
            given = torch.tensor([ids if cache is None else ids[-1:]])
            done = model(given, past_key_values=cache, use_cache=True)
            cache = done.past_key_values
            ids.append(int(done.logits[0, -1].argmax()))
    return ids[len(prompt) :]


def all_logits(model: Network, ids: Sequence[int]) -> np.ndarray:
    """The logits at every position, without a cache."""
    import torch

    with torch.no_grad():
        logits: np.ndarray = model(torch.tensor([list(ids)])).logits[0].numpy()
    return logits
