"""What model a bundle's plans are of: its own metadata say it."""

from __future__ import annotations

from nacre.llm.encoder_decoder.config import (
    EncoderDecoderConfig,
    config_of_metadata,
    kind_of,
)
from nacre.llm.model.config import Config, config_of
from nacre.llm.model.families import GRAPH
from nacre.llm.model.weights import ModelFile
from nacre.llm.onnx_decoder.config import GraphConfig, graph_config_of

ModelConfig = Config | GraphConfig | EncoderDecoderConfig


def sizes_of(head: ModelFile) -> ModelConfig:
    """The model in numbers; InputError where metadata cannot be those of one."""
    if head.metadata.get("general.architecture") == GRAPH:
        return graph_config_of(head.name, head.metadata)
    if kind_of(head.metadata) is not None:
        return config_of_metadata(head.name, head.metadata)
    return config_of(head)
