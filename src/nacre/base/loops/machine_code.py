"""Functions in plain Python as machine code, where the extra `fast` is installed.

To load the compiler takes most of a second, and to compile a function seconds. What was compiled
is kept on disk beside its source, or where the compiler keeps such things for a user, and the next
process loads it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any

# Seconds of work that is worth loading the compiler for, and compiling a function of some lines:
# the processor spends about as much on that.
_LOADING, _COMPILING = 1.0, 3.0


@cache
def is_available() -> bool:
    """Whether the compiler is installed."""
    return importlib.util.find_spec("numba") is not None


def compiled_once(function: Callable[..., Any], **options: Any) -> Any:  # noqa: ANN401
    """A function to be compiled when it is first called, or loaded; it is kept where it can be."""
    import numba

    options |= {"_nrt": False, "error_model": "numpy", "nogil": True}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # there is no place to keep it
        return numba.njit(function, **options)


def is_kept(found: Any) -> bool:  # noqa: ANN401 - numba's own type
    """Whether machine code lies on disk, from this process or one before."""
    folder = found.stats.cache_path
    return folder is not None and any(Path(folder).glob(f"*{found.py_func.__name__}*.nbc"))


_ALL: list[Compilable] = []


def load_all() -> bool:
    """Load the machine code of all functions, and compile what is not kept; whether it is there."""
    loaded = [one.load() for one in _ALL]
    return all(loaded)


class Compilable:
    """A function that becomes machine code when its work has taken as long as that takes.

    It neither makes nor keeps arrays. The signature is numba's.
    """

    def __init__(self, function: Callable[..., None], signature: str) -> None:
        self.function = function
        self.code: Callable[..., None] | None = None
        self._signature = signature
        self._spent, self._due = 0.0, _LOADING
        self._lock = Lock()
        _ALL.append(self)

    def spend(self, seconds: float) -> None:
        """Count the time that the work took by other means."""
        self._spent += seconds
        if self._spent >= self._due:
            may_compile = self._due > _LOADING
            self._due = _COMPILING
            self.load(may_compile=may_compile)

    def load(self, *, may_compile: bool = True) -> bool:
        """Load the machine code; whether it is there. It may be compiled, which takes longer."""
        with self._lock:
            if self.code is None and self._due < inf and is_available():
                try:
                    self._load(may_compile)
                except Exception:  # whatever is wrong with it, work goes on without
                    self._due = inf
        return self.code is not None

    def _load(self, may_compile: bool) -> None:
        found = compiled_once(self.function)
        if may_compile or is_kept(found):
            found.compile(self._signature)
            self.code = found
