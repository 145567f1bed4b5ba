"""What transformers calls the parts of each family, declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Names = Mapping[str, str]  # of transformers' modules, each with what GGUF calls it

_TOP = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
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
}
_HEAD_NORMS = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
_GPT2_MLP = {
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
_GPT2_TOP = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "lm_head": "output",
}


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A `model_type` of transformers."""

    name: str
    family: str  # as `general.architecture` has it
    activations: tuple[str, ...]  # the names under which it has the family's
    layers: Names = field(default_factory=lambda: _LLAMA)
    top: Names = field(default_factory=lambda: _TOP)
    stem: str = "model"  # what names of tensors begin with, unless a checkpoint leaves it out
    layer_stem: str = "layers"
    is_tied: bool = False  # whether the head is the embedding, unless a configuration says so
    # What a configuration means that does not say: as the classes of transformers have it.
    defaults: Mapping[str, float | bool] = field(default_factory=dict)
    has_windows: bool = False  # `sliding_window` means something without a switch
    adds_one_to_norms: bool = False  # weights of norms are stored less 1
    has_turned_products: bool = False  # matrices are stored with inputs as rows
    is_qkv_by_head: bool = False  # rows of a head's query, key and value lie together


_ROWS = (
    Architecture(
        name="llama", family="llama", activations=("silu",), defaults={"rms_norm_eps": 1e-6}
    ),
    Architecture(
        name="mistral",
        family="llama",
        activations=("silu",),
        defaults={"rms_norm_eps": 1e-6},
        has_windows=True,
    ),
    Architecture(
        name="qwen2", family="qwen2", activations=("silu",), defaults={"rms_norm_eps": 1e-6}
    ),
    Architecture(
        name="qwen3",
        family="qwen3",
        activations=("silu",),
        layers=_LLAMA | _HEAD_NORMS,
        defaults={"rms_norm_eps": 1e-6},
    ),
    Architecture(
        name="gemma",
        family="gemma",
        # The first of its configurations said `gelu` and meant the other.
        activations=("gelu_pytorch_tanh", "gelu"),
        is_tied=True,
        defaults={"rms_norm_eps": 1e-6},
        adds_one_to_norms=True,
    ),
    Architecture(
        name="gemma2",
        family="gemma2",
        activations=("gelu_pytorch_tanh",),
        layers={
            **_LLAMA,
            "post_attention_layernorm": "post_attention_norm",
            "pre_feedforward_layernorm": "ffn_norm",
            "post_feedforward_layernorm": "post_ffw_norm",
        },
        is_tied=True,
        defaults={
            "rms_norm_eps": 1e-6,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "query_pre_attn_scalar": 256,
        },
        has_windows=True,
        adds_one_to_norms=True,
    ),
    Architecture(
        name="gpt2",
        family="gpt2",
        activations=("gelu_new", "gelu_pytorch_tanh"),
        layers={**_GPT2_MLP, "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output"},
        top=_GPT2_TOP,
        stem="transformer",
        layer_stem="h",
        is_tied=True,
        has_turned_products=True,
    ),
    Architecture(
        name="gpt_neo",
        family="gptneo",
        activations=("gelu_new", "gelu_pytorch_tanh"),
        layers={
            **_GPT2_MLP,
            "attn.attention.q_proj": "attn_q",
            "attn.attention.k_proj": "attn_k",
            "attn.attention.v_proj": "attn_v",
            "attn.attention.out_proj": "attn_output",
        },
        top=_GPT2_TOP,
        stem="transformer",
        layer_stem="h",
        is_tied=True,
        has_windows=True,
    ),
    Architecture(
        name="gpt_neox",
        family="gptneox",
        activations=("gelu",),
        layers={
            "input_layernorm": "attn_norm",
            "attention.query_key_value": "attn_qkv",
            "attention.dense": "attn_output",
            "post_attention_layernorm": "ffn_norm",
            "mlp.dense_h_to_4h": "ffn_up",
            "mlp.dense_4h_to_h": "ffn_down",
        },
        # Older ones call the head an embedding.
        top={
            "embed_in": "token_embd",
            "final_layer_norm": "output_norm",
            "embed_out": "output",
            "lm_head": "output",
        },
        stem="gpt_neox",
        defaults={"partial_rotary_factor": 0.25},
        is_qkv_by_head=True,
    ),
    Architecture(
        name="phi",
        family="phi2",
        activations=("gelu_new", "gelu_pytorch_tanh"),
        layers={
            "input_layernorm": "attn_norm",
            "self_attn.q_proj": "attn_q",
            "self_attn.k_proj": "attn_k",
            "self_attn.v_proj": "attn_v",
            "self_attn.dense": "attn_output",
            "mlp.fc1": "ffn_up",
            "mlp.fc2": "ffn_down",
        },
        top={**_TOP, "final_layernorm": "output_norm"},
        defaults={"partial_rotary_factor": 0.5},
    ),
    Architecture(
        name="phi3",
        family="phi3",
        activations=("silu",),
        layers={**_LLAMA, "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"},
        has_windows=True,
    ),
    Architecture(
        name="starcoder2",
        family="starcoder2",
        activations=("gelu_pytorch_tanh",),
        layers={**_LLAMA, "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"},
        is_tied=True,
        has_windows=True,
    ),
)

ARCHITECTURES = MappingProxyType({row.name: row for row in _ROWS})
