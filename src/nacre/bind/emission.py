"""Streams: every node of a program's order as a block, in the stream that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

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

Items = dict[int, list[Item]]  # by stream


class Place(Struct, frozen=True):
    """Where a body stands: the loops around it, and the first iteration of the run at hand."""

    counters: Counters
    row: Grid  # of one row
    tags: tuple[PlacedTags, ...]  # of the bodies around, the innermost last
    start: tuple[Wait, ...] = ()  # what an iteration of the loop around it waits for

    def tags_of(self, node: OrderNode) -> PlacedTags:
        """The tags of the body that a node stands in, which is this one or around it."""
        at = -1
        while self.tags[at].position != node.body:
            at -= 1
        return self.tags[at]


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
        self._has_token_limit = has_token_limit

    def streams(self, body: OrderBody, tags: PlacedTags) -> tuple[Stream, ...]:
        """The streams of a whole program, the device's first."""
        items = self._body(body, Place(Counters(()), Grid(1), (tags,)))
        return tuple(Stream(engine, tuple(items[engine])) for engine in sorted(items))

    def _body(self, body: OrderBody, place: Place) -> Items:
        items: Items = {}
        for node in body.nodes:
            if isinstance(node.statement, Task):
                stream, blocks = self._chain(node, node.statement, place)
                items.setdefault(stream, []).extend(blocks)
            elif node.kind != "entry" or has_entry_block(node):
                stream, block = self._join(node, place)
                items.setdefault(stream, []).append(block)
            if node.kind == "entry":
                self._loop(node, body.inner[node.position], place, items)
        return items

    def _loop(self, entry: OrderNode, body: OrderBody, place: Place, items: Items) -> None:
        loop = body.loop
        if loop is None:
            raise ValueError("a loop without statement")
        outer = place.tags[-1]
        gate = (outer.wait_for(entry),) if has_entry_block(entry) else self._waits(entry, place)
        counters = Counters((*place.row.loops, loop))
        inside = outer.inside(loop.position)
        tags, start = (*place.tags, inside), (*gate, *inside.window_wait())
        for run in self._runs.of(loop, place.counters, place.row):
            inner = Place(counters, _inner_row(place.row, loop, run), tags, start)
            for stream, found in self._body(body, inner).items():
                repeat = Repeat(loop.position, run.count, tuple(found), run.start)
                items.setdefault(stream, []).append(repeat)

    def _chain(self, node: OrderNode, last: Task, place: Place) -> tuple[int, list[Block]]:
        """A task, or tasks that stream into each other: the first waits, and the last signals."""
        tags = place.tags[-1]
        waits, signal = self._waits(node, place), tags.signal(node)
        tasks = self._members.get(last.position)
        if tasks is None:
            return self._stream_of[last.position], [self._task(last, place, waits, signal)]
        blocks = [self._task(task, place, (), None, is_chained=True) for task in tasks[:-1]]
        blocks[0] = replace(blocks[0], waits=waits)
        return self._stream_of[last.position], [*blocks, self._task(last, place, (), signal)]

    def _join(self, node: OrderNode, place: Place) -> tuple[int, Block]:
        tags, waits = place.tags[-1], self._waits(node, place)
        signal = tags.signal(node)
        if isinstance(node.statement, WaitStatement):
            named = tuple(dict.fromkeys(node.statement.tokens)) if self._has_token_limit else ()
            block = Block("wait", node.position, waits=waits, signal=signal, names=named)
            return tags.tags.space, block
        if node.kind == "done":
            block = Block("join", node.position, waits=waits, signal=tags.iterations)
            return tags.tags.space, block
        inner = tags.inside(node.statement.position)
        sets = tuple(inner.raises()) if node.kind == "end" else ()
        block = Block("join", node.position, waits=waits, signal=signal, sets=sets)
        return inner.tags.space, block

    def _waits(self, node: OrderNode, place: Place) -> tuple[Wait, ...]:
        """What a node waits for, in its own body and in those around it."""
        tags = place.tags[-1]
        if node.kind == "end":
            done = tags.inside(_loop_of(node).position).all_done(place.counters)
            return (done, *tags.serialising_waits(node))
        waits = [place.tags_of(named).wait_for(named) for named in node.before]
        if node.after_start:
            waits += place.start
        if node.kind == "done":
            waits += tags.previous_done()
        if tags.tags.chains.serialised:
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
        form, counters = self._forms.form(task, place.row), place.counters
        inputs, outputs = self._operands.place(task, form, counters)
        is_shared = self._stream_of[task.position] == DEVICE
        names = task.deps if self._has_token_limit else ()
        if len(names) > 1:
            names = tuple(dict.fromkeys(names))
        return Block(
            "task",
            task.position,
            form.op,
            form.attributes,
            form.is_ordered,
            inputs,
            outputs,
            self._units.bind_instance(task, form.units, counters),
            form.shared,
            self._units.engine(task, counters) if is_shared else None,
            form.format,
            waits=waits,
            signal=signal,
            is_chained=is_chained,
            has_token=self._has_token_limit and task.token is not None,
            names=names,
        )


def _loop_of(node: OrderNode) -> Loop:
    if not isinstance(node.statement, Loop):
        raise TypeError("the end of no loop")
    return node.statement


def _inner_row(row: Grid, loop: Loop, run: Run) -> Grid:
    """The first iteration of a run, as a grid of one row."""
    ordinal, value = (np.array([n], np.int64) for n in (run.start, run.value))
    return Grid(1, (*row.loops, loop), (*row.ordinals, ordinal), (*row.values, value))
