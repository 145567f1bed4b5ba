"""What waits for what, by statements: NEM's happens-before relation without what follows from it.

Beside the tasks and waits of a body there are, for a loop in it, a node that enters it and one that
comes when it ends, and inside the loop one for the end of an iteration. Everything in an iteration
is after its start; the rest of the order within a body is a graph over its nodes, and nodes of a
body may be after nodes of the bodies around it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from nacre.nem.model.program import Loop, Statement, Task, Wait
from nacre.nem.plan.clocks import Clock

NodeKind = Literal["task", "wait", "entry", "done", "end"]
_NOTHING = Clock()
_NO_CHAINS: Mapping[int, Sequence[Task]] = MappingProxyType({})


class OrderNode(Struct, frozen=True, eq=False, gc=False):
    """Something that happens once an iteration of the body that it stands in."""

    kind: NodeKind
    position: int  # further down is greater, in its body and in those around it
    statement: Statement  # of a chain the last task
    before: tuple[OrderNode, ...]  # what it waits for, less what follows from the rest
    after_start: bool  # whether it waits for the start of its iteration
    body: int  # the position of the loop around it; -1: none
    chain: int  # nodes of a chain are ordered one after the other
    index: int  # in its chain
    clock: Clock  # what is before it, its own chain left out

    def __repr__(self) -> str:
        return f"<{self.kind} #{self.position}>"

    def is_after(self, other: OrderNode) -> bool:
        """Whether another node is before this one, in the same iteration of their common loops."""
        if other.chain == self.chain:
            return other.index < self.index
        return self.clock.index(other.chain) >= other.index


class OrderBody(Struct, frozen=True, eq=False):
    """The nodes of a body, in the order of the text, and the bodies of the loops in it.

    Loops whose tasks wait for each other in the same way share their nodes, which are those of the
    first of them: statements and positions are that loop's, `shift` further up.
    """

    loop: Loop | None  # None: the program
    nodes: tuple[OrderNode, ...]
    inner: dict[int, OrderBody]  # by the position of the loop
    shift: int = 0

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
    orderer = _Orderer(chains, members - chains.keys())
    return _BodyWriter(orderer, None, _NOTHING).write(body)


@dataclass(slots=True)
class _Orderer:
    chains: Mapping[int, Sequence[Task]]
    within_chains: set[int]  # positions of the tasks that are not the last of theirs
    tasks: dict[int, OrderNode] = field(default_factory=dict)  # by position
    chain_lengths: list[int] = field(default_factory=list)
    alike: dict[Hashable, OrderBody] = field(default_factory=dict)  # the first, by its skeleton

    def skeleton(self, loop: Loop) -> Hashable | None:
        """Who waits for whom in a loop of tasks alone that wait for nothing outside; else None."""
        first, parts = loop.position, list[Hashable]()
        for task in loop.body:
            if type(task) is not Task or task.position in self.chains:
                return None
            if task.position in self.within_chains or (task.deps and min(task.deps) < first):
                return None
            parts += (task.is_sync, len(task.deps))
            parts += [task.position - dep for dep in task.deps]
        return (loop.end - first, *parts)


class _BodyWriter:
    """Puts the statements of one body into order; `start` is what is before all of it."""

    def __init__(self, orderer: _Orderer, loop: Loop | None, start: Clock) -> None:
        self.outer: list[OrderNode] = []  # nodes of bodies around it that somebody in it waits for
        self._nodes: list[OrderNode] = []
        self._inner: dict[int, OrderBody] = {}
        self._orderer = orderer
        self._loop = loop
        self._position = -1 if loop is None else loop.position
        self._start = start
        self._gate: OrderNode | None = None  # what everything further down waits for
        self._last: dict[int, OrderNode] = {}  # by position, those that nobody here waits for
        self._clocks_after: dict[int, Clock] = {}  # of a node and what is before it, by position

    def write(self, statements: Sequence[Statement]) -> OrderBody:
        """Order the body."""
        for statement in statements:
            if isinstance(statement, Task):
                if statement.position not in self._orderer.within_chains:
                    self._add_task(statement)
            elif isinstance(statement, Wait):
                tokens = [self._orderer.tasks[token] for token in statement.tokens]
                self._gate = self._add("wait", statement.position, statement, tokens)
            else:
                self._gate = self._add_loop(statement)
        if self._loop is not None:  # the end of an iteration
            self._add("done", self._loop.end, self._loop, list(self._last.values()))
        return OrderBody(self._loop, tuple(self._nodes), self._inner)

    def _add_task(self, task: Task) -> None:
        tasks = self._orderer.tasks
        chain = self._orderer.chains.get(task.position)
        if chain is None:
            named = [tasks[dep] for dep in task.deps]
            node = tasks[task.position] = self._add("task", task.position, task, named)
        else:
            own = {member.position for member in chain}
            deps = (dep for member in chain for dep in member.deps if dep not in own)
            node = self._add("task", task.position, task, [tasks[dep] for dep in deps])
            tasks.update((position, node) for position in own)
        if task.is_sync:
            self._gate = node

    def _add_loop(self, loop: Loop) -> OrderNode:
        entry = self._add("entry", loop.position, loop, [])
        skeleton = self._orderer.skeleton(loop)
        same = None if skeleton is None else self._orderer.alike.get(skeleton)
        if same is not None and same.loop is not None:
            shift = loop.position - same.loop.position
            self._inner[loop.position] = OrderBody(loop, same.nodes, {}, shift)
            return self._add("end", loop.end, loop, [entry])
        start = entry.clock.with_index(entry.chain, entry.index)
        writer = _BodyWriter(self._orderer, loop, start)
        body = self._inner[loop.position] = writer.write(loop.body)
        if skeleton is not None:
            self._orderer.alike[skeleton] = body
        # What somebody inside waits for is over when the loop is.
        settled = [node for node in writer.outer if node.body == self._position]
        self.outer += (node for node in writer.outer if node.body != self._position)
        return self._add("end", loop.end, loop, [entry], settled)

    def _add(
        self,
        kind: NodeKind,
        position: int,
        statement: Statement,
        named: list[OrderNode],
        settled: Sequence[OrderNode] = (),
    ) -> OrderNode:
        """A node after the gate and what is named; `settled` is over by then all the same."""
        before = self._after_gate(named) if named or self._gate else named
        if len(before) == 1 and before[0].body == self._position:
            own = before
            chain, index, clock = self._after_one(before[0])
        else:
            before, implied = self._without_implied(before)
            own = [node for node in before if node.body == self._position]
            self.outer += (node for node in before if node.body != self._position)
            chain, index = self._extend_chain(own)
            clock = _NOTHING if kind == "done" else self._clock(before, own, chain, implied)
        for node in own:
            self._last.pop(node.position, None)
        for node in settled:
            clock = _with_node(clock, node)
        made = OrderNode(
            kind, position, statement, tuple(before), not own, self._position, chain, index, clock
        )
        self._nodes.append(made)
        self._last[position] = made
        return made

    def _after_gate(self, named: list[OrderNode]) -> list[OrderNode]:
        """What is named, each once, and the gate unless that follows: it is before all below it."""
        if len(named) > 1:
            named = list(dict.fromkeys(named))
        gate = self._gate
        if gate is None:
            return named
        at, body = gate.position, self._position
        for node in named:
            if node.position > at and node.body == body:
                return named
        return [gate, *(node for node in named if node is not gate)]

    def _after_one(self, node: OrderNode) -> tuple[int, int, Clock]:
        """The chain, the index in it and the clock of what waits for one node of this body."""
        lengths = self._orderer.chain_lengths
        chain, index = node.chain, node.index + 1
        if lengths[chain] == index:
            lengths[chain] += 1
            return chain, index, node.clock
        lengths.append(1)
        clock = self._clocks_after.get(node.position)
        if clock is None:
            clock = node.clock.with_index(node.chain, node.index)
            self._clocks_after[node.position] = clock
        return len(lengths) - 1, 0, clock

    def _without_implied(self, nodes: list[OrderNode]) -> tuple[list[OrderNode], Clock | None]:
        """Nodes, less what is before another of them or the start; a clock of all, if one is made.

        Whatever stands in this body has its start before it.
        """
        if not any(node.body == self._position for node in nodes):
            nodes = [node for node in nodes if self._start.index(node.chain) < node.index]
        if len(nodes) < 2:
            return nodes, None
        if len(nodes) == 2:
            first, second = nodes
            if first.position < second.position:
                return ([second] if second.is_after(first) else nodes), None
            return ([first] if first.is_after(second) else nodes), None
        latest, *rest = sorted(nodes, key=_position, reverse=True)
        implied = latest.clock.with_index(latest.chain, latest.index)
        kept, joined = {latest}, {id(latest.clock)}
        for node in rest:
            if implied.index(node.chain) < node.index:
                kept.add(node)
                implied = _with_node(implied, node, joined)
        return [node for node in nodes if node in kept], implied

    def _clock(
        self, before: list[OrderNode], own: list[OrderNode], chain: int, implied: Clock | None
    ) -> Clock:
        """What is before a node that waits for none or several, or for those around its body."""
        if implied is not None:
            return implied if own else self._start.join(implied)
        if not own:
            clock, joined = self._start, {id(self._start)}
        else:
            # Of a chain that goes on nothing has to be told.
            last = next((node for node in own if node.chain == chain), own[-1])
            clock, joined = last.clock, {id(last.clock)}
        for node in before:
            if node.chain != chain:
                clock = _with_node(clock, node, joined, chain)
        return clock

    def _extend_chain(self, own: Sequence[OrderNode]) -> tuple[int, int]:
        """The place of a node in a chain: after one that it waits for, or in a new chain."""
        lengths = self._orderer.chain_lengths
        for node in reversed(own):
            if lengths[node.chain] == node.index + 1:
                lengths[node.chain] += 1
                return node.chain, node.index + 1
        lengths.append(1)
        return len(lengths) - 1, 0


def _position(node: OrderNode) -> int:
    return node.position


def _with_node(
    clock: Clock, node: OrderNode, joined: set[int] | None = None, chain: int = -1
) -> Clock:
    """A clock that has a node as well, and all that is before it.

    `joined` are ids of clocks that it has; of `chain` it is taken to have all.
    """
    if joined is None or id(node.clock) not in joined:
        if node.kind == "end" or any(
            n.chain != chain and clock.index(n.chain) < n.index for n in node.before
        ):
            clock = clock.join(node.clock)
        if joined is not None:
            joined.add(id(node.clock))
    return clock.with_index(node.chain, node.index)
