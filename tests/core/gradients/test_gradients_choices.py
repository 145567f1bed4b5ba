"""Gradients of choices: those of the side that is taken, as if there were no other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.gradients.grad import grad

Array = np.ndarray[Any, Any]
X = np.array([0.0, 1.0, 2.0], np.float32)
W = np.array([3.0, 0.0, 0.5], np.float32)


class Expression:
    """Writes `choose(p, choose(q, a, b), c) + shared`, or just the one that is taken."""

    def __init__(self, taken: tuple[bool, bool] | None) -> None:
        self.made = Builder()
        self.x = self.made.input("x", "f32", (3,))
        self.w = self.made.input("w", "f32", (3,))
        self.p, self.q = (self.made.input(name, "bool", ()) for name in "pq")
        self.taken = taken

    def binop(self, op: str, a: int, b: int) -> int:
        return self.made.add("BinOp", a, b, op=op)

    def log(self) -> int:
        return self.made.add("Log", self.x)  # -inf at 0; all sides have the same one

    def side(self, place: int) -> int:
        """What the sides are: each is not finite somewhere."""
        if place == 0:
            return self.binop("Mul", self.log(), self.w)
        if place == 1:
            return self.binop("Div", self.x, self.w)
        if place == 2:
            return self.binop("Add", self.made.add("Unary", self.w, op="Sqrt"), self.log())
        return self.binop("Mul", self.x, self.w)

    def choose(self, condition: int, is_met: int, a: int, b: int) -> int:
        if self.taken is None:
            return self.made.add("Where", condition, self.side_of(a), self.side_of(b))
        return self.side_of(a if self.taken[is_met] else b)

    def side_of(self, place: int) -> int:
        return self.choose(self.q, 1, place - 10, place - 9) if place >= 10 else self.side(place)

    def module(self) -> Any:  # noqa: ANN401
        chosen = self.choose(self.p, 0, 10, 12)  # choose(q, 0, 1), choose(q, 2, 3)
        return self.made.module(self.binop("Add", chosen, self.made.add("Neg", self.w)))


@pytest.mark.parametrize("taken", list(product([True, False], repeat=2)))
@pytest.mark.parametrize("wrt", [("x", "w"), ("x",), ("w",)])
def test_the_gradient_is_that_of_the_side_that_is_taken(
    taken: tuple[bool, bool], wrt: tuple[str, ...]
) -> None:
    given = {"x": X, "w": W, "p": np.array(taken[0]), "q": np.array(taken[1])}
    found = CoreSession(grad(Expression(None).module(), wrt)).run(given)
    alone = CoreSession(grad(Expression(taken).module(), wrt)).run(given)
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_choice_nothing_is_added() -> None:
    made = Builder()
    x = made.input("x", "f32", (3,))
    mask = made.input("m", "bool", (3,))
    chosen = made.add("Where", mask, x, made.add("Neg", x))
    text = str(grad(made.module(made.add("BinOp", chosen, x, op="Mul")), ["x"]))
    assert text.count("Where") == 3  # its own, and a side each
