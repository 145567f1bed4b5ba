"""RED01-RED07: sums and means over axes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nacre.core.rules.facts import OperationFacts, declare_behaviour, operation_rule
from nacre.core.rules.signature import shape_text

_REDUCTIONS = "Reductions"


@operation_rule("RED01", "reduction-axis", _REDUCTIONS, "Sum", "Mean")
def reduction_axis(facts: OperationFacts) -> Iterator[str]:
    """An axis of a reduction is out of range.

    A negative axis counts from the end: -1 is the last.
    """
    rank = facts.types[0].rank
    wrong = next((axis for axis in facts.ints("axes") or () if not -rank <= axis < rank), None)
    if wrong is not None:
        yield f"axis {wrong} of `{facts.opcode}` is out of range for rank {rank}"


@operation_rule("RED02", "reduction-axis-twice", _REDUCTIONS, "Sum", "Mean")
def reduction_axis_twice(facts: OperationFacts) -> Iterator[str]:
    """A reduction names an axis twice; -1 and the last axis are one."""
    rank, axes = facts.types[0].rank, facts.ints("axes") or ()
    seen = set[int]()
    for axis in axes:
        if not -rank <= axis < rank:
            continue
        if axis % rank in seen:
            yield f"`{facts.opcode}` names axis {axis % rank} twice in axes {shape_text(axes)}"
            return
        seen.add(axis % rank)


_declare_behaviour = partial(declare_behaviour, _REDUCTIONS)
RED03 = _declare_behaviour(
    "RED03",
    "kept-dimensions",
    """
    With `keepdims=true` a reduced axis stays with size 1, with `keepdims=false` it goes.
    """,
)
RED04 = _declare_behaviour(
    "RED04",
    "full-reduction",
    """
    `axes=[]` reduces over all axes to the shape `[]`, whatever `keepdims` says.
    """,
)
RED05 = _declare_behaviour(
    "RED05",
    "reduction-type",
    """
    A reduction keeps the element type; sums of integers wrap.
    """,
)
RED06 = _declare_behaviour(
    "RED06",
    "mean-divisor",
    """
    Mean divides by the number of elements that it reduces, not by the number of axes.
    """,
)
RED07 = _declare_behaviour(
    "RED07",
    "mean-of-integers",
    """
    The mean of integers is exact, then cut towards zero.
    """,
)
