"""Values along rows of the cache, in two parts: rows that are there, and rows that are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from nacre.core.builder import Builder
from nacre.core.module import CoreOperation
from nacre.llm.onnx_decoder.visibility import Visibility


@dataclass(frozen=True)
class Split:
    """A value whose rows along an axis are those of the cache, then those of the step."""

    old: int
    new: int
    axis: int
    # Of scores: what masks that were taken off let tokens see.
    seen: Visibility = field(default_factory=Visibility)
    cache: int | None = None  # the part of the cache that it is, unchanged


def moved_axis(shape: Sequence[int], axis: int, to: Sequence[int]) -> int | None:
    """The axis that is the same one under another shape; None where it is torn or merged."""
    before = prod(shape[:axis])
    for at, size in enumerate(to):
        if size == shape[axis] and prod(to[:at]) == before:
            return at
    return None


def with_size(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    """A shape with another size of an axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def part_of(b: Builder, x: int, axis: int, start: int, end: int) -> int:
    """A part along an axis."""
    shape = b.type_of(x).shape
    starts = with_size((0,) * len(shape), axis, start)
    return b.add(
        "Slice", x, starts=starts, ends=with_size(shape, axis, end), steps=(1,) * len(shape)
    )


def reshape(b: Builder, x: int, shape: Sequence[int]) -> int:
    """A tensor under another shape."""
    return x if b.type_of(x).shape == tuple(shape) else b.add("Reshape", x, new_shape=tuple(shape))


def multiply(b: Builder, left: int, right: int) -> int:
    """A product of matrices; heads that share one of keys or values become rows of one product.

    Exporters repeat keys for each head of queries, which would move the cache once for each.
    """
    repeated = _find_repeat(b, right)
    if repeated is None:
        return b.add("MatMul", left, right)
    inner, axis, count = repeated
    shape = b.type_of(left).shape
    few = b.type_of(inner).shape
    if axis != len(few) - 3 or shape[:-2] != (*few[:axis], few[axis] * count):
        return b.add("MatMul", left, right)
    rows = (*few[: axis + 1], count * shape[-2], shape[-1])
    product = b.add("MatMul", reshape(b, left, rows), inner)
    return reshape(b, product, (*shape[:-1], few[-1]))


def _find_repeat(b: Builder, value: int) -> tuple[int, int, int] | None:
    """What heads were repeated of, along which axis and how often, transposed as the value is."""
    op = b.operation(value)
    if op.opcode == "Transpose":
        order = tuple(op.attributes["permutation"])
        rank = len(order)
        found = _find_repeat(b, op.operands[0])
        if found is None or order != (*range(rank - 2), rank - 1, rank - 2):
            return None
        inner, axis, count = found
        return b.add("Transpose", inner, permutation=order), axis, count
    whole = op
    broadcast = b.operation(whole.operands[0]) if whole.opcode == "Reshape" else None
    if broadcast is None or broadcast.opcode != "Broadcast":
        return None
    apart = b.operation(broadcast.operands[0])
    if apart.opcode != "Reshape":
        return None
    return _match_repeat(b, whole, broadcast, apart)


def _match_repeat(
    b: Builder, whole: CoreOperation, broadcast: CoreOperation, apart: CoreOperation
) -> tuple[int, int, int] | None:
    """Reshape(Broadcast(Reshape(x))) that repeats each place of an axis of x in turn."""
    inner = apart.operands[0]
    shape, one, many = b.type_of(inner).shape, apart.type.shape, broadcast.type.shape
    if len(one) != len(many) or len(one) != len(shape) + 1:
        return None
    widened_axes = [at for at, pair in enumerate(zip(one, many, strict=True)) if len({*pair}) > 1]
    if len(widened_axes) != 1 or widened_axes[0] == 0:
        return None
    at = widened_axes[0]
    axis, count = at - 1, many[at]
    is_apart = one == (*shape[: axis + 1], 1, *shape[axis + 1 :])
    joined = with_size(shape, axis, shape[axis] * count)
    return (inner, axis, count) if is_apart and whole.type.shape == joined else None
