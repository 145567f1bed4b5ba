"""Tags at their place in a program: terms over counters, which blocks wait for and raise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add, add_number, simplify, split_number
from nacre.bind.order import OrderNode
from nacre.bind.tags import BodyTags
from nacre.tcb.image import Tag, TagSet, Wait, counter

PlainWait = tuple[Tag, Term, int]  # a tag, and its value: a term, and a number to be added to it


# A node with what it waits for and the tag that it signals; None: nobody waits for it. Waits are
# without the number that its body has counted so far; None: some of it stands outside of its body.
# The last but one are the waits where nothing has to be added, if that is known.
NodeTags = tuple[OrderNode, tuple[PlainWait, ...] | None, tuple[Wait, ...] | None, Tag | None]


class TagTerms:
    """What the tags of loops beside each other have in common: all but the number counted so far.

    `base` is where they begin, `count` what they have counted, where that is more than a number.
    """

    def __init__(self, tags: BodyTags, base: Term, count: Term) -> None:
        loop = tags.body.loop
        counter_: Term = 0 if loop is None else counter(loop.depth)
        self.slot = simplify("mod", counter_, tags.window)
        self.use = simplify("/", counter_, tags.window)
        self._space, self._base, self._count = tags.space, base, count
        self._chains, self._area = tags.chains, tags.area(tags.space)
        self._signals = tags.chains.signals
        self._tags: dict[int, Tag] = {}  # by chain
        self._counted: dict[int, tuple[Term, int]] = {}  # by chain
        # The program's own body, which nothing is counted before and nothing else is ordered in.
        self._is_final = loop is None and not tags.chains.serialised
        self._waits: dict[OrderNode, PlainWait] = {}  # by the node that is waited for
        self._nodes: dict[int, list[NodeTags]] = {}  # by id of the nodes of a body
        self.iterations = Tag(tags.space, base)  # counts them
        self.counted_iterations = split_number(count, counter_)

    def tag(self, chain: int) -> Tag:
        """The tag that nodes of a chain signal."""
        found = self._tags.get(chain)
        if found is None:
            first = int(self._area.counts_iterations) + chain
            offset = simplify("*", self.slot, self._area.stride)
            found = self._tags[chain] = Tag(self._space, add(self._base, offset, first))
        return found

    def counted(self, chain: int) -> tuple[Term, int]:
        """What a chain's tag has counted before its use of this iteration: a term, and a number."""
        found = self._counted.get(chain)
        if found is None:
            uses = simplify("*", self.use, self._chains.lengths[chain])
            found = self._counted[chain] = split_number(self._count, uses)
        return found

    def of(self, nodes: tuple[OrderNode, ...]) -> list[NodeTags]:
        """The tags of all nodes of a body."""
        found = self._nodes.get(id(nodes))
        if found is None:
            make = self._of_program if self._is_final else self._of
            found = self._nodes[id(nodes)] = make(nodes)
        return found

    def _of(self, nodes: tuple[OrderNode, ...]) -> list[NodeTags]:
        signals, known = self._signals, self._waits
        found: list[NodeTags] = []
        places: dict[int, tuple[Tag, Term, int]] = {}  # by chain: its tag, and what that counted
        for node in nodes:
            signal, tag = signals.get(node), None
            if signal is not None:
                chain, place = signal
                of_chain = places.get(chain)
                if of_chain is None:
                    of_chain = places[chain] = (self.tag(chain), *self.counted(chain))
                tag, counted, number = of_chain
                known[node] = (tag, counted, number + place + 1)
            before = node.before
            if not node.is_within or node.kind == "end":  # a loop's end is waited for otherwise
                found.append((node, None, None, tag))
            elif len(before) == 1:  # which is most of them
                found.append((node, (known[before[0]],), None, tag))
            else:
                found.append((node, tuple([known[n] for n in before]), None, tag))
        return found

    def _of_program(self, nodes: tuple[OrderNode, ...]) -> list[NodeTags]:
        """The same of the program's own body, where nothing is counted before."""
        signals = self._signals
        found: list[NodeTags] = []
        ready: dict[OrderNode, Wait] = {}
        tags: dict[int, Tag] = {}  # by chain
        for node in nodes:
            signal, tag = signals.get(node), None
            if signal is not None:
                chain, place = signal
                tag = tags.get(chain)
                if tag is None:
                    tag = tags[chain] = self.tag(chain)
                ready[node] = Wait(tag, place + 1)
            before = node.before
            if node.kind == "end":
                found.append((node, None, None, tag))
            elif len(before) == 1:
                found.append((node, None, (ready[before[0]],), tag))
            else:
                found.append((node, None, tuple([ready[n] for n in before]), tag))
        return found

    def wait(self, node: OrderNode) -> PlainWait:
        """A node's tag, and what that has counted when the node is over: a term, and a number."""
        found = self._waits.get(node)
        if found is None:
            chain, place = self._signals[node]
            before, number = self.counted(chain)
            found = self._waits[node] = (self.tag(chain), before, number + place + 1)
        return found


