"""Reductions, positions and running sums of graphs, against Python, torch and onnxruntime."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.ops import OPS
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from nacre.kernels.interface.call import Call, Work
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_elements import (
    FLOATS,
    INTEGERS,
    Array,
    Dims,
    assert_close,
    assert_equal,
    doubles,
    dtype_of,
    numbers,
    reals,
    rounded,
    run,
    shapes,
    typed,
    whole_numbers,
    wrapped,
)
from tests.kernels.oracle_views import LAYOUTS, onnx_result, seeds

layouts = st.sampled_from(LAYOUTS)
NUMBERS = [*INTEGERS, *FLOATS]


@st.composite
def reduced(draw: st.DrawFn) -> tuple[Dims, tuple[int, ...], bool]:
    """A shape, some of its axes, some counted from the end, and whether they are kept."""
    shape = draw(shapes)
    rank = len(shape)
    axes = draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    signed = tuple(axis - rank if draw(st.booleans()) else axis for axis in axes)
    return shape, signed, draw(st.booleans())


def groups(x: Array, axes: Sequence[int], keepdims: bool) -> tuple[Dims, list[list[Any]]]:
    """The shape of the result, and for each of its elements what is reduced to it, in order."""
    rank = x.ndim
    gone = {axis % rank for axis in axes} or set(range(rank))
    plain = x if x.dtype.kind in "iub" else doubles(x)
    rest = [axis for axis in range(rank) if axis not in gone]
    found: dict[Dims, list[Any]] = {}
    for place in np.ndindex(x.shape):
        found.setdefault(tuple(place[axis] for axis in rest), []).append(plain[place].item())
    if not axes:
        return (), list(found.values())
    shape = tuple(1 if a in gone else d for a, d in enumerate(x.shape) if keepdims or a not in gone)
    return shape, list(found.values())


WHOLE: dict[str, Callable[[list[Any]], int]] = {
    "Max": max,
    "Min": min,
    "Prod": math.prod,
    "SumSquare": lambda values: sum(v * v for v in values),
    "L1": lambda values: sum(map(abs, values)),
}


@pytest.mark.parametrize("op", WHOLE)
@given(st.sampled_from(INTEGERS), reduced(), seeds, layouts)
def test_integers(
    op: str, elem: str, case: tuple[Dims, tuple[int, ...], bool], seed: int, layout: str
) -> None:
    shape, axes, keepdims = case
    x = whole_numbers(elem, shape, seed)

    found = run("Reduce", elem, [x], {"op": op, "axes": axes, "keepdims": keepdims}, layout=layout)

    wanted, parts = groups(x, axes, keepdims)
    assert found.dtype == dtype_of(elem)
    assert found.shape == wanted
    assert found.ravel().tolist() == [wrapped(WHOLE[op](part), elem) for part in parts]


@given(st.sampled_from(["Any", "All"]), reduced(), seeds, layouts)
def test_logic(op: str, case: tuple[Dims, tuple[int, ...], bool], seed: int, layout: str) -> None:
    shape, axes, keepdims = case
    x = numbers("bool", shape, seed)

    found = run(
        "Reduce", "bool", [x], {"op": op, "axes": axes, "keepdims": keepdims}, layout=layout
    )

    wanted, parts = groups(x, axes, keepdims)
    assert found.shape == wanted
    assert found.ravel().tolist() == [{"Any": any, "All": all}[op](part) for part in parts]


def is_odd(values: list[float]) -> bool:
    return any(map(math.isnan, values))


def logarithm(value: float) -> float:
    if math.isnan(value) or value < 0:
        return math.nan
    return math.log(value) if value > 0 else -math.inf


def log_sum_exp(values: list[float]) -> float:
    largest = max(values)
    if math.isinf(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(v - largest) for v in values))


def total(values: list[float]) -> float:
    """A sum of what may be infinite."""
    whole = sum(values)
    return math.fsum(values) if math.isfinite(whole) else whole


REAL: dict[str, Callable[[list[float]], float]] = {
    "Max": max,
    "Min": min,
    "Prod": math.prod,
    "SumSquare": lambda values: total([v * v for v in values]),
    "L1": lambda values: total([abs(v) for v in values]),
    "L2": lambda values: math.sqrt(total([v * v for v in values])),
    "LogSum": lambda values: logarithm(total(values)),
    "LogSumExp": log_sum_exp,
}


@pytest.mark.parametrize("op", REAL)
@given(st.sampled_from(["f32", "f64", "f16", "bf16"]), reduced(), seeds, layouts, st.booleans())
def test_floats(
    op: str,
    elem: str,
    case: tuple[Dims, tuple[int, ...], bool],
    seed: int,
    layout: str,
    ordered: bool,
) -> None:
    shape, axes, keepdims = case
    x = reals(elem, shape, seed, scale=1.5)
    if op == "LogSum":  # no sum that cancels
        x = np.abs(x)

    given = {"op": op, "axes": axes, "keepdims": keepdims}
    found = run("Reduce", elem, [x], given, layout=layout, ordered=ordered)

    wanted, parts = groups(x, axes, keepdims)
    exact = [math.nan if is_odd(part) else REAL[op](part) for part in parts]
    assert found.shape == wanted
    # An error for each of at most 64 steps; what is small by cancelling has an absolute one.
    ulps = 64.0 if elem in ("f32", "f64") else 0.55
    epsilon = 2.0**-52 if elem == "f64" else 2.0**-23
    least = 64 * epsilon if op in ("LogSum", "LogSumExp") else 0.0
    assert_close(found, np.array(exact).reshape(wanted), elem, ulps, least)


@given(st.sampled_from(FLOATS), reduced(), seeds)
def test_extremes_are_exact(elem: str, case: tuple[Dims, tuple[int, ...], bool], seed: int) -> None:
    shape, axes, keepdims = case
    x = reals(elem, shape, seed)
    wanted, parts = groups(x, axes, keepdims)
    for op in ("Max", "Min"):
        exact = [math.nan if is_odd(part) else REAL[op](part) for part in parts]
        for ordered in (False, True):
            given = {"op": op, "axes": axes, "keepdims": keepdims}
            found = run("Reduce", elem, [x], given, ordered=ordered)
            assert_equal(found, rounded(np.array(exact).reshape(wanted), elem))


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize(("op", "signs"), [("Max", "++-"), ("Min", "--+")])
def test_ordered_extremes_of_zeros(op: str, signs: str, elem: str) -> None:
    pairs = [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0] if op == "Max" else [0.0, 0.0]]
    x = rounded(np.array(pairs), elem)

    found = run("Reduce", elem, [x], {"op": op, "axes": (1,)}, ordered=True)

    assert ["-" if negative else "+" for negative in np.signbit(doubles(found))] == list(signs)


def test_ordered_products_go_one_by_one() -> None:
    x = np.random.default_rng(2).uniform(0.5, 2, (3, 40, 2)).astype(np.float32)

    found = run("Reduce", "f32", [x], {"op": "Prod", "axes": (2, 1)}, ordered=True)

    for row, product in zip(x, found, strict=True):
        one = np.float32(1)
        for value in row.ravel():
            one = one * value
        assert one == product


def test_logs_of_large_sums() -> None:
    x = np.array([[1000.0, 1000.0], [-1000.0, -1001.0], [np.inf, 3.0], [-np.inf, -np.inf]])
    for ordered in (False, True):
        found = run("Reduce", "f64", [x], {"op": "LogSumExp", "axes": (-1,)}, ordered=ordered)
        assert found[0] == pytest.approx(1000 + math.log(2))
        assert found[1] == pytest.approx(-1000 + math.log1p(math.exp(-1)))
        assert found[2:].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("op", ["Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSumExp"])
def test_reductions_are_those_of_onnxruntime(op: str) -> None:
    x = reals("f32", (2, 3, 4, 5), 7, odd=False)
    axes = np.array([1, 3])
    for keepdims in (False, True):
        (expected,) = onnx_result(
            f"Reduce{op}", [x, axes], {"keepdims": int(keepdims)}, [np.float32]
        )
        found = run("Reduce", "f32", [x], {"op": op, "axes": (1, 3), "keepdims": keepdims})
        np.testing.assert_allclose(found, expected, 2e-5, 1e-6)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@given(st.sampled_from(NUMBERS), shapes.filter(bool), seeds, layouts, st.data())
def test_positions(
    op: str, elem: str, shape: Dims, seed: int, layout: str, data: st.DataObject
) -> None:
    x = numbers(elem, shape, seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    keepdims, last = data.draw(st.booleans()), data.draw(st.booleans())

    given = {"axis": axis, "keepdims": keepdims, "last": last}
    found = run(op, elem, [x], given, result="i64", layout=layout)

    wanted, parts = groups(x, (axis,), keepdims)
    assert found.dtype == np.int64
    assert found.shape == wanted
    assert found.ravel().tolist() == [position(part, op, last) for part in parts]


def position(values: list[Any], op: str, last: bool) -> int:
    best = max(values) if op == "ArgMax" else min(values)
    hits = [i for i, v in enumerate(values) if v == best]
    odd = [i for i, v in enumerate(values) if v != v]
    return (odd or hits)[-1 if last else 0]


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_positions_are_those_of_torch(op: str) -> None:
    torch = pytest.importorskip("torch")
    x = reals("f32", (5, 6, 7), 3)
    x[np.isinf(x)] = 0.5  # ties: torch takes any
    x += np.arange(7, dtype=np.float32) * 1e-3

    found = run(op, "f32", [x], {"axis": 1}, result="i64")

    np.testing.assert_array_equal(found, getattr(torch, op.lower())(torch.from_numpy(x), 1))


RUNNING: dict[str, Callable[[Any, Any], Any]] = {
    "CumSum": lambda a, b: a + b,
    "CumProd": lambda a, b: a * b,
}


def accumulated(op: str, line: Array, exclusive: bool, reverse: bool) -> list[Any]:
    """One by one, in Python's integers or in the type that floats are computed in."""
    is_whole = line.dtype.kind in "iu"
    values = line.tolist() if is_whole else list(line)
    values = values[::-1] if reverse else values
    found: list[Any] = []
    so_far: Any = None
    for value in values:
        before = so_far
        so_far = value if so_far is None else RUNNING[op](so_far, value)
        neutral = 0 if op == "CumSum" else 1
        found.append((neutral if before is None else before) if exclusive else so_far)
    return found[::-1] if reverse else found


