"""Logarithms of small powers keep their digits in a plan of f16."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values


def features(guard: str, epsilon: float) -> Module:
    """Amplitudes, their powers, a bank of filters, and the logarithm."""
    builder = Builder()
    x = builder.input("x", "f32", (20, 64))
    power = builder.add("BinOp", x, x, op="Mul")
    bank = builder.constant(np.abs(values((64, 16), 1)) / 64)
    y = builder.add("MatMul", power, bank)
    if guard == "Clip":
        y = builder.add("Clip", y, min=epsilon)
    elif guard:
        y = builder.add("BinOp", y, builder.constant(np.float32(epsilon)), op=guard)
    return builder.module(builder.add("Log", y))


@pytest.mark.parametrize("device", ["npm4k", "nem_reference"])
@pytest.mark.parametrize(
    ("guard", "epsilon"), [("Add", 1e-10), ("Max", 1e-10), ("Clip", 1e-9), ("", 0.0)]
)
def test_logarithms_of_small_powers(guard: str, epsilon: float, device: str) -> None:
    """Rows from nothing to a hundred: of f16 the powers of most would be 0 or infinite."""
    x = values((20, 64), 2) * np.logspace(-5, 2.5, 20)[:, None].astype(np.float32)
    if guard:
        x[3] = 0.0
    bundle = nacre.compile(features(guard, epsilon), device)
    assert bundle.problems == ()
    found = bundle.validate({"x": x.astype(np.float32)})
    assert found.ok, found
    by_name = [row for layer in bundle.manifest.layers for row in layer.escaped]
    # The product is the NMU's; a device that has f32 needs less by name.
    assert any(op.opcode == "Linear" and op.type.dtype == "f16" for op in bundle.legal.operations)
    assert any("stays f32" in row for row in by_name) == (device == "npm4k")


def test_a_small_number_before_a_logarithm_is_not_held_at_the_least_of_f16() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 16))
    y = builder.add("BinOp", builder.add("Relu", x), builder.constant(np.float32(1e-10)), op="Add")
    bundle = nacre.compile(builder.module(builder.add("Log", y)), "npm4k")
    assert not any("too small" in note for note in bundle.manifest.notes)
    assert bundle.validate({"x": values((4, 16), 2)}).ok


def test_what_has_no_logarithm_stays_f16() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 16))
    module = builder.module(builder.add("BinOp", x, x, op="Mul"))
    legal = nacre.compile(module, "npm4k").legal
    assert {op.type.dtype for op in legal.operations} == {"f16"}
