"""Operands of the text of a plan, read by their kinds; numbers for names come at the end."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.nac.format.values import Constant, ConstantValue, constant
from nacre.nac.mep.lines import Line, LineError, Token
from nacre.nac.mep.literals import (
    LITERAL_WORDS,
    list_value,
    number_value,
    raw_constant,
    word_value,
)
from nacre.nac.mep.table import SLOTS, Operand, Row
from nacre.nac.rules.plans import NAC80, NAC83
from nacre.nac.spec.constants import MOST_LENGTH, STRING

MOST_ID = 65535  # of a constant
MOST_INDEX = 2**32 - 1  # of an instruction


@dataclass(frozen=True, slots=True)
class Label:
    """A jump before it is known where its label stands."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class NamedOperand:
    """A slot or constant before numbers are given."""

    name: str
    span: Span


Written = int | tuple["int | NamedOperand", ...] | NamedOperand | Label | Constant


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of the text."""

    row: Row
    operands: tuple[Written, ...]
    span: Span


# Operands by their kinds


def _slot(line: Line, operand: Operand) -> int | NamedOperand:
    token = line.take("slot", f"slot `{operand.name}`, as in `%name`")
    name = token.text[1:]
    if not is_digits(name):
        return NamedOperand(name, token.span)
    if len(name) > 3 or int(name) >= SLOTS:
        raise LineError(NAC83, token.span, f"slot {name} is one of {SLOTS}, which count from 0")
    return int(name)


def _slots(line: Line, operand: Operand) -> tuple[int | NamedOperand, ...]:
    line.take("mark", f"`{operand.name}`, as in `[%a, %b]`", "[")
    slots: list[int | NamedOperand] = []
    while not line.has("mark", "]"):
        if slots:
            line.take_mark(",")
        slots.append(_slot(line, operand))
    if len(slots) >= SLOTS:
        message = f"`{operand.name}` has {len(slots)} slots, at most {SLOTS - 1}"
        raise LineError(NAC83, line.place, message)
    line.take_mark("]")
    return tuple(slots)


def choice(line: Line, operand: Operand) -> int:
    """The number of a word."""
    codes = {word: code for code, word in operand.words.items()}
    known = ", ".join(f"`{word}`" for word in codes)
    token = line.take("word", f"`{operand.name}`: {known}")
    if token.text not in codes:
        message = f"`{operand.name}` is {backquote(token.text)}, expected {known}"
        raise LineError(NAC80, token.span, message, did_you_mean(token.text, codes))
    return codes[token.text]


def _model(line: Line, operand: Operand) -> int:
    token = line.take("number", f"the number of `{operand.name}`")
    return small_number(token, SLOTS - 1, f"`{operand.name}`")


def _index(line: Line, operand: Operand) -> int:
    what = f"the number of an instruction, `{operand.name}`"
    return small_number(line.take("number", what), MOST_INDEX, f"`{operand.name}`")


def small_number(token: Token, most: int, what: str) -> int:
    """A number from 0."""
    if not is_digits(token.text) or len(token.text) > 10 or int(token.text) > most:
        message = f"{what} is {backquote(token.text)}, expected 0 to {most:,}"
        raise LineError(NAC83, token.span, message)
    return int(token.text)


def _const(line: Line, operand: Operand) -> int | NamedOperand | Constant:
    if line.has("const"):
        token = line.take("const", "a constant")
        name = token.text[1:]
        return NamedOperand(f"${name}", token.span)
    place = line.place
    value = literal(line)
    if operand.kind == "text" and value.tag != STRING:
        raise LineError(NAC80, place, f"`{operand.name}` is no text")
    return value


def _label(line: Line, operand: Operand) -> Label:
    token = line.take("word", f"the label of `{operand.name}`")
    return Label(token.text, token.span)


READERS: Mapping[str, Callable[[Line, Operand], Written]] = {
    **dict.fromkeys(("slot", "out", "optional_out"), _slot), "slots": _slots, "outs": _slots,
    "choice": choice, "model": _model, "const": _const, "text": _const,
    "index": _index, "jump": _label,
}  # fmt: skip


# Literals


def literal(line: Line) -> Constant:
    """A constant without an id of its own."""
    place = line.place
    if line.has("word", "raw"):
        return _raw(line)
    value = _value(line)
    try:
        made_constant = constant(0, value)
    except (struct.error, OverflowError):
        message = "the number does not fit: 64 bits for one, 32 for those of a list"
        raise LineError(NAC83, place, message) from None
    except UnicodeEncodeError:
        raise LineError(NAC80, place, "the text has half a character") from None
    count = len(value) if isinstance(value, tuple) else len(made_constant.payload)
    if count > MOST_LENGTH:
        message = f"the constant has length {count:,}, at most {MOST_LENGTH:,}"
        raise LineError(NAC83, place, message)
    return made_constant


def _value(line: Line) -> ConstantValue:
    if line.has("string"):
        token = line.take("string", "a text")
        try:
            return str(json.loads(token.text))
        except ValueError:
            raise LineError(NAC80, token.span, "the text has an unknown escape") from None
    if line.has("mark", "["):
        return _list(line)
    if line.has("word") and line.next is not None and line.next.text in LITERAL_WORDS:
        return word_value(line.take("word", "a value").text)
    return _number(line)


def _number(line: Line) -> int | float:
    if line.has("word", "inf") or line.has("word", "nan"):
        return float(line.take("word", "a number").text)
    token = line.take("number", "a constant")
    try:
        return number_value(token.text)
    except ValueError:  # more digits than Python reads
        raise LineError(NAC83, token.span, "the number does not fit in 64 bits") from None


def _list(line: Line) -> tuple[int, ...] | tuple[float, ...]:
    line.take_mark("[")
    values: list[int | float] = []
    while not line.has("mark", "]"):
        if values:
            line.take_mark(",")
        values.append(_number(line))
    line.take_mark("]")
    return list_value(values)


def _raw(line: Line) -> Constant:
    place = line.take("word", "`raw`").span
    tag = small_number(line.take("number", "the type of a constant"), SLOTS - 1, "a type")
    ignored = small_number(line.take("number", "a length"), MOST_LENGTH, "a length")
    token = line.take("string", "bytes in hexadecimal")
    try:
        return raw_constant(0, tag, ignored, bytes.fromhex(token.text[1:-1]))
    except ValueError as error:
        raise LineError(NAC80, place, str(error)) from None
