"""Views against NumPy: the same elements in the same order, whatever was done to them."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from nacre.compile.partition.views import View, collapse_axes, dense, reach

Array = npt.NDArray[Any]
Dims = tuple[int, ...]
shapes = st.lists(st.sampled_from((1, 1, 2, 3, 4, 6)), max_size=5).map(tuple)


def shown(view: View, memory: Array) -> Array:
    """The elements of a view, one by one."""
    found = np.empty(view.shape, memory.dtype)
    for index in product(*map(range, view.shape)):
        at = view.offset + sum(i * s for i, s in zip(index, view.strides, strict=True))
        found[index] = memory[at]
    return found


@st.composite
def viewed(draw: st.DrawFn) -> tuple[View, Array, Array]:
    """A view after some steps, the memory under it, and what NumPy made of the same steps."""
    shape = draw(shapes)
    memory = np.arange(prod(shape))
    view, array = View.whole(7, shape), memory.reshape(shape)
    for _ in range(draw(st.integers(0, 4))):
        way = draw(st.sampled_from(("slice", "broadcast", "permute", "reshape")))
        if way == "slice":
            starts = tuple(draw(st.integers(0, n - 1)) for n in array.shape)
            steps = tuple(draw(st.integers(1, 3)) for _ in array.shape)
            cut = array[tuple(slice(a, None, s) for a, s in zip(starts, steps, strict=True))]
            view, array = view.slice(starts, steps, cut.shape), cut
        elif way == "broadcast":
            wide = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in array.shape)
            wide = (*draw(st.sampled_from(((), (1,), (2,)))), *wide)
            view, array = view.broadcast(wide), np.broadcast_to(array, wide)
        elif way == "permute":
            order = tuple(draw(st.permutations(range(array.ndim))))
            view, array = view.permute(order), array.transpose(order)
        else:
            target = draw(_other_shapes(array.size))
            found = view.reshape(target)
            if found is not None:
                view, array = found, array.reshape(target)
    return view, memory, array


@st.composite
def _other_shapes(draw: st.DrawFn, size: int) -> Dims:
    left, found = size, []
    for _ in range(draw(st.integers(0, 3))):
        found.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= found[-1]
    return (*found, left) if left > 1 or not found or draw(st.booleans()) else tuple(found)


@given(viewed())
def test_steps_on_views_are_those_of_numpy(case: tuple[View, Array, Array]) -> None:
    view, memory, expected = case
    assert view.shape == expected.shape
    assert np.array_equal(shown(view, memory), expected)


@given(viewed(), st.data())
def test_a_reshape_is_refused_only_where_strides_cannot_say_it(
    case: tuple[View, Array, Array], data: st.DataObject
) -> None:
    view, memory, array = case
    target = data.draw(_other_shapes(array.size))
    found = view.reshape(target)
    if found is not None:
        assert np.array_equal(shown(found, memory), array.reshape(target))
        return
    # NumPy copies where it has to; with strides alone it raises.
    strided = np.lib.stride_tricks.as_strided(
        memory[view.offset :], view.shape, [s * memory.itemsize for s in view.strides]
    )
    assert not np.shares_memory(strided.reshape(target), memory) or 1 in view.shape


@given(viewed())
def test_dense_views_are_those_whose_elements_follow_one_another(
    case: tuple[View, Array, Array],
) -> None:
    view, memory, array = case
    places = shown(view, memory).ravel()
    is_run = np.array_equal(places, np.arange(places[0], places[0] + array.size))
    assert view.is_dense == is_run


@given(shapes, st.data())
def test_collapsed_axes_reach_the_same_elements(shape: Dims, data: st.DataObject) -> None:
    strides = [
        data.draw(st.one_of(st.just(dense(shape)), st.just((0,) * len(shape)),
                            st.tuples(*[st.sampled_from((0, 1, 2, 6, 12))] * len(shape))))
        for _ in range(data.draw(st.integers(1, 3)))
    ]  # fmt: skip
    sizes, found = collapse_axes(shape, strides)
    assert prod(sizes) == prod(shape)
    assert 1 not in sizes
    for before, after in zip(strides, found, strict=True):
        assert _offsets(shape, before) == _offsets(sizes, after)
        assert reach(shape, before) == 1 + max(_offsets(shape, before))


def _offsets(shape: Dims, strides: Dims) -> list[int]:
    return [
        sum(i * s for i, s in zip(index, strides, strict=True))
        for index in product(*map(range, shape))
    ]
