"""Bodies too large to look at every pair: the sweeps must come to the same verdict."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from nacre.nem.plan import conflicts
from nacre.nem.plan.conflicts import find_conflicts
from nacre.nem.plan.plan import build_plan
from tests.nem.plan.sketches import Item, hazards, program_text, sketches
from tests.nem.plan.test_hazards_against_brute_force import resolved


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=sketches(most_items=8))
def test_the_sweep_finds_a_hazard_exactly_where_there_is_one(
    items: tuple[Item, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conflicts, "_MOST_PAIRWISE", 0)
    plan = build_plan(resolved(items), 100_000)
    found = {frozenset({c.first.position, c.second.position}) for c in find_conflicts(plan)}
    expected = {pair for pair, _ in hazards(items)}
    assert bool(found) == bool(expected), program_text(items)
    assert found <= expected, program_text(items)
