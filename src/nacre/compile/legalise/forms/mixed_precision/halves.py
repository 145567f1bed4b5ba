"""Numbers of f32 in two halves of f16, a rounded one and the rest, and scales that suit them.

The rest of each is multiplied until it has all digits that f16 can give it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log2, prod

import numpy as np

from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

REST = 2.0**11  # what f16 rounds off, times this, is as large as the number
LARGEST, SPARE = 2.0**14, 2.0**15  # of a row that is divided by its largest; of its products
_LEAST, _MOST = 1e-37, 3e38  # of what f32 can be divided by
_LONGEST = 1 << 13  # of rows whose largest is looked for at once
Record = Callable[[int], int]  # notes a value that stays f32


class F32Writer:
    """Adds operations of f32, and notes that they are."""

    def __init__(
        self, site: RewriteSite, record: Record, *, needs_more_digits: bool = False
    ) -> None:
        self.site = site
        self.needs_more_digits = needs_more_digits  # results have more digits than f16 has
        self.record = record

    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        """An operation in f32."""
        return self.record(self.site.add(opcode, *operands, **attributes))

    def times(self, value: int, factor: float) -> int:
        """A value times a number."""
        if factor == 1:
            return value
        return self.add("BinOp", value, self.site.literal(np.array(factor), "f32"), op="Mul")

    def reshape(self, value: int, shape: tuple[int, ...]) -> int:
        """A value in another shape."""
        if self.site.type(value).shape == shape:
            return value
        return self.add("Reshape", value, new_shape=shape)

    def largest(self, x: int, axes: tuple[int, ...]) -> int:
        """The largest magnitude along axes."""
        size = self.add("Unary", x, op="Abs")
        return self.add("Reduce", size, axes=axes, keepdims=True, op="Max")

    def divisor(self, top: int, most: float) -> int:
        """What brings the largest element to a number; never 0."""
        return self.add("Clip", self.times(top, 1 / most), min=_LEAST, max=_MOST)

    def scale_to_largest(self, x: int, most: float) -> tuple[int, int]:
        """What brings the largest element of all to a number, and x divided by it."""
        size, rank = prod(self.site.type(x).shape), self.site.type(x).rank
        row = max(n for n in range(1, _LONGEST) if size % n == 0)
        top = self.largest(self.reshape(x, (size // row, row)), (1,))
        if size > row:
            top = self.largest(self.reshape(top, (1, size // row)), (1,))
        divisor = self.divisor(self.reshape(top, (1,) * rank), most)
        return divisor, self.add("BinOp", x, divisor, op="Div")

    def split(self, x: int) -> tuple[int, int]:
        """A value in f16, and what that leaves."""
        high = self.site.add("Cast", x, to="f16")
        rest = self.add("BinOp", x, self.site.add("Cast", high, to="f32"), op="Sub")
        return high, self.site.add("Cast", self.times(rest, REST), to="f16")

    def join(self, high: int, rest: int) -> int:
        """Two products in f32, of which the second is what the first leaves."""
        wide = [self.site.add("Cast", value, to="f32") for value in (high, rest)]
        return self.add("BinOp", wide[0], self.times(wide[1], 1 / REST), op="Add")


def scale_to_one(array: Array, axes: tuple[int, ...]) -> tuple[Array, float, float]:
    """Weights with a largest element near 1, by which factor, and what x may be at most."""
    grown = 2.0 ** -floor(log2(float(np.max(np.abs(array), initial=1e-300))))
    sums = float(np.max(np.sum(np.abs(array * grown), axis=axes)))
    return array * grown, grown, min(LARGEST, 2.0 ** floor(log2(SPARE / max(sums, 1.0))))


def split_in_halves(array: Array) -> tuple[Array, Array]:
    """Weights as f16 has them, and what that leaves, as many times larger as x's."""
    high: Array = array.astype(np.float16).astype(np.float64)
    return high, (array - high) * REST
