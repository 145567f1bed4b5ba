"""The bytes that an operand touches: an offset that varies, and a pattern of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.term_columns import Column, Values, distinct
from nacre.base.terms import INT64_MAX
from nacre.nem.model.program import Operand, Region, Task
from nacre.nem.plan.grid import Grid

Runs = npt.NDArray[np.int64]  # rows of [start, end) in bytes from the offset, sorted, apart
NOTHING: Runs = np.zeros((0, 2), np.int64)

# So many runs are merged at a time: a strided tile in every iteration makes very many.
_MOST_MERGED_RUNS = 1 << 21


@dataclass(frozen=True, eq=False)
class Pattern:
    """Runs of bytes relative to an offset."""

    runs: Runs

    @cached_property
    def span(self) -> int:
        """From the offset to the end of the last run."""
        return int(self.runs[-1, 1])

    def pairs_from(self, low: int) -> list[tuple[int, int]]:
        """The runs from an offset on, as numbers."""
        if len(self.runs) == 1:
            return [(low + self._first[0], low + self._first[1])]
        return [(low + start, low + end) for start, end in self.runs.tolist()]

    @cached_property
    def _first(self) -> tuple[int, int]:
        return int(self.runs[0, 0]), int(self.runs[0, 1])

    @cached_property
    def longest(self) -> int:
        """The bytes of the longest run."""
        return int((self.runs[:, 1] - self.runs[:, 0]).max())

    @cached_property
    def is_dense(self) -> bool:
        """Whether it is one run from the offset on."""
        return len(self.runs) == 1 and int(self.runs[0, 0]) == 0


@lru_cache(maxsize=4096)
def dense_pattern(size: int) -> Pattern:
    """A single run of `size` bytes."""
    return Pattern(np.array([[0, size]], np.int64))


@lru_cache(maxsize=4096)
def strided_pattern(shape: tuple[int, ...], strides: tuple[int, ...], bits: int) -> Pattern:
    """The bytes of a tensor's elements; strides count elements and are not negative."""
    length, outer = _innermost_run(shape, strides)
    starts = np.zeros(1, np.int64)
    for dim, stride in outer:
        steps = np.arange(dim, dtype=np.int64) * stride
        starts = distinct(starts[:, None] + steps[None, :])
    low = starts * bits // 8
    high = -(-((starts + length) * bits) // 8)
    return Pattern(merge_runs(low, high))


def _innermost_run(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[int, list[tuple[int, int]]]:
    """How many elements lie side by side, and the dimensions that are left over."""
    dims = sorted(
        ((s, d) for d, s in zip(shape, strides, strict=True) if d > 1 and s != 0),
    )
    length = 1
    outer: list[tuple[int, int]] = []
    for stride, dim in dims:
        if stride == length and not outer:
            length *= dim
        else:
            outer.append((dim, stride))
    return length, outer


def union(parts: Iterable[Runs]) -> Runs:
    """Sorted runs that are apart and cover what the parts cover."""
    runs = np.concatenate([NOTHING, *parts])
    if len(runs) < 2:
        return runs
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    return merge_runs(runs[:, 0], runs[:, 1])


def merge_runs(low: Column, high: Column) -> Runs:
    """Runs, given sorted by start, with those that touch or overlap made one."""
    reach = np.maximum.accumulate(high)
    begins = np.ones(low.size, bool)
    begins[1:] = low[1:] > reach[:-1]
    ends = np.append(np.flatnonzero(begins)[1:] - 1, low.size - 1)
    return np.stack([low[begins], reach[ends]], axis=1)


@dataclass(frozen=True, eq=False)
class Footprint:
    """What an operand touches in every row of a grid."""

    low: Values
    patterns: tuple[Pattern, ...]
    pattern_index: int | Column  # per row; an int where all rows have the same pattern

    @property
    def high(self) -> Values:
        """One past the last byte."""
        if isinstance(self.pattern_index, int):
            return self.low + self.patterns[self.pattern_index].span
        spans = np.array([pattern.span for pattern in self.patterns], np.int64)
        return self.low + spans[self.pattern_index]

    @property
    def end(self) -> int:
        """One past the last byte of all rows."""
        return self.extent[1]

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The first byte of all rows, and one past the last."""
        low, high = self.low, self.high
        first = low if isinstance(low, int) else int(low.min(initial=INT64_MAX))
        return first, high if isinstance(high, int) else int(high.max(initial=0))

    @cached_property
    def _lows(self) -> tuple[int, int]:
        """The least and the greatest offset."""
        low = self.low
        return (low, low) if isinstance(low, int) else (int(low.min()), int(low.max()))

    def lies_within(self, size: int | None) -> bool:
        """Whether every row lies in a buffer of that size; reckoned without overflow."""
        if size is None:
            return False
        low, index = self.low, self.pattern_index
        if isinstance(index, int):
            least, most = self._lows
            return least >= 0 and most + self.patterns[index].span <= size
        lows = np.broadcast_to(np.asarray(low), index.shape)
        return int(lows.min()) >= 0 and all(
            int(lows[index == number].max()) + pattern.span <= size
            for number, pattern in enumerate(self.patterns)
        )

    @property
    def is_dense(self) -> bool:
        """Whether every row touches one run of bytes."""
        return all(pattern.is_dense for pattern in self.patterns)

    @cached_property
    def runs(self) -> Runs:
        """The bytes of all rows, sorted."""
        if isinstance(self.low, int) and isinstance(self.pattern_index, int):
            return self.runs_in(0)
        chunks = list(self._merged_chunks())
        return chunks[0] if len(chunks) == 1 else union(chunks)

    def _merged_chunks(self) -> Iterator[Runs]:
        for low, runs in self._distinct_offsets():
            step = max(1, _MOST_MERGED_RUNS // len(runs))
            for start in range(0, low.size, step):
                lows = low[start : start + step, None, None]
                yield union([(lows + runs[None, :, :]).reshape(-1, 2)])

    def _distinct_offsets(self) -> Iterator[tuple[Column, Runs]]:
        """The different offsets of each pattern."""
        index = self.pattern_index
        if isinstance(index, int):
            yield distinct(np.asarray(self.low)), self.patterns[index].runs
            return
        low = np.broadcast_to(np.asarray(self.low), index.shape)
        for number, pattern in enumerate(self.patterns):
            yield distinct(low[index == number]), pattern.runs

    def runs_in(self, row: int) -> Runs:
        """The bytes of one row."""
        return self.pattern(row).runs + self.low_at(row)

    def pattern(self, row: int) -> Pattern:
        """The pattern of a row."""
        index = self.pattern_index
        return self.patterns[index if isinstance(index, int) else int(index[row])]

    def low_at(self, row: int) -> int:
        """The offset in a row."""
        return self.low if isinstance(self.low, int) else int(self.low[row])


def copies_bytes(task: Task) -> bool:
    """Whether a task is a copy of raw bytes, whatever its regions hold."""
    return task.op in ("transfer", "store") and not copies_elements(task)


def copies_elements(task: Task) -> bool:
    """Whether a transfer or store moves elements, gaps left alone, and not raw bytes.

    So it is where both sides have one element type and shape and at least one says `strides`, and
    where a store quantises.
    """
    if len(task.operands) != 2:
        return False
    if quantises(task):
        return True
    a, b = (operand.region for operand in task.operands)
    if a is None or b is None or a.elem is None or a.elem != b.elem:
        return False
    if a.shape is None or a.shape != b.shape:
        return False
    return a.strides is not None or b.strides is not None


def quantises(task: Task) -> bool:
    """Whether a store turns floats into integers on its way: the destination says by what `quant`.

    Both sides have a type of one shape; what a device lets a store convert is for TOK05 to say.
    """
    if task.op != "store" or len(task.operands) != 2:
        return False
    source = next((o.region for o in task.operands if o.access == "read"), None)
    target = next((o.region for o in task.operands if o.access == "write"), None)
    if source is None or target is None or source.elem is None or target.elem is None:
        return False
    converts = not ELEMENT_TYPES[source.elem].is_integer and ELEMENT_TYPES[target.elem].is_integer
    has_quant = target.quant is not None and target.quant.form != "per_group"
    return converts and has_quant and source.shape is not None and source.shape == target.shape


def footprint(task: Task, operand: Operand, grid: Grid) -> Footprint | None:
    """The bytes of an operand in every row; None where the region is not fully known."""
    region = operand.region
    if region is None or region.buffer is None:
        return None
    if region.offset is None or isinstance(region.offset, float):
        return None
    low = grid.evaluate(region.offset)
    if copies_bytes(task) or region.compression is not None:
        if region.extent is None or isinstance(region.extent, float):
            return None
        return _by_size(low, grid.evaluate(region.extent))
    return _by_elements(low, region, grid)


def _by_size(low: Values, size: Values) -> Footprint | None:
    if isinstance(size, int):
        return Footprint(low, (dense_pattern(size),), 0) if size > 0 else None
    distinct, index = np.unique(size, return_inverse=True)
    if distinct[0] <= 0:
        return None
    return Footprint(low, tuple(dense_pattern(int(s)) for s in distinct), index.astype(np.int64))


def _by_elements(low: Values, region: Region, grid: Grid) -> Footprint | None:
    if region.elem is None or region.shape is None:
        return None
    parts = (*region.shape, *(region.strides or ()))
    columns = []
    for part in parts:
        if part is None or isinstance(part, float):
            return None
        columns.append(grid.evaluate(part))
    rank = len(region.shape)
    if all(isinstance(column, int) for column in columns):
        only_pattern = _pattern(
            tuple(int(c) for c in columns if isinstance(c, int)), rank, region.elem
        )
        return None if only_pattern is None else Footprint(low, (only_pattern,), 0)
    table = np.stack(np.broadcast_arrays(*[np.asarray(c) for c in columns]), axis=1)
    distinct, index = np.unique(table, axis=0, return_inverse=True)
    patterns = [_pattern(tuple(int(x) for x in row), rank, region.elem) for row in distinct]
    if any(pattern is None for pattern in patterns):
        return None
    known = tuple(pattern for pattern in patterns if pattern is not None)
    return Footprint(low, known, index.reshape(-1).astype(np.int64))


def _pattern(parts: tuple[int, ...], rank: int, elem: str) -> Pattern | None:
    shape, strides = parts[:rank], parts[rank:]
    element = ELEMENT_TYPES[elem]
    if any(dim <= 0 for dim in shape):
        return None
    count = math.prod(shape)
    if not strides:
        size = bytes_needed(count, element)
        return dense_pattern(size) if size <= INT64_MAX else None
    if len(strides) != rank:
        return None
    # The stride of a dimension of 1 leads nowhere, whatever its sign.
    steps = [(dim - 1) * stride for dim, stride in zip(shape, strides, strict=True)]
    if min(steps, default=0) < 0 or (sum(steps) + 1) * element.bits > INT64_MAX:
        return None
    if math.prod(dim for dim, _ in _innermost_run(shape, strides)[1]) > MAX_PATTERN_RUNS:
        return dense_pattern(-(-(sum(steps) + 1) * element.bits // 8))
    return strided_pattern(shape, strides, element.bits)


# A tensor in more runs than this is no tile of anything; its whole span stands for it.
MAX_PATTERN_RUNS = 1 << 22
