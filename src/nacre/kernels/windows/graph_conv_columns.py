"""Convolutions with channels first as products of matrices, and the ways to the columns of these.

Every window of an image becomes a column; the product of the weights with the columns is the result
as it lies in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.interface.shapes import Dims, even_parts
from nacre.kernels.products.graph_products import Factors, dense
from nacre.kernels.windows.graph_conv_planes import Convolve
from nacre.kernels.windows.patches import Windows
from nacre.kernels.windows.sliding import Axis, Sliding, join_shape

# Of one matrix of columns; larger ones are made block by block, for they should stay in the cache.
_COLUMN_BYTES = 1 << 20
_MOST_ROW_BYTES = 1 << 28  # of the columns of one row of windows, which are never made in parts


@dataclass(frozen=True)
class Geometry:
    """The numbers of one convolution."""

    sliding: Sliding
    batch: int
    channels: int
    outputs: int
    groups: int

    @cached_property
    def depth(self) -> int:
        """How many products a sum has."""
        return prod(self.sliding.window) * (self.channels // self.groups)

    @cached_property
    def is_channelwise(self) -> bool:
        """Whether every channel is convolved by itself."""
        return self.groups > 1 and self.groups == self.channels

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether every window is one element, and every element has one: X is its own columns."""
        use = self.sliding
        return set(use.window) == set(use.strides) == {1} and not use.is_padded

    @cached_property
    def has_few_weights(self) -> bool:
        """Whether to read the weights for every row of windows takes less than to copy windows."""
        if len(self.sliding.axes) != 2 or self.groups > 1:
            return False
        down, across = self.sliding.axes
        is_close = down.dilation == 1 and down.window > max(1, down.stride - 1)
        return is_close and self.outputs <= across.count

    @cached_property
    def has_long_rows(self) -> bool:
        """Whether one row of windows is too many to be copied at once, as of long signals."""
        counts = self.sliding.counts
        places = counts[0] if len(counts) == 1 else prod(counts[1:])
        return not self.is_channelwise and 4 * self.depth * places > _MOST_ROW_BYTES

    @cached_property
    def windows(self) -> Windows:
        """The windows over X padded, with channels last."""
        use = self.sliding
        padded = (self.batch, *use.padded, self.channels)
        y = (self.batch, *use.counts, self.outputs)
        return Windows(padded, use.window, y, use.strides, use.dilations, self.groups)

    def padded(self, x: Array, is_last: bool) -> Array:
        """X, whose channels are where they should be, with its padding."""
        use = self.sliding
        if not use.is_padded:
            return dense(x)
        shape = join_shape(self.batch, use.padded, self.channels, is_last)
        values = scratch("padded", shape, x.dtype)
        values.fill(0)
        inner = tuple(slice(axis.begin, axis.begin + axis.size) for axis in use.axes)
        every = slice(None)
        values[(every, *inner) if is_last else (every, every, *inner)] = x
        return values


def by_elements(use: Geometry) -> Convolve:
    """Every window one element: X itself is the matrix of columns."""
    groups, inner, width = use.groups, use.channels // use.groups, use.outputs // use.groups
    places = prod(use.sliding.counts)

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        columns = dense(factors.a).reshape(use.batch, groups, inner, places)
        target = sums.reshape(use.batch, groups, width, places)
        factors.multiply(factors.b.reshape(groups, width, inner), columns, target)
        if bias is not None:
            np.add(target, bias.reshape(groups, width, 1), out=target)

    return run


