"""Texts put together: cut to their length, into a template, and padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import index as integer_of
from typing import Literal

from nacre.nac.rules.tokenizer import NAC67, NAC70
from nacre.nac.tisa.bundle import refusal
from nacre.nac.tisa.character_data import WHITE_SPACE
from nacre.nac.tisa.characters import byte_alphabet, code_points
from nacre.nac.tisa.encoding import (
    Encoding,
    constant_encoding,
    join_encodings,
    merge_encodings,
    pad,
    trim_offsets,
    truncate,
)
from nacre.nac.tisa.options import (
    MOST_PADDING,
    EncodingOptions,
    Padding,
    SpecialTokens,
    Template,
    TextSlot,
    Truncation,
    padding_problem,
    truncation_problem,
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
        self._options = options

    def special_token_count(self, count: int) -> int:
        """How many special tokens the template for so many texts has."""
        template = self._templates[count - 1]
        return sum(len(item.ids) for item in template if isinstance(item, SpecialTokens))

    def compose(self, parts: list[Encoding], add_special_tokens: bool) -> Encoding:
        """One encoding; pieces of texts that were cut off stand in the template too."""
        for trimming in self._options.trimming:
            parts = [trim_offsets(part, _BLANKS, trimming.has_prefix) for part in parts]
        template = self._template(len(parts), add_special_tokens)
        if not template:
            raise refusal(NAC70, "the tokenizer has no template for two texts")
        _require_room(template, parts)
        parts = self._number_texts(parts)
        pieces = [_piece(item, parts, add_special_tokens) for item in template]
        if self._options.numbers_pieces:
            pieces = [piece.with_sequence(index) for index, piece in enumerate(pieces)]
        is_whole = not any(part.overflowing for part in parts)
        return join_encodings(pieces) if is_whole else merge_encodings(pieces)

    def _number_texts(self, parts: list[Encoding]) -> list[Encoding]:
        if self._options.numbers_texts:
            return [_number_rest(part.with_sequence(at), at) for at, part in enumerate(parts)]
        is_pair = len(parts) > 1
        return [part.with_sequence(at) if is_pair else part for at, part in enumerate(parts)]

    def _template(self, count: int, add_special_tokens: bool) -> Template:
        template = self._templates[count - 1]
        if add_special_tokens:
            return template
        return tuple(item for item in template if isinstance(item, TextSlot))


def _special(tokens: _Tokens) -> SpecialTokens:
    return SpecialTokens(tuple(i for i, _ in tokens), tuple(text for _, text in tokens))


def _number_rest(part: Encoding, index: int) -> Encoding:
    rest = tuple(each.with_sequence(index) for each in part.overflowing)
    return replace(part, overflowing=rest)


def _piece(
    item: TextSlot | SpecialTokens, parts: list[Encoding], add_special_tokens: bool
) -> Encoding:
    """What stands in the place of an item."""
    if isinstance(item, SpecialTokens):
        tokens = list(zip(item.ids, item.tokens, strict=True))
        return constant_encoding(tokens, item.type_id, is_used=True)
    part = parts[item.index].with_type(item.type_id)
    if item.rest_type_id is None or not add_special_tokens:
        return part
    rest = tuple(each.with_type(item.rest_type_id) for each in part.overflowing)
    return replace(part, overflowing=rest)


def _require_room(template: Template, parts: list[Encoding]) -> None:
    """Refuse what is cut off in so many pieces that each with each of another text is too much."""
    count = 1
    for item in template:
        if isinstance(item, TextSlot):
            # A piece stands beside those of another text, and those again beside it.
            count *= 1 + 2 * len(parts[item.index].overflowing)
    longest = max((len(each) for part in parts for each in part.overflowing), default=0)
    if count * longest > _MOST_REST:
        message = f"what is cut off makes {count:,} pieces of up to {longest:,} ids"
        raise refusal(NAC67, message, help=_REST_HELP)


_MOST_REST = 1 << 22  # ids
_REST_HELP = "`encode` gives the ids without what is cut off"


def truncate_texts(
    parts: list[Encoding], cut: Truncation | None, added: int, keeps_rest: bool
) -> list[Encoding]:
    """Texts cut so that they and so many special tokens have the length; InputError if not.

    Where special tokens alone are longer nothing is cut, which is what the library does.
    """
    if cut is None or cut.max_length < added:
        return parts
    room = cut.max_length - added
    sizes = [len(part) for part in parts]
    if sum(sizes) <= room and room:
        return parts
    wanted = _lengths(sizes, room, cut)
    side = cut.direction.lower()
    if any(0 < size <= cut.stride for size, old in zip(wanted, sizes, strict=True) if size < old):
        shown = f"{min(wanted)} ids that are left"
        raise refusal(NAC70, f"pieces overlap by {cut.stride}, which is no less than the {shown}")
    if not keeps_rest:
        return [_first_part(part, n, side) for part, n in zip(parts, wanted, strict=True)]
    for size, length in zip(sizes, wanted, strict=True):
        if length and (size // (length - cut.stride) if size > length else 0) * length > _MOST_REST:
            message = f"{size:,} ids are cut into pieces of {length:,} that overlap by {cut.stride}"
            raise refusal(NAC67, message, help=_REST_HELP)
    return [
        truncate(part, size, cut.stride, side) for part, size in zip(parts, wanted, strict=True)
    ]


def _first_part(part: Encoding, length: int, side: str) -> Encoding:
    if len(part) <= length:
        return part
    return part.part(0, length) if side == "right" else part.part(len(part) - length, len(part))


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
    """All of them up to one length; InputError where that is far more than they are."""
    if padding is None or not encodings:
        return encodings
    size = padding.size(max(map(len, encodings)))
    count = sum(1 + len(each.overflowing) for each in encodings)
    most = max(MOST_PADDING, _PADDING_GROWTH * sum(map(len, encodings)))
    if count * size > most:
        message = f"{count:,} texts are padded to {size:,} ids each; at most {most:,} are made"
        raise refusal(NAC67, message)
    token = padding.id, padding.token
    side = padding.direction.lower()
    return [pad(each, size, token, padding.type_id, side) for each in encodings]


_PADDING_GROWTH = 64  # ids for each of the texts


def requested_truncation(max_length: int, side: str) -> Truncation:
    """How a call wants texts to be cut."""
    length = _integer("max_length", max_length)
    cut = Truncation(length, direction=_direction("truncate_from", side))
    if reason := truncation_problem(cut):
        raise refusal(NAC70, f"the call {reason}")
    return cut


def requested_padding(
    length: int, index: int | None, side: str | None, usual: Padding | None
) -> Padding:
    """How a call wants texts to be padded; what it does not say is as the tokenizer has it."""
    length = _integer("pad_to", length)
    if index is None and usual is None:
        raise refusal(NAC70, "the tokenizer names no token to pad with", help=_PAD_HELP)
    known = usual or Padding(length)
    index = known.id if index is None else _integer("pad_id", index)
    direction = known.direction if side is None else _direction("pad_on", side)
    padding = Padding(length, index, direction=direction)
    if reason := padding_problem(padding):
        raise refusal(NAC70, f"the call {reason}")
    return padding


_PAD_HELP = "say which id, `pad_id=0`, if the model knows it as padding"


def _integer(name: str, value: object) -> int:
    """A number of Python's or NumPy's."""
    try:
        return integer_of(None if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError:
        raise refusal(NAC70, f"`{name}` is {value!r}, which is no integer") from None


def _direction(name: str, side: str) -> Literal["Left", "Right"]:
    if side not in ("left", "right"):
        raise refusal(NAC70, f"`{name}` is {side!r}, neither `left` nor `right`")
    return "Left" if side == "left" else "Right"
