from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from nacre.base.loops.machine_code import is_available
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.runs import quietly
from nacre.kernels.numbers import gelu as gelu_module
from nacre.kernels.numbers.gelu import gelu
from nacre.kernels.numbers.real_functions import ULPS
from nacre.kernels.numbers.special import erf, exact_gelu, normal_tail
from tests.kernels.oracle_elementwise import onnx_result, ulps


def every_magnitude(step: int) -> Array:
    bits = np.arange(0, 0x7F800000, step, dtype=np.uint32).view(np.float32)
    return np.concatenate([bits, -bits])


def dense() -> Array:
    borders = [3.92, 3.83, 1.0, 2.0**-126, 2.0**-149, 14.5, 6.0, 13.1, 0.5 / 512, 9.5 / 512]
    near = [np.float32(b) + k * np.spacing(np.float32(b)) for b in borders for k in range(-20, 21)]
    return np.concatenate([np.linspace(-5, 5, 20001), near]).astype(np.float32)


@pytest.mark.parametrize("values", [every_magnitude(60_013), dense()])
def test_erf_is_within_the_stated_ulps_of_the_exact_one(values: Array) -> None:
    exact = np.array([math.erf(float(x)) for x in values])
    assert ulps(erf(values), exact).max() < ULPS["erf"]


def test_erf_ends_at_one_keeps_nan_and_the_sign_of_zero() -> None:
    found = erf(np.array([np.inf, -np.inf, 3.95, -4.5, 0.0, -0.0, np.nan], np.float32))
    assert found[:4].tolist() == [1, -1, 1, -1]
    assert np.signbit(found[4:6]).tolist() == [False, True]
    assert np.isnan(found[6])


def test_erf_never_falls() -> None:
    assert (np.diff(erf(np.linspace(-4, 4, 1_000_001, dtype=np.float32))) >= 0).all()


def test_erf_is_what_onnxruntime_gives() -> None:
    values = np.linspace(-5, 5, 4001, dtype=np.float32)
    assert ulps(erf(values), onnx_result("Erf", [values]).astype(np.float64)).max() <= 5


@pytest.mark.parametrize("values", [every_magnitude(60_013), dense()])
def test_gelu_is_within_the_stated_ulps_even_where_it_is_tiny(values: Array) -> None:
    exact = np.array([float(x) * math.erfc(-float(x) / math.sqrt(2)) / 2 for x in values])
    assert ulps(quietly(gelu, values), exact).max() < ULPS["gelu"]
    assert ulps(quietly(exact_gelu, values), exact).max() < 0.51


@pytest.mark.parametrize("function", [gelu, exact_gelu, erf])
def test_results_may_go_anywhere(function: Callable[..., Array]) -> None:
    values = np.random.default_rng(3).standard_normal((3, 7001)).astype(np.float32)
    wanted = function(values)
    assert (
        function(values[:, ::-1], out=np.empty_like(values)).tobytes() == wanted[:, ::-1].tobytes()
    )
    apart = np.zeros((3, 14002), np.float32)
    function(values, out=apart[:, ::2])
    np.testing.assert_array_equal(apart[:, ::2], wanted)
    function(values, out=values)
    np.testing.assert_array_equal(values, wanted)
    assert function(np.empty((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("function", [gelu, exact_gelu])
def test_gelu_finds_its_limits(function: Callable[..., Array]) -> None:
    values = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, -20.0, 1e38, -1e38], np.float32)
    found = quietly(function, values)
    assert found[[0, 6]].tolist() == [np.inf, np.float32(1e38)]
    assert np.isnan(found[2])
    assert not found[[1, 3, 4, 5, 7]].any()
    assert np.signbit(found[[1, 3, 4, 5, 7]]).tolist() == [True, False, True, True, True]


def test_the_loop_gives_the_same_bits_as_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(gelu_module, "is_available", lambda: False)
        values = np.concatenate([dense()[::701], [np.inf, -np.inf, 1e38, -20.0, -0.0]])
        values = values.astype(np.float32)
        wanted = gelu(values)
    monkeypatch.setattr(gelu_module.LOOP, "code", gelu_module.fill)  # in plain Python
    monkeypatch.setattr(gelu_module, "_is_loop_better", lambda: True)
    np.testing.assert_array_equal(quietly(gelu, values, out=values), wanted)


@pytest.mark.full  # compiling takes its time
@pytest.mark.skipif(not is_available(), reason="numba is not installed")
@pytest.mark.parametrize("values", [every_magnitude(997), dense()])
def test_machine_code_of_the_loop_gives_the_same_bits(
    values: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = quietly(gelu, values)
    assert gelu_module.LOOP.load()
    monkeypatch.setattr(gelu_module, "_is_loop_better", lambda: True)
    np.testing.assert_array_equal(gelu(values), wanted)
    values.flags.writeable = False
    np.testing.assert_array_equal(gelu(values[1:]), wanted[1:])


def test_normal_tail_holds_33_bits() -> None:
    t = np.linspace(0, 14.5, 3001)
    exact = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in t])
    found, room = np.empty_like(t), np.empty_like(t)
    normal_tail(t, found, room)
    assert (np.abs(found / exact - 1) < 2.0**-33).all()
