"""Integers that follow from floats are the legalised module's, to the bit, for every input."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.compile.bundle import differences
from nacre.core.builder import Builder
from nacre.core.module import Module

ROWS, WIDTH = 96, 192


def islands() -> Module:
    """Norms and a softmax between products, which at i8 stay floats."""
    random, builder = np.random.default_rng(3), Builder()
    x = builder.input("x", "f32", (ROWS, WIDTH))
    for _ in range(2):
        scale, bias = (
            builder.constant(random.normal(1, 0.2, WIDTH).astype(np.float32)) for _ in range(2)
        )
        x = builder.add("LayerNorm", x, scale, bias, axis=1)
        weight = random.standard_normal((WIDTH, WIDTH)) / 14
        x = builder.add("Linear", x, builder.constant(weight.astype(np.float32)))
    x = builder.add("RmsNorm", x, axis=1)
    return builder.module(builder.add("Softmax", x, axis=1))


@pytest.mark.full
def test_norms_and_softmax_of_a_plan_at_i8_equal_the_module_without_a_fixed_order() -> None:
    random = np.random.default_rng(5)
    samples = random.standard_normal((12, ROWS, WIDTH)).astype(np.float32)
    bundle = nacre.compile(islands(), "npm4k", precision="i8", calibration={"x": samples[:2]})
    for x in samples:
        found = differences._first_difference(bundle, {"x": x}, is_ordered=False)
        assert found is None, str(found)


def test_a_difference_counts_only_where_both_add_up_in_one_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    bundle = nacre.compile(builder.module(builder.add("Softmax", x, axis=1)), "npm4k")
    orders: list[bool] = []
    wrong = differences.Difference("softmax_0", "Softmax %1", (0, 0), 1.0, 2.0)

    def first(bundle: object, arrays: object, is_ordered: bool) -> differences.Difference | None:
        orders.append(is_ordered)
        return None if is_ordered else wrong

    monkeypatch.setattr(differences, "_first_difference", first)
    monkeypatch.setattr(differences, "_MOST_ORDERED_MACS", -1)
    assert differences.first_difference(bundle, {"x": np.ones((4, 8), np.float32)}) is None
    assert orders == [False, True]
