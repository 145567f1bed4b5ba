"""Values that are parts of others as these lie in memory: a run has nothing to do for them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from math import prod
from types import MappingProxyType

from nacre.core.module import CoreOperation, Module, Shape

# Where the elements of a result begin among those of its operand, whose shape is given; None where
# they do not follow each other there.
_Begin = Callable[[Shape, CoreOperation], int | None]


def _no_offset(shape: Shape, op: CoreOperation) -> int | None:
    return 0


def _transpose_offset(shape: Shape, op: CoreOperation) -> int | None:
    """Axes of length 1 may move; the others must stay in order."""
    moved = [axis for axis in op.attributes["permutation"] if shape[axis] > 1]
    return 0 if moved == sorted(moved) else None


def _slice_offset(shape: Shape, op: CoreOperation) -> int | None:
    """Before the first axis of which there is more than one, anything; behind it all of each."""
    given = op.attributes
    bounds = zip(given["starts"], given["ends"], given["steps"], shape, strict=True)
    parts = [range(*slice(start, end, step).indices(dim)) for start, end, step, dim in bounds]
    first = next((axis for axis, part in enumerate(parts) if len(part) > 1), len(parts))
    if any(part != range(dim) for part, dim in zip(parts[first + 1 :], shape[first + 1 :],
                                                   strict=True)):  # fmt: skip
        return None
    if first < len(parts) and parts[first].step != 1:
        return None
    return sum(part.start * prod(shape[axis + 1 :]) for axis, part in enumerate(parts))


_VIEWS: Mapping[str, _Begin] = MappingProxyType(
    {
        "Reshape": _no_offset,
        "ExpandDims": _no_offset,
        "Squeeze": _no_offset,
        "Transpose": _transpose_offset,
        "Slice": _slice_offset,
    }
)


def dense_views(module: Module, separate: Container[int]) -> dict[int, tuple[int, int]]:
    """Values that lie within others: which one, and the offset in elements.

    The other is no view itself. What lies apart, has memory of its own, is never looked into and
    never left out.
    """
    views: dict[int, tuple[int, int]] = {}
    for op in module.operations:
        begin_of = _VIEWS.get(op.opcode)
        if begin_of is None or op.value_id in separate or op.operands[0] in separate:
            continue
        begin = begin_of(module.by_id[op.operands[0]].type.shape, op)
        if begin is not None:
            root, offset = views.get(op.operands[0], (op.operands[0], 0))
            views[op.value_id] = root, offset + begin
    return views
