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

from nacre.bind.node_sets import EMPTY, NodeSet, contains, union, with_node
from nacre.nem.model.program import Loop, Statement, Task, Wait

NodeKind = Literal["task", "wait", "entry", "done", "end"]
_NO_CHAINS: Mapping[int, Sequence[Task]] = MappingProxyType({})


class OrderNode(Struct, frozen=True, eq=False, gc=False):
    """Something that happens once an iteration of the body that it stands in."""

    kind: NodeKind
    position: int  # further down is greater, in its body and in those around it
    statement: Statement  # of a chain the last task
    before: tuple[OrderNode, ...]  # what it waits for, less what follows from the rest
    after_start: bool  # whether it waits for the start of its iteration, and nothing of its body
    is_within: bool  # whether all that it waits for stands in its body
    body: int  # the position of the loop around it; -1: none
    number: int
    until: NodeSet  # the numbers of all that are before it, and its own

    def __repr__(self) -> str:
        return f"<{self.kind} #{self.position}>"


class Outside(Struct, frozen=True, eq=False):
    """A node outside of a loop that tasks in it wait for, and the one that its nodes name."""

    local: OrderNode
    stand_in: OrderNode


class OrderBody(Struct, frozen=True, eq=False):
    """The nodes of a body, in the order of the text, and the bodies of the loops in it.

    Loops whose tasks wait for each other in the same way share their nodes, which are those of the
    first of them: statements and positions are that loop's, `shift` further up. Where they wait for
    something outside, which one node may be, each has its own in its place.
    """

    loop: Loop | None  # None: the program
    nodes: tuple[OrderNode, ...]
    inner: dict[int, OrderBody]  # by the position of the loop
    shift: int = 0
    outside: Outside | None = None

    def localise(self, node: OrderNode) -> OrderNode:
        """What a node that others here wait for is in this body."""
        outside = self.outside
        return outside.local if outside is not None and node is outside.stand_in else node

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
    return _BodyWriter(orderer, None, EMPTY).write(body)


@dataclass(slots=True)
class _Orderer:
    chains: Mapping[int, Sequence[Task]]
    within_chains: set[int]  # positions of the tasks that are not the last of theirs
    tasks: dict[int, OrderNode] = field(default_factory=dict)  # by position
    node_count: int = 0
    alike: dict[Hashable, _Pattern] = field(default_factory=dict)  # by its skeleton

    def skeleton(self, loop: Loop, start: NodeSet) -> _Skeleton | None:
        """Who waits for whom in a loop of tasks alone that wait for one node outside at most.

        What is before its start does not count: it is over by then.
        """
        first, parts, outside = loop.position, list[Hashable](), None
        for task in loop.body:
            if type(task) is not Task or task.position in self.chains:
                return None
            if task.position in self.within_chains:
                return None
            parts += (None, task.is_sync)
            for dep in task.deps:
                if dep > first:
                    parts.append(task.position - dep)
                    continue
                node = self.tasks[dep]
                if contains(start, node.number):
                    continue
                if outside is not None and node is not outside:
                    return None
                outside = node
                parts.append("outside")
        return _Skeleton((loop.end - first, *parts), outside)


class _Skeleton(Struct, frozen=True, eq=False):
    """Who waits for whom in a loop, and what for outside."""

    key: Hashable
    outside: OrderNode | None


class _Pattern(Struct, frozen=True, eq=False):
    """The first of loops that are alike."""

    loop: Loop
    body: OrderBody
    outside: OrderNode | None

    def shifted(self, loop: Loop, outside: OrderNode | None) -> OrderBody:
        """The body of another loop like it."""
        own = None
        if outside is not None and self.outside is not None:
            own = Outside(outside, self.outside)
        return OrderBody(loop, self.body.nodes, {}, loop.position - self.loop.position, own)


