"""Notes on what i8 keeps in floats are about the model's own values."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.core.module import Module

SIZE = 8


def masked(hidden: float) -> Module:
    """Softmax(where(mask, q @ k, hidden)) @ q: no product with weights."""
    builder = Builder()
    q, k = (builder.input(name, "f32", (SIZE, SIZE)) for name in "qk")
    mask = builder.constant(np.tri(SIZE, dtype=bool))
    scores = builder.add("MatMul", q, k)
    scores = builder.add("Where", mask, scores, builder.constant(np.array(hidden, np.float32)))
    return builder.module(builder.add("MatMul", builder.add("Softmax", scores, axis=1), q))


def pooled() -> Module:
    builder = Builder()
    x = builder.input("x", "f32", (1, 4, 9, 8))
    size = {"kernel": (3, 2), "strides": (2, 2), "pads": (1, 0, 1, 1), "dilations": (1, 2)}
    return builder.module(builder.add("MaxPool", builder.add("Softmax", x, axis=3), **size))


def levelled() -> Module:
    """Softmax(q @ k + (mask * 1e4 - 1e4)): our own steps go beyond f16, in f32."""
    builder = Builder()
    q, k, mask = (builder.input(name, "f32", (SIZE, SIZE)) for name in ("q", "k", "mask"))
    big = builder.constant(np.array(1e4, np.float32))
    mask = builder.add("BinOp", builder.add("BinOp", mask, big, op="Mul"), big, op="Sub")
    scores = builder.add("BinOp", builder.add("MatMul", q, k), mask, op="Add")
    return builder.module(builder.add("Softmax", scores, axis=1))


def scaled() -> Module:
    builder = Builder()
    x = builder.input("x", "f32", (4, SIZE))
    y = builder.add("BinOp", x, builder.constant(np.array(6e4, np.float32)), op="Mul")
    return builder.module(builder.add("Softmax", y, axis=1))


def compiled(module: Module) -> Bundle:
    draw = np.random.default_rng(3)
    types = module.input_types
    data = [
        {
            name: draw.standard_normal(type_.shape).astype(np.float32)
            for name, type_ in types.items()
        }
        for _ in range(2)
    ]
    return nacre.compile(module, "npm4k", "i8", calibration=data)


@pytest.mark.parametrize("module", [masked(-1e30), masked(-1e9), pooled(), levelled()])
def test_masks_and_padding_are_no_values_beyond_f16(module: Module) -> None:
    notes = compiled(module).manifest.notes
    assert not [note for note in notes if "is infinite" in note]


def test_values_of_the_model_beyond_f16_are_noted() -> None:
    assert any("is infinite" in note for note in compiled(scaled()).manifest.notes)


def test_a_plan_that_is_all_f16_says_why() -> None:
    bundle = compiled(masked(-1e30))
    assert bundle.precision_text == "i8, all in f16"
    (why,) = (note for note in bundle.manifest.notes if note.startswith("all in f16"))
    assert "multiply two computed values" in why
    assert "precision f16" in why


def test_a_mask_is_no_loss() -> None:
    losses = compiled(masked(-1e30)).manifest.losses
    assert not [loss for loss in losses if loss.sqnr < 40]


def listened(ending: str) -> Module:
    """The power of what a product hears, and what a logarithm or a square makes of it."""
    builder = Builder()
    x = builder.input("x", "f32", (2, 16))
    weights = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32) / 100
    heard = builder.add("Linear", x, builder.constant(weights))
    power = builder.add("BinOp", heard, heard, op="Mul")
    above = builder.add("BinOp", power, builder.constant(np.float32(1e-10)), op="Add")
    return builder.module(builder.add(ending, above))


@pytest.mark.parametrize(("ending", "is_noted"), [("Log", True), ("Relu", False)])
def test_small_powers_before_a_logarithm_are_noted(ending: str, is_noted: bool) -> None:
    module = listened(ending)
    data = {"x": np.random.default_rng(1).standard_normal((4, 2, 16)).astype(np.float32)}
    notes = nacre.compile(module, "npm4k", "i8", calibration=data).manifest.notes
    assert any("may be too small for i8" in note for note in notes) == is_noted
    wide = nacre.compile(module, "npm4k", "f16").manifest.notes
    assert not any("may be too small" in note for note in wide)
