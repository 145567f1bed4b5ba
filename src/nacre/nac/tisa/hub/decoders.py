"""Decoders of `tokenizer.json` as steps; one that cannot be run here says so when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.nac.tisa.decoders import (
    CTC,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    Fuse,
    Metaspace,
    RefusedDecoder,
    Replace,
    Step,
    Strip,
    WordPiece,
)
from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.hub.pre_tokenizers import metaspace_scheme

Steps = tuple[Step, ...]


def decoder_steps(part: Part) -> Steps | None:
    """What a decoder does; None where there is none."""
    return _steps(part) if part else None


def _steps(part: Part) -> Steps:
    kind = part["type"].text()
    make = _MAKERS.get(kind)
    if make is None:
        return (RefusedDecoder(f"the decoder `{kind}` is not known"),)
    return make(part)


def _sequence(part: Part) -> Steps:
    return tuple(step for inner in part["decoders"].list() for step in _steps(inner))


def _replace(part: Part) -> Steps:
    pattern = part["pattern"]
    if not pattern.has("String") or not pattern["String"].text():
        return (RefusedDecoder("the decoder replaces what a pattern matches"),)
    return (Replace(pattern["String"].text(), part["content"].text()),)


def _strip(part: Part) -> Steps:
    return (Strip(part["content"].text(), part["start"].integer(), part["stop"].integer()),)


def _metaspace(part: Part) -> Steps:
    mark = part.get("replacement", "\u2581").text()
    # Whether a mark was put in front of the first text or of each is the same on the way back.
    scheme = "never" if metaspace_scheme(part) == "never" else "always"
    return (Metaspace(mark, scheme),)


def _ctc(part: Part) -> Steps:
    padding, delimiter = part["pad_token"].text(), part["word_delimiter_token"].text()
    return (CTC(padding, delimiter, part.get("cleanup", True).flag()),)


def _word_piece(part: Part) -> Steps:
    return (WordPiece(part.get("prefix", "##").text(), part.get("cleanup", True).flag()),)


_MAKERS: Mapping[str, Callable[[Part], Steps]] = MappingProxyType(
    {
        "Sequence": _sequence,
        "ByteLevel": lambda _: (ByteLevel(),),
        "WordPiece": _word_piece,
        "Metaspace": _metaspace,
        "BPEDecoder": lambda part: (BPEDecoder(part.get("suffix", "</w>").text()),),
        "Fuse": lambda _: (Fuse(),),
        "Strip": _strip,
        "Replace": _replace,
        "ByteFallback": lambda _: (ByteFallback(),),
        "CTC": _ctc,
    }
)
