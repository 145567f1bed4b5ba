"""Operations that move parts, and those that look at single elements, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from tests.core.onnx.single import Array, assert_agrees, by_nacre, single

SEEDS = st.integers(0, 1 << 16)


def _x(seed: int, *dims: int) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


@given(SEEDS, st.tuples(*[st.integers(1, 6)] * 2), st.tuples(*[st.integers(1, 9)] * 2))
def test_center_crop_pad(seed: int, dims: tuple[int, int], wanted: tuple[int, int]) -> None:
    inputs = [_x(seed, 2, *dims), np.array(wanted)]
    assert_agrees("CenterCropPad", inputs, 18, (1,), axes=[1, -1])


@given(SEEDS, st.integers(1, 4), st.integers(1, 5), st.booleans(), st.booleans())
def test_reverse_sequence(
    seed: int, batch: int, steps: int, is_first: bool, is_known: bool
) -> None:
    dims = (batch, steps, 2) if is_first else (steps, batch, 2)
    lengths = np.random.default_rng(seed).integers(1, steps + 1, batch)
    given_ = {"batch_axis": 0, "time_axis": 1} if is_first else {"batch_axis": 1, "time_axis": 0}
    bound = (1,) if is_known else ()
    assert_agrees("ReverseSequence", [_x(seed, *dims), lengths], 10, bound, **given_)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1, 3])
def test_tensor_scatter(mode: str, axis: int) -> None:
    dims = [2, 3, 4, 5]
    part = list(dims)
    part[axis] = 2
    starts = np.array([0, dims[axis] - (2 if mode == "linear" else 1)])
    cache, update = _x(1, *dims), _x(2, *part)
    raw = single("TensorScatter", [cache, update, starts], 24, mode=mode, axis=axis)
    (found,) = by_nacre(raw, [cache, update, starts])
    expected = np.moveaxis(cache.copy(), axis, 1)
    new = np.moveaxis(update, axis, 1)
    for n, step in np.ndindex(2, 2):
        expected[n, (starts[n] + step) % dims[axis]] = new[n, step]
    assert np.array_equal(found, np.moveaxis(expected, 1, axis))


@pytest.mark.heavy("large on purpose")
@given(SEEDS, st.integers(1, 5), st.sampled_from([-1, 0, 1, -2]), st.sampled_from([9, 11]))
def test_one_hot(seed: int, depth: int, axis: int, opset: int) -> None:
    # Also beyond both ends: such an index is nowhere.
    indices = np.random.default_rng(seed).integers(-depth - 3, depth + 3, (2, 3))
    inputs = [indices, np.array(depth), np.array([0.5, 2.0], np.float32)]
    assert_agrees("OneHot", inputs, opset, (1,), axis=axis)


@given(SEEDS, st.integers(1, 5), st.sampled_from([(), (2,), (2, 3)]))
def test_determinants(seed: int, size: int, batch: tuple[int, ...]) -> None:
    x = _x(seed, *batch, size, size)
    (found,) = by_nacre(single("Det", [x], 11), [x])
    assert found.shape == batch
    np.testing.assert_allclose(found, np.linalg.det(x.astype(np.float64)), 1e-3, 1e-3)


@pytest.mark.parametrize(
    "rows", [[[0, 1], [1, 0]], [[0, 0], [1, 2]], [[0, 2, 0], [0, 0, 3], [4, 0, 0]]]
)
def test_determinants_with_zeros_at_the_corner(rows: list[list[int]]) -> None:
    x = np.array(rows, np.float32)
    (found,) = by_nacre(single("Det", [x], 11), [x])
    assert found == round(np.linalg.det(x))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8, np.uint32, np.int64])
@pytest.mark.parametrize("bound", [(), (1,)])
def test_shifts_beyond_all_bits(direction: str, kind: type, bound: tuple[int, ...]) -> None:
    bits = np.iinfo(kind).bits
    amounts: Array = np.array([0, 1, bits - 1, bits, bits + 1, 100], kind)
    x: Array = np.array([[5], [np.iinfo(kind).max], [np.iinfo(kind).min]], kind)
    raw = single("BitShift", [x, amounts], 28, direction=direction)
    (found,) = by_nacre(raw, [x, amounts], bound)
    for (row, column), own in np.ndenumerate(found):
        shift = int(amounts[column])
        value = int(x[row, 0])
        exact = value >> shift if direction == "RIGHT" else value << min(shift, 200)
        assert own == np.array(exact & ((1 << bits) - 1), np.uint64).astype(kind)


def test_a_part_without_elements_plays_no_part() -> None:
    """Split leaves nothing over; Concat goes on without it."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=1),
        helper.make_node("Concat", ["b", "a"], ["y"], axis=1),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])]
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [2], [3, 0])
    graph = helper.make_graph(nodes, "g", inputs, outputs, [sizes])
    raw = helper.make_model(graph).SerializeToString()
    from nacre.core.evaluation.evaluate import evaluate
    from nacre.core.onnx.importer import from_onnx

    x = _x(1, 2, 3)
    assert np.array_equal(evaluate(from_onnx(raw), {"x": x})[0], x)


