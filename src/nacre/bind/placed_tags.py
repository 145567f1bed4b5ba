"""Tags at their place in a program: terms over counters, which blocks wait for and raise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add, add_number, simplify, split_number
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
        self.is_serialised = bool(tags.chains.serialised)  # by more than the program asks for
        self._signals: dict[int, Tag] = {}  # by chain
        self._counted: dict[int, tuple[Term, int]] = {}  # by chain, before this use of its tag
        self._waits: dict[int, Wait] = {}  # by id of the node
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
        spaces = self.tags.spaces
        bases = {space: self._inner_base(space) for space in spaces}
        shared = {space: self.tags.area(space).inner for space in spaces}
        counted = {space: self._inner_counted(space) for space in spaces}
        for position, inner in self.tags.inner.items():
            counts = {space: add_number(*counted[space]) for space in inner.spaces}
            found[position] = PlacedTags(inner, bases, counts, shared)
            for space in inner.spaces:  # the next loop counts on from here
                before, number = counted[space]
                counted[space] = (before, number + inner.area(space).rise)
        return found

    def _inner_base(self, space: int) -> Term:
        area = self.tags.area(space)
        base = self._bases.get(space, 0)
        return add(base, self._slot_offset(area), int(area.counts_iterations) + area.own)

    def _inner_counted(self, space: int) -> tuple[Term, int]:
        """What the tags of the loops in it have counted in earlier uses: a term, and a number."""
        uses = simplify("*", self._use, self.tags.area(space).inner_rise)
        return split_number(self._counts.get(space, 0), uses)

    def _slot_offset(self, area: TagArea) -> Term:
        return simplify("*", self._slot, area.stride)

    def signal(self, node: OrderNode) -> Tag | None:
        """The tag that a node of this body signals; None where nobody waits for it."""
        signal = self.tags.chains.signals.get(id(node))
        return None if signal is None else self._tag(signal.chain)

    def _tag(self, chain: int) -> Tag:
        found = self._signals.get(chain)
        if found is None:
            space = self.tags.space
            area = self.tags.area(space)
            first = int(area.counts_iterations) + chain
            base = self._bases.get(space, 0)
            found = self._signals[chain] = Tag(space, add(base, self._slot_offset(area), first))
        return found

    def wait_for(self, node: OrderNode) -> Wait:
        """A wait for a node of this body."""
        found = self._waits.get(id(node))
        if found is None:
            chain, place = self.tags.chains.signals[id(node)]
            before, number = self._counted_before(chain)
            found = Wait(self._tag(chain), add_number(before, number + place + 1))
            self._waits[id(node)] = found
        return found

    def _counted_before(self, chain: int) -> tuple[Term, int]:
        """What a chain's tag has counted before its use of this iteration: a term, and a number."""
        found = self._counted.get(chain)
        if found is None:
            uses = simplify("*", self._use, self.tags.chains.lengths[chain])
            found = self._counted[chain] = split_number(self._count, uses)
        return found

    def serialising_waits(self, node: OrderNode) -> tuple[Wait, ...]:
        """A wait for who had a node's tag before it, where nothing else orders the two."""
        other = self.tags.chains.serialised.get(id(node))
        return () if other is None else (self.wait_for(other),)

    @property
    def _count(self) -> Term:
        return self._counts.get(self.tags.space, 0)

    @cached_property
    def iterations(self) -> Tag:
        """The tag that counts the iterations of this body's loop."""
        return Tag(self.tags.space, self._bases[self.tags.space])

    def window_wait(self) -> tuple[Wait, ...]:
        """A wait for the iteration that a window has to have behind it, where there is one."""
        if self.tags.iterations <= self.tags.window:
            return ()
        value = add(self._count, self._counter, 1 - self.tags.window)
        return (Wait(self.iterations, value),)

    def previous_done(self) -> tuple[Wait, ...]:
        """A wait for the end of the iteration before, where there can be one."""
        if self.tags.iterations <= 1:
            return ()
        return (Wait(self.iterations, add(self._count, self._counter)),)

    def all_done(self, counters: Counters) -> Wait:
        """A wait for the end of all iterations of this body's loop."""
        loop = self.tags.body.loop
        if loop is None:
            raise ValueError("a program has no iterations")
        return Wait(self.iterations, add(self._count, counters.count(loop)))

    def raises(self) -> tuple[TagSet, ...]:
        """What the tags of this body's loop, and of those beside it, are raised to at its end."""
        return tuple([self._raise(space) for space in sorted(self.tags.spaces)])

    def _raise(self, space: int) -> TagSet:
        count = add(self._counts[space], self.tags.area(space).rise)
        return TagSet(Tag(space, self._bases[space]), self._shared[space], count)
