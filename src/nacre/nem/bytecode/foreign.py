"""Positions in another text than the canonical one: the text that a file was made of.

They are kept as what they differ by from those in the canonical text, with where the lines of that
text start: a finding then names its line and column, though the text itself is not there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nacre.base.binary.column_forms import Integers, unzigzag, zigzag
from nacre.base.binary.columns import ColumnReader, write_columns
from nacre.base.binary.cursor import Broken, ByteReader, ByteWriter
from nacre.base.excerpt import backquote
from nacre.nem.spec.limits import MAX_SOURCE_BYTES
from nacre.nem.spec.rules.bytecode import BYT05, BYT07
from nacre.nem.syntax.ast import Comment, Loop, Node

_MOST_NAME = 4096  # bytes of a file's name
_HASH = 32
# Fields that say where a word stands, by the class that has them.
PLACES = ("variants_start", "l1_start", "starts", "spec_start")


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything stands: nodes and words in the order of the file, comments as kept."""

    starts: Integers
    ends: Integers  # of loops: of their headers
    words: Integers  # of devices and families: keys without a node of their own
    comments: Integers


@dataclass(frozen=True, slots=True)
class Foreign:
    """Another text: its name, its hash, its lines, and where everything stands in it."""

    name: str
    sha256: bytes
    size: int  # characters
    line_starts: Integers
    places: Places


def places_of(nodes: Iterable[Node], comments: Sequence[int]) -> Places:
    """Where nodes in the order of the file stand."""
    nodes = list(nodes)
    ends = [node.header_end if isinstance(node, Loop) else node.end for node in nodes]
    return Places(
        np.array([node.start for node in nodes], np.int64),
        np.array(ends, np.int64),
        np.array([word for node in nodes for word in _words(node)], np.int64),
        np.array(comments, np.int64),
    )


def _words(node: Node) -> list[int]:
    offsets: list[int] = []
    for name in PLACES:
        value = getattr(node, name, ())
        offsets += [value] if isinstance(value, int) else value
    return offsets


def comment_starts(texts: Sequence[str], comments: Sequence[Comment]) -> list[int]:
    """Where comments of these texts stand; those that say the same keep their order."""
    starts_by_text: dict[str, deque[int]] = {}
    for comment in comments:
        starts_by_text.setdefault(comment.text, deque()).append(comment.start)
    return [starts_by_text[text].popleft() for text in texts]


def write_foreign(foreign: Foreign, canonical: Places) -> bytes:
    """The section, given the positions in the canonical text."""
    out = ByteWriter()
    out.text(foreign.name)
    out.raw(foreign.sha256)
    out.varint(foreign.size)
    out.varint(len(foreign.line_starts))
    there, widths = foreign.places, canonical.ends - canonical.starts
    columns = [
        there.starts - canonical.starts,
        (there.ends - there.starts) - widths,
        there.words - canonical.words,
        there.comments - canonical.comments,
    ]
    signed = [zigzag(column).view(np.int64) for column in columns if len(column)]
    write_columns(out, [foreign.line_starts, *signed])
    return out.content()


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file in a folder, or empty: of a text that came from none."""
    return name not in (".", "..") and "/" not in name and "\0" not in name


def read_foreign(reader: ByteReader, canonical: Places, comments: Sequence[str]) -> Foreign:
    """The inverse of `write_foreign`; positions must lie in the text."""
    start = reader.at
    name = reader.text("the name of the source", _MOST_NAME)
    if not is_file_name(name):
        message = f"{backquote(name, 80)} is no name of a file, expected one without a folder"
        raise Broken(BYT05, start, message)
    digest = reader.take(_HASH, "the hash of the source")
    size, lines = reader.varint("the size of the source"), reader.varint("the lines of the source")
    if size > reader.most_text or not 0 < lines <= min(size + 1, reader.most):
        message = f"a source of {size:,} characters on {lines:,} lines"
        raise Broken(BYT07, start, message, "pack it with `--canonical-positions`")
    columns = ColumnReader(reader, "the positions")
    counts = [
        len(canonical.starts),
        len(canonical.starts),
        len(canonical.words),
        len(canonical.comments),
    ]
    for count in (lines, *filter(None, counts)):
        columns.skip(count)
    read = iter(columns.finish())
    line_starts = next(read)
    moved = [
        unzigzag(next(read).view(np.uint64)) if count else canonical.words[:0] for count in counts
    ]
    if any(len(column) and np.abs(column).max() > 2 * MAX_SOURCE_BYTES for column in moved):
        raise Broken(BYT05, start, "a position lies outside the source")
    starts = canonical.starts + moved[0]
    ends = starts + (canonical.ends - canonical.starts) + moved[1]
    places = Places(starts, ends, canonical.words + moved[2], canonical.comments + moved[3])
    foreign = Foreign(name, digest, size, line_starts, places)
    _judge(foreign, comments, start)
    return foreign


def _judge(foreign: Foreign, comments: Sequence[str], offset: int) -> None:
    there, size = foreign.places, foreign.size
    fits = (there.starts >= 0).all() and (there.starts <= there.ends).all()
    fits &= (there.ends <= size).all()
    fits &= not len(there.words) or (there.words.min() >= 0 and there.words.max() <= size)
    lines = foreign.line_starts
    fits &= int(lines[0]) == 0 and (np.diff(lines) > 0).all() and int(lines[-1]) <= size
    sizes = np.array([len(text) for text in comments], np.int64)
    fits &= (there.comments >= 0).all() and (there.comments + sizes <= size).all()
    if not fits:
        raise Broken(BYT05, offset, "a position lies outside the source")
    last: dict[str, int] = {}
    for text, start in zip(comments, there.comments.tolist(), strict=True):
        if start <= last.get(text, -1):
            raise Broken(BYT05, offset, "comments that say the same stand in another order")
        last[text] = start
    if len(set(there.comments.tolist())) < len(comments):
        raise Broken(BYT05, offset, "two comments stand in one place")
