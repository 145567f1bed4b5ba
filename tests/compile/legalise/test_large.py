"""Operations that run by name on tensors that L1 does not hold, against NumPy's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from tests.compile.legalise.samples import Array

pytestmark = pytest.mark.sampled(2)  # together they take long

DEVICE = "npm4k"
RANDOM = np.random.default_rng(7)


def halves(*shape: int) -> Array:
    """Numbers that f16 holds."""
    return RANDOM.standard_normal(shape).astype(np.float16).astype(np.float32)


def bundle_of(body: Callable[[Builder, list[int]], int], feeds: dict[str, Array]) -> Bundle:
    builder = Builder()
    kinds = {"float32": "f32", "int64": "i64", "bool": "bool", "int32": "i32"}
    inputs = [builder.input(n, kinds[str(a.dtype)], a.shape) for n, a in feeds.items()]
    return nacre.compile(builder.module(body(builder, inputs)), DEVICE)


def require(
    body: Callable[[Builder, list[int]], int], feeds: dict[str, Array], expected: Array
) -> Bundle:
    """The plan is clean and finds what NumPy found."""
    bundle = bundle_of(body, feeds)
    assert bundle.problems == ()
    (found,) = bundle.run(feeds).values()
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    assert bundle.validate(feeds).first_difference is None
    return bundle


# Integers along an axis, whatever lies behind it

REDUCTIONS: dict[str, Callable[..., Array]] = {"Max": np.max, "Min": np.min}


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 80, 8400), (1,)),
        ((3, 90, 300), (2,)),
        ((2, 50, 60, 20), (1, 2)),
        ((40, 30, 70), (0, 2)),
        ((1, 3, 150, 200), (0, 1, 2, 3)),
        ((53, 2, 997), (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("keepdims", [True, False])
def test_a_sum_of_integers(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> None:
    x = RANDOM.integers(-50, 50, shape)
    expected = np.asarray(x.sum(axes, keepdims=keepdims))
    require(lambda b, v: b.add("Sum", v[0], axes=axes, keepdims=keepdims), {"x": x}, expected)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_the_ends_of_integers(op: str) -> None:
    x = RANDOM.integers(-(1 << 30), 1 << 30, (2, 256, 300))
    expected = REDUCTIONS[op](x, 1)
    require(lambda b, v: b.add("Reduce", v[0], op=op, axes=(1,)), {"x": x}, expected)


@pytest.mark.parametrize(("op", "function"), [("Any", np.any), ("All", np.all)])
def test_truth_values_along_an_inner_axis(op: str, function: Callable[..., Array]) -> None:
    x = RANDOM.random((1, 300, 4000)) < (0.002 if op == "Any" else 0.998)
    expected = function(x, 1)
    require(lambda b, v: b.add("Reduce", v[0], op=op, axes=(1,)), {"x": x}, expected)


def test_running_sums_of_integers() -> None:
    x = RANDOM.integers(0, 2, (1, 100, 900))
    require(lambda b, v: b.add("CumSum", v[0], axis=1), {"x": x}, x.cumsum(1))


# Elements by index


@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 840, 200), 2), ((1, 2000, 84), 1), ((3, 400, 7, 20), 1)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_elements_along_an_axis(shape: tuple[int, ...], axis: int, dtype: type) -> None:
    x = halves(*shape) if dtype is np.float32 else RANDOM.integers(0, 1 << 20, shape)
    few = tuple(30 if at == axis else size for at, size in enumerate(shape))
    at = RANDOM.integers(-shape[axis], shape[axis], few)
    expected = np.take_along_axis(x, at, axis)
    bundle = require(
        lambda b, v: b.add("GatherElements", *v, axis=axis), {"x": x, "i": at}, expected
    )
    assert "GatherElements" in bundle.program


def test_whole_rows_are_fetched_from_where_they_lie() -> None:
    x, at = halves(2, 1500, 84), RANDOM.integers(-1500, 1500, (2, 40))

    def body(b: Builder, v: list[int]) -> int:
        spread = b.add("Reshape", v[1], new_shape=(2, 40, 1))
        spread = b.add("Broadcast", spread, shape=(2, 40, 84))
        return b.add("GatherElements", v[0], spread, axis=1)

    expected = np.take_along_axis(x, at[:, :, None], 1)
    bundle = require(body, {"x": x, "i": at}, np.broadcast_to(expected, (2, 40, 84)))
    assert "gather.async" in bundle.program
    assert "GatherElements" not in bundle.program


def test_the_rows_of_the_best_need_no_arithmetic() -> None:
    """Indices of the largest elements lie inside, so nothing is to be looked at."""
    x = RANDOM.permutation(1200).astype(np.float32)[None, :, None] + halves(1, 1200, 84) * 0

    def body(b: Builder, v: list[int]) -> int:
        first = b.add("Slice", v[0], starts=(0, 0, 0), ends=(1, 1200, 1), steps=(1, 1, 1))
        first = b.add("Reshape", first, new_shape=(1, 1200))
        at = b.add("TopKIndices", first, k=20, axis=1)
        spread = b.add("Broadcast", b.add("Reshape", at, new_shape=(1, 20, 1)), shape=(1, 20, 84))
        return b.add("GatherElements", v[0], spread, axis=1)

    order = np.argsort(-x[0, :, 0])[:20]
    bundle = require(body, {"x": x}, x[:, order])
    assert "core.Compare" not in bundle.program


@pytest.mark.parametrize(("depth", "batch_dims"), [(2, 0), (3, 0), (1, 1)])
def test_rows_by_tuples(depth: int, batch_dims: int) -> None:
    x = halves(20, 60, 70)
    sizes = np.array(x.shape[batch_dims : batch_dims + depth])
    lead = (20, 9) if batch_dims else (50,)
    at = RANDOM.integers(-sizes, sizes, (*lead, depth))
    if batch_dims:
        expected = np.stack([x[i][at[i, :, 0]] for i in range(20)])
    else:
        expected = x[tuple(np.moveaxis(at, -1, 0))]
    require(lambda b, v: b.add("GatherNd", *v, batch_dims=batch_dims), {"x": x, "i": at}, expected)


# Rows and elements that are written


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_rows_written_by_tuples(reduction: str) -> None:
    x, new = halves(40, 30, 50), halves(25, 50)
    at = np.stack([RANDOM.integers(-40, 40, 25), RANDOM.integers(0, 30, 25)], 1)
    expected = x.copy()
    for (i, j), row in zip(at, new, strict=True):
        expected[i, j] = row if reduction == "none" else expected[i, j] + row
    expected = expected.astype(np.float16).astype(np.float32)
    bundle = bundle_of(
        lambda b, v: b.add("ScatterNd", *v, reduction=reduction), {"x": x, "i": at, "u": new}
    )
    (found,) = bundle.run({"x": x, "i": at, "u": new}).values()
    np.testing.assert_allclose(found, expected, atol=4e-3 if reduction == "add" else 0)
    assert bundle.validate({"x": x, "i": at, "u": new}).first_difference is None


def test_a_cache_of_any_size_is_written() -> None:
    """The last of several rows for one place stays, also at the ends of the parts."""
    cache, rows = halves(5000, 64), halves(6, 64)
    at = np.array([0, 4999, 767, 768, -1, 0])
    expected = cache.copy()
    for i, row in zip(at, rows, strict=True):
        expected[i] = row
    feeds = {"x": cache, "i": at, "u": rows}
    bundle = require(lambda b, v: b.add("ScatterRows", *v), feeds, expected)
    assert bundle.program.count("core.ScatterRows") > 1


@pytest.mark.parametrize(("shape", "axis"), [((1, 300, 400), 2), ((1, 2000, 40), 1)])
def test_elements_written_along_an_axis(shape: tuple[int, ...], axis: int) -> None:
    x = halves(*shape)
    few = tuple(11 if at == axis else size for at, size in enumerate(shape))
    at = RANDOM.integers(0, shape[axis], few)
    new = halves(*few)
    expected = x.copy()
    for place in np.ndindex(*few):
        there = tuple(int(at[place]) if a == axis else p for a, p in enumerate(place))
        expected[there] = new[place]
    feeds = {"x": x, "i": at, "u": new}
    require(lambda b, v: b.add("ScatterElements", *v, axis=axis), feeds, expected)


# Outside


@pytest.mark.parametrize("bad", [1500, 3000, -1501, -9000])
def test_an_index_outside_is_refused_in_every_row(bad: int) -> None:
    """Numbers of rows must not turn an index outside its image into one of the next image."""
    x, at = halves(2, 1500, 84), RANDOM.integers(0, 1500, (2, 40))

    def body(b: Builder, v: list[int]) -> int:
        spread = b.add("Reshape", v[1], new_shape=(2, 40, 1))
        return b.add("GatherElements", v[0], b.add("Broadcast", spread, shape=(2, 40, 84)), axis=1)

    bundle = bundle_of(body, {"x": x, "i": at})
    at[0, 3] = bad
    with pytest.raises(InputError) as caught:
        bundle.run({"x": x, "i": at})
    assert [d.code for d in caught.value.diagnostics] == ["RUN01"]


@pytest.mark.parametrize("bad", [5000, -5001])
def test_a_row_outside_is_not_written(bad: int) -> None:
    cache, rows, at = halves(5000, 64), halves(2, 64), np.array([3, bad])
    bundle = bundle_of(lambda b, v: b.add("ScatterRows", *v), {"x": cache, "i": at, "u": rows})
    with pytest.raises(InputError) as caught:
        bundle.run({"x": cache, "i": at, "u": rows})
    assert [d.code for d in caught.value.diagnostics] == ["RUN01"]
