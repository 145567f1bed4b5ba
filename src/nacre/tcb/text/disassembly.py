"""An image as assembler text: one way to write each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def disassemble(image: Image, *, inline_constants: bool = True) -> str:
    """The canonical text; constants as base64, or by their hashes."""
    parts = [
        [f"tcb {VERSION}", *_statement(image), *_statement(image.machine)],
        [line for placement in image.placements for line in _statement(placement)],
        [line for port in image.ports for line in _statement(port)],
        *_streams(image),
        [line for found in image.constants for line in _constant(found, inline_constants)],
        [line for origin in image.origins for line in _statement(origin)],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _streams(image: Image) -> Iterator[list[str]]:
    origins = {origin.position: origin for origin in image.origins}
    for stream in image.streams:
        yield [f"{_head(stream)} {{", *_items(stream.items, origins, _STEP), "}"]


def _head(value: Struct) -> str:
    head, clauses = parts_of(RECORDS[type(value)], value)
    return " ".join([head, *(clause.line for clause in clauses)])


def _items(items: Iterable[Item], origins: Mapping[int, Origin], indent: str) -> Iterator[str]:
    for item in items:
        comment = _comment(origins.get(item.position))
        if isinstance(item, Repeat):
            yield f"{indent}{_head(item)} {{{comment}"
            yield from _items(item.items, origins, indent + _STEP)
            yield f"{indent}}}"
        else:
            yield from _statement(item, indent, comment)


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
