"""Streams of blocks and repeats: items from the front to the back, those of a repeat behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.base.binary.cursor import ByteReader
from nacre.tcb.binary.columns import add_column
from nacre.tcb.binary.sections import SectionReader, SectionWriter
from nacre.tcb.image import Block, Item, Repeat, Stream
from nacre.tcb.limits import MAX_DEPTH

_RECORDS = (Stream, Repeat, Block)


def write_streams(streams: Sequence[Stream], features: frozenset[str]) -> bytes:
    """The section of streams."""
    writer = SectionWriter(_RECORDS, features)
    items = [item for stream in streams for item in _all_items(stream.items)]
    repeats = [item for item in items if isinstance(item, Repeat)]
    writer.counts = [len(streams), len(items), len(repeats)]
    writer.add_records(Stream, streams)
    add_column(writer.columns, [len(stream.items) for stream in streams])
    add_column(writer.columns, [int(isinstance(item, Repeat)) for item in items])
    add_column(writer.columns, [len(repeat.items) for repeat in repeats])
    writer.add_records(Repeat, repeats)
    writer.add_records(Block, [item for item in items if not isinstance(item, Repeat)])
    return writer.content()


def _all_items(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, Repeat):
            yield from _all_items(item.items)


def read_streams(reader: ByteReader, features: frozenset[str]) -> tuple[Stream, ...]:
    """The inverse of `write_streams`."""
    return _StreamReader(SectionReader(reader, _RECORDS, features, 3)).read()


class _StreamReader:
    """Puts items where they belong."""

    def __init__(self, section: SectionReader) -> None:
        self._section = section
        self._pools = section.pools

    def read(self) -> tuple[Stream, ...]:
        section = self._section
        streams, items, repeats = section.counts
        if repeats > items:
            raise self._pools.broken(f"{repeats:,} repeats of {items:,} items")
        heads = section.heads(Stream, streams)
        sizes = section.column(streams)
        kinds = section.column(items)
        if sum(kinds) != repeats or not set(kinds) <= {0, 1}:
            raise self._pools.broken("the kinds of items are not those of so many repeats")
        self._kinds = iter(kinds)
        self._sizes = iter(section.column(repeats))
        self._repeats = iter(section.heads(Repeat, repeats))
        self._blocks = iter(section.records(Block, items - repeats))
        section.finish()
        found = tuple(
            Stream(items=self._items(size, 0), **head)
            for head, size in zip(heads, sizes, strict=True)
        )
        if next(self._kinds, None) is not None:
            raise self._pools.broken("items are left behind the last stream")
        return found

    def _items(self, count: int, depth: int) -> tuple[Item, ...]:
        if depth > MAX_DEPTH or count < 0:
            raise self._pools.broken(f"{count:,} items at depth {depth}")
        found: list[Item] = []
        for _ in range(count):
            kind = next(self._kinds, None)
            if kind is None:
                raise self._pools.broken("a repeat has more items than there are")
            found.append(self._repeat(depth) if kind else next(self._blocks))
        return tuple(found)

    def _repeat(self, depth: int) -> Repeat:
        head, size = next(self._repeats), next(self._sizes)
        return Repeat(items=self._items(size, depth + 1), **head)
