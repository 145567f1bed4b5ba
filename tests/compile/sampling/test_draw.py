"""Random inputs lie within what the model does with them, so that they reach its output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.compile.sampling.draw import ATTEMPTS, draw_inputs
from nacre.compile.sampling.input_ranges import InputRange, input_ranges
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from tests.compile.models import Array, values

Body = Callable[[Builder, int], int]
N = 24


def drawn(body: Body, dtype: str, shape: tuple[int, ...], seed: int = 0, attempt: int = 0) -> Array:
    builder = Builder()
    x = builder.input("x", dtype, shape)
    module = builder.module(body(builder, x))
    found = draw_inputs(module, seed, attempt=attempt)
    evaluate(module, found)  # indices that no table has would be refused
    return found["x"]


def number(builder: Builder, value: float, dtype: str = "i64") -> int:
    return builder.constant(np.array(value, {"i64": np.int64, "f32": np.float32}[dtype]))


def table(builder: Builder, rows: int) -> int:
    return builder.constant(values((rows, 4), 1))


def embedded(builder: Builder, x: int) -> int:
    return builder.add("GatherAxis", table(builder, 50), x, axis=0)


def embedded_by_another_road(builder: Builder, x: int) -> int:
    """Counted from 1, in 32 bits, of another shape, and from the end where it is below 0."""
    x = builder.add("Cast", builder.add("Reshape", x, new_shape=(N,)), to="i32")
    one, zero = (builder.constant(np.array(k, np.int32)) for k in (1, 0))
    x = builder.add("BinOp", x, one, op="Sub")
    below = builder.add("Compare", x, zero, op="Lt")
    rows = builder.constant(np.array(50, np.int32))
    x = builder.add("Where", below, builder.add("BinOp", x, rows, op="Add"), x)
    return builder.add("GatherAxis", table(builder, 50), x, axis=0)


def one_of(builder: Builder, x: int) -> int:
    column = builder.add("ExpandDims", x, axes=(2,))
    return builder.add("Compare", column, builder.constant(np.arange(50)), op="Eq")


def one_hot(builder: Builder, x: int) -> int:
    ends = builder.constant(np.array([0, 1], np.float32))
    return builder.add("OneHot", x, ends, depth=50, axis=-1)


def of_floats(builder: Builder, x: int) -> int:
    return embedded(builder, builder.add("Cast", x, to="i64"))


@pytest.mark.parametrize("attempt", range(ATTEMPTS))
@pytest.mark.parametrize(
    ("body", "dtype", "low"),
    [(embedded, "i64", 0), (embedded, "i32", 0), (embedded_by_another_road, "i64", 1),
     (one_of, "i64", 0), (one_hot, "i64", 0), (of_floats, "f32", 0)],
)  # fmt: skip
def test_ids_lie_within_their_vocabulary(body: Body, dtype: str, low: int, attempt: int) -> None:
    found = drawn(body, dtype, (2, N // 2), attempt=attempt)
    assert (found == np.floor(found)).all()
    assert low <= found.min() < found.max() < low + 50
    assert len(np.unique(found)) > 8


def within_iota(builder: Builder, x: int, op: str = "Lt") -> int:
    positions = builder.add("Iota", shape=(1, N), axis=1, dtype="i64")
    return builder.add("Compare", positions, builder.add("ExpandDims", x, axes=(1,)), op=op)


def within_frames(builder: Builder, x: int) -> int:
    """Of samples, where frames are compared: n // 10 + 1."""
    x = builder.add("BinOp", builder.add("ExpandDims", x, axes=(1,)), number(builder, 10), op="Div")
    x = builder.add("BinOp", x, number(builder, 1), op="Add")
    return builder.add("Compare", x, builder.constant(np.arange(N)[None]), op="Gt")