@pytest.mark.parametrize("op", RUNNING)
@given(st.sampled_from(NUMBERS), shapes.filter(bool), seeds, layouts, st.data())
def test_running(
    op: str, elem: str, shape: Dims, seed: int, layout: str, data: st.DataObject
) -> None:
    x = numbers(elem, shape, seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    exclusive, reverse, ordered = (data.draw(st.booleans()) for _ in range(3))

    given = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    found = run(op, elem, [x], given, layout=layout, ordered=ordered)

    is_whole = elem in INTEGERS
    wide = x if is_whole or elem == "f64" else x.astype(np.float32)
    lines = np.moveaxis(wide, axis, -1).reshape(-1, shape[axis])
    with np.errstate(all="ignore"):
        rows = [accumulated(op, line, exclusive, reverse) for line in lines]
    if is_whole:
        rows = [[wrapped(v, elem) for v in row] for row in rows]
    moved = np.array(rows).reshape(np.moveaxis(wide, axis, -1).shape)
    assert_equal(found, rounded(np.moveaxis(moved, -1, axis).astype(wide.dtype), elem))


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums_are_those_of_onnxruntime(exclusive: int, reverse: int) -> None:
    x = reals("f32", (3, 4, 5), 9, odd=False)
    (expected,) = onnx_result(
        "CumSum", [x, np.array(1)], {"exclusive": exclusive, "reverse": reverse}, [np.float32]
    )
    given = {"axis": 1, "exclusive": bool(exclusive), "reverse": bool(reverse)}
    np.testing.assert_allclose(run("CumSum", "f32", [x], given), expected, 1e-5, 1e-6)


KEPT = {"keepdims": False}
MISFITS: list[tuple[str, Dims, dict[str, Any], str]] = [
    ("Reduce", (2, 3), {"op": "Max", "axes": (2,), **KEPT}, "`axes` is 2, expected -2 to 1"),
    ("Reduce", (2, 3), {"op": "Max", "axes": (1, -1), **KEPT}, "`axes` names an axis twice"),
    ("Reduce", (), {"op": "Max", "axes": (0,), **KEPT}, "no axis: the tensor is a scalar"),
    ("Reduce", (2,), {"op": "Sum", "axes": (), **KEPT}, "`op` is `Sum`, expected one of `Max`"),
    ("Reduce", (2,), {"op": "Max", "axes": (10**80,), **KEPT}, "expected -1 to 0"),
    ("ArgMax", (2, 3), {"axis": -3, **KEPT}, "`axis` is -3, expected -2 to 1"),
    ("ArgMin", (), {"axis": 0, **KEPT}, "no axis: the tensor is a scalar"),
    ("CumSum", (), {"axis": 0}, "no axis: the tensor is a scalar"),
    ("CumProd", (4,), {"axis": 1}, "`axis` is 1, expected -1 to 0"),
]


@pytest.mark.parametrize(("op", "shape", "attributes", "message"), MISFITS)
def test_misfits(op: str, shape: Dims, attributes: dict[str, Any], message: str) -> None:
    fitting = PRIMITIVES[f"core.{op}"].shape
    assert fitting([shape], attributes) is None
    assert message in fitting.reason([shape], attributes)  # type: ignore[attr-defined]


GOOD: list[tuple[str, str, dict[str, Any]]] = [
    *(
        ("Reduce", "bool" if op in ("Any", "All") else "f32", {"op": op, "axes": (1,)})
        for op in OPS["Reduce"].by_op
    ),
    ("ArgMax", "u8", {"axis": 0, "last": True}),
    ("ArgMin", "bf16", {"axis": -1, "keepdims": True}),
    ("CumSum", "i32", {"axis": 1, "exclusive": True}),
    ("CumProd", "f64", {"axis": 1, "reverse": True}),
]


@pytest.mark.parametrize(("op", "elem", "attributes"), GOOD)
def test_modules(op: str, elem: str, attributes: dict[str, Any]) -> None:
    builder = Builder()
    module = builder.module(builder.add(op, builder.input("x", elem, (2, 3)), **attributes))

    assert not verify(module, "nacre-1")
    assert "MOD10" in {found.code for found in verify(module, "core-v1")}
    assert parse(print_module(module)).operations == module.operations


@pytest.mark.parametrize(
    ("op", "elem", "attributes", "code"),
    [
        ("Reduce", "i32", {"op": "L2", "axes": ()}, "NCR01"),
        ("Reduce", "f32", {"op": "Any", "axes": ()}, "NCR01"),
        ("Reduce", "bool", {"op": "Max", "axes": ()}, "NCR01"),
        ("Reduce", "f32", {"op": "Sum", "axes": ()}, "NCR03"),
        ("Reduce", "f32", {"op": "Max", "axes": (7,)}, "NCR02"),
        ("ArgMax", "bool", {"axis": 0}, "NCR01"),
        ("ArgMax", "f32", {"axis": 2}, "NCR02"),
        ("CumSum", "bool", {"axis": 0}, "NCR01"),
        ("CumSum", "f32", {"axis": -3}, "NCR02"),
    ],
)
def test_refused_modules(op: str, elem: str, attributes: dict[str, Any], code: str) -> None:
    builder = Builder()
    x = builder.input("x", elem, (2, 3))
    with pytest.raises(InputError) as error:
        builder.add(op, x, **attributes)
    assert code in {found.code for found in error.value.diagnostics}


@pytest.mark.parametrize(("op", "each"), [("Max", 1), ("LogSumExp", 8)])
def test_work(op: str, each: int) -> None:
    call = Call((typed("f32", (2, 3)),), (typed("f32", ()),), {"op": op, "axes": ()})
    assert PRIMITIVES["core.Reduce"].work(call) == Work(elements=6, each=each)
