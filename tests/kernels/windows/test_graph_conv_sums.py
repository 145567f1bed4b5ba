"""Sums over the places of windows, in plain Python and as machine code, beside einsum."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre.base.loops.machine_code import is_available
from nacre.kernels.interface.call import Array
from nacre.kernels.windows import graph_conv_sums
from nacre.kernels.windows.graph_conv_sums import ADD_UP, add_up, sums_call
from tests.effort import scaled

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.uint64]

_TERMS = "abxyr,abr->xyr"


def windows(counts: tuple[int, ...], steps: tuple[int, ...], seed: int) -> tuple[Array, Array]:
    """What is seen of random numbers under the places of windows, and factors of its elements."""
    random = np.random.default_rng(seed)
    reach = 1 + sum((n - 1) * step for n, step in zip(counts, steps, strict=True))
    x = random.standard_normal(reach, np.float32)
    seen = np.lib.stride_tricks.as_strided(x, counts, [4 * step for step in steps])
    return seen, random.standard_normal((*counts[:2], counts[-1]), np.float32)


def by_einsum(seen: Array, factors: Array) -> Floats:
    """Into memory of the same layout, on which the order of a sum depends."""
    return np.einsum(_TERMS, seen, factors, out=np.empty(seen.shape[2:], np.float32))


counts = st.tuples(*[st.integers(1, n) for n in (4, 4, 3, 2, 9)])
steps = st.tuples(*[st.integers(0, 12)] * 4, st.just(1))


@settings(max_examples=scaled(30), deadline=None)
@given(counts, steps, st.integers(0, 9))
def test_every_sum_takes_its_places_in_order_from_zero_on(
    counts: tuple[int, ...], steps: tuple[int, ...], seed: int
) -> None:
    seen, factors = windows(counts, steps, seed)
    sums = np.empty(counts[2:], np.float32)
    x = np.lib.stride_tricks.as_strided(seen, (graph_conv_sums.reach(seen),), (4,))
    places = [a * steps[0] + b * steps[1] for a in range(counts[0]) for b in range(counts[1])]
    rows, parts, run = counts[2:]
    add_up(x, factors.reshape(-1), sums.reshape(-1), np.array(places, np.uint64),
           rows, steps[2], parts, steps[3], run)  # fmt: skip
    wanted = np.zeros_like(sums)
    for place in np.ndindex(*counts[:2]):
        wanted += seen[place] * factors[place]
    np.testing.assert_array_equal(sums, wanted)


def test_what_is_not_compiled_is_computed_by_einsum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_conv_sums, "is_available", lambda: False)
    seen, factors = windows((3, 3, 2, 2, 8), (20, 4, 20, 8, 1), 0)
    sums = np.empty((2, 2, 8), np.float32)
    sums_call(_TERMS, seen, factors, sums)()
    np.testing.assert_array_equal(sums, by_einsum(seen, factors))


def test_other_bits_or_a_slower_way_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: Floats, factors: Floats, sums: Floats, *numbers: object) -> None:
        sums.fill(1.0)

    monkeypatch.setattr(graph_conv_sums, "is_available", lambda: True)
    monkeypatch.setattr(ADD_UP, "code", wrong)
    seen, factors = windows((3, 3, 2, 2, 8), (20, 4, 20, 8, 1), 0)
    for code in (wrong, add_up):  # plain Python takes longer
        monkeypatch.setattr(ADD_UP, "code", code)
        sums = np.empty((2, 2, 8), np.float32)
        call = sums_call(_TERMS, seen, factors, sums)
        for _ in range(3):
            call()
        np.testing.assert_array_equal(sums, by_einsum(seen, factors))


def test_few_sums_that_are_equal_by_chance_prove_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places from last to first give another sum of four only now and then."""

    def backwards(x: Floats, factors: Floats, sums: Floats, places: Places, *counts: int) -> None:
        run = counts[-1]
        shaped = np.flip(factors.reshape(-1, run), 0).copy().reshape(-1)
        add_up(x, shaped, sums, np.flip(places).copy(), *counts)

    monkeypatch.setattr(graph_conv_sums, "is_available", lambda: True)
    monkeypatch.setattr(ADD_UP, "code", backwards)
    for size in range(1, 4):
        seen, factors = windows((4, 1, size, 1, 1), (1, 0, 12, 0, 1), 1)
        call = sums_call(_TERMS, seen, factors, np.empty((size, 1, 1), np.float32))
        assert isinstance(call, graph_conv_sums._Sums)
        assert not call._gives_same_bits(graph_conv_sums.reach(seen))


@pytest.mark.full  # compiling takes its time
@pytest.mark.skipif(not is_available(), reason="numba is not installed")
@settings(max_examples=scaled(200), deadline=None)
@example((4, 1, 3, 1, 1), (1, 0, 12, 0, 1), 1)
@given(st.tuples(*[st.integers(1, n) for n in (7, 7, 20, 9, 300)]), steps, st.integers(0, 9))
def test_machine_code_gives_the_same_bits_as_plain_python_and_einsum(
    counts: tuple[int, ...], steps: tuple[int, ...], seed: int
) -> None:
    assert ADD_UP.load()
    seen, factors = windows(counts, steps, seed)
    sums = np.empty(counts[2:], np.float32)
    call = sums_call(_TERMS, seen, factors, sums)
    for _ in range(4):
        sums.fill(np.nan)
        call()
        np.testing.assert_array_equal(sums, by_einsum(seen, factors))
