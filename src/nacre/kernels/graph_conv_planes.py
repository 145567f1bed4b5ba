"""Each channel convolved by itself, channels first: a product with the columns of its own plane.

Planes are taken apart by their strides, once: element t of part r along an axis is the padded
element r + t * stride. Under one place of the window the elements of all windows then lie in one
run of a part, from some offset on, with whatever stands between the rows of windows. So a column
of windows is copied in runs as long as a plane, and what comes out between the rows is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

import numpy as np

from nacre.kernels.call import Array
from nacre.kernels.graph_products import Factors, dense
from nacre.kernels.graph_sliding import Axis, Sliding
from nacre.kernels.shapes import Dims

Convolve = Callable[[Factors, Array, Array | None], None]  # operands, sums, bias

# Of the columns of some channels: they are written and read once, and should stay in the cache.
_PLANE_BYTES = 1 << 19


@dataclass(frozen=True)
class _Share:
    """The places of a window that fall on one part, in a grid of equal distances."""

    first: int  # offset in the part
    shape: Dims  # how many places along every axis
    steps: Dims  # from one place to the next


@dataclass(frozen=True)
class _Parts:
    """Planes taken apart by their strides."""

    sliding: Sliding
    size: Dims  # of one part
    remainders: tuple[Dims, ...]  # which part each is: one remainder for each axis
    shares: tuple[_Share, ...]  # one for each part
    order: tuple[int, ...]  # the places of a window, one share after the other
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

    def gather(self, x: Array, image: int, channels: slice, run: slice, columns: Array) -> None:
        """Fill columns [channels, places, run] from the parts of an image."""
        size, item = x.shape[-1], x.itemsize
        at, width = 0, run.stop - run.start
        for part, share in enumerate(self.shares):
            plane = (part * x.shape[1] + image) * x.shape[2] + channels.start
            shape = (len(columns), *share.shape, width)
            view = np.ndarray(
                shape,
                x.dtype,
                x,
                offset=(plane * size + share.first + run.start) * item,
                strides=[step * item for step in (size, *share.steps, 1)],
            )
            behind = at + prod(share.shape)
            columns[:, at:behind].reshape(shape)[...] = view
            at = behind


def _parts(sliding: Sliding) -> _Parts:
    axes = sliding.axes
    size = tuple(axis.count + axis.dilation * (axis.window - 1) // axis.stride for axis in axes)
    steps = [prod(size[at + 1 :]) for at in range(len(size))]
    numbers = np.arange(prod(sliding.window)).reshape(sliding.window)
    remainders, shares, order = [], [], list[int]()
    for chosen in product(*map(_progressions, axes)):
        offsets, rests = zip(
            *(divmod(k.start * axis.dilation, axis.stride)
              for k, axis in zip(chosen, axes, strict=True)),
            strict=True,
        )  # fmt: skip
        across = [k.step * axis.dilation // axis.stride * step
                  for k, axis, step in zip(chosen, axes, steps, strict=True)]  # fmt: skip
        first = sum(at * step for at, step in zip(offsets, steps, strict=True))
        remainders.append(rests)
        shares.append(_Share(first, tuple(map(len, chosen)), tuple(across)))
        order += numbers[np.ix_(*chosen)].ravel().tolist()
    length = sum((axis.count - 1) * step for axis, step in zip(axes, steps, strict=True)) + 1
    return _Parts(sliding, size, tuple(remainders), tuple(shares), tuple(order), length)


def _progressions(axis: Axis) -> list[range]:
    """The places of the window along an axis, those together that fall on the same part."""
    period = axis.stride // gcd(axis.stride, axis.dilation)
    return [range(k, axis.window, period) for k in range(min(period, axis.window))]


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
    depth, order = prod(sliding.window), list(parts.order)

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        x = parts.of(factors.a)
        weights = factors.b.reshape(channels, multiplier, depth)[..., order]
        planes = sums.reshape(batch, channels, multiplier, *counts)
        shift = np.zeros(outputs, sums.dtype) if bias is None else bias
        shift = shift.reshape(channels, multiplier, *ones)
        width = min(parts.length, max(1, _PLANE_BYTES // (depth * x.itemsize)))
        step = min(channels, max(1, _PLANE_BYTES // (depth * width * x.itemsize)))
        columns = np.empty((step, depth, width), x.dtype)
        room = np.empty((step, multiplier, prod(rows)), sums.dtype)
        for image, start in product(range(batch), range(0, channels, step)):
            some = slice(start, min(start + step, channels))
            count = some.stop - some.start
            for at in range(0, parts.length, width):
                piece = slice(at, min(at + width, parts.length))
                taken = columns[:count, :, : piece.stop - at]
                parts.gather(x, image, some, piece, taken)
                np.matmul(weights[some], taken, out=room[:count, :, piece])
            whole = room[:count].reshape(-1, multiplier, *rows)
            np.add(whole[inner], shift[some], out=planes[image, some])

    return run
