"""How long tokens live: what names them, and who comes after whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nacre.compile.program import Compute, Copy, Loop, Statement, Wait

NEVER = 1 << 62


class TokenLifetimes:
    """What names each token, and who comes after whom."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.place: dict[str, int] = {}  # of tasks, in the order of the statements
        self.deps: dict[str, tuple[str, ...]] = {}
        self.namers: dict[str, list[tuple[int, str | None]]] = {}  # None: a wait or a loop
        self.settled: dict[str, int] = {}  # from where on everything comes after a task
        self._after: dict[str, set[str]] = {}  # tasks before it that were not settled
        for place, statement in enumerate(statements):
            if isinstance(statement, Copy | Compute):
                for dep in statement.deps:
                    self.namers.setdefault(dep, []).append((place, statement.token))
            else:
                for name in tokens_named_by(statement):
                    self.namers.setdefault(name, []).append((place, None))

    def add(self, token: str, place: int, deps: Iterable[str]) -> None:
        """One more task."""
        self.place[token], self.deps[token] = place, tuple(deps)
        after: set[str] = set()
        for dep in self.deps[token]:
            if dep in self._after and dep not in self.settled:  # the others are of no loop around
                after |= self._after[dep]
                after.add(dep)
        self._after[token] = after.difference(self.settled)

    def settle(self, tokens: Iterable[str], place: int) -> None:
        """From a place on, everything comes after these, and need not name them."""
        for token in tokens:
            for name in (token, *self._after.get(token, ())):
                if name not in self.settled:
                    self.settled[name] = place
                    named = self.namers.get(name, ())
                    self.namers[name] = [namer for namer in named if namer[0] < place]
            self._after[token] = set()

    def is_before(self, token: str, other: str) -> bool:
        """Whether a task is done before another starts."""
        settled = self.settled.get(token, NEVER) <= self.place[other]
        return settled or token in self._after[other]

    def is_dead_before(self, token: str, other: str) -> bool:
        """Whether a token is dead when another task starts."""
        if not self.is_before(token, other):
            return False
        at = self.place[other]
        return all(
            place < at
            if name is None
            else name == other or (place < at and self.is_before(name, other))
            for place, name in self.namers.get(token, ())
        )

    def is_dead(self, token: str, place: int) -> bool:
        """Whether a token is dead for all that stands at a place or further down."""
        if self.settled.get(token, NEVER) > place:
            return False
        return all(
            at < place and (name is None or self.settled.get(name, NEVER) <= place)
            for at, name in self.namers.get(token, ())
        )

    def last_users(self, token: str, place: int) -> list[str]:
        """What has to be done for a token to be dead, given that nothing names it further down."""
        users = [name for at, name in self.namers.get(token, ()) if name is not None and at < place]
        return [name for name in (users or [token]) if name not in self.settled]


def tokens_named_by(statement: Statement) -> Iterator[str]:
    """Tokens that a wait, or the tasks of a loop, name."""
    if isinstance(statement, Wait):
        yield from statement.tokens
    elif isinstance(statement, Loop):
        own: set[str] = set()
        for inner in statement.body:
            if isinstance(inner, Copy | Compute):
                yield from (dep for dep in inner.deps if dep not in own)
                own.add(inner.token)
            else:
                yield from (name for name in tokens_named_by(inner) if name not in own)
