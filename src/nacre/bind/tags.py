"""Tags: counters that carry the order of a program, shared by what follows one another.

Nodes of a body that are ordered one after the other signal one tag, a chain: how far it has counted
says which of them are over. An iteration of a loop has a slot of tags, of which there are as many
as iterations may be in flight; its u-th user counts on where the user before has stopped. One more
tag counts the iterations of a loop. Loops that follow one another share their tags: the end of a
loop raises all of them to where none has counted yet, so that counts never go back, and a wait
means one event whenever it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from nacre.base.term_columns import Interval, interval_of
from nacre.base.terms import Term
from nacre.bind.counters import Counters, add, simplify
from nacre.bind.order import OrderBody, OrderNode
from nacre.nem.spec.limits import MAX_TASK_INSTANCES
from nacre.tcb.image import DEVICE, Tag, TagSet, Wait, counter

_MOST_CHAINS = 64  # that a node is tried at the end of


class Signal(Struct, frozen=True):
    """The place of a node in a chain of those that signal one tag."""

    chain: int  # within its body
    index: int


class TagArea(Struct, frozen=True):
    """The tags of a body in one space: how many, and how far they count."""

    own: int  # of the body itself, a slot
    inner: int  # of the loops in it, which share them, a slot
    slots: int
    counts_iterations: bool
    rise: int  # the most that one of them counts
    inner_rise: int  # the most that those of the loops in it count, a use of a slot

    @property
    def stride(self) -> int:
        """From slot to slot."""
        return self.own + self.inner

    @property
    def size(self) -> int:
        """Of all slots, and of the tag that counts iterations."""
        return self.slots * self.stride + self.counts_iterations


class BodyTags:
    """The tags of one body: which of its nodes signal, and how many tags that takes."""

    def __init__(
        self,
        body: OrderBody,
        space: int,
        signals: Mapping[int, Signal],
        lengths: Sequence[int],
        inner: Mapping[int, BodyTags],
        iterations: int,
    ) -> None:
        self.body, self.space, self.inner = body, space, inner
        self.signals = signals  # by id of the node
        self.lengths = lengths  # of the chains
        self.iterations = iterations  # at most
        self._areas: dict[int, TagArea] = {}

    @property
    def window(self) -> int:
        """How many iterations are in flight."""
        return 1 if self.body.loop is None else min(self.body.loop.window, self.iterations)

    def area(self, space: int) -> TagArea:
        """The tags that the body takes in a space."""
        if space not in self._areas:
            inner = [tags.area(space) for tags in self.inner.values()]
            is_own = space == self.space
            counts = is_own and self.body.loop is not None
            uses = -(-self.iterations // self.window)
            inner_rise = sum(area.rise for area in inner)
            longest = max(self.lengths, default=0) if is_own else 0
            self._areas[space] = TagArea(
                len(self.lengths) if is_own else 0,
                max((area.size for area in inner), default=0),
                self.window,
                counts,
                max(uses * inner_rise, uses * longest, self.iterations if counts else 0),
                inner_rise,
            )
        return self._areas[space]

    @cached_property
    def spaces(self) -> frozenset[int]:
        """The spaces in which it or a loop in it has tags."""
        return frozenset({self.space}).union(*(tags.spaces for tags in self.inner.values()))


def share_tags(body: OrderBody, stream_of: Mapping[int, int]) -> BodyTags:
    """Choose who signals what; `stream_of` has the stream of every task, by position."""
    return _Sharer(body, stream_of).share(body, ())


class _Sharer:
    def __init__(self, body: OrderBody, stream_of: Mapping[int, int]) -> None:
        self._stream_of = stream_of
        nodes = [node for part in body.walk() for node in part.nodes]
        self._waited = {id(named) for n in nodes if n.kind != "end" for named in n.before}

    def share(self, body: OrderBody, ranges: tuple[Interval, ...]) -> BodyTags:
        """The tags of a body; `ranges` are those of the counters around it."""
        iterations = _most_iterations(body, ranges)
        own = ranges if body.loop is None else (*ranges, (0, iterations - 1))
        inner = {key: self.share(part, own) for key, part in body.inner.items()}
        streams = {self._stream_of[n.position] for n in body.nodes if n.kind == "task"}
        streams |= {tags.space for tags in inner.values()}
        space = streams.pop() if len(streams) == 1 else DEVICE
        signals, lengths = _signals(body, self._signalling(body))
        return BodyTags(body, space, signals, lengths, inner, iterations)

    def _signalling(self, body: OrderBody) -> Iterator[OrderNode]:
        """The nodes that somebody waits for; the end of an iteration has a tag of its own."""
        for node in body.nodes:
            if node.kind == "entry":
                if has_entry_block(node):
                    yield node
            elif id(node) in self._waited and node.kind != "done":
                yield node


def has_entry_block(node: OrderNode) -> bool:
    """Whether the entry of a loop is a block: where it waits for one thing, the body does so."""
    return len(node.before) > 1 or (node.after_start and node.body >= 0)


def _most_iterations(body: OrderBody, ranges: tuple[Interval, ...]) -> int:
    """A bound on how often a loop repeats its body, whatever the iteration of those around it."""
    if body.loop is None:
        return 1
    count = Counters(body.loop.loops).count(body.loop)
    bounds = interval_of(count, ranges)
    return MAX_TASK_INSTANCES if bounds is None else max(1, min(bounds[1], MAX_TASK_INSTANCES))


def _signals(
    body: OrderBody, signalling: Iterator[OrderNode]
) -> tuple[dict[int, Signal], list[int]]:
    """The place of every node that signals, and the lengths of the chains."""
    signals: dict[int, Signal] = {}
    last: list[OrderNode] = []
    lengths: list[int] = []
    for node in signalling:
        chain = _chain_before(node, signals, last)
        if chain is None:
            chain = len(last)
            last.append(node)
            lengths.append(0)
        signals[id(node)] = Signal(chain, lengths[chain])
        last[chain] = node
        lengths[chain] += 1
    return signals, lengths


def _chain_before(
    node: OrderNode, signals: Mapping[int, Signal], last: Sequence[OrderNode]
) -> int | None:
    """A chain whose last node is before this one: that of a node that it waits for, or another."""
    for named in reversed(node.before):
        signal = signals.get(id(named))
        if signal is not None and last[signal.chain] is named:
            return signal.chain
    first = max(0, len(last) - _MOST_CHAINS)
    return next((c for c in range(first, len(last)) if node.is_after(last[c])), None)


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
        loop = tags.body.loop
        self._counter: Term = 0 if loop is None else counter(loop.depth)
        self._slot = simplify("mod", self._counter, tags.window)
        self._use = simplify("/", self._counter, tags.window)

    def inside(self, position: int) -> PlacedTags:
        """The tags of a loop in it."""
        inner = self.tags.inner[position]
        spaces = inner.spaces
        return PlacedTags(
            inner,
            {space: self._inner_base(space) for space in spaces},
            {space: self._inner_count(space, position) for space in spaces},
            {space: self.tags.area(space).inner for space in spaces},
        )

    def _inner_base(self, space: int) -> Term:
        area = self.tags.area(space)
        base = self._bases.get(space, 0)
        return add(base, self._slot_offset(area), int(area.counts_iterations) + area.own)

    def _inner_count(self, space: int, position: int) -> Term:
        """What the tags of a loop in it have counted: in earlier uses, and in loops before it."""
        before = sum(t.area(space).rise for key, t in self.tags.inner.items() if key < position)
        uses = simplify("*", self._use, self.tags.area(space).inner_rise)
        return add(self._counts.get(space, 0), uses, before)

    def _slot_offset(self, area: TagArea) -> Term:
        return simplify("*", self._slot, area.stride)

    def signals(self, node: OrderNode) -> bool:
        """Whether somebody waits for a node of this body."""
        return id(node) in self.tags.signals

    def signal(self, node: OrderNode) -> Tag:
        """The tag that a node of this body signals."""
        space = self.tags.space
        area = self.tags.area(space)
        first = int(area.counts_iterations) + self.tags.signals[id(node)].chain
        return Tag(space, add(self._bases.get(space, 0), self._slot_offset(area), first))

    def wait_for(self, node: OrderNode) -> Wait:
        """A wait for a node of this body."""
        signal = self.tags.signals[id(node)]
        uses = simplify("*", self._use, self.tags.lengths[signal.chain])
        return Wait(self.signal(node), add(self._count, uses, signal.index + 1))

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
