"""Waits where an engine would run out of tokens, and only there.

A token lives from the start of its task until the task is done and everything that names it has
started. Tokens of which each is dead before the next begins form a chain; an engine never needs
more tokens than there are chains. Tasks are put into chains in the order of the program, as the
check of a program does it; where one chain too many would begin, a wait for the oldest tasks goes
in front. Who comes after the wait need not name what it waited for, which shortens lives further.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nacre.compile.program import Arrived, Compute, Copy, Let, Loop, Region, Statement, Wait
from nacre.compile.schedule.token_lifetimes import NEVER, TokenLifetimes, tokens_named_by
from nacre.nem.plan.live_tokens import MOST_ANCESTORS

_MOST_ROUNDS = 8  # names that a wait makes needless shorten lives before it too
_SHARE = 4  # a wait frees a quarter of the tokens, so that not every task needs one


def insert_waits(
    statements: Sequence[Statement], limit: int, engines: Mapping[str, int]
) -> tuple[Statement, ...]:
    """The same statements, and waits wherever more tokens could be alive than an engine keeps.

    `engines` has the engine of every buffer that belongs to one. Of a loop that needs more tokens
    by itself, fewer iterations overlap; where even one needs more, it stays as it is.
    """
    written = tuple(statements)
    known: _KnownLoops = {}
    for _ in range(_MOST_ROUNDS):
        writer = _Writer(written, limit, engines, {0, *engines.values()}, known)
        before, written = written, writer.write()
        if written == before:
            break
    return written


# Chains of a body by the identity of its loop, which is kept for that: rounds change few of them.
_KnownLoops = dict[int, tuple[Loop, dict[int, int]]]


@dataclass
class _TokenChains:
    """The chains of one engine: how many there are, and which tasks they end in."""

    count: int = 0
    free: int = 0  # chains that anything further down may continue
    ends: dict[str, int] = field(default_factory=dict)  # how many end in a task or loop


class _Writer:
    """Goes over the statements of a program and writes them down with more waits."""

    def __init__(
        self,
        statements: Sequence[Statement],
        limit: int,
        engine_of: Mapping[str, int],
        engines: Iterable[int],
        known: _KnownLoops,
    ) -> None:
        self._known = known
        self._statements, self._limit = statements, limit
        self._lives = TokenLifetimes(statements)
        self._engine_of = dict(engine_of)  # of buffers, and of the regions that have names
        self.chains = {engine: _TokenChains() for engine in sorted(engines)}
        self._made: list[Statement] = []
        self._settled_from = 0  # the place from which the last wait counts
        self._released: tuple[bool, int] | None = None  # when ends were looked through
        self._early: set[str] = set()  # tokens of what travels early, and of what waits for that

    def write(self) -> tuple[Statement, ...]:
        """All statements."""
        for place, statement in enumerate(self._statements):
            self._release(place)
            match statement:
                case Let():
                    self._record_let(statement)
                    self._made.append(statement)
                case Copy() | Compute():
                    self._task(place, statement)
                case Loop():
                    self._loop(place, statement)
                case Arrived():
                    self._early.difference_update(statement.tokens)
                    self._made.append(statement)
                case Wait():
                    tokens = self._open_deps(statement.tokens)
                    self._made += [Wait(tokens)] if tokens else []
                    self._settle(tokens, place + 1)
                case _:
                    self._made.append(statement)
        return tuple(self._made)

    def _record_let(self, let: Let) -> None:
        if let.region.buffer in self._engine_of:
            self._engine_of[let.name] = self._engine_of[let.region.buffer]

    def _engines_of(self, task: Copy | Compute) -> Iterable[int]:
        """The engine that a task runs on; one that may run anywhere counts for all."""
        if isinstance(task, Copy) and task.engine is not None:
            return [task.engine]
        sides = (task.dst, task.src) if isinstance(task, Copy) else (task.output, *task.inputs)
        names = (side.buffer if isinstance(side, Region) else side for side in sides)
        found = [self._engine_of[name] for name in names if name in self._engine_of]
        return found[:1] or self.chains

    def _settle(self, tokens: Iterable[str], place: int) -> None:
        self._lives.settle(tokens, place)
        self._settled_from = place

    def _release(self, place: int) -> None:
        """Chains that end in a dead token can be continued by anything.

        Tokens die where something was waited for, and nowhere else.
        """
        key = place >= self._settled_from, len(self._lives.settled)
        if key == self._released:
            return
        self._released = key
        for chains in self.chains.values():
            for token in [t for t in chains.ends if self._lives.is_dead(t, place)]:
                chains.free += chains.ends.pop(token)

    # Tasks

    def _task(self, place: int, task: Copy | Compute) -> None:
        engines = list(self._engines_of(task))
        deps = self._open_deps(task.deps)
        self._lives.add(task.token, place, deps)
        if any(not self._has_lane(e, task.token) for e in engines):
            self._make_room(place, dict.fromkeys(engines, 1))
            deps = self._open_deps(task.deps)
            self._lives.add(task.token, place, deps)
        if isinstance(task, Copy) and (
            task.is_early or (task.ahead and not self._early.isdisjoint(deps))
        ):
            self._early.add(task.token)
        for engine in engines:
            self._extend_chain(engine, task.token)
        self._made.append(task if deps == task.deps else replace(task, deps=deps))

    def _open_deps(self, deps: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dep for dep in deps if dep not in self._lives.settled)

    def _has_lane(self, engine: int, token: str) -> bool:
        chains = self.chains[engine]
        return (
            chains.count < self._limit
            or chains.free > 0
            or self._chain_end(engine, token) is not None
        )

    def _extend_chain(self, engine: int, token: str) -> None:
        chains = self.chains[engine]
        end = self._chain_end(engine, token)
        if end is not None:
            chains.ends.pop(end)
        elif chains.free:
            chains.free -= 1
        else:
            chains.count += 1
        chains.ends[token] = 1

    def _chain_end(self, engine: int, token: str) -> str | None:
        """The end of a chain among the tasks that a task depends on, near ones first."""
        ends = self.chains[engine].ends
        pending = list(self._lives.deps[token])
        seen = set(pending)
        for name in pending:
            if name in ends and self._lives.is_dead_before(name, token):
                return name
            if len(seen) < MOST_ANCESTORS:
                fresh = [dep for dep in self._lives.deps.get(name, ()) if dep not in seen]
                pending += fresh
                seen.update(fresh)
        return None

    # Loops

    def _loop(self, place: int, loop: Loop) -> None:
        chains_of = self._chains_of_body(loop)
        named = set(tokens_named_by(loop))
        held = max((self._early_ends(chains, named) for chains in self.chains.values()), default=0)
        loop = self._with_window(loop, max(chains_of.values(), default=0), held)
        overlap = min(loop.window, loop.last - loop.first + 1)
        inside = {engine: overlap * count for engine, count in chains_of.items()}
        self._make_room(place, inside)
        for engine, lanes in inside.items():
            chains = self.chains[engine]
            begun = lanes - min(lanes, chains.free)
            chains.count += begun
            chains.free -= lanes - begun
            chains.free += lanes  # everything in the loop is done where it ends
        self._made.append(self._without_settled_deps(loop))
        self._settle(tokens_named_by(loop), place + 1)

    def _early_ends(self, chains: _TokenChains, named: Collection[str]) -> int:
        """Tokens that a loop leaves alive: to wait for them would cost more than tiles do."""
        early = self._early.difference(named)
        held = sum(count for end, count in chains.ends.items() if end in early)
        return min(held, self._limit // 2)

    def _with_window(self, loop: Loop, count: int, held: int) -> Loop:
        """A loop of which as many iterations overlap as there are tokens for."""
        overlap = min(loop.window, loop.last - loop.first + 1)
        if overlap * count <= self._limit - held:
            return loop
        return replace(loop, window=max(1, (self._limit - held) // count))

    def _without_settled_deps(self, loop: Loop) -> Loop:
        """A loop whose tasks do not name what everything comes after."""
        body = tuple(self._without_settled(statement) for statement in loop.body)
        is_same = all(one is other for one, other in zip(body, loop.body, strict=True))
        return loop if is_same else replace(loop, body=body)

    def _without_settled(self, statement: Statement) -> Statement:
        if isinstance(statement, Loop):
            return self._without_settled_deps(statement)
        if not isinstance(statement, Copy | Compute):
            return statement
        deps = self._open_deps(statement.deps)
        return statement if deps == statement.deps else replace(statement, deps=deps)

    def _chains_of_body(self, loop: Loop) -> dict[int, int]:
        """How many tokens one iteration of a loop can take, by engine."""
        found = self._known.get(id(loop))
        if found is None:
            body = _Writer(loop.body, NEVER, self._engine_of, self.chains, self._known)
            body.write()
            chains_of = {engine: chains.count for engine, chains in body.chains.items()}
            found = self._known[id(loop)] = loop, chains_of
        return found[1]

    # Waits

    def _make_room(self, place: int, wanted: Mapping[int, int]) -> None:
        """Wait for the oldest tasks until so many chains can be had on each engine."""
        tokens: dict[str, None] = {}
        for engine, lanes in wanted.items():
            chains = self.chains[engine]
            missing = lanes - chains.free - (self._limit - chains.count)
            if missing <= 0:
                continue
            missing = max(missing, self._limit // _SHARE)
            for end in self._oldest(chains, place):
                if missing <= 0:
                    break
                missing -= chains.ends[end]
                tokens.update(dict.fromkeys(self._lives.last_users(end, place)))
        if tokens:
            self._wait(tuple(self._latest(tokens)), place)

    def _oldest(self, chains: _TokenChains, place: int) -> list[str]:
        """Ends of chains; first those that were used last the longest ago."""

        def last(token: str) -> tuple[bool, int]:
            users = self._lives.last_users(token, place)
            is_early = not self._early.isdisjoint(users)
            return is_early, max((self._lives.place.get(name, 0) for name in users), default=0)

        return sorted(chains.ends, key=last)

    def _latest(self, tokens: Iterable[str]) -> Iterator[str]:
        """Those that no other one of them comes after."""
        tokens = list(tokens)
        for token in tokens:
            if not any(o != token and self._lives.is_before(token, o) for o in tokens):
                yield token

    def _wait(self, tokens: tuple[str, ...], place: int) -> None:
        self._made.append(Wait(tokens))
        self._settle(tokens, place)
        self._release(place)
