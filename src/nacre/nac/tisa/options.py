"""What a tokenizer does beside making ids of one text: pairs, types, lengths.

TISA has no instructions for it. It stands in a resource of ours, in the words of `tokenizer.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from nacre.nac.format.cursor import Broken
from nacre.nac.format.positions import Position
from nacre.nac.rules.tokenizer import NAC65

RESOURCE = "nacre.encoding.json"
Side = Literal["left", "right"]
# Special tokens of these names are for padding: what `tokenizers` and SentencePiece call it.
PAD_TOKENS = ("[PAD]", "<pad>")


class TextSlot(Struct, frozen=True, tag="text", omit_defaults=True):
    """The ids of the first text or of the second."""

    index: Literal[0, 1]
    type_id: int = 0
    # The type of what is cut off, if special tokens stand around it; None: the number of the text.
    rest_type_id: int | None = None


class SpecialTokens(Struct, frozen=True, tag="special"):
    """Ids that stand in a template, with their tokens."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    type_id: int = 0


Template = tuple[TextSlot | SpecialTokens, ...]


class Trimming(Struct, frozen=True):
    """Places leave the white space at the ends of tokens out."""

    has_prefix: bool  # a space in front of the text was put there, and has no place


class Truncation(Struct, frozen=True):
    """How many ids a text may have, and where they are cut."""

    max_length: int
    stride: int = 0
    strategy: Literal["LongestFirst", "OnlyFirst", "OnlySecond"] = "LongestFirst"
    direction: Literal["Left", "Right"] = "Right"


class Padding(Struct, frozen=True):
    """How many ids a text has at least; None: as many as the longest of a batch."""

    length: int | None
    id: int = 0
    type_id: int = 0
    token: str = "[PAD]"
    direction: Literal["Left", "Right"] = "Right"
    multiple: int | None = None

    def size(self, longest: int) -> int:
        """The length for texts of which the longest has so many ids."""
        size = longest if self.length is None else self.length
        return -(-size // self.multiple) * self.multiple if self.multiple else size


class EncodingOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All of it; None where a program does not do it."""

    single: Template | None = None
    pair: Template | None = None
    trimming: tuple[Trimming, ...] = ()  # one after another
    numbers_pieces: bool = False  # every item of a template counts as a text of its own
    # A text without another, and what is cut off, say of which text they are; padding does not.
    numbers_texts: bool = True
    truncation: Truncation | None = None
    padding: Padding | None = None


def encode_options(options: EncodingOptions) -> bytes:
    """The resource."""
    return msgspec.json.encode(options)


def read_options(resources: Mapping[str, bytes | memoryview]) -> EncodingOptions:
    """What the resource says, nothing where there is none; `Broken` where it is malformed."""
    raw = resources.get(RESOURCE)
    if raw is None:
        return EncodingOptions()
    try:
        options = msgspec.json.decode(bytes(raw), type=EncodingOptions)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(NAC65, Position(0, "RSRC"), f"`{RESOURCE}` is malformed: {error}") from None
    reason = _reason(options)
    if reason:
        raise Broken(NAC65, Position(0, "RSRC"), f"`{RESOURCE}` {reason}")
    return options


def _reason(options: EncodingOptions) -> str | None:
    """Why options mean nothing."""
    cut, padding = options.truncation, options.padding
    if cut and (reason := truncation_problem(cut)):
        return reason
    if padding and (reason := padding_problem(padding)):
        return reason
    if any(isinstance(item, TextSlot) and item.index for item in options.single or ()):
        return "has a second text in the template for one"
    for template in (options.single, options.pair):
        for item in template or ():
            if isinstance(item, SpecialTokens) and len(item.ids) != len(item.tokens):
                return f"has {len(item.ids)} ids for {len(item.tokens)} tokens"
    return None


def truncation_problem(cut: Truncation) -> str | None:
    """Why texts cannot be cut so."""
    if not 0 <= cut.max_length <= _MOST_LENGTH:
        return f"cuts at {cut.max_length:,}, which is not between 0 and {_MOST_LENGTH:,}"
    if not 0 <= cut.stride < max(cut.max_length, 1):
        return f"cuts at {cut.max_length} with pieces that overlap by {cut.stride}"
    return None


def padding_problem(padding: Padding) -> str | None:
    """Why texts cannot be padded so."""
    for what, size in (("", padding.length), ("multiples of ", padding.multiple)):
        least = 1 if what else 0
        if size is not None and not least <= size <= MOST_PADDING:
            return f"pads to {what}{size:,}, which is not between {least} and {MOST_PADDING:,}"
    for what, value in (("id", padding.id), ("type", padding.type_id)):
        if not 0 <= value <= _MOST_PAD_ID:
            return f"pads with the {what} {value:,}, which is not between 0 and {_MOST_PAD_ID:,}"
    return None


MOST_PADDING = 1 << 24
_MOST_LENGTH = (1 << 63) - 1
_MOST_PAD_ID = (1 << 32) - 1