@pytest.mark.parametrize(
    ("body", "most"),
    [
        (within_iota, N),
        (lambda b, x: within_iota(b, x, "Ge"), N),
        (lambda b, x: within_iota(b, builder_cast(b, x)), N),
        (within_frames, 10 * (N - 1)),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_lengths_lie_in_the_upper_half_of_their_axis(body: Body, most: int, seed: int) -> None:
    found = drawn(body, "i64", (6,), seed)
    assert most // 2 <= found.min() <= found.max() <= most
    assert len(set(found.tolist())) > 1


def builder_cast(builder: Builder, x: int) -> int:
    return builder.add("Cast", builder.add("Cast", x, to="f32"), to="i64")


def hidden(builder: Builder, x: int) -> int:
    """(1 - mask) times the least float, as transformers writes it."""
    floats = builder.add("Cast", x, to="f32")
    away = builder.add("BinOp", number(builder, 1, "f32"), floats, op="Sub")
    return builder.add("BinOp", away, number(builder, -3.4e38, "f32"), op="Mul")


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        (hidden, "i64"),
        (hidden, "f32"),
        (lambda b, x: b.add("Cast", x, to="bool"), "i32"),
        (lambda b, x: b.add("Compare", x, number(b, 0), op="Ne"), "i64"),
        (lambda b, x: b.add("Where", x, number(b, 1, "f32"), number(b, -1e9, "f32")), "bool"),
    ],
)
def test_of_a_mask_something_is_left_and_something_is_not(body: Body, dtype: str) -> None:
    for seed in range(5):
        found = drawn(body, dtype, (3, N), seed).astype(np.int64)
        assert set(found.ravel().tolist()) == {0, 1}
        assert (found[:, 0] == 1).all()
        assert (found.sum(axis=1) < N).all()


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        (lambda b, x: b.add("Log", x), 0, np.inf),
        (lambda b, x: b.add("Unary", x, op="Rsqrt"), 0, np.inf),
        (lambda b, x: b.add("Unary", x, op="Acos"), -1, 1),
        (lambda b, x: b.add("BinOp", x, number(b, 0.5, "f32"), op="Pow"), 0, np.inf),
        (
            lambda b, x: b.add(
                "BinOp",
                b.add("Log", x),
                b.add("Log", b.add("BinOp", number(b, 1, "f32"), x, op="Sub")),
                op="Sub",
            ),
            0,
            1,
        ),
    ],
)
def test_reals_lie_where_their_function_is_defined(body: Body, low: float, high: float) -> None:
    for attempt in range(ATTEMPTS):
        found = drawn(body, "f32", (4, N), attempt=attempt)
        assert low < found.min() < found.max() < high


def test_settings_leave_most_of_a_models_figures_in() -> None:
    """Between two frequencies: the lower one is low, the upper one high."""
    builder = Builder()
    low, high = (builder.input(name, "f32", ()) for name in ("low", "high"))
    steps = builder.constant(np.geomspace(50.5, 2000.5, 64).astype(np.float32))
    inside = builder.add(
        "BinOp",
        builder.add("Compare", steps, low, op="Ge"),
        builder.add("Compare", steps, high, op="Le"),
        op="And",
    )
    module = builder.module(inside)
    assert evaluate(module, draw_inputs(module, 3))[0].mean() > 0.3


def test_pixels_have_every_level_and_unknown_integers_few() -> None:
    assert len(np.unique(drawn(lambda b, x: b.add("Cast", x, to="f32"), "u8", (64, 64)))) > 200
    found = drawn(lambda b, x: b.add("Cast", x, to="f32"), "i64", (64, 64))
    assert set(found.ravel().tolist()) == {0, 1}


def test_an_index_by_a_road_that_is_not_followed_has_a_row_in_every_table() -> None:
    def summed(builder: Builder, x: int) -> int:
        return embedded(builder, builder.add("BinOp", x, x, op="Mul"))

    assert set(drawn(summed, "i64", (3, N)).ravel().tolist()) == {0, 1}


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), min_size=1, max_size=4))
def test_ranges_that_meet_are_cut_to_what_they_share(pairs: list[tuple[int, int]]) -> None:
    ranges = [InputRange("index", low, low + size) for low, size in pairs]
    joined = ranges[0]
    for one in ranges[1:]:
        joined = joined.combine(one)
    shared = set(range(-20, 20)).intersection(*(range(int(r.low), int(r.high) + 1) for r in ranges))
    assert joined.low <= joined.high
    if shared:
        assert (joined.low, joined.high) == (min(shared), max(shared))


def test_inputs_that_nothing_says_anything_about_are_any() -> None:
    builder = Builder()
    module = builder.module(builder.add("Relu", builder.input("x", "f32", (4,))))
    assert input_ranges(module) == {"x": InputRange()}


@pytest.mark.parametrize("factor", [1e-6, -1e-6])
def test_an_end_that_is_far_away_says_nothing_about_inputs(factor: float) -> None:
    def logarithm(builder: Builder, x: int) -> int:
        scale = builder.constant(np.array(factor, np.float32))
        return builder.add("Unary", builder.add("BinOp", x, scale, op="Mul"), op="Log1p")

    assert 0.1 < np.abs(drawn(logarithm, "f32", (8, 8))).max() < 10
