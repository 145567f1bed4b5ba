"""One document as sections: its texts, its tree, and what stands between its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.base.binary.columns import ColumnReader, write_columns
from nacre.base.binary.cursor import Broken, ByteReader, ByteWriter
from nacre.base.binary.texts import read_texts, write_texts
from nacre.base.source import Source
from nacre.nem.bytecode.building import build
from nacre.nem.bytecode.foreign import Foreign, Places, places_of, read_foreign, write_foreign
from nacre.nem.bytecode.judging import has_configs, is_plain, judge_texts
from nacre.nem.bytecode.kinds import COMPRESSED
from nacre.nem.bytecode.nesting import judge_nesting
from nacre.nem.bytecode.positions import derive
from nacre.nem.bytecode.tree_reader import read_tree
from nacre.nem.bytecode.tree_writer import TreeColumns, tree_columns
from nacre.nem.bytecode.trivia import BEHIND, Trivia, text_of, trivia_of
from nacre.nem.spec.limits import MAX_BYTECODE_NODES
from nacre.nem.spec.rules.bytecode import BYT06, BYT07, BYT08
from nacre.nem.syntax.ast import Comment, Document, same_meaning
from nacre.nem.syntax.formatter import format_parsed
from nacre.nem.syntax.parser import ParseResult, parse

TEXTS, TREE, BLANKS, COMMENTS, POSITIONS = range(1, 6)
SECTIONS: Final = {
    TEXTS: "texts",
    TREE: "tree",
    BLANKS: "blank lines",
    COMMENTS: "comments",
    POSITIONS: "positions",
}
_POOLS: Final = ("name", "number", "text")


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds of a document: its canonical form, and where it stood in another text."""

    document: Document  # at its places in the canonical text
    comments: tuple[Comment, ...]
    trivia: Trivia
    foreign: Foreign | None = None

    @property
    def text(self) -> str:
        """The canonical text."""
        return text_of(self.document, self.trivia)


def write_document(content: Content, columns: TreeColumns | None = None) -> dict[int, bytes]:
    """The sections of a document, those without content left out."""
    made, trivia = columns or tree_columns(content.document), content.trivia
    texts, tree = ByteWriter(), ByteWriter()
    for pool in _POOLS:
        write_texts(texts, list(made.pools[pool]))
    tree.varint(sum(len(batch.nodes) for batch in made.batches))
    write_columns(tree, made.columns)
    sections = {TEXTS: texts.content(), TREE: tree.content()}
    if trivia.blanks:
        blanks = ByteWriter()
        blanks.varint(len(trivia.blanks))
        write_columns(blanks, [np.array(trivia.blanks, np.int64)])
        sections[BLANKS] = blanks.content()
    if trivia.texts:
        sections[COMMENTS] = _comments(trivia)
    if content.foreign is not None:
        own = places_of(made.nodes, [comment.start for comment in content.comments])
        sections[POSITIONS] = write_foreign(content.foreign, own)
    return sections


def _comments(trivia: Trivia) -> bytes:
    out = ByteWriter()
    write_texts(out, trivia.texts)
    out.varint(len(trivia.broken))
    columns = [trivia.lines, trivia.places, *([trivia.broken] if trivia.broken else [])]
    write_columns(out, [np.array(column, np.int64) for column in columns])
    return out.content()


