"""Reductions against element-by-element Python, and against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Call, Primitive, Work
from nacre.kernels.numbers.quantization import dequantizer, per_tensor, quantizer
from nacre.kernels.reductions.reductions import REDUCTIONS
from tests.kernels.oracle_views import (
    ELEMENTS,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    Array,
    Dims,
    assert_same,
    dims,
    onnx_result,
    random_values,
    result_of,
    seeds,
    tensor,
)

SUM, MAX, MIN, ARGMAX, ARGMIN = REDUCTIONS

elems = st.sampled_from(INTEGERS + FLOATS)
layouts = st.sampled_from(LAYOUTS)


@st.composite
def reductions(draw: st.DrawFn) -> tuple[Dims, dict[str, Any]]:
    shape = draw(dims)
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    signed = tuple(axis - draw(st.sampled_from((0, len(shape)))) for axis in axes)
    return shape, {"axes": signed, "keepdims": draw(st.booleans())}


def groups(x: Array, axes: Dims) -> dict[Dims, list[Any]]:
    """The elements that fall together, in row-major order, by their place with size 1 left."""
    reduced = {axis % x.ndim for axis in axes}
    found: dict[Dims, list[Any]] = {}
    for place in product(*(range(dim) for dim in x.shape)):
        key = tuple(0 if axis in reduced else at for axis, at in enumerate(place))
        found.setdefault(key, []).append(x[place])
    return found


def reduced(
    x: Array,
    attributes: dict[str, Any],
    pick: Callable[[list[Any]], Any],
    dtype: npt.DTypeLike | None = None,
) -> Array:
    values = [pick(members) for members in groups(x, attributes["axes"]).values()]
    shape = SUM.shape([x.shape], attributes)
    assert shape is not None
    with np.errstate(all="ignore"):
        return np.array(values).astype(dtype or x.dtype).reshape(shape[0])


def added_up(members: list[Any]) -> np.float32:
    total = np.float32(members[0])
    with np.errstate(all="ignore"):
        for member in members[1:]:
            total = total + np.float32(member)
    return total


@given(reductions(), st.sampled_from(INTEGERS), layouts, seeds)
def test_sums_of_integers_wrap(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    shape, attributes = case
    element = ELEMENTS[elem]
    x = random_values(elem, shape, seed)
    lowest, span = int(element.lowest), 1 << element.bits

    def pick(members: list[Any]) -> int:
        return (sum(int(member) for member in members) - lowest) % span + lowest

    found = result_of(SUM, x, tensor(elem, shape), attributes, layout=layout)

    assert_same(found, reduced(x, attributes, pick))


@given(reductions(), st.sampled_from(FLOATS), layouts, seeds)
def test_ordered_sums_of_floats_add_one_by_one_and_round_once(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)

    found = result_of(SUM, x, tensor(elem, shape), attributes, ordered=True, layout=layout)

    assert_same(found, reduced(x, attributes, added_up))


def test_the_order_of_a_sum_is_that_of_the_elements_and_not_of_the_axes() -> None:
    x = np.array([[2**25, 1], [-(2**25), 1]], np.float32)

    for axes in ((0, 1), (1, 0), (-1, 0)):
        attributes = {"axes": axes, "keepdims": False}
        found = result_of(SUM, x, tensor("f32", x.shape), attributes, ordered=True)
        assert found.tolist() == [1]  # the first 1 is lost; column by column none would be


@given(reductions(), layouts, seeds)
def test_sums_of_floats_have_the_error_of_adding_in_f32(
    case: tuple[Dims, dict[str, Any]], layout: str, seed: int
) -> None:
    shape, attributes = case
    x = random_values("f32", shape, seed)
    exact = reduced(x, attributes, lambda members: fsum(map(float, members)), np.float64)
    sizes = reduced(np.abs(x), attributes, lambda members: fsum(map(float, members)), np.float64)

    found = result_of(SUM, x, tensor("f32", shape), attributes, layout=layout)

    assert np.all(np.abs(found - exact) <= sizes * x.size * 2.0**-24)


@given(reductions(), st.sampled_from(FLOATS), st.booleans())
def test_sums_of_odd_values_give_no_warning(
    case: tuple[Dims, dict[str, Any]], elem: str, ordered: bool
) -> None:
    shape, attributes = case
    for value in (np.inf, np.nan, ELEMENTS[elem].highest):
        x = np.full(shape, value, tensor(elem, shape).dtype)
        found = result_of(SUM, x, tensor(elem, shape), attributes, ordered=ordered)
        if x.size > found.size:
            last = np.nan if np.isnan(value) else np.inf
            np.testing.assert_array_equal(found.astype(np.float32), last)


@given(reductions(), st.booleans(), seeds)
def test_sums_of_quantised_tensors_are_those_of_real_values(
    case: tuple[Dims, dict[str, Any]], ordered: bool, seed: int
) -> None:
    shape, attributes = case
    coarse, fine = per_tensor(0.5, 3), per_tensor(2.0, -7)  # exact in any order
    x = random_values("i8", shape, seed)
    real = dequantizer(tensor("i8", shape, coarse))(x)
    total = reduced(real, attributes, added_up)
    expected = quantizer(tensor("i8", total.shape, fine))(total)

    type_ = tensor("i8", shape, coarse)
    found = result_of(SUM, x, type_, attributes, quant=fine, ordered=ordered)

    assert_same(found, expected)


def largest(members: list[Any]) -> Any:  # noqa: ANN401
    return max(members, key=lambda v: (v != v, v))


def smallest(members: list[Any]) -> Any:  # noqa: ANN401
    return min(members, key=lambda v: (v == v, v))


@pytest.mark.parametrize(("primitive", "pick"), [(MAX, largest), (MIN, smallest)])
@given(case=reductions(), elem=elems, layout=layouts, seed=seeds)
def test_the_largest_and_the_smallest(
    primitive: Primitive,
    pick: Callable[[list[Any]], Any],
    case: tuple[Dims, dict[str, Any]],
    elem: str,
    layout: str,
    seed: int,
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)

    found = result_of(primitive, x, tensor(elem, shape), attributes, layout=layout)

    assert_same(found, reduced(x, attributes, pick))


@given(reductions(), seeds)
def test_the_largest_between_scales_is_that_of_real_values(
    case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    coarse, fine = per_tensor(0.5, 3), per_tensor(0.3, -7)
    x = random_values("i8", shape, seed)
    best = reduced(dequantizer(tensor("i8", shape, coarse))(x), attributes, largest)
    type_ = tensor("i8", shape, coarse)

    found = result_of(MAX, x, type_, attributes, quant=fine)
    raw = result_of(MAX, x, type_, attributes, quant=per_tensor(0.5, 3))

    assert_same(found, quantizer(tensor("i8", best.shape, fine))(best))
    assert_same(raw, reduced(x, attributes, largest))


@st.composite
def searches(draw: st.DrawFn) -> tuple[Dims, dict[str, Any]]:
    shape = draw(dims)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return shape, {"axis": axis, "keepdims": draw(st.booleans())}


@pytest.mark.parametrize(("primitive", "pick"), [(ARGMAX, largest), (ARGMIN, smallest)])
@given(case=searches(), elem=elems, to=st.sampled_from(INTEGERS), layout=layouts, seed=seeds)
def test_where_the_largest_and_the_smallest_lie_first(
    primitive: Primitive,
    pick: Callable[[list[Any]], Any],
    case: tuple[Dims, dict[str, Any]],
    elem: str,
    to: str,
    layout: str,
    seed: int,
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)
    if seed % 2:
        x = (np.abs(x.astype(np.float64)) > 4).astype(x.dtype)  # many ties

    def first(members: list[Any]) -> int:
        best = pick(members)
        return next(i for i, v in enumerate(members) if v == best or (v != v and best != best))

    found = result_of(primitive, x, tensor(elem, shape), attributes, elem=to, layout=layout)

    along = {"axes": (attributes["axis"],), "keepdims": attributes["keepdims"]}
    assert_same(found, reduced(x, along, first, tensor(to, ()).dtype))


def test_a_position_beyond_the_output_type_is_its_highest_value() -> None:
    x = np.arange(300, dtype=np.int32)
    attributes = {"axis": 0, "keepdims": False}

    for elem, last in (("i4", 7), ("i8", 127), ("u8", 255), ("i16", 299)):
        assert result_of(ARGMAX, x, tensor("i32", x.shape), attributes, elem=elem) == last


@pytest.mark.sampled(3)
@pytest.mark.parametrize("elem", ["i32", "f32"])
@pytest.mark.parametrize(
    ("primitive", "op"), [(SUM, "ReduceSum"), (MAX, "ReduceMax"), (MIN, "ReduceMin")]
)
@given(case=reductions(), seed=seeds)
def test_reductions_are_those_of_onnxruntime(
    elem: str, primitive: Primitive, op: str, case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed)
    if elem == "i32":
        x //= 1024  # what onnxruntime does when a sum wraps is its own
    inputs = [x, np.array(attributes["axes"], np.int64)]
    (expected,) = onnx_result(op, inputs, {"keepdims": int(attributes["keepdims"])})

    found = result_of(primitive, x, tensor(elem, shape), attributes)

    expected = expected.reshape(found.shape)
    if elem == "i32" or primitive is not SUM:
        assert_same(found, expected)
    else:
        bound = float(np.abs(x).sum()) * x.size * 2.0**-23
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize(("primitive", "op"), [(ARGMAX, "ArgMax"), (ARGMIN, "ArgMin")])
@given(case=searches(), seed=seeds)
def test_positions_are_those_of_onnxruntime(
    primitive: Primitive, op: str, case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    x = np.rint(random_values("f32", shape, seed) / 8)  # many ties
    numbers = {"axis": attributes["axis"], "keepdims": int(attributes["keepdims"])}
    (expected,) = onnx_result(op, [x], numbers, [np.int64])

    found = result_of(primitive, x, tensor("f32", shape), attributes, elem="i32")

    assert_same(found, expected.reshape(found.shape).astype(np.int32))


def test_all_axes_leave_one_element() -> None:
    x = np.arange(6, dtype=np.int8).reshape(2, 3)

    def total(keepdims: bool) -> Array:
        attributes = {"axes": (0, 1), "keepdims": keepdims}
        return result_of(SUM, x, tensor("i8", x.shape), attributes)

    assert total(keepdims=False).tolist() == [15]
    assert total(keepdims=True).tolist() == [[15]]


@pytest.mark.parametrize("elem", ["i4", "i8", "f16", "f32"])
@pytest.mark.parametrize("primitive", [SUM, MAX, MIN])
@pytest.mark.parametrize("ordered", [False, True])
def test_no_axis_leaves_everything(primitive: Primitive, elem: str, ordered: bool) -> None:
    x = random_values(elem, (2, 3), 1)
    attributes = {"axes": (), "keepdims": False}

    assert_same(result_of(primitive, x, tensor(elem, (2, 3)), attributes, ordered=ordered), x)


def test_what_does_not_fit_has_no_shape() -> None:
    kept = {"keepdims": True}
    for axes in [(2,), (0, 0), (1, -1), 1, None]:
        assert SUM.shape([(2, 3)], {"axes": axes, **kept}) is None
    assert SUM.shape([(2, 3)], {"axes": (0,)}) is None
    assert SUM.shape([None], {"axes": (0,), **kept}) is None
    for axis in [2, -3, (0,), None]:
        assert ARGMAX.shape([(2, 3)], {"axis": axis, **kept}) is None
    assert ARGMAX.shape([None], {"axis": 0, **kept}) is None


def test_the_work_is_every_element_of_the_input() -> None:
    call = Call((tensor("i8", (4, 3)),), (tensor("i8", (3,)),), {"axis": 0, "keepdims": False})

    assert {row.name: row.work(call) for row in REDUCTIONS} == {
        row.name: Work(elements=12) for row in REDUCTIONS
    }
