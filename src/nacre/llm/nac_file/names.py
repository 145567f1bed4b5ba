"""What GGUF calls the weights of a decoder, by the arrays that they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from nacre.core.values import Array
from nacre.llm.model.layers import Affine, DecoderWeights

# Fields of a layer, and GGUF's names.
_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "attention_norm": "attn_norm", "query": "attn_q", "key": "attn_k", "value": "attn_v",
        "out": "attn_output", "up": "ffn_up", "down": "ffn_down", "gate": "ffn_gate",
        "ffn_norm": "ffn_norm", "query_norm": "attn_q_norm", "key_norm": "attn_k_norm",
        "attention_post_norm": "post_attention_norm", "ffn_post_norm": "post_ffw_norm",
    }
)  # fmt: skip
Place = tuple[int, tuple[int, ...]]  # where elements lie, and their shape


def address_of(array: Array) -> Place:
    """What tells an array from others without a look at its elements."""
    return int(array.__array_interface__["data"][0]), array.shape


def weight_names(weights: DecoderWeights) -> dict[Place, str]:
    """The name of each; a head that is the embedding has the embedding's."""
    found: dict[Place, str] = {}
    for name, array in _named_arrays(weights):
        found.setdefault(address_of(array), name)
    return found


def _named_arrays(weights: DecoderWeights) -> Iterator[tuple[str, Array]]:
    yield "token_embd.weight", weights.embedding
    if weights.positions is not None:
        yield "position_embd.weight", weights.positions
    for at, layer in enumerate(weights.layers):
        for field, part in _PARTS.items():
            yield from _affine(f"blk.{at}.{part}", getattr(layer, field))
    yield from _affine("output_norm", weights.norm)
    yield from _affine("output", weights.head)


def _affine(name: str, affine: Affine | None) -> Iterator[tuple[str, Array]]:
    if affine is not None:
        yield f"{name}.weight", affine.weight
        if affine.bias is not None:
            yield f"{name}.bias", affine.bias
