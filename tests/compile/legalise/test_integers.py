"""Reals that become integers: cut off as the model does, in every type that a model may give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.compile.options import Precision
from nacre.core.builder import Builder
from tests.compile.legalise.samples import Array

pytestmark = pytest.mark.sampled(2)  # together they take long

TYPES = {"u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


@pytest.mark.parametrize("dtype", TYPES)
def test_a_cast_cuts_off_what_is_behind_the_point(dtype: str) -> None:
    """The device's own cast rounds to the nearest: it must not stand here."""
    x = np.arange(0, 100, 0.25, dtype=np.float32).reshape(4, 100)
    x = x if dtype == "u8" else x - 50
    builder = Builder()
    module = builder.module(builder.add("Cast", builder.input("x", "f32", (4, 100)), to=dtype))
    bundle = nacre.compile(module, "npm4k")
    (found,) = bundle.run({"x": x}).values()
    assert found.dtype == TYPES[dtype]
    np.testing.assert_array_equal(found, np.trunc(x).astype(TYPES[dtype]))
    assert bundle.validate({"x": x}).ok
    assert "core.Cast" in bundle.program


@pytest.mark.parametrize("op", ["Floor", "Ceil", "Round", "Trunc"])
def test_whole_numbers_are_cast_by_the_device(op: str) -> None:
    x = np.arange(-20, 20, 0.25, dtype=np.float32).reshape(4, 40)
    builder = Builder()
    whole = builder.add("Unary", builder.input("x", "f32", (4, 40)), op=op)
    bundle = nacre.compile(builder.module(builder.add("Cast", whole, to="i32")), "npm4k")
    functions: dict[str, Any] = {
        "Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Trunc": np.trunc,
    }  # fmt: skip
    (found,) = bundle.run({"x": x}).values()
    np.testing.assert_array_equal(found, functions[op](x))
    assert "core.Cast" not in bundle.program


@given(st.integers(0, 255), st.sampled_from([0.5, 0.25, 1.0]), st.booleans())
def test_bytes_leave_the_model(zero: int, scale: float, is_computed: bool) -> None:
    """`Quantize` to u8 in a plan of floats: the device has i8, so 128 is added behind it."""
    x: Array = np.linspace(-40, 40, 64, dtype=np.float32).reshape(4, 16)
    x = np.round(x * 8) / 8
    builder = Builder()
    value = builder.input("x", "f32", (4, 16))
    if is_computed:
        value = builder.add("Neg", value)
    steps = builder.constant(np.float32(scale)), builder.constant(np.uint8(zero))
    module = builder.module(builder.add("Quantize", value, *steps, to="u8"))
    bundle = nacre.compile(module, "npm4k")
    assert bundle.manifest.outputs[0].dtype == "u8"
    (found,) = bundle.run({"x": x}).values()
    expected = np.clip(np.round((-x if is_computed else x) / scale) + zero, 0, 255)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("scale", [-0.25, 0.0, 1e-40])
def test_scales_that_no_region_can_have(scale: float, precision: Precision) -> None:
    x: Array = np.linspace(-40, 40, 64, dtype=np.float32).reshape(4, 16) + 0.1
    builder = Builder()
    value = builder.input("x", "f32", (4, 16))
    steps = builder.constant(np.float32(scale)), builder.constant(np.int8(3))
    value = builder.add("Quantize", value, *steps, to="i8")
    value = builder.add("Dequantize", value, *steps)
    module = builder.module(builder.add("BinOp", value, value, op="Add"))
    calibration = [{"x": x}] if precision == "i8" else None
    bundle = nacre.compile(module, "npm4k", precision, calibration=calibration)
    assert bundle.validate({"x": x}).first_difference is None
    (found,), (expected,) = bundle.run({"x": x}).values(), nacre.core.evaluate(module, {"x": x})
    np.testing.assert_allclose(found, expected, atol=0.6, rtol=0)  # one step of i8 at most


@pytest.mark.parametrize("dtype", ["u8", "bool"])
@pytest.mark.parametrize("device", ["npm4k", "npm_lite"])
@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 0, 2)])
def test_bytes_change_places(dtype: str, device: str, order: tuple[int, ...]) -> None:
    """No device transposes them: they do as floats, or by strides where runs are long enough."""
    random = np.random.default_rng(4)
    x: Array = random.integers(0, 256, (6, 20, 32)).astype(np.uint8)
    x = x if dtype == "u8" else x > 100
    builder = Builder()
    value = builder.input("x", dtype, x.shape)
    module = builder.module(builder.add("Transpose", value, permutation=order))
    (found,) = nacre.compile(module, device).run({"x": x}).values()
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x.transpose(order))


def test_a_cast_stands_behind_a_transposition() -> None:
    """A picture that becomes bytes is turned before it does: one cast, and no other."""
    x = np.arange(0, 240, 0.25, dtype=np.float32).reshape(1, 8, 8, 15)
    builder = Builder()
    cast = builder.add("Cast", builder.input("x", "f32", x.shape), to="u8")
    module = builder.module(builder.add("Transpose", cast, permutation=(0, 3, 1, 2)))
    bundle = nacre.compile(module, "npm4k")
    (found,) = bundle.run({"x": x}).values()
    np.testing.assert_array_equal(found, np.trunc(x).astype(np.uint8).transpose(0, 3, 1, 2))
    escaped = [line for layer in bundle.manifest.layers for line in layer.escaped]
    assert len(escaped) == 1
