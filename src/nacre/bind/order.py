"""What waits for what, by statements: NEM's happens-before relation without what follows from it.

Beside the tasks and waits of a body there are, for a loop in it, a node that enters it and one that
comes when it ends, and inside the loop one for the end of an iteration. Everything in an iteration
is after its start; the rest of the order within a body is a graph over its nodes, and nodes of a
body may be after nodes of the bodies around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from nacre.nem.model.program import Loop, Statement, Task, Wait
from nacre.nem.plan.clocks import Clock

NodeKind = Literal["task", "wait", "entry", "done", "end"]
_NOTHING = Clock()
_NO_CHAINS: Mapping[int, Sequence[Task]] = MappingProxyType({})


class OrderNode(Struct, frozen=True, eq=False):
    """Something that happens once an iteration of the body that it stands in."""

    kind: NodeKind
    position: int
    statement: Statement  # of a chain the last task
    before: tuple[OrderNode, ...]  # what it waits for, less what follows from the rest
    after_start: bool  # whether it waits for the start of its iteration
    body: int  # the position of the loop around it; -1: none
    chain: int  # nodes of a chain are ordered one after the other
    index: int  # in its chain
    clock: Clock  # what is before it

    def __repr__(self) -> str:
        return f"<{self.kind} #{self.position}>"

    def is_after(self, other: OrderNode) -> bool:
        """Whether another node is before this one, in the same iteration of their common loops."""
        return self.clock.index(other.chain) >= other.index


class OrderBody(Struct, frozen=True, eq=False):
    """The nodes of a body, in the order of the text, and the bodies of the loops in it."""

    loop: Loop | None  # None: the program
    nodes: tuple[OrderNode, ...]
    inner: dict[int, OrderBody]  # by the position of the loop

    @property
    def position(self) -> int:
        """That of its loop; -1 for the program."""
        return -1 if self.loop is None else self.loop.position

    def walk(self) -> Iterator[OrderBody]:
        """This body and those in it."""
        yield self
        for body in self.inner.values():
            yield from body.walk()


def order_program(
    body: Sequence[Statement], chains: Mapping[int, Sequence[Task]] = _NO_CHAINS
) -> OrderBody:
    """The order of a program; tasks that stream into each other are one node, by the last's."""
    members = {task.position for tasks in chains.values() for task in tasks}
    return _Orderer(chains, members - chains.keys()).body(body, None, _NOTHING)


@dataclass(slots=True)
class _Orderer:
    chains: Mapping[int, Sequence[Task]]
    within_chains: set[int]  # positions of the tasks that are not the last of theirs
    tasks: dict[int, OrderNode] = field(default_factory=dict)  # by position
    chain_lengths: list[int] = field(default_factory=list)

    def body(self, statements: Sequence[Statement], loop: Loop | None, start: Clock) -> OrderBody:
        """Order a body; `start` is what is before all of it."""
        writer = _BodyWriter(self, loop, start)
        for statement in statements:
            writer.add(statement)
        if loop is not None:
            writer.finish(loop)
        return OrderBody(loop, tuple(writer.nodes), writer.inner)


class _BodyWriter:
    """Puts the statements of one body into order."""

    def __init__(self, orderer: _Orderer, loop: Loop | None, start: Clock) -> None:
        self.nodes: list[OrderNode] = []
        self.inner: dict[int, OrderBody] = {}
        self._orderer = orderer
        self._position = -1 if loop is None else loop.position
        self._start = start
        self._gate: OrderNode | None = None  # what everything further down waits for
        self._followed: set[int] = set()  # nodes of this body that others wait for, by id

    def add(self, statement: Statement) -> None:
        """Put the next statement into order."""
        if isinstance(statement, Task):
            self._task(statement)
        elif isinstance(statement, Wait):
            self._gate = self._wait(statement)
        else:
            self._gate = self._loop(statement)

    def _task(self, task: Task) -> None:
        if task.position in self._orderer.within_chains:
            return
        tasks = self._orderer.tasks
        chain = self._orderer.chains.get(task.position, (task,))
        own = {member.position for member in chain}
        deps = (dep for member in chain for dep in member.deps if dep not in own)
        node = self._node("task", task.position, task, [tasks[dep] for dep in deps])
        tasks.update((position, node) for position in own)
        if task.is_sync:
            self._gate = node

    def _wait(self, wait: Wait) -> OrderNode:
        tokens = (self._orderer.tasks[token] for token in wait.tokens)
        return self._node("wait", wait.position, wait, tokens)

    def _loop(self, loop: Loop) -> OrderNode:
        entry = self._node("entry", loop.position, loop, ())
        start = entry.clock.with_index(entry.chain, entry.index)
        body = self.inner[loop.position] = self._orderer.body(loop.body, loop, start)
        # What somebody inside waits for is over when the loop is.
        inside = (named for part in body.walk() for node in part.nodes for named in node.before)
        settled = [named for named in inside if named.body == self._position]
        return self._node("end", loop.end, loop, (entry,), settled)

    def finish(self, loop: Loop) -> None:
        """The end of an iteration: it waits for everything that nothing else waits for."""
        last = [node for node in self.nodes if id(node) not in self._followed]
        self._node("done", loop.end, loop, last)

    def _node(
        self,
        kind: NodeKind,
        position: int,
        statement: Statement,
        named: Iterable[OrderNode],
        settled: Iterable[OrderNode] = (),
    ) -> OrderNode:
        """A node after the gate and what is named; `settled` is over by then all the same."""
        gate = () if self._gate is None else (self._gate,)
        before = list(dict.fromkeys((*gate, *named)))
        # Whatever stands in this body has its start before it.
        has_start = any(node.body == self._position for node in before)
        implied = _NOTHING if has_start else self._start
        for node in before:
            implied = node.clock if implied is _NOTHING else implied.join(node.clock)
        for node in dict.fromkeys(settled):
            implied = implied.join(node.clock).with_index(node.chain, node.index)
        kept = tuple(n for n in before if implied.index(n.chain) < n.index)
        clock = implied
        for node in kept:
            clock = clock.with_index(node.chain, node.index)
        own = [node for node in kept if node.body == self._position]
        self._followed.update(map(id, own))
        chain, index = self._extend_chain(own)
        node = OrderNode(
            kind, position, statement, kept, not own, self._position, chain, index, clock
        )
        self.nodes.append(node)
        return node

    def _extend_chain(self, own: Sequence[OrderNode]) -> tuple[int, int]:
        """The place of a node in a chain: after one that it waits for, or in a new chain."""
        lengths = self._orderer.chain_lengths
        for node in reversed(own):
            if lengths[node.chain] == node.index + 1:
                lengths[node.chain] += 1
                return node.chain, node.index + 1
        lengths.append(1)
        return len(lengths) - 1, 0
