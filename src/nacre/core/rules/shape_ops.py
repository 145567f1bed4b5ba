"""SHP01-SHP10: Reshape, Transpose, ExpandDims and Squeeze."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nacre.core.module import Shape
from nacre.core.rules.facts import OperationFacts, declare_behaviour, operation_rule
from nacre.core.rules.signature import count_text, element_count, number_text, shape_text

_SHAPES = "Shape manipulation"


@operation_rule("SHP01", "element-count-kept", _SHAPES, "Reshape")
def element_count_kept(facts: OperationFacts) -> Iterator[str]:
    """A Reshape changes the number of elements."""
    target = facts.ints("new_shape") or ()
    if not _is_shape(target) or -1 in target:
        return
    count, wanted = element_count(target), element_count(facts.types[0].shape)
    if count != wanted:
        message = f"new_shape {shape_text(target)} has {count_text(count)} elements"
        yield f"{message}, the input has {wanted}"


@operation_rule("SHP02", "new-shape", _SHAPES, "Reshape")
def new_shape(facts: OperationFacts) -> Iterator[str]:
    """A dimension of `new_shape` is neither positive nor -1, or more than one is -1."""
    target = facts.ints("new_shape") or ()
    wrong = next((dim for dim in target if dim < 1 and dim != -1), None)
    if wrong is not None:
        yield f"new_shape has the dimension {number_text(wrong)}, expected a positive number or -1"
    elif target.count(-1) > 1:
        yield f"new_shape has {target.count(-1)} dimensions -1, expected at most one"


@operation_rule("SHP03", "inferred-dimension", _SHAPES, "Reshape")
def inferred_dimension(facts: OperationFacts) -> Iterator[str]:
    """The other dimensions of `new_shape` do not divide the number of elements."""
    target = facts.ints("new_shape") or ()
    if not _is_shape(target) or -1 not in target:
        return
    known = element_count(dim for dim in target if dim != -1)
    count = element_count(facts.types[0].shape)
    if count % known:
        message = f"the dimensions of new_shape {shape_text(target)} make {count_text(known)}"
        yield f"{message}, which does not divide {count} elements"


def _is_shape(target: Shape) -> bool:
    return target.count(-1) <= 1 and all(dim > 0 or dim == -1 for dim in target)


@operation_rule("SHP04", "permutation-length", _SHAPES, "Transpose")
def permutation_length(facts: OperationFacts) -> Iterator[str]:
    """The permutation of a Transpose does not have as many axes as the input."""
    permutation, rank = facts.ints("permutation") or (), facts.types[0].rank
    if len(permutation) != rank:
        yield f"permutation {shape_text(permutation)} has {len(permutation)} axes, expected {rank}"


@operation_rule("SHP05", "permutation", _SHAPES, "Transpose")
def permutation(facts: OperationFacts) -> Iterator[str]:
    """The permutation of a Transpose names an axis twice or one that does not exist."""
    axes, rank = facts.ints("permutation") or (), facts.types[0].rank
    if len(axes) != rank:
        return
    wrong = next((axis for axis in axes if not 0 <= axis < rank), None)
    if wrong is not None:
        yield f"axis {wrong} of permutation {shape_text(axes)} is out of range for rank {rank}"
    elif (twice := _first_repeated(axes)) is not None:
        yield f"permutation {shape_text(axes)} names axis {twice} twice"


@operation_rule("SHP07", "inserted-axis", _SHAPES, "ExpandDims")
def inserted_axis(facts: OperationFacts) -> Iterator[str]:
    """An axis of an ExpandDims is out of range when its turn comes.

    Axes are inserted one after the other in ascending order, so unsorted axes are sorted. Each
    may be at most the rank that the tensor has by then; negative ones are not allowed.
    """
    rank = facts.types[0].rank
    for done, axis in enumerate(sorted(facts.ints("axes") or ())):
        if not 0 <= axis <= rank + done:
            yield f"axis {axis} is out of range for rank {rank + done}, expected 0 to {rank + done}"
            return


@operation_rule("SHP09", "removed-axis", _SHAPES, "Squeeze")
def removed_axis(facts: OperationFacts) -> Iterator[str]:
    """An axis of a Squeeze is out of range, named twice, or has another size than 1."""
    axes, shape = facts.ints("axes") or (), facts.types[0].shape
    wrong = next((axis for axis in axes if not 0 <= axis < len(shape)), None)
    if wrong is not None:
        yield f"axis {wrong} of `Squeeze` is out of range for rank {len(shape)}"
        return
    if (twice := _first_repeated(axes)) is not None:
        yield f"`Squeeze` names axis {twice} twice in axes {shape_text(axes)}"
        return
    large = next((axis for axis in axes if shape[axis] != 1), None)
    if large is not None:
        size = shape[large]
        yield f"axis {large} of `Squeeze` has size {size} in {shape_text(shape)}, expected 1"


def _first_repeated(axes: Shape) -> int | None:
    seen = set[int]()
    for axis in axes:
        if axis in seen:
            return axis
        seen.add(axis)
    return None


_declare_behaviour = partial(declare_behaviour, _SHAPES)
SHP06 = _declare_behaviour(
    "SHP06",
    "transposed-shape",
    """
    Dimension i of a Transpose is dimension permutation[i] of its input.
    """,
)
SHP08 = _declare_behaviour(
    "SHP08",
    "inserted-axis-twice",
    """
    ExpandDims may name an axis twice: each one counts after the insertions before it.
    """,
)
SHP10 = _declare_behaviour(
    "SHP10",
    "squeezed-rank",
    """
    Squeeze removes as many axes as it names; with `axes=[]` it changes nothing.
    """,
)
