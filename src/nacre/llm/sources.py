"""What a language model may come from: a file, a folder, a model in memory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from nacre.llm.checkpoint.arrays import has_weights
from nacre.llm.checkpoint.checkpoint import (
    Checkpoint,
    checkpoint_of,
    read_checkpoint,
)
from nacre.llm.encoder_decoder.model import EncoderDecoder
from nacre.llm.encoder_decoder.source import (
    MOST_SOURCE_ROWS,
    EncoderDecoderSource,
    encoder_decoder_of,
    read_encoder_decoder,
)
from nacre.llm.gguf.file import GgufFile, read_gguf
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Decoder
from nacre.llm.model.weights import ModelFile
from nacre.llm.onnx_decoder.decoder import GraphDecoder
from nacre.llm.onnx_decoder.source import OnnxSource, onnx_file, read_onnx_decoder
from nacre.llm.rules.model import LLM06

AnyDecoder = Decoder | GraphDecoder | EncoderDecoder


def open_model(source: object, tokenizer: object = None) -> ModelFile:
    """The model of a source; InputError where it is none."""
    if isinstance(source, str | os.PathLike):
        return _open_path(Path(source))
    if isinstance(source, GgufFile | Checkpoint | OnnxSource | EncoderDecoderSource):
        return source
    return encoder_decoder_of(source, tokenizer) or checkpoint_of(source, tokenizer)


def _open_path(path: Path) -> ModelFile:
    """A GGUF file, an ONNX file, or a folder: of transformers, or with a graph in it."""
    graph = None if has_weights(path) else onnx_file(path)
    if graph is not None:
        return read_onnx_decoder(graph)
    if not path.is_dir():
        return read_gguf(path)
    return read_encoder_decoder(path) or read_checkpoint(path)


def decoder_of(file: ModelFile) -> AnyDecoder:
    """The decoder of a model, with its weights; InputError where it is none that is built."""
    if isinstance(file, OnnxSource | EncoderDecoderSource):
        return file.decoder
    return Decoder.from_gguf(file)


def with_source_rows(file: ModelFile, rows: int | None) -> ModelFile:
    """A model whose sources have so many tokens at most; InputError where that cannot be said."""
    if rows is None:
        return file
    if not isinstance(file, EncoderDecoderSource) or file.config.mels:
        message = f"rows of a source are {rows!r:.40}, and the model takes no tokens as a source"
        raise refusal(LLM06, file.name, message, "leave them out")
    if type(rows) is not int or not 1 <= rows <= MOST_SOURCE_ROWS:
        message = f"rows of a source are {rows!r:.40}, expected 1 to {MOST_SOURCE_ROWS:,}"
        raise refusal(LLM06, file.name, message)
    return replace(file, source=rows)
