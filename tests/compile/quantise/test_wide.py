"""Products that leave in 16 bits, and such that take their input in 16 bits as two parts of 8."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import Array, require_any_order, values

pytestmark = pytest.mark.sampled(2)  # together they take long

ROWS, DEPTH, COLUMNS = 4, 96, 64


def weights_on_a_grid(columns: int, depth: int, seed: int) -> Array:
    """Weights that 8 bits hold: each column has a largest one of 127 steps."""
    steps = np.random.default_rng(seed).integers(-126, 127, (columns, depth))
    steps[:, 0] = 127
    return (steps / 1024).astype(np.float32)


def network(channel: float = 200.0) -> Module:
    """A product with a channel that is far larger than the others before a norm, and another."""
    builder = Builder()
    x = builder.input("x", "f32", (ROWS, DEPTH))
    first = weights_on_a_grid(COLUMNS, DEPTH, 1)
    first[7] *= channel
    scale = np.ones(COLUMNS, np.float32)
    scale[7] = 1 / channel
    y = builder.add("Linear", x, builder.constant(first), builder.constant(values((COLUMNS,), 2)))
    y = builder.add("BinOp", y, builder.constant(scale), op="Mul")
    ones, zeros = (builder.constant(np.full(COLUMNS, n, np.float32)) for n in (1, 0))
    y = builder.add("LayerNorm", y, ones, zeros, axis=-1)
    return builder.module(
        builder.add(
            "Softmax", builder.add("Linear", y, builder.constant(values((32, 64), 3))), axis=-1
        )
    )


def inputs(count: int, seed: int, spread: float = 1.0) -> list[Mapping[str, Array]]:
    """Rows of which a few elements are far larger than all others."""
    made = [values((ROWS, DEPTH), seed + at, spread) for at in range(count)]
    for array in made:
        array[:, 3] *= 60
    return [{"x": array} for array in made]


def plan(module: Module, device: str = "npm4k", **given: object) -> Bundle:
    calibration = inputs(8, 10)
    return nacre.compile(module, device, "i8", calibration=calibration, **given)  # type: ignore[arg-type]


def types_of_products(bundle: Bundle) -> list[str]:
    return [op.type.dtype for op in bundle.legal.operations if op.opcode == "QLinear"]


def noise(bundle: Bundle, module: Module) -> float:
    """Of unseen inputs, over the signal."""
    lost = signal = 0.0
    for feeds in inputs(4, 90):
        (expected,) = nacre.core.evaluate(module, feeds)
        lost += float(np.square(bundle.run(dict(feeds))["output0"] - expected).sum())
        signal += float(np.square(expected).sum())
    return lost / signal


def test_products_before_floats_leave_in_16_bits_where_the_device_has_that() -> None:
    module = network()
    wide, narrow = plan(module, fallback=False), plan(module, "npm_mid", fallback=False)
    without = plan(module, fallback=False, quantise_without=["wide"])
    assert types_of_products(wide) == ["i16", "i16"]
    assert types_of_products(narrow) == types_of_products(without) == ["i8", "i8"]
    assert "elem=i16" in wide.program
    assert noise(wide, module) < 0.7 * noise(without, module)
    feeds = dict(inputs(1, 90)[0])
    for bundle in (wide, narrow):
        assert bundle.validate(feeds).first_difference is None
        assert [
            d for d in nacre.nem.check(bundle.program, strict=True) if d.severity != "info"
        ] == []
    require_any_order(wide, feeds, 4)


def single_product(bias: bool) -> Module:
    """A product of weights that integers hold; what is lost is lost of its input."""
    builder = Builder()
    x = builder.input("x", "f32", (ROWS, DEPTH))
    ones, zeros = (builder.constant(np.full(DEPTH, n, np.float32)) for n in (1, 0))
    y = builder.add("LayerNorm", x, ones, zeros, axis=-1)
    operands = [y, builder.constant(weights_on_a_grid(COLUMNS, DEPTH, 4))]
    operands += [builder.constant(values((COLUMNS,), 5))] if bias else []
    ends = (builder.constant(np.full(COLUMNS, n, np.float32)) for n in (1, 0))
    return builder.module(
        builder.add("LayerNorm", builder.add("Linear", *operands), *ends, axis=-1)
    )


@pytest.mark.parametrize("bias", [True, False])
def test_inputs_in_parts_are_as_good_as_f16(bias: bool) -> None:
    module = single_product(bias)
    fine = plan(module, accuracy_db=50.0, quantise_without=["smooth"])
    assert fine.float_share == 0.0
    assert any("1 product given inputs of 16 bits" in note for note in fine.manifest.notes)
    (product,) = (op for op in fine.legal.operations if op.opcode == "QLinear")
    assert product.type.shape == (2 * ROWS, COLUMNS)  # both parts are rows of one product
    assert -10 * np.log10(noise(fine, module)) > 50
    plain = plan(module, quantise_without=["parts", "smooth"], fallback=False)
    assert 100 * noise(fine, module) < noise(plain, module)
    feeds = dict(inputs(1, 91)[0])
    assert fine.validate(feeds).first_difference is None
    assert [d for d in nacre.nem.check(fine.program, strict=True) if d.severity != "info"] == []
    require_any_order(fine, feeds, 4)


def test_parts_stand_back_where_they_do_not_reach_the_target() -> None:
    module = single_product(bias=True)
    bundle = plan(module, accuracy_db=110.0)
    assert not any("inputs of 16 bits" in note for note in bundle.manifest.notes)
    assert plan(module, accuracy_db=110.0, quantise_without=["parts"]).program == bundle.program
