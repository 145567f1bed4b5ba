"""The roofline: MACs for every byte that crosses a memory's border, against MACs a cycle.

The border is DDR's; a program that leaves DDR alone is measured at L2's. The bytes that cross it
are charged to the products that they feed or come from, in proportion to the MACs of those: the
way from a copy to a product leads through the buffers that the statements in between read and
write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from nacre.nem.model.program import Task
from nacre.nem.run.machine.signatures import signatures
from nacre.nem.run.sessions.naming import task_name
from nacre.nem.run.timing.bounds import unit_type
from nacre.nem.run.timing.costs import copied_bytes, macs_per_two_cycles, work_of
from nacre.nem.run.timing.timeline import Timeline

COPIES = ("transfer", "store")


@dataclass(frozen=True, slots=True)
class Point:
    """A statement's products, all of its instances together."""

    position: int
    name: str
    macs: int
    bytes_moved: float  # its share of what crosses the border
    busy: int  # cycles, all instances added


@dataclass(frozen=True, slots=True)
class Roof:
    """What the device's NMUs reach together with operands of some types."""

    types: str
    macs_per_cycle: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roofs of the device and the points of the program."""

    border: str  # DDR or L2
    bytes_per_cycle: float
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    macs: int
    bytes_moved: int
    cycles: int


def roofline(timeline: Timeline) -> Roofline | None:
    """The roofline of a timed plan; None where nothing multiplies."""
    products = {t.position: m for t in _tasks_with_instances(timeline) if (m := _macs(timeline, t))}
    if not products:
        return None
    border = next((b for b in ("DDR", "L2") if _bytes_across(timeline, b)), "DDR")
    moved = _bytes_across(timeline, border)
    share = _bytes_by_product(timeline, moved, products)
    tasks = timeline.steps.plan.program.task_at
    points = tuple(
        Point(
            position,
            task_name(timeline.steps.plan.program, tasks[position]),
            macs,
            float(share.get(position, 0)),
            _busy(timeline, tasks[position]),
        )
        for position, macs in products.items()
    )
    return Roofline(
        border,
        _bandwidth(timeline, border, moved),
        _roofs(timeline, [tasks[p] for p in products]),
        points,
        sum(products.values()),
        sum(moved.values()),
        timeline.cycles,
    )


def _tasks_with_instances(timeline: Timeline) -> Iterable[Task]:
    """The tasks of the program of which there are instances."""
    tasks = timeline.steps.plan.program.tasks
    return (t for t in tasks if timeline.steps.numbers.get(t.position, np.zeros(0)).size)


def _macs(timeline: Timeline, task: Task) -> int:
    if task.op in COPIES:
        return 0
    task_signatures = signatures(task, timeline.steps.grid(task))
    macs = [
        work_of(task, s.call).macs if s.call is not None else 0 for s in task_signatures.distinct
    ]
    rows = timeline.steps.numbers[task.position].size
    return (
        macs[0] * rows
        if task_signatures.index is None
        else sum(macs[i] for i in task_signatures.index)
    )


def _busy(timeline: Timeline, task: Task) -> int:
    return int(timeline.placement.duration[timeline.steps.numbers[task.position]].sum())


def _levels(task: Task) -> list[str]:
    return [str(o.region.buffer.level) for o in task.operands if o.region and o.region.buffer]


def _bytes_across(timeline: Timeline, border: str) -> dict[int, int]:
    """Bytes that each copy moves over a border, by the statement's position."""
    bytes_moved = {}
    for task in _tasks_with_instances(timeline):
        levels = _levels(task)
        if task.op in COPIES and border in levels:
            moved = copied_bytes(task, timeline.steps.grid(task))
            rows = timeline.steps.numbers[task.position].size
            total = moved * rows if isinstance(moved, int) else int(moved.sum())
            bytes_moved[task.position] = levels.count(border) * total
    return bytes_moved


def _bandwidth(timeline: Timeline, border: str, moved: dict[int, int]) -> float:
    """Bytes a cycle over the border when every unit that carries some of them is busy."""
    device, profile = timeline.device, timeline.profile
    tasks = timeline.steps.plan.program.task_at
    total = Fraction()
    for unit in {unit_type(timeline, tasks[position]) for position in moved}:
        engines = 1 if unit == "sDMA" else device.num_engines
        key = "store_bandwidth" if unit == "CSTL" else "bandwidth"
        total += device.count(unit) * engines * profile.rate(unit, key)
    if border == "DDR" and profile.get("DDR", "bandwidth") is not None:
        total = min(total, profile.rate("DDR", "bandwidth"))
    return int(total) if total.denominator == 1 else float(total)


def _roofs(timeline: Timeline, products: list[Task]) -> tuple[Roof, ...]:
    """One for every rate that the types of the program's products lead to."""
    units = timeline.device.count("NMU") * timeline.device.num_engines
    types: dict[float, dict[str, None]] = defaultdict(dict)
    for task in products:
        if unit_type(timeline, task) != "NMU":
            continue
        for signature in signatures(task, timeline.steps.grid(task)).distinct:
            if signature.call is None:
                continue
            rate = units * macs_per_two_cycles(signature.call, timeline.profile) / 2
            names = [t.elem.name for t in signature.call.inputs[:2] if t is not None]
            types[rate][" x ".join(dict.fromkeys(names))] = None
    return tuple(Roof(", ".join(names), rate) for rate, names in sorted(types.items()))


def _bytes_by_product(
    timeline: Timeline, moved: dict[int, int], products: dict[int, int]
) -> dict[int, Fraction]:
    """The bytes that each product is charged with."""
    flow = _DataFlow(list(_tasks_with_instances(timeline)), frozenset(products))
    shares: dict[int, Fraction] = defaultdict(Fraction)
    tasks = timeline.steps.plan.program.task_at
    # Copies with the same buffers behind them end at the same products.
    bytes_of: dict[frozenset[int], int] = defaultdict(int)
    for position, size in moved.items():
        bytes_of[flow.products(tasks[position])] += size
    for ends, size in bytes_of.items():
        total = sum(products[p] for p in ends)
        for position in ends:
            shares[position] += Fraction(size * products[position], total)
    return shares


class _DataFlow:
    """Which products a copy's data reaches, or comes from, through buffers."""

    def __init__(self, tasks: list[Task], products: frozenset[int]) -> None:
        self._readers: dict[int, list[Task]] = defaultdict(list)
        self._writers: dict[int, list[Task]] = defaultdict(list)
        for task in tasks:
            for buffer in _buffers(task, "read"):
                self._readers[buffer].append(task)
            for buffer in _buffers(task, "write"):
                self._writers[buffer].append(task)
        self._products = products
        self._from = cache(self._reachable_products)

    def products(self, copy: Task) -> frozenset[int]:
        """The products that a copy feeds; those that it comes from where it feeds none."""
        fed = self._from(_buffers(copy, "write"), True)
        return fed or self._from(_buffers(copy, "read"), False)

    def _reachable_products(self, buffers: frozenset[int], forward: bool) -> frozenset[int]:
        users = self._readers if forward else self._writers
        seen, todo, products = set(buffers), list(buffers), set[int]()
        while todo:
            for task in users[todo.pop()]:
                if task.position in self._products:
                    products.add(task.position)
                    continue
                for buffer in _buffers(task, "write" if forward else "read") - seen:
                    seen.add(buffer)
                    todo.append(buffer)
        return frozenset(products)


def _buffers(task: Task, access: str) -> frozenset[int]:
    regions = (o.region for o in task.operands if o.access == access and o.region)
    return frozenset(r.buffer.index for r in regions if r.buffer is not None)
