"""What a bundle keeps of a decoder that was a graph, and what is read back of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.llm.gguf.metadata import Value
from nacre.llm.model.families import GRAPH
from nacre.llm.model.keys import Keys


@dataclass(frozen=True, kw_only=True)
class GraphConfig:
    """A decoder from ONNX in numbers."""

    layers: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int  # positions that it was made for

    @property
    def metadata(self) -> dict[str, Value]:
        """The same under keys of GGUF."""
        return {
            "general.architecture": GRAPH,
            f"{GRAPH}.block_count": self.layers,
            f"{GRAPH}.attention.head_count_kv": self.kv_heads,
            f"{GRAPH}.attention.key_length": self.head_size,
            f"{GRAPH}.vocab_size": self.vocabulary,
            f"{GRAPH}.context_length": self.context,
        }


def graph_config_of(name: str, metadata: Mapping[str, Value]) -> GraphConfig:
    """That of a bundle's metadata; InputError where they cannot be."""
    keys = Keys(name, GRAPH, metadata)
    return GraphConfig(
        layers=keys.count("block_count"),
        kv_heads=keys.count("attention.head_count_kv"),
        head_size=keys.count("attention.key_length"),
        vocabulary=keys.count("vocab_size"),
        context=keys.count("context_length"),
    )
