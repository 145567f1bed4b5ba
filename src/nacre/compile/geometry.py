"""What a layer computes, as rows: every output row needs some input rows and all weights.

Linear layers, convolutions and elementwise layers have the same outline. An image is `in_rows`
rows of `x_inner` elements; an output row takes `window` of them, `stride` apart from the next, and
has `y_inner` elements, the last axis of which, the columns, may be cut as well. Weights are
[*w_inner, columns].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Dims = tuple[int, ...]


def swap_of(shape: Dims, permutation: Dims) -> Dims | None:
    """A transposition as [B, A, C, D] to [B, C, A, D]; None where it is not of this kind.

    Axes of size 1 play no part, and those that stay together count as one.
    """
    kept = [axis for axis in permutation if shape[axis] != 1]
    groups: list[list[int]] = []
    for axis in kept:
        if groups and axis == _next(groups[-1][-1], shape):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    order = sorted(range(len(groups)), key=lambda i: groups[i][0])  # as they stand in the input
    sizes = [prod(shape[axis] for axis in groups[i]) for i in order]
    places = [order.index(i) for i in range(len(groups))]  # of each group of the result
    for first, last in ((0, 0), (1, 0), (0, 1), (1, 1)):
        middle = len(places) - first - last
        ends = [0] * first + [len(places) - 1] * last
        if middle == 2 and places == [*ends[:first], first + 1, first, *ends[first:]]:
            before = sizes[0] if first else 1
            after = sizes[-1] if last else 1
            return before, sizes[first], sizes[first + 1], after
    return None


def _next(axis: int, shape: Dims) -> int:
    """The next axis that has more than one element."""
    following = axis + 1
    while following < len(shape) and shape[following] == 1:
        following += 1
    return following


@dataclass(frozen=True)
class Tile:
    """Some output rows of an image and the input rows that they need."""

    first: int  # output row
    rows: int
    x_first: int  # input row
    x_rows: int
    above: int = 0  # rows of padding
    below: int = 0

    @property
    def is_inner(self) -> bool:
        """Whether no padding is needed: such tiles differ in their place only."""
        return not (self.above or self.below)


@dataclass(frozen=True)
class Geometry:
    """The outline of a layer."""

    images: int
    in_rows: int
    out_rows: int
    x_inner: Dims
    y_inner: Dims
    w_inner: Dims = ()
    sources: int = 1  # tensors that are read row by row
    window: int = 1  # with dilation
    stride: int = 1
    above: int = 0
    has_bias: bool = False
    cuts_columns: bool = False
    swap: Dims = ()  # [A, C, D] of a transposition to [C, A, D]: rows are C
    element_bytes: int = 2

    @property
    def columns(self) -> int:
        """The size of the last axis of the output."""
        return self.y_inner[-1]

    @property
    def macs(self) -> int:
        """Multiplications and additions of the whole layer."""
        return self.images * self.out_rows * prod(self.y_inner) * prod(self.w_inner or (0,))

    @property
    def x_row_bytes(self) -> int:
        """Bytes of an input row."""
        return prod(self.x_inner) * self.element_bytes

    def x_tile_bytes(self, rows: int) -> int:
        """Bytes of the input rows that some output rows need, of all sources."""
        needed = min((rows - 1) * self.stride + self.window, self.in_rows)
        return needed * self.x_row_bytes

    def y_tile_bytes(self, rows: int, columns: int) -> int:
        """Bytes of a tile of the output."""
        return rows * prod(self.y_inner[:-1]) * columns * self.element_bytes

    def w_block_bytes(self, columns: int) -> int:
        """Bytes of the weights of some columns, their bias behind them."""
        if not self.w_inner:
            return 0
        return (prod(self.w_inner) + self.has_bias) * columns * self.element_bytes

    def tile(self, first: int, rows: int) -> Tile:
        """The tile of some output rows."""
        start = first * self.stride - self.above
        end = start + (rows - 1) * self.stride + self.window
        above, below = max(0, -start), max(0, end - self.in_rows)
        return Tile(first, rows, start + above, end - below - start - above, above, below)

    def is_sound(self, rows: int) -> bool:
        """Whether every tile reads something: none lies wholly in the padding above or below."""
        last = (self.out_rows - 1) // rows * rows
        ends = self.tile(0, min(rows, self.out_rows)), self.tile(last, self.out_rows - last)
        return all(tile.x_rows > 0 for tile in ends)

    def tiles(self, rows: int) -> tuple[Tile, ...]:
        """All tiles of an image, top to bottom; the last one may be smaller."""
        starts = range(0, self.out_rows, rows)
        return tuple(self.tile(first, min(rows, self.out_rows - first)) for first in starts)
