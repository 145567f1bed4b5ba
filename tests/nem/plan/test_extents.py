"""Which accesses may meet: the table of all at once beside loops over pairs and rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nem.plan import extents
from nacre.nem.plan.extents import Extents

_ROWS = 4


@st.composite
def _tables(draw: st.DrawFn) -> Extents:
    count = draw(st.integers(1, 5))
    cells = st.lists(st.integers(0, 20), min_size=count * _ROWS, max_size=count * _ROWS)
    low = np.array(draw(cells), np.int64).reshape(count, _ROWS)
    size = np.array(draw(cells), np.int64).reshape(count, _ROWS)
    writes = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    return Extents(low, low + size + 1, writes)


@pytest.mark.parametrize("most_compared", [1 << 20, 1])
@given(a=_tables(), b=_tables(), distance=st.integers(0, 3))
def test_pairs_that_share_a_byte_in_some_row(
    a: Extents, b: Extents, distance: int, most_compared: int
) -> None:
    rows = np.arange(_ROWS - distance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extents, "_MOST_COMPARED", most_compared)
        found = a.meet(b, rows, rows + distance)
    for i, j in np.ndindex(found.shape):
        shared = any(
            {*range(a.low[i, row], a.high[i, row])}
            & {*range(b.low[j, row + distance], b.high[j, row + distance])}
            for row in rows
        )
        assert found[i, j] == (shared and bool(a.writes[i] or b.writes[j]))
