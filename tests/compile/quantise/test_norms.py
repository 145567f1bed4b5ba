"""Networks with norms between their convolutions: nothing of note is left to the slowest unit."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.quantise.networks import numbers, samples


def blocks(norm: str, count: int = 3, channels: int = 48, size: int = 28) -> Module:
    """Wide windows for each channel, a norm, and two products around a Gelu, added to what came."""
    b = Builder()
    x = b.input("x", "f32", (1, 3, size, size))

    def conv(x: int, cout: int, window: int, seed: int, groups: int = 1) -> int:
        cin = b.type_of(x).shape[1] // groups
        spread = (cin * window * window) ** -0.5
        weights = b.constant(numbers(seed, cout, cin, window, window, spread=spread))
        bias = b.constant(numbers(seed + 1, cout, spread=0.1))
        return b.add("Conv", x, weights, bias, pads=(window // 2,) * 4, groups=groups)

    y = conv(x, channels, 3, 1)
    for at in range(10, 10 * count + 10, 10):
        z = conv(y, channels, 7, at, channels)
        z = b.add("Transpose", z, permutation=(0, 2, 3, 1))
        factors = b.constant(numbers(at + 2, channels, spread=0.2) + np.float32(1))
        sums = [b.constant(numbers(at + 3, channels, spread=0.2))] if norm == "LayerNorm" else []
        z = b.add(norm, z, factors, *sums, axis=3, epsilon=1e-3)
        z = b.add("Transpose", z, permutation=(0, 3, 1, 2))
        z = conv(b.add("Gelu", conv(z, 4 * channels, 1, at + 4)), channels, 1, at + 6)
        y = b.add("BinOp", y, z, op="Add")
    return b.module(y)


@pytest.mark.full
@pytest.mark.parametrize("norm", ["LayerNorm", "RmsNorm"])
def test_norms_between_convolutions_leave_the_slowest_unit_alone(norm: str) -> None:
    module = blocks(norm)
    (sample,) = samples(module, 1)
    bundle = nacre.compile(module, "npm4k", "i8", calibration=[sample])
    found = [d for d in nacre.nem.check(bundle.program, strict=True) if d.severity != "info"]
    assert found == []
    validation = bundle.validate(sample)
    assert validation.first_difference is None, str(validation)
    assert min(validation.sqnr_by_output.values()) > 25, str(validation)
    timing = bundle.time()
    assert set(timing.macs_by_unit) == {"NMU"}
    assert "VPU" not in timing.cycles_by_unit
