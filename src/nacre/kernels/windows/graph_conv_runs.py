"""Convolutions in f32 by weights that are known, plane by plane: columns in runs of whole rows.

Under one place of the window the elements of all windows lie in one run, as `graph_conv_parts` has
it, so a column is one long copy. Groups of channels go this way, and images of few channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nacre.kernels.interface.call import Array, Run
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch
from nacre.kernels.interface.runs import fix_run, present, quiet
from nacre.kernels.interface.shapes import Dims, even_parts
from nacre.kernels.products.graph_products import dense
from nacre.kernels.windows.graph_conv_columns import Geometry
from nacre.kernels.windows.graph_conv_parts import Index, Parts, take_apart

_BLOCK_BYTES = 3 << 17  # of columns, or of sums: more leave the cache before they are read
_MOST_PARTS = 4  # of planes: more are as many copies of little each
_MOST_BLOCKS = 256
_F32 = np.dtype(np.float32)


class Block(NamedTuple):
    """Groups of channels and rows of the result that are computed together."""

    groups: slice
    rows: slice


class Views(NamedTuple):
    """The memory of a block, and what is seen of it."""

    padded: Array  # with what is read behind the last plane
    moves: list[tuple[Array, Index]]  # where elements of an image go
    copies: list[tuple[Array, Array]]  # columns, and the runs that they are
    matrices: Array  # columns by groups
    products: Array
    sums: Array  # what results are of the products


@dataclass(frozen=True, eq=False)
class Runs:
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
    def blocks(self) -> list[Block]:
        """All groups and rows."""
        everything = zip((self.use.groups, self.use.sliding.counts[0]), self.largest, strict=True)
        cuts = [
            [slice(start, min(start + step, count)) for start in range(0, count, step)]
            for count, step in everything
        ]
        return [Block(groups, rows) for groups, rows in product(*cuts)]

    def _extents(self, block: Block) -> tuple[int, int]:
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

    def views(self, at: int, padded: Array, columns: Array, sums: Array) -> Views:
        """What is seen of the memory, of one of the blocks."""
        groups, rows = self._extents(self.blocks[at])
        channels, run = groups * self.inner, rows * self.pitch
        shape = (len(self.parts.shares), channels, rows + self.halo, *self.parts.size[1:])
        padded = padded[: prod(shape) + self.behind]
        planes = padded[: prod(shape)].reshape(shape)
        window = self.use.sliding.window
        places = columns[: channels * prod(window) * run].reshape(channels, *window, run)
        made = sums[: groups * self.width * run].reshape(groups, self.width, run)
        kept: tuple[Any, ...] = (..., *(slice(0, n) for n in self.use.sliding.counts[1:]))
        return Views(
            padded,
            [(planes[target], source) for target, source in self._moves[at]],
            list(self._copies(padded, planes, places)),
            places.reshape(groups, self.use.depth, run),
            made,
            made.reshape(-1, rows, *self.parts.size[1:])[kept],
        )

    @cached_property
    def _moves(self) -> list[list[tuple[Index, Index]]]:
        """Which elements of an image go where in the parts that each block sees."""
        every, found = slice(None), []
        for block in self.blocks:
            some = slice(block.groups.start * self.inner, block.groups.stop * self.inner)
            moves = self.parts.moves(block.rows.start, self._extents(block)[1] + self.halo)
            found.append([((to[0], every, *to[3:]), (some, *source[2:])) for to, source in moves])
        return found

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


def runs_for(use: Geometry) -> Runs | None:
    """A convolution in runs; None where planes fall into too many parts, or into blocks."""
    runs = Runs(use, take_apart(use.sliding, shares_pads=True))
    return runs if len(runs.parts.shares) <= _MOST_PARTS and runs.count <= _MOST_BLOCKS else None


def column_calls(runs: Runs, view: Views, image: Array) -> Iterator[FixedCall]:
    """The calls that fill the columns of a block from an image, [channel, spatial..]."""
    if runs.use.sliding.is_padded:
        yield partial(view.padded.fill, 0)
    for place, source in view.moves:
        yield partial(np.copyto, place, image[source])
    for place, elements in view.copies:
        yield partial(np.copyto, place, elements)


def convolve_groups(
    use: Geometry,
    weights: Array,
    *,
    has_bias: bool = False,
    finish: Run | None = None,
    is_moved: bool = False,
) -> Run | None:
    """A run with these weights, [Cout, Cin / groups, window..]; None where others are better.

    With channels last, planes are gathered from them, and results brought back. X that is moved
    has its channels first, whatever the layout says.
    """
    runs = runs_for(use)
    if runs is None:
        return None
    width, is_last, blocks = runs.width, use.sliding.is_last, runs.blocks
    matrices = dense(weights).reshape(use.groups, width, use.depth)
    is_direct = runs.is_direct and not is_last

    def calls(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        x, y = present(inputs[0]), outputs[0]
        x = np.moveaxis(x, -1, 1) if is_last and not is_moved else x
        y = np.moveaxis(y, -1, 1) if is_last else y
        column = present(inputs[2]).reshape(use.groups, width, 1) if has_bias else None
        rooms = [room(*one) for one in runs.rooms()]
        for image, result in zip(x, y, strict=True):
            for at, block in enumerate(blocks):
                view = runs.views(at, *rooms)
                groups, some = block.groups, _outputs(block, width)
                yield from column_calls(runs, view, image)
                target = result[some, block.rows]
                sums = target.reshape(view.products.shape) if is_direct else view.products
                yield partial(np.matmul, matrices[groups], view.matrices, sums)
                if column is not None:
                    yield partial(np.add, sums, column[groups], sums)
                if finish is not None:
                    yield from fix_run(finish, [sums], [sums], room)
                if not is_direct:
                    yield partial(np.copyto, target, view.sums)

    return quiet(FixableRun(calls))


def _outputs(block: Block, width: int) -> slice:
    return slice(block.groups.start * width, block.groups.stop * width)
