"""Tags: counters that carry the order of a program, shared by what follows one another.

Nodes of a body that are ordered one after the other signal one tag, a chain: how far it has counted
says which of them are over. An iteration of a loop has a slot of tags, of which there are as many
as iterations may be in flight; its u-th user counts on where the user before has stopped. A loop
has one more tag that counts its iterations, from its window on, and sets all of them when it is
entered, so that loops which follow one another share theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add, simplify
from nacre.bind.order import OrderBody, OrderNode
from nacre.tcb.image import DEVICE, Tag, TagSet, Wait, counter

_MOST_CHAINS = 64  # that a node is tried at the end of


class Signal(Struct, frozen=True):
    """The place of a node in a chain of those that signal one tag."""

    chain: int  # within its body
    index: int


class TagArea(Struct, frozen=True, eq=False):
    """The tags of a body in one space: of a slot, and of all slots."""

    own: int  # of the body itself, a slot
    inner: int  # of the loops in it, which share them, a slot
    slots: int
    counts_iterations: bool

    @property
    def stride(self) -> int:
        """From slot to slot."""
        return self.own + self.inner

    @property
    def size(self) -> int:
        """Of all slots, and of the tag that counts iterations."""
        return self.slots * self.stride + self.counts_iterations


class BodyTags:
    """The tags of one body: which of its nodes signal, and where its tags lie."""

    def __init__(
        self,
        body: OrderBody,
        space: int,
        signals: Mapping[int, Signal],
        lengths: Sequence[int],
        inner: Mapping[int, BodyTags],
    ) -> None:
        self.body, self.space, self.inner = body, space, inner
        self.signals = signals  # by id of the node
        self.lengths = lengths  # of the chains

    @property
    def window(self) -> int:
        """How many iterations are in flight."""
        return 1 if self.body.loop is None else self.body.loop.window

    def area(self, space: int) -> TagArea:
        """The tags that the body takes in a space."""
        if space not in self._areas:
            inner = max((tags.area(space).size for tags in self.inner.values()), default=0)
            is_own = space == self.space
            counts = is_own and self.body.loop is not None
            own = len(self.lengths) if is_own else 0
            self._areas[space] = TagArea(own, inner, self.window, counts)
        return self._areas[space]

    @cached_property
    def _areas(self) -> dict[int, TagArea]:
        return {}

    @cached_property
    def spaces(self) -> frozenset[int]:
        """The spaces in which it or a loop in it has tags."""
        return frozenset({self.space}).union(*(tags.spaces for tags in self.inner.values()))


def share_tags(body: OrderBody, stream_of: Mapping[int, int]) -> BodyTags:
    """Choose who signals what; `stream_of` has the stream of every task, by position."""
    waited = {id(named) for part in body.walk() for node in part.nodes for named in node.before}
    return _share(body, stream_of, waited)


def _share(body: OrderBody, stream_of: Mapping[int, int], waited: set[int]) -> BodyTags:
    inner = {key: _share(part, stream_of, waited) for key, part in body.inner.items()}
    streams = {stream_of[n.position] for n in body.nodes if n.kind == "task"}
    streams |= {tags.space for tags in inner.values()}
    space = streams.pop() if len(streams) == 1 else DEVICE
    signals: dict[int, Signal] = {}
    last: list[OrderNode] = []
    lengths: list[int] = []
    # The end of an iteration has a tag of its own, and an entry sets tags instead of signalling.
    signalling = (n for n in body.nodes if id(n) in waited and n.kind not in ("done", "entry"))
    for node in signalling:
        chain = _chain_before(node, signals, last)
        if chain is None:
            chain = len(last)
            last.append(node)
            lengths.append(0)
        signals[id(node)] = Signal(chain, lengths[chain])
        last[chain] = node
        lengths[chain] += 1
    return BodyTags(body, space, signals, lengths, inner)


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

    def __init__(self, tags: BodyTags, bases: Mapping[int, Term]) -> None:
        self.tags = tags
        self._bases = bases  # where its tags begin, by space
        loop = tags.body.loop
        self._counter: Term = 0 if loop is None else counter(loop.depth)
        self._slot = simplify("mod", self._counter, tags.window)
        self._use = simplify("/", self._counter, tags.window)

    def inside(self, position: int) -> PlacedTags:
        """The tags of a loop in it."""
        tags = self.tags.inner[position]
        return PlacedTags(tags, {s: self._inner_base(s) for s in tags.spaces | self.tags.spaces})

    def _inner_base(self, space: int) -> Term:
        area = self.tags.area(space)
        base = self._bases.get(space, 0)
        return add(base, self._slot_offset(area), int(area.counts_iterations) + area.own)

    def _slot_offset(self, area: TagArea) -> Term:
        return simplify("*", self._slot, area.stride)

    def wait_for(self, node: OrderNode) -> Wait:
        """A wait for a node of this body."""
        signal = self.tags.signals[id(node)]
        uses = simplify("*", self._use, self.tags.lengths[signal.chain])
        return Wait(self.signal(node), add(uses, signal.index + 1))

    def signal(self, node: OrderNode) -> Tag:
        """The tag that a node of this body signals."""
        area = self.tags.area(self.tags.space)
        chain = self.tags.signals[id(node)].chain
        base, first = self._bases.get(self.tags.space, 0), int(area.counts_iterations) + chain
        return Tag(self.tags.space, add(base, self._slot_offset(area), first))

    def signals(self, node: OrderNode) -> bool:
        """Whether somebody waits for a node of this body."""
        return id(node) in self.tags.signals

    @property
    def iterations(self) -> Tag:
        """The tag that counts the iterations of this body's loop, from the window on."""
        return Tag(self.tags.space, self._bases.get(self.tags.space, 0))

    @property
    def start(self) -> Wait:
        """A wait for the start of an iteration."""
        return Wait(self.iterations, add(self._counter, 1))

    @property
    def previous_done(self) -> Wait:
        """A wait for the end of the iteration before."""
        return Wait(self.iterations, add(self._counter, self.tags.window))

    def all_done(self, counters: Counters) -> Wait:
        """A wait for the end of all iterations."""
        loop = self.tags.body.loop
        if loop is None:
            raise ValueError("a program has no iterations")
        return Wait(self.iterations, add(counters.count(loop), loop.window))

    def sets(self) -> Iterator[TagSet]:
        """What the tags of this body's loop are when it is entered."""
        space = self.tags.space
        yield TagSet(self.iterations, 1, self.tags.window)
        rest = self.tags.area(space).size - 1
        if rest:
            yield TagSet(Tag(space, add(self.iterations.index, 1)), rest, 0)