def by_columns(use: Geometry) -> Convolve:
    """Every window of an image a column: the product lies as the result does."""
    groups, places = use.groups, use.sliding.counts
    shape, steps = column_steps(use)
    tail = prod(places[1:])
    width = use.outputs // groups

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        x = use.padded(factors.a, is_last=False)
        weights = factors.b.reshape(groups, width, use.depth)
        strides = [step * x.itemsize for step in steps]
        view = np.ndarray(shape, x.dtype, x, strides=strides)
        rows = even_parts(places[0], _COLUMN_BYTES // (groups * use.depth * tail * x.itemsize))
        planes = sums.reshape(use.batch, groups, width, prod(places))
        column = None if bias is None else bias.reshape(groups, width, 1)
        for image, start in product(range(use.batch), range(0, places[0], rows)):
            stop = min(start + rows, places[0])
            taken = view[image][..., start:stop, *(slice(None),) * (len(places) - 1)]
            columns = scratch("columns", taken.shape, x.dtype)
            np.copyto(columns, taken)
            columns = columns.reshape(groups, use.depth, -1)
            target = planes[image, :, :, start * tail : stop * tail]
            factors.multiply(weights, columns, target)
            if column is not None:
                np.add(target, column, out=target)

    return run


def column_steps(use: Geometry) -> tuple[Dims, Dims]:
    """Shape and steps, in elements, of [N, Cin, window.., out..] over X padded."""
    padded = (use.channels, *use.sliding.padded)
    steps = tuple(prod(padded[axis + 1 :]) for axis in range(len(padded)))
    pairs = tuple(zip(steps[1:], use.sliding.axes, strict=True))
    within = tuple(step * axis.dilation for step, axis in pairs)
    across = tuple(step * axis.stride for step, axis in pairs)
    shape = (use.batch, use.channels, *use.sliding.window, *use.sliding.counts)
    return shape, (prod(padded), steps[0], *within, *across)


def by_rows(use: Geometry) -> Convolve:
    """Every row of windows a matrix of columns of its own.

    Rows of X are spread once, into [row, channel, place along the row, window], where the rows that
    a row of windows sees follow each other. The weights are read for every row of windows: that
    pays where they are few.
    """
    down, across = use.sliding.axes
    height, width, outputs = down.count, across.count, use.outputs
    steps = _window_positions(across)
    shape = (use.channels, across.window, width)

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        x, item = factors.a, factors.a.itemsize
        weights = factors.b.transpose(0, 2, 1, 3).reshape(outputs, use.depth)
        y = sums.reshape(use.batch, outputs, height, width)
        row = prod(shape) * item
        rows = even_parts(height, (_COLUMN_BYTES // row - down.window) // down.stride + 1)
        for image, start in product(range(use.batch), range(0, height, rows)):
            count = min(rows, height - start)
            seen = (count - 1) * down.stride + down.window
            columns = scratch("columns", (seen, *shape), x.dtype)
            _fill_columns(x[image], start * down.stride - down.begin, steps, columns)
            steps_down = (down.stride * row, width * item, item)
            view = np.ndarray((count, use.depth, width), x.dtype, columns, strides=steps_down)
            factors.multiply(weights, view, y[image, :, start : start + count].swapaxes(0, 1))
        if bias is not None:
            planes = sums.reshape(use.batch, outputs, -1)
            np.add(planes, bias.reshape(-1, 1), out=planes)

    return run


def _window_positions(axis: Axis) -> list[tuple[slice, slice]]:
    """For each place of a window: the windows with an element there, and those elements."""
    found = []
    for place in range(axis.window):
        shift = place * axis.dilation - axis.begin
        first = min(max(0, -(shift // axis.stride)), axis.count)
        stop = max(first, min(axis.count, (axis.size - 1 - shift) // axis.stride + 1))
        start = first * axis.stride + shift
        found.append(
            (slice(first, stop), slice(start, start + (stop - first) * axis.stride, axis.stride))
        )
    return found


def _fill_columns(x: Array, top: int, places: list[tuple[slice, slice]], columns: Array) -> None:
    """Fill columns [row, channel, place, window] from X [channel, row, element], from a row on."""
    first = min(max(0, -top), len(columns))
    stop = max(first, min(len(columns), x.shape[1] - top))
    columns[:first] = columns[stop:] = 0
    rows = x[:, top + first : top + stop].swapaxes(0, 1)
    for place, (windows, elements) in enumerate(places):
        target = columns[first:stop, :, place]
        target[..., : windows.start] = 0
        target[..., windows.stop :] = 0
        target[..., windows] = rows[..., elements]
