"""What differs between two images, statement by statement and block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from nacre.tcb.block_table import RECORDS, Field, FieldValue
from nacre.tcb.image import Block, Image, Item, Repeat
from nacre.tcb.text.written import (
    data_reference,
    engine_text,
    memory_text,
    name_text,
    record_text,
    value_text,
)


class FieldDifference(Struct, frozen=True):
    """A field with two values, as text has them."""

    field: str
    before: str
    after: str


class Difference(Struct, frozen=True):
    """A statement that only one image has, or that the two have otherwise."""

    change: Literal["added", "removed", "changed"]
    statement: str  # `stream e0 @4 @6 task`
    fields: tuple[FieldDifference, ...] = ()  # of one that changed
    text: str = ""  # of one that only one image has


def differences(before: Image, after: Image) -> list[Difference]:
    """What differs, in the order of the images' texts; nothing where they are equal."""
    old, new = dict(_statements(before)), dict(_statements(after))
    found = [_compared(name, value, new.get(name)) for name, value in old.items()]
    found += [
        Difference("added", name, text=_line(value))
        for name, value in new.items()
        if name not in old
    ]
    return [difference for difference in found if difference is not None]


def _compared(name: str, before: Struct, after: Struct | None) -> Difference | None:
    if after is None:
        return Difference("removed", name, text=_line(before))
    fields = tuple(
        FieldDifference(field.keyword or field.name, *texts)
        for field in RECORDS[type(before)].fields
        if (texts := _texts(field, before, after))[0] != texts[1]
    )
    return Difference("changed", name, fields) if fields else None


def _texts(field: Field, before: Struct, after: Struct) -> tuple[str, str]:
    return _text(field, getattr(before, field.name)), _text(field, getattr(after, field.name))


def _text(field: Field, value: FieldValue) -> str:
    if field.kind == "flag":
        return "true" if value else "false"
    if field.kind == "data":
        return data_reference(value)
    if field.is_many:
        return ", ".join(value_text(field, one) for one in value) or "-"
    return "-" if value is None or value == "" else value_text(field, value)


def _line(value: Struct) -> str:
    """A statement in one line, without the bytes of constants."""
    return record_text(value).partition(' data "')[0]


def _statements(image: Image) -> Iterator[tuple[str, Struct]]:
    """Every statement under a name of its own."""
    yield "image", image
    yield "machine", image.machine
    yield from _numbered(_named_lists(image))
    for stream in image.streams:
        name = f"stream {engine_text(stream.engine)}"
        yield name, stream
        yield from _numbered(_items(stream.items, name))


def _named_lists(image: Image) -> Iterator[tuple[str, Any]]:
    for placement in image.placements:
        where = memory_text(placement.memory)
        yield f"place {name_text(placement.buffer)} {where}", placement
    for port in image.ports:
        yield f"port {name_text(port.name)}", port
    for constant in image.constants:
        yield f"constant {memory_text(constant.memory)}:{constant.address:#x}", constant
    for origin in image.origins:
        yield f"origin @{origin.position}", origin


def _items(items: Iterable[Item], around: str) -> Iterator[tuple[str, Block | Repeat]]:
    for item in items:
        if isinstance(item, Repeat):
            start = f" start {item.start}" if item.start else ""
            name = f"{around} @{item.position}{start}"
            yield f"{name} repeat", item
            yield from _items(item.items, name)
        else:
            yield f"{around} @{item.position} {item.kind}", item


def _numbered(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Names that come again get a number."""
    seen: Counter[str] = Counter()
    for name, value in pairs:
        seen[name] += 1
        yield f"{name} #{seen[name]}" if seen[name] > 1 else name, value


def describe_differences(found: Iterable[Difference]) -> str:
    """The same for people: a line each, and one for each field."""
    lines: list[str] = []
    for difference in found:
        mark = {"added": "+", "removed": "-", "changed": "~"}[difference.change]
        tail = f": {difference.text}" if difference.text else ""
        lines.append(f"{mark} {difference.statement}{tail}")
        lines += [f"    {f.field}: {f.before} -> {f.after}" for f in difference.fields]
    return "".join(f"{line}\n" for line in lines)
