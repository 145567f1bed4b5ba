"""One constant for the same elements, however often an importer computes them."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.importing.origins import Origins, array_span, span_of
from nacre.core.values import Array


def _large(seed: int = 1) -> Array:
    made: Array = np.random.default_rng(seed).standard_normal((40, 50)).astype(np.float32)
    return made


def test_the_same_elements_are_one_constant() -> None:
    builder = ModelBuilder()
    first = builder.constant(_large())
    assert builder.constant(_large()) == first
    assert builder.constant(np.asfortranarray(_large())) == first
    assert builder.fork().constant(_large()) == first
    assert builder.count == 1


@pytest.mark.parametrize("place", range(0, 2000, 37))
def test_one_other_element_makes_another_constant(place: int) -> None:
    builder, other = ModelBuilder(), _large()
    first = builder.constant(_large())
    other.flat[place] = np.nextafter(other.flat[place], np.float32(9))
    assert builder.constant(other) != first


def test_bytes_decide_not_values() -> None:
    builder = ModelBuilder()
    zeros, signed = np.zeros(100, np.float32), np.zeros(100, np.float32)
    signed[50] = -0.0
    assert builder.constant(zeros) != builder.constant(signed)
    first, second = np.zeros(100, np.float32), np.zeros(100, np.float32)
    first[50] = second[50] = np.nan
    assert builder.constant(first) == builder.constant(second)


def test_types_and_shapes_are_told_apart() -> None:
    builder = ModelBuilder()
    made = {
        builder.constant(np.zeros((10, 20), np.float32)),
        builder.constant(np.zeros((20, 10), np.float32)),
        builder.constant(np.zeros((10, 20), np.int32)),
        builder.constant(np.zeros((10, 20), np.float32), "f16"),
    }
    assert len(made) == 4


def test_an_array_belongs_to_the_parameter_in_whose_memory_it_lies() -> None:
    origins, weight, other = Origins(), _large(1), _large(2)
    assert origins.of_array(weight) == ()
    origins.add_array(weight, ("a",))
    origins.add_array(weight, ("a", "b"))  # tied
    origins.add_array(weight[:3], ("c",))  # a part is no parameter
    assert origins.owners(array_span(weight[2:5].T)) == ("a", "b")
    assert origins.owners(array_span(other)) == ()
    assert origins.of_array(weight[2:5]) == ("a", "b")
    assert origins.of_array(weight[5:9]) == ("a.1", "b.1")
    assert origins.of_array(weight[2:5]) == ("a", "b")
    assert origins.of_array(other) == ()


@pytest.mark.parametrize(
    ("span", "names"),
    [
        ((100, 200), ("a",)), ((150, 160), ("a",)), ((199, 200), ("a",)), ((200, 300), ("b",)),
        ((190, 210), ()), ((50, 60), ()), ((300, 310), ()), ((350, 350), ()), ((450, 460), ()),
    ],
)  # fmt: skip
def test_memory_belongs_to_one_parameter_or_to_none(
    span: tuple[int, int], names: tuple[str, ...]
) -> None:
    origins = Origins()
    for given, called in (((200, 300), "b"), ((100, 200), "a"), ((350, 350), "c")):
        origins.add(None, given, (called,))
    origins.add(None, (400, 500), ())
    assert origins.owners(span) == origins.of(span) == names


def test_an_owner_lives_as_long_as_its_memory_is_known() -> None:
    origins, owner = Origins(), _large()
    alive = weakref.ref(owner)
    origins.add_array(owner, ("a",))
    del owner
    assert alive() is not None


@pytest.mark.parametrize(
    ("shape", "strides", "span"),
    [
        ((), (), (100, 104)),
        ((3,), (4,), (100, 112)),
        ((3,), (-4,), (92, 104)),
        ((2, 3), (40, 4), (100, 152)),
        ((2, 3), (-40, 8), (60, 120)),
        ((5,), (0,), (100, 104)),
        ((0, 3), (12, 4), (100, 100)),
    ],
)
def test_memory_reaches_from_the_first_element_to_the_last(
    shape: tuple[int, ...], strides: tuple[int, ...], span: tuple[int, int]
) -> None:
    assert span_of(100, shape, strides, 4) == span
