"""Each channel convolved by itself, channels last: whole rows are multiplied, place by place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.fixed import FixedCall, Scratch
from nacre.kernels.interface.long_rows import repeats
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.windows.graph_conv_columns import Geometry
from nacre.kernels.windows.graph_conv_slabs import Block, Slabs, StridedSlabs
from nacre.kernels.windows.graph_conv_sums import sums_call

_F32 = np.dtype(np.float32)
# Elements that NumPy takes at a time: the way to fewer is felt, more leave the cache with the
# weights of a window, the sooner the more places it has.
_LONG, _SHORTER, _MANY_PLACES = 1024, 512, 9
_FAR = 256  # channels from which on those of one place are enough

# Of an image a block, into its rows of Y.
Multiply = Callable[[Array, Block, Array], Iterator[FixedCall]]


def by_places(slabs: Slabs, use: Geometry, weights: Array) -> Callable[[Scratch], Multiply]:
    """Of every place of the window whole rows are multiplied, and added up."""
    counts, window, outputs = use.sliding.counts, use.sliding.window, use.outputs
    if use.sliding.strides[-1] > 1 and outputs < _FAR:
        return _by_parts(slabs, use, weights)
    each = 1 if use.sliding.strides[-1] > 1 else repeats(counts[-1], outputs, _length(use))
    across, within = slabs.steps
    shape = (*window, slabs.rows, *counts[1:-1], counts[-1] // each, each * outputs)
    steps = (*within, *across[:-1], each * across[-1], 1)
    factors = np.tile(weights.reshape(*window, outputs), each)
    rank, terms = len(counts), _terms(len(counts))

    def ready(room: Scratch) -> Multiply:
        see = slabs.seen(shape, steps, rank, room)

        def multiply(image: Array, block: Block, sums: Array) -> Iterator[FixedCall]:
            seen = yield from see(image, block)
            result = sums.reshape(seen.shape[rank:])
            yield sums_call(terms, seen, factors, result)

        return multiply

    return ready


def _length(use: Geometry) -> int:
    """Of the runs in which a window's places are multiplied.

    The weights are repeated as often: they are not to take more than what they are multiplied with.
    """
    places = prod(use.sliding.window)
    most = prod(use.sliding.counts) * use.outputs // places
    return min(_LONG if places <= _MANY_PLACES else _SHORTER, max(use.outputs, most))


def _terms(rank: int) -> str:
    """What is multiplied: [place.., row.., element] by [place.., element]."""
    places, lines = "abc"[:rank], "xyz"[:rank]
    return f"{places}{lines}r,{places}r->{lines}r"


def _by_parts(slabs: Slabs, use: Geometry, weights: Array) -> Callable[[Scratch], Multiply]:
    """The same where windows leave elements out: rows are taken apart, and sums of parts added."""
    parted = StridedSlabs(use.sliding, slabs.rows, use.channels, use.outputs)
    counts, channels, rank = use.sliding.counts, use.outputs, len(use.sliding.counts)
    each, terms = repeats(counts[-1], channels, _length(use)), _terms(rank)
    run, pitch = each * channels, parted.width * channels
    outer = [prod(parted.shape[at + 1 :]) for at in range(rank - 1)]
    pairs = list(zip(outer, use.sliding.axes, strict=False))
    across, within = ([n * a.stride for n, a in pairs], [n * a.dilation for n, a in pairs])
    lines = (parted.rows, *counts[1:-1], counts[-1] // each, run)
    factors, parts = weights.reshape(*use.sliding.window, channels), []
    for at, taken in enumerate(parted.places):
        first, further = parted.shift(at)
        shape: Dims = (*use.sliding.window[:-1], len(taken), *lines)
        steps: Dims = (*within, further * channels, *across, run, 1)
        some = factors[..., taken.start :: taken.step, :]
        parts.append((at * pitch + first * channels, shape, steps, np.tile(some, each)))

    def ready(room: Scratch) -> Multiply:
        slab, more = parted.new_slab(room), room("sums", lines, _F32)

        def multiply(image: Array, block: Block, sums: Array) -> Iterator[FixedCall]:
            yield from parted.put(image, slab, block)
            rows = (slice(None),) * rank + (slice(0, len(sums)),)
            whole = sums.reshape(len(sums), *lines[1:])
            for at, (first, shape, steps, factors) in enumerate(parts):
                strides = [step * _F32.itemsize for step in steps]
                seen = np.ndarray(shape, _F32, slab, first * _F32.itemsize, strides)[rows]
                target = more[: len(sums)] if at else whole
                yield sums_call(terms, seen, factors, target)
                if at:
                    yield partial(np.add, whole, target, whole)

        return multiply

    return ready
