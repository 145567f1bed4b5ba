"""A plan that misses its bound names the layer that loses most, and a remedy."""

from __future__ import annotations

import numpy as np

import nacre
from nacre.compile.bundle.lost_layers import LostLayer, find_worst_layer
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


def test_inputs_beyond_the_calibration_data_name_a_remedy_that_helps() -> None:
    """No layer in floats would: the data has to be other, or the precision."""
    builder = Builder()
    x = builder.input("x", "f32", (8, 16))
    y = builder.add("Linear", x, builder.constant(values((16, 16), 1)))
    module = builder.module(builder.add("Relu", y))
    loud = {"x": 50 * values((8, 16), 2)}
    quiet = {"x": values((8, 16), 2) / 100}
    found = nacre.compile(module, "npm4k", "i8", calibration=[quiet]).validate(loud)
    assert (found.verdict, found.lost_most is not None) == ("not valid", True)
    assert "held at an end of 8 bits" in found.lost_most.cause  # type: ignore[union-attr]
    assert found.lost_most.remedy == "calibration data that has such inputs, or f16"  # type: ignore[union-attr]
    assert found.as_json()["lost_most"]["after"] is None
    assert nacre.compile(module, "npm4k", "i8", calibration=[quiet, loud]).validate(loud).ok
    assert nacre.compile(module, "npm4k").validate(loud).ok


def test_integers_name_their_worst_layer_and_floats_help_there() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (8, 16))
    spread = np.logspace(-2, 2, 16).astype(np.float32)
    y = builder.add("Linear", x, builder.constant(values((16, 16), 1) * spread[:, None]))
    y = builder.add("Exp", builder.add("Unary", y, op="Tanh"))
    y = builder.add("BinOp", y, builder.constant(spread * 10), op="Mul")
    y = builder.add("BinOp", builder.add("Unary", y, op="Sqrt"), y, op="Add")
    y = builder.add("BinOp", y, builder.constant(1 / spread), op="Mul")
    module = builder.module(builder.add("Linear", y, builder.constant(values((16, 16), 3))))
    data = {"x": values((8, 16), 2)}
    plan = nacre.compile(module, "npm4k", "i8", calibration=[data], fallback=False)
    found = plan.validate(data)
    assert (found.verdict, found.lost_most is not None) == ("not valid", True)
    layer = found.lost_most.layer.strip("`")  # type: ignore[union-attr]
    assert f"`{layer}=f16` in a precision map" in found.lost_most.remedy  # type: ignore[union-attr]
    asked: dict[str | int, str] = {layer: "f16"}
    helped = nacre.compile(
        module, "npm4k", "i8", calibration=[data], fallback=False, precision_map=asked
    ).validate(data)
    assert helped.ok, helped


def test_a_layer_that_is_floats_already_has_another_remedy_than_a_precision_map() -> None:
    """What is lost on the calibration data itself is not for want of data, either."""
    builder = Builder()
    x = builder.input("x", "f32", (8, 16))
    far = builder.add("BinOp", x, builder.constant(np.float32(3e4)), op="Add")
    back = builder.add("BinOp", far, builder.constant(np.float32(3e4)), op="Sub")
    data = {"x": values((8, 16), 2)}
    plan = nacre.compile(
        builder.module(builder.add("Exp", back)), "npm4k", "i8", calibration=[data]
    )
    found = plan.validate(data)
    assert (found.verdict, found.lost_most is not None) == ("not valid", True)
    assert "it is f16 already" in found.lost_most.cause  # type: ignore[union-attr]
    assert "f32, on a device that has it" in found.lost_most.remedy  # type: ignore[union-attr]


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
        return find_worst_layer(bundle, {"x": data["x"][0]})

    first = named({})
    assert first is not None
    second = named({first.layer.strip("`"): "f16"})
    assert second is None or second.layer != first.layer
