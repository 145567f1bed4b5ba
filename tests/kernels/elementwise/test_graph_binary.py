"""`BinOp` beyond Core v1: integers against Python's, floats against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.core.ops import OPS
from nacre.kernels.interface.call import Call, Work
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_elements import (
    FLOATS,
    INTEGERS,
    Array,
    Dims,
    assert_close,
    assert_equal,
    attempt,
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
from tests.kernels.oracle_views import LAYOUTS, seeds

layouts = st.sampled_from(LAYOUTS)


WHOLE: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "Mod": lambda a, b: a - b * math.floor(a / b) if abs(a) < 2**50 else a % b,
    "Rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "Pow": lambda a, b: pow(a, b, 1 << 64),
    "Min": min,
    "Max": max,
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "Xor": lambda a, b: a ^ b,
    "ShiftLeft": lambda a, b: a << min(b, 64),
    "ShiftRight": lambda a, b: a >> min(b, 64),
}
NON_ZERO = ("Div", "Mod", "Rem")
NON_NEGATIVE = ("Pow", "ShiftLeft", "ShiftRight")


def second(op: str, elem: str, shape: Dims, seed: int) -> Array:
    """A right side that is no fault."""
    b = whole_numbers(elem, shape, seed)
    if op in NON_ZERO:
        return np.where(b == 0, b.dtype.type(3), b)
    if op in NON_NEGATIVE:
        return np.where(b < 0, ~b, b)
    return b


def test_every_operation_is_known() -> None:
    spec = OPS["BinOp"].attribute("op")
    assert spec is not None
    assert set(spec.choices) == set(WHOLE)


@pytest.mark.parametrize("op", WHOLE)
@given(st.sampled_from(INTEGERS), shapes, seeds, layouts)
def test_integers(op: str, elem: str, shape: Dims, seed: int, layout: str) -> None:
    a = whole_numbers(elem, shape, seed)
    b = second(op, elem, shape[1:], seed + 1)

    found = run("BinOp", elem, [a, b], {"op": op}, layout=layout)

    pairs = zip(*(side.ravel().tolist() for side in np.broadcast_arrays(a, b)), strict=True)
    expected = [wrapped(WHOLE[op](x, y), elem) for x, y in pairs]
    assert found.dtype == dtype_of(elem)
    assert found.ravel().tolist() == expected


@pytest.mark.parametrize("elem", INTEGERS)
@pytest.mark.parametrize("op", ["Div", "Mod", "Rem", "Pow", "ShiftLeft", "ShiftRight"])
def test_ends_of_integer_types(op: str, elem: str) -> None:
    low, high = int(GRAPH_TYPES[elem].lowest), int(GRAPH_TYPES[elem].highest)
    ends = [low, high, 1, high // 2] + ([-1] if low < 0 else [])
    pairs = [
        (a, b)
        for a in [*ends, 0]
        for b in ends
        if not (op in NON_NEGATIVE and b < 0) and not (op in NON_ZERO and b == 0)
    ]
    a, b = (np.array(side, dtype_of(elem)) for side in zip(*pairs, strict=True))

    found = run("BinOp", elem, [a, b], {"op": op})

    assert found.tolist() == [wrapped(WHOLE[op](x, y), elem) for x, y in pairs]


@pytest.mark.parametrize(
    ("op", "value", "kind", "message"),
    [
        ("Div", 0, "division", "integer division by zero"),
        ("Mod", 0, "division", "integer division by zero"),
        ("Rem", 0, "division", "integer division by zero"),
        ("Pow", -3, "exponent", "the exponent of an integer power is -3, expected 0 or more"),
        ("ShiftLeft", -1, "exponent", "a shift is -1, expected 0 or more"),
        ("ShiftRight", -1, "exponent", "a shift is -1, expected 0 or more"),
    ],
)
@pytest.mark.parametrize("elem", ["i4", "i8", "i32", "i64"])
def test_faults(op: str, value: int, kind: str, message: str, elem: str) -> None:
    a = np.ones((2, 3), dtype_of(elem))
    b = np.array([1, 2, value], dtype_of(elem))

    _, fault = attempt("BinOp", [elem, elem], [a, b], elem, {"op": op})

    assert fault is not None
    assert (fault.kind, fault.message, fault.position) == (kind, message, (0, 2))
    assert fault.is_fatal


@given(st.sampled_from(["And", "Or", "Xor"]), shapes, seeds)
def test_logic(op: str, shape: Dims, seed: int) -> None:
    a, b = numbers("bool", shape, seed), numbers("bool", shape, seed + 1)

    found = run("BinOp", "bool", [a, b], {"op": op})

    expected = [WHOLE[op](bool(x), bool(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True)]
    assert found.dtype == np.bool_
    assert found.ravel().tolist() == expected


def by_python(op: str, a: float, b: float) -> float:
    """The result in f64, exact for the remainders of narrower types."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if op == "Min":
        return min(a, b)
    if op == "Max":
        return max(a, b)
    if b == 0 or math.isinf(a):
        return math.nan
    return a % b if op == "Mod" else math.fmod(a, b)


