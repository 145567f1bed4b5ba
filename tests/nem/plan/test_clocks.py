"""Clocks over chains: what either of two has, and memory that grows as programs do."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.model.program import Program
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.clocks import Clock
from nacre.nem.plan.order import Order
from nacre.nem.syntax.parser import parse

_CHAINS = st.one_of(st.integers(0, 20), st.integers(0, 5000))
_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("with_index"), st.integers(0, 3), _CHAINS, st.integers(0, 9)),
        st.tuples(st.just("join"), st.integers(0, 3), st.integers(0, 3), st.just(0)),
    ),
    max_size=30,
)


@given(_CHANGES)
def test_a_clock_is_a_mapping_of_chains_to_their_last_place(
    changes: list[tuple[str, int, int, int]],
) -> None:
    clocks = [Clock() for _ in range(4)]
    expected: list[dict[int, int]] = [{} for _ in range(4)]
    for what, at, chain, index in changes:
        before = dict(clocks[at])
        if what == "with_index":
            made = clocks[at].with_index(chain, index)
            added = {chain: index}
        else:
            made, added = clocks[at].join(clocks[chain]), expected[chain]
        assert dict(clocks[at]) == before
        expected[at] = {
            key: max(expected[at].get(key, -1), added.get(key, -1))
            for key in {*expected[at], *added}
        }
        clocks[at] = made
        assert dict(made) == expected[at]
        assert all(made.index(key) == number for key, number in expected[at].items())
        assert made.index(6000) == -1
    for clock, indices in zip(clocks, expected, strict=True):
        for other, others in zip(clocks, expected, strict=True):
            changed = {key for key in {*indices, *others} if indices.get(key) != others.get(key)}
            assert dict(clock.changes_since(other)) == {k: indices.get(k, -1) for k in changed}


def test_a_clock_that_has_all_of_another_is_what_both_come_to() -> None:
    small = Clock().with_index(3, 1)
    large = small.with_index(4000, 2).with_index(17, 5)
    assert large.join(small) is large
    assert small.join(large) is large


def program_of(lines: list[str]) -> Program:
    source = Source("flat.nem", "\n".join(lines) + "\n")
    parsed = parse(source)
    assert parsed.is_valid
    return resolve(source, parsed.document).program


def tiles(count: int) -> list[str]:
    """Loads, copies and stores through four slots, each after what had its slot before."""
    lines = ["buffer X : DDR (size=64)", "buffer A : L2 (size=256)", "buffer B : L1 (size=256)"]
    for i in range(count // 3):
        slot = f"{64 * (i % 4)}, 64"
        free, stored = (f", deps=[c{i - 4}]", f", s{i - 4}") if i > 3 else ("", "")
        lines += [
            f"l{i} = transfer.async(dst=region(A, {slot}), src=region(X, 0, 64){free})",
            f"c{i} = transfer.async(dst=region(B, {slot}), src=region(A, {slot}), "
            f"deps=[l{i}{stored}])",
            f"s{i} = store.async(dst=region(X, 0, 64), src=region(B, {slot}), deps=[c{i}])",
        ]
    return lines


def sums(count: int) -> list[str]:
    """Everything loaded first, and what is loaded used by two chains."""
    third = count // 3
    lines = ["buffer X : DDR (size=64)", "buffer A : L2 (size=64)"]
    copy = "transfer.async(dst=region(A, 0, 64), src=region(X, 0, 64)"
    lines += [f"u{i} = {copy})" for i in range(third)]
    for i in range(third):
        for name in ("v", "w"):
            before = f", {name}{i - 1}" if i else ""
            lines.append(f"{name}{i} = {copy}, deps=[u{i}{before}])")
    return lines


def peak_bytes(program: Program) -> int:
    tracemalloc.start()
    Order(program)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("lines", [tiles, sums])
def test_the_order_of_a_flat_program_takes_memory_as_it_has_tasks(
    lines: Callable[[int], list[str]],
) -> None:
    small, large = (peak_bytes(program_of(lines(count))) for count in (600, 2400))
    assert large < 7 * small  # four times the tasks; trees are a little higher


@pytest.mark.parametrize("lines", [tiles, sums])
def test_the_order_of_a_flat_program_is_that_of_its_deps(
    lines: Callable[[int], list[str]],
) -> None:
    program = program_of(lines(120))
    order, before = Order(program), dict[int, set[int]]()
    for position, task in sorted(program.task_at.items()):
        before[position] = {*task.deps, *(u for dep in task.deps for u in before[dep])}
        for other in program.task_at:
            assert order.always_before(other, position) == (other in before[position])
