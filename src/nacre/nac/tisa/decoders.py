"""Decoders: steps that change a list of tokens, after which the tokens are one text.

TISA has no instructions for them. What the instructions for the way there do not tell stands in a
resource of ours, in the words of `tokenizer.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any, cast

import msgspec
from msgspec import Struct

from nacre.nac.format.cursor import Broken
from nacre.nac.format.positions import Position
from nacre.nac.rules.tokenizer import NAC65, NAC67, NAC70
from nacre.nac.tisa.bundle import refusal
from nacre.nac.tisa.characters import letter_bytes

RESOURCE = "nacre.decoder.json"
SPACE_MARK = "\u2581"
_MOST_STEPS = 64
_GROWTH = 64  # characters of a text for each of its tokens' characters
_BYTE = re.compile(r"<0x([0-9a-fA-F]{2})>")
# What WordPiece writes apart and people do not, in the order of the replacements.
_CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
    (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
# Decoders of the `tokenizers` library have one more, which `transformers` does not.
_CLEANED_TOKENS = (*_CLEANED[:7], (" do not", " don't"), *_CLEANED[7:])


class ByteLevel(Struct, frozen=True, tag=True, tag_field="type"):
    """Letters are bytes again; a token with any other letter is itself."""


class WordPiece(Struct, frozen=True, tag=True, tag_field="type"):
    """Words apart, their parts together."""

    prefix: str = "##"
    cleanup: bool = True


class Metaspace(Struct, frozen=True, tag=True, tag_field="type"):
    """A mark is a space, and in the first token nothing, unless none was put there."""

    replacement: str = SPACE_MARK
    prepend_scheme: str = "always"


class BPEDecoder(Struct, frozen=True, tag=True, tag_field="type"):
    """A suffix is a space, and in the last token nothing."""

    suffix: str = "</w>"


class Fuse(Struct, frozen=True, tag=True, tag_field="type"):
    """All tokens become one."""


class Strip(Struct, frozen=True, tag=True, tag_field="type"):
    """Every token loses so many characters of one kind at its ends, if it has them."""

    content: str
    start: int
    stop: int


class Replace(Struct, frozen=True, tag=True, tag_field="type"):
    """In every token a text becomes another one."""

    pattern: str
    content: str


class ByteFallback(Struct, frozen=True, tag=True, tag_field="type"):
    """Tokens such as `<0x0A>` are bytes; those in a row that are no UTF-8 are unknown, each."""


class CTC(Struct, frozen=True, tag=True, tag_field="type"):
    """Of equal tokens in a row one is left, of padding none."""

    pad_token: str = "<pad>"
    word_delimiter_token: str = "|"
    cleanup: bool = True


class SentencePiece(Struct, frozen=True, tag=True, tag_field="type"):
    """What SentencePiece does: marks are spaces, but for what was put in front of the text."""

    control: tuple[str, ...]  # tokens without a text
    unknown: str
    surface: str  # the text of what is unknown
    has_bytes: bool
    drops_mark: bool  # the first mark is none
    drops_marks: bool  # nor is one behind it


class RefusedDecoder(Struct, frozen=True, tag=True, tag_field="type"):
    """A decoder that cannot be run here, and why: texts are encoded all the same."""

    reason: str


Step = (
    ByteLevel | WordPiece | Metaspace | BPEDecoder | Fuse | Strip | Replace | ByteFallback | CTC
    | SentencePiece | RefusedDecoder
)  # fmt: skip


class TokenDecoder(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How ids become text: without a decoder tokens stand with spaces between them."""

    decoder: tuple[Step, ...] | None
    special: tuple[int, ...] = ()  # ids that are left out on request, in order
    # Ids whose text is not their token: added ones that are looked for in another form.
    texts: dict[int, str] = {}

    @property
    def joins_bytes(self) -> bool:
        """Whether tokens such as `<0x0A>` are bytes."""
        return any(
            isinstance(step, ByteFallback) or (isinstance(step, SentencePiece) and step.has_bytes)
            for step in self.decoder or ()
        )

    def text_of(self, tokens: list[str]) -> str:
        """The text of tokens; InputError where a decoder cannot, or makes a text without end."""
        if self.decoder is None:
            return " ".join(tokens)
        most = _GROWTH * (sum(map(len, tokens)) + 1)
        for step in self.decoder:
            tokens = _RUNS[type(step)](step, tokens)
            if sum(map(len, tokens)) > most:
                message = f"the decoder makes more than {most:,} characters of the tokens"
                raise refusal(NAC67, message)
        return "".join(tokens)


def byte_of(token: str) -> int | None:
    """The byte that a token such as `<0x0A>` stands for."""
    return int(token[3:5], 16) if _BYTE.fullmatch(token) else None


def encode_decoder(decoding: TokenDecoder) -> bytes:
    """The resource."""
    return msgspec.json.encode(decoding)