class DocumentReader:
    """A document that was read and judged, before its nodes are made."""

    def __init__(self, sections: Mapping[int, ByteReader], has_compressed: bool = False) -> None:
        reader = sections[TEXTS]
        self._pools = {pool: read_texts(reader, f"{pool}s") for pool in _POOLS}
        reader.require_end("the texts")
        if any(len(set(pool)) < len(pool) for pool in self._pools.values()):
            raise Broken(BYT06, reader.at, "a text is there twice")
        self.trivia = _read_trivia(sections)
        judge_texts(self._pools, self.trivia.texts)
        self._tree = read_tree(sections[TREE], self._pools)
        if has_compressed != any(batch.code == COMPRESSED for batch in self._tree.batches):
            message = "its flags say something else of compressed regions than its tree"
            raise Broken(BYT06, sections[TREE].at, message)
        self._printed: ParseResult | None = None  # what the parser makes of it, where it was asked
        self.size = 0
        self.own = self._places()
        self.foreign: Foreign | None = None
        if POSITIONS in sections:
            at = sections[POSITIONS].at
            self.foreign = read_foreign(sections[POSITIONS], self.own, self.trivia.texts)
            judge_nesting(self._tree, self._pools, self.own, self.foreign.places, at)

    def _places(self) -> Places:
        """Where everything stands in the canonical text."""
        if has_configs(self._tree):
            parsed = self._print(build(self._tree, self._pools, _nowhere(self._tree.count)))
            self.size = len(parsed.source.text)
            starts = [comment.start for comment in parsed.comments]
            return places_of(tree_columns(parsed.document).nodes, starts)
        derived = derive(self._tree, self._pools, self.trivia)
        words = np.zeros(0, np.int64)
        places = Places(
            derived.starts, derived.ends, words, np.array(derived.comment_starts, np.int64)
        )
        self.size = derived.size
        if not is_plain(self._tree, self._pools):
            self._print(build(self._tree, self._pools, places), places)
        return places

    def _print(self, document: Document, places: Places | None = None) -> ParseResult:
        """What the parser makes of the canonical text: the same document, or it is refused."""
        try:
            text = text_of(document, self.trivia)
            parsed = parse(Source("", text))
            is_same = parsed.is_valid and same_meaning(parsed.document, document)
            is_same = is_same and trivia_of(text, parsed.document, parsed.comments) == self.trivia
            is_same = is_same and format_parsed(parsed) == text
        except RecursionError:
            raise Broken(BYT07, 0, "the tree is nested too deeply") from None
        if not is_same or (places is not None and parsed.document != document):
            why = f": {parsed.diagnostics[0].message}" if parsed.diagnostics else ""
            raise Broken(BYT08, 0, f"no text has this tree{why}")
        self._printed = parsed
        return parsed

    def canonical(self) -> Content:
        """Everything that the file says, at its places in the canonical text."""
        document = build(self._tree, self._pools, self.own)
        return Content(document, self._comments(self.own), self.trivia, self.foreign)

    def document(self) -> tuple[Document, tuple[Comment, ...]]:
        """The document and its comments at their places in the text that the file was made of."""
        places = self.own if self.foreign is None else self.foreign.places
        return build(self._tree, self._pools, places), self._comments(places)

    def _comments(self, places: Places) -> tuple[Comment, ...]:
        comments = zip(places.comments.tolist(), self.trivia.texts, strict=True)
        return tuple(Comment(start, start + len(text), text) for start, text in sorted(comments))


def _nowhere(count: int) -> Places:
    none = np.zeros(count, np.int64)
    return Places(none, none, np.zeros(2 * count, np.int64), none[:0])


def _read_trivia(sections: Mapping[int, ByteReader]) -> Trivia:
    blanks: Integers = np.zeros(0, np.int64)
    if BLANKS in sections:
        reader = sections[BLANKS]
        count = reader.varint("the blank lines")
        (blanks,) = _read_ascending(reader, [count], "the blank lines")
    if COMMENTS not in sections:
        return Trivia(tuple(blanks.tolist()))
    reader = sections[COMMENTS]
    texts = read_texts(reader, "comments")
    if not texts:
        raise Broken(BYT06, reader.at, "a section of comments has none")
    broken = reader.varint("the comments")
    lines, places, *further = _read_ascending(
        reader, [len(texts), len(texts), *([broken] if broken else [])], "the comments"
    )
    if int(places.min()) < 0 or int(places.max()) > BEHIND:
        raise Broken(BYT06, reader.at, "a comment stands nowhere")
    rows = [tuple(column.tolist()) for column in (blanks, further[0] if further else blanks[:0])]
    return Trivia(rows[0], rows[1], tuple(lines.tolist()), tuple(places.tolist()), tuple(texts))


def _read_ascending(reader: ByteReader, counts: list[int], what: str) -> list[Integers]:
    """Columns of numbers of lines or statements; alone in its section or third, each once."""
    columns = ColumnReader(reader, what)
    reader.require_most(max(counts), f"of {what}")
    if not min(counts):
        raise Broken(BYT06, reader.at, f"{what} are none")
    for count in counts:
        columns.skip(count)
    numbers = columns.finish()
    for index, column in enumerate(numbers):
        is_strict = len(numbers) == 1 or index == 2
        steps = np.diff(column)
        is_rising = (steps > 0).all() if is_strict else index == 1 or (steps >= 0).all()
        if not is_rising or int(column.min()) < 0 or int(column.max()) > MAX_BYTECODE_NODES:
            raise Broken(BYT06, reader.at, f"{what} are not in the order of their lines")
    return numbers
