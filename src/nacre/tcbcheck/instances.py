"""Every block of an image as often as it is repeated, in program order, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from nacre.base.term_columns import Column, evaluate
from nacre.base.terms import Term
from nacre.tcb.image import Block, Image, Item, Repeat, Tag

_TERMINAL = -1  # in the place of a counter: a block stands before the repeat of its position


@dataclass(frozen=True, eq=False)
class BlockInstances:
    """The instances of one block, in the order of its stream."""

    block: Block
    stream: int
    counters: tuple[Column, ...]  # of the repeats around it, outermost first
    path: tuple[int, ...]  # the positions of those repeats
    rows: int
    position: int  # in program order: of a chain that of its last block
    next: Block | None  # that it streams into

    def column(self, term: Term) -> Column:
        """A term in every instance."""
        values = evaluate(term, list(self.counters))
        return np.broadcast_to(np.asarray(values, np.int64), (self.rows,))

    def iteration(self, row: int) -> tuple[int, ...]:
        """The counters of an instance."""
        return tuple(int(column[row]) for column in self.counters)


@dataclass(frozen=True, eq=False)
class Instances:
    """All of them: an instance is its index in program order."""

    blocks: tuple[BlockInstances, ...]
    block: Column  # of every instance, by its index in `blocks`
    row: Column
    numbers: tuple[Column, ...]  # the instances of every block, by row

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.block.size)

    def streams_from(self, owner: int, row: int) -> int | None:
        """The instance that streams into one: that of the block before it, where it is chained."""
        if owner == 0 or not self.blocks[owner - 1].block.is_chained:
            return None
        before = self.blocks[owner - 1]
        return int(self.numbers[owner - 1][row]) if before.next is not None else None


def expand(image: Image) -> Instances:
    """The instances of an image."""
    streams = (_expand(stream.items, stream.engine, (), (), 1) for stream in image.streams)
    blocks = tuple(chain.from_iterable(streams))
    order = _program_order(blocks)
    owner = np.repeat(np.arange(len(blocks)), [found.rows for found in blocks])
    rows = np.concatenate([np.zeros(0, np.int64), *(np.arange(found.rows) for found in blocks)])
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    starts = np.cumsum([0, *(found.rows for found in blocks)])
    numbers = tuple(rank[a:b] for a, b in pairwise(starts))
    return Instances(blocks, owner[order], rows[order], numbers)


def _expand(
    items: Sequence[Item],
    stream: int,
    counters: tuple[Column, ...],
    path: tuple[int, ...],
    rows: int,
) -> Iterator[BlockInstances]:
    for index, item in enumerate(items):
        if isinstance(item, Repeat):
            counts = np.asarray(evaluate(item.count, list(counters)), np.int64)
            counts = np.maximum(np.broadcast_to(counts, (rows,)), 0)
            parent = np.repeat(np.arange(rows), counts)
            own = np.arange(parent.size) - (np.cumsum(counts) - counts)[parent] + item.start
            inner = (*(column[parent] for column in counters), own)
            yield from _expand(item.items, stream, inner, (*path, item.position), parent.size)
        else:
            position, following = _chain_end(items, index)
            yield BlockInstances(item, stream, counters, path, rows, position, following)


def _chain_end(items: Sequence[Item], index: int) -> tuple[int, Block | None]:
    """The position of the last block of a chain, and the one that follows in it."""
    last = index
    item = items[last]
    while isinstance(item, Block) and item.is_chained and last + 1 < len(items):
        last += 1
        item = items[last]
    following = items[index + 1] if last > index else None
    return item.position, following if isinstance(following, Block) else None


def _program_order(blocks: Sequence[BlockInstances]) -> Column:
    """The instances of all blocks, one block after the other, sorted by program order."""
    depth = max((len(found.path) for found in blocks), default=0)
    total = sum(found.rows for found in blocks)
    keys = np.full((2 * depth + 1, total), _TERMINAL, np.int64)
    start = 0
    for found in blocks:
        part = slice(start, start + found.rows)
        for level, (position, column) in enumerate(zip(found.path, found.counters, strict=True)):
            keys[2 * level, part] = position
            keys[2 * level + 1, part] = column
        keys[2 * len(found.path), part] = found.position
        start += found.rows
    order: Column = np.lexsort(keys[::-1])
    return order


class TagNumbers:
    """Tags of all spaces as numbers side by side."""

    def __init__(self, instances: Instances) -> None:
        self._bases: dict[int, int] = {}
        sizes: dict[int, int] = {}
        for found in instances.blocks:
            if found.rows:
                for tag, count in _tags(found.block):
                    end = int(found.column(tag.index).max()) + count
                    sizes[tag.engine] = max(sizes.get(tag.engine, 0), end)
        self.count = 0
        for engine, size in sorted(sizes.items()):
            self._bases[engine] = self.count
            self.count += size

    def column(self, tag: Tag, found: BlockInstances) -> Column:
        """The number of a tag in every instance of a block."""
        return found.column(tag.index) + self._bases[tag.engine]

    def name(self, number: int) -> str:
        """A tag as the text of an image writes it."""
        engine, base = max(
            (pair for pair in self._bases.items() if pair[1] <= number), key=lambda pair: pair[1]
        )
        return f"d.t{number - base}" if engine < 0 else f"e{engine}.t{number - base}"


def _tags(block: Block) -> Iterator[tuple[Tag, int]]:
    yield from ((wait.tag, 1) for wait in block.waits)
    yield from ((raised.tag, raised.count) for raised in block.sets)
    if block.signal is not None:
        yield block.signal, 1
