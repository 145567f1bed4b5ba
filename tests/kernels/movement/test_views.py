"""View opcodes against element-by-element Python, and against onnxruntime."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Call, Fault, Quantization, Work
from nacre.kernels.movement.views import VIEWS
from nacre.kernels.numbers.quantization import per_tensor
from tests.kernels.oracle_views import (
    FLOATS,
    INTEGERS,
    LAYOUTS,
    Array,
    Dims,
    assert_same,
    dims,
    onnx_result,
    perform,
    random_values,
    result_of,
    seeds,
    tensor,
)

TRANSPOSE, RESHAPE, SLICE, CONCAT, SPLIT, PAD, GATHER = VIEWS

elems = st.sampled_from(INTEGERS + FLOATS)
layouts = st.sampled_from(LAYOUTS)
cuts = st.integers(-7, 7)


def places(shape: Dims) -> list[Dims]:
    return list(product(*(range(dim) for dim in shape)))


@given(st.data(), dims, elems, layouts, seeds)
def test_a_transposition(
    data: st.DataObject, shape: Dims, elem: str, layout: str, seed: int
) -> None:
    perm = tuple(data.draw(st.permutations(range(len(shape)))))
    x = random_values(elem, shape, seed, odd=True)
    expected = np.empty([shape[axis] for axis in perm], x.dtype)
    for place in places(shape):
        expected[tuple(place[axis] for axis in perm)] = x[place]

    found = result_of(TRANSPOSE, x, tensor(elem, shape), {"perm": perm}, layout=layout)

    assert_same(found, expected)


@given(dims, elems, layouts, seeds)
def test_a_reshape_keeps_the_order_of_elements(
    shape: Dims, elem: str, layout: str, seed: int
) -> None:
    x = random_values(elem, shape, seed, odd=True)
    target = (1, x.size) if len(shape) % 2 else (*shape[::-1], 1)

    attributes = {"target_shape": target}
    found = result_of(RESHAPE, x, tensor(elem, shape), attributes, layout=layout)

    expected = np.empty(target, x.dtype)
    for source, goal in zip(places(shape), places(target), strict=True):
        expected[goal] = x[source]
    assert_same(found, expected)


def test_a_reshape_of_a_strided_tensor_into_a_strided_one() -> None:
    x, y = np.arange(24).reshape(2, 12).astype(np.int8)[:, ::2], np.zeros((3, 8), np.int8)[:, ::2]
    call = Call((tensor("i8", x.shape),), (tensor("i8", y.shape),), {"target_shape": (3, 4)})

    assert RESHAPE.bind(call)([x], [y]) is None

    assert y.ravel().tolist() == list(range(0, 24, 2))


@st.composite
def slices(draw: st.DrawFn) -> tuple[Dims, dict[str, Any]]:
    shape = draw(dims)
    axes = draw(st.sets(st.integers(0, len(shape) - 1)))
    starts, ends, steps = [], [], []
    for axis in axes:
        parts = st.tuples(cuts, cuts, cuts.filter(bool))
        size = shape[axis]
        start, end, step = draw(parts.filter(lambda part: range(size)[slice(*part)]))  # noqa: B023
        starts.append(start)
        ends.append(end)
        steps.append(step)
    signed = tuple(axis - draw(st.sampled_from((0, len(shape)))) for axis in axes)
    attributes = {"starts": starts, "ends": ends, "steps": steps}
    return shape, {"axes": signed, **{name: tuple(part) for name, part in attributes.items()}}


@given(slices(), elems, layouts, seeds)
def test_a_slice_takes_what_python_takes(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)
    chosen = [list(range(dim)) for dim in shape]
    parts = zip(*(attributes[name] for name in ("axes", "starts", "ends", "steps")), strict=True)
    for axis, *part in parts:
        chosen[axis] = chosen[axis][slice(*part)]

    found = result_of(SLICE, x, tensor(elem, shape), attributes, layout=layout)

    taken = [x[place] for place in product(*chosen)]
    assert_same(found, np.array(taken, x.dtype).reshape([len(part) for part in chosen]))


@given(slices(), seeds)
def test_a_slice_is_that_of_onnxruntime(case: tuple[Dims, dict[str, Any]], seed: int) -> None:
    shape, attributes = case
    x = random_values("f32", shape, seed)
    extra = [np.array(attributes[name], np.int64) for name in ("starts", "ends", "axes", "steps")]
    (expected,) = onnx_result("Slice", [x, *extra], {})

    assert_same(result_of(SLICE, x, tensor("f32", shape), attributes), expected)


@given(dims, st.data(), elems, layouts, seeds)
def test_joining_and_cutting_are_inverse(
    shape: Dims, data: st.DataObject, elem: str, layout: str, seed: int
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    at = axis % len(shape)
    sizes = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    whole = random_values(elem, (*shape[:at], sum(sizes), *shape[at + 1 :]), seed, odd=True)
    ends = np.cumsum(sizes).tolist()
    parts = [whole.take(range(end - size, end), at) for size, end in zip(sizes, ends, strict=True)]
    types = [tensor(elem, part.shape) for part in parts]
    attributes = {"axis": axis, "split_sizes": sizes}

    found, fault = perform(
        SPLIT, [whole], [tensor(elem, whole.shape)], types, attributes, layout=layout
    )
    (joined,), other = perform(
        CONCAT, parts, types, [tensor(elem, whole.shape)], {"axis": axis}, layout=layout
    )

    assert fault is None
    assert other is None
    assert_same(joined, whole)
    for one, part in zip(found, parts, strict=True):
        assert_same(one, part)
    assert SPLIT.shape([whole.shape], attributes) == [part.shape for part in parts]
    assert CONCAT.shape([part.shape for part in parts], {"axis": axis}) == [whole.shape]


def test_joining_cutting_and_transposing_as_onnxruntime() -> None:
    a, b = random_values("i8", (2, 3, 4), 1), random_values("i8", (2, 2, 4), 2)
    types = [tensor("i8", a.shape), tensor("i8", b.shape)]
    (expected,) = onnx_result("Concat", [a, b], {"axis": -2})
    (joined,), _ = perform(CONCAT, [a, b], types, [tensor("i8", (2, 5, 4))], {"axis": -2})
    assert_same(joined, expected)

    sizes = np.array([1, 3], np.int64)
    halves = onnx_result("Split", [a, sizes], {"axis": 2}, [a.dtype] * 2)
    results = [tensor("i8", (2, 3, 1)), tensor("i8", (2, 3, 3))]
    found, _ = perform(SPLIT, [a], types[:1], results, {"axis": 2, "split_sizes": (1, 3)})
    for half, part in zip(found, halves, strict=True):
        assert_same(half, part)

    (turned,) = onnx_result("Transpose", [a], {"perm": (2, 0, 1)})
    assert_same(result_of(TRANSPOSE, a, types[0], {"perm": (2, 0, 1)}), turned)


def padded(x: Array, pads: Dims, mode: str, constant: Any) -> Array:  # noqa: ANN401
    rank = x.ndim
    y = np.empty([pads[a] + x.shape[a] + pads[rank + a] for a in range(rank)], x.dtype)
    for place in places(y.shape):
        source = [at - pads[axis] for axis, at in enumerate(place)]
        if mode == "edge":
            source = [min(max(at, 0), size - 1) for at, size in zip(source, x.shape, strict=True)]
        if mode == "reflect":
            source = [
                size - 1 - abs(size - 1 - abs(at)) for at, size in zip(source, x.shape, strict=True)
            ]
        inside = all(0 <= at < size for at, size in zip(source, x.shape, strict=True))
        y[place] = x[tuple(source)] if inside else constant
    return y


@st.composite
def paddings(draw: st.DrawFn) -> tuple[Dims, dict[str, Any]]:
    shape, mode = draw(dims), draw(st.sampled_from(["constant", "edge", "reflect"]))
    most = [dim - 1 if mode == "reflect" else 2 for dim in shape]
    pads = tuple(draw(st.integers(0, limit)) for limit in most * 2)
    return shape, {"pads": pads, "mode": mode}


@given(paddings(), elems, layouts, seeds)
def test_padding(case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)
    expected = padded(x, attributes["pads"], attributes["mode"], 5)

    attributes = {**attributes, "constant_value": 5.0}
    found = result_of(PAD, x, tensor(elem, shape), attributes, layout=layout)

    assert_same(found, expected)


@given(paddings(), seeds)
def test_padding_is_that_of_onnxruntime(case: tuple[Dims, dict[str, Any]], seed: int) -> None:
    shape, attributes = case
    x = random_values("f32", shape, seed)
    pads = np.array(attributes["pads"], np.int64)
    inputs = [x, pads, np.array(2.5, np.float32)]
    (expected,) = onnx_result("Pad", inputs, {"mode": attributes["mode"]})

    attributes = {**attributes, "constant_value": 2.5}
    assert_same(result_of(PAD, x, tensor("f32", shape), attributes), expected)


@pytest.mark.parametrize(
    ("elem", "quant", "constant", "expected"),
    [
        ("i8", None, 2.5, 2),
        ("i8", None, 3.5, 4),
        ("i8", None, 1e9, 127),
        ("i4", None, -100.0, -8),
        ("u8", None, -1.0, 0),
        ("i32", None, 3e9, 2**31 - 1),
        ("u32", None, float("inf"), 2**32 - 1),
        ("i16", None, float("nan"), 0),
        ("i8", per_tensor(0.5, 3), 0.0, 3),
        ("i8", per_tensor(0.5, 3), -1.0, 1),
        ("i8", per_tensor(0.5, 3), 1e9, 127),
        ("f16", None, 1e9, float("inf")),
        ("f16", None, 2049.0, 2048.0),
        ("bf16", None, 257.0, 256.0),
    ],
)
def test_the_constant_is_a_real_value(
    elem: str, quant: Quantization | None, constant: float, expected: float
) -> None:
    attributes = {"pads": (1, 0), "mode": "constant", "constant_value": constant}
    x = np.ones(1, tensor(elem, (1,)).dtype)

    for kept in (quant, None):
        found = result_of(PAD, x, tensor(elem, (1,), quant), attributes, quant=kept)
        assert found.astype(np.float64).tolist() == [expected, 1]


def test_the_constant_is_nothing_if_it_is_left_out() -> None:
    x, quant = np.ones(1, np.int8), per_tensor(0.25, -9)
    attributes = {"pads": (1, 1), "mode": "constant"}

    assert result_of(PAD, x, tensor("i8", (1,)), attributes).tolist() == [0, 1, 0]
    assert result_of(PAD, x, tensor("i8", (1,), quant), attributes).tolist() == [-9, 1, -9]


def test_a_constant_is_quantised_by_each_channel() -> None:
    quant = Quantization(
        np.array([1, 0.5], np.float32), np.array([0, 10], np.int32), axis=1, group_size=2
    )
    x = np.zeros((1, 3), np.int8)
    attributes = {"pads": (1, 1, 0, 0), "mode": "constant", "constant_value": 2.0}

    # Along the axis of the scales the first and last of them stand for what is new.
    found = result_of(PAD, x, tensor("i8", (1, 3), quant), attributes)

    assert found.tolist() == [[2, 2, 2, 14], [2, 0, 0, 0]]


@st.composite
def gatherings(draw: st.DrawFn) -> tuple[Dims, Dims, int]:
    shape = draw(dims)
    indices = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    return shape, indices, draw(st.integers(-len(shape), len(shape) - 1))


@given(gatherings(), elems, st.sampled_from(INTEGERS), layouts, seeds)
def test_gathering(
    case: tuple[Dims, Dims, int], elem: str, by: str, layout: str, seed: int
) -> None:
    shape, index_shape, axis = case
    at = axis % len(shape)
    x = random_values(elem, shape, seed, odd=True)
    picked = np.random.default_rng(seed).integers(0, shape[axis], index_shape)
    result = GATHER.shape([shape, index_shape], {"axis": axis})
    assert result == [shape[:at] + index_shape + shape[at + 1 :]]
    expected = np.empty(result[0], x.dtype)
    for place in places(expected.shape):
        inner = place[at : at + len(index_shape)]
        source = (*place[:at], int(picked[inner]), *place[at + len(index_shape) :])
        expected[place] = x[source]

    types, output = [tensor(elem, shape), tensor(by, index_shape)], tensor(elem, result[0])
    (found,), fault = perform(GATHER, [x, picked], types, [output], {"axis": axis}, layout=layout)

    assert fault is None
    assert_same(found, expected)


@given(gatherings(), seeds)
def test_gathering_is_that_of_onnxruntime(case: tuple[Dims, Dims, int], seed: int) -> None:
    shape, index_shape, axis = case
    x = random_values("i8", shape, seed)
    picked = np.random.default_rng(seed).integers(0, shape[axis], index_shape, np.int32)
    (expected,) = onnx_result("Gather", [x, np.asarray(picked)], {"axis": axis})

    types = [tensor("i8", shape), tensor("i32", index_shape)]
    (found,), _ = perform(
        GATHER, [x, picked], types, [tensor("i8", expected.shape)], {"axis": axis}
    )

    assert_same(found, expected)


@pytest.mark.parametrize(
    ("by", "bad"), [("i8", -1), ("i4", -8), ("i32", 3), ("u8", 200), ("u32", 2**32 - 1)]
)
def test_an_index_outside_of_the_axis_is_a_fault_and_nothing_is_written(by: str, bad: int) -> None:
    x, indices = np.ones((2, 3), np.int8), np.zeros((2, 2), np.int64)
    indices[1, 0] = indices[1, 1] = bad
    types, output = [tensor("i8", (2, 3)), tensor(by, (2, 2))], tensor("i8", (2, 2, 2))

    (found,), fault = perform(GATHER, [x, indices], types, [output], {"axis": -1})

    assert fault == Fault("index", f"index is {bad}, expected 0 to 2 along axis 1", (1, 0))
    assert fault.is_fatal
    assert set(found.ravel().tolist()) == {77}


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    [
        ("transpose", [(2, 3)], {"perm": (0, 0)}),
        ("transpose", [(2, 3)], {"perm": (0,)}),
        ("transpose", [(2, 3)], {}),
        ("transpose", [None], {"perm": (0,)}),
        ("reshape", [(2, 3)], {"target_shape": (7,)}),
        ("reshape", [(2, 3)], {"target_shape": (-2, -3)}),
        ("slice", [(4,)], {"starts": (0,), "ends": (4,), "axes": (0,), "steps": (0,)}),
        ("slice", [(4,)], {"starts": (0,), "ends": (4,), "axes": (1,), "steps": (1,)}),
        ("slice", [(4,)], {"starts": (2,), "ends": (2,), "axes": (0,), "steps": (1,)}),
        ("slice", [(4,)], {"starts": (2,), "ends": (), "axes": (0,), "steps": (1,)}),
        ("concat", [(2, 3), (2, 4)], {"axis": 0}),
        ("concat", [(2, 3), (2, 3)], {"axis": 2}),
        ("concat", [(2, 3), None], {"axis": 0}),
        ("concat", [], {"axis": 0}),
        ("split", [(4,)], {"axis": 0, "split_sizes": (1, 2)}),
        ("split", [(4,)], {"axis": 1, "split_sizes": (2, 2)}),
        ("pad", [(2, 3)], {"pads": (1, 1), "mode": "edge"}),
        ("pad", [(2,)], {"pads": (-1, 0), "mode": "edge"}),
        ("pad", [(2,)], {"pads": (0, 2), "mode": "reflect"}),
        ("gather", [(2,), (3,)], {"axis": 1}),
        ("gather", [(2,)], {"axis": 0}),
        ("gather", [(2,), None], {"axis": 0}),
    ],
)
def test_what_does_not_fit_has_no_shape(
    name: str, inputs: list[Dims | None], attributes: dict[str, Any]
) -> None:
    (primitive,) = (row for row in VIEWS if row.name == name)

    assert primitive.shape(inputs, attributes) is None


def test_the_work_is_every_element_of_the_outputs() -> None:
    halves = (tensor("i8", (1, 3)), tensor("i8", (3, 3)))
    attributes = {"axis": 0, "split_sizes": (1, 3)}

    assert SPLIT.work(Call((tensor("i8", (4, 3)),), halves, attributes)) == Work(elements=12)
