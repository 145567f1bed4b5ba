"""Language models: GGUF and checkpoints in, models in Core IR, tokens out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use

if TYPE_CHECKING:
    from nacre.llm.bundle.llm_bundle import LlmBundle, build
    from nacre.llm.chat import LanguageModel
    from nacre.llm.checkpoint.checkpoint import Checkpoint, checkpoint_of, read_checkpoint
    from nacre.llm.gguf.file import GgufFile, read_gguf
    from nacre.llm.model.runner import Decoder
    from nacre.llm.nac_file.build import build_nac
    from nacre.llm.sampling import Sampling
    from nacre.llm.tokenizer.tokenizer import Tokenizer

__all__ = [
    "Checkpoint",
    "Decoder",
    "GgufFile",
    "LanguageModel",
    "LlmBundle",
    "Sampling",
    "Tokenizer",
    "build",
    "build_nac",
    "checkpoint_of",
    "read_checkpoint",
    "read_gguf",
]

load_on_use(
    __name__,
    {
        "Checkpoint": "checkpoint.checkpoint",
        "Decoder": "model.runner",
        "GgufFile": "gguf.file",
        "LanguageModel": "chat",
        "LlmBundle": "bundle.llm_bundle",
        "Sampling": "sampling",
        "build": "bundle.llm_bundle",
        "build_nac": "nac_file.build",
        "Tokenizer": "tokenizer.tokenizer",
        "checkpoint_of": "checkpoint.checkpoint",
        "read_checkpoint": "checkpoint.checkpoint",
        "read_gguf": "gguf.file",
    },
)