@pytest.mark.parametrize("op", ["Min", "Max", "Mod", "Rem"])
@given(st.sampled_from(FLOATS), shapes, seeds, layouts, st.booleans())
def test_exact_float_operations(
    op: str, elem: str, shape: Dims, seed: int, layout: str, ordered: bool
) -> None:
    a, b = reals(elem, shape, seed), reals(elem, shape[1:], seed + 1)

    found = run("BinOp", elem, [a, b], {"op": op}, layout=layout, ordered=ordered)

    sides = (np.ravel(side).tolist() for side in np.broadcast_arrays(doubles(a), doubles(b)))
    exact = np.array([by_python(op, x, y) for x, y in zip(*sides, strict=True)])
    # `%` adds the divisor once: the sum is rounded to f32 first.
    wide = exact if elem == "f64" else exact.astype(np.float32)
    assert_equal(found, rounded(wide.reshape(found.shape), elem))


@given(st.sampled_from(FLOATS), shapes, seeds, st.booleans())
def test_float_division(elem: str, shape: Dims, seed: int, ordered: bool) -> None:
    a, b = reals(elem, shape, seed), reals(elem, shape, seed + 1)

    found = run("BinOp", elem, [a, b], {"op": "Div"}, ordered=ordered)

    with np.errstate(all="ignore"):
        wide = np.float64 if elem == "f64" else np.float32
        exact = np.asarray(a.astype(wide) / b.astype(wide))
    assert_equal(found, rounded(exact, elem))


@given(st.sampled_from(["f32", "f64", "f16", "bf16"]), shapes, seeds, st.booleans())
def test_powers_are_those_of_torch(elem: str, shape: Dims, seed: int, ordered: bool) -> None:
    torch = pytest.importorskip("torch")
    a, b = np.abs(doubles(reals(elem, shape, seed))), doubles(reals(elem, shape, seed + 1))
    b = np.where(np.arange(b.size).reshape(b.shape) % 2 == 0, np.rint(b), b)
    a, b = rounded(a, elem), rounded(b, elem)

    found = run("BinOp", elem, [a, b], {"op": "Pow"}, ordered=ordered)

    exact = torch.pow(torch.from_numpy(doubles(a)), torch.from_numpy(doubles(b))).numpy()
    assert_close(found, exact, elem, {"f32": 2.0, "f64": 2.0}.get(elem, 0.51))


@pytest.mark.parametrize("op", ["Mod", "Rem", "Min", "Max", "Div"])
def test_odd_values_are_those_of_torch(op: str) -> None:
    torch = pytest.importorskip("torch")
    values = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 2.5, -2.5, 1e-45, 7.0])
    a, b = (side.ravel().astype(np.float32) for side in np.meshgrid(values, values))
    if op in ("Mod", "Rem"):  # of an infinite divisor torch has no remainder, as IEEE has it
        a, b = a[~np.isinf(b)], b[~np.isinf(b)]
    calls: dict[str, Callable[..., Any]] = {
        "Mod": torch.remainder, "Rem": torch.fmod, "Min": torch.minimum, "Max": torch.maximum,
        "Div": torch.div,
    }  # fmt: skip

    found = run("BinOp", "f32", [a, b], {"op": op})

    assert_equal(found, calls[op](torch.from_numpy(a), torch.from_numpy(b)).numpy())


@pytest.mark.parametrize(("op", "signs"), [("Min", "--+-"), ("Max", "++-+")])
@pytest.mark.parametrize("elem", FLOATS)
def test_ordered_extremes_of_zeros(op: str, signs: str, elem: str) -> None:
    a = rounded(np.array([0.0, -0.0, 0.0 if op == "Min" else -0.0, -0.0]), elem)
    b = rounded(np.array([-0.0, 0.0, 0.0 if op == "Min" else -0.0, -3.0]), elem)
    if op == "Max":
        b[3] = 0.0

    found = run("BinOp", elem, [a, b], {"op": op}, ordered=True)

    assert ["-" if negative else "+" for negative in np.signbit(doubles(found))] == list(signs)


def test_ordered_results_have_one_nan() -> None:
    a = np.array([np.inf, -np.inf, -np.nan, 1.0], np.float32)
    b = np.array([0.0, 2.0, 1.0, -np.nan], np.float32)
    for op in ("Mod", "Rem", "Min", "Max", "Pow"):
        found = run("BinOp", "f32", [a, b], {"op": op}, ordered=True)
        bits = found.view(np.uint32)[np.isnan(found)]
        assert set(bits.tolist()) <= {0x7FC00000}


@pytest.mark.parametrize(("op", "each"), [("Add", 1), ("Div", 1), ("Pow", 8)])
def test_work(op: str, each: int) -> None:
    types = (typed("f32", (2, 3)), typed("f32", (3,)))
    call = Call(types, (types[0],), {"op": op})
    assert PRIMITIVES["core.BinOp"].work(call) == Work(elements=6, each=each)
