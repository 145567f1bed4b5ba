"""What a long piece of work is doing, for whoever watches.

Work announces its stages; a watcher in another thread looks at them when it likes. So nothing is
counted for the watcher's sake, and where nobody watches a stage costs one look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Count = Callable[[], tuple[int, int]]  # done, in all


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of some work, and how to learn how far it is."""

    what: str  # `checking`, `timing`
    unit: str = ""  # of its count: `tasks`
    count: Count | None = None

    @property
    def is_begun(self) -> bool:
        """Whether something of it is done."""
        return self.count is not None and self.count()[0] > 0

    def __str__(self) -> str:
        if self.count is None:
            return self.what
        done, total = self.count()
        if total == 0:  # how much there is has not been said yet
            return self.what
        share = 100 * done // total
        return f"{self.what}: {done:,} of {total:,} {self.unit} ({share} %)"


_STACK: ContextVar[list[Stage] | None] = ContextVar("stages", default=None)


@contextmanager
def stage(
    what: str, unit: str = "", count: Count | None = None, *, is_whole: bool = False
) -> Iterator[None]:
    """Announce a stage while something runs, with words of whoever waits for it.

    Stages inside of one that is whole are not shown: it says itself how far it is.
    """
    stack = _STACK.get()
    if stack is None:
        yield
        return
    stack.append(Stage(what, unit, count))
    token = _STACK.set(None) if is_whole else None
    try:
        yield
    finally:
        if token is not None:
            _STACK.reset(token)
        stack.pop()


def is_watched() -> bool:
    """Whether somebody looks at the stages of what runs here."""
    return _STACK.get() is not None


@contextmanager
def watch_stages() -> Iterator[list[Stage]]:
    """The stages of what runs inside, innermost last: a list that changes as the work goes on."""
    stack: list[Stage] = []
    token = _STACK.set(stack)
    try:
        yield stack
    finally:
        _STACK.reset(token)
