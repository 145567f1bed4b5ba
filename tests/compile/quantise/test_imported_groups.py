"""Weights that models bring in groups: the integers of the model, beside onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.grouped_weights import add_grouped_weights, grouped_weights_of
from nacre.core.module import Module
from tests.compile.models import Array, inputs_of, values

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

DEPTH, COLUMNS, BLOCK = 128, 64, 32


def nbits_model(path: Path, rows: int, bits: int, *, has_zeros: bool) -> Array:
    """A `MatMulNBits` in a file; its packed integers."""
    random = np.random.default_rng(bits)
    groups = DEPTH // BLOCK
    packed = random.integers(0, 256, (COLUMNS, groups, BLOCK * bits // 8)).astype(np.uint8)
    scales = random.uniform(0.01, 0.03, COLUMNS * groups).astype(np.float32)
    given = {"q": packed, "s": scales}
    if has_zeros:
        given["z"] = random.integers(0, 256, COLUMNS * groups * bits // 8).astype(np.uint8)
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", *given], ["y"], domain="com.microsoft",
        K=DEPTH, N=COLUMNS, bits=bits, block_size=BLOCK,
    )  # fmt: skip
    ends = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [rows, size])
        for name, size in (("x", DEPTH), ("y", COLUMNS))
    )
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in given.items()]
    x, y = ends
    graph = onnx.helper.make_graph([node], "g", [x], [y], arrays)
    domains = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=domains)
    model.ir_version = 10
    onnx.save(model, path)
    return packed


def integers_of(module: Module) -> tuple[Array, str]:
    """The integers that a legal module has for the weights of its product, and their type."""
    (product,) = (op for op in module.operations if op.opcode == "Linear")
    grouped = grouped_weights_of(module, product.operands[1])
    assert grouped is not None
    stored = module.by_id[grouped.integers]
    array = constant_array(stored)
    assert array is not None
    return array, stored.type.dtype


@pytest.mark.parametrize(
    ("rows", "bits", "has_zeros"), [(1, 4, False), (1, 4, True), (6, 4, True), (1, 8, True)]
)
def test_matmul_of_few_bits_keeps_its_integers(
    tmp_path: Path, rows: int, bits: int, has_zeros: bool
) -> None:
    path = tmp_path / "model.onnx"
    packed = nbits_model(path, rows, bits, has_zeros=has_zeros)
    x = values((rows, DEPTH), 5)
    (expected,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
    bundle = nacre.compile(path, "npm4k", "w4f16")
    found = bundle.run({"x": x})["y"]
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()
    assert bundle.validate({"x": x}).first_difference is None
    integers, dtype = integers_of(bundle.legal)
    assert dtype == f"i{bits}"
    each = np.stack([packed & 15, packed >> 4], axis=-1) if bits == 4 else packed
    wanted = each.reshape(COLUMNS, DEPTH).astype(np.int16) - (1 << (bits - 1))
    assert np.array_equal(integers, wanted)
    groups = COLUMNS * DEPTH // BLOCK
    assert len(bundle.weights) <= COLUMNS * DEPTH * bits // 8 + groups * 3 + 256


@pytest.mark.parametrize("is_turned", [False, True])
def test_blocks_along_either_axis_keep_their_integers(is_turned: bool) -> None:
    builder, random = Builder("nacre-1"), np.random.default_rng(2)
    x = builder.input("x", "f32", (3, DEPTH))
    integers = random.integers(-128, 128, (COLUMNS, DEPTH)).astype(np.int8)
    scales = random.uniform(1e-4, 2e-4, (COLUMNS, DEPTH // BLOCK)).astype(np.float32)
    stored = [np.ascontiguousarray(a.T) if is_turned else a for a in (integers, scales)]
    given = [builder.constant(array) for array in stored]
    weights = builder.add("Dequantize", *given, axis=int(not is_turned),
                          block=BLOCK)  # fmt: skip
    module = builder.module(builder.add("MatMul" if is_turned else "Linear", x, weights))
    bundle = nacre.compile(module, "npm4k", "w8f16")
    assert np.array_equal(integers_of(bundle.legal)[0], integers)
    validation = bundle.validate(inputs_of(module))
    assert validation.first_difference is None
    assert min(validation.sqnr_by_output.values()) > 55


def test_weights_that_a_rewrite_has_changed_are_rounded_anew() -> None:
    builder, random = Builder("nacre-1"), np.random.default_rng(2)
    x = builder.input("x", "f32", (3, DEPTH))
    integers = random.integers(-8, 8, (COLUMNS, DEPTH)).astype(np.int8)
    scales = np.full((COLUMNS, DEPTH // BLOCK), 0.01, np.float32)
    given = [builder.constant(array) for array in (integers, scales)]
    weights = builder.add("Dequantize", *given, axis=1,
                          block=BLOCK)  # fmt: skip
    product = builder.add("Linear", x, weights)
    factors = builder.constant(random.uniform(1, 2, COLUMNS).astype(np.float32))
    module = builder.module(builder.add("BinOp", product, factors, op="Mul"))
    bundle = nacre.compile(module, "npm4k", "w4f16", group_size=32)
    assert bundle.validate(inputs_of(module)).ok
    assert integers_of(bundle.legal)[1] == "i4"


@pytest.mark.parametrize("dtype", ["u4", "i4"])
def test_minimums_of_groups_stay_minimums(dtype: str) -> None:
    """Blocks of llama.cpp's Q4_1: d * q + m."""
    builder, random = Builder("nacre-1"), np.random.default_rng(4)
    x = builder.input("x", "f32", (2, DEPTH))
    first = 0 if dtype == "u4" else -8
    integers = random.integers(first, first + 16, (COLUMNS, DEPTH)).astype(np.int8)
    scales, least = (
        random.uniform(0.01, 0.02, (COLUMNS, DEPTH // BLOCK)).astype(np.float32) * factor
        for factor in (1, -8)
    )
    weights = add_grouped_weights(
        builder, builder.constant(integers, dtype), builder.constant(scales), BLOCK,
        minimums=builder.constant(least[..., None]), shape=(COLUMNS, DEPTH),
    )  # fmt: skip
    module = builder.module(builder.add("Linear", x, weights))
    real = integers * scales.repeat(BLOCK, axis=1) + least.repeat(BLOCK, axis=1)
    feeds = inputs_of(module)
    bundle = nacre.compile(module, "npm4k", "w4f16")
    validation = bundle.validate(feeds)
    assert validation.first_difference is None
    found, dtype_found = integers_of(bundle.legal)
    assert dtype_found == "i4"
    assert np.array_equal(found, integers - first - 8)
    (bound,) = nacre.estimate(module, "npm4k", "w4f16").bounds.layers  # type: ignore[union-attr]
    assert bound.elements == 0
    expected = feeds["x"].astype(np.float64) @ real.T
    made = bundle.run(feeds)["output0"]
    assert np.abs(made - expected).max() < 3e-3 * np.abs(expected).max()
