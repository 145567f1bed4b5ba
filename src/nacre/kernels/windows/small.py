"""Convolutions of small images in f32, channels first, by weights that are known.

Of these the way to the sums is most: so views of the memory on that way are made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from nacre.kernels.interface.call import Array, Fault, Run
from nacre.kernels.interface.graph_runs import into_dense
from nacre.kernels.interface.runs import present, swift
from nacre.kernels.interface.scratch import kept_views
from nacre.kernels.products.graph_products import dense
from nacre.kernels.windows.graph_conv_columns import Geometry, column_steps, even_parts

_COLUMN_BYTES = 3 << 17  # of one image; more leave the cache before they are read
_MOST_PLACES = 128  # of a plane whose channels are together; more are better taken plane by plane
_CHANNEL_BYTES = 1 << 18  # of channels that are together
_F32 = np.dtype(np.float32)


def convolve_small(use: Geometry, weights: Array) -> Run | None:
    """A run with these weights; None where images are not small."""
    if use.is_channelwise:
        few = prod(use.sliding.counts) <= _MOST_PLACES
        return swift(into_dense(_channels_together(use, weights))) if few else None
    bytes_ = use.depth * use.groups * prod(use.sliding.counts) * _F32.itemsize
    return swift(into_dense(_one_product(use, weights))) if bytes_ <= _COLUMN_BYTES else None


def _one_product(use: Geometry, weights: Array) -> Run:
    """Every window of an image a column of one matrix, and its product with the weights."""
    shape, steps = column_steps(use)
    strides = [step * _F32.itemsize for step in steps[1:]]
    several = () if use.groups == 1 else (use.groups,)
    places, width = prod(use.sliding.counts), use.outputs // use.groups
    matrices = dense(weights).reshape(*several, width, use.depth)
    made, column = (use.batch, *several, width, places), (*several, width, 1)

    def views(padded: Array, columns: Array) -> tuple[Array, ...]:
        windows = np.ndarray(shape[1:], _F32, padded, strides=strides)
        inner = padded[(slice(None), *_inside(use))]
        return padded, inner, windows, columns, columns.reshape(*several, use.depth, places)

    rooms = kept_views(
        views,
        ("padded", (use.channels, *use.sliding.padded), _F32),
        ("columns", shape[1:], _F32),
    )

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        padded, inner, windows, columns, matrix = rooms()
        sums = outputs[0].reshape(made)
        for image, target in zip(present(inputs[0]), sums, strict=True):
            if use.sliding.is_padded:
                padded.fill(0)
            np.copyto(inner, image)
            np.copyto(columns, windows)
            np.matmul(matrices, matrix, out=target)
        if len(inputs) > 2:
            np.add(sums, present(inputs[2]).reshape(column), out=sums)
        return None

    return run


def _inside(use: Geometry) -> tuple[slice, ...]:
    """Where the elements of X are in it padded."""
    return tuple(slice(axis.begin, axis.begin + axis.size) for axis in use.sliding.axes)


def _channels_together(use: Geometry, weights: Array) -> Run:
    """Every channel by itself, but the elements of many at one place together.

    Between channels of one plane there is nothing to be done, so channels are moved to the end: a
    step of the sum then takes as many elements at a time as there are channels.
    """
    sliding, multiplier = use.sliding, use.outputs // use.channels
    rank = len(sliding.axes)
    some = even_parts(use.channels, _CHANNEL_BYTES // (prod(sliding.padded) * _F32.itemsize))
    taps = weights.reshape(use.channels, multiplier, *sliding.window)
    taps = np.ascontiguousarray(np.moveaxis(taps, 0, -1))  # [multiplier, window.., channel]
    spatial, window = "xyz"[:rank], "ijk"[:rank]
    sum_up = f"{spatial}{window}c,{window}c->{spatial}c"
    made = (use.batch, use.channels, multiplier, *sliding.counts)

    def views(padded: Array, sums: Array) -> tuple[Array, ...]:
        return padded, np.moveaxis(padded[_inside(use)], -1, 0), _windows(use, padded), sums

    rooms = kept_views(
        views, ("padded", (*sliding.padded, some), _F32), ("sums", (*sliding.counts, some), _F32)
    )

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        padded, inner, windows, sums = rooms()
        x, y = present(inputs[0]), outputs[0].reshape(made)
        bias = present(inputs[2]).reshape(-1, multiplier) if len(inputs) > 2 else None
        for start in range(0, use.channels, some):
            few = min(some, use.channels - start)
            channels = slice(start, start + few)
            for image in range(use.batch):
                padded.fill(0)
                np.copyto(inner[:few], x[image, channels])
                for at in range(multiplier):
                    found = sums[..., :few]
                    np.einsum(sum_up, windows[..., :few], taps[at, ..., channels], out=found)
                    if bias is not None:
                        np.add(found, bias[channels, at], out=found)
                    np.copyto(y[image, channels, at], np.moveaxis(found, -1, 0))
        return None

    return run


def _windows(use: Geometry, padded: Array) -> Array:
    """The windows over planes with channels last: [place.., window.., channel]."""
    axes, steps = use.sliding.axes, padded.strides
    across = [step * axis.stride for step, axis in zip(steps, axes, strict=False)]
    within = [step * axis.dilation for step, axis in zip(steps, axes, strict=False)]
    shape: tuple[Any, ...] = (*use.sliding.counts, *use.sliding.window, padded.shape[-1])
    return np.ndarray(shape, padded.dtype, padded, strides=(*across, *within, steps[-1]))
