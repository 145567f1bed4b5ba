"""Streams: every node of a program's order as a block, in the stream that it belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property, partial

import numpy as np

from nacre.bind.counters import Counters, add_number
from nacre.bind.forms import FormBinder, TaskForm
from nacre.bind.operands import OperandBinder
from nacre.bind.order import OrderBody, OrderNode
from nacre.bind.placed_tags import NodeTags, PlacedTags, PlainWait
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

    def wait_outside(self, named: OrderNode) -> Wait:
        """A wait for a node of a body around this one, as nodes here name it."""
        node, at = self.tags.tags.body.localise(named), -2
        while self.outer[at].position != node.body:
            at -= 1
        return self.outer[at].wait_for(node)


class Emitter:
    """Writes blocks."""

    def __init__(
        self,
        units: UnitBinder,
        forms: FormBinder,
        operands: OperandBinder,
        members: Mapping[int, tuple[Task, ...]],
        stream_of: Mapping[int, int],
        task_at: Mapping[int, Task],
        *,
        has_token_limit: bool,
    ) -> None:
        self._task_at = task_at  # by position
        self._stream_of = stream_of  # of every task, by position
        self._units, self._operands = units, operands
        self._requested = units.kinds.requested  # by `@resource`
        self._forms, self._known_forms = forms, forms.known
        self._kinds = units.kinds.numbers
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
        shift, task_at, stream_of = body.shift, self._task_at, self._stream_of
        members, tags = self._members, place.tags
        number, is_serialised = tags.number, tags.is_serialised
        known_forms, kinds, counters = self._known_forms, self._kinds, place.counters
        place_operands = self._operands.place
        is_usual = not members and not self._requested and self._has_token_limit
        for of_node in tags.nodes():
            node, plain, ready, signal = of_node
            kind, position = node.kind, node.position + shift
            if kind == "task":
                if ready is not None:
                    waits = ready
                elif plain is None or node.after_start or is_serialised:
                    waits = self._waits(of_node, place)
                else:
                    waits = _plain_waits(plain, number)
                last, stream = task_at[position], stream_of[position]
                found = items[stream]
                if position in members:
                    waits = self._producers(last, place, waits, found)
                if not is_usual or stream == DEVICE:
                    found.append(self._task(last, place, waits, signal, stream))
                    continue
                # Most programs have nothing else: as `_task` does, with a call less for each.
                form = known_forms.get(kinds[position]) or self._form(last, place)
                inputs, outputs = place_operands(last, form, counters)
                found.append(Block(
                    "task", position, form.op, form.attributes, form.is_ordered, inputs, outputs,
                    form.units, form.shared, None, form.format, 0, 0, waits, signal, (),
                    False, last.token is not None, last.deps,
                ))  # fmt: skip
                continue
            if kind != "entry" or has_entry_block(node):
                stream, block = self._join(of_node, position, place)
                items[stream].append(block)
            if kind == "entry":
                self._loop(of_node, body.inner[position], place, items)
        return items

    def _loop(self, entry: NodeTags, body: OrderBody, place: Place, items: Items) -> None:
        loop = body.loop
        if loop is None:
            raise ValueError("a loop without statement")
        tags, has_block = place.tags, has_entry_block(entry[0])
        gate = (tags.wait_for(entry[0]),) if has_block else self._waits(entry, place)
        counters = place.counters.inside(loop)
        inside = tags.inside(loop.position)
        around, start = (*place.outer, inside), (*gate, *inside.window_wait())
        for run in self._runs.of(loop, place.counters, lambda: place.row):
            inner = Place(counters, around, partial(_inner_row, place, loop, run), start)
            for stream, found in self._body(body, inner).items():
                items[stream].append(Repeat(loop.position, run.count, tuple(found), run.start))

    def _producers(
        self, last: Task, place: Place, waits: tuple[Wait, ...], found: list[Item]
    ) -> tuple[Wait, ...]:
        """The tasks that stream into one: the first waits for what all of them do, the last not."""
        for task in self._members[last.position][:-1]:
            stream = self._stream_of[task.position]
            found.append(self._task(task, place, waits, None, stream, is_chained=True))
            waits = ()
        return waits

    def _join(self, of_node: NodeTags, position: int, place: Place) -> tuple[int, Block]:
        tags, waits = place.tags, self._waits(of_node, place)
        node, *_, signal = of_node
        if node.kind == "done":
            block = Block("join", position, waits=waits, signal=tags.iterations)
            return tags.tags.space, block
        if isinstance(node.statement, WaitStatement):
            named = self._named(node.statement.tokens, position)
            block = Block("wait", position, waits=waits, signal=signal, names=named)
            return tags.tags.space, block
        inner = tags.inside(node.statement.position)
        sets = inner.raises() if node.kind == "end" else ()
        block = Block("join", position, waits=waits, signal=signal, sets=sets)
        return inner.tags.space, block

    def _waits(self, of_node: NodeTags, place: Place) -> tuple[Wait, ...]:
        """What a node waits for, in its own body and in those around it."""
        tags, (node, own, ready, _) = place.tags, of_node
        waits: tuple[Wait, ...] = ()
        if ready is not None:
            waits = ready
        elif own is not None:
            waits = _plain_waits(own, tags.number)
        elif node.kind == "end":
            waits = (tags.inside(_loop_of(node).position).all_done(place.counters),)
        else:
            waits = tuple([
                tags.wait_for(named) if named.body == node.body else place.wait_outside(named)
                for named in node.before
            ])  # fmt: skip
        if node.after_start:
            waits += place.start
        if node.kind == "done":
            waits += tags.previous_done()
        if tags.is_serialised:
            waits += tags.serialising_waits(node)
        return waits

    def _form(self, task: Task, place: Place) -> TaskForm:
        return self._forms.make(task, lambda: place.row)

    def _task(
        self,
        task: Task,
        place: Place,
        waits: tuple[Wait, ...],
        signal: Tag | None,
        stream: int,
        *,
        is_chained: bool = False,
    ) -> Block:
        position, counters = task.position, place.counters
        form = self._known_forms.get(self._kinds[position]) or self._form(task, place)
        inputs, outputs = self._operands.place(task, form, counters)
        units = form.units
        if self._requested:
            units = self._units.bind_instance(task, units, counters)
        has_token, named = False, task.deps
        if not self._has_token_limit:
            named = ()
        elif self._members:
            has_token, named = (
                self._makes_token(task) and not is_chained,
                self._named(named, position),
            )
        else:  # which is most of them
            has_token = task.token is not None
        return Block(
            "task",
            position,
            form.op,
            form.attributes,
            form.is_ordered,
            inputs,
            outputs,
            units,
            form.shared,
            self._units.engine(task, counters) if stream == DEVICE else None,
            form.format,
            0,  # the length of requests is chosen later
            0,  # and so is its priority
            waits,
            signal,
            (),
            is_chained,
            has_token,
            named,
        )

    def _makes_token(self, task: Task) -> bool:
        """Whether a task makes a token, or one that streams into it: a chain has one for all."""
        if task.token is not None or not self._members:
            return task.token is not None
        return any(member.token is not None for member in self._members.get(task.position, ()))

    def _named(self, tokens: tuple[int, ...], position: int) -> tuple[int, ...]:
        """The tokens that a block names; of a chain that of the last, and none of its own."""
        if not self._has_token_limit:
            return ()
        if not self._last_of:
            return tokens
        own = self._last_of.get(position)
        found = (self._last_of.get(token, token) for token in tokens)
        return tuple(token for token in dict.fromkeys(found) if token != own)


def _plain_waits(plain: tuple[PlainWait, ...], number: int) -> tuple[Wait, ...]:
    """Waits for tags to have counted so many, beside what their body had counted before."""
    if len(plain) == 1:  # which is most of them
        ((tag, before, counted),) = plain
        if type(before) is int:
            return (Wait(tag, before + counted + number),)
    return tuple([
        Wait(tag, before + counted + number)
        if type(before) is int
        else Wait(tag, add_number(before, counted + number))
        for tag, before, counted in plain
    ])  # fmt: skip


def _loop_of(node: OrderNode) -> Loop:
    if not isinstance(node.statement, Loop):
        raise TypeError("the end of no loop")
    return node.statement


def _inner_row(place: Place, loop: Loop, run: Run) -> Grid:
    """The first iteration of a run in a body at its place, as a grid of one row."""
    row = place.row
    ordinal, value = (np.array([n], np.int64) for n in (run.start, run.value))
    return Grid(1, (*row.loops, loop), (*row.ordinals, ordinal), (*row.values, value))
