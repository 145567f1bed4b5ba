"""Long windows: the elements of each against a walk over places, and how much work they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.windows.long_windows import combine_blocks, is_long
from nacre.kernels.windows.pooling import POOLING
from nacre.kernels.windows.sliding import Axis
from tests.kernels.oracle_views import Array, result_of, tensor

pytestmark = pytest.mark.sampled(2)  # together they take long

MAXPOOL, AVGPOOL = POOLING


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    size, window, begin, end = (
        draw(st.integers(*few)) for few in ((1, 40), (1, 60), *[(0, 50)] * 2)
    )
    stride, dilation = draw(st.sampled_from([1, 1, 2, 7, 50])), draw(st.sampled_from([1, 1, 2, 3]))
    return Axis(size, window, begin, end, stride, dilation, draw(st.booleans()))


def _windows(axis: Axis) -> list[list[int]]:
    """The elements of every window."""
    reach = range(0, axis.window * axis.dilation, axis.dilation)
    starts = (index * axis.stride - axis.begin for index in range(axis.count))
    return [[at for at in (start + step for step in reach) if 0 <= at < axis.size]
            for start in starts]  # fmt: skip


@given(axes().filter(lambda axis: axis.count > 0), st.integers(0, 1 << 30))
def test_every_window_has_its_own_elements(axis: Axis, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-999, 999, (2, axis.size, 3)).astype(np.float32)
    sums, largest = (
        combine_blocks(axis, 1, combine, neutral)(x)
        for combine, neutral in ((np.add, 0.0), (np.maximum, -np.inf))
    )
    for index, places in enumerate(_windows(axis)):
        assert (sums[:, index] == x[:, places].sum(axis=1)).all()
        assert (largest[:, index] == x[:, places].max(axis=1, initial=-np.inf)).all()


@given(axes().filter(lambda axis: axis.count > 0))
def test_steps_are_the_places_that_lie_over_elements(axis: Axis) -> None:
    elements = [set(places) for places in _windows(axis)]
    found: list[set[int]] = [set() for _ in elements]
    for targets, sources in axis.steps:
        for window, place in zip(
            range(axis.count)[targets], range(axis.size)[sources], strict=True
        ):
            found[window].add(place)
    assert found == elements


def test_a_sum_has_one_order_in_any_tile() -> None:
    """Of windows that lie apart, beside each other and over one another, with any number beside."""
    x = np.random.default_rng(3).normal(size=(1, 1000)).astype(np.float32)
    whole = combine_blocks(Axis(1000, 301, 0, 0, 1, 1), 1, np.add, 0.0)(x)
    for first in (0, 77, 350):
        for count, stride in ((1, 1), (2, 349), (9, 30), (300, 1)):
            last = first + (count - 1) * stride
            axis = Axis(last + 301 - first, 301, 0, 0, stride, 1)
            tile = combine_blocks(axis, 1, np.add, 0.0)(x[:, first : last + 301])
            assert tile.tobytes() == whole[:, first : last + 1 : stride].tobytes()


class _Counting:
    """A sum that counts the elements that it makes."""

    def __init__(self) -> None:
        self.elements = 0

    def __call__(self, a: Array, b: Array) -> Array:
        made: Array = np.add(a, b)
        self.elements += made.size
        return made


@pytest.mark.parametrize(
    ("pads", "stride"), [((0, 0), 1), ((1000, 1000), 1), ((0, 0), 40), ((0, 0), 2001)]
)
def test_windows_of_thousands_are_some_steps_for_each_element(
    pads: tuple[int, int], stride: int
) -> None:
    counting, axis = _Counting(), Axis(8192, 2001, *pads, stride, 1)
    assert is_long(axis)
    combine_blocks(axis, 0, counting, 0.0)(np.zeros(8192, np.float32))
    assert counting.elements < 25 * 8192  # twice the digits of 2001 and more


@pytest.mark.parametrize("elem", ["i8", "f32"])
def test_long_means_and_maxima_are_those_of_their_elements(elem: str) -> None:
    values = np.random.default_rng(1).integers(-99, 99, (1, 300, 90, 2))
    x = tensor(elem, values.shape)
    given = {"kernel_shape": (201, 70), "pads": (100, 3, 50, 0), "strides": (3, 2)}
    largest, means = (
        result_of(primitive, values.astype(x.dtype), x, given) for primitive in (MAXPOOL, AVGPOOL)
    )
    rows, columns = Axis(300, 201, 100, 50, 3, 1), Axis(90, 70, 3, 0, 2, 1)
    for at, down in enumerate(_windows(rows)):
        for beside, across in enumerate(_windows(columns)):
            window = values[0, down][:, across]
            mean = window.mean(axis=(0, 1))
            assert (largest[0, at, beside] == window.max(axis=(0, 1))).all()
            assert np.allclose(
                means[0, at, beside], np.rint(mean) if elem == "i8" else mean, atol=1e-4
            )
