"""A reader of bytecode written from docs/bytecode.md alone: slow, plain, with no code of ours.

Even its table of kinds is the page's. It trusts what it reads.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).resolve().parents[3] / "docs/bytecode.md").read_text(encoding="utf-8")
ENUMS: dict[str, list[Any]] = {
    "Flag": [False, True],
    "Operator": ["+", "-", "*", "/", "mod"],
    "Form": ["per_tensor", "per_channel", "per_group"],
    "Level": ["DDR", "L2", "L1"],
    "Compression": ["palette", "sparse"],
}
FEATURES = ("comments", "positions", "library", "compressed")
POOLS = ["name", "number", "text"]


def _block(name: str) -> list[list[str]]:
    found = re.search(rf"<!-- {name} -->\n```\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return [line.split() for line in found[1].splitlines()]


KINDS = {row[1]: [field.split("=") for field in row[2:]] for row in _block("kinds")}
CODES = {row[1]: int(row[0]) for row in _block("kinds")}
UNIONS = {row[0]: row[1:] for row in _block("unions")}

Tree = dict[str, Any]


class Bytes:
    """Bytes from the front to the back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self) -> str:
        return self.take(self.varint()).decode()


class ColumnSet:
    """Columns, which are asked for one after the other."""

    def __init__(self, data: bytes) -> None:
        reader = Bytes(data)
        count = reader.varint()
        self.heads = list(reader.take(count))
        self.long: dict[int, int] = {}
        if count:
            gaps = [reader.varint() for _ in range(reader.varint())]
            at = -1
            for gap in gaps:
                at += gap + 1
                self.long[at] = 0
            for place in self.long:
                self.long[place] = reader.varint()
        self.bits = int.from_bytes(data[reader.at :], "little")
        self.bit, self.number, self.column = 0, 0, 0

    def next(self, count: int) -> list[int]:
        head = self.heads[self.column]
        self.column += 1
        width = head & 127
        made: list[int] = []
        for _ in range(count):
            value = (self.bits >> self.bit) & ((1 << width) - 1)
            value |= self.long.get(self.number, 0) << width
            self.bit += width
            self.number += 1
            if head & 128:
                value = (value >> 1) ^ -(value & 1)
                value += made[-1] if made else 0
            value &= (1 << 64) - 1
            made.append(value - (1 << 64) if value >> 63 else value)
        return made


def texts(reader: Bytes) -> list[str]:
    count = reader.varint()
    if not count:
        return []
    blob = reader.take(reader.varint())
    columns = ColumnSet(reader.take(reader.varint()))
    heads, tails, sizes = (columns.next(count) for _ in range(3))
    made, old, at = [], b"", 0
    for head, tail, size in zip(heads, tails, sizes, strict=True):
        old = old[:head] + blob[at : at + size] + (old[len(old) - tail :] if tail else b"")
        at += size
        made.append(old)
    return [raw.decode() for raw in made]


@dataclass
class Batch:
    kind: str
    nodes: list[Tree]
    above: frozenset[str] | None


def tree(data: bytes, pools: list[list[str]]) -> tuple[Tree, list[Tree]]:
    """The document, and all nodes in their order."""
    reader = Bytes(data)
    expected = reader.varint()
    columns = ColumnSet(data[reader.at :])
    document: Tree = {"kind": "Document"}
    level = [Batch("Document", [document], frozenset({"Document"}))]
    numbered: list[Tree] = []
    while level:
        following: list[Batch] = []
        merged: dict[str, list[Tree]] = {}
        for batch in level:
            numbered += batch.nodes
            for name, type_ in KINDS[batch.kind]:
                _read_field(batch, name, type_, columns, pools, following, merged)
        level = following + [Batch(k, merged[k], None) for k in sorted(merged, key=CODES.get)]  # type: ignore[arg-type]
    assert len(numbered) == expected
    return document, numbered


