"""HAZ08: the language has no mark for imported buffers, so distinct buffers never alias."""

from __future__ import annotations

import nacre

TWO_BUFFERS = """
buffer A : DDR (size=64)
buffer B : DDR (size=64)
buffer C : DDR (size=64)
t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
u = transfer.async(dst=region(C, 0, 64), src=region(A, 0, 64))
"""


def test_haz08_buffers_that_nobody_marked_are_taken_apart() -> None:
    assert [d.code for d in nacre.nem.check(TWO_BUFFERS)] == []
    one = TWO_BUFFERS.replace("region(C", "region(B")
    assert [d.code for d in nacre.nem.check(one)] == ["HAZ03"]
