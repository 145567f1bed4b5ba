"""f16 as f32 and back, many elements at a time.

NumPy converts one element after another, and computes with f16 by converting every operand and
every result. Where the extra `fast` is installed and that takes long, loops over the bits do the
same for many at once. They are taken where they give the same bits, NaN and infinities too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.loops.machine_code import Compilable, is_available
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.scratch import scratch

Float32 = npt.NDArray[np.float32]

_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)
_FEWEST = 512  # elements that are worth a call of machine code

# The loops, in the types in which they are compiled. A part of the elements goes through memory
# that is read as floats and as bits in turns, which a loop that does both could not do for many.
_ROOM = 1024
_AT_A_TIME, _NOWHERE = np.uint64(_ROOM), np.uint64(0)
_13, _16, _ODD = np.uint32(13), np.uint32(16), np.uint32(1)
_NONE, _INFINITY, _ALL_BUT_SIGN = np.uint32(0), np.uint32(0x7C00), np.uint32(0x7FFF)
_SIGN, _BITS, _FRACTION = np.uint32(0x8000), np.uint32(0x7FFFFFFF), np.uint32(0x7FFFFF)
# Exponents are counted from 15 in f16 and from 127 in f32.
_UP, _UP_SPECIAL, _UP_SMALL = (np.uint32(n << 23) for n in (112, 224, 113))
_DOWN_AND_HALF = np.uint32((-112 << 23) % (1 << 32) + 0xFFF)
_LEAST_NORMAL, _BEYOND, _SPECIAL = (np.uint32(n << 23) for n in (113, 143, 255))
_SMALLEST = np.float32(2.0**-14)
_HALF, _HALF_BITS = np.float32(0.5), np.uint32(126 << 23)  # its last digit is the least f16


def fill_wide(
    halves: npt.NDArray[np.uint16], floats: Float32, bits: npt.NDArray[np.uint32]
) -> None:
    """Every f16 as f32; `floats` and `bits` are the same memory."""
    count = np.uint64(len(halves))
    start = _NOWHERE
    while start < count:
        size = min(_AT_A_TIME, count - start)
        for at in range(size):
            half = np.uint32(halves[start + at])
            moved = (half & _ALL_BUT_SIGN) << _13
            exponent = half & _INFINITY
            made = moved + _UP
            made = moved + _UP_SPECIAL if exponent == _INFINITY else made
            bits[start + at] = moved + _UP_SMALL if exponent == _NONE else made
        for at in range(size):
            is_small = (np.uint32(halves[start + at]) & _INFINITY) == _NONE
            value = floats[start + at]
            floats[start + at] = value - _SMALLEST if is_small else value
        for at in range(size):
            bits[start + at] |= (np.uint32(halves[start + at]) & _SIGN) << _16
        start += size


def fill_narrow(
    floats: Float32, bits: npt.NDArray[np.uint32], halves: npt.NDArray[np.uint16],
    held: Float32, held_bits: npt.NDArray[np.uint32],
) -> None:  # fmt: skip
    """Every f32 as the nearest f16, the even one of two; `floats` and `bits` are the same memory.

    So are `held` and `held_bits`, in which a sum with a half rounds what is below all normal f16.
    """
    count = np.uint64(len(floats))
    start = _NOWHERE
    while start < count:
        size = min(_AT_A_TIME, count - start)
        for at in range(size):
            held[at] = abs(floats[start + at]) + _HALF
        for at in range(size):
            given = bits[start + at]
            size_bits = given & _BITS
            made = np.uint32(size_bits + _DOWN_AND_HALF + ((size_bits >> _13) & _ODD)) >> _13
            made = held_bits[at] - _HALF_BITS if size_bits < _LEAST_NORMAL else made
            made = _INFINITY if size_bits >= _BEYOND else made
            nan = _INFINITY + ((size_bits & _FRACTION) >> _13)
            nan = _INFINITY + _ODD if nan == _INFINITY else nan
            made = nan if size_bits > _SPECIAL else made
            halves[start + at] = np.uint16(made | ((given >> _16) & _SIGN))
        start += size


_SINGLE, _WORDS, _HALVES = "float32[::1]", "uint32[::1]", "uint16[::1]"
WIDE = Compilable(fill_wide, f"void({_HALVES}, {_SINGLE}, {_WORDS})")
NARROW = Compilable(fill_narrow, f"void({_SINGLE}, {_WORDS}, {_HALVES}, {_SINGLE}, {_WORDS})")


def widen_halves(values: Array) -> Float32:
    """f16 as f32; exact."""
    if values.size < _FEWEST or not is_available():
        return _widen_by_table(values)
    if WIDE.code is not None and _is_wide_loop_better():
        return _widen_by_loop(values)
    start = perf_counter()
    made = _widen_by_table(values)
    if WIDE.code is None:
        WIDE.spend(perf_counter() - start)
    return made


def store_halves(reals: Float32, out: Array) -> None:
    """f32 into f16 of the same shape, each rounded once."""
    if out.size < _FEWEST or not is_available():
        out[...] = reals
    elif NARROW.code is not None and _is_narrow_loop_better():
        _narrow_by_loop(reals, out)
    else:
        start = perf_counter()
        out[...] = reals
        if NARROW.code is None:
            NARROW.spend(perf_counter() - start)


def store_floats(reals: Array, out: Array) -> None:
    """An array of floats into another of the same shape."""
    if out.dtype == _F16 and reals.dtype == _F32 and reals.shape == out.shape:
        store_halves(reals, out)
    else:
        out[...] = reals


def narrow_floats(reals: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as another type, each rounded once; the same array where it has that type."""
    if reals.dtype != _F32 or dtype != _F16:
        return reals.astype(dtype, copy=False)
    made = np.empty(reals.shape, _F16)
    store_halves(reals, made)
    return made