def _read_field(
    batch: Batch,
    name: str,
    type_: str,
    columns: ColumnSet,
    pools: list[list[str]],
    following: list[Batch],
    merged: dict[str, list[Tree]],
) -> None:
    bare, nodes = type_.rstrip("*?"), batch.nodes
    if bare == "integer" or bare in ENUMS or bare in POOLS:
        words = ENUMS.get(bare) or (pools[POOLS.index(bare)] if bare in POOLS else None)
        for node, value in zip(nodes, columns.next(len(nodes)), strict=True):
            node[name] = value if words is None else words[value]
        return
    union = UNIONS.get(bare, [bare])
    is_many, is_optional = "*" in type_, type_.endswith("?")
    places = len(nodes)
    lengths: list[int] = []
    if is_many:
        lengths = [length - is_optional for length in columns.next(len(nodes))]
        places = sum(length for length in lengths if length > 0)
    ranks = [1] * places
    if places and (len(union) > 1 or (is_optional and not is_many)):
        ranks = columns.next(places)
    made: list[Tree | None] = [{"kind": union[rank - 1]} if rank else None for rank in ranks]
    for kind in union:
        own = [node for node in made if node is not None and node["kind"] == kind]
        if own and (batch.above is None or kind in batch.above):
            merged.setdefault(kind, []).extend(own)
        elif own:
            assert batch.above is not None
            following.append(Batch(kind, own, batch.above | {kind}))
    if not is_many:
        for node, found in zip(nodes, made, strict=True):
            node[name] = found
        return
    at = 0
    for node, length in zip(nodes, lengths, strict=True):
        node[name] = None if length < 0 else made[at : at + length]
        at += max(length, 0)


@dataclass
class Document:
    """A document as the page says it: its tree, nodes by number, and the other sections."""

    name: str
    flags: int
    tree: Tree
    nodes: list[Tree]
    blanks: list[int]
    comments: list[tuple[int, int, str]]
    broken: list[int]
    positions: dict[str, Any] | None


def read(data: bytes) -> list[Document]:
    """The documents of a file."""
    assert zlib.crc32(data[:-4]).to_bytes(4, "little") == data[-4:]
    reader = Bytes(data[:-4])
    assert reader.take(8) == bytes.fromhex("894E454D420D0A1A")
    assert reader.varint() == 1
    bits = reader.varint()
    assert [reader.text() for _ in range(bits.bit_count())] == [
        name for bit, name in enumerate(FEATURES) if bits >> bit & 1
    ]
    table = []
    for _ in range(reader.varint()):
        name, flags = reader.text(), reader.varint()
        table.append(
            (name, flags, [(reader.varint(), reader.varint()) for _ in range(reader.varint())])
        )
    made = [
        _document(name, flags, {tag: reader.take(size) for tag, size in sizes})
        for name, flags, sizes in table
    ]
    assert reader.at == len(reader.data)
    return made


def _document(name: str, flags: int, sections: dict[int, bytes]) -> Document:
    reader = Bytes(sections[1])
    pools = [texts(reader) for _ in POOLS]
    document, nodes = tree(sections[2], pools)
    blanks: list[int] = []
    if 3 in sections:
        reader = Bytes(sections[3])
        count = reader.varint()
        blanks = ColumnSet(sections[3][reader.at :]).next(count)
    comments: list[tuple[int, int, str]] = []
    broken: list[int] = []
    if 4 in sections:
        reader = Bytes(sections[4])
        found = texts(reader)
        kept = reader.varint()
        columns = ColumnSet(sections[4][reader.at :])
        lines, places = columns.next(len(found)), columns.next(len(found))
        comments = list(zip(lines, places, found, strict=True))
        broken = columns.next(kept) if kept else []
    positions = _positions(sections[5], len(nodes)) if 5 in sections else None
    return Document(name, flags, document, nodes, blanks, comments, broken, positions)


def _positions(data: bytes, nodes: int) -> dict[str, Any]:
    reader = Bytes(data)
    made: dict[str, Any] = {"name": reader.text(), "sha256": reader.take(32)}
    assert made["name"] not in (".", "..")
    assert not {"/", "\0"} & set(made["name"])
    made["size"], lines = reader.varint(), reader.varint()
    columns = ColumnSet(data[reader.at :])
    made["lines"] = columns.next(lines)
    for name in ("starts", "lengths"):
        made[name] = [(value >> 1) ^ -(value & 1) for value in columns.next(nodes)]
    return made
