"""Frequent patterns of a corpus: connected parts of programs that recur in many of them.

Parts grow by one node at a time from single nodes, as sets of nodes with all edges between them. A
part that is frequent has only frequent ones in it, so that what is rare need not grow. Parts are
the same where their canonical codes are. Moves are passed over, as recognition does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from nacre.nac.genome.canonical import Code, SmallGraph, canonical_code, code_text, signature
from nacre.nac.genome.graph import ProgramGraph
from nacre.nac.genome.vocabulary import COMMUTATIVE

MOST_NODES = 6  # of a part
_MOST_NEIGHBOURS = 8  # a node with more is a hub, and no part grows over it
_MOST_PLACES = 4_000  # of parts with one code, in one program
_MOST_PARTS = 200_000  # looked at in one search, over all programs

Place = frozenset[int]
_Held = dict[Code, dict[str, set[Place]]]  # places by code and program


@dataclass(frozen=True)
class MinedPattern:
    """A part that recurs: its code, and where it stands in each program that has it."""

    code: Code
    places: tuple[tuple[str, tuple[Place, ...]], ...]  # programs by name, none of them empty

    @property
    def signature(self) -> str:
        """The same for the same graph, in whatever corpus."""
        return signature(self.code)

    @property
    def support(self) -> int:
        """How many programs have it."""
        return len(self.places)

    @property
    def count(self) -> int:
        """How often it occurs without overlap."""
        return sum(len(disjoint_places(places)) for _, places in self.places)

    @property
    def covered(self) -> int:
        """How many operations it explains."""
        return len(self.code[0]) * self.count

    def __str__(self) -> str:
        return code_text(self.code)


def mine(
    corpus: Sequence[ProgramGraph], *, least_support: int = 2, most_nodes: int = MOST_NODES
) -> tuple[MinedPattern, ...]:
    """Parts of two nodes or more that so many programs have, those that explain most first.

    One that always stands inside the same larger one is left out. The same corpus gives the same
    parts, in whatever order its programs come.
    """
    search = _Search([_Program(graph) for graph in sorted(corpus, key=lambda g: g.name)])
    level = search.single_nodes(least_support)
    found: list[MinedPattern] = []
    for _ in range(1, most_nodes):
        level = search.grown(level, least_support)
        found += level
        if not level or search.looked_at > _MOST_PARTS:
            break
    by_size: dict[tuple[int, int], list[MinedPattern]] = {}
    for one in found:
        by_size.setdefault((len(one.code[0]), one.support), []).append(one)
    closed = [
        one
        for one in found
        if not any(
            _covers(other, one) for other in by_size.get((len(one.code[0]) + 1, one.support), ())
        )
    ]
    return tuple(sorted(closed, key=lambda one: (-one.covered, -len(one.code[0]), one.code)))


def disjoint_places(places: Iterable[Place]) -> list[Place]:
    """Places that share no node, the first ones taken."""
    taken: set[int] = set()
    kept = []
    for place in sorted(places, key=lambda p: tuple(sorted(p))):
        if taken.isdisjoint(place):
            taken |= place
            kept.append(place)
    return kept


def select_genes(
    patterns: Iterable[MinedPattern], most: int
) -> tuple[tuple[MinedPattern, int], ...]:
    """Patterns that explain programs together, with how often each occurs beside those before it.

    Greedily: the one that explains most of what is left comes next.
    """
    taken: dict[str, set[int]] = {}
    chosen: list[tuple[MinedPattern, int]] = []
    waiting = [(-one.covered, at, one) for at, one in enumerate(patterns)]
    heapify(waiting)
    while waiting and len(chosen) < most:
        score, at, one = heappop(waiting)
        free = {name: _free_places(places, taken.get(name, set())) for name, places in one.places}
        covered = len(one.code[0]) * sum(map(len, free.values()))
        if not covered:
            continue
        if -covered > score:
            heappush(waiting, (-covered, at, one))
            continue
        chosen.append((one, covered // len(one.code[0])))
        for name, places in free.items():
            taken.setdefault(name, set()).update(*places)
    return tuple(chosen)


def _free_places(places: Iterable[Place], taken: set[int]) -> list[Place]:
    return disjoint_places(place for place in places if taken.isdisjoint(place))


def _covers(larger: MinedPattern, smaller: MinedPattern) -> bool:
    """Whether each place of a part lies in one of the larger."""
    inside = dict(larger.places)
    for name, places in smaller.places:
        around: dict[int, list[Place]] = {}
        for place in inside.get(name, ()):
            for node in place:
                around.setdefault(node, []).append(place)
        if not all(any(p <= q for q in around.get(min(p), ())) for p in places):
            return False
    return True


@dataclass
class _Program:
    """A program without moves: labels, and edges both ways."""

    graph: ProgramGraph
    labels: dict[int, str] = field(default_factory=dict)
    operands: dict[int, dict[int, list[str]]] = field(
        default_factory=dict
    )  # by where they are from
    neighbours: dict[int, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        origins = self.graph.origins
        for node in self.graph.nodes:
            if node.is_move:
                continue
            self.labels[node.index] = node.label
            is_free = node.words[0] in COMMUTATIVE or len(node.operands) == 1
            taken = self.operands.setdefault(node.index, {})
            for at, operand in enumerate(node.operands):
                other = origins[operand]
                taken.setdefault(other, []).append("" if is_free else str(at))
                self.neighbours.setdefault(other, set()).add(node.index)
                self.neighbours.setdefault(node.index, set()).add(other)

    def small(self, place: Place) -> SmallGraph:
        """The graph of some nodes, with all edges between them."""
        order = sorted(place)
        number = {node: at for at, node in enumerate(order)}
        edges = [
            (number[source], number[node], operand)
            for node in order
            for source in order
            for operand in self.operands[node].get(source, ())
        ]
        return SmallGraph(tuple(self.labels[node] for node in order), tuple(sorted(edges)))

    def around(self, place: Place) -> set[int]:
        """Nodes next to some; those next to hubs alone are left out."""
        near: set[int] = set()
        for node in place:
            others = self.neighbours.get(node, set())
            if len(others) <= _MOST_NEIGHBOURS:
                near |= others
        return near - place


@dataclass
class _Search:
    programs: Sequence[_Program]
    codes: dict[SmallGraph, Code] = field(default_factory=dict)
    looked_at: int = 0

    def single_nodes(self, least_support: int) -> list[MinedPattern]:
        made: _Held = {}
        for program in self.programs:
            for node, label in program.labels.items():
                by_program = made.setdefault(((label,), ()), {})
                by_program.setdefault(program.graph.name, set()).add(frozenset((node,)))
        return _frequent(made, least_support)

    def grown(self, level: Iterable[MinedPattern], least_support: int) -> list[MinedPattern]:
        """All frequent parts with one node more."""
        programs = {program.graph.name: program for program in self.programs}
        made: _Held = {}
        for pattern in level:
            for name, places in pattern.places:
                self._grow(programs[name], places, made)
        return _frequent(made, least_support)

    def _grow(self, program: _Program, places: Iterable[Place], made: _Held) -> None:
        name = program.graph.name
        seen: set[Place] = set()
        for place in places:
            for node in sorted(program.around(place)):
                larger = place | {node}
                if larger in seen or self.looked_at > _MOST_PARTS:
                    continue
                seen.add(larger)
                self.looked_at += 1
                held = made.setdefault(self._code(program.small(larger)), {})
                of_program = held.setdefault(name, set())
                if len(of_program) < _MOST_PLACES:
                    of_program.add(larger)

    def _code(self, small: SmallGraph) -> Code:
        code = self.codes.get(small)
        if code is None:
            code = self.codes[small] = canonical_code(small)
        return code


def _frequent(made: _Held, least_support: int) -> list[MinedPattern]:
    frequent = []
    for code in sorted(made):
        places = made[code]
        if len(places) >= least_support:
            ordered = tuple(
                (name, tuple(sorted(places[name], key=lambda p: tuple(sorted(p)))))
                for name in sorted(places)
            )
            frequent.append(MinedPattern(code, ordered))
    return frequent
