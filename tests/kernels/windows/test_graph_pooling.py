"""Poolings of graphs against windows walked one by one, torch and onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.kernels.oracle_graph_layers import (
    FLOATS,
    INTEGERS,
    assert_in_core,
    assert_near,
    assert_refused,
    compute,
    reason,
    values,
    work,
)
from tests.kernels.oracle_views import LAYOUTS, Array, Dims, assert_same, onnx_result, seeds

layouts = st.sampled_from(LAYOUTS)
Case = tuple[Dims, dict[str, Any]]  # the shape with channels first


@st.composite
def poolings(draw: st.DrawFn, *, dilated: bool = True) -> Case:
    """Any attributes: windows may lie in padding alone, and hang over the end."""
    rank = draw(st.integers(1, 3 if draw(st.booleans()) else 2))
    axis = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))
    size, kernel, strides, dilations = zip(*(draw(axis) for _ in range(rank)), strict=True)
    pads = tuple(draw(st.integers(0, 3)) for _ in range(2 * rank))
    attributes = {
        "kernel": kernel,
        "strides": strides,
        "dilations": dilations if dilated else (1,) * rank,
        "pads": pads,
        "ceil": draw(st.booleans()),
        "layout": draw(st.sampled_from(["NCHW", "NHWC"])),
    }
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *size)
    assume(counts(shape, attributes) is not None)
    return shape, attributes


def counts(shape: Dims, attributes: dict[str, Any]) -> Dims | None:
    """How many windows there are along each axis, by trying one after the other."""
    rank = len(shape) - 2
    found = []
    for axis in range(rank):
        begin, end = attributes["pads"][axis], attributes["pads"][axis + rank]
        reach = (attributes["kernel"][axis] - 1) * attributes["dilations"][axis] + 1
        size, stride, count = shape[2 + axis], attributes["strides"][axis], 0
        # Rounded up, less than a stride may be missing.
        missing = stride - 1 if attributes["ceil"] else 0
        while count * stride + reach <= begin + size + end + missing:
            count += 1
        if attributes["ceil"] and (count - 1) * stride >= begin + size:
            count -= 1  # it would start in the end padding
        found.append(count)
    return tuple(found) if min(found) >= 1 else None


def windows(x: Array, attributes: dict[str, Any]) -> Iterator[tuple[Dims, list[Any], int]]:
    """Every place of the output, the elements of its window, and how many lie in the pads too."""
    spatial, rank = x.shape[2:], x.ndim - 2
    found = counts(x.shape, attributes)
    assert found is not None
    begins, ends = attributes["pads"][:rank], attributes["pads"][rank:]
    for image, channel, *at in product(*(range(n) for n in (*x.shape[:2], *found))):
        elements, counted = [], 0
        for offset in product(*(range(k) for k in attributes["kernel"])):
            place = [
                o * s + k * d - b
                for o, s, k, d, b in zip(
                    at, attributes["strides"], offset, attributes["dilations"], begins, strict=True
                )
            ]
            counted += all(p < n + e for p, n, e in zip(place, spatial, ends, strict=True))
            if all(0 <= p < n for p, n in zip(place, spatial, strict=True)):
                elements.append(x[(image, channel, *place)])
        yield (image, channel, *at), elements, counted


def laid(x: Array, attributes: dict[str, Any]) -> Array:
    return np.moveaxis(x, 1, -1) if attributes["layout"] == "NHWC" else x


def pooled(x: Array, attributes: dict[str, Any], dtype: Any, reduce: Any) -> Array:  # noqa: ANN401
    found = counts(x.shape, attributes)
    assert found is not None
    y = np.empty((*x.shape[:2], *found), dtype)
    for place, elements, counted in windows(x, attributes):
        y[place] = reduce(elements, counted)
    return laid(y, attributes)


@given(poolings(), st.sampled_from((*INTEGERS, *FLOATS)), layouts, seeds, st.booleans())
def test_the_largest_of_each_window(
    case: Case, elem: str, layout: str, seed: int, ordered: bool
) -> None:
    shape, attributes = case
    x = values(elem, shape, seed, odd=elem != "f8e4m3")
    lowest = np.array(-np.inf) if elem in FLOATS else np.array(integer_lowest(elem))

    def largest(elements: list[Any], counted: int) -> Any:  # noqa: ANN401
        number = float if elem in FLOATS else int
        known = [number(e) for e in elements]
        return np.nan if any(k != k for k in known) else max(known, default=lowest)

    wanted = pooled(x, attributes, np.float64 if elem in FLOATS else np.int64, largest)
    found = compute(
        "MaxPool", elem, [laid(x, attributes)], attributes, layout=layout, ordered=ordered
    )
    with np.errstate(all="ignore"):
        assert_same(found, wanted.astype(x.dtype))


def integer_lowest(elem: str) -> int:
    return 0 if elem.startswith("u") else -(1 << (int(elem[1:]) - 1))


@given(poolings(), st.sampled_from(FLOATS), layouts, seeds, st.booleans(), st.booleans())
def test_the_mean_of_each_window(
    case: Case, elem: str, layout: str, seed: int, count_pad: bool, ordered: bool
) -> None:
    shape, attributes = case
    attributes["count_pad"] = count_pad
    x = values(elem, shape, seed)

    def mean(elements: list[Any], counted: int) -> float:
        number = counted if count_pad else len(elements)
        return sum(map(float, elements)) / max(number, 1)

    wanted = pooled(x, attributes, np.float64, mean)
    found = compute(
        "AvgPool", elem, [laid(x, attributes)], attributes, layout=layout, ordered=ordered
    )
    assert_near(found, wanted, elem, ulps=8.0, magnitude=4.0)


@given(poolings(), st.sampled_from(FLOATS), layouts, seeds, st.integers(1, 4), st.booleans())
def test_the_norm_of_each_window(
    case: Case, elem: str, layout: str, seed: int, p: int, ordered: bool
) -> None:
    shape, attributes = case
    attributes["p"] = p
    x = values(elem, shape, seed)

    def norm(elements: list[Any], counted: int) -> float:
        return float(sum(abs(float(e)) ** p for e in elements) ** (1 / p))

    wanted = pooled(x, attributes, np.float64, norm)
    found = compute(
        "LpPool", elem, [laid(x, attributes)], attributes, layout=layout, ordered=ordered
    )
    assert_near(found, wanted, elem, ulps=16.0, magnitude=np.abs(wanted) + 1e-30)


@given(poolings(), st.sampled_from(("MaxPool", "AvgPool")), seeds, st.booleans())
def test_as_onnxruntime(case: Case, op: str, seed: int, count_pad: bool) -> None:
    shape, attributes = case
    rank = len(shape) - 2
    # onnxruntime has no windows without an element.
    kernels = attributes["kernel"] * 2
    attributes["pads"] = tuple(
        min(p, k - 1) for p, k in zip(attributes["pads"], kernels, strict=True)
    )
    attributes["layout"] = "NCHW"
    if op == "AvgPool" or rank == 3:
        attributes["dilations"] = (1,) * rank
    assume(counts(shape, attributes) is not None)
    assume(all(elements for _, elements, _ in windows(np.zeros(shape), attributes)))
    x = values("f32", shape, seed)
    names = {"kernel": "kernel_shape", "ceil": "ceil_mode", "count_pad": "count_include_pad"}
    given_ = {**attributes, "count_pad": count_pad} if op == "AvgPool" else dict(attributes)
    onnx_names = {names.get(k, k): v for k, v in given_.items() if k != "layout"}
    onnx_names["ceil_mode"] = int(onnx_names["ceil_mode"])
    onnx_op = {"MaxPool": "MaxPool", "AvgPool": "AveragePool"}[op]
    if op == "AvgPool":
        onnx_names["count_include_pad"] = int(count_pad)
    (wanted,) = onnx_result(onnx_op, [x], onnx_names, opset=19)
    found = compute(op, "f32", [x], given_)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@given(poolings(dilated=False), seeds, st.booleans())
def test_as_torch(case: Case, seed: int, count_pad: bool) -> None:
    torch = pytest.importorskip("torch")
    shape, attributes = case
    rank = len(shape) - 2
    begins = tuple(
        min(p, k // 2) for p, k in zip(attributes["pads"], attributes["kernel"], strict=False)
    )
    attributes |= {"pads": begins * 2, "layout": "NCHW"}
    # torch refuses some windows that are larger than the input without its pads.
    assume(all(k <= n for k, n in zip(attributes["kernel"], shape[2:], strict=True)))
    assume(counts(shape, attributes) is not None)
    x = values("f32", shape, seed)
    f, t = torch.nn.functional, torch.from_numpy(x)
    window = (attributes["kernel"], attributes["strides"], begins)
    wanted = getattr(f, f"max_pool{rank}d")(t, *window, ceil_mode=attributes["ceil"])
    assert_same(compute("MaxPool", "f32", [x], attributes), wanted.numpy())
    average = getattr(f, f"avg_pool{rank}d")
    wanted = average(t, *window, ceil_mode=attributes["ceil"], count_include_pad=count_pad)
    found = compute("AvgPool", "f32", [x], {**attributes, "count_pad": count_pad})
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_a_whole_plane_is_one_window() -> None:
    x = values("f32", (2, 3, 16, 20), 4, odd=False)
    attributes = {"kernel": (16, 20)}
    for ordered in (False, True):
        mean = compute("AvgPool", "f32", [x], attributes, ordered=ordered)
        assert_near(mean, x.astype(np.float64).mean((2, 3), keepdims=True), "f32", ulps=32.0)
        largest = compute("MaxPool", "f32", [x], attributes, ordered=ordered)
        assert_same(largest, x.max((2, 3), keepdims=True))


def test_a_window_of_one_element_leaves_the_input() -> None:
    x = values("f32", (1, 2, 3), 4, odd=True)
    for op in ("MaxPool", "AvgPool"):
        assert_same(compute(op, "f32", [x], {"kernel": (1,)}), x)


def test_a_window_larger_than_everything_takes_no_time() -> None:
    x = values("f32", (1, 1, 3), 4)
    attributes = {"kernel": (10**12,), "pads": (10**12, 0)}
    found = compute("MaxPool", "f32", [x], attributes)
    assert found.shape == (1, 1, 4)
    assert found[0, 0, 0] == -np.inf
    assert found[0, 0, -1] == x.max()


X: Dims = (1, 2, 5, 6)
MISFITS: list[tuple[Dims, dict[str, Any], str]] = [
    ((), {"kernel": ()}, "the input has the shape [], expected 3 to 5 axes"),
    ((1, 2), {"kernel": ()}, "expected 3 to 5 axes"),
    ((1,) * 6, {"kernel": (1,) * 4}, "expected 3 to 5 axes"),
    (X, {"kernel": (2,)}, "`kernel` has 1 entries, expected 2"),
    (X, {"kernel": (2, 0)}, "`kernel` has 0, expected at least 1"),
    (X, {"kernel": (2, -(10**399))}, "expected at least 1"),
    (X, {"kernel": (2, 2), "strides": (1,)}, "`strides` has 1 entries, expected 2"),
    (X, {"kernel": (2, 2), "strides": (0, 1)}, "`strides` has 0, expected at least 1"),
    (X, {"kernel": (2, 2), "dilations": (1, -1)}, "`dilations` has -1, expected at least 1"),
    (X, {"kernel": (2, 2), "pads": (1, 1)}, "`pads` has 2 entries, expected 4"),
    (X, {"kernel": (2, 2), "pads": (1, 1, 0, -1)}, "`pads` has -1, expected at least 0"),
    (X, {"kernel": (6, 2)}, "a window reaches over 6 elements, expected at most the 5"),
    (X, {"kernel": (3, 2), "dilations": (3, 1)}, "a window reaches over 7 elements"),
    (X, {"kernel": (10**399, 1)}, "expected at most the 5 that an axis has with its pads"),
]


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool", "LpPool"])
@pytest.mark.parametrize(("shape", "attributes", "told"), MISFITS)
def test_what_does_not_fit_is_said(
    op: str, shape: Dims, attributes: dict[str, Any], told: str
) -> None:
    found = reason(op, [shape], attributes)
    assert found is not None
    assert told in found
    assert told in assert_refused(op, [("f32", shape)], attributes, "NCR02")


@pytest.mark.parametrize("p", [0, -3, 10**399])
def test_a_power_that_is_none(p: int) -> None:
    assert "`p` is" in str(reason("LpPool", [X], {"kernel": (1, 1), "p": p}))


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool", "LpPool"])
def test_the_verifier_knows_the_op(op: str) -> None:
    attributes = {"kernel": (2, 2), "pads": (1, 0, 1, 0), "ceil": True, "layout": "NHWC"}
    assert_in_core(op, [("f16", (1, 5, 6, 2))], attributes)
    assert_refused(op, [("bool", X)], attributes, "NCR01")
    if op != "MaxPool":
        assert_refused(op, [("i32", X)], attributes, "NCR01")
    told = assert_refused(op, [("f32", X)], {"kernel": (2, 2), "layout": "NCWH"}, "NCR03")
    assert "did you mean" in told


def test_work_counts_every_element_of_a_window() -> None:
    found = work("MaxPool", "f32", [X], {"kernel": (2, 3)})
    assert found.scalar_operations == 1 * 2 * 4 * 4 * 6
