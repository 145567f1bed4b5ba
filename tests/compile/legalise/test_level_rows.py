"""Masks none of whose rows is hidden whole are added as they are; all others are levelled."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module

ROWS, WIDTH = 3, 6


def masked(hidden: float, own: float) -> Module:
    """Scores of what stands before a position, and of a column that `own` is added to."""
    b = Builder()
    scores, position = b.input("scores", "f32", (2, ROWS, WIDTH + 1)), b.input("at", "i32", (1, 1))
    places = b.constant(np.arange(WIDTH, dtype=np.int32).reshape(1, -1))
    seen = b.add("Compare", places, position, op="Lt")
    zero, less = (b.constant(np.full((1, 1), x, np.float32)) for x in (0.0, hidden))
    old = b.add("Broadcast", b.add("Where", seen, zero, less), shape=(ROWS, WIDTH))
    new = b.constant(np.full((ROWS, 1), own, np.float32))
    mask = b.add("Reshape", b.add("Concat", old, new, axis=-1), new_shape=(1, ROWS, WIDTH + 1))
    return b.module(b.add("Softmax", b.add("BinOp", scores, mask, op="Add"), axis=-1))


@pytest.mark.parametrize(
    ("hidden", "own", "is_level"),
    [
        (-30_000.0, 0.0, True),
        (-30_000.0, 15.0, True),
        (-30_000.0, -30_000.0, False),  # a row may be hidden whole
        (-30_000.0, 20.0, False),  # beside which f16 keeps less of scores
        (-1e9, 0.0, False),  # which f16 does not have
    ],
)
@pytest.mark.parametrize("position", [0, 2, WIDTH])
def test_rows_are_levelled_where_they_may_have_to_be(
    hidden: float, own: float, is_level: bool, position: int
) -> None:
    module = masked(hidden, own)
    scores = np.random.default_rng(3).standard_normal((2, ROWS, WIDTH + 1)).astype(np.float32)
    given = {"scores": scores, "at": np.array([[position]], np.int32)}
    bundle = nacre.compile(module, "npm4k")
    assert ("Clip" not in {op.opcode for op in bundle.legal}) == is_level
    (wanted,) = evaluate(module, given)
    np.testing.assert_allclose(bundle.run(given)["output0"], wanted, atol=2e-3)
