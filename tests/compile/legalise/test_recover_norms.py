"""Norms that models spell out over any axes: one operation, and right where squares leave f16."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.legalise.checking import error, legal_of, opcodes, run

Axes = tuple[int, ...]
Make = Callable[[Builder, int, Axes], int]
SHAPE = (2, 6, 5, 8)


def number(b: Builder, value: float) -> int:
    return b.constant(np.float32(value))


def squares(b: Builder, x: int) -> int:
    return b.add("BinOp", x, x, op="Mul")


def root(b: Builder, x: int, kind: str, axes: Axes, epsilon: float = 0.0) -> int:
    total = b.add(kind, squares(b, x), axes=axes, keepdims=True)
    total = b.add("BinOp", total, number(b, epsilon), op="Add") if epsilon else total
    return b.add("Unary", total, op="Sqrt")


def over(b: Builder, x: int, divisor: int) -> int:
    return b.add("BinOp", x, divisor, op="Div")


def length(b: Builder, x: int, axes: Axes) -> int:
    return b.add("Reduce", x, op="L2", axes=axes, keepdims=True)


def centred(b: Builder, x: int, axes: Axes) -> int:
    return b.add("BinOp", x, b.add("Mean", x, axes=axes, keepdims=True), op="Sub")


def unless_zero(b: Builder, x: int, axes: Axes) -> int:
    found = length(b, x, axes)
    is_zero = b.add("Compare", found, number(b, 0.0), op="Eq")
    return over(b, x, b.add("Where", is_zero, number(b, 1.0), found))


def spread(b: Builder, x: int, axes: Axes) -> int:
    held = b.add("Clip", length(b, x, axes), min=1e-12, max=float("inf"))
    return over(b, x, b.add("Broadcast", held, shape=SHAPE))


def mean_variance(b: Builder, x: int, axes: Axes) -> int:
    y = centred(b, x, axes)
    return over(b, y, b.add("BinOp", root(b, y, "Mean", axes), number(b, 1e-9), op="Add"))


def dropped(b: Builder, x: int, axes: Axes) -> int:
    """Axes that are dropped, and put back by a view."""
    found = b.add("Reduce", x, op="L2", axes=axes, keepdims=False)
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(SHAPE))
    return over(b, x, b.add("Reshape", found, new_shape=kept))


def times_reciprocal(b: Builder, x: int, axes: Axes) -> int:
    other = b.add("Unary", root(b, x, "Mean", axes, 1e-6), op="Reciprocal")
    return b.add("BinOp", x, other, op="Mul")


NORMS: dict[str, tuple[Make, str]] = {
    "over a length": (lambda b, x, axes: over(b, x, length(b, x, axes)), "RmsNorm"),
    "unless it is zero": (unless_zero, "RmsNorm"),
    "held above, and repeated": (spread, "RmsNorm"),
    "axes put back": (dropped, "RmsNorm"),
    "root of a sum": (lambda b, x, axes: over(b, x, root(b, x, "Sum", axes, 1e-6)), "RmsNorm"),
    "root of a mean": (lambda b, x, axes: over(b, x, root(b, x, "Mean", axes, 1e-8)), "RmsNorm"),
    "times a reciprocal": (times_reciprocal, "RmsNorm"),
    "mean and variance": (mean_variance, "LayerNorm"),
}
AXES: dict[str, Axes] = {"last": (3,), "channels": (1,), "planes": (2, 3), "apart": (1, 3)}


def module_of(make: Make, axes: Axes) -> Module:
    builder = Builder()
    return builder.module(make(builder, builder.input("x", "f32", SHAPE), axes))


def numbers(size: float) -> np.ndarray:
    values = np.random.default_rng(3).standard_normal(SHAPE) * size
    return values.astype(np.float32)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
@pytest.mark.parametrize(("make", "opcode"), NORMS.values(), ids=NORMS)
def test_a_norm_that_is_spelt_out_is_one_operation(make: Make, opcode: str, axes: Axes) -> None:
    module = module_of(make, axes)
    for precision, most in (("f32", 1e-5), ("f16", 2e-3)):
        legal = legal_of(module, precision)
        assert opcode in opcodes(legal)
        assert "Div" not in {op.attributes.get("op") for op in legal.module.operations}
        for size in (0.3, 1000.0):  # the squares of the last are beyond f16
            feeds = {"x": numbers(size)}
            (found,), (expected,) = run(legal.module, feeds), run(module, feeds)
            assert error(found, expected) <= most


@pytest.mark.parametrize("name", ["unless it is zero", "held above, and repeated"])
def test_the_norm_of_zeros_is_zeros(name: str) -> None:
    legal = legal_of(module_of(NORMS[name][0], (3,)), "f16")
    (found,) = run(legal.module, {"x": np.zeros(SHAPE, np.float32)})
    assert not found.any()


@pytest.mark.parametrize("size", [0.3, 1000.0])
@pytest.mark.parametrize("kind", ["Mean", "Sum", "L2"])
def test_a_root_of_squares_by_itself_stays_within_f16(kind: str, size: float) -> None:
    def make(b: Builder, x: int, axes: Axes) -> int:
        return length(b, x, axes) if kind == "L2" else root(b, x, kind, axes)

    module, feeds = module_of(make, (2, 3)), {"x": numbers(size)}
    (found,), (expected,) = run(legal_of(module, "f16").module, feeds), run(module, feeds)
    assert error(found, expected) <= 2e-3


def test_a_length_across_rows_is_taken_by_means() -> None:
    """3,600 numbers around 8: their squares have no sum in f16."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 60, 60, 4))
    module = builder.module(builder.add("Reduce", x, op="L2", axes=(1, 2), keepdims=True))
    values = np.random.default_rng(3).standard_normal((1, 60, 60, 4)) * 8
    feeds = {"x": values.astype(np.float32)}
    (found,), (expected,) = run(legal_of(module, "f16").module, feeds), run(module, feeds)
    assert error(found, expected) <= 2e-3


OTHERS: dict[str, Make] = {
    "of something else": lambda b, x, axes: over(b, x, length(b, b.add("Neg", x), axes)),
    "far from 0": lambda b, x, axes: over(
        b, x, b.add("BinOp", length(b, x, axes), number(b, 0.5), op="Add")
    ),
    "held far above 0": lambda b, x, axes: over(
        b, x, b.add("Clip", length(b, x, axes), min=2.0, max=float("inf"))
    ),
    "held below, too": lambda b, x, axes: over(
        b, x, b.add("Clip", length(b, x, axes), min=1e-12, max=0.1)
    ),
    "centred elsewhere": lambda b, x, axes: over(
        b, centred(b, x, (0,)), root(b, centred(b, x, axes), "Mean", axes, 1e-6)
    ),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_what_is_no_norm_stays_what_it_is(make: Make) -> None:
    module = module_of(make, (3,))
    feeds = {"x": numbers(0.3)}
    legal = legal_of(module)
    (found,), (expected,) = run(legal.module, feeds), run(module, feeds)
    assert error(found, expected) <= 1e-5
