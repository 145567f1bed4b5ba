"""`Resize` against ONNX's reference, onnxruntime and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from nacre.base.elements import GRAPH_TYPES
from tests.kernels.oracle_data import (
    EVERY,
    FLOATS,
    INTEGERS,
    Array,
    Dims,
    computed,
    layouts,
    made,
    reason,
    same_bits,
    seeds,
)
from tests.kernels.oracle_views import onnx_result

COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"
]  # fmt: skip
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
shapes = st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)

MISFITS: tuple[tuple[Dims, dict[str, Any], str], ...] = (
    ((2, 3), {"sizes": (4,)}, "`sizes` has 1 entries, expected 2"),
    ((2, 3), {"sizes": (4, 0)}, "`sizes` has 0, expected at least 1"),
    ((2,), {"sizes": (10**30,)}, "expected at most 2^63 - 1"),
    ((2,), {"sizes": (4,), "scales": (2.0, 1.0)}, "`scales` has 2 entries, expected 1"),
    ((2,), {"sizes": (4,), "scales": (3.5,)}, "3.5 for axis 0, expected about 2.0"),
    ((2,), {"sizes": (1,), "scales": (1e-9,)}, "expected about 0.5: from the size 2 to 1"),
    ((2,), {"sizes": (4,), "scales": (float("nan"),)}, "`scales` has nan"),
    ((2,), {"sizes": (4,), "scales": (float("inf"),)}, "`scales` has inf"),
    ((2,), {"sizes": (4,), "scales": (-2.0,)}, "`scales` has -2.0"),
    ((2,), {"sizes": (4,), "scales": (10**300,)}, "`scales` has 1000"),
    ((2,), {"sizes": (4,), "antialias": True}, "`antialias` is true, expected false"),
    ((2,), {"sizes": (4,), "cubic_a": float("nan")}, "`cubic_a` is nan"),
    ((2,), {"sizes": (4,), "mode": "bicubic"}, "`mode` is `bicubic`, expected one of `nearest`"),
    ((2,), {"sizes": (4,), "coordinate": "odd"}, "`coordinate` is `odd`"),
    ((2,), {"sizes": (4,), "rounding": "odd"}, "`rounding` is `odd`"),
)


@pytest.mark.parametrize(("dims", "given_", "told"), MISFITS)
def test_misfits(dims: Dims, given_: dict[str, Any], told: str) -> None:
    found = reason("Resize", [dims], **given_)
    assert found is not None
    assert told in found


def reference(x: Array, sizes: Dims, attributes: dict[str, Any]) -> Array:
    """What ONNX's own evaluator makes of it."""
    info = onnx.helper.make_tensor_value_info
    code = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    node = onnx.helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [info("x", code, x.shape), info("sizes", onnx.TensorProto.INT64, [len(sizes)])],
        [info("y", code, sizes)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)])
    feeds = {"x": x, "sizes": np.array(sizes, np.int64)}
    (found,) = ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(found)


def near(found: Array, expected: Array, dtype: str) -> None:
    """Within the rounding of f32 (f64, where it is that); the values stay below 64."""
    slack = {"f64": 1e-13, "f32": 2e-4, "f16": 0.04, "bf16": 0.3}[dtype]
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=0, atol=slack
    )


