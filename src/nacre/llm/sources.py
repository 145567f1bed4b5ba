"""What a language model may come from: a GGUF file, a folder of transformers, a model in memory."""

from __future__ import annotations

import os
from pathlib import Path

from nacre.llm.checkpoint.checkpoint import (
    Checkpoint,
    checkpoint_of,
    read_checkpoint,
)
from nacre.llm.gguf.file import GgufFile, read_gguf
from nacre.llm.model.weights import ModelFile


def open_model(source: object, tokenizer: object = None) -> ModelFile:
    """The model of a source; InputError where it is none."""
    if isinstance(source, str | os.PathLike):
        return read_checkpoint(source) if Path(source).is_dir() else read_gguf(source)
    if isinstance(source, GgufFile | Checkpoint):
        return source
    return checkpoint_of(source, tokenizer)
