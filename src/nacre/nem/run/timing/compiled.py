"""The event loop compiled, where the extra `fast` is installed: the same source on arrays."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

from nacre.base.loops.machine_code import is_available
from nacre.nem.run.timing import events
from nacre.nem.run.timing.events import Columns

Simulate = Callable[[Columns, int], int]

# Compiling takes seconds: a plan must be large to win them back.
WORTH_COMPILING = 200_000


def is_worth_it(steps: int) -> bool:
    """Whether a plan is large enough for the compiler, and the compiler there."""
    return steps >= WORTH_COMPILING and is_available()


def compile_for(made: Columns) -> Simulate:
    """`events.simulate`, compiled for such columns."""
    import numba

    found = _simulate()
    found.compile((numba.typeof(made), numba.int64))
    simulate: Simulate = found
    return simulate


@cache
def _simulate() -> Any:  # noqa: ANN401 - numba's own type
    """The function that is compiled when it is first called; once a process."""
    import numba

    # Each function is given the compiled forms of those that it calls, in place of the module's.
    compiled: dict[str, object] = {}
    for function in events.FUNCTIONS:
        names = {**vars(events), **compiled}
        copy = types.FunctionType(function.__code__, names, function.__name__)
        # Inlined, or every call would hand over a copy of the whole tuple of columns; and without
        # counting references, which would take fifty times as long as the work itself: nothing
        # here makes or keeps an array. Others may run meanwhile: somebody watches the counts.
        compiled[function.__name__] = numba.njit(copy, forceinline=True, _nrt=False, nogil=True)
    return compiled["simulate"]
