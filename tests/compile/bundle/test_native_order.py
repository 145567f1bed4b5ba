"""`io_layout="native"`: the host transposes what the device would have at its borders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.compile.options import PRECISIONS, IoLayout, Precision
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.api import NemInterpreter
from tests.cli.runner import invoke
from tests.compile.models import Array, values

pytestmark = pytest.mark.sampled(2)  # together they take long

LAST = (0, 2, 3, 1)  # channels of a picture last
SHAPE = (1, 6, 10, 12)


def convolved(builder: Builder, x: int, seed: int = 1, outputs: int = 6) -> int:
    """A convolution with channels first."""
    weights = builder.constant(values((outputs, 6, 3, 3), seed, 0.2))
    return builder.add(
        "Conv", x, weights, strides=(1, 1), pads=(1,) * 4, dilations=(1, 1), groups=1
    )


def network() -> Module:
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", SHAPE)
    return builder.module(builder.add("Relu", convolved(builder, x)))


def of_bytes() -> Module:
    """What a camera gives, and what a screen takes."""
    builder = Builder("nacre-1")
    x = builder.input("x", "u8", SHAPE)
    made = convolved(builder, builder.add("Cast", x, to="f32"))
    held = builder.add("Clip", made, min=0.0, max=255.0)
    return builder.module(builder.add("Cast", held, to="u8"))


def read_twice() -> Module:
    """An input that is also read in the model's own order, and an output that is used again."""
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", SHAPE)
    y = convolved(builder, x)
    rows = builder.constant(values((12, 5), 4))
    product = builder.add("MatMul", x, rows)
    return builder.module(y, product, builder.add("Relu", convolved(builder, y, 2)), y)


def with_state() -> Module:
    builder = Builder("nacre-1")
    x, h = builder.input("x", "f32", SHAPE), builder.input("h", "f32", SHAPE)
    made = convolved(builder, builder.add("BinOp", x, h, op="Add"))
    builder.state("h", made, builder.constant(np.zeros(SHAPE, np.float32)))
    return builder.module(builder.add("Relu", made))


def only_transposed() -> Module:
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", SHAPE)
    return builder.module(builder.add("Transpose", x, permutation=LAST))


def of_three_orders() -> Module:
    """Transpositions that the device does in two steps, at both borders."""
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (4, 6, 8, 10))
    turned = builder.add("Transpose", x, permutation=(3, 1, 0, 2))
    made = builder.add("MatMul", turned, builder.constant(values((8, 8), 5, 0.3)))
    return builder.module(builder.add("Transpose", made, permutation=(2, 1, 0, 3)))


def data_of(module: Module, count: int = 3) -> list[dict[str, Array]]:
    states = {state.name for state in module.states}
    return [
        {
            name: np.clip(100 + 60 * values(t.shape, seed), 0, 255).astype(np.uint8)
            if t.dtype == "u8"
            else values(t.shape, seed)
            for name, t in module.input_types.items()
            if name not in states
        }
        for seed in range(count)
    ]


def compiled(module: Module, precision: Precision, io_layout: IoLayout) -> nacre.Bundle:
    data: Any = data_of(module) if precision == "i8" else None
    device = "nem_reference" if precision == "f32" else "npm4k"
    return nacre.compile(module, device, precision, calibration=data, io_layout=io_layout)


def transpositions(bundle: nacre.Bundle) -> int:
    return sum(op.opcode == "Transpose" for op in bundle.legal.operations)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_plan_has_no_transposition_and_the_same_outputs(precision: Precision) -> None:
    module = network()
    own, native = (compiled(module, precision, kind) for kind in ("model", "native"))
    inputs = data_of(module)[0]
    assert (transpositions(own), transpositions(native)) == (2, 0)
    ports = (*native.manifest.inputs, *native.manifest.outputs)
    assert [(port.axes, port.memory_shape) for port in ports] == [(LAST, (1, 10, 12, 6))] * 2
    assert [port.shape for port in ports] == [SHAPE] * 2
    np.testing.assert_array_equal(own.run(inputs)["output0"], native.run(inputs)["output0"])
    assert native.validate(inputs).ok
    assert native.time().cycles < own.time().cycles


def test_casts_at_the_border_are_no_hindrance() -> None:
    module = of_bytes()
    own, native = (compiled(module, "f16", kind) for kind in ("model", "native"))
    inputs = data_of(module)[0]
    assert transpositions(native) == 0
    (port,) = native.manifest.inputs
    assert (port.elem, port.axes) == ("u8", LAST)
    np.testing.assert_array_equal(own.run(inputs)["output0"], native.run(inputs)["output0"])


