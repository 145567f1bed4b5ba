"""Elements that only move do so in any type of their size that the device has."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.base.elements import GRAPH_TYPES
from nacre.core import evaluate
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.values import Array


def moved(opcode: str, dtype: str) -> Module:
    """Rows that are picked, or turned, and what else is done to them afterwards."""
    builder = Builder()
    x, places = builder.input("x", dtype, (5, 12)), builder.input("places", "i32", (3,))
    if opcode == "Transpose":
        made = builder.add("Transpose", x, permutation=(1, 0))
    else:
        made = builder.add("GatherAxis", x, places, axis=1 if opcode == "Columns" else 0)
    return builder.module(made, builder.add("Cast", made, to="f32"))


def extremes(dtype: str) -> Array:
    """Numbers of a type, its ends included."""
    element = GRAPH_TYPES[dtype]
    ends = np.array([element.lowest, element.highest // 2 + 1, 1, 0]).astype(element.dtype)
    picked: Array = np.random.default_rng(0).choice(ends, (5, 12))
    return picked


@pytest.mark.parametrize("dtype", ["bool", "u8", "u16"])
@pytest.mark.parametrize("opcode", ["Rows", "Columns", "Transpose"])
def test_types_that_no_unit_moves(opcode: str, dtype: str) -> None:
    module = moved(opcode, dtype)
    given = {"x": extremes(dtype), "places": np.array([4, 0, 3], np.int32)}
    bundle = nacre.compile(module, "npm4k")
    found, as_floats = bundle.run(given).values()
    wanted = evaluate(module, given)[0]
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)
    assert np.allclose(as_floats, wanted, rtol=1e-3)