def read_decoder(resources: Mapping[str, bytes | memoryview]) -> TokenDecoder | None:
    """What the resource says, where there is one; `Broken` where it is malformed."""
    raw = resources.get(RESOURCE)
    if raw is None:
        return None
    try:
        decoder = msgspec.json.decode(bytes(raw), type=TokenDecoder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(NAC65, Position(0, "RSRC"), f"`{RESOURCE}` is malformed: {error}") from None
    steps = decoder.decoder or ()
    if len(steps) > _MOST_STEPS:
        message = f"`{RESOURCE}` has {len(steps)} steps, at most {_MOST_STEPS}"
        raise Broken(NAC65, Position(0, "RSRC"), message)
    if any(isinstance(step, Replace) and not step.pattern for step in steps):
        raise Broken(NAC65, Position(0, "RSRC"), f"`{RESOURCE}` replaces the empty text")
    return decoder


def _byte_level(step: ByteLevel, tokens: list[str]) -> list[str]:
    bytes_of = letter_bytes()
    raw = bytearray()
    for token in tokens:
        found = [bytes_of.get(letter) for letter in token]
        raw += token.encode("utf-8") if None in found else bytes(cast("list[int]", found))
    return [raw.decode("utf-8", errors="replace")]


def _word_piece(step: WordPiece, tokens: list[str]) -> list[str]:
    made: list[str] = []
    for index, token in enumerate(tokens):
        if index:
            is_part = token.startswith(step.prefix)
            token = token.replace(step.prefix, "", 1) if is_part else f" {token}"
        made.append(_clean_token(token) if step.cleanup else token)
    return made


def clean_text(text: str) -> str:
    """A text without the spaces that tokens have before punctuation and short forms."""
    return _replace_all(text, _CLEANED)


def _clean_token(token: str) -> str:
    return _replace_all(token, _CLEANED_TOKENS)


def _replace_all(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for written, meant in pairs:
        text = text.replace(written, meant)
    return text


def _metaspace(step: Metaspace, tokens: list[str]) -> list[str]:
    first = " " if step.prepend_scheme == "never" else ""
    return [
        token.replace(step.replacement, " " if index else first)
        for index, token in enumerate(tokens)
    ]


def _remove_suffix(step: BPEDecoder, tokens: list[str]) -> list[str]:
    last = len(tokens) - 1
    return [t.replace(step.suffix, " " if at < last else "") for at, t in enumerate(tokens)]


def _strip(step: Strip, tokens: list[str]) -> list[str]:
    return [_strip_ends(token, step) for token in tokens]


def _strip_ends(token: str, step: Strip) -> str:
    start, stop = 0, len(token)
    while start < min(step.start, stop) and token[start] == step.content:
        start += 1
    least = max(start, len(token) - step.stop)
    while stop > least and token[stop - 1] == step.content:
        stop -= 1
    return token[start:stop]


def _byte_fallback(step: ByteFallback, tokens: list[str]) -> list[str]:
    texts: list[str] = []
    for is_byte, run in groupby(tokens, lambda token: _BYTE.fullmatch(token) is not None):
        if not is_byte:
            texts += run
            continue
        raw = bytes(int(token[3:5], 16) for token in run)
        try:
            texts.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            texts += ["\ufffd"] * len(raw)
    return texts


def _ctc(step: CTC, tokens: list[str]) -> list[str]:
    made: list[str] = []
    for token, _ in groupby(tokens):
        text = token.replace(step.pad_token, "") if step.pad_token else token
        if step.cleanup:
            text = _clean_token(text).replace(step.word_delimiter_token, " ")
        made += [text] if text else []
    return made


def _sentence_piece(step: SentencePiece, tokens: list[str]) -> list[str]:
    control = frozenset(step.control)
    texts: list[str] = []
    is_start, has_mark = True, False  # whether nothing came yet; whether a mark was dropped
    for is_byte, run in groupby(tokens, lambda t: step.has_bytes and bool(_BYTE.fullmatch(t))):
        if is_byte:
            texts.append(_valid_text(bytes(int(token[3:5], 16) for token in run)))
            continue
        for token in run:
            is_start = is_start and not has_mark and not texts
            has_mark = False
            if token in control:
                continue
            if token == step.unknown:
                texts.append(step.surface)
                continue
            if is_start and step.drops_mark and token.startswith(SPACE_MARK):
                token = token[1:]
                has_mark = not step.drops_marks
            if token:
                texts.append(token.replace(SPACE_MARK, " "))
    return texts


def _valid_text(raw: bytes) -> str:
    """Bytes as UTF-8; each one that is part of no character is unknown alone."""
    parts: list[str] = []
    at = 0
    while at < len(raw):
        size = next((n for n in range(1, 5) if _is_character(raw[at : at + n])), 0)
        parts.append(raw[at : at + size].decode("utf-8") if size else "\ufffd")
        at += size or 1
    return "".join(parts)


def _is_character(raw: bytes) -> bool:
    try:
        return len(raw.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


def _refuse(step: RefusedDecoder, tokens: list[str]) -> list[str]:
    raise refusal(NAC70, f"ids cannot be decoded: {step.reason}")


_RUNS: Mapping[type[Struct], Callable[[Any, list[str]], list[str]]] = MappingProxyType(
    {
        ByteLevel: _byte_level,
        WordPiece: _word_piece,
        Metaspace: _metaspace,
        BPEDecoder: _remove_suffix,
        Fuse: lambda _, tokens: ["".join(tokens)],
        Strip: _strip,
        Replace: lambda step, tokens: [t.replace(step.pattern, step.content) for t in tokens],
        ByteFallback: _byte_fallback,
        CTC: _ctc,
        SentencePiece: _sentence_piece,
        RefusedDecoder: _refuse,
    }
)
