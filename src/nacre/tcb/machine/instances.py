"""Every instance of every block as a number, in the order of the program, and its tags as columns.

What all machines run: an instance is its index in columns. Tags are numbered through, those of the
device first, then those of each engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.base.term_columns import Column, TermProblem
from nacre.tcb.image import DEVICE, Image, Origin, Tag
from nacre.tcb.machine.tree import (
    NotOneProgramError,
    PlacedBlock,
    Tree,
    merge_streams,
    number_blocks,
)
from nacre.tcb.rules.running import TCB50

# As many as NEM unrolls, and the joins between them.
MAX_INSTANCES = 20_000_000
# Counters that a machine keeps, in all.
MAX_TAGS = 1 << 24

NONE = -1


class Lists(NamedTuple):
    """Some numbers for each instance, side by side: those of n are first[n] to first[n + 1]."""

    first: Column
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Instances:
    """The instances of an image as columns."""

    image: Image
    blocks: tuple[PlacedBlock, ...]
    numbers: tuple[Column, ...]  # of a block's instances, row by row
    block: Column
    row: Column  # in the grid of its block
    tags: TagNumbers
    waits: Lists  # tags and the values that they have to reach
    signal: Column  # a tag; -1: none
    raises: Lists  # first tag, how many, value

    @property
    def count(self) -> int:
        """How many there are."""
        return self.block.size

    def by_block(self, value: Callable[[PlacedBlock], int]) -> Column:
        """A number that all instances of a block share."""
        table = np.array([value(placed) for placed in self.blocks], np.int64)
        return table[self.block] if table.size else np.zeros(0, np.int64)

    @cached_property
    def kinds(self) -> Column:
        """Tasks 0, waits 1, joins 2."""
        return self.by_block(lambda placed: ("task", "wait", "join").index(placed.block.kind))

    @cached_property
    def producer(self) -> Column:
        """What streams into an instance; -1: nothing."""
        found = np.full(self.count, NONE, np.int64)
        for placed, rows in zip(self.blocks, self.numbers, strict=True):
            if placed.producer is not None:
                found[rows] = self.numbers[placed.producer]
        return found

    @cached_property
    def consumer(self) -> Column:
        """What an instance streams into; -1: nothing."""
        found = np.full(self.count, NONE, np.int64)
        fed = np.flatnonzero(self.producer >= 0)
        found[self.producer[fed]] = fed
        return found

    @cached_property
    def consuming_block(self) -> Mapping[int, int]:
        """The block that a block streams into, by their numbers."""
        fed = ((placed.producer, at) for at, placed in enumerate(self.blocks))
        return {producer: at for producer, at in fed if producer is not None}

    def block_of(self, instance: int) -> PlacedBlock:
        """The block of an instance."""
        return self.blocks[int(self.block[instance])]

    def counters(self, instance: int) -> tuple[int, ...]:
        """The counters around an instance, outermost first."""
        return self.block_of(instance).grid.iteration(int(self.row[instance]))

    @cached_property
    def origins(self) -> Mapping[int, Origin]:
        """Where blocks come from, by position."""
        return {origin.position: origin for origin in self.image.origins}

    def name(self, instance: int) -> str:
        """What an instance is called: the task's name and its counters."""
        block, counters = self.block_of(instance).block, self.counters(instance)
        origin = self.origins.get(block.position)
        name = origin.name if origin is not None else f"{block.kind} at {block.position}"
        return f"{name}[{','.join(map(str, counters))}]" if counters else name


