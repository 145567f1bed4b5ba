"""What a model gives: ids, and where in the fragment each comes from."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple, Protocol

from nacre.nac.tisa.budget import Budget


class Extent(NamedTuple):
    """An id, the characters of a fragment that it stands for, and its text if not its token's."""

    id: int
    start: int
    end: int
    text: str | None = None


class Model(Protocol):
    """Makes ids of fragments."""

    def __call__(self, fragment: str, budget: Budget) -> list[int]:
        """The ids of a fragment."""

    def extents(self, fragment: str, budget: Budget) -> list[Extent]:
        """The same ids with their places."""


class UnknownError(Exception):
    """A fragment that a model has no ids for."""


def byte_token(byte: int) -> str:
    """The token that stands for a byte where a character has none."""
    return f"<0x{byte:02X}>"


def extents_of_character(byte_ids: list[int], start: int, end: int) -> list[Extent]:
    """Bytes of a character: the last one has its place, those before it none of their own."""
    *before, last = byte_ids
    return [*(Extent(index, start, start) for index in before), Extent(last, start, end)]


def extents_of_bytes(fragment: str, ids: list[int], lengths: list[int]) -> list[Extent]:
    """Extents of ids that follow each other and take so many bytes each."""
    ends = list(accumulate(lengths))
    if fragment.isascii():
        return [Extent(i, end - n, end) for i, n, end in zip(ids, lengths, ends, strict=True)]
    owners = [at for at, c in enumerate(fragment) for _ in range(len(c.encode("utf-8")))]
    last = len(owners) - 1  # a suffix that became bytes has no place of its own
    return [
        Extent(i, owners[min(end - n, last)], owners[min(end - 1, last)] + 1)
        for i, n, end in zip(ids, lengths, ends, strict=True)
    ]
