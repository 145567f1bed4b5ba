"""A tree as it lies in a file: batches of nodes of one kind, with a column for each field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.nem.bytecode.kinds import KINDS, Kind
from nacre.nem.syntax.ast import Node


class Part(NamedTuple):
    """The nodes of one kind in a field: so many of a batch, and at which of its places."""

    batch: Batch
    offset: int
    size: int
    where: Integers | None  # None: at all of them

    @property
    def rows(self) -> slice:
        """Which nodes of the batch."""
        return slice(self.offset, self.offset + self.size)

    @property
    def nodes(self) -> list[Any]:
        """These nodes, once they are made."""
        is_whole = self.size == self.batch.count
        return self.batch.nodes if is_whole else self.batch.nodes[self.rows]


@dataclass
class Children:
    """A field that holds nodes: `size` places, some of which may be empty."""

    size: int
    selector: Integers | None = None  # None: one kind everywhere
    rank: int | None = None  # the number that it has everywhere, where that is known
    lengths: Integers | None = None  # of lists, a list a node; -1 for none at all
    parts: list[Part] = field(default_factory=list)

    @cached_property
    def counts(self) -> Integers:
        """How many places each list has."""
        assert self.lengths is not None
        return np.maximum(self.lengths, 0)

    @cached_property
    def ends(self) -> Integers:
        """Behind which place each list ends."""
        return np.cumsum(self.counts)

    def ranks(self) -> list[tuple[int, int]]:
        """Which kinds of the field there are, counted from 1, and how many of each."""
        if self.selector is None or self.rank is not None:
            rank = 1 if self.rank is None else self.rank
            return [(rank, self.size)] if self.size and rank else []
        counts = enumerate(np.bincount(self.selector).tolist())
        return [(rank, count) for rank, count in counts if rank and count]

    def gather(self) -> Integers:
        """The widths of the nodes, 0 at empty places."""
        if len(self.parts) == 1 and self.parts[0].where is None:
            return self.parts[0].batch.widths[self.parts[0].rows]
        widths = np.zeros(self.size, np.int64)
        for part in self.parts:
            widths[part.where] = part.batch.widths[part.rows]
        return widths

    def scatter(self, starts: Integers) -> None:
        """Say where the nodes start."""
        for part in self.parts:
            part.batch.starts[part.rows] = starts if part.where is None else starts[part.where]

    def nodes(self) -> list[Node | None]:
        """The nodes in order, None at empty places."""
        if not self.parts:
            return [None] * self.size
        if len(self.parts) == 1 and self.parts[0].where is None:
            return self.parts[0].nodes
        assert self.selector is not None
        sources: dict[int, Iterator[Node | None]] = {0: repeat(None)}
        for part in self.parts:
            assert part.where is not None
            sources[int(self.selector[part.where[0]])] = iter(part.nodes)
        return list(map(next, map(sources.__getitem__, self.selector.tolist())))


@dataclass
class Batch:
    """Nodes of one kind; `first` is the number of the first of them in the whole document."""

    code: int
    count: int
    first: int
    above: frozenset[int] | None = None
    may_be_negative: bool = False  # of integers: literals, not expressions
    scalars: dict[str, Integers] = field(default_factory=dict)
    children: dict[str, Children] = field(default_factory=dict)
    # Filled in while positions are worked out: widths on one line, starts if all were on one,
    # and where in a node each of its fields begins.
    widths: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    starts: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    begins: dict[str, Integers] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    @cached_property
    def kind(self) -> Kind:
        """What the nodes are."""
        return KINDS[self.code]
