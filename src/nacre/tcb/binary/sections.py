"""Sections of a file: pools, and the records that use them, as one set of columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from nacre.base.binary.columns import ColumnReader, write_columns
from nacre.base.binary.cursor import Broken, ByteReader, ByteWriter
from nacre.base.binary.texts import read_texts, write_texts
from nacre.tcb.binary.codecs import RecordCodec
from nacre.tcb.binary.columns import Columns, add_column
from nacre.tcb.binary.pools import ReadPools, WrittenPools
from nacre.tcb.block_table import RECORDS, FieldValue
from nacre.tcb.limits import MAX_NUMBERS
from nacre.tcb.rules.binary import TCB15

_LOWER: Final = 29  # bits of a float that those of 32 bits do not have


def codec(of: type[object], features: frozenset[str]) -> RecordCodec:
    """The codec of a record."""
    return RecordCodec(RECORDS[of], features)


def pooled_records(of: Sequence[type[object]]) -> tuple[type[object], ...]:
    """The records inside these, themselves included, that share forms; in the table's order."""
    found: set[type[object]] = set()
    waiting = list(of)
    while waiting:
        record = waiting.pop()
        if record in found:
            continue
        found.add(record)
        waiting += [field.of for field in RECORDS[record].fields if field.of is not None]
    return tuple(record for record in RECORDS if record in found and RECORDS[record].shared_fields)


class SectionWriter:
    """Packs records, and writes them behind what they share."""

    def __init__(self, of: Sequence[type[object]], features: frozenset[str]) -> None:
        self._features = features
        self._pooled = pooled_records(of)
        self.pools = WrittenPools()
        self.columns: Columns = []  # of the records
        self.counts: list[int] = []

    def add_records(self, of: type[object], values: Sequence[FieldValue]) -> None:
        """The columns of records of one kind."""
        packer = codec(of, self._features)
        packer.write([packer.pack(value, self.pools) for value in values], self.columns)

    def content(self) -> bytes:
        """The bytes of the section."""
        out = ByteWriter()
        write_texts(out, list(self.pools.texts))
        out.varint(len(self.pools.heap))
        out.raw(bytes(self.pools.heap))
        forms = [list(self.pools.forms.get(record, ())) for record in self._pooled]
        out.varints([len(self.pools.numbers), len(self.pools.lists), *map(len, forms)])
        out.varints(self.counts)
        shared: Columns = []
        numbers, lists = list(self.pools.numbers), list(self.pools.lists)
        add_column(shared, [bits >> _LOWER for bits in numbers])
        add_column(shared, [bits & ((1 << _LOWER) - 1) for bits in numbers])
        add_column(shared, [len(values) for values in lists])
        add_column(shared, [value for values in lists for value in values])
        for record, rows in zip(self._pooled, forms, strict=True):
            codec(record, self._features).write_forms(rows, shared)
        write_columns(out, [*shared, *self.columns])
        return out.content()


class SectionReader:
    """Reads what records share, and then as many records as are asked for."""

    def __init__(
        self, reader: ByteReader, of: Sequence[type[object]], features: frozenset[str], counts: int
    ) -> None:
        self._reader = reader
        self._features = features
        start = reader.at
        texts = read_texts(reader, "texts")
        heap = reader.take(reader.varint("the heap"), "the heap")
        self.pools = ReadPools(start, texts, heap)
        pooled = pooled_records(of)
        numbers, lists = self._count("floats"), self._count("lists")
        forms = [self._count("forms") for _ in pooled]
        self.counts = [self._count("records") for _ in range(counts)]
        self._columns = ColumnReader(reader, "the section")
        self._read_numbers(numbers)
        self._read_lists(lists)
        for record, count in zip(pooled, forms, strict=True):
            rows = codec(record, features).read_forms(count, self)
            self.pools.forms[record] = rows

    def _count(self, what: str) -> int:
        count = self._reader.varint(f"the number of {what}")
        self._reader.require_most(count, what)
        return count

    def column(self, count: int) -> list[int]:
        """The next column; one without numbers is not there."""
        if not count:
            return []
        most = min(self._reader.most, MAX_NUMBERS)
        if count > most:
            message = f"a column of {count:,} numbers; its bytes may stand for {most:,}"
            raise Broken(TCB15, self._reader.at, message)
        values: list[int] = self._columns.take(count)[0].tolist()
        return values

    def _read_numbers(self, count: int) -> None:
        upper, lower = self.column(count), self.column(count)
        for high, low in zip(upper, lower, strict=True):
            if high >> (64 - _LOWER) or low >> _LOWER:
                raise self.pools.broken("a float of more than 64 bits")
            bits = struct.pack("<Q", high << _LOWER | low)
            self.pools.numbers.append(struct.unpack("<d", bits)[0])

    def _read_lists(self, count: int) -> None:
        lengths = self.column(count)
        if min(lengths, default=0) < 0:
            raise self.pools.broken("a length is negative")
        values, at = self.column(sum(lengths)), 0
        for length in lengths:
            self.pools.lists.append(tuple(values[at : at + length]))
            at += length

    def records(self, of: type[object], count: int) -> list[FieldValue]:
        """So many records of a kind."""
        reader = codec(of, self._features)
        return [reader.unpack(one, self.pools) for one in reader.read(count, self)]

    def heads(self, of: type[object], count: int) -> list[dict[str, FieldValue]]:
        """The fields of so many records of a kind, whose items are not there yet."""
        reader = codec(of, self._features)
        return [reader.unpack_fields(one, self.pools) for one in reader.read(count, self)]

    def finish(self) -> None:
        """Refuse what nothing reads."""
        self._columns.finish()
