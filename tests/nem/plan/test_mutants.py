from __future__ import annotations

import pytest

from tests.nem.plan.mutants import score


@pytest.mark.full
def test_every_racy_mutant_is_caught_and_no_other_one_is() -> None:
    result = score(500, seed=7)
    assert result.is_perfect, f"{result}\n" + "\n".join(result.missed + result.false_alarms)
    assert result.racy > 100, result
    assert result.racy < result.tried, result