def in_f32(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of two arrays of f16 by way of f32, as NumPy's own goes for every element."""

    def compute(a: Array, b: Array, out: Array) -> Array:
        if out.size < _FEWEST or not is_available():
            return function(a, b, out=out)
        wide = widen_halves(a)
        function(wide, widen_halves(b), out=wide)
        store_halves(wide, out)
        return out

    return compute


@cache
def every_f16() -> Float32:
    """Every f16 as f32, by its bits."""
    with np.errstate(invalid="ignore"):  # some processors raise it for NaNs that signal
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _widen_by_table(values: Array) -> Float32:
    # Looking halves up takes less time than NumPy's conversion.
    return every_f16().take(values.view(np.uint16), mode="clip")


def _dense(values: Array) -> Array:
    return values if values.flags.carray else np.array(values, order="C")


def _widen_by_loop(values: Array) -> Float32:
    loop: Any = WIDE.code
    made = np.empty(values.shape, _F32)
    flat = made.reshape(-1)
    loop(_dense(values).reshape(-1).view(np.uint16), flat, flat.view(np.uint32))
    return made


def _narrow_by_loop(reals: Float32, out: Array) -> None:
    loop: Any = NARROW.code
    given = _dense(reals).reshape(-1)
    to = out if out.flags.carray else scratch("halves", out.shape, _F16)
    held = scratch("narrow", (_ROOM,), _F32)
    halves = to.reshape(-1).view(np.uint16)
    loop(given, given.view(np.uint32), halves, held, held.view(np.uint32))
    if to is not out:
        out[...] = to


@cache
def _is_wide_loop_better() -> bool:
    """Whether machine code gives the same f32 for every f16, and sooner than the table."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(_F16)
    return _is_better(lambda: _widen_by_loop(halves), lambda: _widen_by_table(halves))


@cache
def _is_narrow_loop_better() -> bool:
    """Whether machine code rounds as NumPy does, and sooner."""
    random = np.random.default_rng(0)
    near = every_f16()[:, None].repeat(4, axis=1)  # halves, halfway and a digit beside it
    moved = near.view(np.uint32) + np.array([0, 0xFFF, 0x1000, 0x1001], np.uint32)
    drawn = random.integers(0, 1 << 32, 1 << 16, np.uint64).astype(np.uint32)
    reals = np.concatenate([moved.reshape(-1), drawn]).view(_F32)
    made = np.empty(reals.shape, _F16)

    def by_loop() -> Array:
        _narrow_by_loop(reals, made)
        return made

    def by_numpy() -> Array:
        with np.errstate(all="ignore"):
            return reals.astype(_F16)

    return _is_better(by_loop, by_numpy)


def _is_better(by_loop: Callable[[], Array], by_numpy: Callable[[], Array]) -> bool:
    taken = []
    results = []
    for compute in (by_loop, by_numpy, by_loop):
        start = perf_counter()
        results.append(compute().tobytes())
        taken.append(perf_counter() - start)
    return results[0] == results[1] and taken[2] < taken[1]
