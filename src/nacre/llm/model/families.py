"""The families of decoders: what differs between them, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Activation = Literal["silu", "gelu", "gelu_tanh"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """What a decoder of an architecture does otherwise than the plainest one."""

    name: str  # as `general.architecture` has it
    norm: Literal["rms", "layer"] = "rms"
    positions: Literal["rotary", "learned"] = "rotary"
    is_permuted: bool = False  # rows of Q and K for neighbours, in the place of halves
    is_qkv_fused: bool = False
    has_head_norms: bool = False  # of each head of Q and K
    activation: Activation = "silu"
    gate: Literal["none", "beside", "fused"] = "beside"  # fused: the gate's rows stand first
    # Attention and FFN side by side: after one norm, after a norm each, or as a key says.
    residual: Literal["serial", "parallel", "by_key"] = "serial"
    is_embedding_scaled: bool = False  # by the root of its width
    has_post_norms: bool = False  # of what attention and FFN add
    windowed: Literal["all", "even", "odd"] = "all"  # layers that see a window only, counted from 0
    is_query_scaled: bool = True  # by the root of a head's size

    def is_windowed(self, layer: int) -> bool:
        """Whether a layer sees a window only, where the model has one."""
        return self.windowed == "all" or layer % 2 == (self.windowed == "odd")


_ROWS = (
    Family(name="llama", is_permuted=True),
    Family(name="qwen2"),
    Family(name="qwen3", has_head_norms=True),
    Family(name="gemma", activation="gelu_tanh", is_embedding_scaled=True),
    Family(
        name="gemma2",
        activation="gelu_tanh",
        is_embedding_scaled=True,
        has_post_norms=True,
        windowed="even",
    ),
    Family(
        name="gpt2",
        norm="layer",
        positions="learned",
        is_qkv_fused=True,
        activation="gelu_tanh",
        gate="none",
    ),
    Family(
        name="gptneo",
        norm="layer",
        positions="learned",
        activation="gelu_tanh",
        gate="none",
        windowed="odd",
        is_query_scaled=False,
    ),
    Family(
        name="phi2",
        norm="layer",
        is_qkv_fused=True,
        activation="gelu_tanh",
        gate="none",
        residual="parallel",
    ),
    Family(name="phi3", is_qkv_fused=True, gate="fused"),
    Family(
        name="gptneox",
        norm="layer",
        is_qkv_fused=True,
        activation="gelu",
        gate="none",
        residual="by_key",
    ),
    Family(name="starcoder2", norm="layer", activation="gelu_tanh", gate="none"),
)

# In the place of a family: a graph of ONNX says itself what it computes.
GRAPH = "onnx"
FAMILIES = MappingProxyType({row.name: row for row in _ROWS})
