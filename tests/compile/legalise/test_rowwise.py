"""Operations along an axis of a large tensor: cut into tiles of rows, whatever stands around it."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre import core

SHAPES = [((1, 840, 80), 2), ((1, 21, 64, 64), 1), ((2, 3, 40, 100), -1), ((60, 400), 0)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("opcode", ["ArgMax", "ArgMin", "CumSum", "TopKValues", "TopKIndices"])
def test_an_operation_along_an_axis(opcode: str, shape: tuple[int, ...], axis: int) -> None:
    """The plan on f16 numbers that are all different finds what NumPy finds."""
    size = shape[axis]
    rest = np.moveaxis(np.empty(shape), axis, -1).shape
    random = np.random.default_rng(3)
    rows = random.permuted(np.broadcast_to(np.arange(size), rest), axis=-1).astype(np.float32)
    given = np.ascontiguousarray(np.moveaxis(rows, -1, axis)) / (4 if opcode == "CumSum" else 1)
    builder = core.Builder("nacre-1")
    x = builder.input("x", "f32", shape)
    more = {"k": 3, "largest": True} if opcode.startswith("TopK") else {}
    module = builder.module(builder.add(opcode, x, axis=axis, **more))
    bundle = nacre.compile(module, "npm4k")
    given = given.astype(np.float16).astype(np.float32)
    (found,) = bundle.run({"x": given}).values()
    (wanted,) = core.evaluate(module, {"x": given})
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-3 if opcode == "CumSum" else 0)
