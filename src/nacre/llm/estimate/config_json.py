"""`config.json`, as transformers writes it, as the keys that a GGUF file would have."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

from nacre.base.excerpt import backquote
from nacre.base.source import Unreadable, read_source
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.config import Config, config_from
from nacre.llm.model.problems import refusal
from nacre.llm.rules.model import LLM01, LLM02

_MOST_BYTES = 1 << 20
# What transformers calls a family, and what GGUF does.
_FAMILIES = MappingProxyType(
    {
        "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma": "gemma",
        "gemma2": "gemma2", "gpt2": "gpt2", "phi": "phi2", "phi3": "phi3", "gpt_neox": "gptneox",
        "starcoder2": "starcoder2",
    }
)  # fmt: skip
# Keys of GGUF, and the names under which configurations have them, the first that is there.
_KEYS = MappingProxyType(
    {
        "block_count": ("num_hidden_layers", "n_layer"),
        "context_length": ("max_position_embeddings", "n_positions"),
        "embedding_length": ("hidden_size", "n_embd"),
        "feed_forward_length": ("intermediate_size", "n_inner"),
        "attention.head_count": ("num_attention_heads", "n_head"),
        "attention.head_count_kv": ("num_key_value_heads",),
        "attention.key_length": ("head_dim",),
        "attention.value_length": ("head_dim",),
        "attention.sliding_window": ("sliding_window",),
        "vocab_size": ("vocab_size",),
    }
)
_TIED = frozenset({"gemma", "gemma2", "gpt2"})  # unless they say otherwise


def read_config_json(path: Path) -> tuple[Config, bool]:
    """The numbers of a model, and whether its head is its embedding. InputError: it is none."""
    name = str(path)
    source = read_source(path, limit=_MOST_BYTES)
    if isinstance(source, Unreadable):
        raise refusal(LLM02, name, f"the file {source.reason}")
    try:
        said = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise refusal(LLM02, name, f"this is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise refusal(LLM02, name, "a configuration is a mapping of names to values")
    return _config(name, said)


def _config(name: str, said: dict[str, object]) -> tuple[Config, bool]:
    kind = said.get("model_type")
    family = _FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        shown = backquote(str(kind)) if kind is not None else "missing"
        message = f"`model_type` is {shown}, expected one of {', '.join(_FAMILIES)}"
        raise refusal(LLM01, name, message)
    metadata: dict[str, Value] = {"general.architecture": family}
    for key, names in _KEYS.items():
        value = next((said[n] for n in names if said.get(n) is not None), None)
        if isinstance(value, bool | int | float | str):
            metadata[f"{family}.{key}"] = value
    tied = said.get("tie_word_embeddings", family in _TIED)
    return config_from(name, metadata, None), bool(tied)
