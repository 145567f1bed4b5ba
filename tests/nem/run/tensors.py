"""Tensors somewhere in a buffer, and their elements found one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.layouts import Layout, layout

SIZE = 4096


@dataclass(frozen=True)
class Case:
    """A tensor somewhere in a buffer."""

    elem: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    offset: int

    @property
    def layout(self) -> Layout:
        return layout(ELEMENT_TYPES[self.elem], self.shape, self.strides)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def indices(self) -> list[tuple[int, ...]]:
        return list(product(*map(range, self.shape)))

    def number(self, index: tuple[int, ...]) -> int:
        """How many elements lie before one, counted along the strides."""
        strides = self.strides
        if strides is None:
            dense = [int(np.prod(self.shape[axis + 1 :])) for axis in range(len(self.shape))]
            strides = tuple(dense)
        return sum(i * s for i, s in zip(index, strides, strict=True))

    def bytes_of(self, index: tuple[int, ...]) -> list[int]:
        number, bits = self.number(index), ELEMENT_TYPES[self.elem].bits
        if bits == 4:
            return [self.offset + number // 2]
        size = bits // 8
        return list(range(self.offset + number * size, self.offset + (number + 1) * size))

    @property
    def touched(self) -> list[int]:
        return sorted({byte for index in self.indices for byte in self.bytes_of(index)})

    def stored(self, index: tuple[int, ...], data: bytes) -> bytes:
        """An element as memory holds it; a nibble sign-extended to a byte."""
        raw = bytes(data[byte] for byte in self.bytes_of(index))
        if self.elem != "i4":
            return raw
        nibble = raw[0] >> 4 if self.number(index) % 2 else raw[0] & 15
        return bytes([nibble | (0xF0 if nibble > 7 else 0)])


@st.composite
def cases(draw: st.DrawFn, elems: tuple[str, ...] = tuple(ELEMENT_TYPES)) -> Case:
    """Dense and strided tensors in which no two elements share a place."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    strides = None
    if draw(st.booleans()):
        strides = spread(draw, shape)
    return Case(draw(st.sampled_from(elems)), shape, strides, draw(st.integers(0, 7)))


def spread(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in any order of the axes, with gaps or without."""
    found, step = [0] * len(shape), draw(st.sampled_from([1, 1, 2, 3]))
    for axis in draw(st.permutations(range(len(shape)))):
        found[axis] = step
        step = step * shape[axis] + draw(st.sampled_from([0, 0, 1, 2]))
    return tuple(found)


def some_bytes(seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, SIZE, np.uint8)


def some_flags(seed: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.random.default_rng(seed).integers(0, 4, SIZE) > 0


def values_for(case: Case, seed: int) -> Array:
    """Any values of the type, NaNs with payloads included."""
    rng = np.random.default_rng(seed)
    if case.elem == "i4":
        return rng.integers(-8, 8, case.shape).astype(np.int8)
    dtype = ELEMENT_TYPES[case.elem].dtype
    raw = rng.integers(0, 256, (*case.shape, dtype.itemsize), np.uint8)
    return np.ascontiguousarray(raw).view(dtype)[..., 0]