def test_what_is_read_in_the_model_s_order_keeps_it() -> None:
    module = read_twice()
    own, native = (compiled(module, "f16", kind) for kind in ("model", "native"))
    inputs = data_of(module)[0]
    assert native.manifest.inputs[0].axes is None
    assert [port.axes for port in native.manifest.outputs] == [LAST, None, LAST, LAST]
    found = native.run(inputs)
    for name, array in own.run(inputs).items():
        np.testing.assert_array_equal(array, found[name])
    assert native.validate(inputs).ok


def test_states_stay_as_they_are() -> None:
    module = with_state()
    own, native = (compiled(module, "f16", kind) for kind in ("model", "native"))
    axes = {port.name: port.axes for port in (*native.manifest.inputs, *native.manifest.outputs)}
    assert axes["h"] is None
    assert axes["state h"] is None
    assert axes["output0"] == LAST
    first, second = own.session(), native.session()
    for inputs in data_of(module):
        np.testing.assert_array_equal(first.run(inputs)["output0"], second.run(inputs)["output0"])


def test_a_model_that_only_transposes_still_does() -> None:
    native = compiled(only_transposed(), "f16", "native")
    x = data_of(only_transposed())[0]["x"]
    assert transpositions(native) > 0
    np.testing.assert_array_equal(
        native.run({"x": x})["output0"], x.transpose(LAST).astype(np.float16).astype(np.float32)
    )


def test_two_transpositions_in_a_row_are_one_for_the_host() -> None:
    module = of_three_orders()
    native = compiled(module, "f16", "native")
    assert transpositions(native) == 0
    x = data_of(module)[0]["x"]
    assert native.manifest.inputs[0].memory_shape == (10, 6, 4, 8)
    wanted = (x.transpose(3, 1, 0, 2) @ values((8, 8), 5, 0.3)).transpose(2, 1, 0, 3)
    np.testing.assert_allclose(native.run({"x": x})["output0"], wanted, atol=2e-2)


def test_memory_has_the_order_that_the_manifest_says() -> None:
    """By hand: an array as the device takes it, its bytes read back without the bundle's help."""
    bundle = compiled(network(), "f16", "native")
    x = data_of(network())[0]["x"]
    interpreter = NemInterpreter()
    program = interpreter.load_string(bundle.program)
    (source,), (target,) = bundle.manifest.inputs, bundle.manifest.outputs
    memory = {source.buffer: x.transpose(LAST).astype(np.float16), "weights": bundle.weights}
    result = interpreter.run(program, memory)
    found = np.frombuffer(result.read_buffer(target.buffer), np.float16).reshape(1, 10, 12, 6)
    wanted = bundle.run({"x": x})["output0"]
    np.testing.assert_array_equal(found.transpose(0, 3, 1, 2), wanted.astype(np.float16))


def test_the_binder_takes_arrays_as_memory_has_them() -> None:
    bundle = compiled(network(), "i8", "native")
    inputs = data_of(network())[0]
    bound = nacre.bind(bundle)
    assert [port.dims for port in bound.image.ports] == [(1, 10, 12, 6)] * 2
    found = bound.run({"x": inputs["x"].transpose(LAST)})
    wanted = bundle.run(inputs)["output0"].transpose(LAST)
    np.testing.assert_array_equal(found.outputs["output0"], wanted)


def test_noise_is_found_at_every_tensor_in_either_order() -> None:
    module, inputs = network(), data_of(network())[0]
    own, native = (compiled(module, "i8", kind).blame(inputs) for kind in ("model", "native"))
    found = {(t.source, t.added, t.after) for t in native.tensors}
    assert {source for source, *_ in found} == {0, 3}  # the input, and what the layer makes
    assert found <= {(t.source, t.added, t.after) for t in own.tensors}


def test_a_bundle_on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written by the command line without its model, validated, debugged and run."""
    nacre.core.save(network(), tmp_path / "net.core")
    folder, x = tmp_path / "bundle", data_of(network())[0]["x"]
    given = ("--device", "npm4k", "--io-layout", "native", "--no-reference", "-o", folder)
    assert invoke(capsys, "compile", tmp_path / "net.core", *given).status == 0
    assert nacre.Bundle.load(folder).manifest.inputs[0].axes == LAST
    assert invoke(capsys, "validate", folder).status == 0
    np.save(tmp_path / "x.npy", x)
    commands = ("--command", "print x[0, 5, 9, 11]", "--command", "print x")
    done = invoke(capsys, "debug", folder, "--input", f"x={tmp_path}/x.npy", "--batch", *commands)
    assert f"{x[0, 5, 9, 11].astype(np.float16):.4g}"[:5] in done.out
    assert "as 1x10x12x6 there" in done.out
    target = tmp_path / "y.npy"
    more = ("--input", f"x={tmp_path}/x.npy", "--output", f"output0={target}")
    assert invoke(capsys, "run", folder, *more).status == 0
    np.testing.assert_array_equal(
        np.load(target), nacre.Bundle.load(folder).run({"x": x})["output0"]
    )
