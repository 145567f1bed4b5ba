"""Convolutions in f32, channels first, by weights that are known: columns in runs of whole rows.

Under one place of the window the elements of all windows lie in one run, as `graph_conv_parts` has
it, so a column is one long copy. Of small images the way to the sums is most: views of the memory
on that way are made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nacre.kernels.interface.call import Array, Fault, Run
from nacre.kernels.interface.graph_runs import with_dense_output
from nacre.kernels.interface.runs import present, swift
from nacre.kernels.interface.scratch import keep_views
from nacre.kernels.interface.shapes import Dims, even_parts
from nacre.kernels.products.graph_products import dense
from nacre.kernels.windows.graph_conv_columns import Geometry
from nacre.kernels.windows.graph_conv_parts import Index, Parts, take_apart

_BLOCK_BYTES = 3 << 17  # of columns, or of sums: more leave the cache before they are read
_MOST_PARTS = 4  # of planes: more are as many copies of little each
_MOST_PLACES = 9  # of windows over single channels: wider ones are better taken in bands of rows
# Whose views are kept; without groups every further one would have BLAS pack all weights again.
_MOST_BLOCKS, _MOST_WHOLE_BLOCKS = 256, 1
_F32 = np.dtype(np.float32)


class _Block(NamedTuple):
    """Groups of channels and rows of the result that are computed together."""

    groups: slice
    rows: slice


class _Views(NamedTuple):
    """The memory of a block, and what is seen of it."""

    padded: Array  # with what is read behind the last plane
    moves: list[tuple[Array, Index]]  # where elements of an image go
    copies: list[tuple[Array, Array]]  # columns, and the runs that they are
    matrices: Array  # columns by groups
    products: Array
    sums: Array  # what results are of the products


@dataclass(frozen=True, eq=False)
class _Runs:
    """A convolution in blocks."""

    use: Geometry
    parts: Parts

    @cached_property
    def inner(self) -> int:
        """Channels of a group."""
        return self.use.channels // self.use.groups

    @cached_property
    def width(self) -> int:
        """Results of a group."""
        return self.use.outputs // self.use.groups

    @cached_property
    def pitch(self) -> int:
        """From a row of the result to the next."""
        return prod(self.parts.size[1:])

    @cached_property
    def halo(self) -> int:
        """Rows of a part that windows see beyond as many as there are windows."""
        return self.parts.size[0] - self.use.sliding.counts[0]

    @cached_property
    def behind(self) -> int:
        """Elements that are read behind the last plane."""
        reach = max(share.first + sum((n - 1) * step for n, step in zip(share.shape, share.steps,
                                                                        strict=True))
                    for share in self.parts.shares)  # fmt: skip
        return max(0, reach - self.halo * self.pitch)

    @cached_property
    def is_direct(self) -> bool:
        """Whether nothing stands between the rows."""
        return self.parts.size[1:] == self.use.sliding.counts[1:]

    @cached_property
    def largest(self) -> tuple[int, int]:
        """The groups and the rows of a block that stays in the cache."""
        use = self.use
        row = max(use.depth, self.width) * self.pitch * _F32.itemsize  # of one group
        rows = even_parts(use.sliding.counts[0], _BLOCK_BYTES // row)
        return even_parts(use.groups, _BLOCK_BYTES // (rows * row)), rows

    @cached_property
    def count(self) -> int:
        """How many blocks there are."""
        groups, rows = self.largest
        return -(-self.use.groups // groups) * -(-self.use.sliding.counts[0] // rows)

    @cached_property
    def blocks(self) -> list[_Block]:
        """All groups and rows."""
        everything = zip((self.use.groups, self.use.sliding.counts[0]), self.largest, strict=True)
        cuts = [
            [slice(start, min(start + step, count)) for start in range(0, count, step)]
            for count, step in everything
        ]
        return [_Block(groups, rows) for groups, rows in product(*cuts)]

    def _extents(self, block: _Block) -> tuple[int, int]:
        """Of a block: groups, and rows of the result."""
        return block.groups.stop - block.groups.start, block.rows.stop - block.rows.start

    def rooms(self) -> Iterator[tuple[str, Dims, np.dtype[Any]]]:
        """The memory that the largest block needs."""
        groups, rows = self.largest
        planes = len(self.parts.shares) * groups * self.inner
        size = planes * (rows + self.halo) * self.pitch + self.behind
        yield "padded", (size,), _F32
        yield "columns", (groups * self.use.depth * rows * self.pitch,), _F32
        yield "sums", (groups * self.width * rows * self.pitch,), _F32

    def views(self, padded: Array, columns: Array, sums: Array) -> list[_Views]:
        """What is seen of the memory, block by block."""
        return [self._views(block, padded, columns, sums) for block in self.blocks]

    def _views(self, block: _Block, padded: Array, columns: Array, sums: Array) -> _Views:
        groups, rows = self._extents(block)
        channels, run = groups * self.inner, rows * self.pitch
        shape = (len(self.parts.shares), channels, rows + self.halo, *self.parts.size[1:])
        padded = padded[: prod(shape) + self.behind]
        planes = padded[: prod(shape)].reshape(shape)
        window = self.use.sliding.window
        places = columns[: channels * prod(window) * run].reshape(channels, *window, run)
        made = sums[: groups * self.width * run].reshape(groups, self.width, run)
        kept: tuple[Any, ...] = (..., *(slice(0, n) for n in self.use.sliding.counts[1:]))
        return _Views(
            padded,
            [(planes[target], source) for target, source in self._moves(block)],
            list(self._copies(padded, planes, places)),
            places.reshape(groups, self.use.depth, run),
            made,
            made.reshape(-1, rows, *self.parts.size[1:])[kept],
        )

    def _moves(self, block: _Block) -> Iterator[tuple[Index, Index]]:
        """Which elements of an image go where in the parts that a block sees."""
        every, height = slice(None), self._extents(block)[1] + self.halo
        some = slice(block.groups.start * self.inner, block.groups.stop * self.inner)
        for target, (_, _, *source) in self.parts.moves(block.rows.start, height):
            yield (target[0], every, *target[3:]), (some, *source)

    def _copies(
        self, padded: Array, planes: Array, columns: Array
    ) -> Iterator[tuple[Array, Array]]:
        size, item = prod(planes.shape[2:]), _F32.itemsize
        channels, *_, run = columns.shape
        for part, share in enumerate(self.parts.shares):
            runs = np.ndarray(
                (channels, *share.shape, run),
                _F32,
                padded,
                offset=(part * channels * size + share.first) * item,
                strides=[step * item for step in (size, *share.steps, 1)],
            )
            yield columns[(slice(None), *share.places)], runs


def convolve_runs(use: Geometry, weights: Array) -> Run | None:
    """A run with these weights; None where others are better at it."""
    if use.is_channelwise and prod(use.sliding.window) > _MOST_PLACES:
        return None
    runs = _Runs(use, take_apart(use.sliding, shares_pads=True))
    most = _MOST_BLOCKS if use.groups > 1 else _MOST_WHOLE_BLOCKS
    if len(runs.parts.shares) > _MOST_PARTS or runs.count > most:
        return None
    return swift(with_dense_output(_bind(runs, weights)))


def _bind(runs: _Runs, weights: Array) -> Run:
    use, width, is_direct = runs.use, runs.width, runs.is_direct
    kept = keep_views(runs.views, *runs.rooms())
    matrices = dense(weights).reshape(use.groups, width, use.depth)
    blocks = [
        (matrices[groups], slice(groups.start * width, groups.stop * width), rows)
        for groups, rows in runs.blocks
    ]
    is_padded, planes = use.sliding.is_padded, (use.batch, use.outputs, -1)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        views = kept()
        for image, y in zip(present(inputs[0]), outputs[0], strict=True):
            for (weighing, some, rows), view in zip(blocks, views, strict=True):
                if is_padded:
                    view.padded.fill(0)
                for place, source in view.moves:
                    np.copyto(place, image[source])
                for place, elements in view.copies:
                    np.copyto(place, elements)
                if is_direct:
                    products = y[some, rows].reshape(view.products.shape)
                    np.matmul(weighing, view.matrices, out=products)
                else:
                    np.matmul(weighing, view.matrices, out=view.products)
                    np.copyto(y[some, rows], view.sums)
        if len(inputs) > 2:
            # Whole planes at a time, for rows are short.
            y = outputs[0].reshape(planes)
            np.add(y, present(inputs[2]).reshape(-1, 1), out=y)
        return None

    return run
