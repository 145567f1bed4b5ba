"""Weights of quantised models stay bytes: in the module, in a session, and with the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.core.evaluation.evaluate import CoreSession, evaluate, evaluate_with_peak
from nacre.core.module import Module
from nacre.core.passes.inference import optimise
from tests.core.onnx.single_node import MICROSOFT, Array, NodeModel, rng

pytestmark = pytest.mark.sampled(2)  # together they take long

_SEEDS = st.integers(0, 2**32 - 1)
_BYTES = st.sampled_from([np.int8, np.uint8])
_DEPTH, _WIDTH = 72, 40  # more elements than are centred ahead of time


def _integers(seed: int, dtype: type, *shape: int) -> Array:
    ends = np.iinfo(dtype)
    return rng(seed).integers(ends.min, ends.max + 1, shape).astype(dtype)


def _constant_bytes(module: Module) -> int:
    found = [op for op in module.operations if op.opcode == "ConstTensor"]
    return sum(op.attributes["data"].array.nbytes for op in found)


def _expect_in_every_way(model: NodeModel, wanted: Array) -> None:
    """The module, the optimised one and sums in order give the integers that are wanted."""
    module = model.module()
    for made, ordered in ((module, False), (optimise(module), False), (module, True)):
        (found,) = evaluate(made, model.feeds, ordered=ordered)
        assert np.array_equal(found, wanted)


@given(_SEEDS, _BYTES, _BYTES, st.sampled_from(["none", "one", "each"]), st.integers(1, 5))
def test_matmul_with_zero_points(seed: int, a: type, b: type, zeros: str, rows: int) -> None:
    x, w = _integers(seed, a, rows, _DEPTH), _integers(seed + 1, b, _DEPTH, _WIDTH)
    x_zero = _integers(seed + 2, a)
    w_zero = {"none": None, "one": _integers(seed + 3, b), "each": _integers(seed + 3, b, _WIDTH)}
    zero = w_zero[zeros]
    model = NodeModel("MatMulInteger", [x, w, x_zero, zero], known=(1, 2, 3))
    wide = w.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))
    wanted = (x.astype(np.int64) - x_zero.astype(np.int64)) @ wide
    _expect_in_every_way(model, wanted)
    assert _constant_bytes(model.module()) < w.nbytes + 4 * _WIDTH + 64


@given(_SEEDS, _BYTES, st.sampled_from([300, 600, 1200]), st.sampled_from([1, 16, 255]))
def test_long_sums_are_exact(seed: int, dtype: type, depth: int, reach: int) -> None:
    """Zero points are taken from weights or from sums, whichever stays exact."""
    x = np.minimum(_integers(seed, np.uint8, 3, depth), reach).astype(np.uint8)
    w, zero = _integers(seed + 1, dtype, depth, 8), _integers(seed + 2, dtype)
    model = NodeModel("MatMulInteger", [x, w, None, zero], known=(1, 3))
    wanted = x.astype(np.int64) @ (w.astype(np.int64) - int(zero))
    _expect_in_every_way(model, wanted)


@pytest.mark.parametrize("x", [-(1 << 31), (1 << 31) - 1, (1 << 24) + 1])
@pytest.mark.parametrize("zero", [7, 0])
def test_weights_that_are_all_their_zero_point(x: int, zero: int) -> None:
    from nacre.core.builder import Builder

    builder = Builder()
    given = builder.input("x", "i32", (2, _DEPTH))
    wide = builder.add("Cast", builder.constant(np.full((3, _DEPTH), 7, np.uint8)), to="i32")
    moved = builder.add("BinOp", wide, builder.constant(np.array(zero, np.int32)), op="Sub")
    module = builder.module(builder.add("Linear", given, moved))
    (found,) = evaluate(module, {"x": np.full((2, _DEPTH), x, np.int32)})
    wanted = ((7 - zero) * x * _DEPTH + 2**31) % 2**32 - 2**31
    assert found.tolist() == [[wanted] * 3] * 2


@given(_SEEDS, st.sampled_from([1, 2, 16]), st.sampled_from([1, 3]), st.booleans())
def test_convolutions_with_zero_points(seed: int, groups: int, side: int, each: bool) -> None:
    channels, outputs, size = 16, 128, 4
    x = _integers(seed, np.uint8, 1, channels, size, size)
    w = _integers(seed + 1, np.uint8, outputs, channels // groups, side, side)
    x_zero = _integers(seed + 2, np.uint8)
    zero = _integers(seed + 3, np.uint8, *([outputs] if each else []))
    pad = side // 2
    model = NodeModel("ConvInteger", [x, w, x_zero, zero], known=(1, 2, 3), opset=10,
                      group=groups, kernel_shape=[side, side], pads=[pad] * 4)  # fmt: skip
    values = np.pad(x.astype(np.int64) - int(x_zero), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    weights = w.astype(np.int64) - zero.astype(np.int64).reshape(-1, 1, 1, 1)
    wanted = np.zeros((1, outputs, size, size), np.int64)
    for o in range(outputs):
        first = o // (outputs // groups) * (channels // groups)
        for c, dy, dx in np.ndindex(*weights.shape[1:]):
            part = values[0, first + c, dy : dy + size, dx : dx + size]
            wanted[0, o] += weights[o, c, dy, dx] * part
    _expect_in_every_way(model, wanted)


@given(_SEEDS, _BYTES)
def test_an_lstm_holds_its_weights_once(seed: int, dtype: type) -> None:
    steps, batch, inputs, hidden = 6, 1, 24, 20
    random = rng(seed)
    low = -64 if dtype is np.int8 else 0
    w: Array = random.integers(low, low + 128, (1, inputs, 4 * hidden)).astype(dtype)
    r: Array = random.integers(low, low + 128, (1, hidden, 4 * hidden)).astype(dtype)
    x = random.normal(size=(steps, batch, inputs)).astype(np.float32)
    scale = np.array([0.01], np.float32)
    zero: Array = np.array([low + 64], dtype)
    bias = random.normal(size=(1, 8 * hidden)).astype(np.float32)
    operands = [x, w, r, bias, None, None, None, None, scale, zero, scale, zero]
    model = NodeModel("DynamicQuantizeLSTM", operands, domain=MICROSOFT, known=range(1, 12),
                      outputs=("y",), hidden_size=hidden)  # fmt: skip
    module = model.module()
    held = [op for op in module.operations if op.type.dtype in ("i8", "u8")]
    large = [op for op in held if op.opcode == "ConstTensor" and np.prod(op.type.shape) > 64]
    assert len(large) == 2
    for found, other in zip(model.by_module(), model.by_onnxruntime(), strict=True):
        # What lies halfway between two steps of a scale of the run may go to either.
        np.testing.assert_allclose(found, other, rtol=1e-4, atol=2e-3)


def test_what_else_uses_wide_weights_is_given_them() -> None:
    """An output, or an operation that prepares nothing, takes the values and not the bytes."""
    from nacre.core.builder import Builder

    w = _integers(1, np.uint8, _WIDTH, _DEPTH)
    builder = Builder()
    x = builder.input("x", "i32", (2, _DEPTH))
    wide = builder.add("Cast", builder.constant(w, "u8"), to="i32")
    zero = builder.constant(np.array(119, np.int32))
    moved = builder.add("BinOp", wide, zero, op="Sub")
    product = builder.add("Linear", x, moved)
    module = builder.module(product, builder.add("Neg", moved), wide)
    given = _integers(2, np.int8, 2, _DEPTH).astype(np.int32)
    found = evaluate(module, {"x": given})
    values = w.astype(np.int32) - 119
    for own, wanted in zip(found, (given @ values.T, -values, w), strict=True):
        assert np.array_equal(own, wanted)


@pytest.mark.parametrize("zero", [1 << 20, -(1 << 31), 3])
def test_a_far_zero_point_wraps_as_it_would(zero: int) -> None:
    from nacre.core.builder import Builder

    w, x = _integers(1, np.int8, _WIDTH, _DEPTH), _integers(2, np.int8, 3, _DEPTH)
    builder = Builder()
    given = builder.input("x", "i32", x.shape)
    wide = builder.add("Cast", builder.constant(w, "i8"), to="i32")
    moved = builder.add("BinOp", wide, builder.constant(np.array(zero, np.int32)), op="Sub")
    module = builder.module(builder.add("Linear", given, moved))
    (found,) = evaluate(module, {"x": x.astype(np.int32)})
    exact = x.astype(object) @ (w.astype(object) - zero).T
    wanted = [[(int(v) + 2**31) % 2**32 - 2**31 for v in row] for row in exact]
    assert found.tolist() == wanted


def test_the_peak_does_not_count_what_stays_narrow() -> None:
    w = _integers(3, np.int8, _DEPTH, _WIDTH)
    model = NodeModel("MatMulInteger", [_integers(4, np.int8, 1, _DEPTH), w], known=(1,))
    module = model.module()
    peak = evaluate_with_peak(module, model.feeds).peak_bytes
    assert peak < 2 * w.nbytes
    assert CoreSession(module).workspace_bytes < w.nbytes
