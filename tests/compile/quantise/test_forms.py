"""What each operation becomes, and how much of the float module is left in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from nacre.compile.quantise.affine import LOW
from nacre.compile.quantise.observers import OBSERVERS
from nacre.compile.quantise.quantiser import Quantised, quantise
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.verify import verify
from tests.compile.quantise.networks import (
    convolution,
    legal,
    mobile,
    named,
    numbers,
    samples,
    sqnr,
    stored_run,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

Make = Callable[[Builder, int], int]


def network(make: Make, shape: tuple[int, ...] = (1, 8, 8, 6)) -> Module:
    builder = Builder()
    return named(builder.module(make(builder, builder.input("x", "f32", shape))))


def quantised(module: Module, count: int = 24, **given: Any) -> Quantised:  # noqa: ANN401
    made = quantise(legal(module), samples(module, count), source=module, **given)
    assert verify(made.legal.module, "nacre-1") == []
    return made


def opcodes(made: Quantised) -> Counter[str]:
    """Every operation but constants, with its element type."""
    ops = (op for op in made.legal.module.operations if not op.opcode.startswith("Const"))
    return Counter(f"{op.opcode}:{op.type.dtype}" for op in ops)


def held_out(module: Module, made: Quantised) -> float:
    """Signal over noise of all outputs on inputs that calibration did not see."""
    worst = float("inf")
    for sample in samples(module, 3, seed=900):
        pairs = zip(evaluate(module, sample), stored_run(made, sample), strict=True)
        worst = min(worst, *(sqnr(expected, found) for expected, found in pairs))
    return worst


@pytest.mark.sampled(3)
@pytest.mark.parametrize("observer", OBSERVERS)
def test_a_mobile_network_is_integers_from_end_to_end(observer: str) -> None:
    module = mobile()
    made = quantised(module, observer=observer)
    found = opcodes(made)
    assert not any(name.endswith(":f16") for name in found)
    # Bounds between 0 and 6 cost nothing; additions are the only functions that are left.
    assert found["QConv:i8"] == 13
    assert (found["Clip:f32"], found["BinOp:f32"], found["QPool:i8"]) == (0, 4, 1)
    assert held_out(module, made) > 20


def test_bias_correction_gives_back_the_means() -> None:
    module = mobile(seed=4)
    means = []
    for without in ({"bias"}, set()):
        made = quantised(module, without=without)
        errors = []
        for sample in samples(module, 4):
            errors.append(stored_run(made, sample)[0] - evaluate(module, sample)[0])
        means.append(float(np.abs(np.mean(errors, axis=0)).mean()))
    assert means[1] <= means[0]


def test_a_relu_is_nothing_after_a_product_that_only_it_sees() -> None:
    module = network(lambda b, x: b.add("ReluNan", convolution(b, x, 4, 1)))
    made = quantised(module)
    assert opcodes(made) == {"Input:i8": 1, "QConv:i8": 1}
    assert made.outputs[0].zero == LOW


def test_a_relu_of_what_others_see_stays() -> None:
    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 6, 1)
        return b.add("BinOp", b.add("ReluNan", y), convolution(b, y, 6, 5), op="Add")

    made = quantised(network(make))
    assert opcodes(made)["ReluNan:f32"] == 1


def test_bounds_that_the_steps_do_not_keep_stay() -> None:
    module = network(lambda b, x: b.add("Clip", convolution(b, x, 4, 1), min=-0.31, max=0.77))
    made = quantised(module)
    (array,) = stored_run(made, samples(module, 1)[0])
    step = made.outputs[0].scale
    assert step is not None
    assert array.min() >= -0.31 - step
    assert array.max() <= 0.77 + step
    assert held_out(module, made) > 30


def test_a_product_with_a_number_only_changes_the_scale() -> None:
    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 4, 1)
        z = b.add("BinOp", y, b.constant(np.float32(2.5)), op="Mul")
        return b.add("BinOp", z, b.constant(np.float32(7.0)), op="Div")

    module = network(make)
    made = quantised(module)
    assert opcodes(made) == {"Input:i8": 1, "QConv:i8": 1}
    assert held_out(module, made) > 30


def test_a_hard_swish_takes_two_functions() -> None:
    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 8, 1)
        gate = b.add("BinOp", y, b.constant(np.float32(3)), op="Add")
        gate = b.add("Clip", gate, min=0.0, max=6.0)
        made = b.add("BinOp", y, gate, op="Mul")
        return b.add("BinOp", made, b.constant(np.float32(1 / 6)), op="Mul")

    module = network(make)
    made = quantised(module)
    assert opcodes(made)["BinOp:f32"] == 2
    assert opcodes(made)["Clip:f32"] == 0
    assert held_out(module, made) > 28


@pytest.mark.parametrize(
    ("opcode", "given"),
    [
        ("Silu", {}),
        ("Gelu", {}),
        ("LeakyRelu", {"alpha": 0.1}),
        ("Neg", {}),
        ("Unary", {"op": "Sigmoid"}),
        ("Unary", {"op": "Tanh"}),
        ("Unary", {"op": "Abs"}),
    ],
)
def test_a_function_is_one_operation_between_integers(opcode: str, given: dict[str, Any]) -> None:
    module = network(lambda b, x: b.add(opcode, convolution(b, x, 4, 1), **given))
    made = quantised(module)
    name = f"{opcode}:f32"
    expected = {"Input:i8": 1, "QConv:i8": 1, "Dequantize:f32": 1, name: 1, "Quantize:i8": 1}
    assert opcodes(made) == expected
    assert held_out(module, made) > 28


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Min", "Max"])
def test_a_function_of_two_tensors_and_of_a_constant(op: str) -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("BinOp", convolution(b, x, 4, 1), convolution(b, x, 4, 7), op=op)
        return b.add("BinOp", y, b.constant(numbers(3, 4)), op=op)

    module = network(make)
    made = quantised(module)
    assert opcodes(made)["BinOp:f32"] == 2
    assert opcodes(made)["Dequantize:f32"] == 4
    assert held_out(module, made) > 22


def test_softmax_and_norms_are_islands_of_floats() -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("LayerNorm", convolution(b, x, 8, 1), axis=3)
        y = b.add("Softmax", convolution(b, y, 8, 5), axis=3)
        return convolution(b, y, 4, 9)

    module = network(make)
    made = quantised(module)
    found = opcodes(made)
    assert (found["LayerNorm:f16"], found["Softmax:f16"], found["QConv:i8"]) == (1, 1, 3)
    # In: a cast, and for the softmax a product. Out: the norm is in steps of its result already,
    # of the softmax a product and a sum make them.
    assert (found["Dequantize:f32"], found["Cast:f16"], found["BinOp:f16"]) == (0, 2, 3)
    assert quantising(made) == [(1.0, 0), (1.0, 0)]
    assert in_steps(made) == ["LayerNorm", "BinOp"]
    assert held_out(module, made) > 25


def quantising(made: Quantised) -> list[tuple[float, float]]:
    """The scale and the zero point of every `Quantize`, in order."""
    module = made.legal.module
    found = [op for op in module.operations if op.opcode == "Quantize"]
    pairs = (
        [float(np.asarray(constant_array(module.by_id[o]))) for o in op.operands[1:]]
        for op in found
    )
    return [(scale, zero) for scale, zero in pairs]


def in_steps(made: Quantised) -> list[str]:
    """What makes the floats that every `Quantize` stores, in order."""
    by_id = made.legal.module.by_id
    found = [op for op in made.legal.module.operations if op.opcode == "Quantize"]
    return [by_id[by_id[op.operands[0]].operands[0]].opcode for op in found]


def sums_of_floats(made: Quantised) -> int:
    """How many sums of two computed tensors are in floats of 16 bits."""
    ops, by_id = made.legal.module.operations, made.legal.module.by_id
    sums = [op for op in ops if op.attributes.get("op") == "Add" and op.type.dtype == "f16"]
    return sum(all(by_id[o].type.rank for o in op.operands) for op in sums)


NORMS = {
    "plain": ("LayerNorm", 0, {}),
    "factors": ("LayerNorm", 1, {}),
    "factors and sums": ("LayerNorm", 2, {}),
    "epsilon": ("LayerNorm", 2, {"epsilon": 0.5}),
    "root mean square": ("RmsNorm", 1, {}),
    "root mean square, epsilon": ("RmsNorm", 1, {"epsilon": 0.5}),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("opcode", "count", "given"), NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("spread", [0.01, 1.0, 100.0])
def test_a_norm_takes_integers_as_they_are_and_gives_some(
    opcode: str, count: int, given: dict[str, float], spread: float
) -> None:
    """Its epsilon counts in their steps, its factors and sums in those of what it gives."""

    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 16, 1, spread=spread)
        values = [b.constant(numbers(seed, 16) + 1.5) for seed in range(count)]
        return convolution(b, b.add(opcode, y, *values, axis=3, **given), 8, 5)

    module = network(make)
    made = quantised(module)
    assert quantising(made) == [(1.0, 0)]
    assert opcodes(made)["Dequantize:f32"] == 0
    assert held_out(module, made) > 25


def test_a_norm_that_somebody_sees_in_floats_stays_there() -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("LayerNorm", convolution(b, x, 16, 1), axis=3)
        z = b.add("BinOp", convolution(b, y, 16, 5), y, op="Add")
        return convolution(b, b.add("LayerNorm", z, axis=3), 16, 9)

    module = network(make)
    made = quantised(module)
    assert sums_of_floats(made) == 1
    assert in_steps(made) == ["BinOp", "LayerNorm"]
    assert held_out(module, made) > 25


def test_a_scale_that_half_precision_has_not_leaves_by_quantize() -> None:
    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 64, 1)
        shape = b.type_of(y).shape
        y = b.add("Softmax", b.add("Reshape", y, new_shape=(1, prod(shape))), axis=1)
        return b.add("Linear", b.add("Reshape", y, new_shape=shape), b.constant(numbers(9, 96, 64)))

    module = network(make)
    made = quantised(module)
    ((scale, _),) = quantising(made)
    assert scale < 2.0**-15
    assert held_out(module, made) > 25


def test_what_a_norm_makes_is_moved_as_integers() -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("LayerNorm", convolution(b, x, 16, 1), axis=3)
        y = b.add("Transpose", y, permutation=(0, 2, 1, 3))
        return convolution(b, y, 16, 5)

    module = network(make)
    made = quantised(module)
    assert opcodes(made)["Transpose:i8"] == 1
    assert held_out(module, made) > 25


def test_a_residual_between_norms_stays_in_floats() -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("LayerNorm", x, axis=1)
        y = b.add("Linear", y, b.constant(numbers(1, 16, 16, spread=0.25)))
        y = b.add("BinOp", y, x, op="Add")
        return b.add("LayerNorm", y, axis=1)

    made = quantised(network(make, (4, 16)))
    found = opcodes(made)
    assert sums_of_floats(made) == 1
    assert found["Input:f16"] == 1
    assert found["QLinear:i8"] == 1


@pytest.mark.parametrize("op", ["Sqrt", "Log"])
def test_what_is_steep_near_zero_is_computed_in_floats(op: str) -> None:
    given = {"op": op} if op == "Sqrt" else {}

    def make(b: Builder, x: int) -> int:
        y = b.add("Unary", convolution(b, x, 4, 1), op="Abs")
        return b.add("Unary" if given else op, y, **given)

    assert any(name.endswith(":f16") for name in opcodes(quantised(network(make))))


def test_parts_of_a_concatenation_share_a_scale_or_change_theirs() -> None:
    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 4, 1)
        small = convolution(b, x, 4, 3, spread=0.02)
        wide = convolution(b, x, 4, 5, spread=3.0)
        joint = b.add("Concat", y, small, wide, axis=3)
        # `small` is used once more, and needs its own scale there.
        return b.add("BinOp", convolution(b, joint, 4, 9), convolution(b, small, 4, 11), op="Add")

    module = network(make)
    made = quantised(module)
    found = opcodes(made)
    assert found["Concat:i8"] == 1
    assert found["Clip:f32"] == 1  # `small` for the concatenation
    assert held_out(module, made) > 20


def test_outputs_of_very_different_size_are_joined_in_floats() -> None:
    def make(b: Builder, x: int) -> int:
        boxes = convolution(b, x, 4, 1, spread=200.0)
        scores = b.add("Unary", convolution(b, x, 2, 5), op="Sigmoid")
        return b.add("Concat", boxes, scores, axis=3)

    module = network(make)
    made = quantised(module)
    assert made.outputs[0].elem == "f16"
    sample = samples(module, 1)[0]
    expected, found = evaluate(module, sample)[0], stored_run(made, sample)[0]
    assert sqnr(expected[..., 4:], found[..., 4:]) > 25


def test_moves_pools_and_padding_keep_the_integers() -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("MaxPool", convolution(b, x, 8, 1), layout="NHWC", kernel=(2, 2), strides=(2, 2))
        y = b.add("Pad", y, pads=(0, 1, 1, 0, 0, 1, 1, 0), value=0.25)
        y = b.add("Slice", y, starts=(0, 0, 1, 0), ends=(1, 6, 6, 8), steps=(1, 1, 1, 1))
        y = b.add("Resize", y, sizes=(1, 12, 10, 8), coordinate="asymmetric", rounding="floor")
        y = b.add("Transpose", y, permutation=(0, 3, 1, 2))
        return b.add("Reshape", y, new_shape=(8, 120))

    module = network(make)
    made = quantised(module)
    assert {name.partition(":")[2] for name in opcodes(made)} == {"i8"}
    assert held_out(module, made) > 30


def test_rows_are_mixed_as_integers() -> None:
    """What a resize becomes along its first axis: a product by a constant from the left."""

    def make(b: Builder, x: int) -> int:
        y = b.add("Reshape", convolution(b, x, 8, 1), new_shape=(8, 64))
        mixing = np.repeat(np.eye(8, dtype=np.float32), 2, axis=0)
        mixing = 0.75 * mixing + 0.25 * np.roll(mixing, 1, axis=0)
        y = b.add("MatMul", b.constant(mixing), y)
        return convolution(b, b.add("Reshape", y, new_shape=(1, 16, 8, 8)), 4, 5)

    module = network(make)
    made = quantised(module)
    assert not [name for name in opcodes(made) if name.endswith("f16")]
    assert held_out(module, made) > 30


@pytest.mark.parametrize("opcode", ["ArgMax", "ArgMin"])
def test_a_place_is_found_among_integers(opcode: str) -> None:
    def make(b: Builder, x: int) -> int:
        return b.add(opcode, convolution(b, x, 8, 1), axis=3)

    module = network(make)
    made = quantised(module)
    assert not [name for name in opcodes(made) if name.endswith("f16")]
    (sample,) = samples(module, 1)
    expected, found = evaluate(module, sample)[0], stored_run(made, sample)[0]
    assert np.mean(expected == found) > 0.9


def test_channels_times_a_computed_vector() -> None:
    def make(b: Builder, x: int) -> int:
        y = convolution(b, x, 8, 1)
        mean = b.add("AvgPool", y, layout="NHWC", kernel=(8, 8))
        gate = b.add("Unary", convolution(b, mean, 8, 4, window=1), op="Sigmoid")
        return b.add("Conv", y, gate, layout="NHWC", groups=8)

    module = network(make)
    made = quantised(module)
    assert opcodes(made)["QConv:i8"] == 3
    assert held_out(module, made) > 28


@pytest.mark.heavy("compiles a network")
def test_layers_of_the_precision_map_are_floats() -> None:
    module = mobile()
    conv = next(op for op in module.operations if op.opcode == "Conv")
    label = module.labels.nodes[conv.value_id] if module.labels else ""
    for layer in (label, label[:-1] + "*", conv.value_id, f"%{conv.value_id}"):
        made = quantised(module, precision_map={layer: "f16"})
        assert opcodes(made)["Conv:f16"] >= 1, layer
    assert opcodes(made)["Conv:f16"] == 1
    every = quantised(module, precision_map={"conv_*": "f16", "linear_*": "f16"})
    assert opcodes(every)["QConv:i8"] == 0
    assert held_out(module, every) > held_out(module, made)


def test_a_state_is_kept_in_floats_from_run_to_run() -> None:
    builder = Builder()
    x, h = builder.input("x", "f32", (1, 8)), builder.input("h", "f32", (1, 8))
    both = builder.add("Concat", x, h, axis=1)
    gate = builder.add("Linear", both, builder.constant(numbers(1, 8, 16, spread=0.3)))
    after = builder.add("Unary", gate, op="Tanh")
    initial = builder.constant(np.zeros((1, 8), np.float32))
    y = builder.add("Linear", after, builder.constant(numbers(2, 4, 8, spread=0.3)))
    builder.state("h", after, initial)
    source = builder.module(y)
    flat = Module(source.operations, (y, after))
    data = [{"x": numbers(seed, 1, 8)} for seed in range(6)]
    made = quantise(replace(legal(flat), outputs=1), data, source=source)
    ports = {port.name: port.elem for port in made.ports}
    assert ports["h"] == "f16"
    assert ports["state h"] == "f16"
    assert made.report.samples == 6


def test_the_report_names_layers_and_measures_them() -> None:
    module = mobile()
    made = quantised(module)
    report = made.report
    assert report.samples == 8
    by_value = {loss.value: loss for loss in report.layers}
    assert report.outputs["y"] == by_value[module.outputs[0]].sqnr
    expected, found = [], []
    for sample in samples(module, 8):
        expected.append(evaluate(module, sample)[0])
        found.append(stored_run(made, sample)[0])
    assert report.outputs["y"] == pytest.approx(sqnr(expected, found), abs=0.01)
    text = str(report)
    assert "conv_" in text
    assert "output `y`" in text
    assert report.worst[0].sqnr == min(x.sqnr for x in report.layers if x.sqnr is not None)


@pytest.mark.parametrize("spread", [1e-12, 1e12])
def test_tiny_and_huge_activations(spread: float) -> None:
    def make(b: Builder, x: int) -> int:
        return convolution(b, convolution(b, x, 4, 1, spread=spread), 4, 5)

    module = network(make)
    assert held_out(module, quantised(module)) > 30


def test_a_layer_that_is_always_zero() -> None:
    def make(b: Builder, x: int) -> int:
        y = b.add("Conv", x, b.constant(np.zeros((1, 1, 6, 4), np.float32)), layout="NHWC")
        return b.add("BinOp", y, convolution(b, x, 4, 3), op="Add")

    module = network(make)
    assert held_out(module, quantised(module)) > 30