@given(SEEDS, st.sampled_from(["constant", "edge", "reflect"]))
def test_pads_with_a_number_that_is_computed(seed: int, mode: str) -> None:
    inputs = [_x(seed, 3, 4), np.array([1, 0, 2, 1]), _x(seed)]
    bound = (1,) if mode == "constant" else (1, 2)
    assert_agrees("Pad", inputs, 13, bound, mode=mode)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_the_largest_of_truth_values(op: str) -> None:
    x = np.array([[True, False], [True, True], [False, False]])
    raw = single(op, [x, np.array([1])], 20, keepdims=0)
    expected = x.max(axis=1) if op == "ReduceMax" else x.min(axis=1)
    assert by_nacre(raw, [x, np.array([1])], (1,))[0].tolist() == expected.tolist()


@given(st.integers(-60, 60), st.sampled_from(["i4", "u4"]))
def test_what_does_not_fit_into_four_bits_loses_the_upper_ones(number: int, to: str) -> None:
    import ml_dtypes
    from onnx import TensorProto

    x = np.array([number + 0.25], np.float32)
    kind = TensorProto.INT4 if to == "i4" else TensorProto.UINT4
    (found,) = by_nacre(single("Cast", [x], 21, to=kind), [x])
    low = int(x[0]) & 15
    assert int(found[0]) == (low - 16 if to == "i4" and low > 7 else low)
    assert found.dtype == (ml_dtypes.int4 if to == "i4" else ml_dtypes.uint4)


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "given_", "told"),
    [
        ("ReverseSequence", 10, [_x(1, 2, 2), np.array([1, 1])], {"time_axis": 1}, "`time_axis`"),
        ("CenterCropPad", 18, [_x(1, 2), np.array([1, 1])], {}, "`shape` is"),
        ("Det", 11, [_x(1, 2, 3)], {}, "expected square matrices"),
        ("Det", 11, [_x(1, 65, 65)], {}, "expected at most 64"),
        ("BitShift", 11, [np.array([1], np.uint8)] * 2, {"direction": "UP"}, "LEFT or RIGHT"),
        ("OneHot", 11, [np.array([1]), np.array(0), _x(1, 2)], {}, "`depth` is 0"),
        ("TensorScatter", 24, [_x(1, 2, 3, 4), _x(1, 2, 4, 4)], {}, "in a cache of shape"),
    ],
)
def test_what_is_unsound(
    op: str, opset: int, inputs: list[Array], given_: dict[str, Any], told: str
) -> None:
    bound = (1,) if op in ("CenterCropPad", "OneHot") else ()
    with pytest.raises(InputError, match=told):
        by_nacre(single(op, inputs, opset, **given_), inputs, bound)
