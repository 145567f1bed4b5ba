"""One operation on the way back: its operands, its result, and the gradient by that result.

A gradient may be thin: of a shape that only broadcasts to that of the result, when it is the same
along some axes. A seed is a single 1, and what `Sum` spreads is not stretched before it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from msgspec import Struct

from nacre.core.gradients.writer import Value, Writer
from nacre.core.module import CoreOperation, Shape


class GradientSite(Struct, frozen=True):
    """A use of an operation; `index` says which operand's gradient is asked for."""

    writer: Writer
    op: CoreOperation
    attributes: Mapping[str, Any]  # with defaults
    operands: tuple[Value, ...]
    y: Value
    compact_g: Value  # the gradient by the result
    index: int
    shared: dict[str, Any]  # what the rules of one operation's operands hand on to each other

    @property
    def x(self) -> Value:
        """The first operand."""
        return self.operands[0]

    @property
    def operand(self) -> Value:
        """The operand whose gradient is asked for."""
        return self.operands[self.index]

    @property
    def g(self) -> Value:
        """The gradient by the result, in its shape."""
        return self.writer.broadcast_to(self.compact_g, self.y.shape)

    @property
    def scalar_gradient(self) -> Value | None:
        """The gradient as a scalar, where it is the same everywhere."""
        return self.compact_g.reshape(()) if prod(self.compact_g.shape) == 1 else None

    def zeros(self, value: Value) -> Value:
        """Zeros of the type of a value."""
        return self.writer.fill(0.0, value.dtype, value.shape)

    def unbroadcast(self, value: Value) -> Value:
        """A gradient by the result of a broadcast, summed to the shape of the operand."""
        return sum_to(value, self.y.shape, self.operand.shape)


# The gradient by one operand, of a shape that broadcasts to that of the operand.
Rule = Callable[[GradientSite], Value]


def sum_to(value: Value, whole: Shape, target: Shape) -> Value:
    """Undo the broadcast of `target` to `whole`; the value may be thin."""
    fresh = len(whole) - len(target)
    hidden = len(whole) - value.rank  # axes that a thin value does not even have
    axes, count = [], 1
    for axis, size in enumerate(whole):
        if size == 1 or (axis >= fresh and target[axis - fresh] == size):
            continue
        if axis < hidden or value.shape[axis - hidden] == 1:
            count *= size
        else:
            axes.append(axis - hidden)
    dropped = max(0, value.rank - len(target))
    total = value.sum(axes, keepdims=axes != list(range(dropped)))
    if total.rank > len(target):
        total = total.reshape(total.shape[total.rank - len(target) :])
    return total * float(count) if count > 1 else total


def restore_axes(site: GradientSite, value: Value, axes: Sequence[int]) -> Value:
    """A value of the shape of a reduction's result, so that it broadcasts against its operand."""
    if value.rank == 0 or site.y.rank == site.x.rank:
        return value
    left = iter((1,) * (site.y.rank - value.rank) + value.shape)
    return value.reshape([1 if axis in axes else next(left) for axis in range(site.x.rank)])
