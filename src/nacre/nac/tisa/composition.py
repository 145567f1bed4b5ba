"""Texts put together: cut to their length, into a template, and padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.nac.rules.tokenizer import NAC70
from nacre.nac.tisa.bundle import refusal
from nacre.nac.tisa.character_data import WHITE_SPACE
from nacre.nac.tisa.characters import byte_alphabet, code_points
from nacre.nac.tisa.encoding import (
    Encoding,
    constant_encoding,
    join_encodings,
    pad,
    trim_offsets,
    truncate,
)
from nacre.nac.tisa.options import (
    EncodingOptions,
    Padding,
    SpecialTokens,
    Template,
    TextSlot,
    Truncation,
)

_BLANKS = frozenset({*map(chr, code_points(WHITE_SPACE)), byte_alphabet()[0x20]})
_PAIR: Template = (TextSlot(0, 0), TextSlot(1, 1))
_Tokens = Sequence[tuple[int, str]]


class Composer:
    """Puts one text or two into the template for them."""

    def __init__(self, options: EncodingOptions, before: _Tokens, behind: _Tokens) -> None:
        single = options.single
        if single is None:
            single = (_special(before), TextSlot(0), _special(behind))
        self._templates = single, _PAIR if options.pair is None else options.pair
        self._trimming = options.trimming

    def added(self, count: int) -> int:
        """How many special tokens the template for so many texts has."""
        template = self._templates[count - 1]
        return sum(len(item.ids) for item in template if isinstance(item, SpecialTokens))

    def compose(self, parts: list[Encoding], add_special_tokens: bool) -> Encoding:
        """One encoding; pieces of a single text that were cut off stand in the template too."""
        for trimming in self._trimming:
            parts = [trim_offsets(part, _BLANKS, trimming.has_prefix) for part in parts]
        template = self._template(len(parts), add_special_tokens)
        if not template:
            raise refusal(NAC70, "the tokenizer has no template for two texts")
        whole = _fill(template, parts)
        if len(parts) > 1:
            return whole
        return replace(
            whole, overflowing=tuple(_fill(template, [each]) for each in parts[0].overflowing)
        )

    def _template(self, count: int, add_special_tokens: bool) -> Template:
        template = self._templates[count - 1]
        if add_special_tokens:
            return template
        return tuple(item for item in template if isinstance(item, TextSlot))


def _special(tokens: _Tokens) -> SpecialTokens:
    return SpecialTokens(tuple(i for i, _ in tokens), tuple(text for _, text in tokens))


def _fill(template: Template, parts: list[Encoding]) -> Encoding:
    filled: list[Encoding] = []
    for item in template:
        if isinstance(item, TextSlot):
            filled.append(replace(parts[item.index], overflowing=()).with_type(item.type_id))
        else:
            tokens = list(zip(item.ids, item.tokens, strict=True))
            filled.append(constant_encoding(tokens, item.type_id, is_used=True))
    return join_encodings(filled)


def truncate_texts(parts: list[Encoding], cut: Truncation | None, added: int) -> list[Encoding]:
    """Texts cut so that they and so many special tokens have the length; InputError if not."""
    if cut is None:
        return parts
    room = cut.max_length - added
    if room < 0:
        raise refusal(NAC70, f"{cut.max_length} ids have no room for the special tokens alone")
    sizes = [len(part) for part in parts]
    if sum(sizes) <= room and room:
        return parts
    wanted = _lengths(sizes, room, cut)
    side = cut.direction.lower()
    if any(0 < size <= cut.stride for size, old in zip(wanted, sizes, strict=True) if size < old):
        shown = f"{min(wanted)} ids that are left"
        raise refusal(NAC70, f"pieces overlap by {cut.stride}, which is no less than the {shown}")
    return [
        truncate(part, size, cut.stride, side) for part, size in zip(parts, wanted, strict=True)
    ]


def _lengths(sizes: list[int], room: int, cut: Truncation) -> list[int]:
    """How long texts may be that are too long together."""
    if room == 0:
        return [0] * len(sizes)
    if cut.strategy == "LongestFirst":
        return [room] if len(sizes) == 1 else _share(sizes, room)
    index = int(cut.strategy == "OnlySecond")
    if index >= len(sizes):
        raise refusal(NAC70, "only the second text is to be cut, and there is none")
    left = sizes[index] - (sum(sizes) - room)
    if left <= 0:
        message = f"a text of {sizes[index]} ids is too short to be cut by {sum(sizes) - room}"
        raise refusal(NAC70, message)
    return [left if at == index else size for at, size in enumerate(sizes)]


def _share(sizes: list[int], room: int) -> list[int]:
    """The longer one of two is cut first; when both are alike, both."""
    short, long = sorted(sizes)
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short, long = room // 2, room // 2 + room % 2
    return [long, short] if sizes[0] > sizes[1] else [short, long]


def pad_batch(encodings: list[Encoding], padding: Padding | None) -> list[Encoding]:
    """All of them up to one length."""
    if padding is None or not encodings:
        return encodings
    size = padding.size(max(map(len, encodings)))
    token = padding.id, padding.token
    side = padding.direction.lower()
    return [pad(each, size, token, padding.type_id, side) for each in encodings]
