"""Terms over a grid against plain Python integers, one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.term_columns import TermProblem, evaluate, interval_of, uses_remainder
from nacre.base.terms import INT64_MAX, INT64_MIN, LoopVariable, Operation, Term


def terms() -> st.SearchStrategy[Term]:
    leaves = st.one_of(
        st.integers(-20, 20),
        st.sampled_from([INT64_MAX, INT64_MIN + 1, 2**40, -(2**40)]),
        st.sampled_from([LoopVariable("i", 0), LoopVariable("j", 1)]),
    )
    operators = st.sampled_from(["+", "-", "*", "/", "mod"])
    return st.recursive(leaves, lambda t: st.builds(Operation, operators, t, t), max_leaves=6)


class NoValueError(Exception):
    pass


def naive(term: Term, i: int, j: int) -> int:
    """C arithmetic by its definition."""
    if isinstance(term, int):
        return term
    if isinstance(term, LoopVariable):
        return (i, j)[term.depth]
    a, b = naive(term.left, i, j), naive(term.right, i, j)
    if term.op in ("/", "mod"):
        if b == 0:
            raise NoValueError
        quotient = abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)
        value = quotient if term.op == "/" else a - quotient * b
    else:
        value = {"+": a + b, "-": a - b, "*": a * b}[term.op]
    if not -(2**63) <= value < 2**63:
        raise NoValueError
    return value


@given(terms(), st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 9)), min_size=1, max_size=5))
def test_a_column_holds_what_each_row_gives(term: Term, rows: list[tuple[int, int]]) -> None:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    expected: list[int | None] = []
    for i, j in rows:
        try:
            expected.append(naive(term, i, j))
        except NoValueError:
            expected.append(None)
    found: list[int | None] | int
    try:
        column = np.broadcast_to(np.asarray(evaluate(term, columns)), (len(rows),))
        found = [int(value) for value in column]
    except TermProblem as problem:
        found = problem.row
    if isinstance(found, int):
        assert expected[found] is None
    else:
        assert found == expected


def test_an_overflow_is_noticed_and_does_not_wrap() -> None:
    term = Operation("*", LoopVariable("i", 0), 2**62)
    with pytest.raises(TermProblem) as problem:
        evaluate(term, [np.array([0, 1, 2], np.int64)])
    assert (problem.value.kind, problem.value.row) == ("overflow", 2)


def test_a_ring_is_a_term_with_a_remainder() -> None:
    ring = Operation("*", Operation("mod", LoopVariable("i", 0), 2), 64)
    assert uses_remainder(ring)
    assert not uses_remainder(Operation("*", LoopVariable("i", 0), 64))


@given(terms(), st.tuples(st.integers(-9, 9), st.integers(-9, 9)), st.integers(0, 5))
def test_bounds_hold_all_values(term: Term, first: tuple[int, int], more: int) -> None:
    found = interval_of(term, [(at, at + more) for at in first])
    if found is None:
        return
    i, j = first
    for row in range((more + 1) ** 2):
        try:
            value = naive(term, i + row // (more + 1), j + row % (more + 1))
        except NoValueError:
            continue
        assert found[0] <= value <= found[1]


@pytest.mark.parametrize("op", ["/", "mod"])
@pytest.mark.parametrize("low", range(-7, 8))
@pytest.mark.parametrize("by", [1, 3, 8])
def test_bounds_of_quotients_are_exact_and_of_remainders_near(op: str, low: int, by: int) -> None:
    term = Operation(op, LoopVariable("i", 0), by)
    for high in range(low, 9):
        values = [naive(term, i, 0) for i in range(low, high + 1)]
        found = interval_of(term, [(low, high)])
        assert found is not None
        if op == "/" or -by < low <= high < by:
            assert found == (min(values), max(values))
        else:
            assert found == (1 - by if low < 0 else 0, by - 1 if high > 0 else 0)
