"""Clocks over chains of tasks: how much of each chain comes before something.

Flat programs have thousands of chains and a clock for every task. A clock differs little from
those that it is made of, so it is a tree that shares with them whatever it has not changed, and two
trees are joined by going down only where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_BITS = 4
_WIDTH = 1 << _BITS
_NONE = -1  # no task of a chain
_EMPTY = (_NONE,) * _WIDTH

_Node = tuple[Any, ...]  # indices of chains at the bottom; above, smaller nodes, or None


class Clock:
    """For every chain the last index that comes before something; it never changes."""

    __slots__ = ("_height", "_root")

    def __init__(self, root: _Node = _EMPTY, height: int = 0) -> None:
        self._root = root
        self._height = height  # levels above the bottom

    def index(self, chain: int) -> int:
        """The last index of a chain, or -1."""
        shift = self._height * _BITS
        if chain >> (shift + _BITS):
            return _NONE
        node: _Node | None = self._root
        while shift and node is not None:
            node = node[chain >> shift & (_WIDTH - 1)]
            shift -= _BITS
        return _NONE if node is None else int(node[chain & (_WIDTH - 1)])

    def with_index(self, chain: int, index: int) -> Clock:
        """A clock that has at least so much of a chain."""
        if self.index(chain) >= index:
            return self
        root, height = self._root, self._height
        while chain >> ((height + 1) * _BITS):
            root, height = _above(root), height + 1
        return Clock(_with_index(root, height, chain, index), height)

    def join(self, other: Clock) -> Clock:
        """A clock that has what either of two has."""
        low, high = (self, other) if self._height <= other._height else (other, self)
        made = _join(high._root, _raised(low, high._height), high._height)
        return high if made is high._root else Clock(made, high._height)

    def changes_since(self, other: Clock) -> Iterator[tuple[int, int]]:
        """Every chain of which this has another index than some clock, and the index."""
        height = max(self._height, other._height)
        return _changes(_raised(self, height), _raised(other, height), height, 0)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every chain of which something comes before, and its last index."""
        return _indices(self._root, self._height, 0)


def _raised(clock: Clock, height: int) -> _Node:
    """The root of a clock as one of more levels."""
    root = clock._root
    for _ in range(height - clock._height):
        root = _above(root)
    return root


def _above(node: _Node) -> _Node:
    return (node, *(None,) * (_WIDTH - 1))


def _with_index(node: _Node | None, height: int, chain: int, index: int) -> _Node:
    at = chain >> (height * _BITS) & (_WIDTH - 1)
    if not height:
        node = node or _EMPTY
        return (*node[:at], index, *node[at + 1 :])
    node = node or (None,) * _WIDTH
    return (*node[:at], _with_index(node[at], height - 1, chain, index), *node[at + 1 :])


def _join(a: _Node, b: _Node, height: int) -> _Node:
    """What either node has; one of the two themselves where it has all of the other."""
    if a is b:
        return a
    if height:
        made = tuple(
            x if y is None or x is y else y if x is None else _join(x, y, height - 1)
            for x, y in zip(a, b, strict=True)
        )
        if all(map(_is_same, made, a)):
            return a
        return b if all(map(_is_same, made, b)) else made
    made = tuple(map(max, a, b))
    if made == a:
        return a
    return b if made == b else made


def _is_same(a: object, b: object) -> bool:
    return a is b


def _indices(node: _Node, height: int, first: int) -> Iterator[tuple[int, int]]:
    for at, part in enumerate(node, first << _BITS):
        if not height:
            if part != _NONE:
                yield at, part
        elif part is not None:
            yield from _indices(part, height - 1, at)


def _changes(
    a: _Node | None, b: _Node | None, height: int, first: int
) -> Iterator[tuple[int, int]]:
    if a is b:
        return
    empty = (None,) * _WIDTH if height else _EMPTY
    for at, (x, y) in enumerate(zip(a or empty, b or empty, strict=True), first << _BITS):
        if height:
            yield from _changes(x, y, height - 1, at)
        elif x != y:
            yield at, x
