"""What the verbs of `nacre llm` share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.arrays import WrongUsage, unreadable_reason

if TYPE_CHECKING:
    from nacre.llm.bundle.times import LlmTime, SpeculationTime
    from nacre.llm.gguf.file import GgufFile
    from nacre.llm.model.weights import ModelFile


LONGEST_CONTEXT = 2048  # of files, unless it is asked for


@click.group()
def llm() -> None:
    """Work with language models, as GGUF files and folders of transformers bring them.

    Exit status: 0 no errors, 1 errors in the file, 2 wrong usage.
    """


def time_text(time: LlmTime, prompt_tokens: int | None = None) -> str:
    """What plans take, in a line."""
    tokens = time.chunk if prompt_tokens is None else prompt_tokens
    return (
        f"{time.first_token_ms(tokens):,.3g} ms to the first token after {tokens:,}, "
        f"{time.tokens_per_second:,.1f} tokens/s ({time.prefill_cycles:,} cycles for "
        f"{time.chunk:,} tokens of a prompt, {time.decode_cycles:,} for one, at "
        f"{time.clock_mhz:,.0f} MHz)"
    )


def speculation_text(time: SpeculationTime) -> str:
    """How guessing went, and what a token took, in a line."""
    counts = time.counts
    return (
        f"{counts.accepted:,} of {counts.guessed:,} guesses accepted "
        f"({100 * counts.accepted_share:.0f} %); {time.cycles_per_token:,.0f} cycles a token for "
        f"{counts.tokens:,}, {time.decode_cycles:,} without a draft"
    )


def is_bundle_folder(name: str) -> bool:
    """Whether an argument names a folder with no model of others in it."""
    from nacre.llm.checkpoint.checkpoint import is_checkpoint
    from nacre.llm.onnx_decoder.source import onnx_file

    return os.path.isdir(name) and not is_checkpoint(Path(name)) and onnx_file(name) is None


def is_language_model(name: str) -> bool:
    """Whether an argument is a GGUF file by its name, or the folder of a checkpoint."""
    from nacre.llm.checkpoint.checkpoint import is_checkpoint

    return name.lower().endswith(".gguf") or is_checkpoint(Path(name))


def open_model_file(name: str) -> ModelFile:
    """The model of an argument; WrongUsage where there is none, InputError where it is wrong."""
    from nacre.llm.onnx_decoder.source import onnx_file
    from nacre.llm.sources import open_model

    if os.path.isdir(name):
        return open_model(name)
    if onnx_file(name) is None:
        return open_gguf(name)
    _require_readable(name)
    return open_model(name)


def open_gguf(name: str) -> GgufFile:
    """The file of an argument; WrongUsage where there is none, InputError where it is wrong."""
    from nacre.llm.gguf.file import read_gguf

    _require_readable(name)
    return read_gguf(name)


def _require_readable(name: str) -> None:
    reason = unreadable_reason(Path(name))
    if reason is not None:
        raise WrongUsage(reason)
