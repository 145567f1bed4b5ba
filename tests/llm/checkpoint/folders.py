"""Folders as `save_pretrained` writes them, put together by hand so that any promise can break."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.llm.reference import Sizes, random_weights

_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
Arrays = dict[str, np.ndarray]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def llama_config(sizes: Sizes, **more: object) -> dict[str, Any]:
    """The configuration of a small Llama whose head is its embedding."""
    return {
        "model_type": "llama",
        "hidden_size": sizes.width,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "intermediate_size": sizes.ff,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.context,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        **more,
    }


def llama_arrays(sizes: Sizes, seed: int = 0) -> Arrays:
    """The weights of the reference by the names of transformers, with halves turned."""
    found: Arrays = {}
    for name, array in random_weights(sizes, seed).items():
        if name.startswith("blk."):
            _, number, part, _ = name.split(".")
            if part in ("attn_q", "attn_k"):  # pairs of neighbours become halves
                heads = len(array) // sizes.head
                array = array.reshape(heads, sizes.head // 2, 2, -1).swapaxes(1, 2)
                array = array.reshape(heads * sizes.head, -1)
            found[f"model.layers.{number}.{_NAMES[part]}.weight"] = np.ascontiguousarray(array)
        else:
            top = {"token_embd.weight": "model.embed_tokens.weight"}
            found[top.get(name, "model.norm.weight")] = array
    return found


def letter_tokenizer() -> dict[str, Any]:
    """A byte-level tokenizer of 29 tokens: two control tokens, letters, a blank."""
    tokens = ["<e>", "<s>", *LETTERS, "Ġ"]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": at, "content": tokens[at], **flags, "special": True} for at in (0, 1)
        ],
        "normalizer": None,
        "pre_tokenizer": {**level, "use_regex": True},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<e>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: at for at, token in enumerate(tokens)},
            "merges": [],
        },
    }


def write_folder(
    folder: Path,
    config: Mapping[str, Any],
    arrays: Arrays,
    shards: int = 1,
    **files: Mapping[str, Any] | str,
) -> Path:
    """All of it; `files` are others by their stems, as JSON or text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(arrays, folder / "model.safetensors", {"format": "pt"})
    else:
        names = [f"model-{at + 1:05}-of-{shards:05}.safetensors" for at in range(shards)]
        places = {key: names[at % shards] for at, key in enumerate(arrays)}
        for name in names:
            part = {key: arrays[key] for key, place in places.items() if place == name}
            save_file(part, folder / name)
        index = {"metadata": {}, "weight_map": places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for stem, content in files.items():
        if isinstance(content, str):
            (folder / f"{stem}.jinja").write_text(content)
        else:
            (folder / f"{stem}.json").write_text(json.dumps(content))
    return folder
