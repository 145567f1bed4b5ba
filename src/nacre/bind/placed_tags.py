"""Tags at their place in a program: terms over counters, which blocks wait for and raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add, simplify
from nacre.bind.order import OrderNode
from nacre.bind.tags import BodyTags, TagArea
from nacre.tcb.image import Tag, TagSet, Wait, counter


class PlacedTags:
    """The tags of a body at its place: terms over the counters around it and its own."""

    def __init__(
        self,
        tags: BodyTags,
        bases: Mapping[int, Term],
        counts: Mapping[int, Term],
        shared: Mapping[int, int],
    ) -> None:
        self.tags = tags
        self._bases = bases  # where its tags begin, by space
        self._counts = counts  # what they have counted when it is entered
        self._shared = shared  # how many it shares with the loops beside it
        self.position = tags.body.position
        self._signals: dict[int, Tag] = {}  # by chain
        loop = tags.body.loop
        self._counter: Term = 0 if loop is None else counter(loop.depth)
        self._slot = simplify("mod", self._counter, tags.window)
        self._use = simplify("/", self._counter, tags.window)

    def inside(self, position: int) -> PlacedTags:
        """The tags of a loop in it."""
        return self._inner[position]

    @cached_property
    def _inner(self) -> dict[int, PlacedTags]:
        found = {}
        rises: dict[int, int] = {}  # by the loops before, a space
        for position, inner in self.tags.inner.items():
            spaces = inner.spaces
            found[position] = PlacedTags(
                inner,
                {space: self._inner_base(space) for space in spaces},
                {space: self._inner_count(space, rises.get(space, 0)) for space in spaces},
                {space: self.tags.area(space).inner for space in spaces},
            )
            for space in spaces:
                rises[space] = rises.get(space, 0) + inner.area(space).rise
        return found

    def _inner_base(self, space: int) -> Term:
        area = self.tags.area(space)
        base = self._bases.get(space, 0)
        return add(base, self._slot_offset(area), int(area.counts_iterations) + area.own)

    def _inner_count(self, space: int, before: int) -> Term:
        """What the tags of a loop in it have counted: in earlier uses, and in loops before it."""
        uses = simplify("*", self._use, self.tags.area(space).inner_rise)
        return add(self._counts.get(space, 0), uses, before)

    def _slot_offset(self, area: TagArea) -> Term:
        return simplify("*", self._slot, area.stride)

    def signals(self, node: OrderNode) -> bool:
        """Whether somebody waits for a node of this body."""
        return id(node) in self.tags.chains.signals

    def signal(self, node: OrderNode) -> Tag:
        """The tag that a node of this body signals."""
        chain = self.tags.chains.signals[id(node)].chain
        if chain not in self._signals:
            space = self.tags.space
            area = self.tags.area(space)
            first = int(area.counts_iterations) + chain
            base = self._bases.get(space, 0)
            self._signals[chain] = Tag(space, add(base, self._slot_offset(area), first))
        return self._signals[chain]

    def wait_for(self, node: OrderNode) -> Wait:
        """A wait for a node of this body."""
        signal = self.tags.chains.signals[id(node)]
        uses = simplify("*", self._use, self.tags.chains.lengths[signal.chain])
        return Wait(self.signal(node), add(self._count, uses, signal.index + 1))

    def serialising_waits(self, node: OrderNode) -> Iterator[Wait]:
        """A wait for who had a node's tag before it, where nothing else orders the two."""
        other = self.tags.chains.serialised.get(id(node))
        if other is not None:
            yield self.wait_for(other)

    @property
    def _count(self) -> Term:
        return self._counts.get(self.tags.space, 0)

    @property
    def iterations(self) -> Tag:
        """The tag that counts the iterations of this body's loop."""
        return Tag(self.tags.space, self._bases[self.tags.space])

    def window_wait(self) -> Iterator[Wait]:
        """A wait for the iteration that a window has to have behind it, where there is one."""
        if self.tags.iterations > self.tags.window:
            value = add(self._count, self._counter, 1 - self.tags.window)
            yield Wait(self.iterations, value)

    def previous_done(self) -> Iterator[Wait]:
        """A wait for the end of the iteration before, where there can be one."""
        if self.tags.iterations > 1:
            yield Wait(self.iterations, add(self._count, self._counter))

    def all_done(self, counters: Counters) -> Wait:
        """A wait for the end of all iterations of this body's loop."""
        loop = self.tags.body.loop
        if loop is None:
            raise ValueError("a program has no iterations")
        return Wait(self.iterations, add(self._count, counters.count(loop)))

    def raises(self) -> Iterator[TagSet]:
        """What the tags of this body's loop, and of those beside it, are raised to at its end."""
        for space in sorted(self.tags.spaces):
            count = add(self._counts[space], self.tags.area(space).rise)
            yield TagSet(Tag(space, self._bases[space]), self._shared[space], count)
