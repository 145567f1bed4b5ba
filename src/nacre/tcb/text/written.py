"""Values and records of an image as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from nacre.tcb.block_table import RECORDS, Field, FieldValue, Kind, Record
from nacre.tcb.image import DEVICE, STREAM, Tag
from nacre.tcb.text.terms import address_text, hexadecimal, term_text
from nacre.tcb.text.tokens import WORD

_WORD = re.compile(WORD)
_MEMORY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[(?:0|[1-9][0-9]*)\])?")
KEYWORDS: Final = frozenset(
    word
    for record in RECORDS.values()
    for word in (record.statement, *(field.keyword for field in record.fields))
    if word.isidentifier()
)
# Names that are words of the language stand in quotes.
RESERVED: Final = KEYWORDS - {STREAM} | {"mod", "true", "false", "inf", "nan", "sha256", "_"}
_DATA_LINE = 72  # characters of base64 in a string


def quote(text: str) -> str:
    """A text in quotes."""
    return json.dumps(text, ensure_ascii=False)


def name_text(name: str) -> str:
    """A name, in quotes unless it is a word."""
    return name if _WORD.fullmatch(name) and name not in RESERVED else quote(name)


def _pair_name(name: str) -> str:
    """The name of a pair, behind which `=` follows, so that any word will do."""
    return name if _WORD.fullmatch(name) else quote(name)


def memory_text(name: str) -> str:
    """A memory, in quotes unless it is a word, and perhaps a number in brackets."""
    return name if _MEMORY.fullmatch(name) and name not in RESERVED else quote(name)


def engine_text(engine: int) -> str:
    """`e0`, or `d` of the device."""
    return "d" if engine == DEVICE else f"e{engine}"


def tag_text(tag: Tag) -> str:
    """`e0.t5`; a term stands in parentheses."""
    index = tag.index
    is_plain = isinstance(index, int) and index >= 0
    return f"{engine_text(tag.engine)}.t{index if is_plain else f'({term_text(index)})'}"


def integers_text(values: Iterable[int]) -> str:
    """`[1, 2]`."""
    return f"[{', '.join(map(str, values))}]"


def number_text(value: float) -> str:
    """A float that reads as the same float, and as no integer."""
    return repr(float(value))


def attribute_text(value: object) -> str:
    """A value of any kind."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, tuple):
        return integers_text(value)
    return quote(value) if isinstance(value, str) else str(value)


def pairs_text(pairs: Iterable[tuple[str, object]]) -> str:
    """`(name=value, name=value)`."""
    return f"({', '.join(f'{_pair_name(name)}={attribute_text(value)}' for name, value in pairs)})"


def data_text(data: bytes) -> str:
    """Bytes as base64, a string a line."""
    text = base64.b64encode(data).decode()
    lines = [text[at : at + _DATA_LINE] for at in range(0, len(text), _DATA_LINE)] or [""]
    return "\n".join(f'"{line}"' for line in lines)


def data_reference(data: bytes) -> str:
    """Bytes by their hash."""
    return f'sha256 "{hashlib.sha256(data).hexdigest()}"'


_WRITERS: Final[Mapping[Kind, Callable[[Any], str]]] = MappingProxyType(
    {
        "integer": str,
        "hexadecimal": hexadecimal,
        "size": str,
        "word": str,
        "name": name_text,
        "text": quote,
        "digest": quote,
        "memory": memory_text,
        "engine": engine_text,
        "integers": integers_text,
        "positions": integers_text,
        "numbers": lambda values: f"[{', '.join(map(number_text, values))}]",
        "term": term_text,
        "address": address_text,
        "count": term_text,
        "attributes": pairs_text,
        "counts": pairs_text,
        "figures": pairs_text,
        "data": data_text,
    }
)


def value_text(field: Field, value: FieldValue) -> str:
    """One value of a field, without its keyword."""
    if value is None:
        return "_"
    if field.kind != "record":
        return _WRITERS[field.kind](value)
    return tag_text(value) if isinstance(value, Tag) else record_text(value)


def record_text(value: Struct) -> str:
    """A record in one line."""
    head, clauses = parts_of(RECORDS[type(value)], value)
    return " ".join([head, *(clause.line for clause in clauses)])


class Clause(Struct, frozen=True):
    """A keyword, and what follows it: several values have a comma between them."""

    keyword: str
    values: tuple[str, ...]

    @property
    def line(self) -> str:
        """In one line."""
        return " ".join([self.keyword, ", ".join(self.values)] if self.values else [self.keyword])


def parts_of(record: Record, value: Struct) -> tuple[str, list[Clause]]:
    """A record's head, whose parts have their places, and what is said by keywords."""
    head, clauses = record.statement, []
    for field in record.fields:
        content = getattr(value, field.name)
        if content == field.default:
            continue
        if field.keyword.isidentifier():
            clauses.append(Clause(field.keyword, _clause_values(field, content)))
        else:
            head += _glue(field, bool(head)) + value_text(field, content)
    return head, clauses


def _clause_values(field: Field, content: FieldValue) -> tuple[str, ...]:
    if field.kind == "flag":
        return ()
    values = content if field.is_many else (content,)
    return tuple(value_text(field, value) for value in values)


def _glue(field: Field, is_behind: bool) -> str:
    """What stands between a value that has its place and what is before it."""
    if field.keyword:
        return f" {field.keyword}" if field.keyword == "@" else field.keyword
    is_close = field.kind in ("integers", "attributes")
    return " " if is_behind and not is_close else ""
