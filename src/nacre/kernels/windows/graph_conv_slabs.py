"""Images with channels last in slabs: the padded rows that a block of rows of windows sees."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import NamedTuple

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.fixed import FixedCall, Scratch
from nacre.kernels.interface.scratch import aligned_bytes
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.windows.graph_conv_parts import inside_part, progressions
from nacre.kernels.windows.sliding import Sliding

_F32 = np.dtype(np.float32)
_FEW = 8  # channels that are copied one after the other, for their runs are longer so

_SMALL = 1 << 14  # elements of a slab that is kept for one use

Index = tuple[slice, ...]
# The windows of an image that a block sees, when what is given out before has been called.
See = Callable[[Array, "Block"], Generator[FixedCall, None, Array]]


class Block(NamedTuple):
    """Some rows of windows, and what they see."""

    rows: slice
    inside: slice  # rows of a slab that are rows of X; the others are padding
    seen: slice  # those rows of X


@dataclass(frozen=True, eq=False)
class Slabs:
    """Blocks of so many rows of windows, and the memory that each sees."""

    sliding: Sliding
    rows: int
    channels: int  # of X
    wide: int  # of a slab: each channel of X as often as it has windows

    @cached_property
    def height(self) -> int:
        """The rows of a slab."""
        return self._height(self.rows)

    def _height(self, rows: int) -> int:
        axis = self.sliding.axes[0]
        return (rows - 1) * axis.stride + axis.dilation * (axis.window - 1) + 1

    @cached_property
    def shape(self) -> Dims:
        """The shape of a slab."""
        return (self.height, *self.sliding.padded[1:], self.wide)

    @cached_property
    def blocks(self) -> list[Block]:
        """All rows of windows."""
        axis, found = self.sliding.axes[0], []
        for start in range(0, axis.count, self.rows):
            rows = slice(start, min(start + self.rows, axis.count))
            top, height = start * axis.stride - axis.begin, self._height(rows.stop - start)
            first = min(max(0, -top), height)
            last = max(first, min(height, axis.size - top))
            found.append(Block(rows, slice(first, last), slice(top + first, top + last)))
        return found

    def new_slab(self, room: Scratch) -> Array:
        """Memory for a slab."""
        if not self._is_small:
            return room("padded", self.shape, _F32)
        slab = np.ndarray(self.shape, _F32, aligned_bytes(prod(self.shape) * _F32.itemsize))
        slab.fill(0)
        return slab

    @cached_property
    def steps(self) -> tuple[Dims, Dims]:
        """In elements: from window to window, and within a window, along each axis."""
        each = [prod(self.shape[at + 1 :]) for at in range(len(self.sliding.axes))]
        pairs = list(zip(each, self.sliding.axes, strict=True))
        return tuple(n * a.stride for n, a in pairs), tuple(n * a.dilation for n, a in pairs)

    def seen(self, shape: Dims, steps: Dims, at: int, room: Scratch) -> See:
        """How windows of a block are seen: under a shape, of which one axis has the rows.

        They are those of the image itself where it is dense and nothing is padded.
        """
        strides = [step * _F32.itemsize for step in steps]
        before, pitch = (slice(None),) * at, prod(self.shape[1:]) * _F32.itemsize
        is_plain = not self.sliding.is_padded and self.wide == self.channels
        slab: list[Array] = []  # one for all blocks

        def see(image: Array, block: Block) -> Generator[FixedCall, None, Array]:
            count = block.rows.stop - block.rows.start
            if is_plain and image.flags.c_contiguous and image.flags.aligned:
                some, start = (*shape[:at], count, *shape[at + 1 :]), block.seen.start * pitch
                return np.ndarray(some, _F32, image, offset=start, strides=strides)
            if not slab:
                slab.append(self.new_slab(room))
            yield from self.put(image, slab[0], block)
            windows = np.ndarray(shape, _F32, slab[0], strides=strides)
            return windows[(*before, slice(0, count))]

        return see

    @cached_property
    def _is_small(self) -> bool:
        """Whether a slab may have memory of its own, whose padding stays zero."""
        return prod(self.shape) <= _SMALL and len(self.blocks) == 1

    @cached_property
    def _inner(self) -> Index:
        """Where the elements of X stand in a row of a slab."""
        return tuple(slice(a.begin, a.begin + a.size) for a in self.sliding.axes[1:])

    @cached_property
    def _borders(self) -> list[Index]:
        """Where padding stands in the rows of a slab."""
        found = []
        for at, axis in enumerate(self.sliding.axes[1:], 1):
            before = (slice(None),) * at
            if axis.begin:
                found.append((*before, slice(0, axis.begin)))
            if axis.end:
                found.append((*before, slice(axis.begin + axis.size, None)))
        return found

    def put(self, image: Array, slab: Array, block: Block) -> Iterator[FixedCall]:
        """Fill a slab with what a block sees of an image."""
        if not self._is_small:
            yield from self._clear(slab, block, self._borders)
        yield from self._copy(slab[(block.inside, *self._inner)], image[block.seen])

    def _clear(self, slab: Array, block: Block, borders: Sequence[Index]) -> Iterator[FixedCall]:
        """Zeros where padding stands."""
        for border in borders:
            yield partial(slab[border].fill, 0)
        if block.inside.start:
            yield partial(slab[: block.inside.start].fill, 0)
        if block.inside.stop < self.height:
            yield partial(slab[block.inside.stop :].fill, 0)

    def _copy(self, target: Array, source: Array) -> Iterator[FixedCall]:
        if self.wide == self.channels:
            yield from copies(target, source)
        else:
            each = target.reshape(*target.shape[:-1], self.channels, self.wide // self.channels)
            yield partial(np.copyto, each, source[..., None])


@dataclass(frozen=True, eq=False)
class StridedSlabs(Slabs):
    """Slabs whose rows are taken apart by the strides of windows along the last axis.

    Element t of part r is element r + t * stride: under one place of a window the elements of all
    windows of a row then follow each other.
    """

    @cached_property
    def places(self) -> list[range]:
        """The places of a window that fall on each part."""
        return progressions(self.sliding.axes[-1])

    def shift(self, part: int) -> tuple[int, int]:
        """From where on the first place of a part sees it, and how far the next is."""
        axis, taken = self.sliding.axes[-1], self.places[part]
        return taken.start * axis.dilation // axis.stride, taken.step * axis.dilation // axis.stride

    @cached_property
    def width(self) -> int:
        """Of a part."""
        axis = self.sliding.axes[-1]
        return axis.count + axis.dilation * (axis.window - 1) // axis.stride

    @cached_property
    def shape(self) -> Dims:
        """The shape of a slab: [row, spatial.., part, element, channel]."""
        return (self.height, *self.sliding.padded[1:-1], len(self.places), self.width, self.wide)

    def put(self, image: Array, slab: Array, block: Block) -> Iterator[FixedCall]:
        """Fill a slab with what a block sees of an image."""
        axis, seen = self.sliding.axes[-1], image[block.seen]
        if not self._is_small:
            yield from self._clear(slab, block, self._borders[: self._outer])
        for part, taken in enumerate(self.places):
            rest = taken.start * axis.dilation % axis.stride
            target, source = inside_part(axis, rest, self.width)
            place: tuple[slice | int, ...] = (block.inside, *self._inner[:-1], part)
            room = slab[place]
            if not self._is_small:
                yield partial(room[..., : target.start, :].fill, 0)
                yield partial(room[..., target.stop :, :].fill, 0)
            yield from self._copy(room[..., target, :], seen[..., source, :])

    @cached_property
    def _outer(self) -> int:
        """Borders of other axes than the last."""
        return sum((axis.begin > 0) + (axis.end > 0) for axis in self.sliding.axes[1:-1])


def copies(target: Array, x: Array) -> Iterator[FixedCall]:
    """Copy X, whose channels are last but may lie apart."""
    channels = x.shape[-1]
    if channels >= _FEW or x.strides[-1] == x.itemsize:
        yield partial(np.copyto, target, x)
        return
    for at in range(channels):
        yield partial(np.copyto, target[..., at], x[..., at])
