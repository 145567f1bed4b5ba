"""`gemm` and `matmul` against loops over Python numbers, and against onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Array, Call, TensorType, Work
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.quantization import per_tensor
from nacre.kernels.products.linear import LINEAR
from tests.kernels.oracle_linear import (
    INTEGERS,
    PRIMITIVES,
    along,
    exact_sums,
    first_outside_i32,
    matmul_terms,
    onnx_run,
    quantizations,
    random_values,
    run,
    scale_at,
    stopped,
    tensor,
    wrapped_i32,
    zero_at,
)

sizes = st.integers(1, 5)
elements = st.sampled_from(INTEGERS)
batches = st.sampled_from(
    [((), ()), ((2,), ()), ((), (2,)), ((2,), (2,)), ((2, 1), (3,)), ((1,), (1, 1)), ((3,), (1,))]
)


@st.composite
def operands(draw: st.DrawFn) -> tuple[TensorType, TensorType, Dims]:
    """Two integer operands, with or without zero points, and the shape of Y."""
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    batch_a, batch_b = draw(batches)
    a = tensor(draw(elements), (*batch_a, m, k))
    b = tensor(draw(elements), (*batch_b, k, n))
    if draw(st.booleans()):
        a = tensor(a.elem.name, a.shape, draw(quantizations(a, range(len(a.shape) - 1))))
    if draw(st.booleans()):
        axes = [i for i in range(len(b.shape)) if i != len(b.shape) - 2]
        b = tensor(b.elem.name, b.shape, draw(quantizations(b, axes)))
    return a, b, (*np.broadcast_shapes(batch_a, batch_b), m, n)


@given(operands(), st.sampled_from(INTEGERS), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_accumulators_are_exact_wrap_and_saturate(
    types: tuple[TensorType, TensorType, Dims], out: str, narrow: bool, biased: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a_type, b_type, shape = types
    a = a_type, random_values(rng, a_type, narrow)
    b = b_type, random_values(rng, b_type, narrow)
    c_type = tensor("i32", shape[-1:])
    c = (c_type, random_values(rng, c_type)) if biased else None
    sums = exact_sums(a, b, shape, matmul_terms(a_type.shape, b_type.shape))
    if c is not None:
        sums = sums + c[1].astype(object)
    y_type = tensor(out, shape)
    y, fault = run("gemm", [a, b, c], y_type)
    expected = wrapped_i32(sums)
    for place in np.ndindex(*shape):
        assert int(y[place]) == stopped(int(expected[place]), y_type)
    where = first_outside_i32(sums)
    assert (fault is None) == (where is None)
    if fault is not None:
        assert (fault.kind, fault.position, fault.is_fatal) == ("wrap", where, False)


@given(operands(), st.sampled_from(INTEGERS), st.booleans(), st.integers(0, 2**32), st.data())
def test_a_quantised_output_is_scaled_in_f32_and_rounded_to_even(
    types: tuple[TensorType, TensorType, Dims],
    out: str,
    narrow: bool,
    seed: int,
    data: st.DataObject,
) -> None:
    rng = np.random.default_rng(seed)
    a_type, b_type, shape = types
    if a_type.quant is None:
        a_type = tensor(a_type.elem.name, a_type.shape, per_tensor(0.05, 3))
    if b_type.quant is None:
        b_type = tensor(b_type.elem.name, b_type.shape, per_tensor(0.1))
    plain = tensor(out, shape)
    y_type = tensor(out, shape, data.draw(quantizations(plain, range(len(shape)))))
    a = a_type, random_values(rng, a_type, narrow)
    b = b_type, random_values(rng, b_type, narrow)
    c_type = tensor("i32", shape[-2:])
    c = c_type, random_values(rng, c_type, narrow)
    terms = matmul_terms(a_type.shape, b_type.shape)
    sums = wrapped_i32(exact_sums(a, b, shape, terms) + c[1].astype(object))
    y, _ = run("gemm", [a, b, c], y_type)
    for place in np.ndindex(*shape):
        in_a, in_b = next(terms(place))
        product = scale_at(a_type, in_a) * scale_at(b_type, in_b)
        scale = product / scale_at(y_type, place)
        steps = np.rint(np.float32(sums[place]) * scale)
        assert int(y[place]) == stopped(int(steps) + zero_at(y_type, place), y_type)


def grouped_reference(
    a: tuple[TensorType, Array], b: tuple[TensorType, Array], c: Array, y_type: TensorType
) -> Array:
    """Decision 106 word for word, an element at a time."""
    assert b[0].quant is not None
    size = b[0].quant.group_size
    y = np.zeros(y_type.shape, np.int64)
    a_zero = 0 if a[0].quant is None else int(a[0].quant.zero_point[0])
    a_scale = np.float32(1) if a[0].quant is None else a[0].quant.scale[0]
    for m, n in np.ndindex(*y_type.shape):
        total = np.float32(0)
        for group, scale in enumerate(b[0].quant.scale):
            ks = range(group * size, min((group + 1) * size, a[0].shape[1]))
            zero = int(b[0].quant.zero_point[group])
            acc = sum((int(a[1][m, k]) - a_zero) * (int(b[1][k, n]) - zero) for k in ks)
            total = total + np.float32(acc) * (a_scale * scale)
        total = total + np.float32(c[n]) * a_scale
        if y_type.quant is None:
            y[m, n] = stopped(int(np.rint(total)), y_type)
        else:
            steps = int(np.rint(total / y_type.quant.scale[0]))
            y[m, n] = stopped(steps + int(y_type.quant.zero_point[0]), y_type)
    return y


@given(
    st.integers(1, 20),
    st.integers(1, 9),
    st.sampled_from(["i4", "i8"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_groups_along_the_sum_are_scaled_one_by_one(
    depth: int, group: int, elem: str, has_scale: bool, has_output_scale: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    count = -(-depth // group)
    b_type = tensor(
        elem,
        (depth, 4),
        along(
            0, rng.uniform(0.001, 0.1, count).tolist(), rng.integers(-8, 8, count).tolist(), group
        ),
    )
    a_type = tensor("i8", (3, depth), per_tensor(0.02, -5) if has_scale else None)
    y_type = tensor("i8", (3, 4), per_tensor(0.07, 9) if has_output_scale else None)
    a, b = (a_type, random_values(rng, a_type)), (b_type, random_values(rng, b_type))
    c = rng.integers(-1000, 1000, 4).astype(np.int32)
    y, fault = run("gemm", [a, b, (tensor("i32", (4,)), c)], y_type)
    assert fault is None
    assert np.array_equal(y, grouped_reference(a, b, c, y_type))


def test_groups_of_activations_along_the_sum_are_scaled_one_by_one_too() -> None:
    a_type = tensor("i8", (1, 4), along(1, [0.5, 2.0], [1, 0], group_size=2))
    b_type = tensor("i8", (4, 1))
    a = a_type, np.array([[3, 5, 7, 9]], np.int8)
    b = b_type, np.ones((4, 1), np.int8)
    y, _ = run("matmul", [a, b], tensor("i32", (1, 1)))
    assert y.tolist() == [[(2 + 4) * 0.5 + (7 + 9) * 2.0]]


quantised_cases = st.tuples(
    st.sampled_from([np.int8, np.uint8]), st.booleans(), st.booleans(), st.integers(0, 2**32)
)


@given(quantised_cases, st.integers(1, 70), st.integers(1, 9), st.integers(1, 9))
def test_quantised_products_are_those_of_onnxruntime(
    case: tuple[Any, bool, bool, int], depth: int, rows: int, columns: int
) -> None:
    dtype, per_channel, batched, seed = case
    rng = np.random.default_rng(seed)
    name = "u8" if dtype is np.uint8 else "i8"
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, ((2,) if batched else ()) + (rows, depth), dtype, True)
    # Without VNNI onnxruntime adds pairs of u8 * i8 in 16 bits: signed weights of 7 bits fit.
    b_ends = (0, 255) if name == "u8" else (-64, 63)
    b = rng.integers(*b_ends, (depth, columns), dtype, True)
    count = columns if per_channel else 1
    scales = rng.uniform(0.001, 0.05, count).astype(np.float32)
    # onnxruntime takes one weight zero point for all channels.
    zeros = np.full(count, rng.integers(info.min, info.max, dtype=dtype), dtype)
    a_zero, y_zero = rng.integers(info.min, info.max, 2, dtype)
    a_scale, y_scale = np.float32(rng.uniform(0.001, 0.1)), np.float32(rng.uniform(0.01, 0.3))
    b_quant = (
        along(1, scales.tolist(), zeros.tolist())
        if per_channel
        else per_tensor(float(scales[0]), int(zeros[0]))
    )
    y, fault = run(
        "matmul",
        [
            (tensor(name, a.shape, per_tensor(float(a_scale), int(a_zero))), a),
            (tensor(name, b.shape, b_quant), b),
        ],
        tensor(name, (*a.shape[:-1], columns), per_tensor(float(y_scale), int(y_zero))),
    )
    inputs = {
        "a": a,
        "as": np.array(a_scale),
        "az": np.array(a_zero),
        "b": b,
        "bs": scales if per_channel else scales.reshape(()),
        "bz": zeros if per_channel else zeros.reshape(()),
        "ys": np.array(y_scale),
        "yz": np.array(y_zero),
    }
    assert fault is None
    assert np.array_equal(y, onnx_run("QLinearMatMul", inputs, dtype))


@pytest.mark.parametrize("elem", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("ordered", [False, True])
def test_float_sums_are_kept_in_f32_and_rounded_once(elem: str, ordered: bool) -> None:
    rng = np.random.default_rng(1)
    a_type, b_type, c_type = tensor(elem, (2, 9, 200)), tensor(elem, (200, 7)), tensor(elem, (7,))
    a, b, c = (random_values(rng, t) for t in (a_type, b_type, c_type))
    y, fault = run(
        "gemm", [(a_type, a), (b_type, b), (c_type, c)], tensor(elem, (2, 9, 7)), ordered=ordered
    )
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b + c.astype(np.float64)
    slack = 201 * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b) + np.abs(c.astype(np.float64)))
    ulp = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}[elem] * np.abs(exact)
    assert fault is None
    assert np.all(np.abs(y.astype(np.float64) - exact) <= slack + ulp * 1.01)


def test_f32_products_are_near_those_of_onnxruntime() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((3, 17, 300), (300, 21)))
    y, _ = run(
        "matmul",
        [(tensor("f32", a.shape), a), (tensor("f32", b.shape), b)],
        tensor("f32", (3, 17, 21)),
    )
    slack = 2 * 300 * 2.0**-24 * (np.abs(a) @ np.abs(b))
    assert np.all(np.abs(y - onnx_run("MatMul", {"a": a, "b": b}, np.float32)) <= slack)


def test_ordered_sums_differ_from_no_platform_by_a_bit() -> None:
    a = np.array([[1e8, 1.0, -1e8, 1.0]], np.float32)
    y, _ = run(
        "gemm",
        [(tensor("f32", (1, 4)), a), (tensor("f32", (4, 1)), np.ones((4, 1), np.float32))],
        tensor("f32", (1, 1)),
        ordered=True,
    )
    assert y.tolist() == [[1.0]]


@pytest.mark.parametrize("ordered", [False, True])
def test_nan_and_infinities_pass_without_a_warning(ordered: bool) -> None:
    a = np.array([[np.inf, 1], [np.nan, 1], [60000, 60000], [-np.inf, 0]], np.float16)
    b = np.array([[0.0, 2], [1, 1]], np.float16)
    y, fault = run(
        "gemm",
        [(tensor("f16", (4, 2)), a), (tensor("f16", (2, 2)), b)],
        tensor("f16", (4, 2)),
        ordered=ordered,
    )
    expected = np.array(
        [[np.nan, np.inf], [np.nan, np.nan], [60000, np.inf], [np.nan, -np.inf]], np.float16
    )
    assert fault is None
    assert np.array_equal(y, expected, equal_nan=True)
    if ordered:
        assert {v.tobytes() for v in y[np.isnan(y)]} == {np.float16(np.nan).tobytes()}


def test_bfloat16_ties_go_to_even() -> None:
    a = np.array([[1, 2.0**-8], [1, 3 * 2.0**-8]], ml_dtypes.bfloat16)
    y, _ = run(
        "matmul",
        [
            (tensor("bf16", (2, 2)), a),
            (tensor("bf16", (2, 1)), np.ones((2, 1), ml_dtypes.bfloat16)),
        ],
        tensor("bf16", (2, 1)),
    )
    assert y.astype(np.float64).tolist() == [[1.0], [1 + 2.0**-6]]


@pytest.mark.parametrize(
    ("steps", "expected"), [(5, 2), (7, 4), (-5, -2), (900, 127), (-900, -128)]
)
def test_halves_go_to_even_and_ends_saturate(steps: int, expected: int) -> None:
    one = per_tensor(1.0)
    y, _ = run(
        "gemm",
        [
            (tensor("i16", (1, 1), one), np.array([[steps]], np.int16)),
            (tensor("i8", (1, 1), per_tensor(0.5)), np.ones((1, 1), np.int8)),
        ],
        tensor("i8", (1, 1), one),
    )
    assert y.tolist() == [[expected]]


def test_a_bias_alone_may_wrap_the_accumulator() -> None:
    ones = np.ones((2, 2), np.int8)
    c = np.array([0, 2**31 - 2], np.int32)
    y, fault = run(
        "gemm",
        [(tensor("i8", (2, 2)), ones), (tensor("i8", (2, 2)), ones), (tensor("i32", (2,)), c)],
        tensor("i32", (2, 2)),
    )
    assert y.tolist() == [[2, -(2**31)], [2, -(2**31)]]
    assert fault is not None
    assert fault.position == (0, 1)
    assert fault.message == "the i32 accumulator wrapped to -2147483648, and 1 more"


def test_a_sum_that_comes_round_2_to_the_64_has_wrapped_too() -> None:
    a = np.full((1, 4), -(2**31), np.int32)
    b = np.full((4, 1), -(2**31), np.int32)
    y, fault = run(
        "matmul", [(tensor("i32", a.shape), a), (tensor("i32", b.shape), b)], tensor("i32", (1, 1))
    )
    assert y.tolist() == [[0]]  # the sum is 2^64, which int64 holds as 0
    assert fault is not None
    assert fault.position == (0, 0)


def test_a_large_bias_is_added_before_the_sum_is_rounded_to_f32() -> None:
    one = per_tensor(1.0)
    c = np.array([2**24 + 1], np.int32)
    y, _ = run(
        "gemm",
        [
            (tensor("i8", (1, 1), one), np.array([[1]], np.int8)),
            (tensor("i8", (1, 1), one), np.array([[1]], np.int8)),
            (tensor("i32", (1,)), c),
        ],
        tensor("i32", (1, 1), one),
    )
    assert y.tolist() == [[2**24 + 2]]


def test_a_scale_beyond_f32_saturates_and_leaves_zero_alone() -> None:
    huge = per_tensor(3e38)
    a = np.array([[0], [1], [-1]], np.int8)
    y, _ = run(
        "gemm",
        [(tensor("i8", (3, 1), huge), a), (tensor("i8", (1, 1), huge), np.ones((1, 1), np.int8))],
        tensor("i8", (3, 1), per_tensor(1.0, 7)),
    )
    assert y.tolist() == [[7], [127], [-128]]


def test_integers_beside_floats_are_the_reals_that_they_stand_for() -> None:
    w = np.array([[1], [3]], np.int8)
    y, _ = run(
        "gemm",
        [
            (tensor("f32", (1, 2)), np.array([[10.0, 100.0]], np.float32)),
            (tensor("i8", (2, 1), per_tensor(0.5, 1)), w),
        ],
        tensor("f32", (1, 1)),
    )
    assert y.tolist() == [[100.0]]


def test_strided_operands_and_outputs_are_as_good_as_dense_ones() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-128, 128, (6, 16)).astype(np.int8)[::2, ::-2]
    b = rng.integers(-128, 128, (5, 8)).astype(np.int8).T
    target = np.zeros((3, 10), np.int32)
    types = tensor("i8", a.shape), tensor("i8", b.shape)
    call = Call(types, (tensor("i32", (3, 5)),), {})
    assert PRIMITIVES["matmul"].bind(call)([a, b], [target[:, ::2]]) is None
    assert np.array_equal(target[:, ::2], a.astype(np.int64) @ b.astype(np.int64))
    assert not target[:, 1::2].any()


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([(2, 3), (3, 4)], [(2, 4)]),
        ([(5, 2, 3), (3, 4), (4,)], [(5, 2, 4)]),
        ([(2, 3), (3, 4), (2, 1)], [(2, 4)]),
        ([(2, 3), (3, 4), None], [(2, 4)]),
        ([(2, 3), (3, 4), (3,)], None),
        ([(2, 3), (3, 4), (1, 2, 4)], None),
        ([(2, 3), (4, 4)], None),
        ([(3,), (3, 4)], None),
        ([(2, 2, 3), (3, 3, 4)], None),
        ([None, (3, 4)], None),
    ],
)
def test_shapes_that_do_not_go_together_give_none(
    inputs: list[Dims | None], expected: list[Dims] | None
) -> None:
    for row in LINEAR:
        assert row.shape(inputs, {}) == expected


def test_work_counts_a_mac_for_each_product() -> None:
    call = Call((tensor("i8", (2, 3, 5)), tensor("i8", (5, 7))), (tensor("i8", (2, 3, 7)),), {})
    assert LINEAR[0].work(call) == Work(macs=2 * 3 * 5 * 7)