class _BodyWriter:
    """Puts the statements of one body into order; `start` is what is before all of it."""

    def __init__(self, orderer: _Orderer, loop: Loop | None, start: NodeSet) -> None:
        self.outer: list[OrderNode] = []  # nodes of bodies around it that somebody in it waits for
        self._nodes: list[OrderNode] = []
        self._inner: dict[int, OrderBody] = {}
        self._orderer, self._tasks = orderer, orderer.tasks
        self._loop = loop
        self._position = -1 if loop is None else loop.position
        self._start = start
        self._gate: OrderNode | None = None  # what everything further down waits for
        self._last: dict[int, OrderNode] = {}  # by position, those that nobody here waits for

    def write(self, statements: Sequence[Statement]) -> OrderBody:
        """Order the body."""
        chains, within_chains = self._orderer.chains, self._orderer.within_chains
        tasks = self._tasks
        for statement in statements:
            if isinstance(statement, Task):
                if chains and statement.position in chains:
                    node = self._add_chain(statement)
                elif within_chains and statement.position in within_chains:
                    continue
                else:
                    node = tasks[statement.position] = self._add_task(statement)
                if statement.is_sync:
                    self._gate = node
            elif isinstance(statement, Wait):
                tokens = [tasks[token] for token in statement.tokens]
                self._gate = self._add("wait", statement.position, statement, tokens)
            else:
                self._gate = self._add_loop(statement)
        if self._loop is not None:  # the end of an iteration
            self._add("done", self._loop.end, self._loop, list(self._last.values()))
        return OrderBody(self._loop, tuple(self._nodes), self._inner)

    def _add_chain(self, last: Task) -> OrderNode:
        """Tasks that stream into each other, by the last."""
        tasks, chain = self._tasks, self._orderer.chains[last.position]
        own = {member.position for member in chain}
        others = (dep for member in chain for dep in member.deps if dep not in own)
        node = self._add("task", last.position, last, [tasks[dep] for dep in others])
        tasks.update((position, node) for position in own)
        return node

    def _add_task(self, task: Task) -> OrderNode:
        """A task that streams into no other; most wait for others of their body alone."""
        tasks, deps, body, gate = self._tasks, task.deps, self._position, self._gate
        before: tuple[OrderNode, ...]
        if len(deps) == 1:  # which is half of them
            only = tasks[deps[0]]
            if only.body != body or (gate is not None and only.position < gate.position):
                return self._add("task", task.position, task, [only])
            before, past = (only,), only.until
        elif deps:
            named = [tasks[dep] for dep in deps]
            for other in named:
                if other.body != body:
                    return self._add("task", task.position, task, named)
            latest, past = _latest(self._after_gate(named))
            before = tuple(latest)
        elif gate is None:
            before, past = (), self._start
        else:
            before, past = (gate,), gate.until
        orderer, at = self._orderer, task.position
        number = orderer.node_count
        orderer.node_count = number + 1
        until = with_node(past, number)
        made = OrderNode("task", at, task, before, not before, True, body, number, until)
        self._nodes.append(made)
        if self._loop is not None:
            for other in before:
                self._last.pop(other.position, None)
            self._last[at] = made
        return made

    def _add_loop(self, loop: Loop) -> OrderNode:
        entry = self._add("entry", loop.position, loop, [])
        skeleton = self._orderer.skeleton(loop, entry.until)
        pattern = None if skeleton is None else self._orderer.alike.get(skeleton.key)
        outer: Sequence[OrderNode]
        if skeleton is not None and pattern is not None:
            outside = skeleton.outside
            body = pattern.shifted(loop, outside)
            outer = () if outside is None else (outside,)
        else:
            writer = _BodyWriter(self._orderer, loop, entry.until)
            body, outer = writer.write(loop.body), writer.outer
            if skeleton is not None:
                self._orderer.alike[skeleton.key] = _Pattern(loop, body, skeleton.outside)
        self._inner[loop.position] = body
        # What somebody inside waits for is over when the loop is.
        settled = [node for node in outer if node.body == self._position]
        self.outer += (node for node in outer if node.body != self._position)
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
        if len(before) == 1 and before[0].body == self._position:  # which is most of them
            own, past = before, before[0].until
        else:
            before, own, past = self._without_implied(before)
            if len(own) < len(before):
                self.outer += (node for node in before if node.body != self._position)
        for node in settled:
            past = union(past, node.until)
        number = self._orderer.node_count
        self._orderer.node_count += 1
        made = OrderNode(
            kind,
            position,
            statement,
            tuple(before),
            not own,
            len(own) == len(before),
            self._position,
            number,
            with_node(past, number),
        )
        self._nodes.append(made)
        if self._loop is not None:  # of the program nobody asks how it ends
            for node in own:
                self._last.pop(node.position, None)
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
        return [gate, *named] if gate not in named else [gate, *(n for n in named if n is not gate)]

    def _without_implied(
        self, nodes: list[OrderNode]
    ) -> tuple[list[OrderNode], list[OrderNode], NodeSet]:
        """Nodes, less what is before another of them or the start, and those of this body.

        With all that is before them, and they. What stands in this body has its start before it.
        """
        body, start = self._position, self._start
        own = [node for node in nodes if node.body == body]
        if own:
            kept, past = _latest(nodes)
            return kept, own if kept is nodes else [n for n in kept if n.body == body], past
        if nodes:
            nodes = [node for node in nodes if not contains(start, node.number)]
        if not nodes:
            return nodes, own, start
        kept, past = _latest(nodes)
        return kept, own, union(start, past)


def _position(node: OrderNode) -> int:
    return node.position


def _latest(nodes: list[OrderNode]) -> tuple[list[OrderNode], NodeSet]:
    """Those of some nodes that are before no other of them, and what is before them, with them."""
    if len(nodes) == 1:
        return nodes, nodes[0].until
    if len(nodes) == 2:
        late, early = nodes
        if late.position < early.position:
            early, late = nodes
        if contains(late.until, early.number):
            return [late], late.until
        return nodes, union(late.until, early.until)
    latest, *rest = sorted(nodes, key=_position, reverse=True)
    kept, past = {latest}, latest.until
    for node in rest:
        if not contains(past, node.number):
            kept.add(node)
            past = union(past, node.until)
    return (nodes if len(kept) == len(nodes) else [n for n in nodes if n in kept]), past
