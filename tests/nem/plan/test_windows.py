"""Windows: every pair of overlapping iterations is asked about, once, however it is cut up."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from nacre.base.source import Source
from nacre.nem.checks.rules.ordering.hazards import code_of
from nacre.nem.model.resolver import resolve
from nacre.nem.plan import windows
from nacre.nem.plan.conflicts import find_conflicts
from nacre.nem.plan.plan import build_plan
from nacre.nem.plan.windows import iteration_pairs
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import Item, hazards, program_text, sketches
from tests.nem.plan.test_hazards_against_brute_force import resolved


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    outer=st.integers(1, 3),
    trips=st.integers(1, 40),
    window=st.integers(2, 45),
    widest=st.sampled_from([1, 33]),
)
def test_the_pairings_are_all_pairs_below_the_window(
    outer: int, trips: int, window: int, widest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_WIDEST_BY_DISTANCE", widest)
    text = f"loop o in [1..{outer}]:\nloop i in [1..{trips}]:\nendloop\nendloop\n"
    source = Source("w.nem", text)
    plan = build_plan(resolve(source, parse(source).document).program, 10_000)
    block = plan.top.inner[0].inner[0]
    rows = np.arange(block.grid.rows, dtype=np.int64)
    found: Counter[tuple[int, int]] = Counter()
    for pairing in iteration_pairs(block, window):
        first, first_group = pairing._earlier(rows)
        second, second_group = pairing._later(rows)
        for i, g in zip(rows[first].tolist(), first_group.tolist(), strict=True):
            for j, h in zip(rows[second].tolist(), second_group.tolist(), strict=True):
                found[i, j] += g == h
    expected = {
        (o * trips + i, o * trips + j)
        for o in range(outer)
        for i in range(trips)
        for j in range(i + 1, min(trips, i + window))
    }
    assert {pair for pair, count in found.items() if count} == expected
    assert max(found.values(), default=0) <= 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=sketches())
def test_halving_finds_the_same_hazards(
    items: tuple[Item, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_WIDEST_BY_DISTANCE", 1)
    plan = build_plan(resolved(items), 100_000)
    found = {
        (frozenset({c.first.position, c.second.position}), code_of(c)) for c in find_conflicts(plan)
    }
    assert found == hazards(items), program_text(items)


WIDE = """
buffer A : DDR (size=100000 * 64)
buffer B : DDR (size=100000 * 64)
loop i in [0..99999] @max_in_flight(50000):
    t = transfer.async(dst=region(B, (i mod {ring}) * 64, 64), src=region(A, i * 64, 64))
endloop
"""


@pytest.mark.heavy("large on purpose")
def test_a_window_of_thousands_is_judged_exactly() -> None:
    assert [d.code for d in nacre.nem.check(WIDE.format(ring=50000))] == []
    assert [d.code for d in nacre.nem.check(WIDE.format(ring=49999))] == ["HAZ06"]
