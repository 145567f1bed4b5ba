"""Sums of products over the places of a window, for many runs of elements.

NumPy's `einsum` takes them four elements at a time, whatever the processor has. Where the extra
`fast` is installed, sums that take long are compiled. Each place that has such sums tries whether
machine code gives the same bits there, and sooner.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np
import numpy.typing as npt

from nacre.base.loops.machine_code import Compilable, is_available
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.fixed import FixedCall

_F32 = np.dtype(np.float32)
_TRIALS = 3
_COMPARED = (
    64  # sums, before two orders are said to be the same: one sum is equal in half of all cases
)
# Types that indices and sums keep when this is compiled: an index of a type with a sign may count
# from the end, and such loops take one element at a time.
_NONE, _ONE, _THREE = np.uint64(0), np.uint64(1), np.uint64(3)
_ZERO = np.float32(0.0)


def add_up(
    x: Array, factors: Array, sums: Array, places: npt.NDArray[np.uint64],
    rows: int, row_step: int, parts: int, part_step: int, run: int,
) -> None:  # fmt: skip
    """Fill runs of sums, so many parts to a row; at each place a run of X begins further on.

    Every sum takes its places in order, one after the other, from 0 on. Three are added on the way
    through a run, so that a sum is loaded and stored a third as often.
    """
    count = np.uint64(len(places))
    for row in range(rows):
        for part in range(parts):
            to = (row * parts + part) * run
            first = row * row_step + part * part_step
            place = _NONE
            while place < count:
                a, u = first + places[place], place * run
                if place == _NONE:
                    for at in range(run):
                        sums[to + at] = _ZERO + x[a + at] * factors[u + at]
                    place += _ONE
                elif place + _THREE <= count:
                    b, c = first + places[place + _ONE], first + places[place + _ONE + _ONE]
                    v, w = u + run, u + run + run
                    for at in range(run):
                        total = sums[to + at] + x[a + at] * factors[u + at]
                        total += x[b + at] * factors[v + at]
                        sums[to + at] = total + x[c + at] * factors[w + at]
                    place += _THREE
                else:
                    for at in range(run):
                        sums[to + at] += x[a + at] * factors[u + at]
                    place += _ONE


_F32S, _NUMBER = "float32[::1]", "uint64"
ADD_UP = Compilable(
    add_up,
    f"void({', '.join([_F32S] * 3)}, {_NUMBER}[::1], {', '.join([_NUMBER] * 5)})",
)


def sums_call(terms: str, seen: Array, factors: Array, sums: Array) -> FixedCall:
    """The call that fills sums [row, part, element] from X under each place of a window.

    What is seen is [place.., row, part, element], and its factors are [place.., element].
    """
    if sums.ndim == 3 and is_available():
        return _Sums(terms, seen, factors, sums)
    return partial(np.einsum, terms, seen, factors, out=sums)


class _Sums:
    """Sums by `einsum`, until there is machine code that gives the same bits sooner."""

    def __init__(self, terms: str, seen: Array, factors: Array, sums: Array) -> None:
        self._terms, self._operands = terms, (seen, factors, sums)
        self._by_einsum = partial(np.einsum, terms, seen, factors, out=sums)
        self._run: FixedCall | None = None
        self._is_first, self._is_tried = True, False

    def __call__(self) -> None:
        if self._run is not None:
            self._run()
            return
        start = perf_counter()
        self._by_einsum()
        if self._is_first:  # what runs once gains nothing
            self._is_first = False
        elif ADD_UP.code is None:
            ADD_UP.spend(perf_counter() - start)
        elif not self._is_tried:
            self._is_tried = True
            self._run = self._better()

    def _better(self) -> FixedCall | None:
        """The machine code on the same operands, if it is to be taken."""
        seen, factors, sums = self._operands
        x = np.lib.stride_tricks.as_strided(seen, (reach(seen),), (seen.itemsize,))
        if not x.flags.writeable or not self._gives_same_bits(x.size):
            return None
        call = _compiled_call(x, seen, factors, sums)
        return call if _fastest(call) < _fastest(self._by_einsum) else None

    def _gives_same_bits(self, size: int) -> bool:
        """Whether sums of other values are equal, however they are computed.

        A few sums may be equal in either order by chance, so many are compared.
        """
        seen, factors, sums = self._operands
        random = np.random.default_rng(0)
        made, wanted = np.empty_like(sums), np.empty_like(sums)
        for _ in range(-(-_COMPARED // max(1, sums.size))):
            x = random.standard_normal(size, _F32)
            other = np.lib.stride_tricks.as_strided(x, seen.shape, seen.strides)
            some = random.standard_normal(factors.shape, _F32)
            _compiled_call(x, other, some, made)()
            np.einsum(self._terms, other, some, out=wanted)
            if not np.array_equal(made, wanted):
                return False
        return True


def reach(seen: Array) -> int:
    """How many elements there are from the first that is seen to the last."""
    last = sum((n - 1) * stride for n, stride in zip(seen.shape, seen.strides, strict=True))
    return int(last) // seen.itemsize + 1


def _compiled_call(x: Array, seen: Array, factors: Array, sums: Array) -> FixedCall:
    assert ADD_UP.code is not None
    *within, row, part, _ = [stride // seen.itemsize for stride in seen.strides]
    *window, rows, parts, run = seen.shape
    places = np.array(within) @ np.indices(window).reshape(len(window), -1)
    numbers = map(np.uint64, (rows, row, parts, part, run))
    flat = factors.reshape(-1), sums.reshape(-1)
    return partial(ADD_UP.code, x, *flat, places.astype(np.uint64), *numbers)


def _fastest(call: FixedCall) -> float:
    taken = []
    for _ in range(_TRIALS):
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    return min(taken)
