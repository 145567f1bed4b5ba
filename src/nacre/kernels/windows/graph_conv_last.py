"""Convolutions in f32 by weights that are known, with channels last whatever the layout.

With channels last the elements of a window that stand in one row follow each other: a window is a
few long copies, the product of all windows with the weights lies as the result does, and a
convolution of single channels is as many products of whole rows as a window has places. Channels
that come first are moved on the way in and out, so results have the same bits in both layouts.

A result is made in blocks of rows, which stay in the cache until they have their bias and whatever
else is to be done to each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import gcd, prod

import numpy as np

from nacre.kernels.interface.call import Array, Constant, Run
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch
from nacre.kernels.interface.long_rows import unbuffered_repeats
from nacre.kernels.interface.runs import fix_run, present, quiet
from nacre.kernels.interface.shapes import Dims, even_parts
from nacre.kernels.products.graph_products import dense
from nacre.kernels.windows.graph_conv_channels import Multiply, by_places
from nacre.kernels.windows.graph_conv_columns import Geometry
from nacre.kernels.windows.graph_conv_runs import column_calls, runs_for
from nacre.kernels.windows.graph_conv_slabs import Block, Slabs, copies
from nacre.kernels.windows.sliding import Axis

_F32 = np.dtype(np.float32)
_BLOCK_BYTES = 1 << 19  # of windows, or of results: more leave the cache before they are read
_MOST_BYTES = 1 << 21
_LEAST_WINDOWS = 512  # of a block: BLAS packs the weights for each, which is to be worth it
_UNPACKED, _FEW_FACTORS = 1_000_000, 6400  # products, and weights, that BLAS does not pack
_LONG_ROW = 1 << 14  # products of a row of the result that BLAS takes without much of a way there
_SHORT = 24  # elements that a window has in a row and that are better not copied row by row
_SPARSE, _FEW = 4, 1 << 14  # so many times the elements of X, and so many more, may be padded
_LINE = Axis(size=1, window=1, begin=0, end=0, stride=1, dilation=1)

# From X [N, spatial.., C] in any strides to Y, which is dense.
Fill = Callable[[Array, Array, Array | None, Scratch], Iterator[FixedCall]]
# What is done to some rows of Y that have their sums, with the bias.
End = Callable[[Array, Array | None, Scratch], Iterator[FixedCall]]


def suits_channels_last(use: Geometry) -> bool:
    """Whether a convolution of no groups but single channels is computed with channels last."""
    size = prod(axis.size for axis in use.sliding.axes)
    if use.has_long_rows and not use.is_pointwise:
        return False
    return not use.sliding.is_padded or prod(use.sliding.padded) <= _SPARSE * size + _FEW


def convolve_last(
    use: Geometry,
    weights: Array,
    bias: Constant | None = None,
    finish: Run | None = None,
    *,
    is_moved: bool = False,
) -> Run:
    """A run with these weights, [window.., Cin / groups, Cout]; the bias may be known too.

    X that is moved has its channels first, whatever the layout says.
    """
    is_last, is_line = use.sliding.is_last, len(use.sliding.axes) == 1
    has_first = is_moved or not is_last
    # A line is one row of an image.
    axes = (_LINE, *use.sliding.axes) if is_line else use.sliding.axes
    whole = replace(use, sliding=replace(use.sliding, axes=axes))
    shaped = dense(weights).reshape(*whole.sliding.window, -1, use.outputs)
    fill = _bind(whole, shaped, bias, finish)
    made = (use.batch, *use.sliding.counts, use.outputs)
    whole_made = (use.batch, *whole.sliding.counts, use.outputs)

    def calls(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        x, y = present(inputs[0]), outputs[0]
        x = np.moveaxis(x, 1, -1) if has_first else x
        sums = y if is_last else np.empty(made, _F32)
        added = inputs[2] if len(inputs) > 2 else None
        yield from fill(x[:, None] if is_line else x, sums.reshape(whole_made), added, room)
        if not is_last:
            yield partial(np.copyto, y, np.moveaxis(sums, -1, 1))

    return quiet(FixableRun(calls))


def _bind(use: Geometry, weights: Array, bias: Constant | None, finish: Run | None) -> Fill:
    if use.is_channelwise:
        return _bind_windows(use, weights, bias, finish)
    if use.is_pointwise:
        return _bind_elements(use, weights, bias, finish)
    if has_few_channels(use):
        return _bind_planes(use, weights, bias, finish)
    return _bind_windows(use, weights, bias, finish)


def has_few_channels(use: Geometry) -> bool:
    """Whether runs within a window are so short that planes are better."""
    return use.channels * use.sliding.window[-1] <= _SHORT and runs_for(use) is not None


def _ending(places: int, outputs: int, bias: Constant | None, finish: Run | None) -> End:
    """What is done to some rows of the result, of which every block has a multiple of places."""
    count = unbuffered_repeats(places, outputs)
    width = count * outputs
    kept = None if bias is None else np.tile(bias.stored, count)

    def end(rows: Array, given: Array | None, room: Scratch) -> Iterator[FixedCall]:
        if given is not None:
            line, lines = kept, rows.reshape(-1, width)
            if line is None:
                line = room("bias", (width,), _F32)
                yield partial(np.copyto, line.reshape(count, outputs), given)
            yield partial(np.add, lines, line, lines)
        if finish is not None:
            yield from fix_run(finish, [rows], [rows], room)

    return end


def _rows(count: int, places: int, width: int) -> int:
    """How many rows of so many places a block has, each place with so many elements."""
    size = width * _F32.itemsize
    least = min(_LEAST_WINDOWS, max(_LEAST_WINDOWS // 4, _MOST_BYTES // size))
    return even_parts(count, max(_BLOCK_BYTES // (places * size), least // places))


def _product_calls(a: Array, b: Array, out: Array) -> Iterator[FixedCall]:
    """The calls for a product of matrices.

    BLAS packs both where it has much to do; with few columns it is quicker without, part by part.
    """
    (count, depth), width = a.shape, b.shape[1]
    is_quicker = depth * width <= _FEW_FACTORS and (width % 16 == 0 or width >= 64)
    step = even_parts(count, _UNPACKED // (depth * width) if is_quicker else count)
    for start in range(0, count, step):
        yield partial(np.matmul, a[start : start + step], b, out[start : start + step])


def _bind_elements(
    use: Geometry, weights: Array, bias: Constant | None, finish: Run | None
) -> Fill:
    """Every window one element: X itself is what the weights are multiplied with."""
    channels, outputs, counts = use.channels, use.outputs, use.sliding.counts
    matrix = weights.reshape(channels, outputs)
    lines, tail = use.batch * counts[0], prod(counts[1:])
    rows = _rows(lines, tail, max(channels, outputs))
    count, step = lines * tail, rows * tail
    end = _ending(gcd(step, count), outputs, bias, finish)

    def fill(x: Array, y: Array, added: Array | None, room: Scratch) -> Iterator[FixedCall]:
        if not (x.flags.c_contiguous and x.flags.aligned):
            apart, x = x, room("padded", x.shape, _F32)
            yield from copies(x, apart)
        given, made = x.reshape(count, channels), y.reshape(count, outputs)
        for start in range(0, count, step):
            part = made[start : start + step]
            yield from _product_calls(given[start : start + step], matrix, part)
            yield from end(part, added, room)

    return fill


def _bind_planes(use: Geometry, weights: Array, bias: Constant | None, finish: Run | None) -> Fill:
    """Columns of whole planes; of the products what stands between the rows is left out."""
    runs = runs_for(use)
    assert runs is not None
    counts, outputs, rank = use.sliding.counts, use.outputs, len(use.sliding.axes)
    matrix = dense(np.moveaxis(weights, rank, 0)).reshape(use.depth, outputs)
    end = _ending(_common(runs.largest[1], counts), outputs, bias, finish)
    kept = tuple(slice(0, n) for n in counts[1:])
    pitch, is_direct = (*runs.parts.size[1:], outputs), runs.is_direct
    # Rows of many products are multiplied one by one, so that nothing comes out between them.
    is_by_rows = rank == 2 and counts[1] * use.depth * outputs >= _LONG_ROW

    def fill(x: Array, y: Array, added: Array | None, room: Scratch) -> Iterator[FixedCall]:
        rooms = [room(*one) for one in runs.rooms()]
        for image, result in zip(np.moveaxis(x, -1, 1), y, strict=True):
            for at, block in enumerate(runs.blocks):
                view, part = runs.views(at, *rooms), result[block.rows]
                yield from column_calls(runs, view, image)
                if is_by_rows:
                    rows = view.matrices[0].reshape(use.depth, len(part), -1)[..., : counts[1]]
                    yield partial(np.matmul, rows.transpose(1, 2, 0), matrix, part)
                else:
                    shape = (len(part), *pitch)
                    sums = part if is_direct else rooms[2].reshape(-1)[: prod(shape)]
                    flat = sums.reshape(-1, outputs)
                    yield partial(np.matmul, view.matrices[0].T, matrix, flat)
                    if not is_direct:
                        kept_sums = sums.reshape(shape)[(slice(None), *kept)]
                        yield partial(np.copyto, part, kept_sums)
                yield from end(part, added, room)

    return fill


def _common(rows: int, counts: Dims) -> int:
    """The places that every block of so many rows has a multiple of."""
    return gcd(rows, counts[0] % rows or rows) * prod(counts[1:])


def _bind_windows(use: Geometry, weights: Array, bias: Constant | None, finish: Run | None) -> Fill:
    """Windows over slabs of rows: each a row of a matrix, or one place of all after the other."""
    counts, outputs, is_channelwise = use.sliding.counts, use.outputs, use.is_channelwise
    width = outputs if is_channelwise else max(use.depth, outputs)
    rows = _rows(counts[0], prod(counts[1:]), width)
    slabs = Slabs(use.sliding, rows, use.channels, outputs if is_channelwise else use.channels)
    multiplying = (by_places if is_channelwise else _by_product)(slabs, use, weights)
    end = _ending(_common(rows, counts), outputs, bias, finish)
    shape = (use.batch, counts[0], prod(counts[1:]) * outputs)

    def fill(x: Array, y: Array, added: Array | None, room: Scratch) -> Iterator[FixedCall]:
        made, multiply = y.reshape(shape), multiplying(room)
        for at, image in enumerate(x):
            for block in slabs.blocks:
                part = made[at, block.rows]
                yield from multiply(image, block, part)
                yield from end(part, added, room)

    return fill


def _by_product(slabs: Slabs, use: Geometry, weights: Array) -> Callable[[Scratch], Multiply]:
    """Every window a row of a matrix, of which runs are as long as they go."""
    depth, outputs = use.depth, use.outputs
    matrix = weights.reshape(depth, outputs)
    across, within = slabs.steps
    shape: Dims = (slabs.rows, *use.sliding.counts[1:], *use.sliding.window, use.channels)
    steps: Dims = (*across, *within, 1)
    if use.sliding.dilations[-1] == 1:
        shape, steps = (*shape[:-2], shape[-2] * shape[-1]), (*steps[:-2], 1)

    def ready(room: Scratch) -> Multiply:
        see, columns = slabs.seen(shape, steps, 0, room), room("columns", shape, _F32)

        def multiply(image: Array, block: Block, sums: Array) -> Iterator[FixedCall]:
            seen = yield from see(image, block)
            some = columns[: len(sums)]
            yield partial(np.copyto, some, seen)
            yield from _product_calls(some.reshape(-1, depth), matrix, sums.reshape(-1, outputs))

        return multiply

    return ready
