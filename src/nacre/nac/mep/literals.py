"""Constants as a plan's text spells them; what has no spelling of its own is given as bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from nacre.base.digits import is_digits
from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.positions import BinarySource
from nacre.nac.format.reading import ReadContext
from nacre.nac.format.sections.cnst import read_constant, write_constant
from nacre.nac.format.values import Constant, ConstantValue, Header, constant
from nacre.nac.spec.constants import MOST_LENGTH, TAGS

_WORDS: dict[str, ConstantValue] = {
    "null": None, "true": True, "false": False, "inf": math.inf, "nan": math.nan,
}  # fmt: skip
LITERAL_WORDS = frozenset({*_WORDS, "raw"})


def format_literal(literal: Constant) -> str:
    """A literal that is read as the same bytes."""
    value = literal.value
    read = tuple(map(_read_back, value)) if isinstance(value, tuple) else _read_back(value)
    if constant(literal.id, read) == literal:
        return _format_value(value)
    return f'raw {literal.tag} {literal.ignored} "{literal.payload.hex()}"'


def _read_back(value: Any) -> Any:  # noqa: ANN401 - any value of a constant
    """What reading the text of a value gives: all that is not a number is the same one."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _format_value(value: ConstantValue) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        # Separators that some editors take for the end of a line are escaped as well.
        shown = json.dumps(value, ensure_ascii=False)
        return "".join(c if c == " " or c.isprintable() else json.dumps(c)[1:-1] for c in shown)
    return repr(value)


def word_value(word: str) -> ConstantValue:
    """The value of a word."""
    return _WORDS[word]


def number_value(text: str) -> int | float:
    """The value of a number; signs may stand before `inf` and `nan`."""
    return int(text) if is_digits(text.lstrip("+-")) else float(text)


def list_value(values: Sequence[int | float]) -> tuple[int, ...] | tuple[float, ...]:
    """A list; one float makes all of them floats."""
    if all(isinstance(v, int) for v in values):
        return tuple(int(v) for v in values)
    return tuple(float(v) for v in values)


def raw_constant(id_: int, tag: int, ignored: int, payload: bytes) -> Constant:
    """A constant by its bytes; ValueError where no file could hold it."""
    written_constant = Constant(id_, tag, payload, ignored)
    if tag not in TAGS:
        raise ValueError(f"there is no type {tag} of constants")
    if len(payload) > MOST_LENGTH * max(TAGS[tag].width, 1) or not 0 <= ignored <= MOST_LENGTH:
        raise ValueError(f"a constant has at most {MOST_LENGTH:,} elements")
    written = write_constant(written_constant)
    reading = ReadContext(BinarySource("<constant>", len(written)), Header())
    try:
        read_back = read_constant(Cursor(memoryview(written)), reading)
    except Broken as problem:
        raise ValueError(problem.message) from None
    if reading.findings or read_back != written_constant:
        raise ValueError(f"these bytes are no {TAGS[tag].name}")
    return written_constant
