"""Convolutions of graphs against sums term by term, torch and onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nacre.kernels.windows import graph_conv_columns, graph_conv_planes
from tests.kernels.oracle_graph_layers import (
    FLOATS,
    INTEGERS,
    assert_in_core,
    assert_near,
    assert_refused,
    compute,
    reason,
    tensor,
    values,
    work,
)
from tests.kernels.oracle_views import LAYOUTS, Array, Dims, assert_same, onnx_result, seeds

layouts = st.sampled_from(LAYOUTS)
OPS = ("Conv", "ConvTranspose")
Case = tuple[list[Dims], dict[str, Any]]  # shapes with channels first


@st.composite
def convolutions(draw: st.DrawFn, op: str) -> Case:
    rank = draw(st.integers(1, 3 if draw(st.booleans()) else 2))
    axis = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))
    size, kernel, strides, dilations = zip(*(draw(axis) for _ in range(rank)), strict=True)
    groups, inner, outer = (draw(st.integers(1, 3)) for _ in range(3))
    attributes: dict[str, Any] = {
        "groups": groups,
        "strides": strides,
        "dilations": dilations,
        "pads": tuple(draw(st.integers(0, 2)) for _ in range(2 * rank)),
    }
    if op == "ConvTranspose":
        extra = (
            draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilations, strict=True)
        )
        attributes["output_padding"] = tuple(extra)
        weight = (groups * inner, outer, *kernel)
    else:
        weight = (groups * outer, inner, *kernel)
    dims = [(draw(st.integers(1, 2)), groups * inner, *size), weight]
    if draw(st.booleans()):
        dims.append((groups * outer,))
    assume(min(spatial(op, dims, attributes)) >= 1)
    return dims, attributes


def spatial(op: str, dims: Sequence[Dims], attributes: dict[str, Any]) -> Dims:
    rank = len(dims[0]) - 2
    found = []
    for axis in range(rank):
        size, kernel = dims[0][2 + axis], dims[1][2 + axis]
        stride, dilation = attributes["strides"][axis], attributes["dilations"][axis]
        pads = attributes["pads"][axis] + attributes["pads"][axis + rank]
        reach = dilation * (kernel - 1) + 1
        if op == "Conv":
            found.append((size + pads - reach) // stride + 1)
        else:
            more = attributes["output_padding"][axis]
            found.append((size - 1) * stride - pads + reach + more)
    return tuple(found)


def term_by_term(op: str, arrays: Sequence[Array], attributes: dict[str, Any]) -> Array:
    """Every element of X times every weight that it meets, as Python numbers."""
    x, w = arrays[:2]
    groups = attributes["groups"]
    counts = spatial(op, [x.shape, w.shape], attributes)
    inner = x.shape[1] // groups
    outer = w.shape[0] // groups if op == "Conv" else w.shape[1]
    y = np.zeros((x.shape[0], groups * outer, *counts), object)
    begins, strides, dilations = (attributes[n] for n in ("pads", "strides", "dilations"))
    seen = counts if op == "Conv" else x.shape[2:]  # what a window stands at
    for n, g, i, o in product(range(x.shape[0]), range(groups), range(inner), range(outer)):
        for at, offset in product(np.ndindex(*seen), np.ndindex(*w.shape[2:])):
            axes = zip(at, strides, offset, dilations, begins, strict=False)
            place = tuple(a * s + k * d - b for a, s, k, d, b in axes)
            limits = x.shape[2:] if op == "Conv" else counts
            if any(not 0 <= p < limit for p, limit in zip(place, limits, strict=True)):
                continue
            source, target = (place, at) if op == "Conv" else (at, place)
            weight = w[(g * outer + o, i) if op == "Conv" else (g * inner + i, o)][offset]
            y[(n, g * outer + o, *target)] += x[(n, g * inner + i, *source)] * weight
    if len(arrays) > 2:
        y += arrays[2].reshape(-1, *(1,) * len(counts))
    return y


def laid(arrays: Sequence[Array], layout: str) -> list[Array]:
    """Operands in a layout: weights of NHWC are [window.., inner, outer] either way."""
    x, w, *bias = arrays
    if layout == "NCHW":
        return [x, w, *bias]
    return [np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2)), *bias]


def wrapped(sums: Array, elem: str) -> Array:
    type_ = tensor(elem, ()).elem
    low, span = int(type_.lowest), 1 << type_.bits
    return ((sums - low) % span + low).astype(tensor(elem, ()).dtype)


@pytest.mark.parametrize("op", OPS)
@given(st.data(), st.sampled_from(INTEGERS), layouts, st.sampled_from(["NCHW", "NHWC"]), seeds)
def test_integers_are_exact_and_wrap(
    op: str, data: st.DataObject, elem: str, layout: str, order: str, seed: int
) -> None:
    dims, attributes = data.draw(convolutions(op))
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    wanted = wrapped(term_by_term(op, [a.astype(object) for a in arrays], attributes), elem)
    given_ = {**attributes, "layout": order}
    heat = data.draw(st.sampled_from([None, False, True]))
    found = compute(op, elem, laid(arrays, order), given_, layout=layout, heat=heat)
    assert_same(np.moveaxis(found, -1, 1) if order == "NHWC" else found, wanted)


@pytest.mark.parametrize("op", OPS)
@given(
    st.data(),
    st.sampled_from(FLOATS),
    layouts,
    st.sampled_from(["NCHW", "NHWC"]),
    seeds,
    st.booleans(),
)
def test_floats_are_rounded_once(
    op: str, data: st.DataObject, elem: str, layout: str, order: str, seed: int, ordered: bool
) -> None:
    dims, attributes = data.draw(convolutions(op))
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    wide = [a.astype(np.float64).astype(object) for a in arrays]
    wanted = term_by_term(op, wide, attributes).astype(np.float64)
    bound = term_by_term(op, [abs(a) for a in wide], attributes).astype(np.float64)
    found = compute(
        op,
        elem,
        laid(arrays, order),
        {**attributes, "layout": order},
        layout=layout,
        ordered=ordered,
        heat=data.draw(st.sampled_from([None, False])),
    )
    if order == "NHWC":
        found = np.moveaxis(found, -1, 1)
    assert_near(found, wanted, elem, ulps=4.0, magnitude=bound)


@pytest.mark.parametrize("op", OPS)
@given(st.data(), seeds)
def test_ordered_sums_do_not_depend_on_the_layout(op: str, data: st.DataObject, seed: int) -> None:
    dims, attributes = data.draw(convolutions(op))
    arrays = [values("f32", shape, seed + i, odd=True) for i, shape in enumerate(dims)]
    first, last = (
        compute(op, "f32", laid(arrays, order), {**attributes, "layout": order}, ordered=True)
        for order in ("NCHW", "NHWC")
    )
    assert first.tobytes() == np.ascontiguousarray(np.moveaxis(last, -1, 1)).tobytes()


BIG: list[tuple[str, Dims, Dims, dict[str, Any]]] = [
    ("Conv", (2, 8, 40, 36), (8, 8, 3, 3), {"pads": (1, 1, 1, 1)}),
    ("Conv", (1, 16, 30, 30), (24, 16, 1, 1), {}),
    ("Conv", (2, 16, 30, 30), (24, 16, 1, 1), {"strides": (2, 2)}),
    ("Conv", (1, 12, 40, 40), (12, 1, 3, 3), {"groups": 12, "pads": (1, 1, 1, 1)}),
    ("Conv", (1, 12, 61, 61), (24, 1, 3, 3), {"groups": 12, "strides": (2, 2)}),
    ("Conv", (1, 12, 14, 14), (12, 1, 5, 5), {"groups": 12, "pads": (2, 2, 2, 2)}),
    ("Conv", (1, 12, 20, 50), (8, 3, 3, 3), {"groups": 4, "dilations": (2, 3)}),
    ("Conv", (2, 12, 2, 30), (12, 1, 5, 5), {"groups": 12, "pads": (2, 2, 2, 2)}),
    ("Conv", (1, 6, 30, 9), (6, 1, 3, 3),
     {"groups": 6, "dilations": (9, 1), "pads": (9, 1, 9, 1)}),
    ("Conv", (1, 6, 9, 10, 11), (12, 1, 3, 2, 3),
     {"groups": 6, "strides": (2, 1, 2), "pads": (1, 0, 1, 1, 0, 1)}),
    ("Conv", (2, 3, 21, 64), (8, 3, 5, 3),
     {"strides": (2, 2), "pads": (2, 1, 2, 0), "dilations": (1, 2)}),
    ("Conv", (1, 3, 4, 40), (8, 3, 7, 3), {"pads": (5, 4, 5, 4)}),
    ("Conv", (2, 4, 300), (6, 4, 9), {"pads": (4, 4)}),
    ("Conv", (1, 3, 9, 10, 11), (5, 3, 3, 2, 3), {"strides": (2, 1, 2)}),
    ("ConvTranspose", (2, 8, 15, 17), (8, 6, 2, 2), {"strides": (2, 2)}),
    ("ConvTranspose", (1, 8, 12, 12), (8, 3, 4, 4),
     {"strides": (2, 2), "pads": (1, 1, 1, 1), "groups": 2}),
    ("ConvTranspose", (1, 4, 40), (4, 3, 5), {"strides": (3,), "output_padding": (2,)}),
]  # fmt: skip


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("op", "x", "w", "attributes"), BIG)
def test_larger_ones_as_torch_and_onnxruntime(
    op: str, x: Dims, w: Dims, attributes: dict[str, Any], order: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    outputs = w[0] if op == "Conv" else w[1] * attributes.get("groups", 1)
    arrays = [values("f32", shape, i) for i, shape in enumerate((x, w, (outputs,)))]
    names = {"groups": "group"}
    (wanted,) = onnx_result(op, arrays, {names.get(k, k): v for k, v in attributes.items()})
    # Small blocks, so that several take part.
    for limit in (1 << 22, 1 << 12):
        monkeypatch.setattr(graph_conv_columns, "_COLUMN_BYTES", limit)
        monkeypatch.setattr(graph_conv_planes, "_PLANE_BYTES", limit)
        for heat in (None, False):
            found = compute(
                op, "f32", laid(arrays, order), {**attributes, "layout": order}, heat=heat
            )
            got = np.moveaxis(found, -1, 1) if order == "NHWC" else found
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("x", "w"),
    [
        ((2, 3, 500), (4, 3, 41)),
        ((1, 4, 2, 300), (6, 2, 1, 31)),
        ((1, 2, 3, 9, 70), (3, 2, 2, 2, 7)),
    ],
)
def test_rows_whose_windows_are_beyond_memory_are_taken_in_parts(
    x: Dims, w: Dims, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a signal of millions by weights of thousands all windows at once are hundreds of GiB."""
    monkeypatch.setattr(graph_conv_columns, "_MOST_ROW_BYTES", 0)
    arrays = [values("f32", shape, i) for i, shape in enumerate((x, w, (w[0],)))]
    groups = x[1] // w[1]
    (wanted,) = onnx_result("Conv", arrays, {"group": groups})
    for heat in (None, False):
        given = {"groups": groups, "layout": order}
        found = compute("Conv", "f32", laid(arrays, order), given, heat=heat)
        got = np.moveaxis(found, -1, 1) if order == "NHWC" else found
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heat", [None, False])
@pytest.mark.parametrize("where", ["x", "w"])
def test_what_is_not_finite_reaches_the_windows_that_see_it(where: str, heat: bool | None) -> None:
    """Also where rows are computed in bands, whose weights are zero for rows outside a window."""
    arrays = [values("f32", shape, i) for i, shape in enumerate(((1, 4, 17, 12), (4, 1, 3, 3)))]
    for place, number in (
        ((0, 0, 1, 0), np.inf),
        ((0, 2, 9, 11), np.nan),
        ((0, 3, 16, 5), -np.inf),
    ):
        if where == "x":
            arrays[0][place] = number
    if where == "w":
        arrays[1][2, 0, 0, 1] = np.inf
    (wanted,) = onnx_result("Conv", arrays, {"group": 4, "pads": (1, 1, 1, 1)})
    given_ = {"groups": 4, "pads": (1, 1, 1, 1), "layout": "NCHW"}
    found = compute("Conv", "f32", arrays, given_, heat=heat)
    if where == "x":
        assert 0 < np.isfinite(found).sum() < found.size
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    # Of a weight and the padding onnxruntime makes NaN or nothing, by the way it takes.
    is_known = np.isfinite(found) & np.isfinite(wanted)
    np.testing.assert_allclose(found[is_known], wanted[is_known], rtol=1e-5, atol=1e-5)
    assert not np.isfinite(found[0, 2, 1:]).any() if where == "w" else True


