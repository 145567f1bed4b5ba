"""Rows and what they need: transpositions as runs of axes, and windows that slide over rows."""

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
class Window:
    """How a window slides over the rows of an image, and what it sees beside its row."""

    in_rows: int
    height: int  # with dilation
    stride: int
    above: int
    sides: tuple[int, int]  # padding at the left and at the right
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1

    def is_plain(self, out_rows: int) -> bool:
        """Whether output rows see the input row in their place, and no other."""
        return self.kernel[0] == 1 and self.stride == 1 and out_rows == self.in_rows

    def reach(self, rows: int) -> int:
        """At most so many input rows are needed for so many output rows."""
        return min((rows - 1) * self.stride + self.height, self.in_rows)

    def tile(self, first: int, rows: int) -> Tile:
        """The tile of some output rows."""
        start = first * self.stride - self.above
        end = start + (rows - 1) * self.stride + self.height
        above, below = max(0, -start), max(0, end - self.in_rows)
        return Tile(first, rows, start + above, end - below - start - above, above, below)

    def is_sound(self, out_rows: int, rows: int) -> bool:
        """Whether every tile reads something: none lies wholly in the padding above or below."""
        last = (out_rows - 1) // rows * rows
        ends = self.tile(0, min(rows, out_rows)), self.tile(last, out_rows - last)
        return all(tile.x_rows > 0 for tile in ends)


def tiles(window: Window | None, out_rows: int, rows: int) -> tuple[Tile, ...]:
    """All tiles of an image, top to bottom; the last one may be smaller."""
    found = []
    for first in range(0, out_rows, rows):
        count = min(rows, out_rows - first)
        plain = Tile(first, count, first, count)
        found.append(plain if window is None else window.tile(first, count))
    return tuple(found)
