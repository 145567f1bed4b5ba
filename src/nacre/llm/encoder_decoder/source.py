"""T5 and Whisper from folders of transformers, and from models in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nacre.llm.checkpoint.arrays import Arrays, StateArrays, stored_arrays
from nacre.llm.checkpoint.checkpoint import CheckpointTensor
from nacre.llm.checkpoint.configuration import CONFIGURATION
from nacre.llm.checkpoint.json_files import JsonObject, read_json_object
from nacre.llm.checkpoint.tokenizer import folder_tokenizer_keys, tokenizer_keys
from nacre.llm.encoder_decoder.config import (
    KINDS,
    EncoderDecoderConfig,
    config_of_values,
)
from nacre.llm.encoder_decoder.model import EncoderDecoder
from nacre.llm.encoder_decoder.names import Names
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array, Weights
from nacre.llm.rules.model import LLM05

SOURCE_ROWS = 128  # tokens of a source, unless more are asked for
MOST_SOURCE_ROWS = 4096  # relative positions of all pairs are a table


@dataclass(frozen=True, eq=False)
class EncoderDecoderSource:
    """An encoder-decoder by the names of transformers."""

    name: str
    values: JsonObject = field(repr=False)
    tokenizer: Mapping[str, Value] = field(repr=False)
    tensors: Mapping[str, CheckpointTensor] = field(repr=False)
    source: int = SOURCE_ROWS

    @property
    def config(self) -> EncoderDecoderConfig:
        """The model in numbers."""
        return config_of_values(self.name, self.values, self.source)

    @property
    def metadata(self) -> Mapping[str, Value]:
        """What a bundle keeps of it."""
        return MappingProxyType({**self.tokenizer, **self.config.metadata})

    def tensor(self, name: str) -> Array:
        """A tensor in f32."""
        return self.tensors[name].read()

    @property
    def decoder(self) -> EncoderDecoder:
        """The model with its weights; InputError where one is missing, or is not used."""
        return EncoderDecoder.of(self.config, Weights(self))


def is_encoder_decoder(values: Mapping[str, Any]) -> bool:
    """Whether a configuration is of a kind that is read here."""
    return values.get("model_type") in KINDS


def read_encoder_decoder(folder: Path) -> EncoderDecoderSource | None:
    """That of a folder; None where its configuration is of another kind."""
    values = read_json_object(folder / CONFIGURATION)
    if not is_encoder_decoder(values):
        return None
    name = str(folder)
    _require_plain(name, values)
    tokenizer = folder_tokenizer_keys(folder, values)
    return _source(name, values, tokenizer, stored_arrays(folder))


def encoder_decoder_of(model: Any, tokenizer: object = None) -> EncoderDecoderSource | None:  # noqa: ANN401
    """That of a model in memory; None where it is of another kind."""
    config, state = getattr(model, "config", None), getattr(model, "state_dict", None)
    to_dict = getattr(config, "to_dict", None)
    values = to_dict() if callable(to_dict) else None
    if not isinstance(values, Mapping) or not is_encoder_decoder(values) or not callable(state):
        return None
    name = f"<{type(model).__name__}>"
    _require_plain(name, values)
    keys = {} if tokenizer is None else tokenizer_keys(name, tokenizer, values)
    return _source(name, values, keys, StateArrays(name, state()))


def _require_plain(name: str, values: Mapping[str, Any]) -> None:
    if values.get("quantization_config"):
        message = "weights are quantised, which is not read"
        raise refusal(LLM05, name, message, "give the model before it was quantised")


def _source(
    name: str, values: JsonObject, tokenizer: Mapping[str, Value], arrays: Arrays
) -> EncoderDecoderSource:
    kind = next(kind for kind in KINDS if values["model_type"] == kind)
    names = Names(kind)
    tensors = {
        key: CheckpointTensor(shape, partial(arrays.read, key))
        for key, shape in arrays.shapes.items()
        if not names.is_copy(key)
    }
    found = EncoderDecoderSource(name, values, tokenizer, MappingProxyType(tensors))
    found.config  # noqa: B018 - what it says is judged now
    return found
