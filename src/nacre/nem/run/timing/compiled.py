"""The event loop compiled, where the extra `fast` is installed: the same source on arrays."""

from __future__ import annotations

import importlib.util
import types
from collections.abc import Callable
from functools import cache

from nacre.nem.run.timing import events
from nacre.nem.run.timing.events import Columns

# Compiling takes seconds: a plan must be large to win them back.
WORTH_COMPILING = 200_000


def is_available() -> bool:
    """Whether the compiler is installed."""
    return importlib.util.find_spec("numba") is not None


def is_worth_it(steps: int) -> bool:
    """Whether a plan is large enough for the compiler, and the compiler there."""
    return steps >= WORTH_COMPILING and is_available()


@cache
def simulate() -> Callable[[Columns, int], int]:
    """`events.simulate`, compiled once a process."""
    import numba

    # Each function is given the compiled forms of those that it calls, in place of the module's.
    compiled: dict[str, object] = {}
    for function in events.FUNCTIONS:
        names = {**vars(events), **compiled}
        copy = types.FunctionType(function.__code__, names, function.__name__)
        # Inlined, or every call would hand over a copy of the whole tuple of columns; and without
        # counting references, which would take fifty times as long as the work itself: nothing
        # here makes or keeps an array.
        compiled[function.__name__] = numba.njit(copy, forceinline=True, _nrt=False)
    entry: Callable[[Columns, int], int] = compiled["simulate"]  # type: ignore[assignment]
    return entry
