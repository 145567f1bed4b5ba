"""Planes taken apart by the strides of the windows over them.

Element t of part r along an axis is the padded element r + t * stride. Under one place of the
window the elements of all windows then lie in one run of a part, from some offset on, with whatever
stands between the rows of windows. So a column of windows is copied in runs as long as a plane, and
what comes out between the rows is left behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import gcd, prod

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.windows.sliding import Axis, Sliding

Index = tuple[int | slice, ...]


@dataclass(frozen=True)
class _Share:
    """The places of a window that fall on one part, in a grid of equal distances."""

    places: tuple[slice, ...]  # which they are
    first: int  # offset in the part
    shape: Dims  # how many places along every axis
    steps: Dims  # from one place to the next


@dataclass(frozen=True)
class Parts:
    """The parts of planes, and how columns of windows are read from them."""

    sliding: Sliding
    size: Dims  # of one part
    remainders: tuple[Dims, ...]  # which part each is: one remainder for each axis
    shares: tuple[_Share, ...]  # one for each part
    order: tuple[int, ...]  # the places of a window, one share after the other
    length: int  # of the run that holds what all windows have at a place

    @cached_property
    def are_whole(self) -> bool:
        """Whether planes are their own and only part."""
        return not self.sliding.is_padded and set(self.sliding.strides) == {1}

    @cached_property
    def _moves(self) -> list[tuple[Index, Index]]:
        return self.moves(0, self.size[0])

    def moves(self, top: int, height: int) -> list[tuple[Index, Index]]:
        """Which elements of planes go where in so many rows of the parts, from one of them on."""
        every, found = slice(None), list[tuple[Index, Index]]()
        first, *others = self.sliding.axes
        axes = (replace(first, begin=first.begin - top * first.stride), *others)
        for index, remainder in enumerate(self.remainders):
            pairs = list(map(inside_part, axes, remainder, (height, *self.size[1:])))
            targets, sources = zip(*pairs, strict=True)
            found.append(((index, every, every, *targets), (every, every, *sources)))
        return found

    def of(self, x: Array) -> Array:
        """The parts of planes [channels, rows, spatial..] as [part, plane, size]."""
        shape = (len(self.remainders), *x.shape[:2], *self.size)
        parts = scratch("parts", shape, x.dtype)
        parts.fill(0)
        for target, source in self._moves:
            parts[target] = x[source]
        return parts.reshape(shape[0], x.shape[0] * x.shape[1], -1)

    def gather(self, x: Array, plane: int, height: int, start: int, columns: Array) -> None:
        """Fill columns [channels, rows, places, run] from the parts, from some plane on.

        The planes of a channel are its rows, of which it has so many; runs begin at some element.
        """
        size, item = x.shape[-1], x.itemsize
        channels, rows, _, width = columns.shape
        at = 0
        for part, share in enumerate(self.shares):
            view = np.ndarray(
                (channels, rows, *share.shape, width),
                x.dtype,
                x,
                offset=((part * x.shape[1] + plane) * size + share.first + start) * item,
                strides=[step * item for step in (height * size, size, *share.steps, 1)],
            )
            behind = at + prod(share.shape)
            np.copyto(columns[:, :, at:behind].reshape(view.shape), view)
            at = behind


def take_apart(sliding: Sliding, *, shares_pads: bool = False) -> Parts:
    """How planes under these windows are taken apart.

    Where rows share their padding, what stands behind one is what stands before the next.
    """
    axes = sliding.axes
    size = tuple(axis.count + axis.dilation * (axis.window - 1) // axis.stride for axis in axes)
    if shares_pads and len(axes) > 1:
        size = (*size[:-1], _pitch(axes[-1], size[-1]))
    steps = [prod(size[at + 1 :]) for at in range(len(size))]
    numbers = np.arange(prod(sliding.window)).reshape(sliding.window)
    remainders, shares, order = [], [], list[int]()
    for chosen in product(*map(progressions, axes)):
        offsets, rests = zip(
            *(divmod(k.start * axis.dilation, axis.stride)
              for k, axis in zip(chosen, axes, strict=True)),
            strict=True,
        )  # fmt: skip
        across = [k.step * axis.dilation // axis.stride * step
                  for k, axis, step in zip(chosen, axes, steps, strict=True)]  # fmt: skip
        first = sum(at * step for at, step in zip(offsets, steps, strict=True))
        remainders.append(rests)
        places = tuple(slice(k.start, k.stop, k.step) for k in chosen)
        shares.append(_Share(places, first, tuple(map(len, chosen)), tuple(across)))
        order += numbers[np.ix_(*chosen)].ravel().tolist()
    length = sum((axis.count - 1) * step for axis, step in zip(axes, steps, strict=True)) + 1
    return Parts(sliding, size, tuple(remainders), tuple(shares), tuple(order), length)


def _pitch(axis: Axis, reach: int) -> int:
    """How far rows are apart that have room for the wider of their two paddings between them."""
    if axis.stride > 1:
        return reach
    behind = reach - axis.begin - axis.size
    return max(axis.size + max(axis.begin, behind, 0), axis.count)


def progressions(axis: Axis) -> list[range]:
    """The places of the window along an axis, those together that fall on the same part."""
    period = axis.stride // gcd(axis.stride, axis.dilation)
    return [range(k, axis.window, period) for k in range(min(period, axis.window))]


def inside_part(axis: Axis, remainder: int, size: int) -> tuple[slice, slice]:
    """Where elements of X stand along an axis of a part, and which they are."""
    first = max(0, -((remainder - axis.begin) // axis.stride))
    last = min(size - 1, (axis.size - 1 + axis.begin - remainder) // axis.stride)
    start = remainder + first * axis.stride - axis.begin
    count = max(0, last - first + 1)
    return slice(first, first + count), slice(start, start + count * axis.stride, axis.stride)
