"""Convolution as a matrix product: every window of X becomes a row (im2col)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product as positions
from math import prod

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.contraction import Taken
from nacre.kernels.products.products import Product

# Of one matrix of patches; a larger one is made block by block. More is not faster.
_PATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class Windows:
    """Where the windows of a convolution lie: [N, spatial.., Cin] already padded."""

    x: Dims  # padded
    window: Dims
    y: Dims
    strides: Dims
    dilations: Dims
    groups: int

    @property
    def channels(self) -> int:
        """Channels of X that an output channel sees."""
        return self.x[-1] // self.groups

    @cached_property
    def _view(self) -> tuple[Dims, Dims]:
        """Shape and steps, in elements, of [groups, N, out.., window.., channels]."""
        steps = tuple(prod(self.x[axis + 1 :]) for axis in range(len(self.x)))
        shape = (self.groups, *self.y[:-1], *self.window, self.channels)
        across = tuple(s * t for s, t in zip(steps[1:-1], self.strides, strict=True))
        within = tuple(s * d for s, d in zip(steps[1:-1], self.dilations, strict=True))
        return shape, (self.channels, steps[0], *across, *within, 1)

    def view(self, x: Array) -> Array:
        """Every window of X, without a copy: [groups, N, out.., window.., channels]."""
        shape, steps = self._view
        size = x.itemsize
        dense = x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C")
        return np.ndarray(shape, x.dtype, dense, strides=[step * size for step in steps])


@dataclass(frozen=True)
class PatchProduct:
    """Convolves by a product of patches and weights, one for each group of channels."""

    windows: Windows

    def __call__(self, x: Array, w: Array, part: Taken, product: Product) -> Array:
        """The sums of a part of the window and channels, in the shape of Y."""
        view = self.windows.view(x)
        if self.windows.groups == 1 and view.nbytes <= _PATCH_BYTES and part == self._everything:
            # One product is all; tiles are small, and every step more is felt.
            rows, depth = self._size
            patches = np.ascontiguousarray(view.reshape(rows, depth))
            return product(patches, w.reshape(depth, -1)).reshape(self.windows.y)
        weights = self._weights(w, part)
        rows = _PATCH_BYTES // (self.windows.groups * weights.shape[1] * x.itemsize)
        sums = [
            self._join_groups(product(self._patches(view, block, part), weights))
            for block in blocks(self.windows.y[:-1], max(1, rows))
        ]
        whole = sums[0] if len(sums) == 1 else np.concatenate(sums)
        return whole.reshape(self.windows.y)

    @cached_property
    def _everything(self) -> Taken:
        """The part that is all of the window and channels."""
        return tuple(slice(0, size) for size in (*self.windows.window, self.windows.channels))

    @cached_property
    def _size(self) -> Dims:
        """How many windows there are, and how long a sum is."""
        return prod(self.windows.y[:-1]), prod(self.windows.window) * self.windows.channels

    def _weights(self, w: Array, part: Taken) -> Array:
        """[window.., channels, Cout] as [groups, depth, Cout / groups]."""
        groups = self.windows.groups
        taken = w[part].reshape(-1, groups, w.shape[-1] // groups)
        return np.ascontiguousarray(taken.transpose(1, 0, 2))

    def _patches(self, view: Array, block: Taken, part: Taken) -> Array:
        box = view[(slice(None), *block, *part)]
        taken = box.reshape(len(box), prod(box.shape[1 : len(block) + 1]), -1)
        # Overlapping windows of one channel are a matrix without a copy, but not one for BLAS.
        return np.ascontiguousarray(taken)

    def _join_groups(self, sums: Array) -> Array:
        """[groups, rows, Cout / groups] as [rows, Cout]."""
        return sums.transpose(1, 0, 2).reshape(sums.shape[1], -1)


@lru_cache(maxsize=256)
def blocks(dims: Dims, limit: int) -> tuple[Taken, ...]:
    """Boxes that make up an array in row-major order, each of at most so many elements."""
    return tuple(_blocks(dims, limit))


def _blocks(dims: Dims, limit: int) -> Iterator[Taken]:
    tail = prod(dims[1:])
    if tail > limit:
        for index in range(dims[0]):
            for rest in _blocks(dims[1:], limit):
                yield slice(index, index + 1), *rest
        return
    step = limit // tail
    for start in range(0, dims[0], step):
        yield slice(start, min(start + step, dims[0])), *(slice(0, size) for size in dims[1:])


@dataclass(frozen=True)
class ChannelwiseProduct:
    """Convolves each channel by itself, one place of the window after the other."""

    windows: Windows

    def __call__(self, x: Array, w: Array, part: Taken, product: Product) -> Array:
        """The sums of a part of the window, in the shape of Y; from +0 on, in ascending order."""
        size, channels = self.windows, self.windows.x[-1]
        multiplier = size.y[-1] // channels
        total = np.zeros((*size.y[:-1], channels, multiplier), x.dtype)
        term = np.empty_like(total)
        for place in positions(*(range(axis.start, axis.stop) for axis in part[:-1])):
            weights = w[place].reshape(channels, multiplier)
            np.multiply(self._elements_under(x, place)[..., None], weights, out=term)
            np.add(total, term, out=total)
        return total.reshape(size.y)

    def _elements_under(self, x: Array, place: Dims) -> Array:
        """The elements of X that lie under one place of the window."""
        size = self.windows
        spatial = zip(place, size.dilations, size.strides, size.y[1:-1], strict=True)
        taken = (
            slice(k * dilation, k * dilation + stride * (count - 1) + 1, stride)
            for k, dilation, stride, count in spatial
        )
        return x[(slice(None), *taken)]
