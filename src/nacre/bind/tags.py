"""Tags: counters that carry the order of a program, shared by what follows one another.

Nodes of a body that are ordered one after the other signal one tag, a chain: how far it has counted
says which of them are over. An iteration of a loop has a slot of tags, of which there are as many
as iterations may be in flight; its u-th user counts on where the user before has stopped. One more
tag counts the iterations of a loop. Loops that follow one another share their tags: the end of a
loop raises all of them to where none has counted yet, so that counts never go back, and a wait
means one event whenever it is looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import cache
from types import MappingProxyType

from msgspec import Struct

from nacre.base.term_columns import Interval, interval_of
from nacre.bind.counters import counters_of
from nacre.bind.node_sets import NodeSet, contains
from nacre.bind.order import OrderBody, OrderNode
from nacre.nem.spec.limits import MAX_TASK_INSTANCES
from nacre.tcb.image import DEVICE

_MOST_CHAINS = 64  # that a node is tried at the end of
NO_LIMITS: Mapping[int, TagLimit] = MappingProxyType({})


# The place of a node among those that signal one tag: which chain of its body, and where in it.
Signal = tuple[int, int]


class TagLimit(Struct, frozen=True):
    """How many tags a body may take, where there are too few for all of its order."""

    window: int | None = None  # iterations in flight; None: as many as the loop allows
    chains: int | None = None


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


_NO_LIMIT = TagLimit()


class Chains(Struct, frozen=True, eq=False):
    """The nodes of a body that signal, in chains."""

    signals: Mapping[OrderNode, Signal]
    lengths: tuple[int, ...]
    # What a node waits for only because it shares a tag with it.
    serialised: Mapping[OrderNode, OrderNode]


class BodyTags:
    """The tags of one body: which of its nodes signal, and how many tags that takes."""

    def __init__(
        self,
        body: OrderBody,
        space: int,
        chains: Chains,
        inner: Mapping[int, BodyTags],
        iterations: int,
        window: int,
        areas: dict[int, TagArea],
    ) -> None:
        self.body, self.space, self.inner = body, space, inner
        self.chains = chains
        self.iterations = iterations  # at most
        self.window = window  # how many of them are in flight
        self.areas = areas  # by space, those that were asked for; loops that are alike share them
        # The spaces in which it or a loop in it has tags.
        self.spaces: frozenset[int] = _one_space(space)
        if inner:
            self.spaces = self.spaces.union(*{tags.spaces for tags in inner.values()})

    def area(self, space: int) -> TagArea:
        """The tags that the body takes in a space."""
        if space not in self.areas:
            inner = [tags.area(space) for tags in self.inner.values()]
            is_own = space == self.space
            counts = is_own and self.body.loop is not None
            uses = -(-self.iterations // self.window)
            inner_rise = sum(area.rise for area in inner)
            longest = max(self.chains.lengths, default=0) if is_own else 0
            self.areas[space] = TagArea(
                len(self.chains.lengths) if is_own else 0,
                max((area.size for area in inner), default=0),
                self.window,
                counts,
                max(uses * inner_rise, uses * longest, self.iterations if counts else 0),
                inner_rise,
            )
        return self.areas[space]


_NO_SPACES: frozenset[int] = frozenset()


@cache
def _one_space(space: int) -> frozenset[int]:
    return frozenset({space})


def share_tags(
    body: OrderBody, stream_of: Mapping[int, int], limits: Mapping[int, TagLimit] = NO_LIMITS
) -> BodyTags:
    """Choose who signals what; `stream_of` has the stream of every task, by position.

    Limits are by the positions of bodies. Where one has too few chains for what may happen at once,
    its nodes wait for each other.
    """
    return _Sharer(body, stream_of, limits).share(body, ())


class _Sharer:
    def __init__(
        self, body: OrderBody, stream_of: Mapping[int, int], limits: Mapping[int, TagLimit]
    ) -> None:
        self._stream_of, self._limits = stream_of, limits
        streams = set(stream_of.values())
        self._only_stream = streams.pop() if len(streams) == 1 else None
        self._waited: set[OrderNode] = set()  # the nodes that others wait for
        self._chains: dict[tuple[int, int | None], Chains] = {}  # by id of nodes, and their limit
        self._areas: dict[Hashable, dict[int, TagArea]] = {}  # of loops without others in them
        for part in body.walk():
            if part.outside is not None:
                self._waited.add(part.outside.local)
            for node in () if part.shift else part.nodes:
                if node.kind != "end" and (before := node.before):
                    self._waited.update(before)

    def share(self, body: OrderBody, ranges: tuple[Interval, ...]) -> BodyTags:
        """The tags of a body; `ranges` are those of the counters around it."""
        iterations = _most_iterations(body, ranges)
        inner: dict[int, BodyTags] = {}
        streams = self._streams_of(body)
        if body.inner:
            own = ranges if body.loop is None else (*ranges, (0, iterations - 1))
            inner = {key: self.share(part, own) for key, part in body.inner.items()}
            streams = streams.union(tags.space for tags in inner.values())
        space = next(iter(streams)) if len(streams) == 1 else DEVICE
        limit = self._limits.get(body.position, _NO_LIMIT) if self._limits else _NO_LIMIT
        chains = self._chains_of(body, limit.chains)
        window = 1 if body.loop is None else min(body.loop.window, iterations)
        if limit.window is not None:
            window = min(window, limit.window)
        areas: dict[int, TagArea] = {}
        if not inner:
            areas = self._areas.setdefault((id(chains), space, iterations, window), areas)
        return BodyTags(body, space, chains, inner, iterations, window, areas)

    def _streams_of(self, body: OrderBody) -> frozenset[int]:
        """The streams of the tasks of a body itself."""
        only = self._only_stream
        if only is not None:  # which is most programs
            for node in body.nodes:
                if node.kind == "task":
                    return _one_space(only)
            return _NO_SPACES
        stream_of, shift = self._stream_of, body.shift
        return frozenset(stream_of[n.position + shift] for n in body.nodes if n.kind == "task")

    def _chains_of(self, body: OrderBody, most: int | None) -> Chains:
        """The chains of a body; those that share their nodes share these."""
        key = (id(body.nodes), most)
        found = self._chains.get(key)
        if found is None:
            found = self._chains[key] = _chain_up(body.nodes, self._waited, most)
        return found


def has_entry_block(node: OrderNode) -> bool:
    """Whether the entry of a loop is a block: where it waits for one thing, the body does so."""
    return len(node.before) > 1 or (node.after_start and node.body >= 0)


def _most_iterations(body: OrderBody, ranges: tuple[Interval, ...]) -> int:
    """A bound on how often a loop repeats its body, whatever the iteration of those around it."""
    if body.loop is None:
        return 1
    first, last = body.loop.first, body.loop.last
    if isinstance(first, int) and isinstance(last, int):  # which is most of them
        return max(1, min(last - first + 1, MAX_TASK_INSTANCES))
    bounds = interval_of(counters_of(body.loop.loops).count(body.loop), ranges)
    return MAX_TASK_INSTANCES if bounds is None else max(1, min(bounds[1], MAX_TASK_INSTANCES))


def _chain_up(nodes: Iterable[OrderNode], waited: Set[OrderNode], most: int | None) -> Chains:
    """Put those nodes that somebody waits for into chains, of which there are at most so many.

    The end of an iteration has a tag of its own.
    """
    signals: dict[OrderNode, Signal] = {}
    last: list[OrderNode] = []
    lengths: list[int] = []
    serialised: dict[OrderNode, OrderNode] = {}
    for node in nodes:
        kind = node.kind
        if kind == "entry":
            if not has_entry_block(node):
                continue
        elif kind == "done" or node not in waited:
            continue
        chain: int | None = None
        before = node.before
        for named in before if len(before) == 1 else reversed(before):
            signal = signals.get(named)
            if signal is not None and last[signal[0]] is named:
                chain = signal[0]
                break
        else:
            if not node.after_start:  # and after something of its body
                chain = _chain_before(node.until, last)
        if chain is None and len(last) == most:
            # Whoever signalled first is likely to be over first.
            chain = min(range(len(last)), key=lambda c: last[c].position)
            serialised[node] = last[chain]
        if chain is None:
            chain = len(last)
            last.append(node)
            lengths.append(0)
        length = lengths[chain]
        signals[node] = (chain, length)
        last[chain] = node
        lengths[chain] = length + 1
    return Chains(signals, tuple(lengths), serialised)


def _chain_before(until: NodeSet, last: Sequence[OrderNode]) -> int | None:
    """A chain whose last node is among those that are before another node."""
    first = max(0, len(last) - _MOST_CHAINS)
    if len(until) == 1:  # which is most programs
        bits = until[0]
        for chain in range(first, len(last)):
            if bits >> last[chain].number & 1:
                return chain
        return None
    for chain, other in enumerate(last[first:], first):
        if contains(until, other.number):
            return chain
    return None
