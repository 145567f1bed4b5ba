"""What a text becomes: ids with their places, cut to a length and filled up to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> Encoding:
        """Some of it."""
        return Encoding(**{name: getattr(self, name)[start:end] for name in _LISTS})

    def with_type(self, type_id: int) -> Encoding:
        """The same as another part of a pair."""
        overflowing = tuple(each.with_type(type_id) for each in self.overflowing)
        return replace(self, type_ids=[type_id] * len(self), overflowing=overflowing)


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
    return Encoding(**lists)


def truncate(whole: Encoding, length: int, stride: int, side: str) -> Encoding:
    """The first or last so many ids; the rest in pieces as long, which overlap by `stride`."""
    size = len(whole)
    if size <= length:
        return whole
    if length == 0:
        return replace(whole.part(0, 0), overflowing=(replace(whole, overflowing=()),))
    starts = range(0, max(size - stride, 1), length - stride)
    if side == "right":
        parts = [whole.part(start, min(start + length, size)) for start in starts]
    else:
        parts = [whole.part(max(size - start - length, 0), size - start) for start in starts]
    return replace(parts[0], overflowing=tuple(parts[1:]))


def pad(whole: Encoding, length: int, token: tuple[int, str], type_id: int, side: str) -> Encoding:
    """Padding up to a length, for what was cut off too."""
    overflowing = tuple(pad(each, length, token, type_id, side) for each in whole.overflowing)
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
