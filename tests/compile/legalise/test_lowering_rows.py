"""One test for each row of the tables that say what a construct becomes: the opcodes of plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.compile.options import Precision
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.model.program import Task
from tests.compile.models import values
from tests.compile.quantise.networks import mobile
from tests.compile.random_graphs import feeds_of
from tests.compile.test_random_graphs import TINY, branches_model

pytestmark = pytest.mark.sampled(2)  # together they take long

Make = Callable[[Builder], int]
COPIES = {"transfer", "store"}


def of(make: Make) -> Module:
    builder = Builder()
    return builder.module(make(builder))


def bundle_of(
    module: Module,
    precision: Precision = "f16",
    device: str = "npm4k",
    feeds: Mapping[str, Any] | None = None,
) -> nacre.Bundle:
    """A clean bundle with the values of its legalised module."""
    given = dict(feeds_of(module) if feeds is None else feeds)
    bundle = nacre.compile(module, device, precision, calibration=[given])
    found = nacre.nem.check(bundle.program, strict=True)
    assert [d for d in found if d.severity != "info"] == []
    assert bundle.validate(given).first_difference is None
    return bundle


def tasks(bundle: nacre.Bundle) -> tuple[Task, ...]:
    return bundle.runnable_program.plan.program.tasks


def computed(bundle: nacre.Bundle) -> Counter[str]:
    """How often each opcode stands in the plan; a task by name counts under that."""
    return Counter(
        str(t.attributes["op"]) if t.op == "compute" else t.op
        for t in tasks(bundle)
        if t.op not in COPIES
    )


def opcodes(make: Make, precision: Precision = "f16") -> set[str]:
    return set(computed(bundle_of(of(make), precision)))


def conv(b: Builder, x: int, kernel: tuple[int, ...], **given: object) -> int:
    spread = float(np.prod(kernel[:3])) ** -0.5
    bias = b.constant(values((kernel[3],), 2, 0.1))
    return b.add("Conv", x, b.constant(values(kernel, 1, spread)), bias, layout="NHWC", **given)


def image(b: Builder, *shape: int) -> int:
    return b.input("x", "f32", shape or (1, 8, 8, 6))


def rows(b: Builder, *shape: int) -> int:
    return b.input("x", "f32", shape or (12, 8))


# Operations: in f16, and in i8 with what stands at the border of the integers


CONVOLUTIONS: dict[str, Make] = {
    "plain": lambda b: conv(b, image(b), (3, 3, 6, 4), pads=(1, 1, 1, 1)),
    "strided": lambda b: conv(b, image(b), (3, 3, 6, 4), strides=(2, 2)),
    "dilated": lambda b: conv(b, image(b), (3, 3, 6, 4), dilations=(2, 2)),
    "depthwise": lambda b: conv(b, image(b), (3, 3, 1, 6), groups=6),
    "grouped": lambda b: conv(b, image(b), (3, 3, 3, 4), groups=2),
    "of one axis": lambda b: b.add(
        "Conv", b.input("x", "f32", (1, 6, 9)), b.constant(values((4, 6, 3), 1, 0.2))
    ),
}


@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, precision: Precision) -> None:
    bundle = bundle_of(of(CONVOLUTIONS[name]), precision)
    turned = {"transpose"} if name == "of one axis" else set()
    assert set(computed(bundle)) - turned == {"conv2d"}
    (first, *_) = [t for t in tasks(bundle) if t.op == "conv2d"]
    assert first.attributes["accum_type"] == ("f32" if precision == "f16" else "i32")
    if name == "depthwise":
        assert first.attributes["groups"] == 6
    assert "VPU" not in bundle.time().macs_by_unit


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_linear(precision: Precision) -> None:
    def make(b: Builder) -> int:
        return b.add("Linear", rows(b), b.constant(values((5, 8), 1)), b.constant(values((5,), 2)))

    assert opcodes(make, precision) == {"gemm"}


def test_linear_in_single_precision_adds_its_bias() -> None:
    def make(b: Builder) -> int:
        return b.add("Linear", rows(b), b.constant(values((5, 8), 1)), b.constant(values((5,), 2)))

    bundle = bundle_of(of(make), "f32", "nem_reference")
    assert set(computed(bundle)) == {"gemm", "add", "pad"}


def test_products_of_attention() -> None:
    def make(b: Builder) -> int:
        x = b.input("x", "f32", (2, 6, 8))
        scores = b.add("MatMul", x, b.add("Transpose", x, permutation=(0, 2, 1)))
        return b.add("MatMul", b.add("Softmax", scores, axis=2), x)

    assert opcodes(make) == {"matmul", "softmax", "transpose"}
    found = opcodes(make, "i8")
    assert {"matmul", "softmax", "transpose"} <= found
    assert not any(name.startswith("core.") for name in found)


FUNCTIONS: dict[str, tuple[Make, str]] = {
    "relu": (lambda b: b.add("ReluNan", rows(b)), "relu"),
    "leaky": (lambda b: b.add("LeakyRelu", rows(b), alpha=0.2), "leaky_relu"),
    "clip": (lambda b: b.add("Clip", rows(b), min=-0.5, max=1.0), "clamp"),
    "sigmoid": (lambda b: b.add("Unary", rows(b), op="Sigmoid"), "sigmoid"),
    "tanh": (lambda b: b.add("Unary", rows(b), op="Tanh"), "tanh"),
    "silu": (lambda b: b.add("Silu", rows(b)), "silu"),
    "gelu": (lambda b: b.add("Gelu", rows(b)), "gelu"),
    "exp": (lambda b: b.add("Exp", rows(b)), "exp"),
    "abs": (lambda b: b.add("Unary", rows(b), op="Abs"), "abs"),
    "neg": (lambda b: b.add("Neg", rows(b)), "neg"),
}


# Of integers they are the range that the scale of what comes before spans.
ABSORBED = {"relu", "clip"}


@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, precision: Precision) -> None:
    make, opcode = FUNCTIONS[name]
    is_absorbed = precision == "i8" and name in ABSORBED
    assert opcodes(make, precision) == (set() if is_absorbed else {opcode})


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_a_function_joins_the_tile_of_its_producer(precision: Precision) -> None:
    bundle = bundle_of(
        of(lambda b: b.add("Unary", conv(b, image(b), (3, 3, 6, 4)), op="Sigmoid")), precision
    )
    (layer,) = bundle.manifest.layers
    assert computed(bundle) == {"conv2d": 1, "sigmoid": 1}
    assert len(layer.results) == 1


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_a_sum_with_constants_folds_into_the_bias(precision: Precision) -> None:
    def make(b: Builder) -> int:
        y = conv(b, image(b), (3, 3, 6, 4))
        return b.add("BinOp", y, b.constant(values((4,), 5)), op="Add")

    assert opcodes(make, precision) == {"conv2d"}


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_channels_scaled_by_what_is_computed(precision: Precision) -> None:
    def make(b: Builder) -> int:
        x = image(b)
        means = b.add("Mean", x, axes=(1, 2), keepdims=True)
        return b.add("BinOp", x, b.add("Unary", means, op="Sigmoid"), op="Mul")

    assert opcodes(make, precision) == {"avgpool", "sigmoid", "conv2d"}


def test_an_operand_that_repeats_is_stretched_once() -> None:
    def make(b: Builder) -> int:
        x, y = b.input("x", "f32", (64, 8)), b.input("y", "f32", (1, 8))
        return b.add("BinOp", x, y, op="Sub")

    bundle = bundle_of(of(make))
    assert computed(bundle)["pad"] == 1
    assert set(computed(bundle)) == {"sub", "pad"}


def test_parts_of_a_join_are_brought_to_one_scale() -> None:
    def make(b: Builder) -> int:
        x = image(b)
        far = b.constant(values((1, 1, 6, 4), 3, 9.0))
        near = conv(b, x, (3, 3, 6, 4), pads=(1, 1, 1, 1))
        joined = b.add("Concat", near, b.add("Conv", x, far, layout="NHWC"), axis=3)
        return conv(b, joined, (3, 3, 8, 4))

    bundle = bundle_of(of(make), "i8")
    layers = {layer.name: set(layer.tasks) for layer in bundle.manifest.layers}
    *_, last = layers
    # Whatever makes a part of what the last layer reads makes it under the scale that this reads.
    (read,) = {
        task.regions("read")[0].quant.scales  # type: ignore[union-attr]
        for task in tasks(bundle)
        if task.token in layers[last] and task.op == "conv2d"
    }
    made = [
        region.quant.scales
        for task in tasks(bundle)
        if task.token not in layers[last]
        for region in task.regions("write")
        if region.quant is not None
    ]
    assert made.count(read) >= 2
    assert set(computed(bundle)) <= {"conv2d", "gemm", "clamp"}


POOLS: dict[str, tuple[Make, str]] = {
    "max": (
        lambda b: b.add("MaxPool", image(b), layout="NHWC", kernel=(2, 2), strides=(2, 2)),
        "maxpool",
    ),
    "average": (
        lambda b: b.add("AvgPool", image(b), layout="NHWC", kernel=(3, 3), pads=(1, 1, 1, 1)),
        "avgpool",
    ),
    "global": (lambda b: b.add("Mean", image(b), axes=(1, 2), keepdims=True), "avgpool"),
}


@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str, precision: Precision) -> None:
    make, opcode = POOLS[name]
    assert opcodes(make, precision) == {opcode}


@pytest.mark.parametrize("word", ["Sum", "Mean"])
def test_sums_over_an_axis(word: str) -> None:
    found = opcodes(lambda b: b.add(word, rows(b), axes=(1,), keepdims=True))
    assert found <= {"gemm", "avgpool", "mul", "pad", "conv2d"}
    assert found & {"gemm", "avgpool"}


NORMS: dict[str, tuple[Make, str]] = {
    "softmax": (lambda b: b.add("Softmax", rows(b), axis=1), "softmax"),
    "log softmax": (lambda b: b.add("LogSoftmax", rows(b), axis=1), "log_softmax"),
    "layer norm": (
        lambda b: b.add("LayerNorm", rows(b), b.constant(values((8,), 1)), axis=1),
        "layernorm",
    ),
    "over two axes": (lambda b: b.add("LayerNorm", rows(b, 3, 4, 5), axis=1), "layernorm"),
    "rms norm": (lambda b: b.add("RmsNorm", rows(b), axis=1), "rmsnorm"),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    make, opcode = NORMS[name]
    assert opcodes(make) == {opcode}


def test_a_softmax_between_integers_is_an_island_of_floats() -> None:
    def make(b: Builder) -> int:
        y = b.add("Linear", rows(b), b.constant(values((8, 8), 1)))
        y = b.add("Softmax", y, axis=1)
        return b.add("Linear", y, b.constant(values((4, 8), 2)))

    assert opcodes(make, "i8") == {"gemm", "cast", "pad", "mul", "softmax", "add"}


MOVES: dict[str, tuple[Make, set[str]]] = {
    "transpose": (lambda b: b.add("Transpose", rows(b), permutation=(1, 0)), {"transpose"}),
    "reshape": (lambda b: b.add("Reshape", rows(b), new_shape=(8, 12)), set()),
    "slice": (
        lambda b: b.add("Slice", rows(b), starts=(1, 2), ends=(11, 8), steps=(2, 3)),
        set(),
    ),
    "join": (lambda b: b.add("Concat", b.add("Neg", rows(b)), 0, axis=1), {"neg"}),
    "pad": (lambda b: b.add("Pad", b.add("Neg", rows(b)), pads=(1, 0, 2, 3)), {"neg"}),
    "nearest": (
        lambda b: b.add("Resize", image(b), sizes=(1, 16, 24, 6), mode="nearest",
                        coordinate="asymmetric", rounding="floor"),
        set(),
    ),
    "broadcast": (lambda b: b.add("Broadcast", rows(b, 3, 1), shape=(2, 3, 5)), set()),
}  # fmt: skip


@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, precision: Precision) -> None:
    make, expected = MOVES[name]
    assert opcodes(make, precision) == expected


def test_a_reshape_between_layers_is_no_task() -> None:
    def make(b: Builder) -> int:
        y = b.add("ReluNan", rows(b))
        y = b.add("Reshape", y, new_shape=(6, 16))
        return b.add("Linear", y, b.constant(values((4, 16), 1)))

    layers = bundle_of(of(make)).manifest.layers
    assert [layer.name for layer in layers] == ["relunan_0", "linear_1"]


NAMED: dict[str, tuple[Make, str]] = {
    "argmax": (lambda b: b.add("ArgMax", rows(b), axis=1), "core.ArgMax"),
    "top k": (lambda b: b.add("TopKValues", rows(b), k=2, axis=1), "core.TopKValues"),
    "cumulated": (lambda b: b.add("CumSum", rows(b), axis=1), "core.CumSum"),
    "scatter": (
        lambda b: b.add("ScatterElements", rows(b, 3, 4),
                        b.constant(np.zeros((3, 1), np.int64)), b.constant(values((3, 1), 1)),
                        axis=1),
        "core.ScatterElements",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_what_no_unit_has_runs_by_name_and_says_why(name: str) -> None:
    make, opcode = NAMED[name]
    bundle = bundle_of(of(make))
    assert opcode in computed(bundle)
    assert any(layer.escaped for layer in bundle.manifest.layers)


def test_a_recurrent_cell_is_products_and_functions() -> None:
    def make(b: Builder) -> int:
        x, h = b.input("x", "f32", (4, 8)), b.input("h", "f32", (4, 8))
        gates = [
            b.add("BinOp", b.add("MatMul", x, b.constant(values((8, 8), 2 * n, 0.3))),
                  b.add("MatMul", h, b.constant(values((8, 8), 2 * n + 1, 0.3))), op="Add")
            for n in range(2)
        ]  # fmt: skip
        update = b.add("Unary", gates[0], op="Sigmoid")
        fresh = b.add("Unary", gates[1], op="Tanh")
        return b.add("BinOp", h, b.add("BinOp", update, fresh, op="Mul"), op="Add")

    assert opcodes(make) == {"gemm", "add", "sigmoid", "tanh", "mul"}


def bytes_model(of_bytes: bool) -> Module:
    """A product of quantised unsigned bytes, which are inputs and outputs or made inside."""
    b = Builder()
    x = b.input("x_below_200" if of_bytes else "x", "u8" if of_bytes else "f32", (4, 8))
    (scale, zero), (y_scale, y_zero) = (
        (b.constant(np.float32(s)), b.constant(np.uint8(z))) for s, z in ((0.05, 128), (0.1, 100))
    )
    stored = x if of_bytes else b.add("Quantize", x, scale, zero, to="u8")
    weights = b.add(
        "Dequantize", b.constant(np.arange(-20, 20, dtype=np.int8).reshape(5, 8)),
        b.constant(np.float32(0.02)), b.constant(np.int8(0)),
    )  # fmt: skip
    y = b.add("Linear", b.add("Dequantize", stored, scale, zero), weights)
    made = b.add("Quantize", y, y_scale, y_zero, to="u8")
    return b.module(made if of_bytes else b.add("Dequantize", made, y_scale, y_zero))


def require_signed_bytes(module: Module) -> None:
    feeds = feeds_of(module)
    bundle = bundle_of(module, "i8")
    (product,) = [t for t in tasks(bundle) if t.op == "gemm"]
    elems = [o.region.elem for o in product.operands if o.region is not None]
    assert elems == ["i8", "i8", "i32", "i8"]
    found = bundle.run(feeds)["output0"].astype(np.float64)
    assert np.abs(found - nacre.core.evaluate(module, feeds)[0]).max() <= 1


def test_models_of_bytes_are_shifted_to_signed_ones() -> None:
    require_signed_bytes(bytes_model(False))


def test_inputs_of_bytes_are_shifted_to_signed_ones() -> None:
    require_signed_bytes(bytes_model(True))


def test_constants_beyond_f16_are_held_at_the_largest_and_reported() -> None:
    def make(b: Builder) -> int:
        mask = np.array([0.0, -1e9, 0.0, 0.0], np.float32)
        y = b.add("BinOp", b.input("x", "f32", (3, 4)), b.constant(mask), op="Add")
        return b.add("Softmax", y, axis=1)

    bundle = bundle_of(of(make))
    assert any("held at" in note for note in bundle.manifest.notes)
    assert np.isfinite(bundle.run(feeds_of(bundle.source))["output0"]).all()


# Data movement and layout


def test_what_tiles_share_lies_the_same_for_a_narrower_one() -> None:
    """Channels times their own means: those are stretched once, for tiles of 64 columns and 36."""

    def make(b: Builder) -> int:
        x = b.add("ReluNan", b.input("x", "f32", (2, 8, 10, 10)))
        scale = b.add("Unary", b.add("AvgPool", x, kernel=(10, 10)), op="Sigmoid")
        y = b.add("Reshape", b.add("BinOp", x, scale, op="Mul"), new_shape=(16, 100))
        return b.add("Linear", y, b.constant(values((5, 100), 1, 0.1)))

    bundle = bundle_of(of(make))
    assert bundle.validate(feeds_of(bundle.source)).ok


def test_tiles_of_columns_are_copied_with_strides() -> None:
    bundle = bundle_of(of(lambda b: b.add("ReluNan", b.add(
        "Slice", b.input("x", "f32", (1, 9, 9, 16)), starts=(0, 0, 2, 4), ends=(1, 9, 7, 12),
        steps=(1, 1, 1, 1)))))  # fmt: skip
    strided = [t for t in tasks(bundle) if t.op == "transfer" and t.operands[-1].region]
    sides = [[o.region for o in t.operands if o.region is not None] for t in strided]
    assert any(any(r.strides for r in pair) and all(r.elem for r in pair) for pair in sides)


def test_a_part_of_a_tensor_in_l1_is_read_in_its_place() -> None:
    bundle = bundle_of(branches_model())
    in_l1 = [
        o.region
        for t in tasks(bundle)
        if t.op not in COPIES
        for o in t.operands
        if o.region is not None and o.region.strides
    ]
    assert in_l1  # tasks on tiles that lie with gaps inside of a larger tensor


def test_weights_lie_in_the_order_in_which_tiles_use_them() -> None:
    bundle = bundle_of(mobile(size=8, blocks=2))
    starts = [
        region.offset
        for t in tasks(bundle)
        for region in t.regions("read")
        if region.buffer is not None and region.buffer.name == "weights"
    ]
    assert starts == sorted(starts)  # type: ignore[type-var]
    assert len(starts) == len(set(starts)) > 5


def test_channels_first_are_turned_once_at_each_end() -> None:
    b = Builder()
    x = b.input("x", "f32", (1, 3, 12, 12))
    for cin, cout in ((3, 8), (8, 8), (8, 4)):
        weights = b.constant(values((cout, cin, 3, 3), cin, 0.2))
        x = b.add("ReluNan", b.add("Conv", x, weights, pads=(1, 1, 1, 1)))
    layers = bundle_of(b.module(x)).manifest.layers
    moves = {"Transpose", "Conv"}
    kinds = [o.opcode for layer in layers for o in layer.operations if o.opcode in moves]
    assert kinds == ["Transpose", "Conv", "Conv", "Conv", "Transpose"]


def test_a_table_stays_where_it_is() -> None:
    b = Builder()
    table = b.input("i_below_50", "i64", (7,))
    module = b.module(b.add("GatherAxis", b.constant(values((50, 16), 1)), table, axis=0))
    bundle = bundle_of(module)
    (task,) = [t for t in tasks(bundle) if t.op == "gather"]
    region = task.operands[0].region
    assert region is not None
    assert region.buffer is not None
    assert region.buffer.level == "DDR"
    assert bundle.manifest.inputs[0].elem == "i32"


def test_a_cache_is_state_that_rows_are_written_into() -> None:
    b = Builder()
    x, at = b.input("x", "f32", (1, 8)), b.input("at_below_4", "i32", (1,))
    cache = b.input("cache", "f32", (4, 8))
    written = b.add("ScatterRows", cache, at, x)
    b.state("cache", written, b.constant(np.zeros((4, 8), np.float32)))
    module = b.module(b.add("Softmax", written, axis=1))
    bundle = nacre.compile(module, "npm4k")
    assert "core.ScatterRows" in computed(bundle)
    session, reference = bundle.session(), module.session()
    for place in (2, 0, 2):
        feeds = {"x": values((1, 8), place), "at_below_4": np.array([place], np.int32)}
        found, expected = session.run(feeds)["output0"], reference.run(feeds)[0]
        assert np.abs(found - expected).max() < 1e-2


@pytest.mark.parametrize(("dtype", "elem"), [("i64", "i32"), ("f64", "f16"), ("bool", "u8")])
def test_wide_types_are_cast_by_the_host(dtype: str, elem: str) -> None:
    b = Builder()
    x = b.input("x_below_2", dtype, (3, 4))
    module = b.module(b.add("Reshape", x, new_shape=(4, 3)))
    given = {"x_below_2": np.eye(3, 4).astype(module.inputs[0].type.element.dtype)}
    bundle = bundle_of(module, feeds=given)
    (port,) = bundle.manifest.inputs
    assert (port.dtype, port.elem.replace("bool", "u8")) == (dtype, elem)
    found = bundle.run(given)["output0"]
    assert found.dtype == given["x_below_2"].dtype
    assert np.array_equal(found, given["x_below_2"].reshape(4, 3))


# Loops and borders


def test_channels_are_written_out_and_rows_are_a_loop() -> None:
    module = of(lambda b: conv(b, image(b, 1, 64, 16, 24), (3, 3, 24, 80)))
    bundle = bundle_of(module, "i8", TINY)
    loops = [t.loops for t in tasks(bundle) if t.op == "conv2d"]
    assert any(loops)
    scales = {
        o.region.quant.scales
        for t in tasks(bundle)
        if t.op == "conv2d"
        for o in t.operands
        if o.region is not None and o.region.quant is not None
        if o.region.quant.form == "per_channel"
    }
    assert scales  # literals: each block has its own


def test_tiles_at_the_border_are_written_out() -> None:
    module = of(lambda b: conv(b, image(b, 1, 60, 16, 8), (3, 3, 8, 8), pads=(1, 1, 1, 1)))
    bundle = bundle_of(module, "f16", TINY)
    products = [t for t in tasks(bundle) if t.op == "conv2d"]
    pads: set[tuple[bool, Any]] = {(bool(t.loops), t.attributes["pads"]) for t in products}
    assert (False, (1, 1, 0, 1)) in pads
    assert (False, (0, 1, 1, 1)) in pads
    assert all(top == bottom == 0 for in_loop, (top, _, bottom, _) in pads if in_loop)


def test_the_weights_of_the_next_layer_come_before_the_loop_of_this_one() -> None:
    b = Builder()
    x = conv(b, image(b, 1, 64, 16, 8), (3, 3, 8, 16))
    program = bundle_of(b.module(conv(b, x, (3, 3, 16, 8)))).program
    first = program.index("conv_0_c")
    assert program.index("conv_1_w0 =") < first
