"""The event loop compiled, where the extra `fast` is installed: the same source on arrays."""

from __future__ import annotations

import importlib.util
import types
from collections.abc import Callable
from functools import cache
from typing import Any

from nacre.tcb.machine import event_columns, events, hardware_events
from nacre.tcb.machine.event_columns import Columns

Simulate = Callable[[Columns], int]

# Compiling takes as long as plain Python takes for some millions of instances.
WORTH_COMPILING = 3_000_000


def is_available() -> bool:
    """Whether the compiler is installed."""
    return importlib.util.find_spec("numba") is not None


def is_worth_it(instances: int) -> bool:
    """Whether an image is large enough for the compiler, and the compiler there."""
    return instances >= WORTH_COMPILING and is_available()


def compile_for(made: Columns) -> Simulate:
    """`events.simulate`, compiled for such columns."""
    import numba

    found = _simulate()
    found.compile((numba.typeof(made),))
    simulate: Simulate = found
    return simulate


@cache
def _simulate() -> Any:  # noqa: ANN401 - numba's own type
    """The function that is compiled when it is first called; once a process."""
    import numba

    # Each function is given the compiled forms of those that it calls, in place of the modules'.
    names = {**vars(event_columns), **vars(hardware_events), **vars(events)}
    compiled: dict[str, object] = {}
    for function in events.FUNCTIONS:
        copy = types.FunctionType(function.__code__, {**names, **compiled}, function.__name__)
        # Inlined, or every call would hand over a copy of the whole tuple of columns; and without
        # counting references: nothing here makes or keeps an array.
        compiled[function.__name__] = numba.njit(copy, forceinline=True, _nrt=False, nogil=True)
    return compiled["simulate"]
