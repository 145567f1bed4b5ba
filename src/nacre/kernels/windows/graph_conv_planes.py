"""Each channel convolved by itself, channels first: products with the columns of its own plane.

Along the first axis nothing is copied over and over. A band of some rows of the result is one
product: of the rows of X that any of them sees, each with the places of a window along the other
axes, by weights that are zero where a row of the result does not see a row of X. A zero times an
infinity would be NaN, so what is not finite is computed again from whole windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.graph_products import Factors, dense
from nacre.kernels.windows.graph_conv_parts import Parts, take_apart
from nacre.kernels.windows.sliding import Axis, Sliding

Convolve = Callable[[Factors, Array, Array | None], None]  # operands, sums, bias

# Of the columns of some channels: they are written and read once, and should stay in the cache.
# Fewer where X itself is small: columns are not to take a multiple of all else.
_PLANE_BYTES, _FEW_BYTES = 1 << 19, 3 << 17
_BAND_ROWS = 6  # of X, from the first window of a band to the last: more make mostly zeros
_FURTHEST = 16  # rows that a window may reach over and still be cut from a band
_ONE_ROW = Axis(size=1, window=1, begin=0, end=0, stride=1, dilation=1)


@dataclass(frozen=True)
class _Band:
    """Some rows of the result, and the rows of X that they see."""

    first: int
    count: int
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """In the result."""
        return slice(self.first, self.first + self.count)


def _bands(axis: Axis) -> list[_Band]:
    """The rows of the result in bands of equal height, as far as that goes."""
    most = min(axis.count, _BAND_ROWS // axis.stride + 1)
    height = -(-axis.count // -(-axis.count // most))
    found = []
    for first in range(0, axis.count, height):
        count = min(height, axis.count - first)
        start = first * axis.stride - axis.begin
        stop = start + (count - 1) * axis.stride + axis.dilation * (axis.window - 1) + 1
        start = min(max(start, 0), axis.size - 1)  # one row at least, if only to be weighed by zero
        found.append(_Band(first, count, start, max(min(stop, axis.size), start + 1)))
    return found


class _Block(NamedTuple):
    """Channels and bands that are computed together."""

    some: slice  # channels
    few: range  # bands
    seen: slice  # rows of X
    room: Dims  # the shape of their columns


class _SeparatedPlanes(NamedTuple):
    """Planes taken apart, from one of them on; a channel has so many."""

    parts: Array  # [part, plane, size]
    first: int
    height: int


@dataclass(frozen=True)
class _Planes:
    """A convolution of so many channels, each with its own `outputs / channels` windows."""

    rows: Axis
    parts: Parts  # along the other axes
    batch: int
    channels: int
    multiplier: int
    itemsize: int  # of an element
    bands: Sequence[_Band]

    @cached_property
    def places(self) -> int:
        """Of a window, along the other axes."""
        return len(self.parts.order)

    def weights(self, given: Array) -> list[Array]:
        """For every band [channels, rows of the result, rows of X by places]; like ones are one."""
        axis = self.rows
        shape = (self.channels, self.multiplier, axis.window, self.places)
        windows = given.reshape(shape)[..., list(self.parts.order)]
        known: dict[tuple[int, int, int], Array] = {}
        for band in self.bands:
            key = self._weights_key(band)
            if key in known:
                continue
            height = band.stop - band.start
            made = np.zeros((*shape[:2], band.count, height, self.places), given.dtype)
            for row, place in product(range(band.count), range(axis.window)):
                seen = row * axis.stride + place * axis.dilation - key[0]
                if 0 <= seen < height:
                    made[:, :, row, seen] = windows[:, :, place]
            known[key] = made.reshape(self.channels, self.multiplier * band.count, -1)
        return [known[self._weights_key(band)] for band in self.bands]

    def _weights_key(self, band: _Band) -> tuple[int, int, int]:
        """What the weights of a band depend on."""
        above = band.start - band.first * self.rows.stride + self.rows.begin
        return above, band.stop - band.start, band.count

    def run(self, x: Array, weights: Sequence[Array], sums: Array, bias: Array | None) -> None:
        """Fill the sums of products."""
        planes, y = x.reshape(self._x_shape), sums.reshape(self._result_shape)
        for block in self.blocks:
            bands = [(self.bands[at], weights[at][block.some]) for at in block.few]
            columns = scratch("columns", block.room, x.dtype)
            for image in range(self.batch):
                seen = self._take_apart(planes, image, block)
                self._multiply(seen, columns, bands, y[image, block.some])
        if bias is not None:
            channels = sums.reshape(self.batch, bias.size, -1)
            np.add(channels, bias.reshape(-1, 1), out=channels)

    @cached_property
    def _x_shape(self) -> Dims:
        """The shape of X: [image, channel, row, ..]."""
        sizes = (axis.size for axis in self.parts.sliding.axes)
        return (self.batch, self.channels, self.rows.size, *sizes)

    @cached_property
    def _result_shape(self) -> Dims:
        """The shape of the result: [image, channel, window of it, row, ..]."""
        counts = self.rows.count, *self.parts.sliding.counts
        return (self.batch, self.channels, self.multiplier, *counts)

    @cached_property
    def _inner(self) -> Dims:
        """The shape of a row of sums, with what stands between the rows of other axes."""
        return (self.parts.sliding.counts[0], *self.parts.size[1:])

    @cached_property
    def _is_direct(self) -> bool:
        """Whether products lie as the result does."""
        is_whole = self.width == self.parts.length and self._inner == self.parts.sliding.counts
        return self.multiplier == 1 and is_whole

    def _take_apart(self, planes: Array, image: int, block: _Block) -> _SeparatedPlanes:
        """What a block sees of an image, in the parts that windows are read from."""
        some, seen = block.some, block.seen
        if not self.parts.are_whole:
            return _SeparatedPlanes(
                self.parts.of(planes[image, some, seen]), 0, seen.stop - seen.start
            )
        first = (image * self.channels + some.start) * self.rows.size + seen.start
        return _SeparatedPlanes(
            dense(planes).reshape(1, -1, prod(planes.shape[3:])), first, self.rows.size
        )

    @cached_property
    def width(self) -> int:
        """Of the runs that are computed at a time."""
        return min(self.parts.length, max(1, self._most_bytes // (self.places * self.itemsize)))

    @cached_property
    def _most_bytes(self) -> int:
        """Of the columns of a block."""
        image = prod(self._x_shape[1:]) * self.itemsize
        return min(_PLANE_BYTES, max(_FEW_BYTES, image))

    @cached_property
    def blocks(self) -> list[_Block]:
        """What is computed together: the columns of a block stay in the cache."""
        rows = max(1, self._most_bytes // (self.width * self.places * self.itemsize))
        found, start = [], 0
        while start < len(self.bands):
            stop, top = start + 1, self.bands[start].start
            while stop < len(self.bands) and self.bands[stop].stop - top <= rows:
                stop += 1
            most = max(1, rows // (self.bands[stop - 1].stop - top))
            step = -(-self.channels // -(-self.channels // most))  # blocks of equal size
            seen = slice(top, self.bands[stop - 1].stop)
            for first in range(0, self.channels, step):
                some = slice(first, min(first + step, self.channels))
                room = (some.stop - first, seen.stop - top, self.places, self.width)
                found.append(_Block(some, range(start, stop), seen, room))
            start = stop
        return found

    def _multiply(
        self,
        planes: _SeparatedPlanes,
        columns: Array,
        bands: Sequence[tuple[_Band, Array]],
        target: Array,
    ) -> None:
        """The bands of some channels of an image."""
        count, length = len(columns), self.parts.length
        start, width = bands[0][0].start, columns.shape[-1]
        if self._is_direct:  # in one piece
            self.parts.gather(planes.parts, planes.first, planes.height, 0, columns)
            for band, weights in bands:
                seen = columns[:, band.start - start : band.stop - start]
                room = target[:, 0, band.rows].reshape(count, band.count, length)
                np.matmul(weights, seen.reshape(count, -1, length), out=room)
            return
        inner = self._inner
        rooms = [
            np.empty((count, self.multiplier * band.count, prod(inner)), target.dtype)
            for band, _ in bands
        ]
        for at in range(0, length, width):
            stop = min(at + width, length)
            taken = columns[..., : stop - at]
            self.parts.gather(planes.parts, planes.first, planes.height, at, taken)
            for (band, weights), room in zip(bands, rooms, strict=True):
                seen = taken[:, band.start - start : band.stop - start]
                shape = (count, weights.shape[-1], stop - at)
                np.matmul(weights, seen.reshape(shape), out=room[:, :, at:stop])
        whole: tuple[Any, ...] = (..., *map(slice, self.parts.sliding.counts))
        for (band, _), room in zip(bands, rooms, strict=True):
            shaped = room.reshape(count, self.multiplier, band.count, *inner)
            target[:, :, band.rows] = shaped[whole]


def convolve_planes(
    sliding: Sliding,
    batch: int,
    channels: int,
    outputs: int,
    dtype: np.dtype[Any],
    known: Array | None,
) -> Convolve:
    """The convolution of so many channels in a type; its weights may be known ahead."""
    numbers = batch, channels, outputs // channels, dtype.itemsize
    whole = _Planes(_ONE_ROW, take_apart(sliding), *numbers, _bands(_ONE_ROW))
    banded = _in_bands(sliding, *numbers)
    ready = None if known is None else _prepare(known, banded, whole)

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        way, weights = ready or _prepare(factors.b, banded, whole)
        way.run(factors.a, weights, sums, bias)
        if way is not whole:
            flat = sums.reshape(-1)
            # The sum of squares is not finite if one element is not.
            if not isfinite(np.dot(flat, flat)):
                whole.run(factors.a, whole.weights(factors.b), sums, bias)

    return run


def _in_bands(
    sliding: Sliding, batch: int, channels: int, multiplier: int, itemsize: int
) -> _Planes | None:
    """The same in bands of rows; None where that is no gain."""
    rows, *others = sliding.axes
    reach = rows.dilation * (rows.window - 1) + 1
    if not others or reach > min(_FURTHEST, 4 * rows.window):
        return None
    parts = take_apart(replace(sliding, axes=tuple(others)))
    return _Planes(rows, parts, batch, channels, multiplier, itemsize, _bands(rows))


def _prepare(given: Array, banded: _Planes | None, whole: _Planes) -> tuple[_Planes, list[Array]]:
    """The way for weights, and what it makes of them."""
    if banded is None or given.dtype.kind != "f" or not np.isfinite(given).all():
        return whole, whole.weights(given)
    return banded, banded.weights(given)
