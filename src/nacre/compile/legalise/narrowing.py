"""Constants in a narrower type of floats: what is lost of them, and what must not be lost.

A small number that is added, or that bounds from below, keeps what follows from dividing by 0:
where a type has only 0 for it, the least number that the type has takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nacre.base.elements import ElementType
from nacre.core.module import Module
from nacre.core.values import Array
from nacre.kernels.interface.runs import quietly
from nacre.kernels.numbers.halves import narrow_floats

_KEEPING = frozenset({"Add", "Max"})  # of `BinOp`
_BIASED = frozenset({"Linear", "Conv"})


@dataclass(frozen=True, eq=False)
class NarrowedElements:
    """Elements in their new type, and how many of them are others."""

    array: Array
    beyond: int = 0
    lost: int = 0  # 0 now
    least: int = 0  # would be 0, and are the least number

    def notes(self, constant_name: str, element: ElementType) -> Iterator[str]:
        """What is to be said about a constant, which is called so."""
        name = element.name
        if self.beyond:
            what, is_, they = _count_words(self.beyond)
            lie = "lie" if self.beyond > 1 else "lies"
            yield (
                f"{what} of constant {constant_name} {lie} beyond {name}; "
                f"{they} {is_} held at {element.highest:g}"
            )
        if self.lost:
            what, is_, _ = _count_words(self.lost)
            yield f"{what} of constant {constant_name} {is_} 0 in {name}"
        if self.least:
            what, is_, they = _count_words(self.least)
            yield (
                f"{what} of constant {constant_name} {is_} too small for {name}; "
                f"{they} {is_} held at {_least(element):.2g}"
            )


def _count_words(count: int) -> tuple[str, str, str]:
    return (f"{count} elements", "are", "they") if count > 1 else ("1 element", "is", "it")


def narrow(array: Array, element: ElementType, *, keeps_nonzero: bool) -> NarrowedElements:
    """Elements in another type, moved inside its range where they lie beyond.

    Infinities stay. Where they keep something from 0, no element becomes 0 that is not.
    """
    low, high = element.lowest, element.highest
    held, beyond = array, 0
    with np.errstate(invalid="ignore", over="ignore"):  # of ends that a narrower array cannot hold
        if array.size and not (array.min() >= low and array.max() <= high):  # or is NaN
            outside = np.isfinite(array) & ((array < low) | (array > high))
            beyond = int(outside.sum())
            held = np.where(outside, np.clip(array, low, high), array) if beyond else array
    narrowed = held.astype(element.dtype)
    if element.kind != "float":
        return NarrowedElements(narrowed, beyond)
    # What is 0 stays 0, so that others are told by counting.
    count = int(np.count_nonzero(array)) - int(np.count_nonzero(narrowed))
    if count and keeps_nonzero:
        least = np.copysign(_least(element), array.astype(np.float64))
        small = (array != 0) & (narrowed == 0)
        narrowed = np.where(small, least, narrowed).astype(element.dtype)
        return NarrowedElements(narrowed, beyond, 0, count)
    return NarrowedElements(narrowed, beyond, count)


def store_floats(array: Array, element: ElementType) -> Array:
    """An array as an element type that may be narrower: what is finite stays finite.

    A model hides with -1e9, which as minus infinity would mean something else.
    """
    stored: Array = quietly(narrow_floats, array, element.dtype)
    if element.kind != "float" or stored.dtype.itemsize >= array.dtype.itemsize:
        return stored
    overflown = np.isinf(stored)
    if not overflown.any():
        return stored
    overflown &= np.isfinite(array)
    stored[overflown] = np.copysign(element.largest_finite, array[overflown])
    return stored


def narrow_bound(number: float, element: ElementType) -> float:
    """A bound of a clip in another type: inside its range, and no 0 that is none."""
    held = min(max(number, element.lowest), element.highest)
    if held and not element.dtype.type(held):
        return float(np.copysign(_least(element), held))
    return float(held)


def guarding_constants(module: Module) -> frozenset[int]:
    """Constants that are added to something, also to a product, or bound it from below."""
    constants: set[int] = set()
    for op in module.operations:
        if op.opcode == "BinOp" and op.attributes["op"] in _KEEPING:
            constants.update(op.operands)
        elif op.opcode in _BIASED:
            constants.update(op.operands[2:])
    return frozenset(constants)


def _least(element: ElementType) -> float:
    """The least number above 0."""
    return float(np.nextafter(element.dtype.type(0), element.dtype.type(1)))
