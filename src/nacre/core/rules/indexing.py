"""IDX01-IDX03, SLC01-SLC05, GAT01-GAT05: Index, Slice and Gather."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nacre.core.module import Shape
from nacre.core.rules.facts import OperationFacts, declare_behaviour, operation_rule
from nacre.core.rules.signature import shape_text

_INDEXING = "Indexing and slicing"


@operation_rule("IDX01", "index-length", _INDEXING, "Index")
def index_length(facts: OperationFacts) -> Iterator[str]:
    """An Index does not have one index for every axis."""
    indices, rank = facts.ints("indices") or (), facts.types[0].rank
    if len(indices) != rank:
        yield f"`Index` has {len(indices)} indices, expected {rank}"


@operation_rule("IDX02", "index-out-of-bounds", _INDEXING, "Index", severity="warning")
def index_out_of_bounds(facts: OperationFacts) -> Iterator[str]:
    """An Index is outside of its tensor: it is an error when the module runs.

    Negative indices do not count from the end.
    """
    indices, shape = facts.ints("indices") or (), facts.types[0].shape
    if len(indices) != len(shape):
        return
    for axis, (index, size) in enumerate(zip(indices, shape, strict=True)):
        if not 0 <= index < size:
            yield f"index is {index} along axis {axis}, expected 0 to {size - 1}"
            return


@operation_rule("SLC01", "slice-lengths", _INDEXING, "Slice")
def slice_lengths(facts: OperationFacts) -> Iterator[str]:
    """`starts`, `ends` and `steps` of a Slice do not all have one entry for every axis."""
    rank = facts.types[0].rank
    lengths = [len(part) for part in _parts(facts)]
    if lengths != [rank] * 3:
        found = "/".join(map(str, lengths))
        yield f"starts, ends and steps of `Slice` have {found} entries, expected {rank} each"


@operation_rule("SLC02", "slice-step", _INDEXING, "Slice")
def slice_step(facts: OperationFacts) -> Iterator[str]:
    """A step of a Slice is zero or negative."""
    for axis, step in enumerate(facts.ints("steps") or ()):
        if step < 1:
            yield f"step is {step} along axis {axis} of `Slice`, expected a positive number"
            return


@operation_rule("SLC04", "empty-slice", _INDEXING, "Slice")
def empty_slice(facts: OperationFacts) -> Iterator[str]:
    """A Slice takes nothing along an axis, and dimensions of size 0 do not exist.

    Starts and ends are first moved to the nearest place inside the axis.
    """
    starts, ends, steps = _parts(facts)
    shape = facts.types[0].shape
    if not len(starts) == len(ends) == len(steps) == len(shape) or min(steps, default=1) < 1:
        return
    for axis, (start, end, size) in enumerate(zip(starts, ends, shape, strict=True)):
        if min(max(end, 0), size) <= min(max(start, 0), size):
            yield f"`Slice` takes nothing along axis {axis} of size {size}: {start} up to {end}"
            return


def _parts(facts: OperationFacts) -> tuple[Shape, Shape, Shape]:
    return facts.ints("starts") or (), facts.ints("ends") or (), facts.ints("steps") or ()


@operation_rule("GAT01", "gather-indices", _INDEXING, "Gather")
def gather_indices(facts: OperationFacts) -> Iterator[str]:
    """The indices of a Gather are neither `i32` nor `i64`."""
    if facts.types[1].dtype not in ("i32", "i64"):
        yield f"the indices of `Gather` are `{facts.types[1].dtype}`, expected `i32` or `i64`"


@operation_rule("GAT05", "gather-of-scalar", _INDEXING, "Gather")
def gather_of_scalar(facts: OperationFacts) -> Iterator[str]:
    """The input of a Gather is a scalar: there is no first axis to index."""
    if facts.types[0].rank == 0:
        yield f"the input of `Gather` has shape {shape_text(())}, expected one axis or more"


_declare_behaviour = partial(declare_behaviour, _INDEXING)
IDX03 = _declare_behaviour(
    "IDX03",
    "index-result",
    """
    An Index gives a scalar of its input's element type.
    """,
)
SLC03 = _declare_behaviour(
    "SLC03",
    "slice-size",
    """
    A Slice has ceil((end - start) / step) elements along an axis.
    """,
)
SLC05 = _declare_behaviour(
    "SLC05",
    "slice-clamped",
    """
    Starts and ends of a Slice outside of an axis are moved to its nearest end.

    Negative ones become 0; they do not count from the end.
    """,
)
GAT02 = _declare_behaviour(
    "GAT02",
    "gather-shape",
    """
    A Gather has the shape of its indices, then that of its input without the first axis.
    """,
)
GAT03 = _declare_behaviour(
    "GAT03",
    "gather-type",
    """
    A Gather has the element type of its input.
    """,
)
GAT04 = _declare_behaviour(
    "GAT04",
    "gather-out-of-bounds",
    """
    An index of a Gather outside of the first axis is an error when the module runs.
    """,
)
