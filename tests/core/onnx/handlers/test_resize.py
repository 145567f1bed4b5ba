"""Resize and Upsample against onnxruntime, and by hand where that differs from ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from tests.core.onnx.single import Array, assert_agrees, by_nacre, single

SIZES = st.integers(2, 6)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def _x(*dims: int) -> Array:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


@given(
    st.tuples(SIZES, SIZES),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(COORDINATES),
    st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    st.sampled_from([11, 13, 18, 19]),
)
def test_sizes(
    dims: tuple[int, int],
    sizes: tuple[int, int],
    mode: str,
    coordinate: str,
    rounding: str,
    opset: int,
) -> None:
    empty = np.zeros(0, np.float32) if opset == 11 else None
    inputs = [_x(1, 2, *dims), empty, empty]
    given_: dict[str, Any] = {"coordinate_transformation_mode": coordinate, "mode": mode}
    if mode == "nearest":
        # Coordinates at halves fall on either side by the rounding of f32.
        sizes = (dims[0] * 2, dims[1] * 4) if rounding.startswith("round") else sizes
        given_["nearest_mode"] = rounding
        if coordinate != "asymmetric":
            sizes = (dims[0] * 2, dims[1] * 4)
    wanted = np.array([1, 2, *sizes])
    assert_agrees("Resize", [*inputs, wanted], opset, (1, 2, 3), tolerance=1e-4, **given_)


@given(st.tuples(SIZES, SIZES), st.sampled_from([0.5, 2.0, 3.0]), st.sampled_from([10, 11, 13, 19]))
def test_scales(dims: tuple[int, int], scale: float, opset: int) -> None:
    scales = np.array([1, 1, scale, 2.0 if scale > 1 else 0.5], np.float32)
    x = _x(1, 2, *dims)
    roi = np.zeros(0, np.float32) if opset == 11 else None
    inputs = [x, scales] if opset == 10 else [x, roi, scales]
    for mode in ("nearest", "linear"):
        assert_agrees("Resize", inputs, opset, (1, 2), mode=mode)


@given(st.tuples(SIZES, SIZES), st.sampled_from([7, 9]), st.sampled_from(["nearest", "linear"]))
def test_upsample(dims: tuple[int, int], opset: int, mode: str) -> None:
    x, scales = _x(1, 2, *dims), [1.0, 1.0, 2.0, 3.0]
    if opset == 7:
        assert_agrees("Upsample", [x], opset, mode=mode, scales=scales)
    else:
        assert_agrees("Upsample", [x, np.array(scales, np.float32)], opset, (1,), mode=mode)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("axes", [(2, 3), (3, 2)])
def test_policies_and_axes(policy: str, axes: tuple[int, int]) -> None:
    inputs = [_x(1, 2, 4, 5), None, None, np.array([7, 9])]
    given_: dict[str, Any] = {"axes": axes, "keep_aspect_ratio_policy": policy, "mode": "linear"}
    assert_agrees("Resize", inputs, 18, (3,), **given_)


def test_axes_count_from_the_end() -> None:
    inputs = [_x(1, 2, 4, 5), None, None, np.array([7, 9])]
    found = [
        by_nacre(single("Resize", inputs, 18, axes=axes, mode="cubic"), inputs, (3,))[0]
        for axes in ((3, 2), (-1, -2))
    ]
    assert found[0].shape == (1, 2, 9, 7)
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [(3, 2), (2, 5), (9, 3)])
def test_antialias(mode: str, sizes: tuple[int, int]) -> None:
    inputs = [_x(1, 1, 7, 6), None, None, np.array([1, 1, *sizes])]
    assert_agrees("Resize", inputs, 18, (3,), mode=mode, antialias=1, tolerance=1e-4)


@given(
    st.tuples(*[st.sampled_from([0.0, 0.25, -0.25, 0.375])] * 2),
    st.tuples(*[st.sampled_from([0.75, 1.0, 1.25])] * 2),
    st.sampled_from(["nearest", "linear", "cubic"]),
)
def test_a_crop_is_resized(
    starts: tuple[float, float], ends: tuple[float, float], mode: str
) -> None:
    roi = np.array([0, 0, *starts, 1, 1, *ends], np.float32)
    inputs = [_x(1, 1, 5, 6), roi, None, np.array([1, 1, 4, 3])]
    given_: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": mode}
    bound = (1, 3)
    assert_agrees("Resize", inputs, 13, bound, extrapolation_value=7.0, tolerance=1e-4, **given_)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor"])
def test_neighbours_of_tensorflow(rounding: str) -> None:
    x = np.arange(5, dtype=np.float32)
    raw = single(
        "Resize", [x, None, None, np.array([8])], 11, mode="nearest", nearest_mode=rounding,
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    )  # fmt: skip
    (found,) = by_nacre(raw, [x, None, None, np.array([8])], (3,))
    at = (np.arange(8) + 0.5) * 5 / 8
    rounded = {"floor": np.floor, "ceil": np.ceil}.get(rounding, lambda v: np.ceil(v - 0.5))(at)
    assert found.tolist() == np.clip(rounded, 0, 4).tolist()


@given(
    st.integers(2, 40),
    st.integers(2, 40),
    st.booleans(),
    st.sampled_from(["half_pixel", "pytorch_half_pixel", "asymmetric"]),
    st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
)
def test_neighbours_at_ties(
    size: int, tenths: int, by_sizes: bool, coordinate: str, rounding: str
) -> None:
    scale = np.float32(tenths / 10)
    count = int(np.floor(np.float32(size) * scale))
    assume(count not in (0, size))  # onnxruntime copies what keeps its size, whatever the scale
    inputs: list[Array | None] = [np.arange(size, dtype=np.float32), None, np.array([scale])]
    if by_sizes:
        inputs[2:] = [None, np.array([count])]
    given_: dict[str, Any] = {"coordinate_transformation_mode": coordinate}
    assert_agrees("Resize", inputs, 19, (2, 3), mode="nearest", nearest_mode=rounding, **given_)


@pytest.mark.parametrize("mode", ["align_corners", "tf_crop_and_resize"])
def test_a_size_that_is_what_the_scale_says_is_whole(mode: str) -> None:
    inputs: list[Array | None] = [np.arange(10, dtype=np.float32), np.array([0, 1], np.float32),
                                  np.array([0.7], np.float32)]  # fmt: skip
    given_: dict[str, Any] = {"coordinate_transformation_mode": mode}
    for rounding in ("floor", "ceil", "round_prefer_floor"):
        assert_agrees("Resize", inputs, 13, (1, 2), mode="nearest", nearest_mode=rounding, **given_)


def test_a_crop_ends_by_the_size_before_it_is_rounded() -> None:
    x, roi = np.array([1, 2, 3, 4], np.float32), np.array([0, 1], np.float32)
    inputs = [x, roi, np.array([0.6], np.float32)]
    given_: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    (found,) = by_nacre(single("Resize", inputs, 13, mode="linear", **given_), inputs, (1, 2))
    np.testing.assert_allclose(found, [1.0, 1 + 3 / 1.4], rtol=1e-6)


def test_neighbours_of_an_axis_without_end_are_refused() -> None:
    inputs = [np.zeros(2, np.float32), None, None, np.array([1 << 36])]
    raw = single("Resize", inputs, 11, coordinate_transformation_mode="tf_half_pixel_for_nn")
    with pytest.raises(InputError, match="is too long"):
        by_nacre(raw, inputs, (3,))


def test_corners_are_aligned_by_the_size_before_it_is_rounded() -> None:
    x, scales = np.array([[1, 2, 3, 4]], np.float32), np.array([1, 0.6], np.float32)
    given_: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    (found,) = by_nacre(single("Resize", [x, None, scales], 13, **given_), [x, None, scales], (2,))
    assert found.shape == (1, 2)
    np.testing.assert_allclose(found, [[1.0, 1 + 3 / 1.4]], rtol=1e-6)


def test_integers_are_cut_and_not_rounded() -> None:
    x, wanted = np.array([[0, 3]], np.uint8), np.array([1, 4])
    raw = single("Resize", [x, None, None, wanted], 13, mode="linear")
    (found,) = by_nacre(raw, [x, None, None, wanted], (3,))
    assert found.tolist() == [[0, 0, 2, 3]]


@pytest.mark.parametrize(
    ("inputs", "given_", "told"),
    [
        ([None, None, np.array([0, 1])], {}, "expected 2 positive sizes"),
        ([None, None, np.array([1])], {}, "expected 2 positive sizes"),
        ([None, np.array([1, -2], np.float32)], {}, "`scales` has -2.0"),
        ([None, np.array([1, np.nan], np.float32)], {}, "`scales` has nan"),
        ([None, np.array([1, 1e30], np.float32)], {}, "`scales` has"),
        ([], {}, "neither `scales` nor `sizes`"),
        ([None, None, np.array([2, 2])], {"mode": "sinc"}, "`mode` is `sinc`"),
        ([None, None, np.array([2])], {"axes": [5]}, "`axes` is \\[5\\]"),
    ],
)
def test_what_is_no_size(inputs: list[Array | None], given_: dict[str, Any], told: str) -> None:
    whole = [np.zeros((2, 2), np.float32), *inputs]
    with pytest.raises(InputError, match=told):
        by_nacre(single("Resize", whole, 18, **given_), whole, (2, 3))


def test_sizes_that_are_computed_are_refused() -> None:
    inputs = [np.zeros((2, 2), np.float32), None, None, np.array([4, 4])]
    with pytest.raises(InputError, match="`sizes` is computed when the model runs"):
        by_nacre(single("Resize", inputs, 18), inputs)
