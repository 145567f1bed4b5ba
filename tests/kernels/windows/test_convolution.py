"""Convolutions against loops over Python numbers, and against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Array, Call, Quantization, TensorType, Work
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.quantization import per_tensor
from nacre.kernels.windows import patches
from nacre.kernels.windows.patches import blocks
from tests.kernels.oracle_linear import (
    INTEGERS,
    PRIMITIVES,
    Terms,
    along,
    conv_terms,
    exact_sums,
    first_outside_i32,
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

NAMES = {1: "conv1d", 2: "conv2d", 3: "conv3d"}
elements = st.sampled_from(INTEGERS)


@dataclass(frozen=True)
class Case:
    name: str
    x: Dims
    w: Dims
    y: Dims
    attributes: Mapping[str, Any]

    @property
    def is_depthwise(self) -> bool:
        return self.name == "depthwise_conv2d"

    def sums(self, x: tuple[TensorType, Array], w: tuple[TensorType, Array]) -> Array:
        return exact_sums(x, w, self.y, self.terms)

    @property
    def terms(self) -> Callable[[Dims], Terms]:
        return conv_terms(self.x, self.w, self.y, self.attributes, self.is_depthwise)


@st.composite
def cases(draw: st.DrawFn, ranks: tuple[int, ...] = (1, 2, 3), largest: int = 5) -> Case:
    """Any convolution, a depthwise one now and then."""
    rank = draw(st.sampled_from(ranks))
    depthwise = rank == 2 and draw(st.booleans())

    def numbers(low: int, high: int, count: int = rank) -> Dims:
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    groups = draw(st.integers(1, 3))
    size, window = numbers(1, largest), numbers(1, 3)
    attributes: dict[str, Any] = {
        "pads": numbers(0, 2, 2 * rank),
        "strides": numbers(1, 2),
        "dilations": numbers(1, 2),
    }
    multiple, outputs = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    x = (draw(st.integers(1, 2)), *size, groups * multiple)
    if depthwise:
        forms = ((x[-1], outputs), (1, x[-1] * outputs))
        name, w = "depthwise_conv2d", (*window, *draw(st.sampled_from(forms)))
    else:
        name, w = NAMES[rank], (*window, multiple, groups * outputs)
        attributes["groups"] = groups
    y = PRIMITIVES[name].shape([x, w], attributes)
    assume(y is not None)
    assert y is not None
    return Case(name, x, w, y[0], attributes)


def with_quant(type_: TensorType, quant: Quantization) -> TensorType:
    return tensor(type_.elem.name, type_.shape, quant)


@given(cases(), elements, elements, st.sampled_from(INTEGERS), st.data(), st.integers(0, 2**32))
def test_accumulators_are_exact_wrap_and_saturate(
    case: Case, x_elem: str, w_elem: str, out: str, data: st.DataObject, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x_type, w_type = tensor(x_elem, case.x), tensor(w_elem, case.w)
    if data.draw(st.booleans()):
        x_type = with_quant(x_type, data.draw(quantizations(x_type, [0])))
    if data.draw(st.booleans()):
        w_type = with_quant(w_type, data.draw(quantizations(w_type, [len(case.w) - 1])))
    narrow, biased = data.draw(st.booleans()), data.draw(st.booleans())
    x, w = (
        (x_type, random_values(rng, x_type, narrow)),
        (w_type, random_values(rng, w_type, narrow)),
    )
    bias_type = tensor("i32", case.y[-1:])
    bias = (bias_type, random_values(rng, bias_type)) if biased else None
    sums = case.sums(x, w)
    if bias is not None:
        sums = sums + bias[1].astype(object)
    y_type = tensor(out, case.y)
    y, fault = run(case.name, [x, w, bias], y_type, case.attributes)
    expected = wrapped_i32(sums)
    for place in np.ndindex(*case.y):
        assert int(y[place]) == stopped(int(expected[place]), y_type)
    where = first_outside_i32(sums)
    assert (None if fault is None else fault.position) == where


@given(cases(), st.sampled_from(["i8", "i16", "u8"]), st.data(), st.integers(0, 2**32))
def test_a_quantised_output_is_scaled_in_f32_and_rounded_to_even(
    case: Case, out: str, data: st.DataObject, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x_type, w_type, y_type = tensor("i8", case.x), tensor("i8", case.w), tensor(out, case.y)
    x_type = with_quant(x_type, data.draw(quantizations(x_type, [0])))
    channels = [2, 3] if case.is_depthwise else [len(case.w) - 1]
    w_type = with_quant(w_type, data.draw(quantizations(w_type, channels)))
    y_type = with_quant(y_type, data.draw(quantizations(y_type, range(len(case.y)))))
    x, w = (x_type, random_values(rng, x_type)), (w_type, random_values(rng, w_type))
    bias = rng.integers(-5000, 5000, case.y[-1:]).astype(np.int32)
    sums = case.sums(x, w) + bias.astype(object)
    inputs = [x, w, (tensor("i32", bias.shape), bias)]
    y, fault = run(case.name, inputs, y_type, case.attributes)
    assert fault is None
    for place in np.ndindex(*case.y):
        image, channel = place[0], place[-1]
        in_x = (image, *(0 for _ in case.x[1:]))
        by_channel = case.is_depthwise and case.w[-2] == case.x[-1]
        last = divmod(channel, case.w[-1]) if by_channel else (0, channel)
        in_w = (*(0 for _ in case.w[2:]), *last)
        scale = scale_at(x_type, in_x) * scale_at(w_type, in_w) / scale_at(y_type, place)
        steps = int(np.rint(np.float32(sums[place]) * scale))
        assert int(y[place]) == stopped(steps + zero_at(y_type, place), y_type)


@given(cases(largest=4), st.data(), st.integers(0, 2**32))
def test_scales_that_vary_along_the_sum_give_the_sum_of_the_reals(
    case: Case, data: st.DataObject, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x_type, w_type = tensor("i8", case.x), tensor("i8", case.w)
    x_type = with_quant(x_type, data.draw(quantizations(x_type, range(len(case.x)))))
    w_type = with_quant(w_type, data.draw(quantizations(w_type, range(len(case.w)))))
    x, w = random_values(rng, x_type), random_values(rng, w_type)
    # A fine scale shows differences that i8 would hide.
    y_type = tensor("i32", case.y, per_tensor(2.0**-6))
    y, _ = run(case.name, [(x_type, x), (w_type, w)], y_type, case.attributes)
    for place in np.ndindex(*case.y):
        products = [
            (int(x[i]) - zero_at(x_type, i))
            * float(scale_at(x_type, i))
            * (int(w[j]) - zero_at(w_type, j))
            * float(scale_at(w_type, j))
            for i, j in case.terms(place)
        ]
        slack = 0.5 + 64 * (len(products) + 3) * 2.0**-23 * sum(abs(p) for p in products)
        assert abs(int(y[place]) - 64 * sum(products)) <= slack


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_groups_of_weights_are_scaled_and_added_in_ascending_order(axis: int) -> None:
    rng = np.random.default_rng(axis)
    x_type = tensor("i8", (1, 5, 5, 6), per_tensor(0.02, 4))
    shape = (3, 2, 6, 4)
    count = -(-shape[axis] // 2)
    scales = rng.uniform(0.001, 0.1, count).astype(np.float32)
    w_type = tensor("i4", shape, along(axis, scales.tolist(), [1, -2, 3][:count], group_size=2))
    y_type = tensor("i8", (1, 5, 6, 4), per_tensor(0.05, -3))
    bias = np.array([100, -2000, 0, 7], np.int32)
    attributes = {"pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1)}
    x, w = random_values(rng, x_type), random_values(rng, w_type)
    inputs = [(x_type, x), (w_type, w), (tensor("i32", (4,)), bias)]
    y, _ = run("conv2d", inputs, y_type, attributes)
    terms = conv_terms(x_type.shape, shape, y_type.shape, attributes)
    for place in np.ndindex(*y_type.shape):
        groups = [0] * count
        for i, j in terms(place):
            groups[j[axis] // 2] += (int(x[i]) - 4) * (int(w[j]) - zero_at(w_type, j))
        total = np.float32(0)
        for acc, scale in zip(groups, scales, strict=True):
            total = total + np.float32(acc) * (np.float32(0.02) * scale)
        total = total + np.float32(bias[place[-1]]) * np.float32(0.02)
        assert int(y[place]) == stopped(int(np.rint(total / np.float32(0.05))) - 3, y_type)


def to_onnx_x(x: Array) -> Array:
    return np.moveaxis(x, -1, 1)


def to_onnx_w(w: Array, depthwise: bool) -> Array:
    """[window.., Cin / groups, Cout] as [Cout, Cin / groups, window..]."""
    if depthwise:
        w = w.reshape(*w.shape[:-2], 1, -1)
    return np.moveaxis(w, (-1, -2), (0, 1))


def onnx_attributes(case: Case) -> dict[str, Any]:
    groups = case.x[-1] if case.is_depthwise else case.attributes["groups"]
    spatial = {name: list(case.attributes[name]) for name in ("pads", "strides", "dilations")}
    return {**spatial, "group": groups}


@given(
    cases(ranks=(1, 2), largest=9),
    st.sampled_from([("u8", "u8"), ("u8", "i8"), ("i8", "i8")]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_quantised_convolutions_are_those_of_onnxruntime(
    case: Case, names: tuple[str, str], per_channel: bool, biased: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x_type, w_type = tensor(names[0], case.x), tensor(names[1], case.w)
    x, w = random_values(rng, x_type), random_values(rng, w_type)
    if names[1] == "i8":
        w //= 2  # without VNNI onnxruntime adds pairs of u8 * i8 in 16 bits: 7 bits fit
    cout = case.y[-1]
    count = cout if per_channel else 1
    scales = rng.uniform(0.001, 0.05, count).astype(np.float32)
    w_zero = int(rng.integers(0, 255)) if names[1] == "u8" else 0
    x_zero, y_zero = (int(z) for z in rng.integers(0, 100, 2))
    bias = rng.integers(-3000, 3000, cout).astype(np.int32)
    if per_channel and case.is_depthwise:
        # Only scales that depend on one axis of W can be said: repeat those of the multipliers.
        scales = np.tile(scales[: case.w[-1]], case.w[-2])
    w_quant = per_tensor(float(scales[0]), w_zero)
    if per_channel:
        w_quant = along(len(case.w) - 1, scales[: case.w[-1]].tolist(), w_zero)
    y_type = tensor(names[0], case.y, per_tensor(0.2, y_zero))
    inputs: list[tuple[TensorType, Array] | None] = [
        (with_quant(x_type, per_tensor(0.03, x_zero)), x),
        (with_quant(w_type, w_quant), w),
        (tensor("i32", (cout,)), bias) if biased else None,
    ]
    y, fault = run(case.name, inputs, y_type, case.attributes)
    onnx_inputs = {
        "x": to_onnx_x(x),
        "xs": np.array(0.03, np.float32),
        "xz": np.array(x_zero, x.dtype),
        "w": to_onnx_w(w, case.is_depthwise),
        "ws": scales if per_channel else scales.reshape(()),
        "wz": np.full(count if per_channel else (), w_zero, w.dtype),
        "ys": np.array(0.2, np.float32),
        "yz": np.array(y_zero, y.dtype),
    }
    if biased:
        onnx_inputs["b"] = bias
    expected = onnx_run("QLinearConv", onnx_inputs, y.dtype, onnx_attributes(case))
    assert fault is None
    assert np.array_equal(y, np.moveaxis(expected, 1, -1))


@given(cases(largest=9), st.booleans(), st.integers(0, 2**32))
def test_f32_convolutions_are_near_those_of_onnxruntime(
    case: Case, ordered: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    types = tensor("f32", case.x), tensor("f32", case.w), tensor("f32", case.y[-1:])
    x, w, b = (random_values(rng, t) for t in types)
    inputs = list(zip(types, (x, w, b), strict=True))
    y, _ = run(case.name, inputs, tensor("f32", case.y), case.attributes, ordered)

    def onnx(x: Array, w: Array, b: Array) -> Array:
        given = {"x": to_onnx_x(x), "w": to_onnx_w(w, case.is_depthwise), "b": b}
        return np.moveaxis(onnx_run("Conv", given, np.float32, onnx_attributes(case)), 1, -1)

    depth = prod(case.w[:-2]) * (1 if case.is_depthwise else case.w[-2]) + 1
    # Either side may be off by this much.
    slack = depth * 2.0**-24 * onnx(np.abs(x), np.abs(w), np.abs(b))
    assert np.all(np.abs(y - onnx(x, w, b)) <= 2 * slack)


@given(cases(), st.sampled_from(["f16", "bf16"]), st.integers(0, 2**32))
def test_narrow_floats_are_rounded_once(case: Case, elem: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    types = tensor(elem, case.x), tensor(elem, case.w)
    x, w = (random_values(rng, t) for t in types)
    y_type = tensor(elem, case.y)
    y, _ = run(case.name, list(zip(types, (x, w), strict=True)), y_type, case.attributes)
    for place in np.ndindex(*case.y):
        products = [float(x[i]) * float(w[j]) for i, j in case.terms(place)]
        exact = sum(products)
        slack = len(products) * 2.0**-24 * sum(abs(p) for p in products)
        ends = [np.array(exact + d).astype(y.dtype) for d in (-slack, slack)]
        assert ends[0] <= y[place] <= ends[1]


@given(cases(largest=4), st.integers(0, 2**32))
def test_ordered_sums_run_over_the_window_row_by_row_then_over_channels(
    case: Case, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    types = tensor("f32", case.x), tensor("f32", case.w)
    x, w = (random_values(rng, t) for t in types)
    inputs = list(zip(types, (x, w), strict=True))
    y, _ = run(case.name, inputs, tensor("f32", case.y), case.attributes, ordered=True)
    for place in np.ndindex(*case.y):
        total = np.float32(0)
        for i, j in case.terms(place):
            total = total + x[i] * w[j]
        assert y[place].tobytes() == total.tobytes()


PLAIN = {"pads": (0, 0, 0, 0), "strides": (1, 1), "dilations": (1, 1)}


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("elem", ["i8", "f32"])
def test_large_patches_are_made_block_by_block(
    monkeypatch: pytest.MonkeyPatch, groups: int, elem: str
) -> None:
    rng = np.random.default_rng(0)
    x_type, w_type = tensor(elem, (2, 6, 7, 4)), tensor(elem, (3, 3, 4 // groups, 6))
    out = "i32" if elem == "i8" else "f32"
    attributes = {**PLAIN, "groups": groups}
    inputs = [(t, random_values(rng, t)) for t in (x_type, w_type)]
    whole, _ = run("conv2d", inputs, tensor(out, (2, 4, 5, 6)), attributes, ordered=True)
    for rows in (1, 3, 7, 11, 25):
        monkeypatch.setattr(patches, "_PATCH_BYTES", rows * 36 * 4)
        parts, _ = run("conv2d", inputs, tensor(out, (2, 4, 5, 6)), attributes, ordered=True)
        assert np.array_equal(whole, parts)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple), st.integers(1, 40))
def test_blocks_make_up_the_whole_in_order(dims: Dims, limit: int) -> None:
    numbers = np.arange(prod(dims)).reshape(dims)
    parts = [numbers[block].ravel() for block in blocks(dims, limit)]
    assert max(part.size for part in parts) <= limit
    assert np.array_equal(np.concatenate(parts), numbers.ravel())


def test_padding_is_the_zero_point_and_not_zero() -> None:
    x = np.full((1, 1, 1, 1), 7, np.int8)
    y, _ = run(
        "conv2d",
        [
            (tensor("i8", x.shape, per_tensor(1.0, 5)), x),
            (tensor("i8", (3, 3, 1, 1)), np.ones((3, 3, 1, 1), np.int8)),
        ],
        tensor("i32", (1, 1, 1, 1)),
        {**PLAIN, "pads": (1, 1, 1, 1)},
    )
    assert y.tolist() == [[[[2]]]]


def test_a_wrap_is_reported_where_it_happens() -> None:
    x = np.zeros((1, 2, 2, 1), np.int16)
    x[0, 1, 0] = 2**15 - 1
    w = np.full((1, 1, 1, 3), 2**15 - 1, np.int16)
    bias = np.array([0, 0, 2**31 - 1], np.int32)
    y, fault = run(
        "conv2d",
        [(tensor("i16", x.shape), x), (tensor("i16", w.shape), w), (tensor("i32", (3,)), bias)],
        tensor("i32", (1, 2, 2, 3)),
        PLAIN,
    )
    assert fault is not None
    assert (fault.position, fault.is_fatal) == ((0, 1, 0, 2), False)
    assert y[0, 1, 0].tolist() == [(2**15 - 1) ** 2] * 2 + [(2**15 - 1) ** 2 - 2**31 - 1]


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d"])
def test_infinities_and_nan_pass_without_a_warning(name: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 6e4], np.float16).reshape(1, 2, 2, 1)
    w = np.array([2.0, 0.0], np.float16).reshape(1, 1, 1, 2)
    inputs = [(tensor("f16", x.shape), x), (tensor("f16", w.shape), w)]
    y, _ = run(name, inputs, tensor("f16", (1, 2, 2, 2)), PLAIN)
    expected = [np.inf, np.nan, -np.inf, np.nan, np.nan, np.nan, np.inf, 0]
    assert np.array_equal(y.ravel(), np.array(expected, np.float16), equal_nan=True)


def test_strided_and_unaligned_operands_are_as_good_as_dense_ones() -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((1, 6, 6, 4), dtype=np.float32)
    w = rng.standard_normal((3, 3, 4, 2), dtype=np.float32)
    loose = np.empty(dense.nbytes + 2, np.uint8)[2:].view(np.float32).reshape(dense.shape)
    loose[...] = dense
    wide = np.repeat(dense, 2, axis=-1)[..., ::2]
    target = np.zeros((1, 4, 4, 4), np.float32)
    types = tensor("f32", dense.shape), tensor("f32", w.shape)
    call = Call(types, (tensor("f32", (1, 4, 4, 2)),), PLAIN)
    expected, _ = run("conv2d", [(types[0], dense), (types[1], w)], call.output, PLAIN)
    for x in (loose, wide):
        PRIMITIVES["conv2d"].bind(call)([x, w], [target[..., ::2]])
        assert np.array_equal(target[..., ::2], expected)
    assert not target[..., 1::2].any()


@pytest.mark.parametrize(
    ("name", "inputs", "changed", "expected"),
    [
        ("conv2d", [(1, 5, 5, 4), (3, 3, 4, 8)], {}, [(1, 3, 3, 8)]),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 2, 8), (8,)], {"groups": 2}, [(1, 3, 3, 8)]),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 4, 8), (4,)], {}, None),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 3, 8)], {}, None),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 2, 7)], {"groups": 2}, None),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 4, 8)], {"groups": 0}, None),
        ("conv2d", [(1, 2, 5, 4), (3, 3, 4, 8)], {}, None),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 4, 8)], {"pads": (1, 1)}, None),
        ("conv2d", [(1, 5, 5, 4), (3, 3, 4, 8)], {"strides": (1, 0)}, None),
        ("conv2d", [(1, 5, 4), (3, 3, 4, 8)], {}, None),
        ("conv2d", [None, (3, 3, 4, 8)], {}, None),
        ("depthwise_conv2d", [(1, 5, 5, 4), (3, 3, 1, 8), (8,)], {}, [(1, 3, 3, 8)]),
        ("depthwise_conv2d", [(1, 5, 5, 4), (3, 3, 1, 6)], {}, None),
        ("depthwise_conv2d", [(1, 5, 5, 4), (3, 3, 1, 2)], {}, None),
        ("depthwise_conv2d", [(1, 5, 5, 4), (3, 3, 2, 2)], {}, None),
        ("depthwise_conv2d", [(1, 5, 5, 4), (3, 3, 4, 2), (8,)], {}, [(1, 3, 3, 8)]),
        ("depthwise_conv2d", [(1, 5, 5, 4), (3, 3, 3, 2)], {}, None),
    ],
)
def test_shapes_that_do_not_go_together_give_none(
    name: str, inputs: list[Dims | None], changed: dict[str, Any], expected: list[Dims] | None
) -> None:
    assert PRIMITIVES[name].shape(inputs, {**PLAIN, **changed}) == expected


def test_work_counts_a_mac_for_each_product() -> None:
    x, y = tensor("i8", (2, 5, 5, 4)), tensor("i8", (2, 3, 3, 8))
    conv = Call((x, tensor("i8", (3, 3, 2, 8))), (y,), {**PLAIN, "groups": 2})
    assert PRIMITIVES["conv2d"].work(conv) == Work(macs=2 * 3 * 3 * 8 * 3 * 3 * 2)
    depthwise = Call((x, tensor("i8", (3, 3, 4, 2))), (y,), PLAIN)
    assert PRIMITIVES["depthwise_conv2d"].work(depthwise) == Work(macs=2 * 3 * 3 * 8 * 3 * 3)
