"""Which memory each value has: its own, a part of another's, or a view.

`Concat` and `Pad` are memory in which others write: a part that a task makes is made in its place.
What cannot be is copied there, and so are reshapes that strides cannot say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.partition.views import View
from nacre.core.values import Array

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """Memory that a plan gives a place."""

    dtype: str  # in the legal module
    elements: int
    constant: Array | None = None

    @property
    def elem(self) -> str:
        """The element type in memory; truth values are bytes there."""
        return "u8" if self.dtype == "bool" else self.dtype

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * max(8, GRAPH_TYPES[self.dtype].bits) // 8


@dataclass(frozen=True)
class ViewCopy:
    """Elements that have to be copied; both sides have one shape."""

    source: View
    target: View

    def plain(self) -> Iterator[ViewCopy]:
        """The same by copies without repetition: one of them, then what is there is doubled."""
        zeros = [a for a, s in enumerate(self.source.strides) if s == 0 < self.source.shape[a] - 1]
        rank = len(self.source.shape)
        first = tuple(1 if a in zeros else n for a, n in enumerate(self.source.shape))
        origin, steps = (0,) * rank, (1,) * rank
        yield ViewCopy(
            self.source.slice(origin, steps, first), self.target.slice(origin, steps, first)
        )
        have = list(first)
        for axis in reversed(zeros):
            while have[axis] < self.source.shape[axis]:
                count = min(have[axis], self.source.shape[axis] - have[axis])
                shape = tuple(count if a == axis else n for a, n in enumerate(have))
                at = tuple(have[axis] if a == axis else 0 for a in range(rank))
                old, new = (self.target.slice(start, steps, shape) for start in (origin, at))
                yield ViewCopy(old, new)
                have[axis] += count


@dataclass(frozen=True, eq=False)
class Memory:
    """Tensors, the view that each value is, and the copies that an item needs."""

    tensors: Mapping[int, Tensor]
    views: Mapping[int, View]
    copies: Mapping[int, tuple[ViewCopy, ...]]  # by the result of the item
    outputs: tuple[View, ...]  # where the outputs lie, whole tensors
    output_copies: tuple[ViewCopy, ...]
