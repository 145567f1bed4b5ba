"""An image as assembler text: one way to write each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Final

from msgspec import Struct

from nacre.base.excerpt import safe
from nacre.tcb.block_table import RECORDS
from nacre.tcb.image import Constant, Image, Item, Origin, Repeat
from nacre.tcb.text.written import Clause, data_reference, parts_of

VERSION: Final = 1
_WIDTH = 100
_STEP = "  "
_LONGEST_NAME = 60  # of what a block comes from, behind it


# A statement's word, or `item` for blocks and repeats, and which of these it is.
Place = tuple[str, int]
_Line = tuple[str, Place | None]  # a line, and what begins there


def disassemble(image: Image, *, inline_constants: bool = True) -> str:
    """The canonical text; constants as base64, or by their hashes."""
    return "".join(f"{line}\n" for line, _ in _all_lines(image, inline_constants))


def listing(image: Image) -> tuple[str, dict[Place, int]]:
    """The text without constants, and the line of every statement, from 1 on."""
    lines = list(_all_lines(image, inline_constants=False))
    places = {place: number for number, (_, place) in enumerate(lines, 1) if place is not None}
    return "".join(f"{line}\n" for line, _ in lines), places


def _all_lines(image: Image, inline_constants: bool) -> Iterator[_Line]:
    yield f"tcb {VERSION}", None
    yield from _marked(_statement(image), ("image", 0))
    yield from _marked(_statement(image.machine), ("machine", 0))
    yield from _group("place", [_statement(placement) for placement in image.placements])
    yield from _group("port", [_statement(port) for port in image.ports])
    yield from _streams(image)
    constants = [_constant(found, inline_constants) for found in image.constants]
    yield from _group("constant", constants)
    yield from _group("origin", [_statement(origin) for origin in image.origins])


def _marked(lines: list[str], place: Place) -> Iterator[_Line]:
    yield lines[0], place
    yield from ((line, None) for line in lines[1:])


def _group(word: str, statements: list[list[str]]) -> Iterator[_Line]:
    """Statements of one kind, behind a blank line."""
    if statements:
        yield "", None
    for at, lines in enumerate(statements):
        yield from _marked(lines, (word, at))


def _streams(image: Image) -> Iterator[_Line]:
    origins = {origin.position: origin for origin in image.origins}
    numbers = count()
    for at, stream in enumerate(image.streams):
        yield "", None
        yield f"{_head(stream)} {{", ("stream", at)
        yield from _items(stream.items, origins, _STEP, numbers)
        yield "}", None


def _head(value: Struct) -> str:
    head, clauses = parts_of(RECORDS[type(value)], value)
    return " ".join([head, *(clause.line for clause in clauses)])


def _items(
    items: Iterable[Item], origins: Mapping[int, Origin], indent: str, numbers: Iterator[int]
) -> Iterator[_Line]:
    for item in items:
        comment = _comment(origins.get(item.position))
        place = ("item", next(numbers))
        if isinstance(item, Repeat):
            yield f"{indent}{_head(item)} {{{comment}", place
            yield from _items(item.items, origins, indent + _STEP, numbers)
            yield f"{indent}}}", None
        else:
            yield from _marked(_statement(item, indent, comment), place)


def _comment(origin: Origin | None) -> str:
    """What stands behind a block: where it comes from."""
    if origin is None:
        return ""
    layer = f", {origin.layer}" if origin.layer is not None else ""
    text = safe(f"{origin.name} at line {origin.line}{layer}".replace("\t", " "))
    return f"  # {text[:_LONGEST_NAME]}"


def _statement(value: Struct, indent: str = "", comment: str = "") -> list[str]:
    """A statement in one line, or its head and lines that its clauses fill."""
    head, clauses = parts_of(RECORDS[type(value)], value)
    return _lines(head, clauses, indent, comment)


def _lines(head: str, clauses: list[Clause], indent: str, comment: str) -> list[str]:
    whole = indent + " ".join([head, *(clause.line for clause in clauses)])
    if len(whole) <= _WIDTH or not clauses:
        return [whole + comment]
    lines = [indent + head + comment]
    inner = indent + 2 * _STEP
    is_full = True  # clauses fill a line; behind one of several lines comes another
    for clause in clauses:
        if not is_full and len(lines[-1]) + 1 + len(clause.line) <= _WIDTH:
            lines[-1] += f" {clause.line}"
            continue
        broken = _broken(clause, inner)
        lines += broken
        is_full = len(broken) > 1
    return lines


def _broken(clause: Clause, indent: str) -> list[str]:
    """A clause in one line, or a value a line."""
    line = indent + clause.line
    if len(line) <= _WIDTH or len(clause.values) < 2:
        return [line]
    pad = indent + " " * (len(clause.keyword) + 1)
    first, *others = clause.values
    lines = [f"{indent}{clause.keyword} {first}", *(f"{pad}{value}" for value in others)]
    return [f"{line}," for line in lines[:-1]] + [lines[-1]]


def _constant(constant: Constant, is_inline: bool) -> list[str]:
    head, clauses = parts_of(RECORDS[Constant], constant)
    data = clauses[-1].values[0]
    if not is_inline:
        return [f"{head} data {data_reference(constant.data)}  # {len(constant.data):,} bytes"]
    lines = data.split("\n")
    if len(lines) == 1:
        return [f"{head} data {data}"]
    return [f"{head} data", *(f"{2 * _STEP}{line}" for line in lines)]
