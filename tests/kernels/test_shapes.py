"""Shape functions against what NumPy does, or against windows counted one by one."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nacre.kernels.interface import shapes
from nacre.kernels.interface.shapes import Dims

dims = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
small = st.integers(-7, 7)


def counted(size: int, window: int, begin: int, end: int, stride: int, dilation: int) -> int:
    """Slide the window from the first padded element on and count where it fits."""
    fits = 0
    start = -begin
    while start + dilation * (window - 1) < size + end:
        fits += 1
        start += stride
    return fits


spatial = st.tuples(
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(1, 3),
)


@given(spatial)
def test_windows_along_an_axis(part: tuple[int, int, int, int, int, int]) -> None:
    count = shapes.window_count(*part)

    assert max(count, 0) == counted(*part)


@given(st.lists(spatial, min_size=1, max_size=3), st.integers(1, 3), st.integers(1, 6))
def test_a_convolution(
    axes: list[tuple[int, int, int, int, int, int]], batch: int, channels: int
) -> None:
    assume(all(counted(*axis) > 0 for axis in axes))
    size, window, begins, ends, strides, dilations = zip(*axes, strict=True)
    x = (batch, *size, 4)
    y = tuple(counted(*axis) for axis in axes)

    assert shapes.conv(x, (*window, 4, channels), begins + ends, strides, dilations) == (
        batch,
        *y,
        channels,
    )
    assert shapes.depthwise(x, (*window, 4, 3), begins + ends, strides, dilations) == (
        batch,
        *y,
        12,
    )


@given(st.lists(spatial, min_size=2, max_size=2), st.integers(1, 3))
def test_a_pooling(axes: list[tuple[int, int, int, int, int, int]], channels: int) -> None:
    undilated = [(*axis[:5], 1) for axis in axes]
    assume(all(counted(*axis) > 0 for axis in undilated))
    size, window, begins, ends, strides, _ = zip(*undilated, strict=True)

    found = shapes.pool((1, *size, channels), window, begins + ends, strides)

    assert found == (1, *(counted(*axis) for axis in undilated), channels)


def test_the_whitepaper_convolution_keeps_its_size() -> None:
    x, w = (1, 16, 16, 64), (3, 3, 64, 128)
    assert shapes.conv(x, w, (1, 1, 1, 1), (1, 1), (1, 1)) == (1, 16, 16, 128)
    assert shapes.conv(x, w, (0, 0, 0, 0), (1, 1), (1, 1)) == (1, 14, 14, 128)


@given(dims, dims)
def test_broadcasting(a: Dims, b: Dims) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        assert shapes.broadcast(a, b) is None
    else:
        assert shapes.broadcast(a, b) == expected
        assert shapes.broadcasts_to(a, b) == (expected == b)


matrices = st.lists(st.integers(1, 3), min_size=2, max_size=4).map(tuple)


@given(matrices, matrices)
def test_a_product(a: Dims, b: Dims) -> None:
    try:
        expected = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        assert shapes.matmul(a, b) is None
    else:
        assert shapes.matmul(a, b) == expected


@given(st.data(), dims)
def test_a_transposition(data: st.DataObject, x: Dims) -> None:
    perm = tuple(data.draw(st.permutations(range(len(x)))))

    assert shapes.transpose(x, perm) == np.zeros(x).transpose(perm).shape


@pytest.mark.parametrize("perm", [(0,), (0, 0), (0, 2), (1, 0, 2), (-1, 0)])
def test_no_permutation(perm: Dims) -> None:
    assert shapes.transpose((2, 3), perm) is None


@given(st.lists(dims, min_size=1, max_size=3), st.integers(-4, 3))
def test_a_concatenation(inputs: list[Dims], axis: int) -> None:
    assume(shapes.axis_of(axis, len(inputs[0])) is not None)
    try:
        expected = np.concatenate([np.zeros(x) for x in inputs], axis).shape
    except ValueError:
        assert shapes.concat(inputs, axis % len(inputs[0])) is None
    else:
        assert shapes.concat(inputs, axis) == expected


def test_tensors_of_different_rank_are_not_joined() -> None:
    assert shapes.concat([(2, 4), (2,)], 1) is None
    assert shapes.concat([(2,), (2, 4)], 0) is None


@given(dims, st.integers(-4, 3), st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
def test_a_split(x: Dims, axis: int, sizes: Dims) -> None:
    assume(shapes.axis_of(axis, len(x)) is not None)
    parts = shapes.split(x, axis, sizes)
    if parts is None:
        assert sum(sizes) != x[axis] or 0 in sizes
        return
    cuts = np.cumsum(sizes)[:-1].tolist()
    assert parts == [part.shape for part in np.split(np.zeros(x), cuts, axis)]


@given(st.data(), dims)
def test_a_slice(data: st.DataObject, x: Dims) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(x) - 1)))))
    cuts = [(data.draw(small), data.draw(small), data.draw(small.filter(bool))) for _ in axes]
    starts, ends, steps = (tuple(cut[i] for cut in cuts) for i in range(3))
    index = [slice(None)] * len(x)
    for axis, cut in zip(axes, cuts, strict=True):
        index[axis] = slice(*cut)

    assert shapes.slice_(x, starts, ends, axes, steps) == np.zeros(x)[tuple(index)].shape


@given(st.data(), dims)
def test_padding(data: st.DataObject, x: Dims) -> None:
    pads = tuple(data.draw(st.integers(0, 3)) for _ in range(2 * len(x)))
    widths = list(zip(pads[: len(x)], pads[len(x) :], strict=True))

    assert shapes.pad(x, pads) == np.pad(np.zeros(x), widths).shape


@given(dims, dims, st.integers(-4, 3))
def test_gathering(x: Dims, indices: Dims, axis: int) -> None:
    assume(shapes.axis_of(axis, len(x)) is not None)

    assert (
        shapes.gather(x, indices, axis) == np.take(np.zeros(x), np.zeros(indices, int), axis).shape
    )


@given(st.data(), dims, st.booleans())
def test_a_reduction(data: st.DataObject, x: Dims, keepdims: bool) -> None:
    axes = tuple(data.draw(st.sets(st.integers(0, len(x) - 1))))
    expected = np.zeros(x).max(axis=axes, keepdims=keepdims).shape

    assert shapes.reduce(x, axes, keepdims) == (expected or (1,))


@given(dims)
def test_how_many_elements(x: Dims) -> None:
    assert shapes.count(x) == prod(x) == np.zeros(x).size


@pytest.mark.parametrize(
    ("axis", "rank", "expected"), [(0, 2, 0), (1, 2, 1), (-1, 2, 1), (-2, 2, 0), (2, 2, None)]
)
def test_an_axis(axis: int, rank: int, expected: int | None) -> None:
    assert shapes.axis_of(axis, rank) == expected


def test_several_axes() -> None:
    assert shapes.axes_of((0, -1), 3) == (0, 2)
    assert shapes.axes_of((), 3) == ()
    assert shapes.axes_of((2, -1), 3) is None  # the same axis twice
    assert shapes.axes_of((0, 3), 3) is None
