"""`config.json`, as transformers writes it, as the keys that a GGUF file would have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from types import MappingProxyType

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.llm.checkpoint.architectures import ARCHITECTURES, Architecture
from nacre.llm.checkpoint.json_files import JsonObject, read_json_object
from nacre.llm.checkpoint.positions import rotary_keys
from nacre.llm.checkpoint.windows import window_of
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.config import Config, config_from
from nacre.llm.model.families import FAMILIES
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array
from nacre.llm.rules.model import LLM01, LLM02, LLM05

CONFIGURATION = "config.json"
# Keys of GGUF, and the names under which configurations have them, the first that is there.
_KEYS = MappingProxyType(
    {
        "block_count": ("num_hidden_layers", "n_layer", "num_layers"),
        "context_length": ("max_position_embeddings", "n_positions"),
        "embedding_length": ("hidden_size", "n_embd"),
        "feed_forward_length": ("intermediate_size", "n_inner"),
        "attention.head_count": ("num_attention_heads", "n_head", "num_heads"),
        "attention.head_count_kv": ("num_key_value_heads",),
        "attention.key_length": ("head_dim",),
        "attention.value_length": ("head_dim",),
        "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
        "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"),
        "attn_logit_softcapping": ("attn_logit_softcapping",),
        "final_logit_softcapping": ("final_logit_softcapping",),
        "use_parallel_residual": ("use_parallel_residual",),
        "vocab_size": ("vocab_size",),
    }
)
_ACTIVATIONS = ("hidden_activation", "hidden_act", "activation_function")
# What is built is what these say, by their names in configurations.
_EXPECTED = MappingProxyType(
    {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "qk_layernorm": False,
        "norm_type": "layer_norm",
    }
)
_ROUNDING = 1e-9  # of a root and its square


@dataclass(frozen=True)
class Configuration:
    """What a configuration says of a model."""

    architecture: Architecture
    metadata: Mapping[str, Value]  # as a GGUF file of the model would have it
    is_tied: bool
    factors: Mapping[str, Array]  # what divides frequencies of positions, by GGUF's names
    values: JsonObject  # as they stand in the file

    def config(self, name: str) -> Config:
        """The model in numbers; InputError where one is missing or cannot be."""
        return config_from(name, self.metadata, None)


def read_config_json(path: Path) -> tuple[Config, bool]:
    """The numbers of a model, and whether its head is its embedding. InputError: it is none."""
    found = read_configuration(path)
    return found.config(str(path)), found.is_tied


def read_configuration(path: Path) -> Configuration:
    """The same with all that a checkpoint needs."""
    return configuration_of(str(path), read_json_object(path))


def configuration_of(name: str, values: JsonObject) -> Configuration:
    """That of a configuration's values."""
    architecture = _architecture(name, values)
    _require_built(name, architecture, values)
    parsed = {**architecture.defaults, **{k: v for k, v in values.items() if v is not None}}
    family = architecture.family
    metadata: dict[str, Value] = {"general.architecture": family}
    for key, names in _KEYS.items():
        value = next((parsed[n] for n in names if n in parsed), None)
        if value is not None:
            if not isinstance(value, bool | int | float | str):
                message = f"`{names[0]}` is {backquote(str(value))}, expected a number"
                raise refusal(LLM02, name, message)
            metadata[f"{family}.{key}"] = value
    window = window_of(name, architecture, values)
    if window:
        metadata[f"{family}.attention.sliding_window"] = window
    factors: dict[str, Array] = {}
    if FAMILIES[family].positions == "rotary":
        keys, factors = rotary_keys(name, parsed, config_from(name, metadata, None))
        metadata |= {f"{family}.{key}": value for key, value in keys.items()}
    if "query_pre_attn_scalar" in architecture.defaults:
        scalar = parsed["query_pre_attn_scalar"]
        _require_query_scale(name, scalar, config_from(name, metadata, None))
    tied = parsed.get("tie_word_embeddings", architecture.is_tied)
    if not isinstance(tied, bool):
        message = f"`tie_word_embeddings` is {backquote(str(tied))}, expected true or false"
        raise refusal(LLM02, name, message)
    return Configuration(architecture, metadata, tied, factors, values)


def _architecture(name: str, values: JsonObject) -> Architecture:
    kind = values.get("model_type")
    known = ARCHITECTURES.get(kind) if isinstance(kind, str) else None
    if known is None:
        shown = backquote(str(kind)) if kind is not None else "missing"
        message = f"`model_type` is {shown}, expected one of {', '.join(ARCHITECTURES)}"
        hint = did_you_mean(kind, ARCHITECTURES) if isinstance(kind, str) else None
        raise refusal(LLM01, name, message, hint or None)
    return known


def _require_built(name: str, architecture: Architecture, values: JsonObject) -> None:
    """Refuse what would make another model of it."""
    parsed = next((values[n] for n in _ACTIVATIONS if values.get(n) is not None), None)
    if parsed is not None and parsed not in architecture.activations:
        wanted = " or ".join(map(backquote, architecture.activations))
        message = (
            f"the activation is {backquote(str(parsed))}, expected {wanted}: that is not built"
        )
        raise refusal(LLM05, name, message)
    for key, wanted_value in _EXPECTED.items():
        value = values.get(key)
        if value is not None and value != wanted_value:
            raise refusal(LLM05, name, f"`{key}` is {backquote(str(value))}, which is not built")
    if isinstance(values.get("quantization_config"), dict):
        message = "the weights are quantised (`quantization_config`), which is not read"
        help_text = "take a checkpoint in floating point, or a GGUF file"
        raise refusal(LLM05, name, message, help_text)


def _require_query_scale(name: str, value: object, config: Config) -> None:
    """GGUF has no key for what scales queries: it follows from other sizes, or is not built."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"`query_pre_attn_scalar` is {backquote(str(value)[:40])}, expected a number"
        raise refusal(LLM02, name, message)
    wanted = config.query_scale**-2
    if not isclose(value, wanted, rel_tol=_ROUNDING):
        message = f"`query_pre_attn_scalar` is {value}, expected {wanted:g}: that is not built"
        raise refusal(LLM05, name, message)
