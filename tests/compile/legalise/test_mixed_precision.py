"""Logarithms of small powers keep their digits in a plan of f16."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.values import Array
from tests.compile.legalise.checking import legal_of
from tests.compile.models import values

pytestmark = pytest.mark.sampled(2)  # together they take long


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


@pytest.mark.sampled(3)
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


@pytest.mark.parametrize(("guard", "is_wide"), [(1e-12, True), (0.5, False)])
def test_what_divides_is_wide_where_it_may_be_small(guard: float, *, is_wide: bool) -> None:
    """`legal_of` looks at origins too: a cast behind an output has that of what it casts."""
    builder = Builder()
    size = builder.add("Unary", builder.input("x", "f32", (4, 16)), op="Abs")
    y = builder.add("BinOp", size, builder.constant(np.float32(guard)), op="Add")
    legal = legal_of(builder.module(builder.add("Unary", y, op="Reciprocal")), "f16")
    assert any(op.type.dtype == "f32" for op in legal.module.operations) == is_wide


def spectrum(kind: str, *, is_normed: bool) -> Module:
    """Frames of sound, their spectrum, a bank of filters, the logarithm, and perhaps a norm."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 1, 320))
    angles = 2 * np.pi * np.outer(np.arange(17), np.arange(32)) / 32
    waves = np.concatenate([np.cos(angles), np.sin(angles)]) * np.hanning(32)
    if kind == "Conv":
        weights = builder.constant(waves[:, None].astype(np.float32))
        y = builder.add("Conv", x, weights, strides=(16,))
        y = builder.add("Transpose", y, permutation=(0, 2, 1))
    else:
        places = np.arange(19)[:, None] * 16 + np.arange(32)
        frames = builder.add("Reshape", x, new_shape=(320,))
        frames = builder.add("Gather", frames, builder.constant(places.astype(np.int64)))
        y = builder.add("MatMul", frames, builder.constant(waves.T.astype(np.float32)))
    y = builder.add("Reshape", y, new_shape=(19, 2, 17))
    y = builder.add("Sum", builder.add("BinOp", y, y, op="Mul"), axes=(1,), keepdims=False)
    y = builder.add("MatMul", y, builder.constant(np.abs(values((17, 8), 1))))
    y = builder.add("Log", builder.add("Clip", y, min=1e-10))
    if is_normed:
        y = builder.add("BinOp", y, builder.add("Mean", y, axes=(0,), keepdims=True), op="Sub")
    return builder.module(y)


@pytest.mark.parametrize(("kind", "is_normed"), [("Conv", True), ("MatMul", False)])
def test_a_weak_tone_beside_a_loud_one(kind: str, is_normed: bool) -> None:
    """What f16 rounds off the loud one is more than the weak one."""
    time = np.arange(320)
    x = np.sin(2 * np.pi * 2 * time / 32) + 1e-3 * values((320,), 3)
    bundle = nacre.compile(spectrum(kind, is_normed=is_normed), "npm4k")
    found = bundle.validate({"x": x.astype(np.float32).reshape(1, 1, 320)})
    assert found.ok, found


def by_constant(x: int, weights: Array, place: str, builder: Builder) -> int:
    """Rows times weights, whichever operand the weights are."""
    if place == "right":
        return builder.add("MatMul", x, builder.constant(weights))
    if place == "einsum":
        return builder.add("Einsum", x, builder.constant(weights), equation="bk,kf->bf")
    turned = builder.add("Transpose", x, permutation=(1, 0))
    made = builder.add("MatMul", builder.constant(weights.T.copy()), turned)
    return builder.add("Transpose", made, permutation=(1, 0))


def two_steps(place: str, last: str) -> Module:
    """A spectrum in two products, of which the second adds up what the first one made."""
    builder = Builder()
    x = builder.input("x", "f32", (6, 32))
    angles = 2 * np.pi * np.outer(np.arange(32), np.arange(32)) / 32
    waves = np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    back = np.linalg.qr(values((64, 64), 5))[0][:, :24].astype(np.float32)
    y = by_constant(x, waves, place, builder)
    y = by_constant(y, back, place, builder)
    power = builder.add("BinOp", y, y, op="Mul")
    if last == "log":
        held = builder.add("Clip", power, min=1e-12)
        return builder.module(builder.add("Log", held))
    if last == "chosen":
        least = builder.constant(np.float32(1e-9))
        seen = builder.add("Compare", power, least, op="Gt")
        return builder.module(builder.add("Log", builder.add("Where", seen, power, least)))
    if last == "root":
        return builder.module(
            builder.add("BinOp", power, builder.constant(np.float32(0.1)), op="Pow")
        )
    total = builder.add("Sum", power, axes=(1,), keepdims=True)
    length = builder.add("Unary", total, op="Sqrt")
    added = builder.add("BinOp", length, builder.constant(np.float32(1e-9)), op="Add")
    return builder.module(builder.add("BinOp", y, added, op="Div"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", ["right", "left", "einsum"])
@pytest.mark.parametrize("last", ["log", "chosen", "root", "length"])
def test_small_sums_of_large_products_keep_their_digits(place: str, last: str) -> None:
    rows = np.logspace(0, -5, 6)[:, None]
    x = np.sin(2 * np.pi * 3 * np.arange(32) / 32) * rows + 1e-3 * rows * values((6, 32), 3)
    module = two_steps(place, last)
    given = {"x": x.astype(np.float32)}
    (wanted,) = evaluate(module, given)
    (found,) = nacre.compile(module, "npm4k").run(given).values()
    np.testing.assert_allclose(found, wanted, atol=1e-2 * float(np.abs(wanted).max()))


def test_a_logarithm_of_a_product_of_unknown_tensors() -> None:
    builder = Builder()
    a, b = (builder.input(name, "f32", shape) for name, shape in (("a", (2, 6, 8)), ("b", (8, 5))))
    power = builder.add("Unary", builder.add("MatMul", a, b), op="Abs")
    module = builder.module(builder.add("Log", power))
    given = {"a": 1e-4 * values((2, 6, 8), 1), "b": 1e-3 * values((8, 5), 2)}
    (wanted,) = evaluate(module, given)
    (found,) = nacre.compile(module, "npm4k").run(given).values()
    np.testing.assert_allclose(found, wanted, atol=2e-2)


def test_a_logarithm_of_a_small_input() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 16))
    module = builder.module(builder.add("Log", builder.add("Clip", x, min=1e-12)))
    given = {"x": np.logspace(-13, 5, 64).reshape(4, 16).astype(np.float32)}
    (wanted,) = evaluate(module, given)
    (found,) = nacre.compile(module, "npm4k").run(given).values()
    np.testing.assert_allclose(found, wanted, atol=2e-2)
