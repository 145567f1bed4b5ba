"""Long windows along an axis, whose elements are combined by blocks of 2, 4, 8, ... elements.

A window is cut into blocks of different powers of two, the shortest first, and every window takes
its blocks of one size at once: so many steps as its length has digits, where one step for each
element would be thousands. How a window is cut depends on its own length alone, so its sum has one
order, in any tile and on every platform.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nacre.kernels.interface.call import Array
from nacre.kernels.windows.sliding import Axis

Combine = Callable[[Array, Array], Array]
Places = tuple[slice | Array, ...]
_LONG_WINDOW = 64  # elements; sums of shorter ones are taken element by element


def is_long(axis: Axis) -> bool:
    """Whether windows along an axis are taken by blocks; the same in any tile."""
    return axis.window >= _LONG_WINDOW


def combine_blocks(
    axis: Axis, at: int, combine: Combine, neutral: float
) -> Callable[[Array], Array]:
    """Combine the elements of every window along an axis, block by block."""
    index = np.arange(axis.count) * axis.stride - axis.begin
    first = np.maximum(0, -(index // axis.dilation))
    last = np.minimum(axis.window - 1, (axis.size - 1 - index) // axis.dilation)
    lengths, starts = np.maximum(0, last - first + 1), index + first * axis.dilation
    longest, before = int(lengths.max()), (slice(None),) * at
    is_whole = (lengths == longest).all() and (np.diff(starts) == axis.stride).all()
    if is_whole and 0 < lengths.sum() <= longest.bit_length() * axis.size:
        return _combine_apart(axis, int(starts[0]), longest, before, combine)
    levels = _levels(lengths, starts, axis.dilation, before)

    def run(x: Array) -> Array:
        found = np.full((*x.shape[:at], axis.count, *x.shape[at + 1 :]), neutral, x.dtype)
        blocks = x  # at each place, the block of so many elements that begins there
        for level, (target, source) in enumerate(levels):
            if level:
                reach = axis.dilation << (level - 1)
                left, right = slice(None, -reach), slice(reach, None)
                blocks = combine(blocks[(*before, left)], blocks[(*before, right)])
            found[target] = combine(found[target], blocks[source])
        return found

    return run


def _levels(
    lengths: Array, starts: Array, dilation: int, before: tuple[slice, ...]
) -> list[tuple[Places, Places]]:
    """For blocks of 1, 2, 4, ... elements: the windows that take one, and where those begin."""
    places, found = starts.copy(), []
    for level in range(int(lengths.max()).bit_length()):
        takes = np.flatnonzero(lengths >> level & 1)
        found.append(((*before, _slice_of(takes)), (*before, _slice_of(places[takes]))))
        places[takes] += dilation << level
    return found


def _slice_of(places: Array) -> slice | Array:
    """Places as a slice where they are evenly spaced, which NumPy reads without a copy."""
    if not places.size:
        return slice(0, 0)
    step = int(places[1] - places[0]) if places.size > 1 else 1
    if step < 1 or (np.diff(places) != step).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1, step)


def _combine_apart(
    axis: Axis, start: int, length: int, before: tuple[slice, ...], combine: Combine
) -> Callable[[Array], Array]:
    """Whole windows that share few elements: by the same blocks, each made once."""
    reach = (length - 1) * axis.dilation + 1
    taken = (*before, slice(0, (axis.count - 1) * axis.stride + 1, axis.stride))

    def run(x: Array) -> Array:
        views = sliding_window_view(x[(*before, slice(start, None))], reach, axis=len(before))
        blocks, found = views[taken][..., :: axis.dilation], None
        while blocks.shape[-1]:
            if blocks.shape[-1] % 2:
                one = blocks[..., 0]
                found = one if found is None else combine(found, one)
                blocks = blocks[..., 1:]
            blocks = combine(blocks[..., 0::2], blocks[..., 1::2])
        assert found is not None  # there is an element
        return np.ascontiguousarray(found)

    return run
