"""Each channel convolved by itself, channels first: one place of the window after the other.

Planes are taken apart by their strides, once: element t of part r along an axis is the padded
element r + t * stride. Under one place of the window the elements of all windows then lie in one
run of a part, from some offset on, with whatever stands between the rows of windows. So every
step is a product and a sum over long runs; what stands between the rows is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from nacre.kernels.call import Array
from nacre.kernels.graph_products import Factors, dense
from nacre.kernels.graph_sliding import Axis, Sliding
from nacre.kernels.shapes import Dims

Convolve = Callable[[Factors, Array, Array | None], None]  # operands, sums, bias

# Of one block of channels: it is passed over once for every place of a window.
_PLANE_BYTES = 1 << 17


@dataclass(frozen=True)
class _Parts:
    """Planes taken apart by their strides."""

    sliding: Sliding
    size: Dims  # of one part
    remainders: tuple[Dims, ...]  # which part each is: one remainder for each axis
    places: tuple[tuple[int, int], ...]  # of a window: the part, and the offset in it
    length: int  # of the run that holds what all windows have at a place

    def of(self, x: Array) -> Array:
        """The parts of X [N, C, spatial..] as [part, N, C, size]."""
        shape = (len(self.remainders), *x.shape[:2], *self.size)
        if not self.sliding.is_padded and set(self.sliding.strides) == {1}:
            return dense(x).reshape(1, *x.shape[:2], -1)
        parts = np.zeros(shape, x.dtype)
        every = slice(None)
        for index, remainder in enumerate(self.remainders):
            pairs = list(map(_inside, self.sliding.axes, remainder, self.size))
            targets, sources = zip(*pairs, strict=True)
            parts[(index, every, every, *targets)] = x[(every, every, *sources)]
        return parts.reshape(*shape[:3], -1)


def _parts(sliding: Sliding) -> _Parts:
    axes = sliding.axes
    size = tuple(axis.count + axis.dilation * (axis.window - 1) // axis.stride for axis in axes)
    steps = [prod(size[at + 1 :]) for at in range(len(size))]
    found: dict[Dims, int] = {}
    places = []
    for place in product(*(range(axis.window) for axis in axes)):
        split = [
            divmod(k * axis.dilation, axis.stride) for k, axis in zip(place, axes, strict=True)
        ]
        part = found.setdefault(tuple(rest for _, rest in split), len(found))
        places.append((part, sum(at * step for (at, _), step in zip(split, steps, strict=True))))
    length = sum((axis.count - 1) * step for axis, step in zip(axes, steps, strict=True)) + 1
    return _Parts(sliding, size, tuple(found), tuple(places), length)


def _inside(axis: Axis, remainder: int, size: int) -> tuple[slice, slice]:
    """Where elements of X stand along an axis of a part, and which they are."""
    first = max(0, -((remainder - axis.begin) // axis.stride))
    last = min(size - 1, (axis.size - 1 + axis.begin - remainder) // axis.stride)
    start = remainder + first * axis.stride - axis.begin
    count = max(0, last - first + 1)
    return slice(first, first + count), slice(start, start + count * axis.stride, axis.stride)


def convolve_planes(sliding: Sliding, batch: int, channels: int, outputs: int) -> Convolve:
    """The convolution of so many channels, each with its own `outputs / channels` windows."""
    parts, counts, multiplier = _parts(sliding), sliding.counts, outputs // channels
    ones, rows = (1,) * len(counts), (counts[0], *parts.size[1:])
    every = slice(None)
    inner = (every, every, *(slice(0, count) for count in counts))

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        x, weights = parts.of(factors.a), factors.b.reshape(channels, multiplier, -1, 1)
        planes = sums.reshape(batch, channels, multiplier, *counts)
        shift = np.zeros(outputs, sums.dtype) if bias is None else bias
        shift = shift.reshape(channels, multiplier, *ones)
        step = min(channels, max(1, _PLANE_BYTES // (multiplier * prod(rows) * sums.itemsize)))
        room = np.zeros((2, step, multiplier, prod(rows)), sums.dtype)
        for image, start in product(range(batch), range(0, channels, step)):
            some = slice(start, min(start + step, channels))
            taken, factor = x[:, image, some, None], weights[some]
            total, term = room[:, : some.stop - some.start, :, : parts.length]
            for at, (part, offset) in enumerate(parts.places):
                under = taken[part, ..., offset : offset + parts.length]
                np.multiply(under, factor[:, :, at], out=term if at else total)
                if at:
                    np.add(total, term, out=total)
            whole = room[0, : some.stop - some.start].reshape(-1, multiplier, *rows)
            np.add(whole[inner], shift[some], out=planes[image, some])

    return run
