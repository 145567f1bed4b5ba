"""The compiled vocabulary: `vocab.b`, `vidx.b` and `merges.b`, to values and back, exactly."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from msgspec import Struct

from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import limit_error, pack, text
from nacre.nac.rules.tokenizer import NAC65
from nacre.nac.tisa.scores import round_score, score_of

VOCABULARY, INDEX, MERGES = "vocab.b", "vidx.b", "merges.b"
SCORES = "nacre.scores.b"
FILES = (VOCABULARY, INDEX, MERGES, SCORES)
_SECTION = "RSRC"
_TAIL = struct.Struct("<if")
_LEAST_ENTRY = 2 + _TAIL.size
MOST_ID = (1 << 24) - 1  # the index has a place for every id up to the largest


class Entry(Struct, frozen=True):
    """A token: its id, its score; a score that is no number: only protected fragments are it."""

    token: str
    id: int
    score: float = 0.0

    @property
    def is_piece(self) -> bool:
        """Whether the model may find it inside of a fragment."""
        return not math.isnan(self.score)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their text, and pairs that merge in the order of their rank."""

    entries: tuple[Entry, ...]
    merges: tuple[tuple[str, str], ...] | None = None
    wide: tuple[float, ...] | None = None  # scores of the entries that need 64 bits

    @property
    def scores(self) -> tuple[float, ...]:
        """What a program adds up for each entry; no number for what is no piece."""
        if self.wide is not None:
            return self.wide
        return tuple(score_of(e.score) if e.is_piece else math.nan for e in self.entries)

    def resources(self) -> dict[str, bytes]:
        """The files of it, by name."""
        made = {VOCABULARY: vocabulary_bytes(self.entries), INDEX: index_bytes(self.entries)}
        if self.merges is not None:
            made[MERGES] = merges_bytes(self.merges)
        if self.wide is not None:
            made[SCORES] = struct.pack(f"<{len(self.wide)}d", *self.wide)
        return made


def read_vocabulary(resources: Mapping[str, bytes | memoryview]) -> Vocabulary:
    """A vocabulary out of its files; `Broken` says what is wrong with them."""
    entries, offsets = _entries(Cursor(memoryview(resources[VOCABULARY]), _SECTION))
    if INDEX in resources:
        _check_index(Cursor(memoryview(resources[INDEX]), _SECTION), entries, offsets)
    merges = None
    if MERGES in resources:
        merges = _merges(Cursor(memoryview(resources[MERGES]), _SECTION))
    wide = None
    if SCORES in resources:
        wide = _wide_scores(Cursor(memoryview(resources[SCORES]), _SECTION), entries)
    return Vocabulary(entries, merges, wide)


def _wide_scores(cursor: Cursor, entries: tuple[Entry, ...]) -> tuple[float, ...]:
    """A score of 64 bits for every entry, which rounds to the one that the entry has."""
    raw = cursor.take(8 * len(entries), f"`{SCORES}`")
    _require_end(cursor, SCORES)
    scores = struct.unpack(f"<{len(entries)}d", raw)
    for entry, score in zip(entries, scores, strict=True):
        if round_score(score) != entry.score and (entry.is_piece or not math.isnan(score)):
            message = (
                f"`{SCORES}` has {score!r} for {entry.token!r}, whose score is {entry.score!r}"
            )
            raise Broken(NAC65, cursor.position(0), message)
    return scores


def _require_end(cursor: Cursor, name: str) -> None:
    if cursor.remaining:
        raise Broken(NAC65, cursor.position(), f"`{name}` has {cursor.remaining} bytes too many")


