"""Race-free programs, broken one step at a time: does the checker notice exactly what matters?

    python -m tests.nem.plan.mutants --count 10000 --seed 1

The naive reading of `sketches.py` judges every mutant. A mutant that became racy must be caught,
with the same pairs of statements and codes; one that did not must raise no alarm.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from nacre.base.source import Source
from nacre.nem.checks.rules.ordering.hazards import code_of
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.conflicts import find_conflicts
from nacre.nem.plan.plan import build_plan
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import Item, Loop, Offset, Place, Task, Wait, hazards, program_text

Items = tuple[Item, ...]
TILE = 4


@dataclass
class Score:
    """How many mutants there were and what became of them."""

    tried: int = 0
    racy: int = 0
    caught: int = 0
    missed: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)

    @property
    def is_perfect(self) -> bool:
        return not self.missed and not self.false_alarms

    def __str__(self) -> str:
        percent = 100 * self.caught / self.racy if self.racy else 100.0
        return (
            f"{self.tried} mutants: {self.racy} racy, {self.caught} caught ({percent:.2f}%), "
            f"{len(self.missed)} missed, {len(self.false_alarms)} false alarms"
        )


def pipeline(rng: random.Random) -> Items:
    """A tiled pipeline that is free of races by construction."""
    window, trips = rng.randint(1, 3), rng.randint(2, 5)
    ring = window + rng.randint(0, 1)
    names = iter(f"t{n}" for n in range(100))
    preload = _preload(rng, next(names))
    body = _stages(rng, names, ring, preload[0].token if isinstance(preload[0], Task) else "")
    loop = Loop("i", rng.randint(0, 2), 0, window, body)
    loop = replace(loop, last=loop.first + trips - 1)
    if rng.random() < 0.4:  # an outer loop that runs its iterations one after the other
        return (*preload, Loop("o", 0, rng.randint(1, 2), 1, (loop,)))
    tail = Task("tail", (Place("A", Offset(0), TILE),), (Place("C", Offset(0), TILE),))
    return (*preload, loop, tail) if rng.random() < 0.5 else (*preload, loop)


def _preload(rng: random.Random, token: str) -> list[Item]:
    place = Place("C", Offset(40), TILE)
    load = Task(token, (Place("C", Offset(20), TILE),), (place,), is_sync=rng.random() < 0.3)
    if not load.is_sync and rng.random() < 0.5:
        return [load, Wait((token,))]
    return [load]


def _slot(buffer: str, base: int, ring: int) -> Place:
    return Place(buffer, Offset(base, (("i", TILE, ring),)), TILE)


def _stages(rng: random.Random, names: Iterator[str], ring: int, weights: str) -> Items:
    """Load, compute in one or two steps, store; ordered by deps, by waits or by `.sync`."""
    moving = Place("C", Offset(0, (("i", TILE, None),)), TILE)
    x, y = _slot("A", 0, ring), _slot("B", 0, ring)
    load = Task(next(names), (moving,), (x,))
    w = Place("C", Offset(40), TILE)
    compute = Task(next(names), (x, w), (y,), (load.token, weights), is_compute=True)
    in_place = Task(next(names), (y, y), (y,), (compute.token,), is_compute=True)
    out = Place("A", Offset(24, (("i", TILE, None),)), TILE)
    store = Task(next(names), (y,), (out,), (in_place.token,))
    stages: list[Item] = [load, compute, in_place, store]
    if rng.random() < 0.4:
        place = rng.randrange(3)
        earlier = stages[place]
        if isinstance(earlier, Task):
            later = stages[place + 1]
            if isinstance(later, Task):
                kept = tuple(d for d in later.deps if d != earlier.token)
                stages[place + 1] = replace(later, deps=kept)
            if rng.random() < 0.5:
                stages[place] = replace(earlier, is_sync=True)
            else:
                stages.insert(place + 1, Wait((earlier.token,)))
    return tuple(stages)


def mutants(items: Items, rng: random.Random) -> Iterator[Items]:
    """Every way to break one thing once, in random order."""
    found = list(_mutants(items))
    rng.shuffle(found)
    yield from found


def _mutants(items: Items) -> Iterator[Items]:
    for place, item in enumerate(items):
        before, after = items[:place], items[place + 1 :]

        def put(*changed: Item, before: Items = before, after: Items = after) -> Items:
            return (*before, *changed, *after)

        if isinstance(item, Wait):
            yield put()
        elif isinstance(item, Loop):
            yield put(replace(item, window=item.window + 1))
            yield put(replace(item, window=item.window + 2))
            for body in _mutants(item.body):
                yield put(replace(item, body=body))
        else:
            yield from _task_mutants(item, put)


def _task_mutants(task: Task, put: Callable[..., Items]) -> Iterator[Items]:
    for dep in task.deps:
        yield put(replace(task, deps=tuple(d for d in task.deps if d != dep)))
    if task.is_sync:
        yield put(replace(task, is_sync=False))
    for reads in _moved(task.reads):
        yield put(replace(task, reads=reads))
    for writes in _moved(task.writes):
        yield put(replace(task, writes=writes))


def _moved(places: tuple[Place, ...]) -> Iterator[tuple[Place, ...]]:
    for number, place in enumerate(places):
        for changed in _place_mutants(place):
            yield (*places[:number], changed, *places[number + 1 :])


def _place_mutants(place: Place) -> Iterator[Place]:
    offset = place.offset
    yield replace(place, offset=replace(offset, base=offset.base + 1))
    for number, (name, step, modulus) in enumerate(offset.parts):
        rest = (*offset.parts[:number], *offset.parts[number + 1 :])
        if modulus is not None and modulus > 1:
            parts = (*rest, (name, step, modulus - 1))
            yield replace(place, offset=replace(offset, parts=parts))
        yield replace(place, offset=replace(offset, parts=rest))


def checked(items: Items) -> set[tuple[frozenset[int], str]]:
    """What the checker says."""
    source = Source("mutant.nem", program_text(items))
    program = resolve(source, parse(source).document).program
    plan = build_plan(program, 1_000_000)
    return {
        (frozenset({c.first.position, c.second.position}), code_of(c)) for c in find_conflicts(plan)
    }


def score(count: int, seed: int) -> Score:
    """Judge so many mutants."""
    rng = random.Random(seed)
    result = Score()
    while result.tried < count:
        items = pipeline(rng)
        expected = hazards(items)
        if expected or checked(items):
            result.false_alarms.append(program_text(items))
            continue
        for mutant in mutants(items, rng):
            if result.tried == count:
                break
            _judge(mutant, result)
    return result


def _judge(mutant: Items, result: Score) -> None:
    expected, said = hazards(mutant), checked(mutant)
    result.tried += 1
    result.racy += bool(expected)
    if expected and said == expected:
        result.caught += 1
    elif expected - said:
        result.missed.append(program_text(mutant))
    elif said - expected:
        result.false_alarms.append(program_text(mutant))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    result = score(options.count, options.seed)
    sys.stdout.write(f"{result}\n")
    for text in (*result.missed, *result.false_alarms):
        sys.stdout.write(f"---\n{text}")
    return 0 if result.is_perfect and result.tried >= options.count else 1


if __name__ == "__main__":
    sys.exit(main())
