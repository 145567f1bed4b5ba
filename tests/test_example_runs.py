"""Every example program runs, and computes what NumPy says, whatever the schedule.

The expectations are sums in exact integers or in f64, written out here; none of nacre's kernels
has a part in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neminterp import NemInterpreter

ROOT = Path(__file__).parent.parent
NAMES = sorted(path.stem for path in ROOT.glob("examples/*.nem"))
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """What an example gets, and what must be in its output buffer."""

    inputs: dict[str, Array]
    output: str
    expected: Array
    ulps: int = 0  # of the output's type; 0: to the bit


def bytes_of(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-128, 128, size=shape).astype(np.int8)


def eighths(rng: np.random.Generator, *shape: int) -> Array:
    """Multiples of 1/8 as f16: sums of products of them are exact in f16 below 32."""
    return np.asarray(rng.integers(-3, 4, size=shape) / 8, np.float16)


def normals(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float16)


# Convolutions


def convolution_sums(x: Array, w: Array) -> Array:
    """Sums of products over 3 x 3 windows without padding, exactly: [T, 14, 14, Cout]."""
    total = np.zeros((*x.shape[:1], 14, 14, w.shape[3]), np.int64)
    for row in range(3):
        for column in range(3):
            part = x[:, row : row + 14, column : column + 14].astype(np.float64)
            # Each term is below 2^53: f64 holds it exactly.
            total += (part @ w[row, column].astype(np.float64)).astype(np.int64)
    return total


def requantized(sums: Array, scale: np.float32, zero_point: int) -> Array:
    scaled = np.rint(sums.astype(np.float32) * scale)
    return np.asarray(np.clip(scaled + zero_point, -128, 127), np.int8)


CONVOLUTION_SCALE = np.float32(0.02) * np.float32(0.005) / np.float32(0.25)


def conv2d_relu(rng: np.random.Generator) -> Case:
    x, w = bytes_of(rng, 4, 16, 16, 64), bytes_of(rng, 3, 3, 64, 128)
    bias = rng.integers(-200_000, 200_000, size=128, dtype=np.int32)
    sums = convolution_sums(x.astype(np.int64) - 3, w) + bias
    # A real value of 0 is stored as the zero point: ReLU cuts there.
    y = np.maximum(requantized(sums, CONVOLUTION_SCALE, -10), -10)
    return Case({"X_L2": x, "W_L2": w, "B_L2": bias}, "Y_L2", y)


def conv2d_maxpool(rng: np.random.Generator) -> Case:
    x, w = bytes_of(rng, 4, 16, 16, 64), bytes_of(rng, 3, 3, 64, 128)
    c = requantized(convolution_sums(x.astype(np.int64) - 3, w), CONVOLUTION_SCALE, -10)
    y = c.reshape(4, 7, 2, 7, 2, 128).max(axis=(2, 4))
    return Case({"X_L2": x, "W_L2": w}, "Y_L2", y)


# Matrix products


def product(a: Array, b: Array) -> Array:
    """In f64."""
    exact = np.einsum("...mk,kn->...mn", a.astype(np.float64), b.astype(np.float64))
    return np.asarray(exact)


def gemm_bias_relu(rng: np.random.Generator) -> Case:
    a, b, c = normals(rng, 4, 64, 256), normals(rng, 256, 128), normals(rng, 128)
    y = np.maximum((product(a, b) + c.astype(np.float64)).astype(np.float16), 0)
    return Case({"A_L2": a, "B_L2": b, "C_L2": c}, "Y_L2", y, ulps=1)


def multi_cstl(rng: np.random.Generator) -> Case:
    a, b = eighths(rng, 8, 64, 256), eighths(rng, 256, 128)
    y = np.maximum(product(a, b), 0)
    return Case({"A_L2": a, "B_L2": b}, "Y_L2", y.astype(np.float16))


def gemm_rmsnorm(rng: np.random.Generator) -> Case:
    a, b, g = eighths(rng, 4, 64, 256), eighths(rng, 256, 128), normals(rng, 128)
    p = product(a, b)
    y = p / np.sqrt(np.mean(p * p, axis=-1, keepdims=True) + 1.0e-5) * g.astype(np.float64)
    return Case({"A_L2": a, "B_L2": b, "g_L2": g}, "Y_L2", y.astype(np.float16), ulps=1)


def two_engines(rng: np.random.Generator) -> Case:
    a, b = eighths(rng, 8, 64, 256), eighths(rng, 256, 128)
    p = product(a, b)
    erf = np.vectorize(math.erf, otypes=[np.float64])
    y = 0.5 * p * (1 + erf(p / math.sqrt(2)))
    return Case({"A_DDR": a, "B_DDR": b}, "Y_DDR", y.astype(np.float16), ulps=1)


def gemm_int4(rng: np.random.Generator) -> Case:
    a, packed = bytes_of(rng, 8, 32, 256), rng.integers(0, 256, size=65536).astype(np.uint8)
    nibbles = np.stack([packed & 15, packed >> 4], axis=1).reshape(256, 512).astype(np.int64)
    b = np.where(nibbles > 7, nibbles - 16, nibbles)
    scales = np.array([0.0625, 0.05, 0.075, 0.04, 0.0625, 0.03, 0.05, 0.045], np.float32)
    total = np.zeros((8, 32, 512), np.float32)
    for group in range(8):  # exact in each group, then f32 in the order of the groups
        rows = slice(32 * group, 32 * group + 32)
        sums = np.einsum("tmk,kn->tmn", a[:, :, rows].astype(np.int64) + 5, b[rows])
        total += sums.astype(np.float32) * (np.float32(0.02) * scales[group])
    y = np.clip(np.rint(total / np.float32(0.1)) + 4, -128, 127).astype(np.int8)
    return Case({"A_L2": a, "B_L2": packed}, "Y_L2", y)


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "conv2d_maxpool": conv2d_maxpool,
    "conv2d_relu": conv2d_relu,
    "gemm_bias_relu": gemm_bias_relu,
    "gemm_int4": gemm_int4,
    "gemm_rmsnorm": gemm_rmsnorm,
    "multi_cstl": multi_cstl,
    "two_engines": two_engines,
}


def test_every_example_is_run() -> None:
    assert sorted(CASES) == NAMES


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    """Made once: expectations take longer than runs."""
    return {name: make(np.random.default_rng(2024)) for name, make in CASES.items()}


def distance(found: Array, expected: Array) -> int:
    """How many numbers of an f16 lie between two arrays at most."""

    def rank(values: Array) -> Array:
        bits = values.view(np.int16).astype(np.int64)
        return np.asarray(np.where(bits < 0, -(bits & 0x7FFF), bits))

    return int(np.abs(rank(found) - rank(expected)).max())


def require_expected(found: Array, case: Case) -> None:
    if case.ulps:
        assert distance(found, case.expected) <= case.ulps
    else:
        np.testing.assert_array_equal(found, case.expected)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_the_example_computes_what_numpy_says(
    name: str, seed: int | None, cases: dict[str, Case]
) -> None:
    case = cases[name]
    interp = NemInterpreter()
    if seed is not None:
        interp.set_scheduling("random", seed=seed)
    program = interp.load(ROOT / "examples" / f"{name}.nem")
    result = interp.run(program, inputs=case.inputs, detect_races=seed == 1)
    assert result.status == "completed"
    assert [str(d) for d in result.diagnostics] == []
    found = np.frombuffer(result.read_buffer(case.output), case.expected.dtype)
    require_expected(found.reshape(case.expected.shape), case)


@pytest.mark.parametrize("name", NAMES)
def test_the_expectation_is_not_trivial(name: str, cases: dict[str, Case]) -> None:
    expected = cases[name].expected
    values, counts = np.unique(expected, return_counts=True)
    assert len(values) > 50
    assert counts.max() < 0.7 * expected.size
    assert np.isfinite(expected.astype(np.float64)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_regions_of_an_example_are_read_by_name(name: str, cases: dict[str, Case]) -> None:
    case = cases[name]
    interp = NemInterpreter()
    program = interp.load(ROOT / "examples" / f"{name}.nem")
    with interp.start(program, inputs=case.inputs) as session:
        while session.step_iteration().status == "paused" and session.status != "finished":
            pass
        region = "Y0_tile_2" if name == "two_engines" else "Y_tile_2"
        tile = session.read_region(region)
        assert session.diagnostics == ()
    require_expected(np.asarray(tile).reshape(case.expected[2].shape), Case(
        case.inputs, case.output, case.expected[2], case.ulps
    ))  # fmt: skip
