"""Schedules without a solver: one task after the other, each with its own room in L1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nacre.compile.tiling.spaces import align_up
from tests.compile.optimal.answer import Addresses
from tests.compile.optimal.chain_bounds import conflict
from tests.compile.optimal.solution import Solution, TaskStart
from tests.compile.optimal.tile_choices import TileChoice

Key = tuple[int, str, int, int]  # as in `TaskStart`


def task_cycles(choices: Sequence[TileChoice]) -> dict[Key, int]:
    """Every task of a plan with its cycles, in an order in which they may run."""
    found: dict[Key, int] = {}
    for at, choice in enumerate(choices):
        for n, cycles in enumerate(choice.shared_cycles):
            found[at, "shared", 0, n] = cycles
        for block, cycles in enumerate(choice.weight_cycles):
            found[at, "weights", block, 0] = cycles
        for q in range(choice.count):
            for n in range(len(choice.pattern.tasks)):
                found[at, "tile", q, n] = int(choice.cycles[q, n])
    return found


def serial_solution(
    choices: Sequence[TileChoice], order: Sequence[Key] | None = None
) -> tuple[Solution, Addresses]:
    """The tasks of some layers in an order, and places of their own for all that lies in L1."""
    cycles, starts, time = task_cycles(choices), list[TaskStart](), 0
    for key in order or cycles:
        starts.append(TaskStart(*key, time, time + cycles[key]))
        time += cycles[key]
    places: Addresses = {}
    end = 0
    for at, choice in enumerate(choices):
        sizes: dict[tuple[object, ...], int] = {
            (at, "shared", space): size for space, size in choice.shared_bytes.items()
        }
        sizes |= {(at, "weights", n): size for n, size in enumerate(choice.weight_bytes)}
        for q in range(choice.count):
            sizes |= {(at, "ring", q, s): int(taken[q]) for s, taken in choice.bytes.items()}
        for box, size in sizes.items():
            places[box] = end
            end += int(align_up(size))
    return Solution(time, (0,) * len(choices), tuple(starts), ()), places


def dependences(choice: TileChoice) -> dict[Key, set[Key]]:
    """What each task of the only layer comes after; nothing in L1 has the place of another."""
    pattern = choice.pattern
    found: dict[Key, set[Key]] = {key: set() for key in task_cycles([choice])}
    for q in range(choice.count):
        for n, task in enumerate(pattern.tasks):
            own = found[0, "tile", q, n]
            own |= {(0, "tile", q, m) for m in range(n) if conflict(task, pattern.tasks[m])}
            own |= {(0, "shared", 0, m) for m, t in enumerate(pattern.shared) if conflict(task, t)}
            if task.reads_weights:
                own.add((0, "weights", q // len(choice.tiles), 0))
    return found


def orders(depends: Mapping[Key, set[Key]]) -> Iterator[tuple[Key, ...]]:
    """All orders in which each task comes after those that it depends on."""
    return _orders((), frozenset(depends), depends)


def _orders(
    before: tuple[Key, ...], left: frozenset[Key], depends: Mapping[Key, set[Key]]
) -> Iterator[tuple[Key, ...]]:
    if not left:
        yield before
    for key in sorted(left):
        if not depends[key] & left:
            yield from _orders((*before, key), left - {key}, depends)
