"""A reader of images written from docs/tcb-format.md alone: slow, plain, with no code of ours.

Even its table of fields is the page's. It trusts what it reads.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.nem.bytecode.second_reader import Bytes, ColumnSet, texts

PAGE = (Path(__file__).resolve().parents[2] / "docs/tcb-format.md").read_text(encoding="utf-8")
OPERATORS = ("", "+", "-", "*", "/", "mod")
Value = Any
_FIELD = re.compile(r"(\w+)=(\w+)(?:\(([\w,]*)\))?(\*?)(\??)(?:\[(\w+)\])?")


class Field:
    """A field as the page has it."""

    def __init__(self, text: str) -> None:
        found = _FIELD.fullmatch(text)
        assert found is not None, text
        self.name, self.kind = found[1], found[2]
        self.words = (found[3] or "").split(",")
        self.is_many, self.is_optional = bool(found[4]), bool(found[5])
        self.feature = found[6]


def layout() -> dict[str, tuple[list[Field], list[Field]]]:
    block = PAGE.partition("<!-- table tcb-layout")[2].split("```")[1]
    found = {}
    for line in block.strip().splitlines():
        name, rest = line.split(None, 1)
        form, _, own = rest.partition("|")
        found[name] = ([Field(t) for t in form.split()], [Field(t) for t in own.split()])
    return found


LAYOUT = layout()
WORDS = PAGE.partition("<!-- table tcb-words")[2].split("```")[1].split()


class Section:
    """What a section shares, and its columns."""

    def __init__(self, data: bytes, records: list[str], counts: int, features: set[str]) -> None:
        reader = Bytes(data)
        self.features = features
        self.texts = [*WORDS, *texts(reader)]
        self.heap = Bytes(reader.take(reader.varint()))
        floats, lists = reader.varint(), reader.varint()
        shared = [name for name in LAYOUT if name in _inside(records) and LAYOUT[name][0]]
        forms = {name: reader.varint() for name in shared}
        self.counts = [reader.varint() for _ in range(counts)]
        self.columns = ColumnSet(data[reader.at :])
        upper, lower = self.column(floats), self.column(floats)
        pairs = zip(upper, lower, strict=True)
        self.floats = [struct.unpack("<d", struct.pack("<Q", u << 29 | v))[0] for u, v in pairs]
        lengths = self.column(lists)
        values = iter(self.column(sum(lengths)))
        self.lists = [[next(values) for _ in range(length)] for length in lengths]
        self.forms: dict[str, list[dict[str, Value]]] = {}
        for name in shared:
            self.forms[name] = self.fields(LAYOUT[name][0], forms[name])

    def column(self, count: int) -> list[int]:
        return self.columns.next(count) if count else []

    def aligned(self, count: int) -> list[int]:
        if not count:
            return []
        (shift,) = self.column(1)
        return [value << shift for value in self.column(count)]

    def counts_up(self, count: int) -> list[int]:
        if "periods" not in self.features or count < 16:
            return self.column(count)
        (period,) = self.column(1)
        numbers = self.column(count)
        for at in range(period, count) if period else ():
            before = numbers[at - 2 * period] if at >= 2 * period else 0
            wrapped = numbers[at] + 2 * numbers[at - period] - before
            numbers[at] = (wrapped + (1 << 63)) % (1 << 64) - (1 << 63)
        return numbers

    def fields(self, fields: list[Field], count: int) -> list[dict[str, Value]]:
        known = [f for f in fields if f.feature is None or f.feature in self.features]
        columns = [(field.name, self.field(field, count)) for field in known]
        return [{name: values[at] for name, values in columns} for at in range(count)]

    def field(self, field: Field, count: int) -> list[Value]:
        if field.is_many:
            lengths = self.column(count)
            values = iter(self.one(field, sum(lengths)))
            return [[next(values) for _ in range(length)] for length in lengths]
        return self.one(field, count)

    def one(self, field: Field, count: int) -> list[Value]:
        if field.kind in LAYOUT:
            return self.records(field.kind, count, field.is_optional)
        if field.kind in ("term", "address", "count"):
            return self.terms(count, field.kind, field.is_optional)
        is_aligned = field.kind in ("hexadecimal", "size")
        numbers = self.aligned(count) if is_aligned else self.column(count)
        return [self.scalar(field, number) for number in numbers]

    def scalar(self, field: Field, number: int) -> Value:
        if field.is_optional:
            if number == 0:
                return None
            number -= number > 0
        if field.kind == "word":
            return field.words[number]
        read: dict[str, Callable[[int], Value]] = {
            "flag": bool,
            "name": self.texts.__getitem__,
            "text": self.texts.__getitem__,
            "memory": self.texts.__getitem__,
            "integers": self.lists.__getitem__,
            "positions": self.lists.__getitem__,
            "numbers": lambda n: [self.floats[one] for one in self.lists[n]],
            "attributes": self.pairs,
            "counts": self.pairs,
            "figures": self.pairs,
            "digest": self.digest,
            "data": self.heap.take,
        }
        return read.get(field.kind, int)(number)

    def pairs(self, number: int) -> list[Value]:
        parts = iter(self.lists[number])
        found = []
        for name, kind, value in zip(parts, parts, parts, strict=True):
            values: list[Callable[[], Value]] = [
                lambda v=value: v,  # type: ignore[misc]
                lambda v=value: self.floats[v],  # type: ignore[misc]
                lambda v=value: bool(v),  # type: ignore[misc]
                lambda v=value: self.texts[v],  # type: ignore[misc]
                lambda v=value: self.lists[v],  # type: ignore[misc]
            ]
            found.append([self.texts[name], values[kind]()])
        return found

    def digest(self, number: int) -> str:
        if number >= 0:
            return self.heap.take(number).hex()
        return self.heap.take(-1 - number).decode()

    def last(self, kind: str, count: int) -> list[int]:
        if kind == "address":
            return self.aligned(count)
        return self.counts_up(count) if kind == "count" else self.column(count)

    def terms(self, count: int, kind: str, is_optional: bool) -> list[Value]:
        numbers = self.column(count)
        lists = self.column(max(numbers, default=-1) + 1)
        shapes = [
            self.lists[one - is_optional] if one or not is_optional else None for one in lists
        ]
        found: list[Value] = [None] * count
        for number, shape in enumerate(shapes):
            if shape is not None:
                places = [at for at, other in enumerate(numbers) if other == number]
                holes = shape.count(0)
                columns = []
                for hole in range(holes):
                    is_last = hole == holes - 1
                    columns.append(self.last(kind if is_last else "term", len(places)))
                for row, at in enumerate(places):
                    found[at] = _term(shape, iter([column[row] for column in columns]))
        return found

    def records(self, name: str, count: int, is_optional: bool = False) -> list[Value]:
        form, own = LAYOUT[name]
        numbers = self.column(count) if form or is_optional else [0] * count
        numbers = [number - is_optional for number in numbers]
        rows = iter(self.fields(own, sum(1 for number in numbers if number >= 0)))
        found: list[Value] = []
        for number in numbers:
            if number < 0:
                found.append(None)
            else:
                found.append({**(self.forms[name][number] if form else {}), **next(rows)})
        for field in own:
            if field.kind == "positions":
                for row in filter(None, found):
                    row[field.name] = [row["position"] - back for back in row[field.name]]
        return found


def _inside(records: list[str]) -> set[str]:
    found = set(records)
    for name in records:
        for field in (*LAYOUT[name][0], *LAYOUT[name][1]):
            if field.kind in LAYOUT:
                found |= _inside([field.kind])
    return found


def _term(shape: list[int], integers: Value) -> Value:
    stack: list[Value] = []
    for code in shape:
        if code == 0:
            stack.append(next(integers))
        elif code > 5:
            stack.append(("c", code - 6))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append((OPERATORS[code], left, right))
    (term,) = stack
    return term


def read(data: bytes) -> Value:
    """An image as plain values."""
    reader = Bytes(data)
    assert reader.take(8) == bytes.fromhex("895443420D0A1A0A")
    assert reader.varint() == 1
    bits = reader.varint()
    features = {reader.text() for bit in range(bits.bit_length()) if bits >> bit & 1}
    table = [(reader.varint(), reader.varint(), reader.take(4)) for _ in range(reader.varint())]
    assert zlib.crc32(data[: reader.at]).to_bytes(4, "little") == reader.take(4)
    sections = {}
    for tag, size, checksum in table:
        sections[tag] = reader.take(size)
        assert zlib.crc32(sections[tag]).to_bytes(4, "little") == checksum
    assert reader.at == len(data)
    header = Section(sections[1], ["Image", "Machine", "Placement", "Port"], 2, features)
    (image,) = header.records("Image", 1)
    (image["machine"],) = header.records("Machine", 1)
    image["placements"] = header.records("Placement", header.counts[0])
    image["ports"] = header.records("Port", header.counts[1])
    image["streams"] = _streams(sections[2], features) if 2 in sections else []
    for tag, name, key in ((3, "Constant", "constants"), (4, "Origin", "origins")):
        image[key] = []
        if tag in sections:
            section = Section(sections[tag], [name], 1, features)
            image[key] = section.records(name, section.counts[0])
    return image


def _streams(data: bytes, features: set[str]) -> list[Value]:
    section = Section(data, ["Stream", "Repeat", "Block"], 3, features)
    count, items, repeats = section.counts
    streams = section.records("Stream", count)
    sizes = section.column(count)
    kinds = iter(section.column(items))
    inner = iter(section.column(repeats))
    heads = iter(section.records("Repeat", repeats))
    blocks = iter(section.records("Block", items - repeats))

    def take(count: int) -> list[Value]:
        return [repeat() if next(kinds) else next(blocks) for _ in range(count)]

    def repeat() -> Value:
        head, size = next(heads), next(inner)
        return {**head, "items": take(size)}

    for stream, size in zip(streams, sizes, strict=True):
        stream["items"] = take(size)
    return streams
