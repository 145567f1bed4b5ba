"""A search over what a grammar derives: networks that err less, or that take fewer cycles.

Evolution, one child at a time: parents are drawn from the survivors, which are the best by fronts
and then by the hypervolume that they alone add. A child is a transplant of one into another, or a
change of one. Random search draws every network from the grammar instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from nacre.nac.rules.seeds import require_seed
from nacre.nac.synthesis.derivation import Counts, Derivation, count
from nacre.nac.synthesis.grammar import Grammar
from nacre.nac.synthesis.pareto import Point, best_order, front, hypervolume
from nacre.nac.synthesis.synthesise import Request, derivations_within, require_possible
from nacre.nac.synthesis.variation import mutate, settle, transplant

Origin = Literal["drawn", "transplant", "change", "numbers"]
_KEPT = 16
_FIRST_SHARE = 6  # one of so many evaluations is drawn before children are made
_ATTEMPTS = 30  # to make a child that is new
_TRANSPLANTS, _NUMBERS = 0.35, 0.3  # shares of children; numbers only where something tunes them


@dataclass(frozen=True)
class Score:
    """What a network was found to do: its share of errors, and its cycles on a device."""

    error: float
    cycles: int

    @property
    def point(self) -> Point:
        """Both as coordinates that are to be small."""
        return self.error, float(self.cycles)


# None: it does not fit the device.
Evaluate = Callable[[Derivation], Score | None]
Watch = Callable[[int, int], None]  # how many evaluations are done, of how many


class Tuner(Protocol):
    """Proposes other numbers for a network that it has been told about."""

    def propose(self, one: Derivation) -> Derivation | None:
        """The same blocks with other widths and repetitions."""

    def report(self, one: Derivation, score: Score) -> None:
        """What a network was found to do."""


@dataclass(frozen=True)
class Candidate:
    """A network that was evaluated, and where it came from."""

    derivation: Derivation
    score: Score
    origin: Origin
    number: int  # of its evaluation

    @property
    def counts(self) -> Counts:
        """Its parameters and products."""
        return count(self.derivation)


@dataclass(frozen=True)
class SearchResult:
    """All that was evaluated, in order; what did not fit the device took an evaluation too."""

    found: tuple[Candidate, ...]
    evaluations: int

    @property
    def front(self) -> tuple[Candidate, ...]:
        """Those that nothing dominates, from the least error to the fewest cycles."""
        return tuple(self.found[at] for at in front([one.score.point for one in self.found]))

    def reference(self, classes: int) -> Point:
        """Where nothing counts any more: errors of guessing, and cycles beyond all of these."""
        return 1.0 - 1.0 / classes, float(max((o.score.cycles for o in self.found), default=0) + 1)

    def hypervolume(self, reference: Point, evaluations: int | None = None) -> float:
        """What is dominated up to a reference, after some of the evaluations or all."""
        most = self.evaluations if evaluations is None else evaluations
        points = [one.score.point for one in self.found if one.number < most]
        return hypervolume(points, reference)


def search(
    grammar: Grammar,
    request: Request,
    evaluate: Evaluate,
    evaluations: int,
    seed: int = 0,
    *,
    reference: Point | None = None,
    tuner: Tuner | None = None,
    watch: Watch | None = None,
) -> SearchResult:
    """Evolution over so many evaluations; InputError where budgets cannot be met.

    Errors and cycles from the `reference` on count for nothing; without one, errors of guessing and
    as many cycles as any network takes.
    """
    require_possible(grammar, request)
    run = _Run(grammar, request, evaluate, evaluations, require_seed(seed), tuner, watch, reference)
    first = max(2, min(_KEPT, evaluations // _FIRST_SHARE))
    while run.evaluations < evaluations:
        is_first = len(run.seen) < first or len(run.found) < 2
        run.take(*(run.draw() if is_first else run.child()))
    return SearchResult(tuple(run.found), evaluations)


def random_search(
    grammar: Grammar,
    request: Request,
    evaluate: Evaluate,
    evaluations: int,
    seed: int = 0,
    watch: Watch | None = None,
) -> SearchResult:
    """As many networks, each drawn from the grammar."""
    require_possible(grammar, request)
    run = _Run(grammar, request, evaluate, evaluations, require_seed(seed), None, watch)
    while run.evaluations < evaluations:
        run.take(*run.draw())
    return SearchResult(tuple(run.found), evaluations)


@dataclass
class _Run:
    """What a search has seen; every network is evaluated once."""

    grammar: Grammar
    request: Request
    evaluate: Evaluate
    most: int
    seed: int
    tuner: Tuner | None
    watch: Watch | None
    reference: Point | None = None
    evaluations: int = 0
    found: list[Candidate] = field(default_factory=list)
    seen: set[Derivation] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng((self.seed, 1))
        self._drawn = self._all_drawn()

    def _all_drawn(self) -> Iterator[Derivation]:
        at = 0
        while True:
            yield from derivations_within(self.grammar, self.request, (self.seed, 0, at))
            at += 1

    def draw(self) -> tuple[Derivation, Origin]:
        """A new network of the grammar; one that was seen where there are no others."""
        for _ in range(_ATTEMPTS):
            drawn = next(self._drawn)
            if drawn not in self.seen:
                break
        return drawn, "drawn"

    def child(self) -> tuple[Derivation, Origin]:
        """A new network made of those that are survivors."""
        survivors = self._survivors()
        for _ in range(_ATTEMPTS):
            made, origin = self._varied(survivors)
            settled = settle(made, self.request)
            if settled is not None and settled not in self.seen:
                return settled, origin
        return self.draw()

    def _varied(self, survivors: Sequence[Derivation]) -> tuple[Derivation | None, Origin]:
        parent, other = self._parent(survivors), self._parent(survivors)
        if self.tuner is not None and self.random.random() < _NUMBERS:
            return self.tuner.propose(parent), "numbers"
        if parent != other and self.random.random() < _TRANSPLANTS:
            return transplant(self.grammar, self.random, parent, other), "transplant"
        return mutate(self.grammar, self.random, parent), "change"

    def _survivors(self) -> list[Derivation]:
        order = best_order([one.score.point for one in self.found], self._reference())
        return [self.found[at].derivation for at in order[:_KEPT]]

    def _reference(self) -> Point:
        if self.reference is not None:
            return self.reference
        return SearchResult(tuple(self.found), self.evaluations).reference(self.request.classes)

    def _parent(self, survivors: Sequence[Derivation]) -> Derivation:
        """The better of two that are drawn."""
        return survivors[int(self.random.integers(len(survivors), size=2).min())]

    def take(self, derivation: Derivation, origin: Origin) -> None:
        """Evaluate a network, and keep what came of it."""
        score = self.evaluate(derivation)
        self.seen.add(derivation)
        if score is not None:
            self.found.append(Candidate(derivation, score, origin, self.evaluations))
            if self.tuner is not None:
                self.tuner.report(derivation, score)
        self.evaluations += 1
        if self.watch is not None:
            self.watch(self.evaluations, self.most)
