"""Lists of texts: each takes over what it shares with the text before it, at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import AnyStr

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.base.binary.columns import ColumnReader, write_columns
from nacre.base.binary.cursor import Broken, ByteReader, ByteWriter, decode_text


def write_texts(out: ByteWriter, texts: Sequence[str]) -> None:
    """A count, the bytes of all, and three columns: shared before, shared behind, own bytes."""
    out.varint(len(texts))
    if not texts:
        return
    raws = [text.encode() for text in texts]
    shared = [_shared_lengths(old, new) for old, new in pairwise([b"", *raws])]
    middles = [raw[head : len(raw) - tail] for raw, (head, tail) in zip(raws, shared, strict=True)]
    blob = b"".join(middles)
    out.varint(len(blob))
    out.raw(blob)
    heads, tails = (np.array(column, np.int64) for column in zip(*shared, strict=True))
    columns = ByteWriter()
    write_columns(columns, [heads, tails, np.array([len(middle) for middle in middles], np.int64)])
    lengths = columns.content()
    out.varint(len(lengths))
    out.raw(lengths)


def _shared_lengths(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes two texts share at their start, and then at their end."""
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    most -= head
    tail = next((i for i in range(most) if old[-1 - i] != new[-1 - i]), most)
    return head, tail


def read_texts(reader: ByteReader, what: str) -> list[str]:
    """The inverse of `write_texts`; what could be shared and is not is refused."""
    start, rules = reader.at, reader.rules
    count = reader.varint(what)
    if not count:
        return []
    reader.require_most(count, what)
    blob = reader.take(reader.varint(what), what)
    size = reader.varint(what)
    if size > reader.left:
        message = f"{what} need {size:,} bytes, {reader.left:,} are left"
        raise Broken(rules.damaged, reader.at, message)
    inner = reader.within(size)
    columns = ColumnReader(inner, what)
    for _ in range(3):
        columns.skip(count)
    heads, tails, sizes = columns.finish()
    _judge_lengths(reader, start, what, (heads, tails, sizes))
    if int(sizes.sum()) != len(blob):
        raise Broken(
            rules.not_canonical, start, f"{what} have {len(blob):,} bytes of other lengths"
        )
    texts = _unshare(blob.decode(), heads, tails, sizes) if blob.isascii() else None
    raws = None if blob.isascii() else _unshare(blob, heads, tails, sizes)
    if raws is not None:
        texts = [decode_text(raw, rules, start, what) for raw in raws]
    if texts is None:
        message = f"one of the {what} does not take over what it could"
        raise Broken(rules.not_canonical, start, message)
    return texts


def _judge_lengths(reader: ByteReader, start: int, what: str, columns: Sequence[Integers]) -> None:
    most = reader.most_text
    is_sound = all(int(c.min()) >= 0 and int(c.max()) <= most for c in columns)
    if not is_sound or sum(int(column.sum()) for column in columns) > most:
        message = f"{what} are longer than {most:,} bytes together"
        raise Broken(reader.rules.too_large, start, message)


def _unshare(
    blob: AnyStr, heads: Integers, tails: Integers, sizes: Integers
) -> list[AnyStr] | None:
    """The texts; None where one shares more or less with the one before it than it says."""
    lengths = heads + sizes + tails
    rests = _shift(lengths) - tails
    if (heads > rests).any():
        return None
    texts = _rebuild(blob, heads.tolist(), rests.tolist(), np.cumsum(sizes).tolist())
    joined = _encode(blob[:0].join(texts))
    return texts if _share_all(joined, lengths, heads, rests, sizes) else None


def _encode(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _shift(values: Integers) -> Integers:
    """The number before each, 0 before the first."""
    return np.concatenate([np.zeros(1, np.int64), values[:-1]])


def _rebuild(blob: AnyStr, heads: list[int], rests: list[int], ends: list[int]) -> list[AnyStr]:
    """Texts of the start of the one before, bytes of their own, and the rest of the one before."""
    texts: list[AnyStr] = []
    text, at = blob[:0], 0
    for head, rest, end in zip(heads, rests, ends, strict=True):
        text = text[:head] + blob[at:end] + text[rest:]
        at = end
        texts.append(text)
    return texts


def _share_all(
    joined: bytes, lengths: Integers, heads: Integers, rests: Integers, sizes: Integers
) -> bool:
    """Whether no text has more in common with the one before it, at its start or then its end."""
    letters = np.frombuffer(joined + b"\0", np.uint8)
    starts = np.cumsum(lengths) - lengths
    before, old_lengths = _shift(starts), _shift(lengths)
    is_next = letters[starts + heads] == letters[before + heads]
    is_next &= heads < np.minimum(lengths, old_lengths)
    is_last = letters[starts + heads + sizes - 1] == letters[before + rests - 1]
    is_last &= (sizes > 0) & (rests > heads)
    return not (is_next | is_last).any()
