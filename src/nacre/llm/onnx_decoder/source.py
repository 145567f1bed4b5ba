"""ONNX files of decoders, and folders with one: what exporters write beside the graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from nacre.base.excerpt import backquote
from nacre.llm.checkpoint.configuration import CONFIGURATION
from nacre.llm.checkpoint.json_files import JsonObject, read_json_object
from nacre.llm.checkpoint.tokenizer import folder_tokenizer_keys
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array, HasShape
from nacre.llm.onnx_decoder.decoder import GraphDecoder
from nacre.llm.onnx_decoder.graph import read_graph
from nacre.llm.rules.model import LLM02, LLM03

SUFFIX = ".onnx"
# Where exporters put a decoder that has a cache, the one that is whole in front.
_FILES = (
    "model.onnx", "decoder_model_merged.onnx", "decoder_with_past_model.onnx", "onnx/model.onnx",
    "onnx/decoder_model_merged.onnx",
)  # fmt: skip
_SETTINGS = "genai_config.json"
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions")
_UNSAID_CONTEXT = 1 << 17  # positions, where nothing beside a graph says how many it knows
_MOST_CONTEXT = 1 << 31


@dataclass(frozen=True, eq=False)
class OnnxSource:
    """A decoder from ONNX, with what is said of it beside; its tensors stay in its graph."""

    name: str
    metadata: Mapping[str, Value]
    decoder: GraphDecoder = field(repr=False)
    tensors: Mapping[str, HasShape] = field(default_factory=dict, repr=False)

    def tensor(self, name: str) -> Array:
        """There is none by a name of GGUF."""
        raise refusal(LLM03, self.name, f"the graph has no tensor {backquote(name)}")


def onnx_file(path: str | os.PathLike[str]) -> Path | None:
    """The ONNX file of an argument: itself, or the one in a folder; None where it is another."""
    place = Path(path)
    try:
        if place.is_dir():
            return next((place / name for name in _FILES if (place / name).is_file()), None)
    except (OSError, ValueError):
        return None
    return place if place.suffix.lower() == SUFFIX else None


def read_onnx_decoder(file: str | os.PathLike[str]) -> OnnxSource:
    """The decoder of an ONNX file; its tokenizer and sizes are looked for beside it."""
    path = Path(file)
    graph = read_graph(path)
    folder = next((f for f in (path.parent, path.parent.parent) if _has_settings(f)), path.parent)
    parsed = _read_object(folder / CONFIGURATION)
    decoder = GraphDecoder.of(
        graph, _context(str(folder), parsed, _read_object(folder / _SETTINGS))
    )
    metadata = {**folder_tokenizer_keys(folder, parsed), **decoder.config.metadata}
    return OnnxSource(str(path), MappingProxyType(metadata), decoder)


def _has_settings(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (CONFIGURATION, _SETTINGS))


def _read_object(path: Path) -> JsonObject:
    return read_json_object(path) if os.path.lexists(path) else {}


def _context(name: str, parsed: JsonObject, settings: JsonObject) -> int:
    """The positions that a model knows, as the files beside it have them."""
    model = settings.get("model")
    known = [parsed[key] for key in _CONTEXT_KEYS if key in parsed]
    if isinstance(model, dict) and "context_length" in model:
        known.append(model["context_length"])
    for count in known:
        if type(count) is not int or not 1 < count < _MOST_CONTEXT:
            message = f"the model knows {backquote(str(count)[:40])} positions, expected a number"
            raise refusal(LLM02, name, message)
    return min(known, default=_UNSAID_CONTEXT)
