"""The forms on integers against NEM tasks written by hand: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.compile.quantise.affine import Affine, to_f32_scale
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from tests.compile.quantise.tasks import Operand, per_channel, per_tensor, run

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = npt.NDArray[Any]
MANY = settings().max_examples
EVERY: Array = np.arange(-128, 128).astype(np.int8)
FIRST, SECOND = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(EVERY, EVERY))

UNARY: dict[str, tuple[str, dict[str, Any], str]] = {
    "relu": ("ReluNan", {}, ""),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.1}, "alpha=0.1"),
    "clamp": ("Clip", {"min": -1.25, "max": 6.0}, "min_val=-1.25 max_val=6.0"),
    "sigmoid": ("Unary", {"op": "Sigmoid"}, ""),
    "tanh": ("Unary", {"op": "Tanh"}, ""),
    "sqrt": ("Unary", {"op": "Sqrt"}, ""),
    "abs": ("Unary", {"op": "Abs"}, ""),
    "neg": ("Neg", {}, ""),
    "exp": ("Exp", {}, ""),
    "log": ("Log", {}, ""),
    "gelu": ("Gelu", {}, ""),
    "silu": ("Silu", {}, ""),
}
BINARY = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow")

affines = st.builds(
    Affine,
    st.floats(2.0**-20, 2.0**10).map(to_f32_scale),
    st.integers(-128, 127),
)


def sandwich(
    opcode: str, operands: list[tuple[Array, Affine]], y: Affine, ordered: bool, **given: object
) -> Array:
    """Out of integers, one operation in f32, into integers again, by the evaluator."""
    builder = Builder()
    inputs = dict(zip("ab", (array for array, _ in operands), strict=False))
    values = [builder.input(name, "i8", array.shape) for name, array in inputs.items()]
    reals = [real(builder, v, affine) for v, (_, affine) in zip(values, operands, strict=True)]
    made = stored(builder, builder.add(opcode, *reals, **given), y)
    return evaluate(builder.module(made), inputs, ordered=ordered)[0]


def real(builder: Builder, value: int, affine: Affine) -> int:
    return builder.add("Dequantize", value, *parameters(builder, affine))


def stored(builder: Builder, value: int, affine: Affine) -> int:
    return builder.add("Quantize", value, *parameters(builder, affine), to="i8")


def parameters(builder: Builder, affine: Affine) -> tuple[int, int]:
    scale = builder.constant(np.float32(affine.scale), "f32")
    return scale, builder.constant(np.int8(affine.zero), "i8")


def result(shape: tuple[int, ...], affine: Affine) -> Operand:
    return Operand(np.zeros(shape, np.int8), per_tensor(affine))


@pytest.mark.heavy("compiles networks")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", UNARY)
@given(x=affines, y=affines, ordered=st.booleans())
@settings(deadline=None, max_examples=MANY // 4)  # every integer there is, each
def test_a_function_of_one_tensor(name: str, x: Affine, y: Affine, ordered: bool) -> None:
    opcode, attributes, written = UNARY[name]
    found = sandwich(opcode, [(EVERY, x)], y, ordered, **attributes)
    task = run(
        name, [Operand(EVERY, per_tensor(x))], result(EVERY.shape, y), written, ordered=ordered
    )
    np.testing.assert_array_equal(found, task)


@pytest.mark.heavy("compiles networks")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", BINARY)
@given(a=affines, b=affines, y=affines, ordered=st.booleans())
@settings(deadline=None, max_examples=10)  # 65,536 pairs each
def test_a_function_of_two_tensors_on_all_pairs(
    op: str, a: Affine, b: Affine, y: Affine, ordered: bool
) -> None:
    found = sandwich("BinOp", [(FIRST, a), (SECOND, b)], y, ordered, op=op)
    sources = [Operand(FIRST, per_tensor(a)), Operand(SECOND, per_tensor(b))]
    task = run(op.lower(), sources, result(FIRST.shape, y), ordered=ordered)
    np.testing.assert_array_equal(found, task)


@given(x=affines)
@settings(deadline=None)
def test_the_way_into_an_island(x: Affine) -> None:
    builder = Builder()
    made = builder.add("Cast", real(builder, builder.input("a", "i8", (256,)), x), to="f16")
    found = evaluate(builder.module(made), {"a": EVERY})[0]
    empty = Operand(np.zeros(256, np.float16))
    task = run("dequantize", [Operand(EVERY, per_tensor(x))], empty)
    np.testing.assert_array_equal(found.view(np.uint16), task.view(np.uint16))


@given(y=affines)
@settings(deadline=None)
def test_the_way_out_of_an_island_for_every_half(y: Affine) -> None:
    every = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    builder = Builder()
    wide = builder.add("Cast", builder.input("a", "f16", every.shape), to="f32")
    found = evaluate(builder.module(stored(builder, wide, y)), {"a": every})[0]
    task = run("quantize", [Operand(every)], result(every.shape, y))
    np.testing.assert_array_equal(found, task)


@given(data=st.data(), x=affines, y=affines, seed=st.integers(0, 1000))
@settings(deadline=None)
def test_a_convolution_with_scales_for_channels(
    data: st.DataObject, x: Affine, y: Affine, seed: int
) -> None:
    random = np.random.default_rng(seed)
    groups = data.draw(st.sampled_from((1, 2, 4)))
    scales = [to_f32_scale(s) for s in random.uniform(0.001, 0.1, 8)]
    image = random.integers(-128, 128, (1, 6, 5, 4)).astype(np.int8)
    weights = random.integers(-127, 128, (3, 3, 4 // groups, 8)).astype(np.int8)
    bias = random.integers(-(1 << 20), 1 << 20, 8).astype(np.int32)
    builder = Builder()
    made = builder.add(
        "QConv", builder.input("x", "i8", image.shape), builder.constant(weights),
        builder.constant(bias), layout="NHWC", pads=(1, 1, 1, 1), groups=groups,
        x_scale=x.scale, x_zero=x.zero, w_scales=tuple(scales), y_scale=y.scale, y_zero=y.zero,
        to="i8",
    )  # fmt: skip
    found = evaluate(builder.module(made), {"x": image})[0]
    sources = [
        Operand(image, per_tensor(x)),
        Operand(weights, per_channel(3, scales), "HWIO"),
        Operand(bias),
    ]
    attributes = f"pads=[1, 1, 1, 1] strides=[1, 1] dilations=[1, 1] groups={groups}"
    task = run("conv2d", sources, result(found.shape, y), f"{attributes} accum_type=i32")
    np.testing.assert_array_equal(found, task)


@given(x=affines, w=affines, y=affines, seed=st.integers(0, 1000))
@settings(deadline=None)
def test_channels_times_a_computed_vector(x: Affine, w: Affine, y: Affine, seed: int) -> None:
    random = np.random.default_rng(seed)
    image = random.integers(-128, 128, (1, 4, 5, 6)).astype(np.int8)
    vector = random.integers(-128, 128, (1, 1, 1, 6)).astype(np.int8)
    builder = Builder()
    made = builder.add(
        "QConv", builder.input("x", "i8", image.shape), builder.input("w", "i8", vector.shape),
        layout="NHWC", groups=6, x_scale=x.scale, x_zero=x.zero, w_scales=(w.scale,),
        w_zeros=(w.zero,), y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    found = evaluate(builder.module(made), {"x": image, "w": vector})[0]
    sources = [Operand(image, per_tensor(x)), Operand(vector, per_tensor(w), "HWIO")]
    attributes = "pads=[0, 0, 0, 0] strides=[1, 1] dilations=[1, 1] groups=6 accum_type=i32"
    task = run("conv2d", sources, result(found.shape, y), attributes)
    np.testing.assert_array_equal(found, task)


@given(x=affines, y=affines, seed=st.integers(0, 1000))
@settings(deadline=None)
def test_a_product_of_matrices(x: Affine, y: Affine, seed: int) -> None:
    random = np.random.default_rng(seed)
    scales = [to_f32_scale(s) for s in random.uniform(0.001, 0.1, 5)]
    rows = random.integers(-128, 128, (7, 9)).astype(np.int8)
    weights = random.integers(-127, 128, (5, 9)).astype(np.int8)
    bias = random.integers(-(1 << 20), 1 << 20, 5).astype(np.int32)
    builder = Builder()
    made = builder.add(
        "QLinear", builder.input("x", "i8", rows.shape), builder.constant(weights),
        builder.constant(bias), x_scale=x.scale, x_zero=x.zero, w_scales=tuple(scales),
        y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    found = evaluate(builder.module(made), {"x": rows})[0]
    sources = [
        Operand(rows, per_tensor(x), "MK"),
        Operand(np.ascontiguousarray(weights.T), per_channel(1, scales), "KN"),
        Operand(bias),
    ]
    task = run("gemm", sources, result(found.shape, y), "accum_type=i32")
    np.testing.assert_array_equal(found, task)


@given(x=affines, y=affines, same=st.booleans(), seed=st.integers(0, 1000))
@settings(deadline=None)
def test_a_mean_of_windows(x: Affine, y: Affine, same: bool, seed: int) -> None:
    y = x if same else y
    image = np.random.default_rng(seed).integers(-128, 128, (1, 6, 7, 3)).astype(np.int8)
    builder = Builder()
    made = builder.add(
        "QPool", builder.input("x", "i8", image.shape), op="Avg", layout="NHWC", kernel=(3, 2),
        strides=(1, 2), pads=(1, 0, 1, 1), x_scale=x.scale, x_zero=x.zero, y_scale=y.scale,
        y_zero=y.zero, to="i8",
    )  # fmt: skip
    found = evaluate(builder.module(made), {"x": image})[0]
    attributes = "kernel_shape=[3, 2] strides=[1, 2] pads=[1, 0, 1, 1]"
    task = run("avgpool", [Operand(image, per_tensor(x))], result(found.shape, y), attributes)
    np.testing.assert_array_equal(found, task)


def test_the_largest_of_windows_needs_no_scale() -> None:
    image = np.random.default_rng(3).integers(-128, 128, (1, 6, 8, 3)).astype(np.int8)
    builder = Builder()
    made = builder.add(
        "MaxPool", builder.input("x", "i8", image.shape), layout="NHWC", kernel=(2, 2),
        strides=(2, 2),
    )  # fmt: skip
    found = evaluate(builder.module(made), {"x": image})[0]
    quant = Affine(0.5, 3)
    attributes = "kernel_shape=[2, 2] strides=[2, 2] pads=[0, 0, 0, 0]"
    source = Operand(image, per_tensor(quant))
    task = run("maxpool", [source], result(found.shape, quant), attributes)
    np.testing.assert_array_equal(found, task)
