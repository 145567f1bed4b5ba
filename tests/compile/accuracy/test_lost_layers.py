"""A plan that misses its bound names the layer that loses most, and a remedy."""

from __future__ import annotations

import numpy as np

import nacre
from nacre.compile.bundle.lost_layers import LostLayer, lost_most
from nacre.core.builder import Builder
from tests.compile.models import values


def test_a_product_beyond_f16_is_named() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (8, 16))
    y = builder.add("Linear", x, builder.constant(values((16, 16), 1)))
    y = builder.add("Linear", y, builder.constant(1e5 * values((16, 16), 3)))
    y = builder.add("Unary", y, op="Tanh")
    y = builder.add("BinOp", y, builder.constant(np.float32(1e6)), op="Mul")
    plan = nacre.compile(builder.module(y), "npm4k")
    assert plan.validate({"x": values((8, 16), 2)}).ok  # what is beyond f16 stays f32
    found = plan.validate({"x": 2e4 * values((8, 16), 2)})  # and nobody expects such inputs
    assert found.verdict == "not valid"
    assert found.lost_most is not None
    assert "f16 ends at 65504" in found.lost_most.cause
    assert "f32, on a device that has it" in found.lost_most.remedy
    assert str(found.lost_most) in str(found)
    shown = found.as_json()["lost_most"]
    assert (shown["layer"], shown["after"]) == (found.lost_most.layer, None)


def test_integers_name_their_worst_layer() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (8, 16))
    y = builder.add("Linear", x, builder.constant(values((16, 16), 1)))
    module = builder.module(builder.add("Relu", y))
    plan = nacre.compile(module, "npm4k", "i8", calibration=[{"x": values((8, 16), 2) / 100}])
    found = plan.validate({"x": 50 * values((8, 16), 2)})
    assert found.verdict == "not valid"
    assert found.lost_most is not None
    assert "=f16` in a precision map" in found.lost_most.remedy


def test_a_layer_that_is_asked_to_be_floats_is_no_remedy() -> None:
    builder, random = Builder(), np.random.default_rng(5)
    x = builder.input("x", "f32", (4, 16))
    weights = [builder.constant(random.normal(size=(16, 16)).astype(np.float32)) for _ in range(3)]
    for weight in weights:
        x = builder.add("ReluNan", builder.add("Linear", x, weight))
    data = {"x": random.normal(size=(3, 4, 16)).astype(np.float32)}
    module = builder.module(x)

    def named(asked: dict[str | int, str]) -> LostLayer | None:
        bundle = nacre.compile(module, "npm4k", "i8", calibration=data, precision_map=asked)
        return lost_most(bundle, {"x": data["x"][0]})

    first = named({})
    assert first is not None
    second = named({first.layer.strip("`"): "f16"})
    assert second is None or second.layer != first.layer
