"""Programs as genomes: runs of operations, blocks that recur, and how alike two programs are.

The genes of a program are the names of its calls in their order, without overloads; what loads
weights and constants is left out. Its n-grams are the runs of 1 to 4 of them. A block is a run that
recurs without overlap; equal blocks of different programs have the same signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from heapq import heapify, heappop, heappush
from math import sqrt

import numpy as np
import numpy.typing as npt

from nacre.nac.format.values import NacFile
from nacre.nac.spec.operations import call_of

LONGEST_GRAM = 4
_LONGEST_BLOCK = 256
_MOST_CANDIDATES = 200  # repeats that are looked at closely, the most promising first
_MOST_BLOCKS = 16

Gram = tuple[str, ...]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """A run of operations that recurs."""

    genes: Gram
    starts: tuple[int, ...]  # of its occurrences among the genes; they do not overlap

    @property
    def signature(self) -> str:
        """The same for the same operations, in whatever program."""
        return signature(self.genes)

    @property
    def covered(self) -> int:
        """How many calls it explains."""
        return len(self.genes) * len(self.starts)


@dataclass(frozen=True)
class Genome:
    """The genes of a program, and what follows from them."""

    name: str
    genes: Gram

    @cached_property
    def grams(self) -> tuple[Counter[Gram], ...]:
        """How often each run of 1, 2, 3 and 4 genes occurs."""
        return tuple(_grams(self.genes, length) for length in range(1, LONGEST_GRAM + 1))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Runs that recur, those that explain most of the program first; they do not overlap."""
        return _blocks(self.genes)

    @property
    def signature(self) -> str:
        """Of the whole program."""
        return signature(self.genes)


def signature(genes: Sequence[str]) -> str:
    """Twelve hexadecimal digits that stand for operations in their order."""
    return sha256("\n".join(genes).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def genome(name: str, file: NacFile) -> Genome:
    """The genome of a program."""
    names = file.name_of
    calls = (i.op for i in file.instructions if not i.is_system)
    return Genome(name, tuple(gene(names.get(op, f"op_{op}")) for op in calls))


def gene(name: str) -> str:
    """`relu` of `aten.relu.default`; operations of others than ATen keep their prefix."""
    call = call_of(name)
    if call.startswith(("core.", "nac.")) or "::" in call:
        return call
    is_foreign = call.count(".") > 1
    return call.rpartition(".")[0] if is_foreign else call.partition(".")[0] or call


def similarity(first: Genome, second: Genome) -> float:
    """1 for the same mixture of runs, 0 for nothing in common.

    The cosine of the counts, averaged over the lengths of runs that both are long enough for: a
    network that repeats its blocks more often is still alike.
    """
    pairs = zip(first.grams, second.grams, strict=True)
    cosines = [_cosine(a, b) for a, b in pairs if a or b]
    return sum(cosines) / len(cosines) if cosines else 1.0


def _grams(genes: Gram, length: int) -> Counter[Gram]:
    return Counter(genes[i : i + length] for i in range(len(genes) - length + 1))


def _cosine(first: Counter[Gram], second: Counter[Gram]) -> float:
    if first == second:
        return 1.0
    product = sum(count * second[gram] for gram, count in first.items() if gram in second)
    norms = (sum(c * c for c in side.values()) for side in (first, second))
    lengths = [sqrt(norm) for norm in norms]
    return min(1.0, product / (lengths[0] * lengths[1])) if all(lengths) else 0.0


# Blocks


def _blocks(genes: Gram) -> tuple[Block, ...]:
    """Greedily: the repeat that explains most of what is left, until none explains anything.

    What a repeat explains only shrinks as others are taken, so that one which is still the best
    when it is looked at again is the best of all.
    """
    taken = np.zeros(len(genes), bool)
    heap = [
        (-len(starts) * length, length, int(starts[0]), index, starts)
        for index, (starts, length) in enumerate(_repeats(_codes(genes)))
    ]
    heapify(heap)
    blocks: list[Block] = []
    while heap and len(blocks) < _MOST_BLOCKS:
        score, length, _, index, starts = heappop(heap)
        places = _disjoint_starts(starts, length, taken)
        if len(places) < 2:
            continue
        if -len(places) * length > score:
            heappush(heap, (-len(places) * length, length, places[0], index, np.array(places)))
            continue
        blocks.append(Block(genes[places[0] : places[0] + length], tuple(places)))
        for place in places:
            taken[place : place + length] = True
    return tuple(blocks)


def _codes(genes: Gram) -> Ints:
    numbers = {name: index for index, name in enumerate(sorted(set(genes)))}
    return np.array([numbers[name] for name in genes], np.int64)


def _repeats(codes: Ints) -> list[tuple[Ints, int]]:
    """Runs that occur at two places or more, with all their places, the most promising first."""
    if len(codes) < 2:
        return []
    order = _suffixes(codes)
    shared = _shared_counts(codes, order)
    scored: list[tuple[int, int, int, int]] = []
    stack: list[tuple[int, int]] = []  # length, where it begins in the order of suffixes
    for place, length in enumerate([*shared.tolist(), 0]):
        start = place
        while stack and stack[-1][0] > length:
            held, start = stack.pop()
            if held >= 2:
                scored.append((held * (place - start + 1), held, start, place))
        if length and (not stack or stack[-1][0] < length):
            stack.append((length, start))
    scored.sort(key=lambda row: (-row[0], row[1], row[2]))
    return [
        (np.sort(order[start : end + 1]), length)
        for _, length, start, end in scored[:_MOST_CANDIDATES]
    ]


def _suffixes(codes: Ints) -> Ints:
    """The suffixes in the order of their first genes, by doubling."""
    rank = codes
    step = 1
    while True:
        following = np.full(len(codes), -1, np.int64)
        following[:-step] = rank[step:]
        order = np.lexsort((following, rank))
        pairs = np.stack((rank[order], following[order]))
        is_new = np.any(pairs[:, 1:] != pairs[:, :-1], axis=0)
        made = np.empty(len(codes), np.int64)
        made[order] = np.concatenate(([0], np.cumsum(is_new)))
        rank = made
        step *= 2
        if step > _LONGEST_BLOCK or step >= len(codes) or bool(is_new.all()):
            return order


def _shared_counts(codes: Ints, order: Ints) -> Ints:
    """How many first genes neighbours in the order share, up to the longest block."""
    first, second = order[:-1].copy(), order[1:].copy()
    shared = np.zeros(len(order) - 1, np.int64)
    alive = np.arange(len(shared))
    for length in range(_LONGEST_BLOCK):
        a, b = first[alive] + length, second[alive] + length
        inside = (a < len(codes)) & (b < len(codes))
        alive = alive[inside]
        alive = alive[codes[a[inside]] == codes[b[inside]]]
        if not len(alive):
            break
        shared[alive] = length + 1
    return shared


def _disjoint_starts(starts: Ints, length: int, taken: npt.NDArray[np.bool_]) -> list[int]:
    """Places that overlap neither each other nor what is taken."""
    used = np.concatenate(([0], np.cumsum(taken)))
    free = starts[used[starts + length] == used[starts]]
    chosen: list[int] = []
    for start in free.tolist():
        if not chosen or start >= chosen[-1] + length:
            chosen.append(start)
    return chosen
