"""f16 as f32 and back, in plain Python and as machine code, beside NumPy's conversions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.loops.machine_code import is_available
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.runs import quietly
from nacre.kernels.numbers import halves
from nacre.kernels.numbers.halves import (
    NARROW,
    WIDE,
    fill_narrow,
    fill_wide,
    in_f32,
    narrow_floats,
    store_floats,
    widen_halves,
)
from tests.effort import scaled

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FLOATS = st.integers(0, (1 << 32) - 1) | st.integers(0x3300_0000, 0x4780_0000)


@pytest.fixture
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled, whether or not it is the better way on this machine."""
    if not is_available():
        pytest.skip("the extra `fast` is not installed")
    assert WIDE.load()
    assert NARROW.load()
    monkeypatch.setattr(halves, "_is_wide_loop_better", lambda: True)
    monkeypatch.setattr(halves, "_is_narrow_loop_better", lambda: True)


def narrow_by_loop(reals: Array) -> Array:
    """By the loop in plain Python, whose integers may wrap."""
    bits, held = reals.view(np.uint32), np.empty(1024, np.float32)
    made = np.empty(reals.size, np.uint16)
    quietly(fill_narrow, reals, bits, made, held, held.view(np.uint32))
    return made


def bits_of(reals: Array) -> npt.NDArray[np.uint16]:
    return quietly(reals.astype, np.float16).view(np.uint16)


# Of each exponent some: least, largest, and what lies between.
SOME = np.unique(np.concatenate([np.arange(0, 1 << 16, 341), np.arange(0, 1 << 16, 1 << 10)]))


def test_the_loop_widens_as_numpy_does() -> None:
    given_bits = SOME.astype(np.uint16)
    made = np.empty(given_bits.size, np.float32)
    fill_wide(given_bits, made, made.view(np.uint32))
    wanted = quietly(given_bits.view(np.float16).astype, np.float32)
    np.testing.assert_array_equal(made.view(np.uint32), wanted.view(np.uint32))


@settings(max_examples=scaled(40), deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=40))
def test_the_loop_narrows_as_numpy_does(patterns: list[int]) -> None:
    reals = np.array(patterns, np.uint32).view(np.float32)
    np.testing.assert_array_equal(narrow_by_loop(reals), bits_of(reals))


def test_halfway_goes_to_the_even_one() -> None:
    wide = SOME.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    near = (wide[:, None] + np.array([0xFFF, 0x1000, 0x1001], np.uint32)).reshape(-1)
    reals = near.view(np.float32)
    np.testing.assert_array_equal(narrow_by_loop(reals), bits_of(reals))


@pytest.mark.usefixtures("machine_code")
def test_machine_code_gives_every_half_and_rounds_to_it() -> None:
    wide = widen_halves(EVERY.reshape(256, 256))
    np.testing.assert_array_equal(wide.view(np.uint32).reshape(-1), halves.every_f16().view("u4"))
    drawn = np.random.default_rng(0).integers(0, 1 << 32, (64, 4096), np.uint64).astype(np.uint32)
    reals = drawn.view(np.float32)
    made = quietly(narrow_floats, reals, np.dtype(np.float16))
    np.testing.assert_array_equal(made.view(np.uint16), bits_of(reals))


@pytest.mark.usefixtures("machine_code")
def test_what_lies_apart_or_is_not_to_be_written_is_taken_too() -> None:
    reals = np.arange(4096, dtype=np.float32).reshape(64, 64) / 7
    reals.setflags(write=False)
    out = np.zeros((64, 128), np.float16)
    store_floats(reals[::-1], out[:, ::2])
    np.testing.assert_array_equal(out[:, ::2], reals[::-1].astype(np.float16))
    assert not out[:, 1::2].any()
    apart = out[:, ::2]
    apart.setflags(write=False)
    np.testing.assert_array_equal(widen_halves(apart), apart.astype(np.float32))


@pytest.mark.parametrize("function", [np.add, np.subtract, np.multiply, np.divide])
@pytest.mark.parametrize("is_fast", [False, True])
def test_arithmetic_by_way_of_f32_is_that_of_numpy(
    function: np.ufunc, is_fast: bool, request: pytest.FixtureRequest
) -> None:
    if is_fast:
        request.getfixturevalue("machine_code")
    random = np.random.default_rng(1)
    a, b = random.integers(0, 1 << 16, (2, 64, 512)).astype(np.uint16).view(np.float16)
    out, wanted = np.empty_like(a), np.empty_like(a)
    quietly(in_f32(function), a, b, out=out)
    quietly(function, a, b, out=wanted)
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(out), is_nan)
    np.testing.assert_array_equal(out[~is_nan].view(np.uint16), wanted[~is_nan].view(np.uint16))


def test_loops_that_give_other_bits_or_take_longer_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(halves, "is_available", lambda: True)
    for code in (lambda *_: None, fill_wide):  # what gives nothing, and plain Python
        monkeypatch.setattr(WIDE, "code", code)
        halves._is_wide_loop_better.cache_clear()
        np.testing.assert_array_equal(widen_halves(EVERY[:600]), EVERY[:600].astype(np.float32))
    halves._is_wide_loop_better.cache_clear()
