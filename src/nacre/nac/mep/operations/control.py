"""Loops, branches and the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import (
    Fault,
    TokenizerValue,
    Value,
    truth_value,
    unfit_fault,
    whole_number,
)
from nacre.nac.mep.work import Loop, Work
from nacre.nac.rules.plans import NAC92

_MOST_LOOPS = 64


@performs("loop_start")
def loop_start(work: Work, count: Value) -> None:
    """Enter a loop, or skip it."""
    times = whole_number(count, "the count of the loop")
    end = work.loop_ends[work.at]
    if times <= 0:
        work.next = end + 1
        return
    if len(work.loops) >= _MOST_LOOPS:
        raise Fault(NAC92, f"the plan is in {len(work.loops)} loops already, at most {_MOST_LOOPS}")
    work.loops.append(Loop(end, times))


@performs("loop_end")
def loop_end(work: Work, target: int) -> None:
    """Go round again, or leave. Loops that a branch has jumped out of are left as well."""
    place = next((i for i, loop in enumerate(work.loops) if loop.end == work.at), None)
    if place is None:
        raise Fault(NAC92, "the plan is not in the loop that ends here")
    del work.loops[place + 1 :]
    work.loops[-1].left -= 1
    if work.loops[-1].left > 0:
        work.next = target
    else:
        work.loops.pop()


@performs("branch_if")
def branch_if(work: Work, condition: Value, target: int) -> None:
    """Jump."""
    if truth_value(condition, "the condition"):
        work.next = target


@performs("break_loop_if")
def break_loop_if(work: Work, condition: Value, target: int) -> None:
    """Leave the innermost loop."""
    if not truth_value(condition, "the condition"):
        return
    if not work.loops:
        raise Fault(NAC92, "the plan is in no loop")
    work.loops.pop()
    work.next = target


@performs("return")
def return_(work: Work, values: Sequence[Value]) -> None:
    """End with outputs, which belong to the caller."""
    for place, value in enumerate(values):
        if isinstance(value, TokenizerValue):
            raise unfit_fault(f"output {place}", value, "something to return")
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    work.budget.take(sum(array.nbytes for array in arrays))
    work.outputs = [v.copy() if isinstance(v, np.ndarray) else v for v in values]


@performs("halt")
def halt(work: Work) -> None:
    """End without outputs."""
    work.outputs = []
