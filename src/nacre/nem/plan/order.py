"""What happens before what, decided from the text alone: no search over instances.

Two instances that differ in a common loop are ordered by that loop's window. Otherwise they
belong to one iteration of every common loop, and the question is about statements: `u` is before
`v` when `v` or something it waits for names `u`. Statements are numbered in the order of the
text. Two facts make that cheap:

* What a `wait`, a `.sync` task or an `endloop` orders, it orders before *everything* further
  down, so one number a task says from which position on it is done for good (`settled`).
* What `deps` order beyond that is kept as clocks over chains: tasks that follow each other in
  order share a chain, and a clock says how much of each chain comes before (`clocks.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nacre.nem.model.program import Loop, Program, Statement, Task, Wait
from nacre.nem.plan.clocks import Clock

NEVER = 1 << 62
_NOTHING = Clock()
_MOST_CHAINS = 64  # that a task is tried at the end of


@dataclass(slots=True)
class _TaskChains:
    """Tasks in chains, and how far each chain is settled."""

    members: list[list[int]] = field(default_factory=list)
    settled_upto: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)  # chains whose every member is settled


class Order:
    """The happens-before relation of a program."""

    def __init__(self, program: Program) -> None:
        self.settled: dict[int, int] = {}  # task -> first position that it is before, for good
        self._chain: dict[int, tuple[int, int]] = {}  # task -> chain, index in it
        self._clock: dict[int, Clock] = {}  # of a task
        self._chains = _TaskChains()
        self._body(program.body)

    def _body(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Task):
                self._task(statement)
            elif isinstance(statement, Wait):
                for task in statement.tokens:
                    self._settle(task, statement.position + 1)
            else:
                self._body(statement.body)
                for task in _tasks_inside(statement):
                    self._settle(task, statement.end)

    def _task(self, task: Task) -> None:
        clock = _NOTHING
        for dep in task.deps:
            if self.settled.get(dep, NEVER) <= task.position:
                continue
            before = self._clock[dep]
            joined = before if clock is _NOTHING else clock.join(before)
            clock = joined.with_index(*self._chain[dep])
        self._clock[task.position] = clock
        self._enlist(task, clock)
        if task.is_sync:
            self._settle(task.position, task.position + 1)

    def _enlist(self, task: Task, clock: Clock) -> None:
        """Put a task at the end of a chain whose last member is before it, or begin one."""
        # What it names itself comes first, the latest in front; few chains are looked at beyond.
        named = map(self._chain.__getitem__, sorted(task.deps, reverse=True))
        chain = self._chain_that_ends_in(named)
        if chain is None:
            chain = self._chain_that_ends_in(itertools.islice(clock, _MOST_CHAINS))
        if chain is None:
            chain = self._free_chain()
        members = self._chains.members[chain]
        self._chain[task.position] = (chain, len(members))
        members.append(task.position)

    def _chain_that_ends_in(self, indices: Iterable[tuple[int, int]]) -> int | None:
        """The first chain of which the last member is given."""
        members = self._chains.members
        for chain, index in indices:
            if index == len(members[chain]) - 1:
                return chain
        return None

    def _free_chain(self) -> int:
        chains = self._chains
        while chains.free:
            chain = chains.free.pop()
            if chains.settled_upto[chain] == len(chains.members[chain]):
                return chain
        chains.members.append([])
        chains.settled_upto.append(0)
        return len(chains.members) - 1

    def _settle(self, task: int, position: int) -> None:
        """From `position` on, a task and all that is before it are done."""
        self._settle_upto(*self._chain[task], position)
        for chain, index in self._clock[task]:
            self._settle_upto(chain, index, position)

    def _settle_upto(self, chain: int, index: int, position: int) -> None:
        chains = self._chains
        upto = chains.settled_upto[chain]
        if index < upto:
            return
        members = chains.members[chain]
        for member in members[upto : index + 1]:
            self.settled[member] = position
        chains.settled_upto[chain] = index + 1
        if index + 1 == len(members):
            chains.free.append(chain)

    def always_before(self, u: int, v: int) -> bool:
        """Whether task `u` is before statement `v` in every iteration of their common loops."""
        if u >= v:
            return False
        if self.settled.get(u, NEVER) <= v:
            return True
        clock = self._clock.get(v)
        if clock is None:
            return False
        chain, index = self._chain[u]
        return clock.index(chain) >= index

    def done_inside(self, u: int, loop: Loop) -> bool:
        """Whether something inside a loop is after `u`, a task before and outside the loop.

        An iteration that the window holds back until such an iteration is complete is after `u`.
        """
        return self.settled.get(u, NEVER) <= loop.end

    def before(
        self, u: Task, u_ordinals: Sequence[int], v: Task, v_ordinals: Sequence[int]
    ) -> bool:
        """Whether one instance is complete before another starts."""
        common = 0
        for loop, other in zip(u.loops, v.loops, strict=False):
            if loop is not other:
                break
            distance = v_ordinals[common] - u_ordinals[common]
            if distance:
                return distance >= loop.window
            common += 1
        if u.position >= v.position:
            return False
        if self.always_before(u.position, v.position):
            return True
        return any(
            ordinal >= loop.window and self.done_inside(u.position, loop)
            for loop, ordinal in zip(v.loops[common:], v_ordinals[common:], strict=True)
        )


def _tasks_inside(loop: Loop) -> list[int]:
    positions = []
    stack: list[Statement] = list(loop.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, Task):
            positions.append(statement.position)
        elif isinstance(statement, Loop):
            stack += statement.body
    return positions