@pytest.mark.parametrize(("op", "x", "w", "attributes"), BIG)
def test_larger_ones_in_f64_as_torch(op: str, x: Dims, w: Dims, attributes: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rank = len(x) - 2
    arrays = [values("f64", shape, i) for i, shape in enumerate((x, w))]
    pads = attributes.get("pads", (0,) * rank)[:rank]
    wanted = torch.convolution(
        *(torch.from_numpy(a) for a in arrays), None,
        attributes.get("strides", (1,) * rank), pads, attributes.get("dilations", (1,) * rank),
        op == "ConvTranspose", attributes.get("output_padding", (0,) * rank),
        attributes.get("groups", 1),
    )  # fmt: skip
    for ordered in (False, True):
        found = compute(op, "f64", arrays, attributes, ordered=ordered)
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12, atol=1e-12)


def test_nan_and_infinities_spread_to_what_sees_them() -> None:
    x = np.zeros((1, 1, 4), np.float32)
    x[0, 0, 1] = np.nan
    w = np.ones((1, 1, 2), np.float32)
    np.testing.assert_array_equal(
        compute("Conv", "f32", [x, w], {}), np.array([[[np.nan, np.nan, 0.0]]], np.float32)
    )
    infinite = np.array([[[np.inf, 1.0]]], np.float32)
    # A padded element is 0 * w.
    found = compute("Conv", "f32", [np.ones((1, 1, 2), np.float32), infinite], {"pads": (1, 0)})
    np.testing.assert_array_equal(found, np.array([[[np.nan, np.inf]]], np.float32))


