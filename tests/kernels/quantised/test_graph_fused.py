"""Fused operations on stored integers, against the kernels of NEM, loops and onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Call, Quantization, TensorType
from nacre.kernels.registry import PRIMITIVES
from tests.byte_products import byte_products_saturate
from tests.kernels.oracle_data import (
    Array,
    Dims,
    Use,
    attempted,
    computed,
    held,
    holds,
    layouts,
    made,
    reason,
    refused,
    same_bits,
    seeds,
    small,
)
from tests.kernels.oracle_views import onnx_result, perform

STORED = ("i4", "u4", "i8", "u8", "i16", "u16", "i32")
NARROW = ("i8", "u8")
stored_types, byte_types = st.sampled_from(STORED), st.sampled_from(NARROW)

BYTES, WORDS = ("i8", (2, 3)), ("i32", (4,))
ONE: dict[str, Any] = {"x_scale": 0.5, "y_scale": 0.25, "to": "i8"}
TWO = {**ONE, "w_scales": (0.5,)}
BIN: dict[str, Any] = {"op": "Add", "a_scale": 0.5, "b_scale": 1.0, "y_scale": 0.5, "to": "i8"}
POOL = {**ONE, "op": "Max", "kernel": (2, 2)}
PLANE, WINDOW = ("u8", (1, 2, 5, 5)), ("i8", (4, 2, 3, 3))

VALID: tuple[Use, ...] = (
    ("QConv", (PLANE, WINDOW, WORDS), {**TWO, "x_zero": 128, "pads": (1, 1, 1, 1)}),
    ("QLinear", (BYTES, ("i8", (4, 3)), WORDS), {**TWO, "w_scales": (1.0, 0.5, 2.0, 0.1)}),
    ("QBinOp", (BYTES, ("i8", (3,))), BIN),
    ("QPool", (PLANE,), {**POOL, "op": "Avg", "ceil": True, "count_pad": True}),
)


@pytest.mark.parametrize("use", VALID, ids=lambda use: use[0])
def test_verifies_prints_and_is_of_nacre_1(use: Use) -> None:
    holds(use)


REFUSED: tuple[tuple[Use, str, str], ...] = (
    (("QConv", (PLANE, ("f8e4m3", (4, 2, 3, 3))), TWO), "NCR01", "expected"),
    (("QConv", (PLANE, WINDOW), {**TWO, "x_zero": 256}), "NCR01", "expected"),
    (("QConv", (PLANE, WINDOW), {**TWO, "w_zeros": (128,)}), "NCR01", "expected"),
    (("QConv", (PLANE, WINDOW), {**TWO, "layout": "NCWH"}), "NCR03", "expected one of `NCHW`"),
    (("QConv", (PLANE, WINDOW, ("f32", (4,))), TWO), "NCR01", "expected `i32` or `i64`"),
    (("QPool", (PLANE,), {**POOL, "dilations": (1, 1)}), "MOD10", "no attribute"),
    (("QBinOp", (BYTES, BYTES), {**BIN, "op": "Pow"}), "NCR03", "no `op` of `QBinOp`"),
)


@pytest.mark.parametrize(("use", "code", "told"), REFUSED)
def test_rules_say_what_is_wrong(use: Use, code: str, told: str) -> None:
    refused(use, code, told)


HUGE, NAN = 10**30, float("nan")
P, W = PLANE[1], WINDOW[1]
MISFITS: tuple[tuple[str, tuple[Dims, ...], dict[str, Any], str], ...] = (
    ("QConv", ((2, 5), (4, 2)), TWO, "expected 3 to 5 axes"),
    ("QConv", (P, (4, 2, 3)), TWO, "`weight` has the shape [4, 2, 3], expected 4 axes"),
    ("QConv", (P, (4, 3, 3, 3)), TWO, "`input` has 2 channels, expected 3"),
    ("QConv", (P, (4, 1, 3, 3)), {**TWO, "groups": 3}, "`groups` is 3, expected a divisor of 4"),
    ("QConv", (P, W), {**TWO, "groups": 0}, "`groups` is 0"),
    ("QConv", (P, W), {**TWO, "strides": (1,)}, "`strides` has 1 entries, expected 2"),
    ("QConv", (P, W), {**TWO, "strides": (0, 1)}, "`strides` has 0, expected at least 1"),
    ("QConv", (P, W), {**TWO, "pads": (0, 0)}, "`pads` has 2 entries, expected 4"),
    ("QConv", (P, W), {**TWO, "pads": (-1, 0, 0, 0)}, "`pads` has -1, expected at least 0"),
    ("QConv", (P, W), {**TWO, "pads": (HUGE, 0, 0, 0)}, "expected less than 2^31"),
    ("QConv", (P, W), {**TWO, "dilations": (3, 1)}, "reaches over 7 elements along axis 0"),
    ("QConv", (P, W, (3,)), TWO, "`bias` has the shape [3], expected [4]"),
    ("QConv", (P, W), {**TWO, "w_scales": (1.0, 2.0)}, "has 2 entries, expected 1 or 4"),
    ("QConv", (P, W), {**TWO, "w_scales": ()}, "`w_scales` has 0 entries"),
    ("QConv", (P, W), {**TWO, "w_scales": (NAN,)}, "`w_scales` has nan, expected a positive"),
    ("QConv", (P, W), {**TWO, "w_zeros": (1, 2)}, "has 2 entries, expected none, 1 or 4"),
    ("QConv", (P, W), {**TWO, "x_scale": 0.0}, "`x_scale` has 0.0, expected a positive"),
    ("QConv", (P, W), {**TWO, "y_scale": -1}, "`y_scale` has -1"),
    ("QConv", (P, W), {**TWO, "y_scale": HUGE**10}, "expected a positive number of f32"),
    ("QConv", (P, W), {**TWO, "y_zero": 128}, "`y_zero` is 128, expected a value of `i8`"),
    ("QConv", (P, W), {**TWO, "to": "f32"}, "`to` is `f32`, expected one of"),
    ("QConv", (P, W), {**TWO, "layout": "odd"}, "`layout` is `odd`"),
    ("QLinear", ((), (4, 3)), TWO, "`input` has the shape []"),
    ("QLinear", ((2, 3), (4,)), TWO, "`weight` has the shape [4], expected 2 axes"),
    ("QLinear", ((2, 3), (4, 2)), TWO, "[2, 3], expected 2 along its last axis"),
    ("QLinear", ((2, 3), (4, 3), (3,)), TWO, "`bias` has the shape [3], expected [4]"),
    ("QBinOp", ((2, 3), (2,)), BIN, "[2, 3] and [2] do not stretch to a common one"),
    ("QBinOp", ((2,), (2,)), {**BIN, "op": "Pow"}, "`op` is `Pow`"),
    ("QBinOp", ((2,), (2,)), {**BIN, "a_scale": 0}, "`a_scale` has 0"),
    ("QBinOp", ((2,), (2,)), {**BIN, "b_scale": NAN}, "`b_scale` has nan"),
    ("QPool", ((2, 3),), POOL, "expected 3 to 5 axes"),
    ("QPool", (P,), {**POOL, "kernel": (2,)}, "`kernel` has 1 entries, expected 2"),
    ("QPool", (P,), {**POOL, "kernel": (0, 2)}, "`kernel` has 0, expected at least 1"),
    ("QPool", (P,), {**POOL, "kernel": (HUGE, 2)}, "expected at most 1048576"),
    ("QPool", (P,), {**POOL, "kernel": (6, 2)}, "reaches over 6 elements along axis 0"),
    ("QPool", (P,), {**POOL, "pads": (2, 0, 0, 0)}, "`pads` has 2, expected less than the window"),
    ("QPool", (P,), {**POOL, "op": "Lp"}, "`op` is `Lp`, expected one of `Max`, `Avg`"),
)


@pytest.mark.parametrize(("opcode", "shapes", "given_", "told"), MISFITS)
def test_misfits(opcode: str, shapes: tuple[Dims, ...], given_: dict[str, Any], told: str) -> None:
    found = reason(opcode, shapes, **given_)
    assert found is not None
    assert told in found


def quantized(
    dtype: str,
    shape: Dims,
    scale: float | Sequence[float],
    zero: int | Sequence[int],
    axis: int | None = None,
) -> TensorType:
    pair = np.atleast_1d(np.array(scale, np.float32)), np.atleast_1d(np.array(zero, np.int32))
    return TensorType(GRAPH_TYPES[dtype], shape, Quantization(*pair, axis))


def of_nem(
    name: str, arrays: list[Array], types: list[TensorType], result: TensorType, **given_: object
) -> Array:
    """What NEM's kernel makes of it."""
    (found,), fault = perform(PRIMITIVES[name], arrays, types, [result], given_)
    assert fault is None or not fault.is_fatal
    return found