def _entries(cursor: Cursor) -> tuple[tuple[Entry, ...], tuple[int, ...]]:
    what = f"the entries of `{VOCABULARY}`"
    count = cursor.u32(f"the number of {what}")
    if count * (4 + _LEAST_ENTRY) > cursor.remaining:
        message = f"`{VOCABULARY}` cannot hold {count:,} entries in {cursor.remaining:,} bytes"
        raise Broken(NAC65, cursor.position(0), message)
    offsets = cursor.u32s(count, what)
    begin = cursor.at
    entries: list[Entry] = []
    for index, offset in enumerate(offsets):
        if offset != cursor.at - begin:
            message = f"entry {index} is said to be at {offset:,} and is at {cursor.at - begin:,}"
            raise Broken(NAC65, cursor.position(4 + 4 * index), message)
        token = cursor.text(cursor.u16(what), what)
        entries.append(Entry(token, *_TAIL.unpack(cursor.take(_TAIL.size, what))))
    _require_end(cursor, VOCABULARY)
    _check_entries(entries, cursor)
    return tuple(entries), offsets


def _check_entries(entries: list[Entry], cursor: Cursor) -> None:
    for one, other in pairwise(entries):
        if not one.token < other.token:
            message = f"the tokens {one.token!r} and {other.token!r} are not in order"
            raise Broken(NAC65, cursor.position(0), message)
    if len({entry.id for entry in entries}) < len(entries):
        raise Broken(NAC65, cursor.position(0), "two tokens have the same id")
    for entry in entries:
        if not 0 <= entry.id <= MOST_ID or math.isinf(entry.score):
            message = f"the token {entry.token!r} has id {entry.id} and score {entry.score}"
            raise Broken(NAC65, cursor.position(0), message)


def _check_index(cursor: Cursor, entries: tuple[Entry, ...], offsets: tuple[int, ...]) -> None:
    """The index says again what the entries say: where the token of each id is."""
    what = f"the places of `{INDEX}`"
    count = cursor.u32(f"the number of {what}")
    if count != 1 + max((entry.id for entry in entries), default=-1):
        message = f"`{INDEX}` has {count:,} places, which is not the largest id and one"
        raise Broken(NAC65, cursor.position(0), message)
    actual = cursor.u32s(count, what)
    _require_end(cursor, INDEX)
    expected = [0] * count
    for entry, offset in zip(entries, offsets, strict=True):
        expected[entry.id] = offset
    for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if one != other:
            message = f"id {index} is said to be at {one:,} and is at {other:,}"
            raise Broken(NAC65, cursor.position(4 + 4 * index), message)


def _merges(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    what = f"a merge of `{MERGES}`"

    def pair() -> tuple[str, str]:
        first = cursor.text(cursor.u16(what), what)
        return first, cursor.text(cursor.u16(what), what)

    merges = cursor.records(4, "merges", pair)
    _require_end(cursor, MERGES)
    return merges


def _encode(entries: Iterable[Entry]) -> list[bytes]:
    return [text(e.token, "H", "a token") + _TAIL.pack(e.id, e.score) for e in entries]


def _offsets(records: Iterable[bytes]) -> list[int]:
    return [0, *accumulate(map(len, records))][:-1]


def vocabulary_bytes(entries: tuple[Entry, ...]) -> bytes:
    """`vocab.b`: a count, where each entry is, the entries."""
    records = _encode(entries)
    head = pack(f"I{len(entries)}I", "length", len(entries), *_offsets(records))
    return head + b"".join(records)


def index_bytes(entries: tuple[Entry, ...]) -> bytes:
    """`vidx.b`: a count, then for each id where its entry is; 0 for ids without one."""
    largest = max((entry.id for entry in entries), default=-1)
    if largest > MOST_ID:
        raise limit_error("length", f"the id {largest:,} is larger than {MOST_ID:,}")
    places = [0] * (largest + 1)
    for entry, offset in zip(entries, _offsets(_encode(entries)), strict=True):
        places[entry.id] = offset
    return pack(f"I{len(places)}I", "length", len(places), *places)


def merges_bytes(merges: tuple[tuple[str, str], ...]) -> bytes:
    """`merges.b`: a count, then pairs of texts."""
    parts = [pack("I", "length", len(merges))]
    parts += [text(part, "H", "a part of a merge") for pair in merges for part in pair]
    return b"".join(parts)
