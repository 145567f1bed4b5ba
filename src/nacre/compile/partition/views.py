"""Tensors as parts of others: an offset and strides into the tensor that holds the elements.

A slice, a broadcast and most reshapes cost nothing: who reads them reads the tensor with other
strides. A stride of 0 repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

Dims = tuple[int, ...]


def dense(shape: Dims) -> Dims:
    """The strides of elements that lie close together, the last axis fastest."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


@dataclass(frozen=True)
class View:
    """Some elements of a tensor under a shape."""

    tensor: int  # the value whose memory it is
    shape: Dims
    strides: Dims
    offset: int = 0  # all in elements

    @staticmethod
    def whole(tensor: int, shape: Dims) -> View:
        """All elements of a tensor."""
        return View(tensor, shape, dense(shape))

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie close together in their order."""
        return all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(
                self.shape, self.strides, dense(self.shape), strict=True
            )
        )

    def is_same(self, other: View) -> bool:
        """Whether both show the same elements in one order; strides of single ones say nothing."""
        mine, theirs = (
            tuple(s for n, s in zip(v.shape, v.strides, strict=True) if n > 1)
            for v in (self, other)
        )
        is_there = (self.tensor, self.offset, self.shape) == (
            other.tensor,
            other.offset,
            other.shape,
        )
        return is_there and mine == theirs

    def slice(self, starts: Dims, steps: Dims, shape: Dims) -> View:
        """Every `step`-th element from `start` on, so many of them along each axis."""
        offset = sum(s * stride for s, stride in zip(starts, self.strides, strict=True))
        strides = tuple(s * stride for s, stride in zip(steps, self.strides, strict=True))
        return replace(self, shape=shape, strides=strides, offset=self.offset + offset)

    def broadcast(self, shape: Dims) -> View:
        """Repeated to a shape, as NumPy does it."""
        missing = len(shape) - len(self.shape)
        strides = (0,) * missing + tuple(
            stride if size == wanted else 0
            for size, wanted, stride in zip(self.shape, shape[missing:], self.strides, strict=True)
        )
        return replace(self, shape=shape, strides=strides)

    def permute(self, order: Dims) -> View:
        """The axes in another order."""
        shape = tuple(self.shape[axis] for axis in order)
        return replace(self, shape=shape, strides=tuple(self.strides[axis] for axis in order))

    def reshape(self, shape: Dims) -> View | None:
        """The same elements in their order under another shape; None where strides cannot."""
        sizes, (strides,) = collapse_axes(self.shape, [self.strides])
        new_strides: list[int] = []
        axis, left = len(shape) - 1, list(zip(sizes, strides, strict=True))
        while left:
            size, stride = left.pop()
            while size > 1:
                if axis < 0 or size % shape[axis]:
                    return None
                new_strides.insert(0, stride)
                stride, size, axis = stride * shape[axis], size // shape[axis], axis - 1
        if any(dim != 1 for dim in shape[: axis + 1]):
            return None
        return replace(self, shape=shape, strides=(0,) * (axis + 1) + tuple(new_strides))


def collapse_axes(shape: Dims, strides: Sequence[Dims]) -> tuple[Dims, list[Dims]]:
    """The fewest axes that still say where every element lies, for several tensors at once.

    Axes of size 1 vanish; neighbours become one where all tensors step through both evenly.
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        own = [s[axis] for s in strides]
        if sizes and all(
            step[-1] == stride * size for step, stride in zip(steps, own, strict=True)
        ):
            sizes[-1] *= size
            for step, stride in zip(steps, own, strict=True):
                step[-1] = stride
        else:
            sizes.append(size)
            for step, stride in zip(steps, own, strict=True):
                step.append(stride)
    return tuple(sizes), [tuple(step) for step in steps]


def reach(shape: Dims, strides: Dims) -> int:
    """How many elements lie from the first to the last, both counted."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def elements(shape: Dims) -> int:
    """How many elements a shape has."""
    return prod(shape)