channel_ways = st.sampled_from([(1, 1, 1), (4, 2, 1), (4, 3, 2), (4, 4, 4)])  # out, in, groups


@given(
    stored_types, stored_types, byte_types, st.integers(1, 3), channel_ways, st.booleans(),
    st.booleans(), st.booleans(), seeds, st.data(),
)  # fmt: skip
def test_conv_as_nem(
    dtype: str, of: str, to: str, rank: int, ways: Dims, is_last: bool, per_channel: bool,
    has_bias: bool, seed: int, data: st.DataObject,
) -> None:  # fmt: skip
    outputs, each, groups = ways
    each = max(1, each // groups)
    rng = np.random.default_rng(seed)
    plane = tuple(int(n) for n in rng.integers(3, 6, rank))
    window = tuple(int(n) for n in rng.integers(1, 4, rank))
    strides = tuple(int(n) for n in rng.integers(1, 3, rank))
    pads = tuple(int(n) for n in rng.integers(0, 3, 2 * rank))
    x, w = made(dtype, (2, *plane, each * groups), seed), made(of, (*window, each, outputs), seed)
    count = outputs if per_channel else 1
    w_scales = tuple(float(np.float32(s)) for s in rng.uniform(0.01, 1, count))
    elem = GRAPH_TYPES[of]
    w_zeros = tuple(int(z) for z in rng.integers(int(elem.lowest), int(elem.highest), count))
    x_zero = int(made(dtype, (1,), seed)[1][0])
    bias = ("i32", rng.integers(-999, 999, outputs).astype(np.int32))
    given_: dict[str, Any] = {
        "strides": strides, "pads": pads, "groups": groups, "x_scale": 0.5, "x_zero": x_zero,
        "w_scales": w_scales, "w_zeros": w_zeros, "y_scale": 3.0, "y_zero": 5, "to": to,
    }  # fmt: skip
    extra = [bias] if has_bias else []
    shape = (2, *(
        (n + pads[i] + pads[i + rank] - window[i]) // strides[i] + 1 for i, n in enumerate(plane)
    ), outputs)  # fmt: skip
    expected = of_nem(
        f"conv{rank}d",
        [x[1], w[1], *(b[1] for b in extra)],
        [
            quantized(dtype, x[1].shape, 0.5, x_zero),
            quantized(of, w[1].shape, w_scales, w_zeros, rank + 1 if per_channel else None),
            *(TensorType(GRAPH_TYPES["i32"], (outputs,)) for _ in extra),
        ],
        quantized(to, shape, 3.0, 5),
        strides=strides, pads=pads, dilations=(1,) * rank, groups=groups,
    )  # fmt: skip
    if is_last:
        same_bits(computed("QConv", x, w, *extra, layout="NHWC", **given_), expected)
        return
    x, w = (dtype, np.moveaxis(x[1], -1, 1)), (of, np.moveaxis(w[1], (-1, -2), (0, 1)))
    found = computed("QConv", x, w, *extra, memory=data.draw(layouts), **given_)
    same_bits(np.ascontiguousarray(np.moveaxis(found, 1, -1)), expected)


def close_steps(found: Array, expected: Array, most: int = 1) -> None:
    """As onnxruntime, whose products of scales may round a step to the other side."""
    assert found.shape == expected.shape
    assert np.abs(found.astype(np.int64) - expected.astype(np.int64)).max() <= most


@given(byte_types, byte_types, st.sampled_from([(4, 2, 1), (4, 4, 4), (6, 2, 2)]), seeds)
def test_conv_as_onnxruntime(dtype: str, to: str, ways: Dims, seed: int) -> None:
    assume(dtype != "u8" or not byte_products_saturate())
    outputs, inputs, groups = ways
    rng = np.random.default_rng(seed)
    x, w = made(dtype, (1, inputs, 5, 6), seed), made("i8", (outputs, inputs // groups, 3, 2), seed)
    bias = ("i32", rng.integers(-9999, 9999, outputs).astype(np.int32))
    x_zero, y_zero = int(x[1][0, 0, 0, 0]), 7
    w_scales = rng.uniform(0.01, 0.2, outputs).astype(np.float32)
    arrays = [
        x[1], np.float32(0.1), np.array(x_zero, held(dtype)),
        w[1], w_scales, np.zeros(outputs, np.int8),
        np.float32(1.5), np.array(y_zero, held(dtype)), bias[1],
    ]  # fmt: skip
    given_ = {"strides": [1, 2], "pads": [1, 0, 2, 1]}
    attributes = {**given_, "group": groups}
    (expected,) = onnx_result("QLinearConv", [np.asarray(a) for a in arrays], attributes)
    found = computed(
        "QConv", x, w, bias, strides=(1, 2), pads=(1, 0, 2, 1), groups=groups,
        x_scale=0.1, x_zero=x_zero, w_scales=tuple(map(float, w_scales)), y_scale=1.5,
        y_zero=y_zero, to=dtype,
    )  # fmt: skip
    close_steps(found, expected)


@given(
    stored_types, stored_types, stored_types, st.lists(st.integers(1, 3), max_size=2).map(tuple),
    st.booleans(), st.booleans(), layouts, seeds,
)  # fmt: skip
def test_linear_as_nem(
    dtype: str, of: str, to: str, front: Dims, per_channel: bool, has_bias: bool, layout: str,
    seed: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    x, w = made(dtype, (*front, 5), seed), made(of, (4, 5), seed)
    rows = int(np.prod(front, dtype=np.int64))
    w_scales = tuple(float(np.float32(s)) for s in rng.uniform(0.01, 1, 4 if per_channel else 1))
    zero = int(made(dtype, (1,), seed)[1][0])
    extra = [("i32", rng.integers(-999, 999, 4).astype(np.int32))] if has_bias else []
    expected = of_nem(
        "gemm",
        [x[1].reshape(rows, 5), w[1].T.copy(), *(b[1] for b in extra)],
        [
            quantized(dtype, (rows, 5), 0.5, zero),
            quantized(of, (5, 4), w_scales, [1] * len(w_scales), 1 if per_channel else None),
            *(TensorType(GRAPH_TYPES["i32"], (4,)) for _ in extra),
        ],
        quantized(to, (rows, 4), 3.0, 5),
    )
    found = computed(
        "QLinear", x, w, *extra, x_scale=0.5, x_zero=zero, w_scales=w_scales, w_zeros=(1,),
        y_scale=3.0, y_zero=5, to=to, memory=layout,
    )  # fmt: skip
    same_bits(found, expected.reshape(*front, 4))


def test_constant_weights_are_turned_once_and_never_mixed_up() -> None:
    given_ = {"x_scale": 1.0, "w_scales": (1.0,), "y_scale": 1.0, "to": "i32", "x_zero": 0}
    given_ |= {"w_zeros": (), "y_zero": 0}
    types = [TensorType(GRAPH_TYPES[name], dims) for name, dims in (
        ("i8", (2, 3)), ("i8", (4, 3)), ("i32", (2, 4))
    )]  # fmt: skip
    run = PRIMITIVES["core.QLinear"].bind(Call(tuple(types[:2]), (types[2],), given_))
    x = made("i8", (2, 3), 1)[1]
    first, second = made("i8", (4, 3), 2)[1], made("i8", (4, 3), 3)[1]
    first.flags.writeable = second.flags.writeable = False
    changing = first.copy()
    for weights in (first, first, second, first, changing, changing):
        changing += 1
        y = np.empty((2, 4), np.int32)
        assert run([x, weights], [y]) is None
        np.testing.assert_array_equal(y, x.astype(np.int32) @ weights.T.astype(np.int32))


def test_where_an_accumulator_wraps() -> None:
    given_: dict[str, Any] = {"x_scale": 1.0, "w_scales": (1.0,), "y_scale": 1.0, "to": "i8"}
    x, w = np.zeros((2, 3, 4), np.int32), np.zeros((5, 4), np.int32)
    x[1, 2], w[3] = 2**20, 2**20
    _, fault = attempted("QLinear", ("i32", x), ("i32", w), **given_)
    assert fault is not None
    assert (fault.kind, fault.is_fatal, fault.position) == ("wrap", False, (1, 2, 3))
    image, window = np.zeros((1, 2, 3, 3), np.int32), np.zeros((4, 2, 1, 1), np.int32)
    image[0, :, 1, 2], window[3] = 2**20, 2**20
    _, fault = attempted("QConv", ("i32", image), ("i32", window), **given_)
    assert fault is not None
    assert fault.position == (0, 3, 1, 2)


@given(byte_types, seeds)
def test_linear_as_onnxruntime(dtype: str, seed: int) -> None:
    assume(dtype != "u8" or not byte_products_saturate())
    x, w = made(dtype, (3, 6), seed), made("i8", (4, 6), seed)
    zero = np.array(3, held(dtype))
    arrays = [
        x[1], np.float32(0.1), zero, w[1].T.copy(), np.float32(0.05), np.int8(0),
        np.float32(0.7), zero,
    ]  # fmt: skip
    (expected,) = onnx_result("QLinearMatMul", [np.asarray(a) for a in arrays], {})
    found = computed(
        "QLinear", x, w, x_scale=0.1, x_zero=3, w_scales=(0.05,), y_scale=0.7, y_zero=3, to=dtype
    )
    close_steps(found, expected)


@given(
    stored_types, stored_types, stored_types,
    st.sampled_from(["Add", "Sub", "Mul", "Div", "Min", "Max"]), small, layouts, seeds,
)  # fmt: skip
def test_binop_as_nem(
    a_type: str, b_type: str, to: str, op: str, dims: Dims, layout: str, seed: int
) -> None:
    a, b = made(a_type, dims, seed), made(b_type, dims[-1:], seed + 1)
    wide = np.ascontiguousarray(np.broadcast_to(b[1], dims))
    expected = of_nem(
        op.lower(),
        [a[1], wide],
        [quantized(a_type, dims, 0.5, 3), quantized(b_type, dims, 0.125, 0)],
        quantized(to, dims, 0.25, 2),
    )
    found = computed(
        "QBinOp", a, b, op=op, a_scale=0.5, a_zero=3, b_scale=0.125, y_scale=0.25, y_zero=2, to=to,
        memory=layout,
    )  # fmt: skip
    same_bits(found, expected)


def pooled(
    x: Array, op: str, kernel: Dims, strides: Dims, pads: Dims, shape: Dims, count_pad: bool
) -> Array:
    """Real values in NCHW, window by window."""
    half = len(kernel)
    result = np.zeros(shape)
    for place in np.ndindex(shape):
        taken, count = [], 0
        for offset in product(*(range(k) for k in kernel)):
            at = [p * s + o - b for p, s, o, b in zip(place[2:], strides, offset, pads)]  # noqa: B905
            plane = x.shape[2:]
            if all(0 <= i < n for i, n in zip(at, plane, strict=True)):
                taken.append(x[(*place[:2], *at)])
            count += all(-pads[i] <= at[i] < plane[i] + pads[i + half] for i in range(half))
        if op == "Max":
            result[place] = max(taken)
        else:
            result[place] = sum(taken) / (count if count_pad else len(taken))
    return result


@given(
    stored_types, stored_types, st.sampled_from(["Max", "Avg"]), st.booleans(), st.booleans(),
    st.booleans(), st.booleans(), layouts, seeds,
)  # fmt: skip
def test_pool(
    dtype: str, to: str, op: str, is_same: bool, ceil: bool, count_pad: bool, is_last: bool,
    layout: str, seed: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    kernel = tuple(int(k) for k in rng.integers(1, 4, 2))
    strides = tuple(int(s) for s in rng.integers(1, 4, 2))
    pads = tuple(int(rng.integers(0, k)) for k in kernel * 2)
    x = dtype, rng.integers(0, 8, (2, 3, 5, 6)).astype(held(dtype))
    # Powers of two: real values are exact, and only the last step rounds.
    y_scale, y_zero = (0.5, 3) if is_same else (0.125, 1)
    operand = (dtype, np.moveaxis(x[1], 1, -1)) if is_last else x
    found = computed(
        "QPool", operand, op=op, kernel=kernel, strides=strides, pads=pads, ceil=ceil,
        count_pad=count_pad, x_scale=0.5, x_zero=3, y_scale=y_scale, y_zero=y_zero, to=to,
        layout="NHWC" if is_last else "NCHW", memory=layout,
    )  # fmt: skip
    found = np.moveaxis(found, -1, 1) if is_last else found
    reals = (x[1].astype(np.float64) - 3) * 0.5
    expected = pooled(reals, op, kernel, strides, pads, found.shape, count_pad) / y_scale
    elem = GRAPH_TYPES[to]
    steps = np.clip(expected + y_zero, float(elem.lowest), float(elem.highest))
    assert np.abs(found - steps).max() <= 0.5 + 1e-4


@given(byte_types, st.sampled_from(["maxpool", "avgpool"]), st.booleans(), seeds)
def test_pool_as_nem(dtype: str, name: str, is_same: bool, seed: int) -> None:
    x = made(dtype, (2, 6, 5, 3), seed)
    spatial: dict[str, Any] = {"strides": (2, 1), "pads": (1, 0, 1, 1)}
    y_scale, y_zero = (0.3, 4) if is_same or name == "maxpool" else (0.7, 1)
    expected = of_nem(
        name,
        [x[1]],
        [quantized(dtype, x[1].shape, 0.3, 4)],
        quantized(dtype, (2, 3, 5, 3), y_scale, y_zero),
        kernel_shape=(3, 2),
        **spatial,
    )
    found = computed(
        "QPool", x, op=name[:3].title(), kernel=(3, 2), x_scale=0.3, x_zero=4, y_scale=y_scale,
        y_zero=y_zero, to=dtype, layout="NHWC", **spatial,
    )  # fmt: skip
    same_bits(found, expected)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pads", "ceil"),
    [(5, 2, 2, (0, 0), True), (5, 2, 2, (1, 1), True), (6, 3, 2, (1, 1), True),
     (4, 1, 3, (0, 0), True), (2, 3, 2, (0, 0), True), (7, 3, 3, (1, 1), False)],
)  # fmt: skip
def test_how_many_windows_as_pytorch(
    size: int, kernel: int, stride: int, pads: Dims, ceil: bool
) -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(1, 1, size)
    wanted = torch.nn.functional.max_pool1d(x, kernel, stride, pads[0], ceil_mode=ceil).shape
    found = computed(
        "QPool", ("i8", np.zeros((1, 1, size), np.int8)), op="Max", kernel=(kernel,),
        strides=(stride,), pads=pads, ceil=ceil, x_scale=1.0, y_scale=1.0, to="i8",
    )  # fmt: skip
    assert found.shape == tuple(wanted)


@pytest.mark.parametrize(
    ("dtypes", "zero", "told"),
    [(("i8", "f8e4m3"), 0, "operand 1 has the type"), (("i8", "i8"), 200, "`b_zero` has 200")],
)
def test_types_are_refused_when_bound(dtypes: tuple[str, ...], zero: int, told: str) -> None:
    types = tuple(TensorType(GRAPH_TYPES[dtype], ()) for dtype in dtypes)
    with pytest.raises(ValueError, match=told):
        PRIMITIVES["core.QBinOp"].bind(Call(types, types[:1], {**BIN, "a_zero": 0, "b_zero": zero}))
