"""From the files of a tokenizer to a program: which kind a file is, and who reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from nacre.base.source import Unreadable, read_bytes
from nacre.nac.tisa.bundle import Bundle, join
from nacre.nac.tisa.files.byte_ranks import read_json, tekken_program, tiktoken_program
from nacre.nac.tisa.files.problems import FileProblem, unsupported
from nacre.nac.tisa.files.sentencepiece import sentencepiece_program
from nacre.nac.tisa.hub.compiler import compile_hub_bundle

_HUB = "tokenizer.json"
# In a folder, the first of these that is there.
_TEKKEN = "tekken.json"
_FILES = (_HUB, _TEKKEN, "spiece.model", "tokenizer.model", "sentencepiece.bpe.model")
_MOST_BYTES = 1 << 28
_RANKED_LINE = re.compile(rb"[A-Za-z0-9+/=]+ [0-9]+\r?(\n|\Z)")
_TEKKEN_TOKEN = re.compile(rb'"token_bytes"')
_HEAD = 1 << 16


def compile_tokenizer(
    source: object,
    *,
    unlimited: bool = False,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> bytes:
    """A tokenizer as a manifest and its vocabulary in one piece.

    Args:
        source: A folder, the path of a file (`tokenizer.json`, `tekken.json`, one of SentencePiece
            or of tiktoken), the text of a `tokenizer.json`, or a `tokenizers.Tokenizer`.
        unlimited: Take a tokenizer that truncates or pads for one that does not. Both are options
            of `TisaProgram.encode`, too.
        pattern: How text is cut, which a file of tiktoken does not say: a pattern, or the name of
            one (`cl100k_base`).
        special_tokens: Tokens with their ids that a file of tiktoken does not have.
    """
    bundle = compile_bundle(
        source, unlimited=unlimited, pattern=pattern, special_tokens=special_tokens
    )
    return join(bundle.manifest, bundle.resources)


def compile_bundle(
    source: object,
    *,
    unlimited: bool = False,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Bundle:
    """The manifest for PROC and the files for RSRC; see `compile_tokenizer`."""
    path = _file_of(source)
    is_cut_by_caller = pattern is not None or bool(special_tokens)
    if path is None or path.name == _HUB:
        _refuse_request(is_cut_by_caller, _HUB)
        return compile_hub_bundle(source, unlimited=unlimited)
    raw = read_bytes(path, limit=_MOST_BYTES)
    if isinstance(raw, Unreadable):
        raise FileProblem(f"the file {raw.reason}").refusal(path.name)
    try:
        if raw.lstrip()[:1] == b"{":
            _refuse_request(is_cut_by_caller, path.name)
            if path.name != _TEKKEN and not _TEKKEN_TOKEN.search(raw, 0, _HEAD):
                return compile_hub_bundle(source, unlimited=unlimited)
            made = tekken_program(read_json(raw))
        elif path.suffix == ".tiktoken" or _RANKED_LINE.match(raw):
            made = tiktoken_program(raw, pattern, special_tokens or {}, path.name)
        else:
            _refuse_request(is_cut_by_caller, path.name)
            made = sentencepiece_program(raw)
    except FileProblem as problem:
        raise problem.refusal(path.name) from None
    return made.bundle(path.name)


def _refuse_request(is_made: bool, name: str) -> None:
    """InputError where a file says what its caller says too, who would not be heard."""
    if is_made:
        message = "`pattern` and `special_tokens` are for files of tiktoken"
        raise unsupported(message, "this file has its own: leave them out").refusal(name)


def _file_of(source: object) -> Path | None:
    """The file that a source means; None where it is no path."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return None
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source)
    if not path.is_dir():
        return path
    there = [path / name for name in _FILES if (path / name).exists()]
    there += sorted(path.glob("*.tiktoken"))
    return there[0] if there else path / _HUB
