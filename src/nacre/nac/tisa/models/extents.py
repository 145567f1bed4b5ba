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
    is_outside: bool = False  # start and end are bytes, and the fragment does not have all of them


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
    """Extents of ids that follow each other and take so many bytes each.

    Bytes of a prefix or a suffix count as well: what they push behind the end is outside.
    """
    ends = list(accumulate(lengths))
    is_ascii = fragment.isascii()
    owners = (
        range(len(fragment))
        if is_ascii
        else [at for at, c in enumerate(fragment) for _ in range(len(c.encode("utf-8")))]
    )
    size = len(owners)
    return [
        Extent(i, owners[end - n], owners[end - 1] + 1)
        if end <= size
        else Extent(i, end - n, end, None, True)
        for i, n, end in zip(ids, lengths, ends, strict=True)
    ]
