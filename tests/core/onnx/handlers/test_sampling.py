"""GridSample, AffineGrid, RoiAlign and DeformConv against onnxruntime."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from tests.core.onnx.single import Array, assert_agrees, by_nacre, by_runtime, single

SEEDS = st.integers(0, 1 << 16)
SIZES = st.integers(1, 5)


def _grid(seed: int, *dims: int) -> Array:
    """Coordinates in and around the tensor, away from ties."""
    rng = np.random.default_rng(seed)
    return (rng.uniform(-1.7, 1.7, dims)).astype(np.float32)


def _x(seed: int, *dims: int) -> Array:
    return np.random.default_rng(seed + 1).standard_normal(dims).astype(np.float32)


@given(
    SEEDS,
    st.tuples(SIZES, SIZES),
    st.sampled_from(["bilinear", "nearest", "bicubic"]),
    st.sampled_from(["zeros", "border", "reflection"]),
    st.booleans(),
    st.sampled_from([16, 20, 22]),
)
def test_grid_sample(
    seed: int, dims: tuple[int, int], mode: str, padding: str, is_aligned: bool, opset: int
) -> None:
    # A plane of one row has no way back and forth between its corners.
    dims = (max(dims[0], 2), max(dims[1], 2)) if is_aligned else dims
    named = mode if opset < 20 else mode.removeprefix("bi")
    inputs = [_x(seed, 2, 3, *dims), _grid(seed, 2, 3, 2, 2)]
    assert_agrees(
        "GridSample", inputs, opset, mode=named, padding_mode=padding,
        align_corners=int(is_aligned), tolerance=1e-3,
    )  # fmt: skip


@pytest.mark.full
@given(SEEDS, st.sampled_from(["linear", "nearest"]), st.booleans())
def test_grid_sample_of_volumes(seed: int, mode: str, is_aligned: bool) -> None:
    inputs = [_x(seed, 1, 2, 3, 4, 2), _grid(seed, 1, 2, 3, 1, 3)]
    given_: dict[str, Any] = {"mode": mode, "align_corners": int(is_aligned)}
    for padding in ("zeros", "border", "reflection"):
        raw = single("GridSample", inputs, 20, padding_mode=padding, **given_)
        found, expected = by_nacre(raw, inputs)[0], by_runtime(raw, inputs)[0]
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


def test_a_grid_of_another_rank_is_unsound() -> None:
    inputs = [np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 2, 2, 3), np.float32)]
    with pytest.raises(InputError, match="does not go with"):
        by_nacre(single("GridSample", inputs, 20), inputs)


@given(SEEDS, st.tuples(SIZES, SIZES, SIZES), st.booleans(), st.booleans())
def test_affine_grid(seed: int, dims: tuple[int, ...], is_flat: bool, is_aligned: bool) -> None:
    sizes = tuple(max(d, 2) for d in dims) if is_aligned else dims
    rank = 2 if is_flat else 3
    inputs = [_x(seed, 2, rank, rank + 1), np.array([2, 1, *sizes[:rank]])]
    assert_agrees("AffineGrid", inputs, 20, (1,), align_corners=int(is_aligned), tolerance=1e-4)


@given(
    SEEDS,
    st.sampled_from(["avg", "max"]),
    st.sampled_from(["half_pixel", "output_half_pixel"]),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([10, 16]),
)
def test_roi_align(seed: int, mode: str, coordinate: str, ratio: int, opset: int) -> None:
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(-1.0, 9.0, (3, 2, 2)).astype(np.float32), axis=1)
    inputs = [_x(seed, 2, 3, 6, 7), corners.reshape(3, 4), rng.integers(0, 2, 3)]
    given_: dict[str, Any] = {
        "mode": mode,
        "sampling_ratio": ratio,
        "output_height": 2,
        "output_width": 3,
    }
    if opset >= 16:
        given_["coordinate_transformation_mode"] = coordinate
    bound = (1,) if ratio == 0 else ()
    raw = single("RoiAlign", inputs, opset, spatial_scale=0.75, **given_)
    found, expected = by_nacre(raw, inputs, bound)[0], by_runtime(raw, inputs)[0]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


def test_samples_of_regions_that_are_computed_have_a_number() -> None:
    inputs = [np.zeros((1, 1, 4, 4), np.float32), np.zeros((1, 4), np.float32), np.zeros(1, int)]
    with pytest.raises(InputError, match="how many samples there are depends on the regions"):
        by_nacre(single("RoiAlign", inputs, 16), inputs)


def _deformed(
    x: Array, w: Array, offset: Array, mask: Array, groups: int, bends: int, stride: int, pad: int
) -> Array:
    """A deformable convolution, element by element."""
    batch, channels, height, width = x.shape
    outputs, per_group, high, wide = w.shape
    rows, columns = offset.shape[2:]
    found = np.zeros((batch, outputs, rows, columns))

    def pixel(plane: Array, y: float, x_: float) -> float:
        total = 0.0
        for i, j in product((0, 1), (0, 1)):
            row, column = int(np.floor(y)) + i, int(np.floor(x_)) + j
            if 0 <= row < height and 0 <= column < width:
                total += plane[row, column] * (1 - abs(y - row)) * (1 - abs(x_ - column))
        return total

    for n, o, i, j in np.ndindex(found.shape):
        for c, ky, kx in np.ndindex(per_group, high, wide):
            channel = o // (outputs // groups) * per_group + c
            tap = (channel // (channels // bends)) * high * wide + ky * wide + kx
            y = i * stride - pad + ky + offset[n, 2 * tap, i, j]
            x_ = j * stride - pad + kx + offset[n, 2 * tap + 1, i, j]
            found[n, o, i, j] += w[o, c, ky, kx] * mask[n, tap, i, j] * pixel(x[n, channel], y, x_)
    return found


@pytest.mark.parametrize(("groups", "bends"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (2, 1)])
def test_deform_conv(groups: int, bends: int, stride: int, pad: int) -> None:
    x, w = _x(1, 2, 4, 5, 4), _x(2, 2, 4 // groups, 2, 3)
    rows, columns = (5 + 2 * pad - 2) // stride + 1, (4 + 2 * pad - 3) // stride + 1
    offset = _x(3, 2, bends * 2 * 3 * 2, rows, columns)
    mask, bias = _x(4, 2, bends * 6, rows, columns), _x(5, 2)
    inputs = [x, w, offset, bias, mask]
    given_: dict[str, Any] = {
        "group": groups,
        "offset_group": bends,
        "strides": [stride] * 2,
        "pads": [pad] * 4,
    }
    (found,) = by_nacre(single("DeformConv", inputs, 19, **given_), inputs)
    expected = _deformed(x, w, offset, mask, groups, bends, stride, pad) + bias[:, None, None]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