@given(
    st.sampled_from(["f32", "f64", "f16"]),
    st.sampled_from(["linear", "cubic"]),
    st.sampled_from(COORDINATES),
    st.booleans(),
    st.booleans(),
    shapes,
    seeds,
    st.data(),
)
def test_interpolation_as_the_reference(
    dtype: str, mode: str, coordinate: str, antialias: bool, exclude: bool, dims: Dims, seed: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    sizes = tuple(data.draw(st.integers(1, 9)) for _ in dims)
    if coordinate == "pytorch_half_pixel":  # the reference has another coordinate for one place
        sizes = tuple(max(size, 2) for size in sizes)
    x = made(dtype, dims, seed, odd=False)
    found = computed(
        "Resize", x, sizes=sizes, mode=mode, coordinate=coordinate, antialias=antialias,
        exclude_outside=exclude,
    )  # fmt: skip
    attributes = {
        "mode": mode, "coordinate_transformation_mode": coordinate, "antialias": int(antialias),
        "exclude_outside": int(exclude), "cubic_coeff_a": -0.75,
    }  # fmt: skip
    # The reference works out its cubic weights in f32.
    slack = "f32" if (mode, dtype) == ("cubic", "f64") else dtype
    near(found, reference(x[1], sizes, attributes), slack)
    same_bits(found, computed(
        "Resize", x, sizes=sizes, mode=mode, coordinate=coordinate, antialias=antialias,
        exclude_outside=exclude, ordered=True, memory="strided",
    ))  # fmt: skip


@given(
    st.sampled_from(EVERY), st.sampled_from(COORDINATES), st.sampled_from(ROUNDINGS), shapes,
    layouts, seeds, st.data(),
)  # fmt: skip
def test_nearest_as_the_reference(
    dtype: str, coordinate: str, rounding: str, dims: Dims, layout: str, seed: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    sizes = tuple(data.draw(st.integers(1, 9)) for _ in dims)
    x = made(dtype, dims, seed)
    if dtype == "bool":
        x = "u8", x[1].view(np.uint8)
    # Places instead of values: the reference computes in f64, in which NaN meets 0.
    places = np.arange(int(np.prod(dims)), dtype=np.float64).reshape(dims)
    attributes = {
        "mode": "nearest",
        "coordinate_transformation_mode": coordinate,
        "nearest_mode": rounding,
    }
    source = reference(places, sizes, attributes).astype(np.int64)
    found = computed(
        "Resize", x, sizes=sizes, coordinate=coordinate, rounding=rounding, memory=layout
    )
    same_bits(found, x[1].reshape(-1)[source])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@given(st.sampled_from(INTEGERS), shapes, seeds, st.data())
def test_integers_are_rounded_and_stay_inside(
    mode: str, dtype: str, dims: Dims, seed: int, data: st.DataObject
) -> None:
    sizes = tuple(data.draw(st.integers(1, 9)) for _ in dims)
    x = made(dtype, dims, seed)
    found = computed("Resize", x, sizes=sizes, mode=mode).astype(object)
    exact = reference(x[1].astype(np.float64), sizes, {"mode": mode, "cubic_coeff_a": -0.75})
    elem = GRAPH_TYPES[dtype]
    # The reference works out its cubic weights in f32.
    slack = float(np.abs(x[1].astype(np.float64)).max()) * (1e-5 if mode == "cubic" else 2.0**-49)
    for value, wanted in zip(found.reshape(-1), exact.reshape(-1), strict=True):
        limited = min(max(wanted, float(elem.lowest)), float(elem.highest))
        assert abs(int(value) - limited) <= 0.5 + 1e-9 + slack


@given(
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(*[st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])] * 2),
    seeds,
)
def test_given_scales_as_onnxruntime(
    mode: str, coordinate: str, plane: tuple[int, int], scales: tuple[float, float], seed: int
) -> None:
    sizes = tuple(int(dim * scale) for dim, scale in zip(plane, scales, strict=True))
    # A tensor whose shape stays is copied by onnxruntime, whatever the scales.
    assume(min(sizes) >= 1 and (sizes != plane or scales == (1.0, 1.0)))
    x = made("f32", (1, 2, *plane), seed, odd=False)
    arrays = [x[1], np.array([], np.float32), np.array([1, 1, *scales], np.float32)]
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinate}
    if mode == "nearest":
        attributes["nearest_mode"] = "floor" if coordinate == "asymmetric" else "round_prefer_floor"
    (expected,) = onnx_result("Resize", arrays, attributes)
    found = computed(
        "Resize", x, sizes=(1, 2, *sizes), scales=(1.0, 1.0, *scales), mode=mode,
        coordinate=coordinate, rounding=attributes.get("nearest_mode", "floor"),
    )  # fmt: skip
    near(found, expected, "f32")


@given(
    st.sampled_from(["bilinear", "bicubic"]),
    st.booleans(),
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.tuples(st.integers(2, 9), st.integers(2, 9)),
    seeds,
)
def test_interpolation_as_pytorch(
    mode: str, align: bool, plane: tuple[int, int], sizes: tuple[int, int], seed: int
) -> None:
    torch = pytest.importorskip("torch")
    x = made("f64", (1, 2, *plane), seed, odd=False)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(x[1]), size=sizes, mode=mode, align_corners=align
    )
    coordinate = "align_corners" if align else "half_pixel"
    found = computed(
        "Resize", x, sizes=(1, 2, *sizes), mode=mode.removeprefix("bi"), coordinate=coordinate
    )
    near(found, expected.numpy(), "f64")


@given(st.sampled_from(FLOATS), shapes, layouts, seeds)
def test_the_same_size_changes_nothing(dtype: str, dims: Dims, layout: str, seed: int) -> None:
    x = made(dtype, dims, seed)
    for mode in ("nearest", "linear", "cubic"):
        found = computed("Resize", x, sizes=dims, mode=mode, memory=layout)
        np.testing.assert_array_equal(found.astype(np.float64), x[1].astype(np.float64))


def test_infinities_and_nan_stay_where_they_are() -> None:
    x = np.array([1.0, np.nan, 2.0, np.inf, 3.0, 4.0], np.float32)
    found = computed("Resize", ("f32", x), sizes=(12,), mode="linear")
    assert np.isnan(found[1:5]).all()
    assert found[0] == 1.0
    assert np.isinf(found[5:9]).all()
    np.testing.assert_allclose(found[9:], [3.25, 3.75, 4.0])
