"""Elements of regions as users write them: `Y`, `Y[0, :, 3:5]`, `Y[2][0, 1]`, `BUF[0:64]`."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import EllipsisType

import numpy as np

from nacre.base.elements import ELEMENT_TYPES, ElementType
from nacre.base.excerpt import backquote
from nacre.kernels.interface.call import Array, TensorType
from nacre.kernels.interface.layouts import Mask
from nacre.kernels.interface.shapes import dense_strides
from nacre.kernels.numbers.quantization import dequantizer
from nacre.nem.run.memory.memory import Storage
from nacre.nem.run.memory.regions import LocatedRegion, Moment, Regions, UnknownNameError
from nacre.nem.run.memory.written import first_unwritten

Item = int | slice | EllipsisType
Index = tuple[slice | int, ...]

REFERENCE = re.compile(r"\s*(?P<name>[^\W0-9]\w*)\s*(?P<groups>(?:\[[^\[\]]*\]\s*){0,2})")
_NUMBER = r"\s*(-?[0-9]{1,19})?\s*"
_SLICE = re.compile(rf"{_NUMBER}(?::|\.\.){_NUMBER}(?::{_NUMBER})?")
_MOST_ITEMS = 64  # axes of an array
_MOST_RUNS = 4  # of bytes in a line


@dataclass(frozen=True, slots=True)
class Reference:
    """A name with the brackets behind it."""

    text: str
    name: str
    groups: tuple[tuple[Item, ...], ...] = ()


def parse_reference(text: str) -> Reference | None:
    """A reference as a user writes it; None where it has another form."""
    match = REFERENCE.fullmatch(text)
    if match is None:
        return None
    groups = re.findall(r"\[([^\[\]]*)\]", match["groups"])
    return Reference(text.strip(), match["name"], tuple(_items(text, group) for group in groups))


def _items(text: str, group: str) -> tuple[Item, ...]:
    parts = group.split(",")
    if len(parts) > _MOST_ITEMS:
        raise UnknownNameError(f"{backquote(text)} names more axes than an array has")
    return tuple(_item(part.strip()) for part in parts)


def _item(part: str) -> Item:
    if re.fullmatch(r"-?[0-9]{1,19}", part):
        return int(part)
    if part == "...":
        return ...
    match = _SLICE.fullmatch(part)
    if match is None:
        raise UnknownNameError(
            f"{backquote(part)} selects nothing; write a number, `from:to`, `:` or `...`"
        )
    bounds = [None if number is None else int(number) for number in match.groups()]
    return slice(bounds[0], bounds[1], bounds[2])


@dataclass(frozen=True, eq=False)
class Selection:
    """Some elements of a region in one iteration: all of them where there is no index."""

    name: str
    located: LocatedRegion
    index: Index = ()

    @property
    def type(self) -> TensorType:
        """The type of the whole region; bytes where it has none."""
        return self.located.type or TensorType(_BYTE, self.located.layout.shape)

    @property
    def elem(self) -> ElementType:
        """The type of an element."""
        return self.type.elem

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is selected."""
        return tuple(
            len(range(*item.indices(dim)))
            for item, dim in zip(self._axes, self.located.layout.shape, strict=True)
            if isinstance(item, slice)
        )

    @property
    def values_count(self) -> int:
        """How many elements are selected."""
        return math.prod(self.shape)

    @property
    def _axes(self) -> Index:
        left = len(self.located.layout.shape) - len(self.index)
        return (*self.index, *[slice(None)] * left)

    def values(self, storage: Storage) -> Array:
        """A copy of the elements as they are stored."""
        whole = self.located.layout.array(storage.data, self.located.offset)
        return np.array(whole[self.index])

    def real_values(self, storage: Storage) -> Array:
        """The real values that quantised elements stand for."""
        if self.type.quant is None:
            raise UnknownNameError(
                f"{backquote(self.located.name)} has no `quant`: its elements are what they say"
            )
        whole = self.located.layout.array(storage.data, self.located.offset)
        return np.asarray(dequantizer(self.type)(whole)[self.index])

    def written_mask(self, storage: Storage) -> Mask:
        """Which of the elements somebody wrote."""
        if not storage.missing:
            return np.ones(self.shape, np.bool_)
        flags = self.located.layout.flags(storage.written, self.located.offset)
        return np.asarray(flags[self.index])

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The bytes of the elements, counted from the start of the buffer."""
        if not self.index:
            return ((self.located.offset, self.located.end),)
        shape = self.located.layout.shape
        strides = self.located.strides or dense_strides(shape)
        numbers = np.zeros((), np.int64)
        for item, dim, stride in zip(self._axes, shape, strides, strict=True):
            steps = np.atleast_1d(np.arange(dim, dtype=np.int64)[item]) * stride
            numbers = np.add.outer(numbers, steps)
        bits = self.elem.bits
        first = np.unique(numbers.reshape(-1) * bits // 8)
        last = first + max(1, bits // 8)
        # Neighbours are one run.
        begins = np.flatnonzero(np.r_[True, first[1:] > last[:-1]])
        ends = np.r_[begins[1:] - 1, first.size - 1]
        at = self.located.offset
        return tuple(
            (at + int(first[low]), at + int(last[high]))
            for low, high in zip(begins, ends, strict=True)
        )

    def overlaps(self, low: int, high: int) -> bool:
        """Whether bytes of the buffer are among those of the elements."""
        first = bisect_right(self.runs, low, key=lambda run: run[1])
        return first < len(self.runs) and self.runs[first][0] < high

    @property
    def bytes_text(self) -> str:
        """`Y_L1[64:128]`, or the first few of several runs of bytes."""
        listed = [f"{low}:{high}" for low, high in islice(self.runs, _MOST_RUNS)]
        more = len(self.runs) - _MOST_RUNS
        text = ", ".join(listed) + (f" and {more} more runs" if more > 0 else "")
        return f"{self.located.buffer.name}[{text}]"

    @property
    def iteration_text(self) -> str:
        """`` at i=1``; empty outside loops."""
        pairs = [f"{name}={value}" for name, value in self.located.iteration]
        return f" at {', '.join(pairs)}" if pairs else ""

    def first_unwritten(self, storage: Storage) -> tuple[int, int] | None:
        """The first run of bytes of the elements that nobody wrote."""
        if not self.index:
            return first_unwritten(self.located.layout, storage, self.located.offset)
        gaps = (storage.first_gap(low, high) for low, high in self.runs)
        return next((gap for gap in gaps if gap is not None), None)


_BYTE = ELEMENT_TYPES["u8"]


def select(
    reference: Reference, regions: Regions, moment: Moment | None = None, *, one: bool = False
) -> Selection:
    """What a reference means; with `one`, brackets that can name one element do.

    A first pair of brackets with as many numbers as there are loops around the region is the
    iteration; everything else selects elements.
    """
    name, groups = reference.name, reference.groups
    if groups and name not in regions.named and name in regions.buffers:
        return _select_bytes(reference, regions)
    located, rest = regions.locate(name, moment), groups
    loops = len(located.iteration) if name in regions.named else 0
    if groups and _is_iteration(groups, loops, len(located.layout.shape), one):
        iteration = ", ".join(str(item) for item in groups[0])
        located, rest = regions.locate(f"{name}[{iteration}]", moment), groups[1:]
    if len(rest) > 1:
        raise UnknownNameError(f"{backquote(reference.text)} has more brackets than it can have")
    if not rest:
        return Selection(reference.text, located)
    return Selection(reference.text, located, _index(rest[0], located))


def _is_iteration(groups: tuple[tuple[Item, ...], ...], loops: int, axes: int, one: bool) -> bool:
    first = groups[0]
    if loops == 0 or not all(isinstance(item, int) for item in first):
        return False
    if len(groups) == 2:
        return True
    return len(first) == loops and not (one and len(first) == axes)


def _select_bytes(reference: Reference, regions: Regions) -> Selection:
    item = reference.groups[0][0]
    if len(reference.groups) > 1 or len(reference.groups[0]) > 1 or item is ...:
        raise UnknownNameError(
            f"{backquote(reference.text)}: `{reference.name}` is a buffer, a row of bytes"
        )
    whole = regions.locate(reference.name)
    try:
        index = _index((item,), whole)
    except UnknownNameError:
        raise UnknownNameError(
            f"`{reference.text}` is no part of `{whole.name}`, which has {whole.extent} bytes"
        ) from None
    low, high = Selection("", whole, index).runs[0]
    if isinstance(item, slice) and item.step not in (None, 1):
        return Selection(reference.text, whole, index)
    part = regions.locate(f"{reference.name}[{low}:{high}]")
    return Selection(reference.text, part, (0,) if isinstance(item, int) else ())


def _index(items: tuple[Item, ...], located: LocatedRegion) -> Index:
    """An index that lies inside the region: NumPy would cut what reaches out without a word."""
    shape = located.layout.shape
    if items.count(...) > 1:
        raise UnknownNameError("`...` may stand once in an index")
    if ... in items:
        at = items.index(...)
        rest = len(shape) - len(items) + 1
        items = (*items[:at], *[slice(None)] * rest, *items[at + 1 :])
    if len(items) > len(shape):
        raise UnknownNameError(
            f"`{located.name}` has shape {list(shape)}, which {len(items)} indices do not fit"
        )
    index: list[slice | int] = []
    for axis, (item, dim) in enumerate(zip(items, shape, strict=False)):
        bounds = (item,) if isinstance(item, int) else (item.start, item.stop)  # type: ignore[union-attr]
        most = dim - 1 if isinstance(item, int) else dim
        if any(bound is not None and not -dim <= bound <= most for bound in bounds):
            raise UnknownNameError(
                f"axis {axis} of `{located.name}` has {dim} elements, found {_item_text(item)}"
            )
        if isinstance(item, slice) and (item.step == 0 or not range(*item.indices(dim))):
            raise UnknownNameError(f"{_item_text(item)} selects nothing on axis {axis}")
        index.append(item)  # type: ignore[arg-type]
    return tuple(index)


def _item_text(item: Item) -> str:
    if isinstance(item, slice):
        parts = (item.start, item.stop, *(() if item.step is None else (item.step,)))
        return f"`{':'.join('' if part is None else str(part) for part in parts)}`"
    return f"`{item}`"
