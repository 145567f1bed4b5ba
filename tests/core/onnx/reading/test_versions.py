"""Operations across opsets against onnxruntime: what was an attribute becomes an operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.core.onnx.single import Array, assert_agrees

SEEDS = st.integers(0, 1 << 16)
DIMS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def _x(seed: int, *dims: int) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


_REDUCTIONS = ("Max", "Min", "Prod", "Sum", "Mean", "SumSquare", "L1", "L2", "LogSumExp")


@given(SEEDS, DIMS, st.data(), st.sampled_from(_REDUCTIONS), st.booleans())
def test_reductions(
    seed: int, dims: list[int], data: st.DataObject, name: str, keeps: bool
) -> None:
    axes = data.draw(st.lists(st.integers(0, len(dims) - 1), unique=True))
    axes = [a - len(dims) if a % 2 else a for a in axes]
    opset = data.draw(st.sampled_from([7, 11, 13, 18]))
    first = 13 if name == "Sum" else 18
    x = _x(seed, *dims)
    given_: dict[str, Any] = {"keepdims": int(keeps)}
    if opset >= first:
        inputs = [x, np.array(axes, np.int64)] if axes else [x]
        assert_agrees(f"Reduce{name}", inputs, opset, (1,), tolerance=1e-4, **given_)
    else:
        given_ |= {"axes": axes} if axes else {}
        assert_agrees(f"Reduce{name}", [x], opset, tolerance=1e-4, **given_)


@given(SEEDS, DIMS, st.data())
def test_slices(seed: int, dims: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(dims)))
    axes = data.draw(st.permutations(range(len(dims))))[:count]
    opset = data.draw(st.sampled_from([7, 10, 13]))
    ends = [data.draw(st.sampled_from([1, dims[a], -1, 1 << 62])) for a in axes]
    starts = [data.draw(st.integers(-dims[a], dims[a] - 1)) for a in axes]
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) if opset > 9 else 1 for _ in axes]
    parts = [slice(None)] * len(dims)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        parts[axis] = slice(start, end, step)
    x = _x(seed, *dims)
    assume(x[tuple(parts)].size)
    if opset < 10:
        assert_agrees("Slice", [x], opset, starts=starts, ends=ends, axes=axes)
    else:
        inputs = [x, *(np.array(v, np.int64) for v in (starts, ends, axes, steps))]
        assert_agrees("Slice", inputs, opset, (1, 2, 3, 4))


@given(
    SEEDS,
    st.tuples(*[st.integers(3, 7)] * 2),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.integers(1, 2),
    st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]),
    st.sampled_from([7, 11, 22]),
)
def test_convolutions(
    seed: int,
    dims: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: int,
    auto: str,
    opset: int,
) -> None:
    dilation = 1 if auto.startswith("SAME") else dilation  # not all versions have both
    assume(all(d >= dilation * (k - 1) + 1 for d, k in zip(dims, kernel, strict=True)))
    given_: dict[str, Any] = {"strides": strides, "dilations": [dilation] * 2, "auto_pad": auto}
    given_ |= {"pads": [1, 0, 0, 1]} if auto == "NOTSET" else {}
    inputs = [_x(seed, 2, 4, *dims), _x(seed + 1, 6, 2, *kernel), _x(seed + 2, 6)]
    assert_agrees("Conv", inputs, opset, group=2, tolerance=1e-4, **given_)


@given(
    SEEDS,
    st.tuples(*[st.integers(1, 5)] * 2),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from([7, 11]),
)
def test_transposed_convolutions(
    seed: int,
    dims: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: int,
    has_more: bool,
    opset: int,
) -> None:
    given_: dict[str, Any] = {"strides": strides, "dilations": [dilation] * 2}
    given_ |= {"output_padding": [int(has_more and s > 1) for s in strides]}
    inputs = [_x(seed, 2, 4, *dims), _x(seed + 1, 4, 3, *kernel), _x(seed + 2, 6)]
    assert_agrees("ConvTranspose", inputs, opset, group=2, tolerance=1e-4, **given_)


@given(
    SEEDS,
    st.tuples(*[st.integers(3, 7)] * 2),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["AveragePool", "MaxPool", "LpPool"]),
    st.sampled_from([7, 10, 19]),
)
def test_pools(
    seed: int,
    dims: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    is_up: bool,
    counts_pads: bool,
    op: str,
    opset: int,
) -> None:
    pads = [k // 2 for k in kernel]
    given_: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": [*pads, *pads]}
    if opset >= 10 and op != "LpPool":
        given_["ceil_mode"] = int(is_up)
    if op == "AveragePool":
        given_["count_include_pad"] = int(counts_pads)
    assert_agrees(op, [_x(seed, 1, 2, *dims)], opset, tolerance=1e-4, **given_)


@given(
    SEEDS,
    st.sampled_from([((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((3,), (4, 3, 2)),
                     ((4, 2, 3), (3,)), ((2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2))]),
)  # fmt: skip
def test_products(seed: int, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert_agrees("MatMul", [_x(seed, *shapes[0]), _x(seed + 1, *shapes[1])], 13, tolerance=1e-4)


@given(
    SEEDS,
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, (), (4,), (3, 1), (1, 4), (3, 4)]),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([7, 11, 13]),
)
def test_gemm(
    seed: int, turns_a: bool, turns_b: bool, bias: tuple[int, ...] | None, scale: float, opset: int
) -> None:
    assume(bias is not None or opset >= 11)
    inputs: list[Array | None] = [
        _x(seed, *((2, 3) if turns_a else (3, 2))),
        _x(seed + 1, *((4, 2) if turns_b else (2, 4))),
    ]
    inputs += [] if bias is None else [_x(seed + 2, *bias)]
    given_: dict[str, Any] = {"transA": int(turns_a), "transB": int(turns_b)}
    assert_agrees("Gemm", inputs, opset, tolerance=1e-4, alpha=scale, beta=2 * scale, **given_)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij, jk", [(2, 3), (3, 4)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("bhwc,hkc->bhwk", [(1, 2, 3, 4), (2, 5, 4)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
    ],
)
def test_sums_of_products(equation: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = [_x(i, *shape) for i, shape in enumerate(shapes)]
    assert_agrees("Einsum", inputs, 12, equation=equation)


@pytest.mark.parametrize("opset", [7, 11, 12, 13])
@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.5), (None, 0.25), (-0.25, None), (0.5, -0.5)])
def test_clip(opset: int, low: float | None, high: float | None) -> None:
    x = _x(3, 4, 5)
    if opset < 11:
        if low == 0.5:
            pytest.skip("onnxruntime refuses ends that are the wrong way round")
        given_: dict[str, Any] = {n: v for n, v in (("min", low), ("max", high)) if v is not None}
        assert_agrees("Clip", [x], opset, **given_)
    else:
        ends = [None if v is None else np.array(v, np.float32) for v in (low, high)]
        assert_agrees("Clip", [x, *ends], opset, (1, 2))
        assert_agrees("Clip", [x, *ends], opset)


@pytest.mark.parametrize("opset", [7, 11, 13, 18])
def test_splits(opset: int) -> None:
    x = _x(1, 2, 5)
    if opset < 13:
        assert_agrees("Split", [x], opset, (), 2, axis=-1, split=[2, 3])
    else:
        assert_agrees("Split", [x, np.array([2, 3])], opset, (1,), 2, axis=-1)
    if opset == 18:
        assert_agrees("Split", [x], opset, (), 2, axis=1, num_outputs=2)


@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("op", ["Squeeze", "Unsqueeze"])
def test_axes_of_size_1(op: str, opset: int) -> None:
    x, axes = _x(1, 1, 3, 1), [0, 2]
    if opset < 13:
        assert_agrees(op, [x], opset, axes=axes)
    else:
        assert_agrees(op, [x, np.array(axes)], opset, (1,))


@pytest.mark.parametrize("opset", [7, 11, 13, 18])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pads(opset: int, mode: str) -> None:
    x, pads = _x(1, 4, 5), [1, 2, 0, 3]
    if opset < 11:
        assert_agrees("Pad", [x], opset, mode=mode, pads=pads, **_value(mode))
    else:
        number = np.array(1.5, np.float32) if mode == "constant" else None
        assert_agrees("Pad", [x, np.array(pads), number], opset, (1, 2), mode=mode)
    if opset == 18:
        assert_agrees("Pad", [x, np.array([1, 2]), None, np.array([-1])], opset, (1, 3), mode=mode)


def _value(mode: str) -> dict[str, Any]:
    return {"value": 1.5} if mode == "constant" else {}


@pytest.mark.parametrize("opset", [7, 10, 11])
def test_the_largest(opset: int) -> None:
    x = _x(4, 3, 6)
    if opset < 10:
        assert_agrees("TopK", [x], opset, (), 2, k=2, axis=-1)
    else:
        assert_agrees("TopK", [x, np.array([2])], opset, (1,), 2, axis=0)


@pytest.mark.parametrize(
    ("base", "power"), [("f4", "i8"), ("i4", "f4"), ("i8", "i4"), ("f8", "f4"), ("i4", "i8")]
)
def test_powers_of_two_types(base: str, power: str) -> None:
    x, y = np.array([1, 2, 3, 7], base), np.array([0, 1, 3, 2], power)
    assert_agrees("Pow", [x, y], 13)


@pytest.mark.parametrize("kind", ["i4", "i8", "u1", "i1", "f4"])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(kind: str, fmod: int) -> None:
    fmod = 1 if kind == "f4" else fmod
    sign = 1 if kind == "u1" else -1
    x, y = np.array([7, 7 * sign, 6, 5 * sign], kind), np.array([3, 3, 4 * sign, 4 * sign], kind)
    assert_agrees("Mod", [x, y], 13, fmod=fmod)


@given(SEEDS, st.sampled_from(["none", "add", "mul", "min", "max"]), st.sampled_from([0, 1]))
def test_scatters(seed: int, reduction: str, axis: int) -> None:
    rng = np.random.default_rng(seed)
    x, updates = _x(seed, 4, 5), _x(seed + 1, 2, 5)
    indices = rng.permuted(np.tile(np.arange(4) - 2, (2, 1)), axis=1)
    inputs = [x, indices, updates[:, :4]]
    if axis == 0:  # no place twice
        inputs = [x, np.stack([rng.integers(0, 2, 5), rng.integers(2, 4, 5)]), updates]
    assert_agrees("ScatterElements", inputs, 18, axis=axis, reduction=reduction)
    rows = [x, rng.permutation(4)[:2, None], updates]
    assert_agrees("ScatterND", rows, 18, reduction=reduction)


@pytest.mark.parametrize("opset", [7, 10, 12, 13, 22])
def test_the_mask_of_a_dropout(opset: int) -> None:
    assert_agrees("Dropout", [_x(1, 2, 3)], opset, (), 2)


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize("kind", ["f4", "i4", "u1"])
def test_numbers_moved_towards_zero(kind: str, opset: int) -> None:
    x = np.array([0, 1, 2, 5], kind) if kind == "u1" else np.array([-3, -1, 0, 1, 4], kind)
    assert_agrees("Shrink", [x], opset, bias=1.0, lambd=1.5)


@pytest.mark.parametrize("opset", [7, 9, 10])
def test_upsampling(opset: int) -> None:
    x, scales = _x(1, 1, 2, 3, 4), [1.0, 1.0, 2.0, 3.0]
    if opset < 9:
        assert_agrees("Upsample", [x], opset, scales=scales)
    else:
        op = "Upsample" if opset == 9 else "Resize"
        assert_agrees(op, [x, np.array(scales, np.float32)], opset, (1,))


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_older_names_and_axes(opset: int) -> None:
    x, indices = _x(1, 3, 4), np.array([[0, 1, 2, 0]])
    op = "Scatter" if opset < 11 else "ScatterElements"
    assert_agrees(op, [x, indices, _x(2, 1, 4)], opset, axis=0)
    depth, values = np.array([5]), np.array([0.0, 1.0], np.float32)
    assert_agrees("OneHot", [np.array([1, 3]), depth, values], opset, (1,))
    if opset >= 11:
        assert_agrees("CumSum", [x, np.array(1)], opset, (1,), reverse=1)
        assert_agrees("Range", [np.array(0), np.array(7), np.array(2)], opset, (0, 1, 2))


@pytest.mark.parametrize("opset", [9, 13, 19, 23])
@pytest.mark.parametrize("to", [1, 6, 7, 9, 10, 11])
def test_casts(opset: int, to: int) -> None:
    assert_agrees("Cast", [np.array([0.0, 1.5, -2.5, 100.0], np.float32)], opset, to=to)


@pytest.mark.parametrize("opset", [7, 21])
def test_norms_of_planes(opset: int) -> None:
    assert_agrees("GlobalLpPool", [_x(1, 2, 3, 4, 5)], opset, p=2)
