"""Masks before a softmax in the ways that models spell them: plans give what graphs give."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.values import Array

LEAST = float(np.finfo(np.float32).min)
SIZE = 6
CAUSAL = np.tri(SIZE, dtype=bool)[None, None]
Q = (1, 2, SIZE, 8)


class Parts:
    """What a way of masking is put together from."""

    def __init__(self, hidden: float) -> None:
        self.b = Builder()
        q, k, self.v = (self.b.input(name, "f32", Q) for name in "qkv")
        self.mask = self.b.input("mask", "f32", (1, 1, 1, SIZE))  # added: 0 or what hides
        self.seen = self.b.input("seen", "bool", (1, 1, 1, SIZE))
        self.causal, self.hidden = self.b.constant(CAUSAL), self.number(hidden)
        scores = self.b.add("MatMul", q, self.b.add("Transpose", k, permutation=(0, 1, 3, 2)))
        self.scores = self.binary("Mul", scores, self.number(8**-0.5))

    def number(self, value: float) -> int:
        return self.b.constant(np.float32(value))

    def binary(self, op: str, a: int, b: int) -> int:
        return self.b.add("BinOp", a, b, op=op)

    def where(self, condition: int, a: int, b: int) -> int:
        return self.b.add("Where", condition, a, b)

    def chosen(self) -> int:
        """Scores that are not hidden by the order of words."""
        return self.where(self.causal, self.scores, self.hidden)


def choice_and_sum(p: Parts) -> int:
    return p.binary("Add", p.chosen(), p.mask)


def sum_and_choice(p: Parts) -> int:
    return p.where(p.causal, p.binary("Add", p.mask, p.scores), p.hidden)


def two_choices_and_sum(p: Parts) -> int:
    return p.binary("Add", p.mask, p.where(p.seen, p.chosen(), p.hidden))


def choice_of_the_others(p: Parts) -> int:
    hidden = p.b.add("Unary", p.seen, op="Not")
    return p.binary("Add", p.where(hidden, p.hidden, p.scores), p.mask)


def two_fills(p: Parts) -> int:
    return p.where(p.seen, p.chosen(), p.number(-5e7))


def product_and_difference(p: Parts) -> int:
    kept = p.b.constant(CAUSAL.astype(np.float32))
    less = p.binary("Mul", p.binary("Sub", kept, p.number(1)), p.hidden)
    return p.binary("Add", p.binary("Sub", p.binary("Mul", p.scores, kept), less), p.mask)


def held_from_below(p: Parts) -> int:
    return p.binary("Max", p.binary("Add", p.scores, p.mask), p.number(LEAST))


def scaled(p: Parts) -> int:
    return p.binary("Mul", p.binary("Add", p.scores, p.mask), p.number(0.5))


def seen_otherwise(p: Parts) -> int:
    return p.b.add("Reshape", choice_and_sum(p), new_shape=(2, SIZE, SIZE))


SPELLINGS = (
    choice_and_sum, sum_and_choice, two_choices_and_sum, choice_of_the_others, two_fills,
    product_and_difference, held_from_below, scaled, seen_otherwise,
)  # fmt: skip


def model(spelling: Callable[[Parts], int], hidden: float) -> Module:
    p = Parts(hidden)
    scores = spelling(p)
    weights = p.b.add("Softmax", scores, axis=-1)
    return p.b.module(p.b.add("Reshape", weights, new_shape=(1, 2, SIZE, SIZE)))


def inputs(hidden: float, seen: Array, seed: int = 1) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {n: random.standard_normal(Q).astype(np.float32) for n in "qkv"}
    mask = np.where(seen, np.float32(0), np.float32(hidden)).reshape(1, 1, 1, -1)
    return {**found, "q": found["q"] * 3, "mask": mask, "seen": seen.reshape(1, 1, 1, -1)}


LEFT = np.arange(SIZE) >= 2  # the first rows see nothing but what is padded


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("hidden", [LEAST, -1e4])
def test_f16_plans_mean_what_graphs_mean(
    spelling: Callable[[Parts], int], hidden: float
) -> None:  # fmt: skip
    module = model(spelling, hidden)
    bundle = nacre.compile(module, "npm4k")
    for seen in (LEFT, LEFT[::-1], np.zeros(SIZE, bool)):
        given = inputs(hidden, seen)
        wanted, found = evaluate(module, given)[0], bundle.run(given)["output0"]
        np.testing.assert_allclose(found, wanted, atol=4e-3)


def test_choices_with_minus_infinity_and_a_sum_hide_whole_rows() -> None:
    module = model(choice_and_sum, -np.inf)
    given = inputs(-np.inf, LEFT)
    found = nacre.compile(module, "npm4k").run(given)["output0"]
    assert not found[..., :2, :].any()
    np.testing.assert_allclose(found, evaluate(module, given)[0], atol=4e-3)


def test_choices_alone_are_left_as_they_are() -> None:
    legal = nacre.compile(model(Parts.chosen, LEAST), "npm4k").legal
    assert not [op for op in legal.operations if op.type.dtype == "f32"]


def test_calibration_data_may_hide_with_minus_infinity() -> None:
    module = model(choice_and_sum, -np.inf)
    data = [inputs(-np.inf, LEFT, seed) for seed in range(3)]
    bundle = nacre.compile(module, "npm4k", precision="i8", calibration=data)
    with warnings.catch_warnings(action="error"):  # nothing of a mask is lost
        found = bundle.run(data[0])["output0"]
    np.testing.assert_allclose(found, evaluate(module, data[0])[0], atol=6e-2)
    wrong = {**data[0], "mask": np.full((1, 1, 1, SIZE), np.nan, np.float32)}
    with pytest.raises(nacre.InputError, match=r"CMP09.*`mask` has nan at .*, expected numbers"):
        nacre.compile(module, "npm4k", precision="i8", calibration=[wrong])
    with pytest.warns(UserWarning, match=r"`mask` has 6 NaN and 0 infinities among 6"):
        bundle.run(wrong)


def test_data_that_is_no_mask_is_refused_with_what_helps() -> None:
    module = model(choice_and_sum, LEAST)
    wrong = inputs(LEAST, LEFT)
    wrong["q"][0, 0, 0, 0] = -np.inf
    with pytest.raises(nacre.InputError, match="CMP09") as caught:
        nacre.compile(module, "npm4k", precision="i8", calibration=[wrong])
    (found,) = caught.value.diagnostics
    assert "expected finite numbers" in found.message
    assert "before a softmax" in str(found.help)
