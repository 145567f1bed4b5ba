"""Sketches that run: operands that go together, races mended, bytes worked out naively.

The naive run walks the sketch in program order and moves single bytes; it shares nothing with the
machine but the definition of the language.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from nacre.nem.api.programs import LoadedProgram
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.nem.plan.sketches import (
    BUFFERS,
    SIZE,
    Instance,
    Item,
    Loop,
    Place,
    Task,
    Wait,
    hazards,
    program_text,
    sketches,
)

Items = tuple[Item, ...]
Contents = dict[str, bytes]
Write = tuple[str, int]  # a buffer and a byte of it

_RACES = ("HAZ01", "HAZ02", "HAZ03", "HAZ05", "HAZ06")

_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "max": max,
    "min": min,
}


def operation(task: Task) -> str:
    """The opcode of a task, the same whenever it is asked for."""
    if not task.is_compute:
        return "transfer"
    if len(task.reads) == 1:
        return "relu"
    return list(_BINARY)[sum(map(ord, task.token)) % len(_BINARY)]


def fit(items: Items) -> Items:
    """The same program with operands whose shapes go together."""
    return tuple(_fit(item) for item in items)


def _fit(item: Item) -> Item:
    if isinstance(item, Loop):
        return replace(item, body=fit(item.body))
    if isinstance(item, Wait):
        return item
    target = item.writes[0]
    if not item.is_compute:
        (source,) = item.reads
        width = min(source.width, target.width)
        return replace(item, reads=(replace(_apart(source, target), width=width),))
    reads = [_alike(read, target) for read in item.reads]
    return replace(item, reads=tuple(reads[: 1 if item.token.endswith("3") else 2]))


def _alike(place: Place, other: Place) -> Place:
    """A place of the same shape; in the same buffer the same place, for work in place."""
    if place.buffer == other.buffer:
        return other
    return replace(place, rows=other.rows, width=other.width)


def _apart(place: Place, other: Place) -> Place:
    if place.buffer != other.buffer:
        return place
    following = BUFFERS[(BUFFERS.index(place.buffer) + 1) % len(BUFFERS)]
    return replace(place, buffer=following)


def text(items: Items) -> str:
    """The program as NEM."""
    names = {task.token: operation(task) for task in tasks(items)}
    return re.sub(
        r"(\w+) = add\.", lambda found: f"{found[1]} = {names[found[1]]}.", program_text(items)
    )


def tasks(items: Items) -> Iterator[Task]:
    """Every task of a sketch."""
    for item in items:
        if isinstance(item, Loop):
            yield from tasks(item.body)
        elif isinstance(item, Task):
            yield item


def mended(items: Items) -> Items:
    """The same program with as much order added as it takes to be free of races."""
    while found := hazards(items):
        pair, code = min((sorted(positions), code) for positions, code in found)
        across = code in ("HAZ05", "HAZ06")
        items = _slower(items, pair) if across else _ordered(items, pair)
    return items


def _numbered(items: Items, first: int = 0) -> Iterator[tuple[int, Item]]:
    for item in items:
        yield first, item
        first += _statements(item)


def _statements(item: Item) -> int:
    return 2 + sum(map(_statements, item.body)) if isinstance(item, Loop) else 1


def _slower(items: Items, pair: list[int], first: int = 0) -> Items:
    """One iteration fewer in flight, in the innermost loop around both that has several."""
    made: list[Item] = []
    for position, item in _numbered(items, first):
        last = position + _statements(item)
        if isinstance(item, Loop) and all(position < p < last for p in (pair[0], pair[-1])):
            body = _slower(item.body, pair, position + 1)
            inner = replace(item, body=body)
            is_done = body != item.body
            made.append(inner if is_done else replace(item, window=max(1, item.window - 1)))
        else:
            made.append(item)
    return tuple(made)


def _ordered(items: Items, pair: list[int]) -> Items:
    """The later of two tasks depends on the earlier one."""
    token = ""

    def walk(body: Items, first: int) -> Items:
        nonlocal token
        made: list[Item] = []
        for position, item in _numbered(body, first):
            if isinstance(item, Loop):
                made.append(replace(item, body=walk(item.body, position + 1)))
                continue
            if isinstance(item, Task) and position == pair[0]:
                token = item.token
            is_later = isinstance(item, Task) and position == pair[-1]
            if isinstance(item, Task) and is_later:
                item = replace(item, deps=(*item.deps, token))
            made.append(item)
        return tuple(made)

    return walk(items, 0)


@st.composite
def runnable(draw: st.DrawFn, *, racy: bool = False, most_items: int = 5) -> Items:
    """Sketches that the checker has nothing against, or nothing but races."""
    items = fit(draw(sketches(most_items)))
    if not racy:
        items = mended(items)
    found = [d.code for d in NemInterpreter().load_string(text(items)).diagnostics
             if d.severity == "error"]  # fmt: skip
    assume(all(code in _RACES for code in found) and bool(found) == racy)
    return items


def loaded(items: Items, interpreter: NemInterpreter) -> LoadedProgram:
    """A sketch, read by an interpreter."""
    return interpreter.load_string(text(items))


def contents(seed: int) -> Contents:
    """Something for every buffer of a sketch."""
    rng = random.Random(seed)
    return {name: rng.randbytes(SIZE) for name in BUFFERS}


def stored(session: Session) -> Contents:
    """The bytes of every buffer, however poisoned."""
    memory = session.memory
    return {name: memory.storage(b).data.tobytes() for name, b in memory.buffers.items()}


def naive_run(items: Items, inputs: Contents, order: Sequence[str] | None = None) -> Contents:
    """What a program leaves in memory: in program order, or as instances are named."""
    memory = {name: bytearray(data) for name, data in inputs.items()}
    named = {name_of(task.token, env): (task, env) for task, env in instances(items, {})}
    for task, env in (named[name] for name in (named if order is None else order)):
        for (buffer, byte), value in naive_writes(task, env, memory).items():
            memory[buffer][byte] = value
    return {name: bytes(data) for name, data in memory.items()}


def instances(items: Items, env: dict[str, int]) -> Iterator[tuple[Task, dict[str, int]]]:
    """Every instance of a task in program order."""
    for item in items:
        if isinstance(item, Loop):
            for value in range(item.first, item.last + 1):
                yield from instances(item.body, {**env, item.variable: value})
        elif isinstance(item, Task):
            yield item, env


def naive_writes(
    task: Task, env: dict[str, int], memory: Mapping[str, bytearray]
) -> dict[Write, int]:
    """The bytes that an instance writes, and what it writes there."""
    sources = [[memory[b][at] for b, at in place_bytes(read, env)] for read in task.reads]
    places = place_bytes(task.writes[0], env)
    if not task.is_compute:
        return dict(zip(places, sources[0], strict=False))  # no more than the source has
    name = operation(task)
    results = []
    for values in zip(*sources, strict=True):
        signed = [value - 256 if value > 127 else value for value in values]
        result = max(0, signed[0]) if name == "relu" else _BINARY[name](signed[0], signed[1])
        results.append(result % 256)
    return dict(zip(places, results, strict=True))


def place_bytes(place: Place, env: dict[str, int]) -> list[Write]:
    """The bytes of an operand, element after element."""
    start = place.offset.value(env)
    return [
        (place.buffer, start + row * place.pitch + byte)
        for row in range(place.rows)
        for byte in range(place.width)
    ]


def name_of(token: str, env: Mapping[str, int]) -> str:
    """The name of an instance."""
    return f"{token}[{','.join(map(str, env.values()))}]" if env else token


def instance_name(instance: Instance) -> str:
    """The name of an instance of a naive reading."""
    return name_of(instance.task.token, instance.env)
