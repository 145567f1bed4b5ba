"""What a text becomes: ids with their places, cut to a length and filled up to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

Offsets = tuple[int, int]
_NOWHERE: Offsets = (0, 0)


@dataclass(frozen=True)
class Encoding:
    """Ids and what belongs to each: lists of one length."""

    ids: list[int]
    offsets: list[Offsets]  # first character and the one behind the last, in the original text
    tokens: list[str]
    type_ids: list[int]
    word_ids: list[int | None]  # the number of the fragment
    special_tokens_mask: list[int]  # 1: put there by a template or as padding
    attention_mask: list[int]  # 0: padding
    overflowing: tuple[Encoding, ...] = ()  # what was cut off, in pieces
    # Where each text stands among the ids.
    sequence_ranges: Mapping[int, range] = field(default_factory=dict)

    @property
    def sequence_ids(self) -> list[int | None]:
        """The text that every id is of, 0 or 1; None for special tokens.

        A text that no range is known of counts as all of it: so does the `tokenizers` library.
        """
        ids: list[int | None] = [None] * len(self)
        for index in range(len(self.sequence_ranges) or 1):
            for at in self.sequence_ranges.get(index, range(len(self))):
                ids[at] = index
        return ids

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> Encoding:
        """Some of it."""
        return Encoding(**{name: getattr(self, name)[start:end] for name in _LISTS})

    def with_type(self, type_id: int) -> Encoding:
        """The same as another part of a pair; what was cut off stays as it is."""
        return replace(self, type_ids=[type_id] * len(self))

    def with_sequence(self, index: int) -> Encoding:
        """The same as the text of that number."""
        ranges = {**self.sequence_ranges, index: range(len(self))}
        return replace(self, sequence_ranges=ranges)


_LISTS = (
    "ids", "offsets", "tokens", "type_ids", "word_ids", "special_tokens_mask", "attention_mask",
)  # fmt: skip


def constant_encoding(tokens: Sequence[tuple[int, str]], type_id: int, is_used: bool) -> Encoding:
    """Tokens that are in no text: special ones, or padding."""
    count = len(tokens)
    return Encoding(
        [index for index, _ in tokens], [_NOWHERE] * count, [text for _, text in tokens],
        [type_id] * count, [None] * count, [1] * count, [int(is_used)] * count,
    )  # fmt: skip


def join_encodings(parts: Sequence[Encoding]) -> Encoding:
    """One after another, without what was cut off."""
    lists: dict[str, Any] = {
        name: list(chain.from_iterable(getattr(part, name) for part in parts)) for name in _LISTS
    }
    ranges: dict[int, range] = {}
    start = 0
    for part in parts:
        ranges |= _move_ranges(part.sequence_ranges, start)
        start += len(part)
    return Encoding(**lists, sequence_ranges=ranges)


def _move_ranges(ranges: Mapping[int, range], by: int) -> dict[int, range]:
    return {index: range(each.start + by, each.stop + by) for index, each in ranges.items()}


def merge_encodings(parts: Iterable[Encoding]) -> Encoding:
    """One after another; what was cut off of one stands beside all that the others are.

    The order is the one of the `tokenizers` library, which has some of them twice: pieces of one
    part with the whole other part keep that one's pieces beside them.
    """
    first, *others = parts
    for other in others:
        first = _merge_pair(first, other)
    return first


def _merge_pair(one: Encoding, other: Encoding) -> Encoding:
    overflowing: list[Encoding] = []
    for piece in one.overflowing:
        overflowing.append(_merge_pair(piece, other))
        overflowing += (_merge_pair(piece, rest) for rest in other.overflowing)
    overflowing += (_merge_pair(one, rest) for rest in other.overflowing)
    return replace(join_encodings((one, other)), overflowing=tuple(overflowing))


def truncate(whole: Encoding, length: int, stride: int, side: str) -> Encoding:
    """The first or last so many ids; the rest in pieces as long, which overlap by `stride`."""
    size = len(whole)
    if size <= length:
        return whole
    if length == 0:
        return replace(whole.part(0, 0), overflowing=(whole,))
    starts = range(0, max(size - stride, 1), length - stride)
    if side == "right":
        parts = [whole.part(start, min(start + length, size)) for start in starts]
    else:
        parts = [whole.part(max(size - start - length, 0), size - start) for start in starts]
    return replace(parts[0], overflowing=tuple(parts[1:]))


def pad(whole: Encoding, length: int, token: tuple[int, str], type_id: int, side: str) -> Encoding:
    """Padding up to a length, for what was cut off too."""
    overflowing = tuple(pad(each, length, token, type_id, side) for each in whole.overflowing)
    if len(whole) >= length:
        return replace(whole, overflowing=overflowing)
    padding = constant_encoding([token] * (length - len(whole)), type_id, is_used=False)
    bare = replace(whole, overflowing=())
    parts = [bare, padding] if side == "right" else [padding, bare]
    return replace(join_encodings(parts), overflowing=overflowing)


def trim_offsets(whole: Encoding, spaces: frozenset[str], has_prefix: bool) -> Encoding:
    """Places without the white space at the ends of tokens; a prefix that was put in is none."""
    offsets = list(whole.offsets)
    blanks = "".join(spaces)
    for at, (token, (start, end)) in enumerate(zip(whole.tokens, offsets, strict=True)):
        leading = len(token) - len(token.lstrip(blanks))
        trailing = len(token) - len(token.rstrip(blanks))
        # One space in front of the first token may be the prefix; more were there before.
        if leading and not (leading == 1 and has_prefix and (at == 0 or start == 0)):
            start = min(start + leading, end)
        if trailing and end >= trailing:
            end = max(end - trailing, start)
        offsets[at] = start, end
    overflowing = tuple(trim_offsets(each, spaces, has_prefix) for each in whole.overflowing)
    return replace(whole, offsets=offsets, overflowing=overflowing)
