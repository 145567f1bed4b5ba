"""Sets of nodes, beside Python's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nacre.bind.node_sets import EMPTY, NodeSet, contains, union, with_node

# Around the borders of pieces, where a set may go wrong.
numbers = st.one_of(st.integers(0, 10), st.integers(4_090, 4_100), st.integers(8_190, 8_200))
sets = st.frozensets(numbers, max_size=8)


def made(members: frozenset[int]) -> NodeSet:
    found = EMPTY
    for number in members:
        found = with_node(found, number)
    return found


@given(sets, sets, numbers)
def test_unions_have_what_either_set_has(a: frozenset[int], b: frozenset[int], at: int) -> None:
    assert contains(made(a), at) == (at in a)
    both = union(made(a), made(b))
    assert {n for n in (*a, *b, at) if contains(both, n)} == a | b
    assert union(both, made(a)) == both == union(made(b), both)
