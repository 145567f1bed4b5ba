"""Constants that kernels prepare once: each for its own operation, the same in every run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.evaluation.memory import captured_arrays
from nacre.core.module import Module
from nacre.core.values import Array

CONV = {"groups": 8, "pads": (1, 1, 1, 1), "layout": "NCHW"}


def two_filters(first: Array, second: Array) -> Module:
    """Convolutions of one shape with different weights."""
    build = Builder()
    x = build.input("x", "f32", (1, 8, 6, 10))
    return build.module(
        *(build.add("Conv", x, build.constant(w, "f32"), **CONV) for w in (first, second))
    )


def test_operations_that_look_alike_have_their_own_weights() -> None:
    random = np.random.default_rng(1)
    first, second = (random.normal(size=(8, 1, 3, 3)).astype(np.float32) for _ in range(2))
    x = random.normal(size=(1, 8, 6, 10)).astype(np.float32)
    session = CoreSession(two_filters(first, second))
    a, b = session.run({"x": x})
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for found, weights in ((a, first), (b, second)):
        seen = [padded[:, :, i : i + 6, j : j + 10] * weights[None, :, 0, i, j, None, None]
                for i in range(3) for j in range(3)]  # fmt: skip
        np.testing.assert_allclose(found, np.sum(seen, axis=0), rtol=1e-4, atol=1e-5)
    again = session.run({"x": x})
    assert [v.tobytes() for v in again] == [a.tobytes(), b.tobytes()]


def stepping(weights: Array, steps: int) -> Module:
    """A product with the same integers over and over, as in a recurrence."""
    build = Builder()
    value = build.input("x", "i32", (1, len(weights)))
    constant = build.constant(weights, "i32")
    for _ in range(steps):
        value = build.add("Linear", value, constant)
        value = build.add("BinOp", value, build.constant(np.array(7, np.int32), "i32"), op="Mod")
    return build.module(value)


def test_weights_of_many_products_give_exact_sums_in_each() -> None:
    random = np.random.default_rng(2)
    weights = random.integers(-127, 128, (64, 64)).astype(np.int32)
    x = random.integers(0, 7, (1, 64)).astype(np.int32)
    wanted = x.astype(np.int64)
    for _ in range(5):
        wanted = (wanted @ weights.T) % 7
    session = CoreSession(stepping(weights, 5))
    for _ in range(2):
        assert session.run({"x": x})[0].tolist() == wanted.tolist()


def test_threads_do_not_meet_in_the_memory_of_kernels() -> None:
    random = np.random.default_rng(3)
    first, second = (random.normal(size=(8, 1, 3, 3)).astype(np.float32) for _ in range(2))
    session = CoreSession(two_filters(first, second))
    pictures = [random.normal(size=(1, 8, 6, 10)).astype(np.float32) for _ in range(8)]
    wanted = [[v.tobytes() for v in session.run({"x": x})] for x in pictures]

    def run(number: int) -> bool:
        found = session.run({"x": pictures[number % 8]})
        return [v.tobytes() for v in found] == wanted[number % 8]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(200)))


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_session_keeps_no_array_of_its_caller(size: int) -> None:
    build = Builder()
    x = build.input("x", "f32", (size,))
    session = CoreSession(build.module(build.add("Exp", build.add("ReluNan", x))))
    given = np.ones(size, np.float32)
    (found,) = session.run({"x": given})
    (workspace,) = session._plan._workspaces
    kept = captured_arrays(
        [workspace.steps, workspace.slots, workspace.copied_inputs, workspace.copied_outputs]
    )
    assert kept
    assert not any(np.shares_memory(a, b) for a in kept for b in (given, found))
