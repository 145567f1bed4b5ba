"""The streams of an image as the one program that they are projections of.

Streams have loops in common: repeats of the same position and start are one loop, whose blocks
stand in several of them. The order of a program is that of positions and counters; at a loop's
position its entry stands before its iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from nacre.base.term_columns import Column, TermProblem, Values, evaluate
from nacre.base.terms import Term
from nacre.tcb.image import Block, Item, Repeat, Stream

_NO_ROWS: Column = np.zeros(0, np.int64)
_FEW_ROWS = 64  # of which a column costs no memory to speak of


@dataclass(frozen=True, eq=False)
class Grid:
    """The iterations around a block, in the order of the program: a counter for each loop."""

    rows: int
    counters: tuple[Column, ...] = ()  # outermost first
    parent: Grid | None = field(default=None, repr=False)
    parent_row: Column = field(default_factory=lambda: _NO_ROWS, repr=False)

    def evaluate(self, term: Term) -> Values:
        """A term in every row."""
        return evaluate(term, list(self.counters))

    def column(self, term: Term) -> Column:
        """The same as a column, whatever the term."""
        values = self.evaluate(term)
        if self.rows <= _FEW_ROWS and isinstance(values, int):  # which is most of them
            return np.full(self.rows, values, np.int64)  # in a fifth of the time
        return np.broadcast_to(np.asarray(values, np.int64), (self.rows,))

    def iteration(self, row: int) -> tuple[int, ...]:
        """The counters of a row."""
        return tuple(int(column[row]) for column in self.counters)

    def rows_in(self, ancestor: Grid) -> Column:
        """The rows of a grid around this one in which its rows lie."""
        rows, grid = np.arange(self.rows, dtype=np.int64), self
        while grid is not ancestor:
            rows = grid.parent_row[rows]
            if grid.parent is None:
                raise ValueError("not around this grid")
            grid = grid.parent
        return rows


@dataclass(frozen=True, eq=False)
class Scope:
    """The tasks of a body by position, and the bodies around it."""

    tasks: dict[int, int] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, position: int) -> int | None:
        """The block of a task in this body or around it."""
        scope: Scope | None = self
        while scope is not None:
            if position in scope.tasks:
                return scope.tasks[position]
            scope = scope.outer
        return None


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    """A block at its place: the stream that it stands in, and the iterations around it."""

    block: Block
    stream: int  # an engine, or DEVICE
    grid: Grid
    scope: Scope = field(repr=False)
    position: int  # in the order of the program: of a chain that of its last block
    producer: int | None = None  # the block that streams into it


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop, or some of its iterations."""

    grid: Grid
    nodes: tuple[Node, ...]


Node = int | Loop  # a block by its number, or a loop


class NotOneProgramError(Exception):
    """Streams that are no projections of one program; the message says why."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A whole program."""

    blocks: tuple[PlacedBlock, ...]  # in the order of the text
    nodes: tuple[Node, ...]


def merge_streams(streams: Sequence[Stream], most_instances: int) -> Tree:
    """One program of all streams; NotOneProgramError where they are none."""
    merger = _Merger(most_instances)
    items = [placed for stream in streams for placed in _in_order(stream.engine, stream.items)]
    nodes = merger.body(items, Grid(1), None)
    return Tree(tuple(merger.blocks), nodes)


