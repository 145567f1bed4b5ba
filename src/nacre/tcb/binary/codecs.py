"""How values become integers, and those columns, by the table of fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from nacre.base.terms import fits_int64
from nacre.tcb.binary.columns import (
    Columns,
    Source,
    add_aligned,
    add_column,
    add_periodic,
    read_aligned,
    read_periodic,
)
from nacre.tcb.binary.pools import ReadPools, WrittenPools, encode_text, refuse, require_int64
from nacre.tcb.binary.shapes import hole_count, pack_term, unpack_term
from nacre.tcb.block_table import PERIODS, RECORDS, Field, FieldValue, Kind, Record

# An integer, or integers in tuples: equal where the values are, types and signs included.
Packed = Any
AddColumn = Callable[[Columns, Sequence[int]], None]
ReadColumn = Callable[[int, Source], list[int]]


class Codec(ABC):
    """Values of a field as integers in columns, and back."""

    @abstractmethod
    def pack(self, value: FieldValue, pools: WrittenPools) -> Packed:
        """A value as integers."""

    @abstractmethod
    def write(self, packed: Sequence[Packed], columns: Columns) -> None:
        """The columns of a value for each record."""

    @abstractmethod
    def read(self, count: int, source: Source) -> list[Packed]:
        """The inverse of `write`."""

    @abstractmethod
    def unpack(self, packed: Packed, pools: ReadPools) -> FieldValue:
        """The inverse of `pack`."""


class ScalarCodec(Codec):
    """One integer a value; where None is a value, it is 0, and what is not negative is one more."""

    def __init__(
        self,
        to_integer: Callable[[FieldValue, WrittenPools], int],
        to_value: Callable[[int, ReadPools], FieldValue],
        is_optional: bool,
    ) -> None:
        self._to_integer, self._to_value = to_integer, to_value
        self._is_optional = is_optional

    def pack(self, value: FieldValue, pools: WrittenPools) -> Packed:
        """An integer."""
        if not self._is_optional:
            return self._to_integer(value, pools)
        if value is None:
            return 0
        integer = self._to_integer(value, pools)
        return require_int64(integer + 1) if integer >= 0 else integer

    def write(self, packed: Sequence[Packed], columns: Columns) -> None:
        """One column."""
        add_column(columns, packed)

    def read(self, count: int, source: Source) -> list[Packed]:
        """One column."""
        return source.column(count)

    def unpack(self, packed: Packed, pools: ReadPools) -> FieldValue:
        """The value of an integer."""
        if not self._is_optional:
            return self._to_value(packed, pools)
        if packed == 0:
            return None
        return self._to_value(packed - 1 if packed > 0 else packed, pools)


class AlignedCodec(ScalarCodec):
    """Integers that mostly are multiples of some power of two."""

    def write(self, packed: Sequence[Packed], columns: Columns) -> None:
        """What they end with, and the rest."""
        add_aligned(columns, packed)

    def read(self, count: int, source: Source) -> list[Packed]:
        """The inverse."""
        return read_aligned(count, source)


class TermCodec(Codec):
    """The shapes of a field's terms, and the integers of each, which have columns of their own."""

    def __init__(self, is_optional: bool, add_last: AddColumn, read_last: ReadColumn) -> None:
        self._is_optional = is_optional
        self._add_last, self._read_last = add_last, read_last  # of a shape's last integers

    def pack(self, value: FieldValue, pools: WrittenPools) -> Packed:
        """The number, one more where None is a value, and the integers."""
        if value is None:
            return 0, ()
        shape, integers = pack_term(value, pools)
        return shape + self._is_optional, integers

    def write(self, packed: Sequence[Packed], columns: Columns) -> None:
        """Which of the shapes each has, by their first use; the shapes; the integers of each."""
        rows: dict[int, list[tuple[int, ...]]] = {}
        for shape, integers in packed:
            rows.setdefault(shape, []).append(integers)
        numbers = {shape: number for number, shape in enumerate(rows)}
        add_column(columns, [numbers[shape] for shape, _ in packed])
        add_column(columns, list(rows))
        for integers_of_shape in rows.values():
            by_hole = list(zip(*integers_of_shape, strict=True))
            for hole, integers in enumerate(by_hole, 1):
                (self._add_last if hole == len(by_hole) else add_column)(columns, integers)

    def read(self, count: int, source: Source) -> list[Packed]:
        """The inverse; how many integers there are, the shapes say."""
        numbers = source.column(count)
        most = max(numbers, default=-1)
        if most >= count or min(numbers, default=0) < 0:
            raise source.pools.broken("terms are of a shape that is not there")
        shapes, uses = source.column(most + 1), Counter(numbers)
        rows = [self._read_rows(shape, uses[number], source) for number, shape in enumerate(shapes)]
        return [(shapes[number], next(rows[number])) for number in numbers]

    def _read_rows(self, shape: int, count: int, source: Source) -> Iterator[tuple[int, ...]]:
        """The integers of all terms of a shape."""
        holes = self._holes(shape, source.pools)
        if not holes:
            return iter([()] * count)
        columns = [source.column(count) for _ in range(holes - 1)]
        return zip(*columns, self._read_last(count, source), strict=True)

    def _holes(self, shape: int, pools: ReadPools) -> int:
        if self._is_optional and shape == 0:
            return 0
        return hole_count(shape - self._is_optional, pools)

    def unpack(self, packed: Packed, pools: ReadPools) -> FieldValue:
        """The term."""
        shape, integers = packed
        if self._is_optional and shape == 0:
            return None
        return unpack_term((shape - self._is_optional, integers), pools)


