"""`nacre.nac.synthesise`: networks of a grammar, within budgets, each a file that is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from nacre.base.diagnostics import InputError, InternalError, has_errors
from nacre.base.source import whole_file
from nacre.nac.build import build
from nacre.nac.format.file import to_bytes
from nacre.nac.rules.seeds import require_seed
from nacre.nac.rules.synthesis import NAC57
from nacre.nac.run.model import NacModel
from nacre.nac.synthesis.blocks import JOINTS
from nacre.nac.synthesis.budgets import Limits, grow, shrink, smallest
from nacre.nac.synthesis.derivation import Counts, Derivation, count, write_module
from nacre.nac.synthesis.grammar import NETWORK, Grammar
from nacre.nac.synthesis.learning import Corpus, Source, corpus_of
from nacre.nac.synthesis.sampling import derive
from nacre.nac.tools.genome import Genome, genome, similarity
from nacre.nac.verify import verify

_ATTEMPTS = 40  # to find one that is not there yet
_LEAST_SHARE = 0.2  # of the budgets that a network is given to fill
MOST_COUNT, MOST_INPUT = 10_000, 1 << 22

Cycles = Callable[[NacModel], int | None]


class Request(Struct, frozen=True):
    """What networks are asked for."""

    input: tuple[int, ...]
    classes: int
    limits: Limits = Limits()


@dataclass(frozen=True)
class Individual:
    """A network: how it was derived, its file, and how far it is from what was known."""

    name: str
    derivation: Derivation
    model: NacModel
    counts: Counts
    nearest: str = ""  # of the corpus
    distance: float | None = None  # to that, from 0 to 1
    cycles: int | None = None

    @property
    def parameters(self) -> int:
        """Elements of all of its parameters."""
        return self.counts.parameters

    @property
    def macs(self) -> int:
        """Products of a run."""
        return self.counts.macs


def synthesise(
    like: Grammar | Corpus | Sequence[Source],
    input: tuple[int, ...],
    *,
    params: int | None = None,
    macs: int | None = None,
    classes: int | None = None,
    count: int = 1,
    seed: int = 0,
    cycles: Cycles | None = None,
) -> tuple[Individual, ...]:
    """So many different networks of a grammar within budgets; the same seed gives the same bytes.

    - `like`: files and models to learn from, to the nearest of which distances are measured, or a
      grammar
    - `input`: the shape of what networks take, an image [N, C, H, W], a sequence [N, T, C] or a
      vector [N, C]
    - `params`, `macs`: the most parameters and products of a run
    - `classes`: of how many classes they give scores; without it, as most files of the grammar do
    - `cycles`: how long a model takes, as `lambda model: nacre.estimate(model, "npm4k").cycles`

    InputError where budgets cannot be met, with the smallest network that there is.
    """
    seed = require_seed(seed)
    corpus = as_corpus(like)
    request = request_of(corpus.grammar, input, params, macs, classes)
    if not 1 <= count <= MOST_COUNT:
        raise ValueError(f"a count of {count}, expected 1 to {MOST_COUNT:,}")
    found = derive_all(corpus.grammar, request, count, seed)
    return tuple(
        measure(make_individual(f"synth-{seed}-{at}", one, seed + at), corpus.genomes, cycles)
        for at, one in enumerate(found)
    )


def as_corpus(like: Grammar | Corpus | Sequence[Source]) -> Corpus:
    """A grammar with the genomes of what it was learned from."""
    if isinstance(like, Corpus):
        return like
    return Corpus(like) if isinstance(like, Grammar) else corpus_of(like)


def request_of(
    grammar: Grammar,
    shape: tuple[int, ...],
    params: int | None = None,
    macs: int | None = None,
    classes: int | None = None,
) -> Request:
    """What is asked for; ValueError for what has no meaning."""
    if len(shape) not in JOINTS or any(size < 1 for size in shape):
        wanted = "[N, C, H, W], [N, T, C] or [N, C]"
        raise ValueError(f"an input of shape {list(shape)}, expected {wanted}")
    if int(np.prod(shape, dtype=object)) > MOST_INPUT:
        raise ValueError(f"an input of more than {MOST_INPUT:,} elements")
    for name, number in (("params", params), ("macs", macs), ("classes", classes)):
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number}, expected a positive number")
    known = grammar.choices.get(f"{NETWORK}.classes", [])
    likely = int(max(known, key=lambda row: row[1])[0]) if known else 10
    return Request(shape, classes or likely, Limits(params, macs))


def derive_all(grammar: Grammar, request: Request, count: int, seed: int) -> list[Derivation]:
    """So many different derivations within budgets; InputError where there are not."""
    require_possible(grammar, request)
    made: dict[Derivation, None] = {}
    for at in range(count):
        for found in derivations_within(grammar, request, (seed, at)):
            if found not in made:
                made[found] = None
                break
        else:
            raise _too_few(len(made), count)
    return list(made)


def derivations_within(
    grammar: Grammar, request: Request, seed: tuple[int, ...]
) -> Iterator[Derivation]:
    """Derivations within budgets, one an attempt, and at last the smallest."""
    random = np.random.default_rng(seed)
    for _ in range(_ATTEMPTS):
        found = derive_within(grammar, request, random)
        if found is not None:
            yield found
    least = smallest(grammar, request.input, request.classes, request.limits)
    if least is not None and request.limits.allow(least):
        yield least


def derive_within(
    grammar: Grammar, request: Request, random: np.random.Generator
) -> Derivation | None:
    """A derivation that fills a share of the budgets; None where the one drawn cannot."""
    drawn = derive(grammar, random, request.input, request.classes)
    share = request.limits.part(float(_LEAST_SHARE ** random.random()))
    if drawn is None:
        return None
    within = shrink(drawn, share.bounded) or shrink(drawn, request.limits.bounded)
    return None if within is None else grow(within, share)


def require_possible(grammar: Grammar, request: Request) -> None:
    """InputError where no network of the grammar meets the budgets."""
    least = smallest(grammar, request.input, request.classes, request.limits)
    if least is None:
        shape = "x".join(map(str, request.input))
        blocks = ", ".join(grammar.blocks)
        message = f"no block of the grammar can stand on an input of {shape}; it has {blocks}"
        raise InputError([NAC57.at(whole_file("<budgets>"), message)])
    if not request.limits.allow(least):
        raise InputError([NAC57.at(whole_file("<budgets>"), _too_small(least, request.limits))])


def _too_small(least: Derivation, limits: Limits) -> str:
    counts = count(least)
    asked = []
    if limits.parameters is not None and counts.parameters > limits.parameters:
        asked.append(f"{limits.parameters:,} parameters")
    if limits.macs is not None and counts.macs > limits.macs:
        asked.append(f"{limits.macs:,} MACs")
    return (
        f"no network of the grammar has at most {' or '.join(asked)}: the smallest, {least.text}, "
        f"has {counts.parameters:,} parameters and {counts.macs:,} MACs"
    )


def _too_few(found: int, wanted: int) -> InputError:
    message = f"only {found} different networks within the budgets were found, {wanted} were asked"
    help_ = "allow more parameters and MACs, learn from more files, or ask for fewer"
    return InputError([NAC57.at(whole_file("<budgets>"), message, help=help_)])


def make_individual(name: str, derivation: Derivation, seed: int) -> Individual:
    """A derivation as a file, with weights drawn from a seed, and verified."""
    model = build(write_module(derivation, seed))
    findings = verify(to_bytes(model.file))
    if has_errors(findings):
        raise InternalError(f"{derivation.text} is no sound file: {findings[0].message}")
    return Individual(name, derivation, model, count(derivation))


def measure(individual: Individual, corpus: Sequence[Genome], cycles: Cycles | None) -> Individual:
    """With the nearest of a corpus, and the time that it takes."""
    own = genome(individual.name, individual.model.file)
    near = [(1.0 - similarity(own, one), one.name) for one in corpus]
    distance, nearest = min(near, default=(None, ""))
    time = None if cycles is None else cycles(individual.model)
    return replace(individual, nearest=nearest, distance=distance, cycles=time)
