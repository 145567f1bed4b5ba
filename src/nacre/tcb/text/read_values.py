"""Values and records read from text, by the table of fields."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from nacre.base.suggest import did_you_mean
from nacre.base.terms import Term
from nacre.tcb.block_table import RECORDS, Field, FieldValue, Kind, Record
from nacre.tcb.image import DEVICE, BlockKind, Tag
from nacre.tcb.rules.text import TCB03, TCB04, TCB07
from nacre.tcb.text.cursor import Cursor
from nacre.tcb.text.read_terms import read_integer, read_term
from nacre.tcb.text.tokens import Token
from nacre.tcb.text.written import RESERVED

_ENGINE = re.compile(r"d|e(0|[1-9][0-9]{0,8})")
_TAG = re.compile(r"(d|e(?:0|[1-9][0-9]{0,8}))\.t(0|[1-9][0-9]{0,17})?")
Constants = Mapping[str, bytes]  # by their hashes


class ValueReader:
    """Reads values where a cursor stands."""

    def __init__(self, cursor: Cursor, constants: Constants) -> None:
        self._cursor = cursor
        self._constants = constants
        read: dict[Kind, Callable[[], Any]] = {
            "integer": self._integer,
            "hexadecimal": self._integer,
            "size": self._integer,
            "name": self._name,
            "text": self._text,
            "digest": self._text,
            "memory": self._memory,
            "engine": self._engine,
            "integers": lambda: self._list(self._integer),
            "positions": lambda: self._list(self._integer),
            "numbers": lambda: self._list(self._number),
            "term": self._term,
            "address": self._term,
            "count": self._term,
            "attributes": lambda: self._pairs(self._attribute),
            "counts": lambda: self._pairs(self._integer),
            "figures": lambda: self._pairs(self._figure),
            "data": self._data,
        }
        self._read: Final = MappingProxyType(read)

    def value(self, field: Field) -> FieldValue:
        """One value of a field, behind its keyword."""
        if field.kind == "flag":
            return True
        if field.kind == "word":
            return self._word(field.words)
        if field.kind != "record":
            return self._read[field.kind]()
        if field.of is Tag:
            return self._tag()
        assert field.of is not None
        return self.record(RECORDS[field.of])

    def record(self, record: Record) -> FieldValue:
        """A record inside another; its end is where nothing of it follows."""
        start = self._cursor.token
        values = self.places(record)
        while (field := self._clause(record)) is not None:
            self.clause(field, values)
        return self.finished(record, values, start)

    def places(self, record: Record, block: BlockKind | None = None) -> dict[str, Any]:
        """The fields that have their places, and no words before them.

        Of a `block` its kind was read, and what that kind does not have is not looked for.
        """
        values: dict[str, Any] = {}
        for field in record.fields:
            is_read = block is not None and (field.name == "kind" or block not in field.blocks)
            if field.keyword.isidentifier() or is_read:
                continue
            if field.keyword:
                self._cursor.require(field.keyword, f"before {field.meaning}")
            elif field.default is not ... and not self._is_there(field):
                continue
            values[field.name] = self.value(field)
        return values

    def _is_there(self, field: Field) -> bool:
        token = self._cursor.token
        if field.kind == "name":
            return token.kind == "string" or (token.kind == "word" and token.text not in RESERVED)
        return token.text == "("

    def _clause(self, record: Record) -> Field | None:
        token = self._cursor.token
        if token.kind != "word":
            return None
        return next((f for f in record.fields if f.keyword == token.text), None)

    def clause(self, field: Field, values: dict[str, Any]) -> None:
        """A keyword and what follows it."""
        token = self._cursor.take()
        if field.name in values:
            raise self._cursor.refusal(TCB03, token, f"`{field.keyword}` is there twice")
        values[field.name] = self._many(field) if field.is_many else self.value(field)

    def _many(self, field: Field) -> tuple[Any, ...]:
        values = [self._one_of_many(field)]
        while self._cursor.accept(","):
            values.append(self._one_of_many(field))
        return tuple(values)

    def _one_of_many(self, field: Field) -> FieldValue:
        if field.is_optional and self._cursor.accept("_"):
            return None
        return self.value(field)

    def finished(self, record: Record, values: dict[str, Any], start: Token) -> FieldValue:
        """The record, if all that it needs is there."""
        missing = [f for f in record.fields if f.default is ... and f.name not in values]
        if missing:
            name = f"`{record.statement}`" if record.statement else start.description
            words = ", ".join(f"`{field.keyword}`" for field in missing)
            message = f"{name} lacks {words}"
            help_ = f"write `{missing[0].keyword}` and {missing[0].meaning}"
            raise self._cursor.refusal(TCB03, start, message, help_)
        defaults = {f.name: f.default for f in record.fields if f.default is not ...}
        return record.of(**{**defaults, **values})

    def _integer(self) -> int:
        return read_integer(self._cursor)

    def _term(self) -> Term:
        return read_term(self._cursor)

    def _number(self) -> float:
        is_negative = self._cursor.accept("-")
        token = self._cursor.token
        if token.kind not in ("number", "integer") and token.text not in ("inf", "nan"):
            raise self._cursor.unexpected("a number")
        self._cursor.take()
        value = float(int(token.text, 16)) if token.text[:2] in ("0x", "0X") else float(token.text)
        return -value if is_negative else value

    def _word(self, words: tuple[str, ...]) -> str:
        token = self._cursor.token
        if token.kind != "word" or token.text not in words:
            expected = " or ".join(f"`{word}`" for word in words)
            raise self._cursor.unexpected(expected, did_you_mean(token.text, words))
        return self._cursor.take().text

    def _name(self) -> str:
        token = self._cursor.token
        if token.kind == "string":
            return self._text()
        if token.kind != "word" or token.text in RESERVED:
            help_ = "put a name that is a word of the language in quotes"
            raise self._cursor.unexpected("a name", help_ if token.kind == "word" else None)
        return self._cursor.take().text

    def _text(self) -> str:
        token = self._cursor.token
        if token.kind != "string":
            raise self._cursor.unexpected("a text in quotes")
        try:
            text: str = json.loads(token.text, strict=False)
            text.encode()
        except (json.JSONDecodeError, UnicodeEncodeError):
            message = f"{token.description} has an escape that there is not"
            help_ = 'escapes are those of JSON: `\\"`, `\\\\`, `\\n`, `\\u00e9`'
            raise self._cursor.refusal(TCB04, token, message, help_) from None
        self._cursor.take()
        return text

    def _memory(self) -> str:
        if self._cursor.token.kind == "string":
            return self._text()
        name = self._name()
        if not self._cursor.accept("["):
            return name
        number = self._integer()
        self._cursor.require("]", "behind the engine of a memory")
        return f"{name}[{number}]"

    def _engine(self) -> int:
        token = self._cursor.token
        found = _ENGINE.fullmatch(token.text) if token.kind == "word" else None
        if found is None:
            raise self._cursor.unexpected("an engine such as `e0`, or `d` for the device")
        self._cursor.take()
        return DEVICE if found[1] is None else int(found[1])

    def _tag(self) -> Tag:
        token = self._cursor.token
        found = _TAG.fullmatch(token.text) if token.kind == "word" else None
        if found is None:
            raise self._cursor.unexpected("a tag such as `e0.t5` or `d.t7`")
        self._cursor.take()
        engine = DEVICE if found[1] == "d" else int(found[1][1:])
        if found[2] is not None:
            return Tag(engine, int(found[2]))
        self._cursor.require("(", "before the term of a tag")
        index = self._term()
        self._cursor.require(")", "behind the term of a tag")
        return Tag(engine, index)

    def _list(self, read: Callable[[], Any]) -> tuple[Any, ...]:
        self._cursor.require("[", "before a list")
        values: list[Any] = []
        while not self._cursor.accept("]"):
            if values:
                self._cursor.require(",", "or `]` in a list")
            values.append(read())
        return tuple(values)

    def _pairs(self, read: Callable[[], Any]) -> tuple[tuple[str, Any], ...]:
        self._cursor.require("(", "before names and values")
        pairs: list[tuple[str, Any]] = []
        while not self._cursor.accept(")"):
            if pairs:
                self._cursor.require(",", "or `)` behind a value")
            is_word = self._cursor.token.kind == "word"
            name = self._cursor.take().text if is_word else self._name()
            self._cursor.require("=", "behind a name")
            pairs.append((name, read()))
        return tuple(pairs)

    def _figure(self) -> int | str:
        return self._text() if self._cursor.token.kind == "string" else self._integer()

    def _attribute(self) -> FieldValue:
        token = self._cursor.token
        if token.kind == "string":
            return self._text()
        if token.text == "[":
            return self._list(self._integer)
        if token.text in ("true", "false"):
            return self._cursor.take().text == "true"
        digits = self._cursor.following if token.text == "-" else token
        is_integer = digits.kind == "integer"
        return self._integer() if is_integer else self._number()

    def _data(self) -> bytes:
        if self._cursor.accept("sha256"):
            return self._referenced()
        token, parts = self._cursor.token, []
        while self._cursor.token.kind == "string":
            parts.append(self._cursor.take().text[1:-1])
        if not parts:
            raise self._cursor.unexpected("base64 in quotes, or `sha256`")
        try:
            return base64.b64decode("".join(parts), validate=True)
        except (binascii.Error, ValueError):
            raise self._cursor.refusal(TCB04, token, "these bytes are no base64") from None

    def _referenced(self) -> bytes:
        token = self._cursor.token
        data = self._constants.get(self._text())
        if data is None or hashlib.sha256(data).hexdigest() != token.text[1:-1]:
            message = f"the bytes with the hash {token.description} are not at hand"
            help_ = "give the image that the text was made of, or write constants as base64"
            raise self._cursor.refusal(TCB07, token, message, help_)
        return data