class ManyCodec(Codec):
    """A column with a length each, and then all values, one behind the other."""

    def __init__(self, inner: Codec) -> None:
        self._inner = inner

    def pack(self, value: FieldValue, pools: WrittenPools) -> Packed:
        """A tuple."""
        return tuple(self._inner.pack(one, pools) for one in value)

    def write(self, packed: Sequence[Packed], columns: Columns) -> None:
        """Lengths, and what the values are written as."""
        add_column(columns, [len(values) for values in packed])
        self._inner.write(list(chain.from_iterable(packed)), columns)

    def read(self, count: int, source: Source) -> list[Packed]:
        """The inverse."""
        lengths = source.column(count)
        if min(lengths, default=0) < 0:
            raise source.pools.broken("a length is negative")
        values = iter(self._inner.read(sum(lengths), source))
        return [tuple(next(values) for _ in range(length)) for length in lengths]

    def unpack(self, packed: Packed, pools: ReadPools) -> FieldValue:
        """The values."""
        return tuple(self._inner.unpack(one, pools) for one in packed)


class RecordCodec(Codec):
    """The number of the form that records share, and the fields that each has for itself.

    Where None is a value: 0, and forms from 1 on; of a record that shares nothing, 1.
    """

    def __init__(self, record: Record, features: frozenset[str], is_optional: bool = False) -> None:
        self.record = record
        self._is_optional = is_optional
        self._form = _fields(record.shared_fields, features)
        self._own = _fields(record.unshared_fields, features)
        self._positions = [
            field.name for field in record.unshared_fields if field.kind == "positions"
        ]
        self._has_head = is_optional or bool(self._form)

    def pack(self, value: FieldValue, pools: WrittenPools) -> Packed:
        """The number of its form, if it has one, and its own fields."""
        if value is None:
            return (0,)
        own = tuple(
            codec.pack(self._unshared_value(value, name), pools) for name, codec in self._own
        )
        if not self._has_head:
            return own
        row = tuple(codec.pack(getattr(value, name), pools) for name, codec in self._form)
        number = pools.form(self.record.of, row) if self._form else 0
        return number + self._is_optional, *own

    def _unshared_value(self, value: FieldValue, name: str) -> FieldValue:
        """What a record has in a field of its own; positions as distances, which repeat."""
        content = getattr(value, name)
        if name in self._positions:
            return tuple(value.position - position for position in content)
        return content

    def write(self, packed: Sequence[Packed], columns: Columns) -> None:
        """A column of forms, and those of its own fields."""
        if self._has_head:
            add_column(columns, [row[0] for row in packed])
            packed = [row[1:] for row in packed if not self._is_none(row)]
        for at, (_, codec) in enumerate(self._own):
            codec.write([row[at] for row in packed], columns)

    def read(self, count: int, source: Source) -> list[Packed]:
        """The inverse."""
        heads = [(number,) for number in source.column(count)] if self._has_head else [()] * count
        there = sum(1 for head in heads if not self._is_none(head))
        own = [codec.read(there, source) for _, codec in self._own]
        rows = zip(*own, strict=True) if own else iter([()] * there)
        return [head if self._is_none(head) else (*head, *next(rows)) for head in heads]

    def _is_none(self, row: tuple[Packed, ...]) -> bool:
        return self._is_optional and row[0] == 0

    def unpack(self, packed: Packed, pools: ReadPools) -> FieldValue:
        """The record."""
        return (
            None if self._is_none(packed) else self.record.of(**self.unpack_fields(packed, pools))
        )

    def unpack_fields(self, packed: Packed, pools: ReadPools) -> dict[str, FieldValue]:
        """Its fields by name."""
        own = packed[1:] if self._has_head else packed
        values = {
            name: codec.unpack(one, pools)
            for (name, codec), one in zip(self._own, own, strict=True)
        }
        for name in self._positions:
            values[name] = tuple(values["position"] - distance for distance in values[name])
            if not all(map(fits_int64, values[name])):
                raise pools.broken("a position of more than 64 bits")
        if self._form:
            values |= pools.form(self.record.of, packed[0] - self._is_optional)
        elif self._has_head and packed[0] != 1:
            raise pools.broken(f"{packed[0]:,} is neither 0 nor 1")
        return values

    def write_forms(self, rows: Sequence[Packed], columns: Columns) -> None:
        """The columns of all forms."""
        for at, (_, codec) in enumerate(self._form):
            codec.write([row[at] for row in rows], columns)

    def read_forms(self, count: int, source: Source) -> list[dict[str, FieldValue]]:
        """The shared fields of all forms, by name."""
        read = [codec.read(count, source) for _, codec in self._form]
        return [
            {
                name: codec.unpack(one, source.pools)
                for (name, codec), one in zip(self._form, row, strict=True)
            }
            for row in zip(*read, strict=True)
        ]


