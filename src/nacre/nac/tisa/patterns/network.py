"""Patterns as a network of nodes that threads walk through."""

from __future__ import annotations

from collections.abc import Sequence as Listed

from nacre.nac.tisa.patterns.nodes import (
    AdjacentCharacter,
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
)

_MOST_NODES = 1 << 17

# Kinds of nodes, and what their fields are.
_TAKE = 0  # a class, the next node
_FORK = 1  # two nodes, the first preferred
_NEAR = 2  # a condition, the next node
_DONE = 3  # a rule

_Near = tuple[bool, bool, int]  # ahead, negated, class (-1: the edge of the text)


class Network:
    """Nodes that are walked from `start`."""

    def __init__(self) -> None:
        self.classes: list[Chars] = []
        self.looks_back = False
        self.start = 0
        self._class_numbers: dict[Chars, int] = {}
        self._kinds: list[int] = []
        self._first: list[int] = []
        self._second: list[int] = []
        self._conditions: list[_Near] = []

    def add(self, kind: int, first: int, second: int = -1) -> int:
        """A new node."""
        if len(self._kinds) >= _MOST_NODES:
            raise PatternError("rules that are too large together", 0)
        self._kinds.append(kind)
        self._first.append(first)
        self._second.append(second)
        return len(self._kinds) - 1

    def member(self, chars: Chars) -> int:
        """The number of a class."""
        found = self._class_numbers.get(chars)
        if found is None:
            found = self._class_numbers[chars] = len(self.classes)
            self.classes.append(chars)
        return found

    def condition(self, near: AdjacentCharacter, following: int) -> int:
        """A node that only threads in the right place pass."""
        self.looks_back |= not near.ahead
        member = -1 if near.chars is None else self.member(near.chars)
        self._conditions.append((near.ahead, near.negated, member))
        return self.add(_NEAR, len(self._conditions) - 1, following)

    def set_fork(self, fork: int, body: int, following: int, greedy: bool) -> None:
        """Let a fork lead to a body and behind it, the preferred one first."""
        ways = (body, following) if greedy else (following, body)
        self._first[fork], self._second[fork] = ways

    def closure(
        self, threads: tuple[int, ...], before: int | None, after: int | None
    ) -> tuple[list[tuple[int, int]], int, int]:
        """Classes that threads wait for with where these lead, in order; a rule that has matched.

        Threads behind one that has matched do not count. The last value is the work done.
        """
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            kind = self._kinds[node]
            if kind == _TAKE:
                waiting.append((self._first[node], self._second[node]))
            elif kind == _FORK:
                stack += (self._second[node], self._first[node])
            elif kind == _DONE:
                return waiting, self._first[node], len(seen)
            elif self._holds(self._conditions[self._first[node]], before, after):
                stack.append(self._second[node])
        return waiting, -1, len(seen)

    def _holds(self, condition: _Near, before: int | None, after: int | None) -> bool:
        ahead, negated, member = condition
        bits = after if ahead else before
        if member < 0:
            return bits is None
        return (bits is not None and bool(bits >> member & 1)) is not negated


def network(rules: Listed[Node]) -> Network:
    """Rules as alternatives of one network."""
    nodes = Network()
    starts = [_node(nodes, rule, nodes.add(_DONE, index)) for index, rule in enumerate(rules)]
    following = starts.pop() if starts else nodes.add(_DONE, -1)
    for start in reversed(starts):
        following = nodes.add(_FORK, start, following)
    nodes.start = following
    return nodes


def _node(network: Network, node: Node, following: int) -> int:
    """The node where a tree begins that goes on at another one."""
    match node:
        case Chars():
            return network.add(_TAKE, network.member(node), following)
        case AdjacentCharacter():
            return network.condition(node, following)
        case Sequence(parts):
            for part in reversed(parts):
                following = _node(network, part, following)
            return following
        case Choice(parts):
            starts = [_node(network, part, following) for part in parts]
            at = starts.pop()
            for start in reversed(starts):
                at = network.add(_FORK, start, at)
            return at
        case Repeat():
            return _repeat(network, node, following)


def _repeat(network: Network, node: Repeat, following: int) -> int:
    if node.most is None:
        if is_nullable(node.part):
            raise PatternError("a repetition without end of what may be empty", 0)
        # A fork that comes back to itself: made first, so that the body can lead to it.
        fork = network.add(_FORK, following, following)
        body = _node(network, node.part, fork)
        network.set_fork(fork, body, following, node.greedy)
        at = fork
    else:
        at = following
        for _ in range(node.most - node.least):
            body = _node(network, node.part, at)
            at = network.add(_FORK, *((body, following) if node.greedy else (following, body)))
    for _ in range(node.least):
        at = _node(network, node.part, at)
    return at


def is_nullable(node: Node) -> bool:
    """Whether a tree may match the empty text; conditions count as met."""
    match node:
        case Chars():
            return False
        case AdjacentCharacter():
            return True
        case Sequence(parts):
            return all(is_nullable(part) for part in parts)
        case Choice(parts):
            return any(is_nullable(part) for part in parts)
        case Repeat(part, least):
            return least == 0 or is_nullable(part)