X, W, T = (1, 6, 5, 4), (4, 3, 2, 2), (6, 2, 2, 2)
TWO = {"groups": 2}
MISFITS: list[tuple[str, list[Dims], dict[str, Any], str]] = [
    ("Conv", [(), ()], {}, "the input has the shape [], expected 3 to 5 axes"),
    ("Conv", [X, (4, 3, 2)], TWO, "`weight` has the shape [4, 3, 2], expected 4 axes"),
    ("Conv", [X, W], {}, "3 input channels a group, expected 6 in all"),
    ("Conv", [X, W], {"groups": 0}, "`groups` is 0"),
    ("Conv", [X, W], {"groups": -(10**399)}, "expected 6 in all"),
    ("Conv", [X, (5, 3, 2, 2)], TWO, "`weight` has 5 output channels, expected a multiple"),
    ("Conv", [X, W, (3,)], TWO, "`bias` has the shape [3], expected [4]"),
    ("Conv", [X, (4, 3, 6, 2)], TWO, "a window reaches over 6 elements, expected at most the 5"),
    ("Conv", [X, W], {**TWO, "dilations": (1, 10**399)}, "expected at most the 4"),
    ("Conv", [X, W], {**TWO, "strides": (1, 0)}, "`strides` has 0, expected at least 1"),
    ("Conv", [X, W], {**TWO, "strides": (1, 1, 1)}, "`strides` has 3 entries, expected 2"),
    ("Conv", [X, W], {**TWO, "pads": (0, 0, -1, 0)}, "`pads` has -1, expected at least 0"),
    ("Conv", [X, W], {**TWO, "pads": (0, 0)}, "`pads` has 2 entries, expected 4"),
    ("Conv", [X, W], {"layout": "NHWC"}, "2 input channels a group, expected 4 in all"),
    ("ConvTranspose", [(1, 6), (6, 2)], {}, "expected 3 to 5 axes"),
    ("ConvTranspose", [X, (6, 2, 2)], {}, "`weight` has the shape [6, 2, 2], expected 4 axes"),
    ("ConvTranspose", [X, (4, 3, 2, 2)], {}, "4 input channels a group, expected 6 in all"),
    ("ConvTranspose", [X, T], {"groups": 4}, "`groups` is 4, expected a divisor of 6"),
    ("ConvTranspose", [X, T, (2,)], TWO, "`bias` has the shape [2], expected [4]"),
    ("ConvTranspose", [X, T], {"output_padding": (1, 0)}, "expected less than the stride 1"),
    ("ConvTranspose", [X, T], {"output_padding": (0,)}, "has 1 entries, expected 2"),
    ("ConvTranspose", [X, T], {"output_padding": (0, -1)}, "has -1, expected at least 0"),
    ("ConvTranspose", [X, T], {"pads": (3, 0, 3, 0)}, "`pads` leave 0 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "dims", "attributes", "told"), MISFITS)
def test_what_does_not_fit_is_said(
    op: str, dims: list[Dims], attributes: dict[str, Any], told: str
) -> None:
    found = reason(op, dims, attributes)
    assert found is not None
    assert told in found
    assert told in assert_refused(op, [("f32", shape) for shape in dims], attributes, "NCR02")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("elem", ["f16", "i8", "u4"])
def test_the_verifier_knows_the_op(op: str, elem: str) -> None:
    weight = W if op == "Conv" else (6, 2, 2, 2)
    attributes = {"groups": 2, "pads": (1, 0, 1, 0), "layout": "NCHW"}
    assert_in_core(op, [(elem, X), (elem, weight), (elem, (4,))], attributes)
    assert_refused(op, [("bool", X), ("bool", weight)], attributes, "NCR01")
    assert_refused(op, [(elem, X), ("f64", weight)], attributes, "NCR01")
    assert_refused(op, [(elem, X), (elem, weight)], {**TWO, "layout": "NWHC"}, "NCR03")


def test_work_is_a_product_for_each_weight_that_is_met() -> None:
    assert work("Conv", "f32", [X, W], TWO).macs == 4 * 4 * 3 * (3 * 2 * 2)
    assert work("ConvTranspose", "f32", [X, T], TWO).macs == 6 * 5 * 4 * (2 * 2 * 2)
    last = work("Conv", "f32", [(1, 5, 4, 6), (2, 2, 3, 4)], {**TWO, "layout": "NHWC"})
    assert last == work("Conv", "f32", [X, W], TWO)