def _fields(fields: Sequence[Field], features: frozenset[str]) -> list[tuple[str, Codec]]:
    known = [field for field in fields if not field.feature or field.feature in features]
    return [(field.name, codec_of(field, features)) for field in known]


@lru_cache(maxsize=1024)
def codec_of(field: Field, features: frozenset[str]) -> Codec:
    """The codec of a field, in a file with these features."""
    if field.kind == "record":
        assert field.of is not None
        inner: Codec = RecordCodec(RECORDS[field.of], features, field.is_optional)
    elif field.kind in ("term", "address", "count"):
        inner = TermCodec(field.is_optional, *_last_integers(field.kind, features))
    elif field.kind in ("hexadecimal", "size"):
        inner = AlignedCodec(*_INTEGER, field.is_optional)
    else:
        inner = ScalarCodec(*_scalar(field), field.is_optional)
    return ManyCodec(inner) if field.is_many else inner


def _last_integers(kind: Kind, features: frozenset[str]) -> tuple[AddColumn, ReadColumn]:
    """How the last integers of terms are columns."""
    if kind == "address":
        return add_aligned, read_aligned
    if kind == "count" and PERIODS in features:
        return add_periodic, read_periodic
    return add_column, lambda count, source: source.column(count)


def _scalar(
    field: Field,
) -> tuple[Callable[[FieldValue, WrittenPools], int], Callable[[int, ReadPools], FieldValue]]:
    if field.kind == "flag":
        return _word_functions((False, True))
    if field.kind == "word":
        return _word_functions(field.words)
    return _SCALARS[field.kind]


def _word_functions(
    words: Sequence[FieldValue],
) -> tuple[Callable[[FieldValue, WrittenPools], int], Callable[[int, ReadPools], FieldValue]]:
    def to_value(number: int, pools: ReadPools) -> FieldValue:
        if not 0 <= number < len(words):
            raise pools.broken(f"there is no word {number:,}, only {len(words)}")
        return words[number]

    def to_integer(value: FieldValue, pools: WrittenPools) -> int:
        if value not in words:
            raise refuse(f"{value!r} is none of {', '.join(map(str, words))}")
        return list(words).index(value)

    return to_integer, to_value


def _pack_data(data: bytes, pools: WrittenPools) -> int:
    pools.heap += data
    return len(data)


def _pack_digest(text: str, pools: WrittenPools) -> int:
    """Bytes in the heap: those of a hash, not its digits; of another text -1 less their number."""
    is_hash = len(text) % 2 == 0 and not set(text) - set("0123456789abcdef")
    if is_hash:
        return _pack_data(bytes.fromhex(text), pools)
    return -1 - _pack_data(encode_text(text), pools)


def _unpack_digest(number: int, pools: ReadPools) -> str:
    if number >= 0:
        return pools.take(number).hex()
    try:
        return pools.take(-1 - number).decode()
    except UnicodeDecodeError:
        raise pools.broken("a text in the heap is no UTF-8") from None


_INTEGER = (lambda value, pools: require_int64(value), lambda number, pools: number)
_TEXT = (lambda text, pools: pools.text(text), lambda number, pools: pools.text(number))


def _pairs_of(
    *types: type[object],
) -> tuple[Callable[..., int], Callable[..., FieldValue]]:
    """Names with values of these types alone."""

    def to_value(number: int, pools: ReadPools) -> FieldValue:
        pairs = pools.pairs(number)
        if not all(type(value) in types for _, value in pairs):
            raise pools.broken("a value is of a kind that it cannot be here")
        return pairs

    return lambda pairs, pools: pools.pairs(pairs), to_value


_LIST = (
    lambda values, pools: pools.list_of(values),
    lambda number, pools: pools.list_of(number),
)
_SCALARS: dict[str, tuple[Callable[..., int], Callable[..., FieldValue]]] = {
    "integer": _INTEGER,
    "engine": _INTEGER,
    "name": _TEXT,
    "text": _TEXT,
    "digest": (_pack_digest, _unpack_digest),
    "memory": _TEXT,
    "integers": _LIST,
    "positions": _LIST,
    "numbers": (
        lambda values, pools: pools.list_of([pools.number(value) for value in values]),
        lambda number, pools: tuple(pools.number(one) for one in pools.list_of(number)),
    ),
    "attributes": _pairs_of(int, float, bool, str, tuple),
    "counts": _pairs_of(int),
    "figures": _pairs_of(int, str),
    "data": (_pack_data, lambda number, pools: pools.take(number)),
}
