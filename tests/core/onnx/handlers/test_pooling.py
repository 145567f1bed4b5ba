"""Windows whose elements are named: indices of MaxPool, MaxUnpool, Col2Im, MaxRoiPool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from nacre.base.diagnostics import InputError
from tests.core.onnx.single import Array, assert_agrees, by_nacre, by_runtime, single

SEEDS = st.integers(0, 1 << 16)


def _x(seed: int, *dims: int) -> Array:
    return np.random.default_rng(seed).permutation(int(np.prod(dims))).astype("f4").reshape(dims)


@given(
    SEEDS,
    st.tuples(st.integers(3, 7), st.integers(3, 7)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 2),
    st.booleans(),
    st.integers(0, 1),
    st.sampled_from([8, 10, 12, 22]),
)
def test_indices_of_max_pool(
    seed: int,
    dims: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: int,
    is_up: bool,
    order: int,
    opset: int,
) -> None:
    dilation = dilation if opset >= 10 else 1
    assume(all(d >= dilation * (k - 1) + 1 for d, k in zip(dims, kernel, strict=True)))
    given_: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "storage_order": order}
    if opset >= 10:
        given_ |= {"dilations": [dilation] * 2, "ceil_mode": int(is_up)}
    pads = [k // 2 if dilation == 1 else 0 for k in kernel]
    assert_agrees("MaxPool", [_x(seed, 2, 3, *dims)], opset, (), 2, pads=[*pads, *pads], **given_)


@pytest.mark.parametrize("dims", [(7,), (4, 3, 5)])
def test_indices_along_other_numbers_of_axes(dims: tuple[int, ...]) -> None:
    assert_agrees("MaxPool", [_x(3, 2, 2, *dims)], 12, (), 2, kernel_shape=[2] * len(dims))


def test_the_first_of_equals_is_found() -> None:
    assert_agrees("MaxPool", [np.zeros((1, 1, 4, 4), "f4")], 12, (), 2, kernel_shape=[2, 2])


def test_a_window_of_padding_has_no_index() -> None:
    x = np.zeros((1, 1, 2), np.float32)
    raw = single("MaxPool", [x], 12, 2, kernel_shape=[2], dilations=[3], pads=[1, 1])
    with pytest.raises(InputError, match="lies in the padding only"):
        by_nacre(raw, [x])


@given(SEEDS, st.tuples(st.integers(1, 4), st.integers(1, 4)), st.sampled_from([9, 11, 22]))
def test_max_unpool(seed: int, dims: tuple[int, int], opset: int) -> None:
    x = _x(seed, 2, 2, *dims)
    whole = int(np.prod(dims)) * 16
    indices = np.random.default_rng(seed).permutation(whole)[: x.size].reshape(x.shape)
    given_: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    assert_agrees("MaxUnpool", [x, indices], opset, **given_)


def test_an_unpooled_plane_lies_at_the_beginning_of_a_larger_one() -> None:
    x, indices = np.array([[[5.0, 6.0]]], np.float32), np.array([[[1, 2]]])
    inputs = [x, indices, np.array([1, 1, 6])]
    raw = single("MaxUnpool", inputs, 11, kernel_shape=[2], strides=[2])
    assert by_nacre(raw, inputs, (2,))[0].tolist() == [[[0, 5, 6, 0, 0, 0]]]


def _pooled(dims: Sequence[int], kernel: int, out: Sequence[int] | None, order: int = 0) -> bytes:
    """A MaxPool, and a MaxUnpool of what it gives."""
    given_: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [kernel] * 2}
    held = [] if out is None else [numpy_helper.from_array(np.array(out), "o")]
    nodes = [
        helper.make_node("MaxPool", ["x0"], ["p", "i"], storage_order=order, **given_),
        helper.make_node("Identity", ["i"], ["j"]),
        helper.make_node("MaxUnpool", ["p", "j", *(["o"] if held else [])], ["y"], **given_),
    ]
    x = helper.make_tensor_value_info("x0", TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "g", [x], [helper.make_empty_tensor_value_info("y")], held)
    imports = [helper.make_opsetid("", 13)]
    raw: bytes = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    return raw


@given(
    SEEDS,
    st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(3, 8)] * 2),
    st.integers(1, 3),
    st.integers(0, 1),
)
def test_what_was_pooled_has_its_shape_back(
    seed: int, dims: tuple[int, int, int, int], kernel: int, order: int
) -> None:
    x = _x(seed, *dims)
    raw = _pooled(dims, kernel, dims, order)
    (own,), (other,) = by_nacre(raw, [x]), by_runtime(raw, [x])
    assert own.shape == dims
    assert np.array_equal(own, other)


def test_indices_that_lie_outside_for_certain_are_told_of_at_import() -> None:
    for out in (None, (1, 2, 6, 8)):
        with pytest.raises(InputError) as caught:
            by_nacre(_pooled((1, 2, 5, 7), 2, out), [_x(1, 1, 2, 5, 7)])
        (found,) = caught.value.diagnostics
        assert found.code == "ONX04"
        assert "its indices are of a tensor of the shape [1, 2, 5, 7]" in found.message
        assert "the windows reach the shape [1, 2, 4, 6] of 48 elements" in found.message
        assert found.help == "give the node the `output_shape` [1, 2, 5, 7]"


@pytest.mark.parametrize("places", [[1, 4], [-1, 2]])
def test_known_indices_that_lie_outside_are_told_of_at_import(places: list[int]) -> None:
    inputs = [np.array([[[5.0, 6.0]]], np.float32), np.array([[places]])]
    raw = single("MaxUnpool", inputs, 11, kernel_shape=[2], strides=[2])
    with pytest.raises(InputError, match=f"its indices go from {places[0]} to {places[1]}, but"):
        by_nacre(raw, inputs, (1,))


@given(
    SEEDS,
    st.tuples(st.integers(3, 6), st.integers(3, 6)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(0, 1),
)
def test_col2im(
    seed: int, image: tuple[int, int], block: tuple[int, int], stride: int, dilation: int, pad: int
) -> None:
    rooms = [i + 2 * pad - dilation * (b - 1) - 1 for i, b in zip(image, block, strict=True)]
    assume(min(rooms) >= 0)
    length = int(np.prod([room // stride + 1 for room in rooms]))
    x = _x(seed, 2, 3 * block[0] * block[1], length)
    inputs = [x, np.array(image), np.array(block)]
    given_: dict[str, Any] = {
        "strides": [stride] * 2,
        "dilations": [dilation] * 2,
        "pads": [pad] * 4,
    }
    assert_agrees("Col2Im", inputs, 18, (1, 2), **given_)


def test_windows_that_do_not_fill_the_image_are_unsound() -> None:
    inputs = [np.zeros((1, 4, 5), np.float32), np.array([4, 4]), np.array([2, 2])]
    with pytest.raises(InputError, match="there are 5 windows, expected 9"):
        by_nacre(single("Col2Im", inputs, 18), inputs, (1, 2))


@given(SEEDS, st.sampled_from([0.5, 1.0]))
def test_max_roi_pool(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.integers(-2, 9, (3, 2, 2)), axis=1).reshape(3, 4) / scale
    rois = np.concatenate([rng.integers(0, 2, (3, 1)), corners], axis=1).astype(np.float32)
    inputs = [_x(seed, 2, 3, 6, 7), rois]
    assert_agrees("MaxRoiPool", inputs, 13, (1,), pooled_shape=[2, 3], spatial_scale=scale)
