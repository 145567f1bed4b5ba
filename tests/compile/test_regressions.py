"""Models that once gave a wrong plan, a refused one, or none, as small as they could be made."""

from __future__ import annotations

import pytest

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.compile.options import Precision
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values
from tests.compile.random_graphs import Case, feeds_of
from tests.compile.test_random_graphs import TINY, require_right


def right(module: Module, *devices: str, precision: Precision = "f16") -> None:
    """A clean plan with the right values on every device."""
    for device in devices or ("npm4k", TINY):
        require_right(Case(module, feeds_of(module)), device, precision)


def test_a_bias_of_f32_is_a_sum_of_its_own() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (6, 5, 7))
    weights, bias = builder.constant(values((3, 7), 1)), builder.constant(values((3,), 2))
    right(builder.module(builder.add("Linear", x, weights, bias)), "nem_reference", precision="f32")


def test_an_average_in_f32_adds_up_in_another_order() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 4, 31, 1))
    y = builder.add("AvgPool", x, layout="NHWC", kernel=(2, 3), strides=(1, 2))
    right(builder.module(y), "nem_reference", precision="f32")


def test_a_narrow_slice_beside_a_part_of_itself_is_no_whole_tensor() -> None:
    # The slice spans the joined axis but not the others: its source cannot lie in its place.
    right(
        core.parse(
            """
%0 = Input () {name="x"} : tensor<f32[2, 3, 20, 2]>
%1 = ReluNan (%0) : tensor<f32[2, 3, 20, 2]>
%2 = Slice (%1) {ends=[2, 3, 19, 2], starts=[0, 0, 0, 0], steps=[1, 1, 1, 1]} : tensor<f32[2, 3, 19, 2]>
%3 = Slice (%2) {ends=[2, 1, 19, 2], starts=[0, 0, 0, 0], steps=[1, 1, 1, 1]} : tensor<f32[2, 1, 19, 2]>
%4 = Concat (%3, %2) {axis=1} : tensor<f32[2, 4, 19, 2]>
outputs: %4
"""
        )
    )


def test_a_row_that_does_not_fit_is_an_error_even_where_nothing_could_stay_in_l1() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 9000))
    with pytest.raises(InputError) as caught:
        nacre.compile(builder.module(builder.add("Softmax", x, axis=1)), TINY)
    assert [d.code for d in caught.value.diagnostics] == ["CMP02"]


def test_copies_alone_may_keep_a_tensor_in_l1() -> None:
    right(
        core.parse(
            """
%0 = Input () {name="x"} : tensor<f32[9, 6, 1]>
%1 = Flip (%0) {axes=[0]} : tensor<f32[9, 6, 1]>
%2 = Broadcast (%1) {shape=[9, 6, 4]} : tensor<f32[9, 6, 4]>
outputs: %2
"""
        )
    )
