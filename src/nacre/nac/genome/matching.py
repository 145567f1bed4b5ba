"""Recognition: where the patterns of the library stand in a program.

A term is matched from its end backwards, over operands; moves are passed over. Each pattern is
looked for once at every node, and those found before can be parts of it. Steps are counted, so that
no program takes longer than its length allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from nacre.nac.genome.graph import GraphNode, ProgramGraph
from nacre.nac.genome.library import LIBRARY, Pattern
from nacre.nac.genome.terms import BODY, Term
from nacre.nac.genome.vocabulary import COMMUTATIVE

_MOST_STEPS = 400  # for one term at one node
_MOST_BODY = 96  # nodes of a `body`

# A body has one of these: a value with its own mean added is no block of a network.
_LAYERS = frozenset({"project", "deconv", "attention", "matmul"})

Bindings = Mapping[str, int]
Found = tuple[Bindings, frozenset[int]]


@dataclass(frozen=True)
class Occurrence:
    """A pattern at a place: the instruction that ends it, all of its own, and what it takes."""

    pattern: str
    root: int
    nodes: frozenset[int]
    inputs: tuple[int, ...]
    role: str = ""


def recognise(graph: ProgramGraph, patterns: Sequence[Pattern] = LIBRARY) -> tuple[Occurrence, ...]:
    """All occurrences, by where they end, inner ones first; at most one of a name at a node."""
    matcher = _Matcher(graph)
    for pattern in patterns:
        made = [found for node in graph.nodes if (found := matcher.find(pattern, node))]
        for occurrence in made:
            matcher.ending.setdefault(occurrence.root, []).append(occurrence)
    return tuple(
        occurrence for node in graph.nodes for occurrence in matcher.ending.get(node.index, ())
    )


def outermost(occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """Those that no other contains whole: a covering of the program by its largest parts."""
    kept: list[Occurrence] = []
    owner: dict[int, list[Occurrence]] = {}
    for one in sorted(occurrences, key=lambda o: (-len(o.nodes), o.root, o.pattern)):
        if not any(one.nodes <= other.nodes for other in owner.get(one.root, ())):
            kept.append(one)
            for node in one.nodes:
                owner.setdefault(node, []).append(one)
    return tuple(sorted(kept, key=lambda o: o.root))


def pattern_counts(occurrences: Iterable[Occurrence]) -> dict[str, int]:
    """How often each name occurs, in the order of the library, not counting one inside another."""
    return {name: len(outermost(of_name)) for name, of_name in _by_name(occurrences).items()}


def _by_name(occurrences: Iterable[Occurrence]) -> dict[str, list[Occurrence]]:
    order = {pattern.name: at for at, pattern in enumerate(LIBRARY)}
    made: dict[str, list[Occurrence]] = {}
    for one in occurrences:
        made.setdefault(one.pattern, []).append(one)
    return dict(sorted(made.items(), key=lambda row: (order.get(row[0], len(order)), row[0])))


def named_ends(occurrences: Iterable[Occurrence]) -> dict[int, Occurrence]:
    """What ends at each instruction: of several the largest, of those the first of the library.

    Activations and norms that are written out are left out: they are parts of what has a name.
    """
    ends: dict[int, Occurrence] = {}
    for of_name in _by_name(one for one in occurrences if not one.role).values():
        for one in outermost(of_name):
            held = ends.get(one.root)
            if held is None or len(one.nodes) > len(held.nodes):
                ends[one.root] = one
    return ends


@dataclass
class _Matcher:
    """Looks for terms in one graph; `ending` has what was found before, by its last node."""

    graph: ProgramGraph
    ending: dict[int, list[Occurrence]] = field(default_factory=dict)
    steps: int = 0

    def find(self, pattern: Pattern, node: GraphNode) -> Occurrence | None:
        if node.is_move or not node.operands:
            return None
        for term in pattern.terms:
            self.steps = 0
            for bindings, nodes in self._at(term, node.index, {}):
                if node.index in nodes:  # an optional end that is left out ends elsewhere
                    inputs = tuple(bindings[v] for v in term.variables() if v in bindings)
                    return Occurrence(pattern.name, node.index, nodes, inputs, pattern.role)
        return None

    def _at(self, term: Term, index: int, bindings: Bindings) -> Iterator[Found]:
        """The ways in which a term stands at a node."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return
        origin = self.graph.origins[index]
        if not term.word:
            yield from _bound(term.name, origin, bindings, frozenset())
            return
        if term.word == BODY:
            yield from self._body(term, index, bindings)
            return
        for made, nodes in self._operation(term, origin, bindings):
            moves = self.graph.moves_before(index)
            yield from _bound(term.name, origin, made, nodes | moves)
        if term.is_optional:
            yield from self._at(term.arguments[0], index, bindings)

    def _operation(self, term: Term, index: int, bindings: Bindings) -> Iterator[Found]:
        node = self.graph.by_index[index]
        if term.word in node.words and len(node.operands) == len(term.arguments):
            own = frozenset((index,))
            for operands in _orders(node.operands, node.words[0] in COMMUTATIVE):
                yield from self._all(_in_order(term.arguments, operands), bindings, own)
        for one in self.ending.get(index, ()):
            fits = term.word in (one.pattern, one.role) and term.word
            if fits and len(one.inputs) == len(term.arguments):
                pairs = _in_order(term.arguments, one.inputs)
                yield from self._all(pairs, bindings, one.nodes)

    def _all(
        self, pairs: Sequence[tuple[Term, int]], bindings: Bindings, nodes: frozenset[int]
    ) -> Iterator[Found]:
        """The ways in which terms stand at nodes together."""
        if not pairs:
            yield bindings, nodes
            return
        (term, index), *others = pairs
        for made, more in self._at(term, index, bindings):
            yield from self._all(others, made, nodes | more)

    def _body(self, term: Term, index: int, bindings: Bindings) -> Iterator[Found]:
        """What is computed of a value that is known, and of no other."""
        start = bindings.get(term.arguments[0].name)
        if start is None or self.graph.origins[index] == start:
            return
        seen: set[int] = set()
        waiting = [index]
        while waiting:
            at = waiting.pop()
            if at == start or at in seen:
                continue
            operands = self.graph.by_index[at].operands
            if not operands or len(seen) >= _MOST_BODY or at < start:
                return
            seen.add(at)
            waiting += operands
        if any(not _LAYERS.isdisjoint(self.graph.by_index[at].words) for at in seen):
            yield bindings, frozenset(seen)


def _bound(name: str, value: int, bindings: Bindings, nodes: frozenset[int]) -> Iterator[Found]:
    if not name:
        yield bindings, nodes
    elif bindings.get(name, value) == value:
        yield {**bindings, name: value}, nodes


def _orders(operands: tuple[int, ...], is_free: bool) -> Iterator[tuple[int, ...]]:
    """The orders in which operands may be taken; only those of two are free."""
    if is_free and len(operands) == 2:
        yield from permutations(operands)
    else:
        yield operands


def _in_order(terms: Sequence[Term], indexes: Sequence[int]) -> list[tuple[Term, int]]:
    """Terms with their nodes; bodies and what may be anything come last, once names are known."""
    pairs = list(zip(terms, indexes, strict=True))
    return sorted(pairs, key=lambda pair: pair[0].word == BODY)
