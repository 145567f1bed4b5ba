"""Canonical codes: two small graphs have the same code exactly when they are the same graph.

Nodes are told apart by what is around them, step by step; where that leaves several alike, each is
tried first, and the least code is taken. Nodes with the same neighbours are tried once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

Edge = tuple[int, int, str]  # from a node, to a node, and which operand it is
Code = tuple[tuple[str, ...], tuple[Edge, ...]]


@dataclass(frozen=True)
class SmallGraph:
    """Labels of nodes, and edges between them by position."""

    labels: tuple[str, ...]
    edges: tuple[Edge, ...] = ()

    @cached_property
    def around(self) -> tuple[tuple[tuple[str, str, int], ...], ...]:
        """For each node its edges: into or out of it, which operand, and the other node."""
        made: list[list[tuple[str, str, int]]] = [[] for _ in self.labels]
        for source, target, operand in self.edges:
            made[source].append(("out", operand, target))
            made[target].append(("in", operand, source))
        return tuple(map(tuple, made))


def canonical_code(graph: SmallGraph) -> Code:
    """The least code over all orders of nodes."""
    return min(_written(graph, order) for order in _orders(graph, _refined(graph, graph.labels)))


def signature(code: Code) -> str:
    """Twelve hexadecimal digits that stand for a code."""
    return sha256(repr(code).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def code_text(code: Code) -> str:
    """`conv > act, conv > add.1`: a code as a line."""
    labels, edges = code
    if not edges:
        return ", ".join(labels)
    names = _numbered(labels)
    return ", ".join(f"{names[a]} > {names[b]}{f'.{op}' if op else ''}" for a, b, op in edges)


def _numbered(labels: Sequence[str]) -> list[str]:
    """Labels with numbers where several nodes have the same."""
    seen: dict[str, int] = {}
    made = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        made.append(f"{label}#{seen[label]}" if labels.count(label) > 1 else label)
    return made


def _refined(graph: SmallGraph, colours: Iterable[object]) -> tuple[int, ...]:
    """Colours by what is around each node, until they tell no more apart."""
    now = _ranks([repr(colour) for colour in colours])
    while True:
        keys = [
            repr((now[at], sorted((way, op, now[other]) for way, op, other in around)))
            for at, around in enumerate(graph.around)
        ]
        # The old colour leads, so that refining keeps the order of the classes.
        after = _ranks([f"{now[at]:06d}{key}" for at, key in enumerate(keys)])
        if len(set(after)) == len(set(now)):
            return after
        now = after


def _ranks(keys: Sequence[str]) -> tuple[int, ...]:
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return tuple(order[key] for key in keys)


def _orders(graph: SmallGraph, colours: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Orders of nodes by colour; of those alike each that is no twin of another is tried first."""
    classes: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        classes.setdefault(colour, []).append(node)
    alike = next((classes[c] for c in sorted(classes) if len(classes[c]) > 1), None)
    if alike is None:
        yield tuple(sorted(range(len(colours)), key=colours.__getitem__))
        return
    for node in _without_twins(graph, alike):
        split = [2 * c + (at != node) for at, c in enumerate(colours)]
        yield from _orders(graph, _refined(graph, (f"{c:06d}" for c in split)))


def _without_twins(graph: SmallGraph, nodes: Sequence[int]) -> Iterator[int]:
    seen: set[tuple[tuple[str, str, int], ...]] = set()
    for node in nodes:
        around = tuple(sorted(graph.around[node]))
        if around not in seen:
            seen.add(around)
            yield node


def _written(graph: SmallGraph, order: Sequence[int]) -> Code:
    place: Mapping[int, int] = {node: at for at, node in enumerate(order)}
    labels = tuple(graph.labels[node] for node in order)
    return labels, tuple(sorted((place[a], place[b], operand) for a, b, operand in graph.edges))