class PlacedTags:
    """The tags of a body at its place: terms over the counters around it and its own."""

    def __init__(
        self,
        tags: BodyTags,
        bases: Mapping[int, Term],
        counts: Mapping[int, Term],
        shared: Mapping[int, int],
        terms: dict[Hashable, TagTerms],
    ) -> None:
        self.tags = tags
        self._bases = bases  # where its tags begin, by space
        self._counts = counts  # what they have counted when it is entered
        self._shared = shared  # how many it shares with the loops beside it
        self.position = tags.body.position
        self.is_serialised = bool(tags.chains.serialised)  # by more than the program asks for
        count = counts.get(tags.space, 0)
        self.number, symbolic = (count, 0) if isinstance(count, int) else (0, count)
        # Loops that share their chains are alike in all the rest.
        key = (id(tags.chains), tags.space, tags.window, symbolic)
        found = terms.get(key)
        if found is None:
            found = terms[key] = TagTerms(tags, bases.get(tags.space, 0), symbolic)
        self._terms = found  # `terms` are those of the loops beside it
        self.iterations = found.iterations  # the tag that counts the iterations of its loop

    def inside(self, position: int) -> PlacedTags:
        """The tags of a loop in it."""
        return self._inner[position]

    @cached_property
    def _inner(self) -> dict[int, PlacedTags]:
        found = {}
        terms: dict[Hashable, TagTerms] = {}
        spaces = self.tags.spaces
        bases = {space: self._inner_base(space) for space in spaces}
        shared = {space: self.tags.area(space).inner for space in spaces}
        counted = {space: self._inner_counted(space) for space in spaces}
        for position, inner in self.tags.inner.items():
            counts = {space: add_number(*counted[space]) for space in inner.spaces}
            found[position] = PlacedTags(inner, bases, counts, shared, terms)
            for space in inner.spaces:  # the next loop counts on from here
                before, number = counted[space]
                counted[space] = (before, number + inner.area(space).rise)
        return found

    def _inner_base(self, space: int) -> Term:
        area = self.tags.area(space)
        base = self._bases.get(space, 0)
        offset = simplify("*", self._terms.slot, area.stride)
        return add(base, offset, int(area.counts_iterations) + area.own)

    def _inner_counted(self, space: int) -> tuple[Term, int]:
        """What the tags of the loops in it have counted in earlier uses: a term, and a number."""
        uses = simplify("*", self._terms.use, self.tags.area(space).inner_rise)
        return split_number(self._counts.get(space, 0), uses)

    def nodes(self) -> list[NodeTags]:
        """The tags of its nodes; to what they wait for `number` has to be added."""
        return self._terms.of(self.tags.body.nodes)

    def wait_for(self, node: OrderNode) -> Wait:
        """A wait for a node of this body."""
        tag, before, number = self._terms.wait(node)
        return Wait(tag, add_number(before, number + self.number))

    def serialising_waits(self, node: OrderNode) -> tuple[Wait, ...]:
        """A wait for who had a node's tag before it, where nothing else orders the two."""
        other = self.tags.chains.serialised.get(node)
        return () if other is None else (self.wait_for(other),)

    def window_wait(self) -> tuple[Wait, ...]:
        """A wait for the iteration that a window has to have behind it, where there is one."""
        if self.tags.iterations <= self.tags.window:
            return ()
        return (Wait(self.iterations, self._iteration(1 - self.tags.window)),)

    def previous_done(self) -> tuple[Wait, ...]:
        """A wait for the end of the iteration before, where there can be one."""
        if self.tags.iterations <= 1:
            return ()
        return (Wait(self.iterations, self._iteration(0)),)

    def _iteration(self, further: int) -> Term:
        """How many iterations are counted when one begins, and so many further."""
        before, number = self._terms.counted_iterations
        return add_number(before, number + self.number + further)

    def all_done(self, counters: Counters) -> Wait:
        """A wait for the end of all iterations of this body's loop."""
        loop = self.tags.body.loop
        if loop is None:
            raise ValueError("a program has no iterations")
        before, count = self._counts.get(self.tags.space, 0), counters.count(loop)
        value = add_number(before, count) if isinstance(count, int) else add(before, count)
        return Wait(self.iterations, value)

    def raises(self) -> tuple[TagSet, ...]:
        """What the tags of this body's loop, and of those beside it, are raised to at its end."""
        spaces = self.tags.spaces
        if len(spaces) == 1:  # which is most of them
            return (self._raise(self.tags.space),)
        return tuple([self._raise(space) for space in sorted(spaces)])

    def _raise(self, space: int) -> TagSet:
        value = add_number(self._counts[space], self.tags.area(space).rise)
        is_own = space == self.tags.space
        first = self.iterations if is_own else Tag(space, self._bases[space])
        return TagSet(first, self._shared[space], value)
