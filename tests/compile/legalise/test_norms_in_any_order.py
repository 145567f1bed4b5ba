"""Norms are found in whatever order their parts are spelt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values

SHAPE, AXES = (2, 24, 40), (2,)
Spelling = Callable[["Terms"], int]


class Terms:
    """A short way to write operations."""

    def __init__(self) -> None:
        self.b = Builder()
        self.x = self.b.input("x", "f32", SHAPE)

    def number(self, value: float) -> int:
        return self.b.constant(np.float32(value))

    def op(self, name: str, a: int, b: int | float) -> int:
        return self.b.add("BinOp", a, self.number(b) if isinstance(b, float) else b, op=name)

    def unary(self, name: str, a: int) -> int:
        return self.b.add("Unary", a, op=name)

    def mean(self, a: int) -> int:
        return self.b.add("Mean", a, axes=AXES, keepdims=True)

    def squares(self, a: int, count: float = 40.0) -> int:
        made = self.b.add("Reduce", a, op="SumSquare", axes=AXES, keepdims=True)
        return self.op("Div", made, count)

    @property
    def centred(self) -> int:
        return self.op("Sub", self.x, self.mean(self.x))

    @property
    def variance(self) -> int:
        return self.squares(self.centred)

    @property
    def gamma(self) -> int:
        return self.b.constant(values(SHAPE[2:], 5))

    @property
    def beta(self) -> int:
        return self.b.constant(values(SHAPE[2:], 6))


def by_reciprocal(t: Terms) -> int:
    root = t.unary("Sqrt", t.op("Add", t.variance, 1e-3))
    return t.op("Mul", t.unary("Reciprocal", root), t.centred)


def multiplied_out(t: Terms) -> int:
    """X * (g / root) + (b - mean * (g / root)), as TensorFlow writes it."""
    factor = t.op("Mul", t.unary("Rsqrt", t.op("Add", t.variance, 1e-3)), t.gamma)
    rest = t.op("Sub", t.beta, t.op("Mul", t.mean(t.x), factor))
    return t.op("Add", t.op("Mul", t.x, factor), rest)


def by_power(t: Terms) -> int:
    return t.op("Mul", t.centred, t.op("Pow", t.op("Add", t.variance, 1e-3), -0.5))


def by_moments(t: Terms) -> int:
    """The mean of squares less the square of the mean, held at 0."""
    mean = t.mean(t.x)
    spread = t.op("Sub", t.mean(t.op("Mul", t.x, t.x)), t.op("Pow", mean, 2.0))
    root = t.op("Pow", t.op("Add", t.op("Max", spread, 0.0), 1e-3), 0.5)
    return t.op("Div", t.op("Sub", t.x, mean), root)


def unbiased(t: Terms) -> int:
    """Over one less than the count, as a deviation of PyTorch."""
    spread = t.op("Add", t.squares(t.centred, 39.0), 1e-3)
    return t.op("Div", t.centred, t.unary("Sqrt", spread))


def without_mean(t: Terms) -> int:
    over = t.unary("Rsqrt", t.op("Add", t.squares(t.x), 1e-6))
    return t.op("Mul", t.op("Mul", over, t.gamma), t.x)


@pytest.mark.parametrize(
    "spelling",
    [by_reciprocal, multiplied_out, by_power, by_moments, unbiased, without_mean],
)
def test_a_norm_is_one_operation_and_holds_large_numbers(spelling: Spelling) -> None:
    """Of numbers around 700 squares are infinite in f16."""
    terms = Terms()
    module: Module = terms.b.module(spelling(terms))
    bundle = nacre.compile(module, "npm4k")
    names = {op.opcode for op in bundle.legal.operations}
    assert names & {"LayerNorm", "RmsNorm"}
    assert not any(layer.escaped for layer in bundle.manifest.layers)
    x = (700 * values(SHAPE, 2)).astype(np.float32)
    found = bundle.validate({"x": x})
    assert found.ok, found


def test_what_is_no_norm_stays_what_it_is() -> None:
    """The mean of another tensor, or the root without what it belongs to."""
    terms = Terms()
    other = terms.op("Mul", terms.x, 2.0)
    root = terms.unary("Sqrt", terms.op("Add", terms.variance, 1e-3))
    wrong = terms.op("Div", terms.op("Sub", terms.x, terms.mean(other)), root)
    bundle = nacre.compile(terms.b.module(wrong), "npm4k")
    assert not any(op.opcode == "LayerNorm" for op in bundle.legal.operations)
    assert bundle.validate({"x": values(SHAPE, 2)}).ok
