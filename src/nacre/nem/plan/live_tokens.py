"""How many tokens can be alive at once: a sound bound, found without looking at instances.

A token lives from the start of its task until the task is complete and everything that names the
token, tasks and waits, has started; a task that starts releases tokens before it takes its own.
So the token of `u` is *dead before* `w` when `u` is complete before `w` starts and all that names
`u` is `w` itself or has started by then. This relation is transitive. Tokens of which each is dead
before the next form a chain, and at any moment at most one token of a chain is alive: the number
of chains that together hold all tokens bounds the number of tokens alive.

Chains are built per body, greedily and in the order of the text. A loop is one item of the body
around it: tokens of iteration i are dead before iteration i + N of a window of N starts, so a body
of K chains makes `min(N, iterations) * K` lanes; whatever follows `endloop` may continue a lane,
and the token of a task before the loop is dead before it only if everything that names it is.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from weakref import WeakKeyDictionary

from msgspec import Struct

from nacre.base.term_columns import distinct
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Loop, Program, Statement, Task, Wait
from nacre.nem.plan.order import NEVER, Order
from nacre.nem.plan.placement import engine_column
from nacre.nem.plan.plan import Block, Plan

# Beyond so many engines a task without a place of its own counts for each of them.
_MOST_ENGINES = 64

_NO_WINDOWS: Mapping[int, int] = MappingProxyType({})

# How far back from a task its dependences are searched for the end of a chain to continue.
MOST_ANCESTORS = 48


class LiveTokens(Struct, frozen=True):
    """A bound for one engine, and the statement at which it first exceeds a limit."""

    engine: int
    most: int
    culprit: Statement | None


# What was found last for a plan: checking, timing and binding ask for the same.
_KNOWN: WeakKeyDictionary[Plan, tuple[Device, int, tuple[LiveTokens, ...]]] = WeakKeyDictionary()


def live_tokens(
    plan: Plan, device: Device, limit: int, windows: Mapping[int, int] = _NO_WINDOWS
) -> Sequence[LiveTokens]:
    """For every engine, how many tokens can be alive at once at most.

    `windows` are loops, by position, that are narrower than the program says.
    """
    if windows:
        return tuple(_bounds(plan, device, limit, windows))
    known = _KNOWN.get(plan)
    if known is None or known[0] is not device or known[1] != limit:
        found = tuple(_bounds(plan, device, limit, windows))
        known = _KNOWN[plan] = (device, limit, found)
    return known[2]


def _bounds(
    plan: Plan, device: Device, limit: int, windows: Mapping[int, int]
) -> Iterator[LiveTokens]:
    lives = _TokenLifetimes(plan.program, plan.order)
    for engine, tasks in sorted(_tasks_by_engine(plan, device).items()):
        chains = _TokenChains(lives, tasks, limit, windows)
        most = chains.count_chains(plan.top, plan.program.body)
        yield LiveTokens(engine, most, chains.culprit)


def _tasks_by_engine(plan: Plan, device: Device) -> dict[int, set[int]]:
    """The positions of the tasks that can run on each engine."""
    by_engine: dict[int, set[int]] = {}
    anywhere: set[int] = set()
    for position, engines in engine_column(plan, device).items():
        if isinstance(engines, int):
            by_engine.setdefault(engines, set()).add(position)
        elif device.num_engines > _MOST_ENGINES:
            anywhere.add(position)
        else:
            for engine in distinct(engines):
                by_engine.setdefault(int(engine), set()).add(position)
    if anywhere:
        by_engine.setdefault(0, set())
    return {engine: tasks | anywhere for engine, tasks in by_engine.items()}


class _TokenLifetimes:
    """Until when tokens live, by the text."""

    def __init__(self, program: Program, order: Order) -> None:
        self.order = order
        self.tasks = {task.position: task for task in program.tasks}
        self._named_by: dict[int, list[Task | Wait]] = {}
        for statement in program.statements:
            if isinstance(statement, Task):
                self._note(statement.deps, statement)
            elif isinstance(statement, Wait):
                self._note(statement.tokens, statement)

    def _note(self, tokens: tuple[int, ...], by: Task | Wait) -> None:
        for token in tokens:
            self._named_by.setdefault(token, []).append(by)

    def dead_from(self, u: Task) -> int:
        """The position from which on every later statement of the body finds the token dead."""
        done = self.order.settled.get(u.position, NEVER)
        for name in self._named_by.get(u.position, ()):
            if len(name.loops) > len(u.loops):  # every iteration of the inner loop names it
                done = max(done, name.loops[len(u.loops)].end + 1)
            elif isinstance(name, Wait):
                done = max(done, name.position + 1)
            else:
                done = max(done, self.order.settled.get(name.position, NEVER))
        return done

    def is_dead_before(self, u: Task, w: Task) -> bool:
        """Whether the token of `u` is dead before `w`, a task of the same body, starts."""
        before = self.order.always_before
        if not before(u.position, w.position):
            return False
        for name in self._named_by.get(u.position, ()):
            if len(name.loops) > len(u.loops):
                has_started = name.loops[len(u.loops)].end < w.position
            elif isinstance(name, Wait):
                has_started = name.position < w.position
            else:
                has_started = name is w or before(name.position, w.position)
            if not has_started:
                return False
        return True


@dataclass(slots=True)
class _ChainEnds:
    """Where the chains of a body end so far."""

    free: int = 0  # chains that anything further down may continue
    by_position: dict[int, int] = field(default_factory=dict)  # how many end at a statement
    queue: list[tuple[int, int]] = field(default_factory=list)  # free from, position

    def release(self, position: int) -> None:
        """Count the chains that have become free when a position is reached."""
        while self.queue and self.queue[0][0] <= position:
            _, end = heapq.heappop(self.queue)
            self.free += self.by_position.pop(end, 0)

    def take_free(self, wanted: int) -> int:
        """Continue free chains; how many there were."""
        count = min(wanted, self.free)
        self.free -= count
        return count

    def add(self, position: int, count: int, free_from: int) -> None:
        """Chains now end here."""
        self.by_position[position] = count
        if free_from < NEVER:
            heapq.heappush(self.queue, (free_from, position))


class _TokenChains:
    """The chains of the tokens of one engine."""

    def __init__(
        self, lifetimes: _TokenLifetimes, tasks: set[int], limit: int, windows: Mapping[int, int]
    ) -> None:
        self._windows = windows
        self._lifetimes = lifetimes
        self._tasks = tasks
        self._positions = sorted(tasks)
        self._limit = limit
        self.culprit: Statement | None = None

    def count_chains(self, block: Block, statements: Sequence[Statement]) -> int:
        """How many chains hold the tokens of one iteration of a body."""
        ends, chains = _ChainEnds(), 0
        inner = {b.loop.position: b for b in block.inner if b.loop is not None}
        for statement in statements:
            position = statement.position
            ends.release(position)
            if isinstance(statement, Task) and position in self._tasks:
                chains += self._add_task(statement, ends)
            elif isinstance(statement, Loop) and position in inner and self._has_task(statement):
                inside = self._count_loop_chains(inner[position], statement)
                chains += inside - ends.take_free(inside)
                ends.add(position, inside, statement.end + 1)
            if chains > self._limit and self.culprit is None:
                self.culprit = statement
        return chains

    def _has_task(self, loop: Loop) -> bool:
        """Whether the engine has a task inside a loop, however deep."""
        first = bisect_left(self._positions, loop.position)
        return first < len(self._positions) and self._positions[first] < loop.end

    def _count_loop_chains(self, block: Block, loop: Loop) -> int:
        trips = int(block.grid.ordinals[-1].max()) + 1
        inside = self.count_chains(block, loop.body)
        chains = min(loop.window, trips, self._windows.get(loop.position, trips)) * inside
        if chains > self._limit and self.culprit is None:
            self.culprit = loop
        return chains

    def _add_task(self, task: Task, ends: _ChainEnds) -> int:
        """Put a task at the end of a chain; how many chains had to be begun."""
        end = self._chain_to_continue(task, ends)
        if end is not None:
            del ends.by_position[end]
            begun = 0
        else:
            begun = 1 - ends.take_free(1)
        ends.add(task.position, 1, self._lifetimes.dead_from(task))
        return begun

    def _chain_to_continue(self, task: Task, ends: _ChainEnds) -> int | None:
        """The end of a chain among the tasks that a task depends on, near ones first."""
        pending, seen = list(task.deps), set(task.deps)
        for position in pending:
            before = self._lifetimes.tasks[position]
            is_end = position in ends.by_position and position in self._tasks
            if is_end and self._lifetimes.is_dead_before(before, task):
                return position
            if len(seen) < MOST_ANCESTORS:
                fresh = [dep for dep in before.deps if dep not in seen]
                pending += fresh
                seen.update(fresh)
        return None
