"""Bounds, aliasing and coverage against a byte-by-byte reading of random programs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.aliasing import operand_overlaps
from nacre.nem.plan.bounds import region_problems
from nacre.nem.plan.coverage import RunCounter, buffer_uses, is_covered
from nacre.nem.plan.first_writes import UnwrittenRead, unwritten_reads
from nacre.nem.plan.footprints import Runs, union
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import (
    SIZE,
    Instance,
    Item,
    Place,
    program_text,
    read,
    sketches,
)


def plan_of(items: tuple[Item, ...]) -> Plan:
    source = Source("sketch.nem", program_text(items))
    return build_plan(resolve(source, parse(source).document).program, 100_000)


def instances_by_task(items: tuple[Item, ...]) -> dict[int, list[Instance]]:
    found: dict[int, list[Instance]] = {}
    for instance in read(items).instances:
        found.setdefault(instance.position, []).append(instance)
    return dict(sorted(found.items()))


def values(instance: Instance) -> tuple[int, ...]:
    return tuple(instance.env.values())


@given(sketches())
def test_regions_past_the_end_are_found_with_their_first_iteration(
    items: tuple[Item, ...],
) -> None:
    expected = []
    for instances in instances_by_task(items).values():
        task = instances[0].task
        order = (*task.reads, *task.writes) if task.is_compute else (*task.writes, *task.reads)
        for place in order:
            ends = [place.offset.value(i.env) + place.extent for i in instances]
            wrong = [n for n, end in enumerate(ends) if end > SIZE]
            if wrong:
                first = wrong[0]
                everywhere = len(wrong) == len(ends)
                expected.append((values(instances[first]), ends[first], everywhere))
    found = [
        (p.grid.iteration(p.row), p.value, p.is_everywhere)
        for p in region_problems(plan_of(items))
        if p.kind == "past the buffer"
    ]
    assert found == expected, program_text(items)


def coincide(a: Place, b: Place, env: dict[str, int]) -> bool:
    """Whether two operands of an elementwise operation lie element on element."""
    shapes = [(p.rows, p.width, p.pitch if p.rows > 1 else 0) for p in (a, b)]
    return a.offset.value(env) == b.offset.value(env) and shapes[0] == shapes[1]


def first_sharing(instances: list[Instance]) -> tuple[tuple[int, ...], set[int]] | None:
    """The first iteration in which an input meets the output, and the bytes of both."""
    task = instances[0].task
    (write,) = task.writes
    for source in task.reads:
        for i in instances:
            common = source.touched(i.env) & write.touched(i.env)
            if common and not (task.is_compute and coincide(source, write, i.env)):
                return values(i), {byte for _, byte in common}
    return None


@given(sketches())
def test_operands_that_share_bytes_are_found_with_their_first_iteration(
    items: tuple[Item, ...],
) -> None:
    expected = {}
    for position, instances in instances_by_task(items).items():
        first = first_sharing(instances)
        if first is not None:
            expected[position] = first
    found = operand_overlaps(plan_of(items))
    assert {s.task.position: s.grid.iteration(s.row) for s in found} == {
        position: iteration for position, (iteration, _) in expected.items()
    }, program_text(items)
    for sharing in found:
        common = expected[sharing.task.position][1]
        assert sharing.low == min(common)
        assert set(range(sharing.low, sharing.high)) <= common


def touched(
    instances: Iterator[Instance], buffer: str, access: str
) -> Iterator[tuple[Instance, set[int]]]:
    for instance in instances:
        places = instance.task.reads if access == "read" else instance.task.writes
        for place in places:
            if place.buffer == buffer:
                yield instance, {byte for _, byte in place.touched(instance.env)}


@given(sketches())
def test_bytes_read_before_any_task_writes_them_are_found_with_their_first_iteration(
    items: tuple[Item, ...],
) -> None:
    plan = plan_of(items)
    written: dict[str, set[int]] = {}
    missing: dict[tuple[str, int], list[tuple[tuple[int, ...], set[int]]]] = {}
    for instance in read(items).instances:  # in program order
        for place in instance.task.reads:
            own = {byte for _, byte in place.touched(instance.env)}
            gap = own - written.get(place.buffer, set())
            if gap:
                key = (place.buffer, instance.position)
                missing.setdefault(key, []).append((values(instance), gap))
        for place in instance.task.writes:
            own = {byte for _, byte in place.touched(instance.env)}
            written.setdefault(place.buffer, set()).update(own)
    for use in buffer_uses(plan):
        assert as_bytes(use.written_runs) == written.get(use.buffer.name, set())
        found: dict[int, list[UnwrittenRead]] = {}
        for one in unwritten_reads(plan, use):
            found.setdefault(one.read.access.position, []).append(one)
        expected = {at: gaps for (name, at), gaps in missing.items() if name == use.buffer.name}
        assert set(found) == set(expected), program_text(items)
        for at, ones in found.items():
            first = min(ones, key=lambda one: one.row)
            assert first.read.access.grid.iteration(first.row) == expected[at][0][0]
            lost = set().union(*(g for v, g in expected[at] if v == expected[at][0][0]))
            assert set(range(first.low, first.high)) <= lost
            if len(ones) == 1:
                assert first.low == min(expected[at][0][1])


@given(sketches())
def test_counting_finds_out_who_else_reads(items: tuple[Item, ...]) -> None:
    by_task = instances_by_task(items)
    for use in buffer_uses(plan_of(items)):
        for write in use.writes:
            position = write.access.position
            own = [r.runs for r in use.reads if r.access.position == position]
            others = [
                instance for at, found in by_task.items() if at != position for instance in found
            ]
            read_by_others = set().union(
                *(b for _, b in touched(iter(others), use.buffer.name, "read"))
            )
            meets = use.readers.count_meeting(write.runs) - RunCounter(own).count_meeting(
                write.runs
            )
            assert bool(meets) == bool(as_bytes(write.runs) & read_by_others)


def as_bytes(runs: Runs) -> set[int]:
    return {byte for low, high in runs.tolist() for byte in range(low, high)}


RUNS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=8).map(
    lambda pairs: np.array([[a, a + n] for a, n in pairs], np.int64).reshape(-1, 2)
)


@given(RUNS, RUNS)
def test_runs_are_united_and_compared_byte_by_byte(a: Runs, b: Runs) -> None:
    cover, runs = union([a, b]), union([b])
    assert as_bytes(cover) == as_bytes(a) | as_bytes(b)
    assert (cover[1:, 0] > cover[:-1, 1]).all()
    assert is_covered(runs, cover).all()
