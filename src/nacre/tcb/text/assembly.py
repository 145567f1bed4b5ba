"""An assembler text as an image: every mistake in it is found in one go."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, InputError, in_order
from nacre.base.source import Source, Span
from nacre.base.suggest import did_you_mean
from nacre.tcb.block_table import BLOCK, BLOCK_KINDS, RECORDS, Field, FieldValue, Record
from nacre.tcb.image import Block, BlockKind, Image, Item, Machine, Repeat, Stream
from nacre.tcb.limits import MAX_DEPTH, MAX_FINDINGS, MAX_ITEMS
from nacre.tcb.rules.text import TCB02, TCB03, TCB05, TCB06
from nacre.tcb.text.cursor import Cursor, Refused
from nacre.tcb.text.disassembly import VERSION, Place
from nacre.tcb.text.read_values import Constants, ValueReader
from nacre.tcb.text.tokens import Token, tokens_of

_NO_IMAGE: Final = "`nacre bind` makes an image of a program, `nacre tcb dis` its text"
_STATEMENTS: Final = {
    record.statement: record
    for record in RECORDS.values()
    if record.statement and record.of is not Repeat
}
_ITEMS: Final = (*BLOCK_KINDS, "repeat")
_WORDS: Final = frozenset({*_STATEMENTS, *_ITEMS})
_NONE: Final[Constants] = MappingProxyType({})
# What an image has of each, and under which name.
_LISTS: Final = {
    "place": "placements", "port": "ports", "stream": "streams", "constant": "constants",
    "origin": "origins",
}  # fmt: skip


class Assembled(NamedTuple):
    """An image, and where its statements stand in the text that it was read from."""

    image: Image
    spans: Mapping[Place, Span]


def assemble(source: Source, constants: Constants = _NONE) -> Assembled:
    """The image of a text; InputError with all that is wrong with it.

    `constants` has, by their hashes, bytes that the text leaves out.
    """
    findings: list[Diagnostic] = []
    tokens = tokens_of(source, findings)
    reader = _Assembler(source, tokens, constants, findings)
    image = reader.image()
    if findings or image is None:
        foreign = [finding for finding in findings if finding.code == TCB05.code]
        raise InputError(foreign or in_order(findings))  # what is no such text has one mistake
    return Assembled(image, reader.spans)


class _Assembler:
    """Statements one after the other; one that is refused is gone over."""

    def __init__(
        self,
        source: Source,
        tokens: list[Token],
        constants: Constants,
        findings: list[Diagnostic],
    ) -> None:
        self._cursor = Cursor(source, tokens)
        self._values = ValueReader(self._cursor, constants)
        self._findings = findings
        self._found: dict[str, list[Struct]] = {word: [] for word in _STATEMENTS}
        self._items = 0
        self.spans: dict[Place, Span] = {}

    def image(self) -> Image | None:
        """All statements; None where something is wrong."""
        try:
            self._read_version()
            while self._cursor.token.kind != "end" and len(self._findings) < MAX_FINDINGS:
                self._read_statement()
            return None if self._findings else self._finish()
        except Refused as refused:
            self._findings.append(refused.finding)
            return None

    def _read_version(self) -> None:
        start = self._cursor.token
        is_there = self._cursor.accept("tcb")
        token = self._cursor.token
        if not is_there or token.text != str(VERSION):
            what = f"version {token.text}" if is_there else start.description
            message = f"the text begins with {what}, expected `tcb {VERSION}`"
            at = token if is_there else start
            raise self._cursor.refusal(
                TCB05, at, message, "take a newer nacre" if is_there else _NO_IMAGE
            )
        self._cursor.take()

    def _finish(self) -> Image:
        header, machine = self._only("image"), self._only("machine")
        fields: dict[str, Any] = {name: tuple(self._found[word]) for word, name in _LISTS.items()}
        names = [field.name for field in RECORDS[Image].fields]
        return Image(machine=machine, **{name: getattr(header, name) for name in names}, **fields)

    def _only(self, word: str) -> FieldValue:
        found = self._found[word]
        if len(found) == 1:
            return found[0]
        message = f"the text has {len(found)} statements `{word}`, expected one"
        raise self._cursor.refusal(TCB02, self._cursor.token, message)

    def _read_statement(self) -> None:
        token = self._cursor.token
        record = _STATEMENTS.get(token.text) if token.kind == "word" else None
        try:
            if record is None:
                help_ = did_you_mean(token.text, _STATEMENTS)
                expected = "a statement such as `stream`"
                if token.text in _ITEMS:
                    help_ = "blocks and repeats stand in the braces of a `stream`"
                raise self._cursor.unexpected(expected, help_)
            self._cursor.take()
            found = self._found[token.text]
            found.append(self._read_record(record, token, (token.text, len(found)), 0))
        except Refused as refused:
            self._recover(refused, token, 0)

    def _recover(self, refused: Refused, start: Token, depth: int) -> None:
        """Report what is wrong, and go to the next statement; what is in braces is still read."""
        self._findings.append(refused.finding)
        if len(self._findings) >= MAX_FINDINGS:
            return
        if self._cursor.token is start or not self._is_statement():
            self._cursor.skip_to_statement(_WORDS)
        if self._cursor.is_at("{"):
            self._read_items(depth + 1)
        elif depth == 0 and self._cursor.is_at("}"):
            self._cursor.take()

    def _is_statement(self) -> bool:
        token = self._cursor.token
        is_clause = token.text == "wait" and self._cursor.following.text != "@"
        is_word = token.kind == "word" and token.text in _WORDS and not is_clause
        return token.kind == "end" or token.text in ("{", "}") or (token.is_first and is_word)

    def _read_record(self, record: Record, start: Token, place: Place, depth: int) -> Struct:
        """A statement behind its first word."""
        first = self._cursor.at - 1
        values = self._values.places(record)
        self._read_clauses(record, start, values)
        self.spans[place] = self._cursor.head_span(first)
        if record.of in (Stream, Repeat):
            self._values.finished(record, {**values, "items": ()}, start)
            self._require_brace()
            made: Struct = record.of(**values, items=self._read_items(depth + 1))
            return made
        if record.of is Image:
            self._values.finished(record, {**values, **_EMPTY_IMAGE}, start)
            return Image(**values, **_EMPTY_IMAGE)
        finished: Struct = self._values.finished(record, values, start)
        return finished

    def _require_brace(self) -> None:
        if not self._cursor.is_at("{"):
            raise self._cursor.unexpected("`{`")

    def _read_clauses(self, record: Record, start: Token, values: dict[str, Any]) -> None:
        by_word = {field.keyword: field for field in record.fields if field.keyword.isidentifier()}
        while not self._is_statement():
            token = self._cursor.token
            field = by_word.get(token.text) if token.kind == "word" else None
            if field is None:
                known = {*by_word, *_WORDS} if token.is_first else by_word
                help_ = did_you_mean(token.text, known)
                message = f"{token.description} is no part of `{start.text}`"
                raise self._cursor.refusal(TCB03, token, message, help_)
            self._judge_kind(record, start, field)
            self._values.clause(field, values)

    def _judge_kind(self, record: Record, start: Token, field: Field) -> None:
        if record is BLOCK and start.text not in field.blocks:
            kinds = " or a ".join(f"`{kind}`" for kind in field.blocks)
            message = f"a `{start.text}` has no `{field.keyword}`"
            raise self._cursor.refusal(
                TCB03, self._cursor.token, message, f"only a {kinds} has {field.meaning}"
            )

    def _read_items(self, depth: int) -> tuple[Item, ...]:
        """What stands in braces."""
        opened = self._cursor.take()
        if depth > MAX_DEPTH:
            message = f"repeats stand at most {MAX_DEPTH - 1} deep in each other"
            raise self._cursor.refusal(TCB06, opened, message)
        items: list[Item] = []
        while not self._cursor.accept("}"):
            if self._cursor.token.kind == "end" or self._cursor.token.text in _STATEMENTS:
                raise self._cursor.unexpected("`}`, for the braces are open", None)
            item = self._read_item(depth)
            if item is not None:
                items.append(item)
            if len(self._findings) >= MAX_FINDINGS:
                break
        return tuple(items)

    def _read_item(self, depth: int) -> Item | None:
        token = self._cursor.token
        place = ("item", self._items)
        self._items += 1
        if self._items > MAX_ITEMS:
            raise self._cursor.refusal(TCB06, token, f"a text has at most {MAX_ITEMS:,} items")
        try:
            if token.kind != "word" or token.text not in _ITEMS:
                raise self._cursor.unexpected(
                    "a block, `repeat` or `}`", did_you_mean(token.text, _ITEMS)
                )
            self._cursor.take()
            if token.text == "repeat":
                record = RECORDS[Repeat]
                return self._read_record(record, token, place, depth)  # type: ignore[return-value]
            return self._read_block(token, place)
        except Refused as refused:
            self._recover(refused, token, depth)
            return None

    def _read_block(self, start: Token, place: Place) -> Block:
        kind, first = cast("BlockKind", start.text), self._cursor.at - 1
        values = self._values.places(BLOCK, kind)
        self._read_clauses(BLOCK, start, values)
        self.spans[place] = self._cursor.head_span(first)
        return Block(kind, **values)


_NO_MACHINE: Final = Machine("", "", "", "", 0, (), (), ())
_EMPTY_IMAGE: Final[Mapping[str, Any]] = MappingProxyType(
    {"machine": _NO_MACHINE, "placements": (), "ports": (), "streams": ()}
)