class TagNumbers:
    """One number for each tag of the device and of the engines."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self._spaces = sorted(sizes)  # DEVICE is the least
        ends = np.cumsum([sizes[space] for space in self._spaces], dtype=np.int64)
        self.count = int(ends[-1]) if self._spaces else 0
        self.first = {s: int(e) - sizes[s] for s, e in zip(self._spaces, ends, strict=True)}

    def name(self, number: int) -> str:
        """How a tag is written in the text of an image: `d.t3`, `e0.t2`."""
        space = max((s for s in self._spaces if self.first[s] <= number), default=DEVICE)
        home = "d" if space == DEVICE else f"e{space}"
        return f"{home}.t{number - self.first.get(space, 0)}"


def unroll(image: Image) -> Instances:
    """Every instance of an image; InputError TCB50 where its repeats cannot be counted out."""
    try:
        tree = merge_streams(image.streams, MAX_INSTANCES)
        return _columns(image, tree)
    except NotOneProgramError as error:
        raise _unrolling_error(image, str(error)) from None
    except TermProblem as problem:
        message = f"a term of a block has no value: {problem.kind}"
        raise _unrolling_error(image, message) from None


def _unrolling_error(image: Image, message: str) -> InputError:
    place = whole_file(image.source or image.entry)
    return InputError([TCB50.at(place, f"the image cannot be unrolled: {message}")])


def _columns(image: Image, tree: Tree) -> Instances:
    numbers = number_blocks(tree)
    total = sum(column.size for column in numbers)
    block, row = np.zeros(total, np.int64), np.zeros(total, np.int64)
    for at, column in enumerate(numbers):
        block[column] = at
        row[column] = np.arange(column.size)
    tags = _number_tags(tree)
    signal = np.full(total, NONE, np.int64)
    for placed, rows in zip(tree.blocks, numbers, strict=True):
        if placed.block.signal is not None:
            signal[rows] = _tag(placed, placed.block.signal, tags)
    return Instances(
        image,
        tree.blocks,
        tuple(numbers),
        block,
        row,
        tags,
        _lists(total, tree, numbers, lambda placed: _waits(placed, tags), 2),
        signal,
        _lists(total, tree, numbers, lambda placed: _raises(placed, tags), 3),
    )


def _tags_of(placed: PlacedBlock) -> Iterator[tuple[Tag, int]]:
    """The tags that a block speaks of, with how many there are from each on."""
    block = placed.block
    yield from ((wait.tag, 1) for wait in block.waits)
    yield from ((raised.tag, raised.count) for raised in block.sets)
    if block.signal is not None:
        yield block.signal, 1


def _number_tags(tree: Tree) -> TagNumbers:
    sizes: dict[int, int] = {}
    seen: set[tuple[int, Tag, int]] = set()  # blocks of a body share most of theirs
    for placed in tree.blocks:
        for tag, count in _tags_of(placed):
            key = (id(placed.grid), tag, count)
            if key in seen or not placed.grid.rows:
                continue
            seen.add(key)
            column = np.asarray(placed.grid.evaluate(tag.index))
            low, high = int(column.min()), int(column.max()) + count
            if low < 0 or tag.engine < DEVICE or high > MAX_TAGS:
                raise NotOneProgramError(f"there is no tag {low if low < 0 else high - 1}")
            sizes[tag.engine] = max(sizes.get(tag.engine, 0), high)
    if sum(sizes.values()) > MAX_TAGS:
        raise NotOneProgramError("it has more tags than a machine takes")
    return TagNumbers(sizes)


def _tag(placed: PlacedBlock, tag: Tag, tags: TagNumbers) -> Column:
    return tags.first[tag.engine] + placed.grid.column(tag.index)


def _waits(placed: PlacedBlock, tags: TagNumbers) -> Iterator[tuple[Column, ...]]:
    for wait in placed.block.waits:
        yield _tag(placed, wait.tag, tags), placed.grid.column(wait.value)


def _raises(placed: PlacedBlock, tags: TagNumbers) -> Iterator[tuple[Column, ...]]:
    for raised in placed.block.sets:
        count = np.broadcast_to(np.int64(raised.count), (placed.grid.rows,))
        yield _tag(placed, raised.tag, tags), count, placed.grid.column(raised.value)


def _lists(
    total: int,
    tree: Tree,
    numbers: list[Column],
    entries: Callable[[PlacedBlock], Iterator[tuple[Column, ...]]],
    width: int,
) -> Lists:
    """Columns with as many entries an instance as its block has."""
    found = [list(entries(placed)) if placed.grid.rows else [] for placed in tree.blocks]
    counts = np.zeros(total, np.int64)
    for rows, each in zip(numbers, found, strict=True):
        counts[rows] = len(each)
    first = np.append(np.int64(0), np.cumsum(counts))
    columns = tuple(np.zeros(int(first[-1]), np.int64) for _ in range(width))
    for rows, each in zip(numbers, found, strict=True):
        for at, values in enumerate(each):
            for column, value in zip(columns, values, strict=True):
                column[first[rows] + at] = value
    return Lists(first, columns)
