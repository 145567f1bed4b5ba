"""Where the values of a run lie: one block of memory, in which the dead make room for others.

A run that takes new memory for every value has the system clear each page of it again and again;
that costs more than an addition does. Here every value has its place before the first run, and the
block stays with the session.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, ModuleType

import numpy as np

from nacre.core.values import Array
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.scratch import aligned_bytes

_ALIGNMENT = 64  # a line of the cache

# Whose kernels may write their result over an operand of the same type: each element is read
# before it is written, and never again. A test tries every one of them.
OVERWRITING = frozenset(
    {"BinOp", "Clip", "Neg", "Relu", "Exp", "Log", "ReluNan", "Silu", "Gelu", "HardSwish",
     "HardSigmoid"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Allocation:
    """A value that a step makes."""

    value: int
    bytes: int | None  # None: it lies elsewhere
    dead: tuple[int, ...]  # values that nothing needs afterwards; those with a place leave it
    may_overwrite: tuple[
        int, ...
    ] = ()  # values in whose place it may be written, should they be dead


@dataclass
class _FreeList:
    """Free stretches between the living; best fit, neighbours joined."""

    size: int = 0
    _by_size: list[tuple[int, int]] = field(default_factory=list)  # length, start; ascending
    _starts: dict[int, int] = field(default_factory=dict)  # length by start
    _ends: dict[int, int] = field(default_factory=dict)  # start by end

    def take(self, length: int) -> int:
        """The start of a stretch that was free; the block grows where none is long enough."""
        at = bisect_left(self._by_size, (length, -1))
        if at == len(self._by_size):
            last = self._ends.get(self.size)
            if last is None:
                start, self.size = self.size, self.size + length
                return start
            # What is free at the end is the beginning of what is needed.
            self._remove(last)
            self.size = last + length
            return last
        found, start = self._by_size[at]
        self._remove(start)
        if found > length:
            self._insert(start + length, found - length)
        return start

    def free(self, start: int, length: int) -> None:
        """Free a stretch."""
        behind = self._starts.get(start + length)
        if behind is not None:
            self._remove(start + length)
            length += behind
        before = self._ends.get(start)
        if before is not None:
            self._remove(before)
            start, length = before, length + start - before
        self._insert(start, length)

    def _insert(self, start: int, length: int) -> None:
        insort(self._by_size, (length, start))
        self._starts[start] = length
        self._ends[start + length] = start

    def _remove(self, start: int) -> None:
        length = self._starts.pop(start)
        del self._ends[start + length]
        del self._by_size[bisect_left(self._by_size, (length, start))]


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of values, as offsets in bytes, and how long the block is."""

    offsets: dict[int, int]
    size: int

    def block(self) -> Array:
        """New memory for one run at a time, of which a line of the cache begins."""
        return aligned_bytes(self.size)

    def array(self, block: Array, value: int, type_: KernelType) -> Array:
        """A value in its place."""
        return np.ndarray(type_.shape, type_.dtype, block, offset=self.offsets[value])


def lay_out(births: Sequence[Allocation]) -> Layout:
    """A place for every value that is born; two share one only where they never live together."""
    block = _FreeList()
    places: dict[int, int] = {}
    lengths: dict[int, int] = {}
    for birth in births:
        if birth.bytes is not None:
            length = -(-birth.bytes // _ALIGNMENT) * _ALIGNMENT
            left = [v for v in birth.may_overwrite if v in lengths and v in birth.dead]
            places[birth.value] = places[left[0]] if left else block.take(length)
            for value in left[:1]:  # the place is not free: it has changed hands
                del lengths[value]
            lengths[birth.value] = length
        for value in birth.dead:
            if value in lengths:
                block.free(places[value], lengths.pop(value))
    return Layout(places, block.size)


def captured_arrays(runs: Iterable[object]) -> list[Array]:
    """The arrays that kernels bound to their types hold: what they have prepared of constants."""
    found: list[Array] = []
    seen: set[int] = set()
    left = list(runs)
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            found.append(one)
        elif isinstance(one, FunctionType):
            left += _captured_values(one)
        elif isinstance(one, partial):
            left += [one.func, *one.args, *one.keywords.values()]
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, tuple | list):
            left += one
        elif type(one).__module__.startswith("nacre."):
            left += [getattr(one, name, None) for name in _fields(one)]
    return found


def _captured_values(function: FunctionType) -> Iterator[object]:
    """What a function was made with."""
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty
            yield cell.cell_contents


def _fields(value: object) -> list[str]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*getattr(value, "__dict__", ()), *slots]
