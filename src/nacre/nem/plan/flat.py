"""Long bodies without loops: a sweep over bytes instead of all pairs.

Per byte only neighbours matter: a write against the reads and the write before it, a read against
the write before it. Where those are ordered, everything is, for order carries over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from nacre.base.term_columns import Column, distinct
from nacre.nem.plan.footprints import Runs
from nacre.nem.plan.order import Order
from nacre.nem.plan.plan import Access

# Lists of stretches grow with the places at which accesses begin and end.
_MOST_STRETCHES = 1 << 13
_FEW_RUNS = 32

_NOTHING = 0  # the history of bytes that nobody has touched


class _Histories:
    """What happened to bytes: the last write, and the reads since, each after an earlier history.

    Bytes with the same history share its number. One that ends with a read goes on in that before
    it, one that ends with a write does not.
    """

    def __init__(self) -> None:
        self._last = [-1]  # the access that a history ends with
        self._earlier = [_NOTHING]

    def extend(self, access: int, earlier: int = _NOTHING) -> int:
        """The number of a new history."""
        self._last.append(access)
        self._earlier.append(earlier)
        return len(self._last) - 1

    def accesses(self, numbers: list[int]) -> set[int]:
        """All accesses of some histories: each is gone back through once."""
        seen = {_NOTHING}
        for number in numbers:
            while number not in seen:
                seen.add(number)
                number = self._earlier[number]
        return {self._last[number] for number in seen if number != _NOTHING}


class _TouchedBytes(Protocol):
    """What happened to the bytes of a buffer; accesses are told by their numbers."""

    def read(self, access: int) -> set[int]:
        """Note a read; the accesses that it must come after."""
        ...

    def write(self, access: int) -> set[int]:
        """Note a write; the accesses that it must come after."""
        ...


class _Segments:
    """Stretches of bytes with one history each, in lists: best where accesses have few runs."""

    def __init__(self, runs: Sequence[Sequence[tuple[int, int]]]) -> None:
        self._runs = runs
        self._starts = [0]
        self._history = [_NOTHING]
        self._written = [_NOTHING]  # the history that the last write began
        self._histories = _Histories()

    def read(self, access: int) -> set[int]:
        """Note a read; the accesses that it must come after."""
        written: set[int] = set()
        later: dict[int, int] = {}
        for low, high in self._runs[access]:
            begin, end = self._cut(low, high)
            written.update(self._written[begin:end])
            for at in range(begin, end):
                earlier = self._history[at]
                if earlier not in later:
                    later[earlier] = self._histories.extend(access, earlier)
                self._history[at] = later[earlier]
        return self._histories.accesses(list(written))

    def write(self, access: int) -> set[int]:
        """Note a write; the accesses that it must come after."""
        before: set[int] = set()
        made = self._histories.extend(access)
        for low, high in self._runs[access]:
            begin, end = self._cut(low, high)
            before.update(self._history[begin:end])
            self._starts[begin:end] = [low]
            self._history[begin:end] = self._written[begin:end] = [made]
        return self._histories.accesses(list(before))

    def _cut(self, low: int, high: int) -> tuple[int, int]:
        """The stretches between two places, at which stretches end from now on."""
        return self._cut_at(low), self._cut_at(high)

    def _cut_at(self, place: int) -> int:
        """The number of the stretch that begins at a place."""
        at = bisect_left(self._starts, place)
        if at == len(self._starts) or self._starts[at] != place:
            self._starts.insert(at, place)
            self._history.insert(at, self._history[at - 1])
            self._written.insert(at, self._written[at - 1])
        return at


class _ByteHistories:
    """The bytes of a buffer between all ends of runs, and the history of each of these pieces.

    In columns: an access of thousands of runs, or one of a thousand pieces, is one step.
    """

    def __init__(self, runs: Sequence[Runs]) -> None:
        cuts = distinct(np.concatenate(runs))
        cut_indices = np.searchsorted(cuts, np.concatenate(runs))
        self._pieces = np.split(cut_indices, np.cumsum([len(each) for each in runs])[:-1])
        self._history = np.full(cuts.size, _NOTHING)
        self._written = np.full(cuts.size, _NOTHING)  # the history that the last write began
        self._histories = _Histories()

    def read(self, access: int) -> set[int]:
        """Note a read; the accesses that it must come after."""
        at = covered_pieces(self._pieces[access])
        earlier = _few_distinct(self._history[at])
        if earlier.size == 1:
            self._history[at] = self._histories.extend(access, int(earlier[0]))
            return self._histories.accesses(_few_distinct(self._written[at]).tolist())
        later = [self._histories.extend(access, int(number)) for number in earlier]
        self._history[at] = np.array(later)[np.searchsorted(earlier, self._history[at])]
        return self._histories.accesses(_few_distinct(self._written[at]).tolist())

    def write(self, access: int) -> set[int]:
        """Note a write; the accesses that it must come after."""
        at = covered_pieces(self._pieces[access])
        before = self._histories.accesses(_few_distinct(self._history[at]).tolist())
        self._history[at] = self._written[at] = self._histories.extend(access)
        return before


def _few_distinct(numbers: Column) -> Column:
    """The different numbers; mostly it is one."""
    first = numbers[:1]
    return first if numbers.size == 1 or (numbers == first).all() else distinct(numbers)


def covered_pieces(cut_indices: Runs) -> slice | Column:
    """The pieces inside runs, given by the indices of their ends among the cuts."""
    if len(cut_indices) == 1:
        return slice(int(cut_indices[0, 0]), int(cut_indices[0, 1]))
    counts = cut_indices[:, 1] - cut_indices[:, 0]
    steps = np.ones(int(counts.sum()), np.int64)
    firsts = np.cumsum(counts)[:-1]
    steps[firsts] = cut_indices[1:, 0] - cut_indices[:-1, 1] + 1
    steps[0] = cut_indices[0, 0]
    return np.cumsum(steps)


def unordered_in_sequence(
    accesses: Sequence[Access], order: Order
) -> Iterator[tuple[Access, Access, int]]:
    """Unordered pairs among the tasks of one body, in each iteration; each pair once."""
    seen: set[tuple[int, int]] = set()
    for row in range(accesses[0].grid.rows):
        touched = _touched_bytes(accesses, row)
        for number, access in enumerate(accesses):
            before = touched.write(number) if access.is_write else touched.read(number)
            # Operands come in the order of the text.
            for a in (accesses[earlier] for earlier in sorted(before)):
                key = (id(a), id(access))
                if key in seen or a.position == access.position:
                    continue
                if not order.always_before(a.position, access.position):
                    seen.add(key)
                    yield a, access, row


def _touched_bytes(accesses: Sequence[Access], row: int) -> _TouchedBytes:
    patterns = [access.footprint.pattern(row) for access in accesses]
    if len({access.footprint for access in accesses}) <= _MOST_STRETCHES and all(
        len(pattern.runs) <= _FEW_RUNS for pattern in patterns
    ):
        lows = [access.footprint.low_at(row) for access in accesses]
        return _Segments([p.pairs_from(low) for p, low in zip(patterns, lows, strict=True)])
    return _ByteHistories([_runs(access, row) for access in accesses])


def _runs(access: Access, row: int) -> Runs:
    return access.footprint.pattern(row).runs + access.footprint.low_at(row)
