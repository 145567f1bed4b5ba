"""Values that f16 cannot hold stay f32 in a plan of f16."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values


def chain(factor: float, ending: str) -> Module:
    """Dense layers that grow, and what makes their results small again."""
    builder = Builder()
    x = builder.input("x", "f32", (6, 32))
    for seed in (1, 2):
        y = builder.add("Linear", x, builder.constant(values((32, 32), seed) * np.float32(factor)))
        x = builder.add(
            "Gelu", builder.add("BinOp", y, builder.constant(values((32,), 3)), op="Add")
        )
    if ending == "LayerNorm":
        return builder.module(builder.add("LayerNorm", x, axis=1, epsilon=1e-3))
    if ending == "Linear":
        small = builder.constant(values((8, 32), 4) * np.float32(1e-5))
        return builder.module(builder.add("Linear", x, small))
    largest = builder.add("Reduce", x, axes=(1,), keepdims=True, op="Max")
    return builder.module(builder.add("BinOp", x, largest, op="Div"))


@pytest.mark.parametrize("ending", ["LayerNorm", "Linear", "Div"])
def test_dense_layers_that_leave_f16(ending: str) -> None:
    bundle = nacre.compile(chain(300.0, ending), "npm4k")
    found = bundle.validate({"x": values((6, 32), 5)})
    assert found.ok, found


def test_what_stays_within_f16_is_not_touched() -> None:
    legal = nacre.compile(chain(0.2, "LayerNorm"), "npm4k").legal
    assert {op.type.dtype for op in legal.operations} == {"f16"}


def faded(is_enlarged: bool) -> Module:
    """Layers of tiny weights, as networks have that nobody trained, and a norm or none."""
    builder = Builder()
    x = builder.input("x", "f32", (6, 32))
    for seed in (1, 2, 3):
        weights = builder.constant(values((32, 32), seed) * np.float32(1e-3))
        x = builder.add("Relu", builder.add("Linear", x, weights))
    if is_enlarged:
        return builder.module(builder.add("LayerNorm", x, axis=1, epsilon=1e-24))
    ending = builder.constant(values((8, 32), 4))
    return builder.module(builder.add("Linear", x, ending, builder.constant(values((8,), 5))))


def test_what_only_fades_stays_f16() -> None:
    legal = nacre.compile(faded(is_enlarged=False), "npm4k").legal
    assert {op.type.dtype for op in legal.operations} == {"f16"}


def test_what_fades_and_is_enlarged_again_stays_f32() -> None:
    legal = nacre.compile(faded(is_enlarged=True), "npm4k").legal
    assert "f32" in {op.type.dtype for op in legal.operations}


def faint(branch: float, bias: float | None = None) -> Module:
    """A network whose outputs are tiny, with a branch that is added, or a bias that is larger."""
    builder = Builder()
    x = builder.input("x", "f32", (6, 32))
    for seed in (1, 2, 3):
        x = builder.add("Linear", x, builder.constant(values((32, 32), seed) * np.float32(1e-3)))
    inner = builder.add("Linear", x, builder.constant(values((64, 32), 4) * np.float32(branch)))
    weights = builder.constant(values((32, 64), 5))
    if bias is not None:
        added = builder.constant(values((32,), 6) * np.float32(bias))
        return builder.module(builder.add("Linear", inner, weights, added))
    back = builder.add("Linear", builder.add("Relu", inner), weights)
    return builder.module(builder.add("BinOp", x, back, op="Add"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("branch", "bias", "is_wide"),
    [(1.0, None, True), (1e-6, None, False), (1.0, 1e-9, True), (1e-6, 1e-6, False)],
)
def test_outputs_that_are_tiny_are_right_and_what_fades_beside_them_is_f16(
    branch: float, bias: float | None, is_wide: bool
) -> None:
    bundle = nacre.compile(faint(branch, bias), "npm4k")
    found = bundle.validate({"x": values((6, 32), 7)})
    assert found.ok, found
    inner = {op.type.dtype for op in bundle.legal.operations if op.type.shape == (6, 64)}
    assert ("f32" in inner) == is_wide
    assert "which f16 does not hold" in bundle.manifest.notes[0]
