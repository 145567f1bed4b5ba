"""Streams: every node of a program's order as a block, in the stream that it belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property, partial

import numpy as np

from nacre.bind.counters import Counters
from nacre.bind.forms import FormBinder
from nacre.bind.operands import OperandBinder
from nacre.bind.order import OrderBody, OrderNode
from nacre.bind.placed_tags import PlacedTags
from nacre.bind.splitting import IterationRuns, Run
from nacre.bind.tags import has_entry_block
from nacre.bind.units import UnitBinder
from nacre.nem.model.program import Loop, Task
from nacre.nem.model.program import Wait as WaitStatement
from nacre.nem.plan.grid import Grid
from nacre.tcb.image import DEVICE, Block, Item, Repeat, Stream, Tag, Wait

Items = defaultdict[int, list[Item]]  # by stream


class Place:
    """Where a body stands: the loops around it, and the first iteration of the run at hand."""

    def __init__(
        self,
        counters: Counters,
        tags: tuple[PlacedTags, ...],
        row: Callable[[], Grid],
        start: tuple[Wait, ...] = (),
    ) -> None:
        self.counters = counters
        self.outer = tags  # of the bodies around it, and its own last
        self.tags = tags[-1]
        self.start = start  # what an iteration of the loop around it waits for
        self._row = row

    @cached_property
    def row(self) -> Grid:
        """The first iteration of the run, as a grid of one row: few bodies need it."""
        return self._row()

    def tags_of(self, node: OrderNode) -> PlacedTags:
        """The tags of the body that a node stands in, which is this one or around it."""
        at = -1
        while self.outer[at].position != node.body:
            at -= 1
        return self.outer[at]


class Emitter:
    """Writes blocks."""

    def __init__(
        self,
        units: UnitBinder,
        operands: OperandBinder,
        members: Mapping[int, tuple[Task, ...]],
        stream_of: Mapping[int, int],
        *,
        has_token_limit: bool,
    ) -> None:
        self._stream_of = stream_of  # of every task, by position
        self._units, self._operands = units, operands
        self._forms = FormBinder(units)
        self._runs = IterationRuns(units.kinds)
        self._members = members  # of chains, by the position of the last
        self._last_of = {t.position: last for last, tasks in members.items() for t in tasks}
        self._has_token_limit = has_token_limit

    def streams(self, body: OrderBody, tags: PlacedTags) -> tuple[Stream, ...]:
        """The streams of a whole program, the device's first."""
        items = self._body(body, Place(Counters(), (tags,), lambda: Grid(1)))
        return tuple(Stream(engine, tuple(items[engine])) for engine in sorted(items))

    def _body(self, body: OrderBody, place: Place) -> Items:
        items: Items = defaultdict(list)
        for node in body.nodes:
            if isinstance(node.statement, Task):
                self._chain(node, node.statement, place, items)
                continue
            if node.kind != "entry" or has_entry_block(node):
                stream, block = self._join(node, place)
                items[stream].append(block)
            if node.kind == "entry":
                self._loop(node, body.inner[node.position], place, items)
        return items

    def _loop(self, entry: OrderNode, body: OrderBody, place: Place, items: Items) -> None:
        loop = body.loop
        if loop is None:
            raise ValueError("a loop without statement")
        tags = place.tags
        gate = (tags.wait_for(entry),) if has_entry_block(entry) else self._waits(entry, place)
        counters = place.counters.inside(loop)
        inside = tags.inside(loop.position)
        around, start = (*place.outer, inside), (*gate, *inside.window_wait())
        for run in self._runs.of(loop, place.counters, lambda: place.row):
            inner = Place(counters, around, partial(_inner_row, place, loop, run), start)
            for stream, found in self._body(body, inner).items():
                items[stream].append(Repeat(loop.position, run.count, tuple(found), run.start))

    def _chain(self, node: OrderNode, last: Task, place: Place, items: Items) -> None:
        """A task, or tasks that stream into each other: the first waits, and the last signals."""
        waits, signal = self._waits(node, place), place.tags.signal(node)
        found = items[self._stream_of[last.position]]
        tasks = self._members.get(last.position)
        if tasks is not None:
            for task in tasks[:-1]:
                found.append(self._task(task, place, waits, None, is_chained=True))
                waits = ()
        found.append(self._task(last, place, waits, signal))

    def _join(self, node: OrderNode, place: Place) -> tuple[int, Block]:
        tags, waits = place.tags, self._waits(node, place)
        signal = tags.signal(node)
        if isinstance(node.statement, WaitStatement):
            named = self._named(node.statement.tokens, node.position)
            block = Block("wait", node.position, waits=waits, signal=signal, names=named)
            return tags.tags.space, block
        if node.kind == "done":
            block = Block("join", node.position, waits=waits, signal=tags.iterations)
            return tags.tags.space, block
        inner = tags.inside(node.statement.position)
        sets = inner.raises() if node.kind == "end" else ()
        block = Block("join", node.position, waits=waits, signal=signal, sets=sets)
        return inner.tags.space, block

    def _waits(self, node: OrderNode, place: Place) -> tuple[Wait, ...]:
        """What a node waits for, in its own body and in those around it."""
        tags = place.tags
        if node.kind == "end":
            done = tags.inside(_loop_of(node).position).all_done(place.counters)
            return (done, *tags.serialising_waits(node))
        waits = []
        for named in node.before:
            owner = tags if named.body == tags.position else place.tags_of(named)
            waits.append(owner.wait_for(named))
        if node.after_start:
            waits += place.start
        if node.kind == "done":
            waits += tags.previous_done()
        if tags.is_serialised:
            waits += tags.serialising_waits(node)
        return tuple(waits)

    def _task(
        self,
        task: Task,
        place: Place,
        waits: tuple[Wait, ...],
        signal: Tag | None,
        *,
        is_chained: bool = False,
    ) -> Block:
        form = self._forms.find(task) or self._forms.make(task, place.row)
        inputs, outputs = self._operands.place(task, form, place.counters)
        is_shared = self._stream_of[task.position] == DEVICE
        return Block(
            "task",
            task.position,
            form.op,
            form.attributes,
            form.is_ordered,
            inputs,
            outputs,
            self._units.bind_instance(task, form.units, place.counters),
            form.shared,
            self._units.engine(task, place.counters) if is_shared else None,
            form.format,
            waits=waits,
            signal=signal,
            is_chained=is_chained,
            has_token=self._has_token_limit and not is_chained and self._makes_token(task),
            names=self._named(task.deps, task.position),
        )

    def _makes_token(self, task: Task) -> bool:
        """Whether a task makes a token, or one that streams into it: a chain has one for all."""
        members = self._members.get(task.position)
        if members is None:
            return task.token is not None
        return any(member.token is not None for member in members)

    def _named(self, tokens: tuple[int, ...], position: int) -> tuple[int, ...]:
        """The tokens that a block names; of a chain that of the last, and none of its own."""
        if not self._has_token_limit:
            return ()
        if not self._last_of:
            return _each_once(tokens)
        own = self._last_of.get(position)
        found = (self._last_of.get(token, token) for token in tokens)
        return tuple(token for token in dict.fromkeys(found) if token != own)


def _each_once(positions: tuple[int, ...]) -> tuple[int, ...]:
    return positions if len(positions) < 2 else tuple(dict.fromkeys(positions))


def _loop_of(node: OrderNode) -> Loop:
    if not isinstance(node.statement, Loop):
        raise TypeError("the end of no loop")
    return node.statement


def _inner_row(place: Place, loop: Loop, run: Run) -> Grid:
    """The first iteration of a run in a body at its place, as a grid of one row."""
    row = place.row
    ordinal, value = (np.array([n], np.int64) for n in (run.start, run.value))
    return Grid(1, (*row.loops, loop), (*row.ordinals, ordinal), (*row.values, value))