class _Merger:
    def __init__(self, most_instances: int) -> None:
        self.blocks: list[PlacedBlock] = []
        self._left = most_instances

    def body(
        self, items: Iterable[_StreamItem], grid: Grid, outer: Scope | None
    ) -> tuple[Node, ...]:
        """The nodes of a body, whose items stand in several streams."""
        nodes: list[Node] = []
        scope = Scope(outer=outer)
        before: dict[int, int] = {}  # the block that stands before, by stream
        for _, group in groupby(sorted(items, key=_place), key=_place):
            found = list(group)
            repeats = [(stream, item) for stream, item, _ in found if isinstance(item, Repeat)]
            if repeats:
                nodes.append(self._loop(repeats, grid, scope))
            for stream, item, position in found:
                if isinstance(item, Block):
                    producer = self._chained(before.get(stream))
                    before[stream] = len(self.blocks)
                    nodes.append(len(self.blocks))
                    self._take(grid.rows)
                    self.blocks.append(PlacedBlock(item, stream, grid, scope, position, producer))
                    if item.kind == "task":
                        scope.tasks[item.position] = before[stream]
        return tuple(nodes)

    def _chained(self, before: int | None) -> int | None:
        """The block before, where it streams into the next."""
        return before if before is not None and self.blocks[before].block.is_chained else None

    def _loop(self, repeats: list[tuple[int, Repeat]], grid: Grid, scope: Scope) -> Loop:
        first = repeats[0][1]
        if any(repeat.count != first.count for _, repeat in repeats):
            raise NotOneProgramError(f"repeats at {first.position} differ in how often they repeat")
        inner = self._inner_grid(first, grid)
        items = [placed for stream, repeat in repeats for placed in _in_order(stream, repeat.items)]
        return Loop(inner, self.body(items, inner, scope))

    def _inner_grid(self, repeat: Repeat, grid: Grid) -> Grid:
        try:
            counts = np.maximum(grid.column(repeat.count), 0)
        except TermProblem as problem:
            raise NotOneProgramError(
                f"the count of the repeat at {repeat.position} has no value: {problem.kind}"
            ) from None
        if float(counts.sum(dtype=np.float64)) > self._left:
            raise NotOneProgramError("it has more instances than a machine takes")
        parent_row = np.repeat(np.arange(grid.rows, dtype=np.int64), counts)
        ordinal = (
            np.arange(parent_row.size, dtype=np.int64) - (np.cumsum(counts) - counts)[parent_row]
        )
        counters = (*(column[parent_row] for column in grid.counters), ordinal + repeat.start)
        return Grid(parent_row.size, counters, grid, parent_row)

    def _take(self, rows: int) -> None:
        self._left -= rows
        if self._left < 0:
            raise NotOneProgramError("it has more instances than a machine takes")


_StreamItem = tuple[int, Item, int]  # a stream, an item of it, and where that stands in a program


def _in_order(stream: int, items: Sequence[Item]) -> Iterator[_StreamItem]:
    """Items of a stream with their places; the blocks of a chain stand where its last does."""
    placed: list[_StreamItem] = []
    following = 0
    for item in reversed(items):
        is_chained = isinstance(item, Block) and item.is_chained and bool(placed)
        following = following if is_chained else item.position
        placed.append((stream, item, following))
    return reversed(placed)


def _place(entry: _StreamItem) -> tuple[int, bool, int]:
    """Where an item stands in its body: a loop's entry before its iterations."""
    _, item, position = entry
    if isinstance(item, Repeat):
        return position, True, item.start
    return position, False, 0


def number_blocks(tree: Tree) -> list[Column]:
    """The number of every instance in the order of the program, by block."""
    numberer = _Numberer(tree)
    numberer.body(tree.nodes, np.zeros(1, np.int64))
    return numberer.numbers


class _Numberer:
    """Counts instances, iteration by iteration, on whole columns."""

    def __init__(self, tree: Tree) -> None:
        self.numbers: list[Column] = [_NO_ROWS] * len(tree.blocks)
        self._sizes: dict[int, Column] = {}

    def body(self, nodes: tuple[Node, ...], first: Column) -> Column:
        """Number a body; `first` is the next number at the start of each iteration, then after."""
        for node in nodes:
            if isinstance(node, Loop):
                first = self._loop(node, first)
            else:
                self.numbers[node] = first
                first = first + 1
        return first

    def _loop(self, loop: Loop, first: Column) -> Column:
        sizes, parents = self._size(loop), loop.grid.parent_row
        before = np.cumsum(sizes) - sizes
        starts = np.searchsorted(parents, np.arange(first.size), side="left")
        offset = np.append(before, 0)[starts][parents]
        self.body(loop.nodes, first[parents] + before - offset)
        return first + np.bincount(parents, sizes, first.size).astype(np.int64)

    def _size(self, loop: Loop) -> Column:
        """How many instances each iteration has, those of loops in it included."""
        if id(loop) not in self._sizes:
            sizes = np.full(loop.grid.rows, sum(isinstance(n, int) for n in loop.nodes), np.int64)
            for node in loop.nodes:
                if isinstance(node, Loop):
                    inner = np.bincount(node.grid.parent_row, self._size(node), loop.grid.rows)
                    sizes += inner.astype(np.int64)
            self._sizes[id(loop)] = sizes
        return self._sizes[id(loop)]
