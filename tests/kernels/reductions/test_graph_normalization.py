"""Normalisations of graphs against f64 arithmetic of their formulas, torch and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.oracle_graph_layers import (
    FLOATS,
    assert_in_core,
    assert_near,
    assert_refused,
    compute,
    reason,
    values,
    work,
)
from tests.kernels.oracle_views import LAYOUTS, Array, Dims, onnx_result, seeds

# In ulps of f32 (f64) at the magnitudes that `magnitude_of` says, for the sizes of these tests.
ULPS = 8.0

elems, layouts = st.sampled_from(FLOATS), st.sampled_from(LAYOUTS)
Case = tuple[list[Dims], dict[str, Any]]


@st.composite
def softmaxes(draw: st.DrawFn) -> Case:
    shape = draw(shapes(1))
    return [shape], {"axis": draw(st.integers(-len(shape), len(shape) - 1))}


def shapes(least: int) -> st.SearchStrategy[Dims]:
    return st.lists(st.integers(1, 4), min_size=least, max_size=4).map(tuple)


@st.composite
def trailing(draw: st.DrawFn, most: int = 2) -> Case:
    shape = draw(shapes(1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    rest = [shape[axis % len(shape) :]] * draw(st.integers(0, most))
    return [shape, *rest], {"axis": axis, "epsilon": draw(st.sampled_from([1e-5, 1e-2]))}


@st.composite
def grouped(draw: st.DrawFn, least: int = 2) -> Case:
    groups, per_group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    spatial = draw(st.lists(st.integers(1, 3), min_size=least - 2, max_size=2))
    shape = (draw(st.integers(1, 2)), groups * per_group, *spatial)
    rest = [shape[1:2]] * draw(st.integers(0, 2))
    return [shape, *rest], {"groups": groups}


@st.composite
def instances(draw: st.DrawFn) -> Case:
    arrays, _ = draw(grouped(3))
    return arrays, {"epsilon": 1e-3}


@st.composite
def batches(draw: st.DrawFn) -> Case:
    shape = draw(shapes(1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return [shape, *[(shape[axis],)] * 4], {"axis": axis}


@st.composite
def responses(draw: st.DrawFn) -> Case:
    shape = draw(shapes(2))
    return [shape], {
        "size": draw(st.integers(1, 7)),
        "alpha": draw(st.sampled_from([1e-4, 0.5])),
        "beta": draw(st.sampled_from([0.75, 0.5])),
    }


CASES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "Softmax": softmaxes,
    "LogSoftmax": softmaxes,
    "LayerNorm": trailing,
    "RmsNorm": lambda: trailing(1),
    "GroupNorm": grouped,
    "InstanceNorm": instances,
    "BatchNorm": batches,
    "Lrn": responses,
}


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    result: Array = powers / powers.sum(axis=axis, keepdims=True)
    return np.where((x == -np.inf).all(axis=axis, keepdims=True), 0.0, result)


def normalised(x: Array, axes: Dims, epsilon: float, is_centred: bool = True) -> Array:
    mean = x.mean(axis=axes, keepdims=True) if is_centred else 0.0
    square = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    result: Array = (x - mean) / np.sqrt(square + epsilon)
    return result


def by_channel(x: Array, parameters: Sequence[Array], axis: int = 1) -> list[Array]:
    target = [1] * x.ndim
    target[axis] = -1
    return [p.reshape(target) for p in parameters]


def moved(x: Array, parameters: Sequence[Array]) -> Array:
    for operation, parameter in zip((np.multiply, np.add), parameters, strict=False):
        x = operation(x, parameter)
    return x


def expected(op: str, arrays: Sequence[Array], attributes: dict[str, Any]) -> Array:
    """The formula of each op in f64."""
    x, *rest = (array.astype(np.float64) for array in arrays)
    epsilon, axis = attributes.get("epsilon", 1e-5), attributes.get("axis", 1)
    tail = tuple(range(axis % x.ndim, x.ndim))
    if op == "Softmax":
        return softmax(x, axis)
    if op == "LogSoftmax":
        top = x.max(axis=axis, keepdims=True)
        total: Array = x - top - np.log(np.exp(x - top).sum(axis=axis, keepdims=True))
        return total
    if op in ("LayerNorm", "RmsNorm"):
        return moved(normalised(x, tail, epsilon, op == "LayerNorm"), rest)
    if op in ("GroupNorm", "InstanceNorm"):
        groups: int = attributes.get("groups") or x.shape[1]
        split = x.reshape(x.shape[0], groups, -1)
        return moved(normalised(split, (2,), epsilon).reshape(x.shape), by_channel(x, rest))
    if op == "BatchNorm":
        scale, bias, mean, variance = by_channel(x, rest, axis)
        result: Array = (x - mean) / np.sqrt(variance + epsilon) * scale + bias
        return result
    return local_response(x, **attributes)


def local_response(x: Array, size: int, alpha: float, beta: float) -> Array:
    """As ONNX words it, element by element along the channels."""
    y = np.empty_like(x)
    channels = x.shape[1]
    for c in range(channels):
        first, last = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)
        squares = sum(x[:, i] ** 2 for i in range(first, last + 1))
        y[:, c] = x[:, c] / (1.0 + alpha / size * squares) ** beta
    return y


def magnitude_of(op: str, arrays: Sequence[Array], attributes: dict[str, Any]) -> float:
    """Where digits cancel the error is in ulps of what was there before."""
    if op in ("Softmax", "Lrn"):
        return 4.0
    largest = [float(np.abs(array.astype(np.float64)).max()) + 1.0 for array in arrays]
    if op == "LogSoftmax":
        return 2 * largest[0]
    steepest = 1 / sqrt(attributes.get("epsilon", 1e-5))
    return float(np.prod(largest)) * steepest


def arrays_of(op: str, elem: str, dims: Sequence[Dims], seed: int) -> list[Array]:
    found = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    if op == "BatchNorm":
        found[4] = np.abs(found[4])
    return found


@pytest.mark.parametrize("op", CASES)
@given(st.data(), elems, layouts, seeds, st.booleans())
def test_every_op_computes_its_formula(
    op: str, data: st.DataObject, elem: str, layout: str, seed: int, ordered: bool
) -> None:
    dims, attributes = data.draw(CASES[op]())
    arrays = arrays_of(op, elem, dims, seed)
    found = compute(op, elem, arrays, attributes, ordered=ordered, layout=layout)
    magnitude = magnitude_of(op, arrays, attributes)
    assert_near(found, expected(op, arrays, attributes), elem, ulps=ULPS, magnitude=magnitude)


@pytest.mark.parametrize("op", CASES)
@given(st.data(), st.sampled_from(("f32", "bf16", "f64")), seeds, st.booleans())
def test_nan_and_infinities_go_where_arithmetic_sends_them(
    op: str, data: st.DataObject, elem: str, seed: int, ordered: bool
) -> None:
    dims, attributes = data.draw(CASES[op]())
    arrays = arrays_of(op, elem, dims, seed)
    arrays[0] = values(elem, dims[0], seed, odd=True)
    found = compute(op, elem, arrays, attributes, ordered=ordered)
    with np.errstate(all="ignore"):
        wanted = expected(op, arrays, attributes)
    np.testing.assert_array_equal(
        np.isfinite(found.astype(np.float64)), np.isfinite(wanted), strict=True
    )
    assert_near(
        found,
        wanted,
        elem,
        ulps=ULPS,
        magnitude=magnitude_of(op, arrays_of(op, elem, dims, seed), attributes),
    )


def test_long_axes_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    calls: dict[str, tuple[list[Dims], dict[str, Any], Callable[..., Any]]] = {
        "Softmax": ([(3, 700)], {"axis": -1}, lambda x: torch.softmax(x, -1)),
        "LogSoftmax": ([(3, 700, 2)], {"axis": 1}, lambda x: torch.log_softmax(x, 1)),
        "LayerNorm": (
            [(5, 6, 128), (6, 128), (6, 128)],
            {"axis": 1},
            lambda x, s, b: f.layer_norm(x, (6, 128), s, b),
        ),
        "RmsNorm": ([(5, 700), (700,)], {"axis": -1}, lambda x, s: f.rms_norm(x, (700,), s, 1e-5)),
        "GroupNorm": (
            [(2, 6, 9, 11), (6,), (6,)],
            {"groups": 3},
            lambda x, s, b: f.group_norm(x, 3, s, b),
        ),
        "InstanceNorm": (
            [(2, 3, 40), (3,), (3,)],
            {},
            lambda x, s, b: f.instance_norm(x, weight=s, bias=b),
        ),
        "BatchNorm": (
            [(2, 3, 40), (3,), (3,), (3,), (3,)],
            {},
            lambda x, s, b, m, v: f.batch_norm(x, m, v, s, b),
        ),
        "Lrn": (
            [(2, 9, 4, 4)],
            {"size": 5, "alpha": 0.3},
            lambda x: f.local_response_norm(x, 5, 0.3),
        ),
    }
    assert calls.keys() == CASES.keys()
    for (op, (dims, attributes, call)), elem in product(calls.items(), ("f32", "f64", "bf16")):
        arrays = arrays_of(op, elem, dims, 3)
        wanted = call(*(torch.from_numpy(a.astype(np.float64)) for a in arrays)).numpy()
        for ordered in (False, True):
            found = compute(op, elem, arrays, attributes, ordered=ordered)
            magnitude = 16 if ordered else 4  # one by one, errors add up
            assert_near(found, wanted, elem, ulps=16.0, magnitude=magnitude)


@pytest.mark.parametrize("size", [1, 3, 5, 13])
def test_local_response_as_onnxruntime(size: int) -> None:
    x = values("f32", (2, 7, 3, 2), size)
    attributes = {"size": size, "alpha": 0.7, "beta": 0.6, "bias": 2.0}
    (wanted,) = onnx_result("LRN", [x], attributes)
    found = compute("Lrn", "f32", [x], attributes)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_ordered_and_unordered_agree() -> None:
    x = values("f32", (4, 512), 5)
    for op in ("Softmax", "LogSoftmax", "LayerNorm", "RmsNorm"):
        free, fixed = (compute(op, "f32", [x], {"axis": 1}, ordered=o) for o in (False, True))
        assert_near(free, fixed.astype(np.float64), "f32", ulps=32.0, magnitude=4.0)


X: Dims = (2, 6, 4)
FITTING: dict[str, tuple[list[Dims], dict[str, Any]]] = {
    "Softmax": ([X], {"axis": -1}),
    "LogSoftmax": ([X], {"axis": 2}),
    "LayerNorm": ([X, (6, 4), (6, 4)], {"axis": 1}),
    "RmsNorm": ([X, (4,)], {"axis": -1, "epsilon": 1e-6}),
    "GroupNorm": ([X, (6,), (6,)], {"groups": 3}),
    "InstanceNorm": ([X], {}),
    "BatchNorm": ([X, *[(6,)] * 4], {}),
    "Lrn": ([X], {"size": 3}),
}


@pytest.mark.parametrize("op", FITTING)
def test_the_verifier_knows_the_op(op: str) -> None:
    dims, attributes = FITTING[op]
    assert_in_core(op, [("f16", shape) for shape in dims], attributes)
    assert_refused(op, [("i32", shape) for shape in dims], attributes, "NCR01")
    mixed = [("f32", dims[0]), *(("f64", shape) for shape in dims[1:])]
    if len(mixed) > 1:
        assert_refused(op, mixed, attributes, "NCR01")


HUGE = 10**399
MISFITS: list[tuple[str, list[Dims], dict[str, Any], str]] = [
    ("Softmax", [()], {"axis": 0}, "no axis: the tensor is a scalar"),
    ("Softmax", [X], {"axis": 3}, "`axis` is 3, expected -3 to 2"),
    ("LogSoftmax", [X], {"axis": -HUGE}, "expected -3 to 2"),
    ("LayerNorm", [X], {"axis": HUGE}, "expected -3 to 2"),
    ("LayerNorm", [X, (4,)], {"axis": 1}, "`scale` has the shape [4], expected [6, 4]"),
    ("LayerNorm", [X, (4,), (6,)], {"axis": 2}, "`bias` has the shape [6], expected [4]"),
    ("LayerNorm", [X], {"axis": 1, "epsilon": -1.0}, "`epsilon` is -1.0, expected a finite"),
    ("LayerNorm", [X], {"axis": 1, "epsilon": HUGE}, "expected a finite number of at least 0"),
    ("RmsNorm", [X], {"axis": 1, "epsilon": float("nan")}, "`epsilon` is nan"),
    ("RmsNorm", [X, ()], {"axis": -1}, "`scale` has the shape [], expected [4]"),
    ("GroupNorm", [(3,)], {"groups": 1}, "expected at least 2 axes"),
    ("GroupNorm", [X], {"groups": 4}, "`groups` is 4, expected a divisor of the 6 channels"),
    ("GroupNorm", [X], {"groups": 0}, "`groups` is 0"),
    ("GroupNorm", [X], {"groups": -HUGE}, "expected a divisor"),
    ("GroupNorm", [X, (3,)], {"groups": 3}, "`scale` has the shape [3], expected [6]"),
    ("GroupNorm", [X], {"groups": 3, "epsilon": float("inf")}, "`epsilon` is inf"),
    ("InstanceNorm", [(2, 6)], {}, "the input has the shape [2, 6], expected at least 3 axes"),
    ("InstanceNorm", [X, (6,), (4,)], {}, "`bias` has the shape [4], expected [6]"),
    ("BatchNorm", [(3,), *[(3,)] * 4], {}, "`axis` is 1, expected -1 to 0"),
    ("BatchNorm", [X, (6,), (6,), (6,), (4,)], {}, "`variance` has the shape [4]"),
    ("BatchNorm", [X, *[(6,)] * 4], {"epsilon": -HUGE}, "`epsilon` is -1"),
    ("Lrn", [(3,)], {"size": 3}, "expected at least 2 axes"),
    ("Lrn", [X], {"size": 0}, "`size` is 0, expected at least 1"),
    ("Lrn", [X], {"size": HUGE}, "expected a finite number"),
    ("Lrn", [X], {"size": 3, "beta": float("nan")}, "`beta` is nan, expected a finite number"),
]


@pytest.mark.parametrize(("op", "dims", "attributes", "told"), MISFITS)
def test_what_does_not_fit_is_said(
    op: str, dims: list[Dims], attributes: dict[str, Any], told: str
) -> None:
    found = reason(op, dims, attributes)
    assert found is not None
    assert told in found
    assert told in assert_refused(op, [("f32", shape) for shape in dims], attributes, "NCR02")


def test_attributes_beyond_f32_do_not_warn() -> None:
    x = values("f32", (2, 3, 2), 1)
    assert (compute("RmsNorm", "f32", [x], {"axis": 1, "epsilon": 1e300}) == 0).all()
    found = compute("Lrn", "f32", [x], {"size": 10**12, "alpha": 1e300, "beta": 1.0})
    assert (found == 0).all()


@pytest.mark.parametrize("op", FITTING)
def test_work_grows_with_the_elements(op: str) -> None:
    dims, attributes = FITTING[op]
    more = [(4, *dims[0][1:]), *dims[1:]]
    once, twice = (work(op, "f32", d, attributes) for d in (dims, more))
    assert 0 < 2 * once.scalar_operations == twice.scalar_operations
