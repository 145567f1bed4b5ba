"""The evaluator against loops over Python numbers, NumPy, torch and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import trunc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession, evaluate
from nacre.core.module import Module
from nacre.core.text.reader import parse
from nacre.core.values import Custom
from tests.core.modules import inputs_of, modules
from tests.kernels.oracle_views import onnx_result

Array = npt.NDArray[Any]
INTEGERS = ("i4", "u4", "i8", "u8", "i16", "u16", "i32", "u32", "i64")
NARROW_FLOATS = ("f16", "bf16", "f8e4m3", "f8e5m2")
every_integer = pytest.mark.parametrize("dtype", INTEGERS)
every_float = pytest.mark.parametrize("dtype", [*NARROW_FLOATS, "f32", "f64"])


def values(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Integers over the whole range of a type, or floats around zero."""
    element, random = GRAPH_TYPES[dtype], np.random.default_rng(seed)
    if not element.is_integer:
        return random.normal(size=shape).astype(element.dtype)
    low, high = int(element.lowest), int(element.highest)
    return random.integers(low, high, shape, np.int64, endpoint=True).astype(element.dtype)


def one(opcode: str, *arrays: Array, dtype: str, by: str = "", **attributes: object) -> Array:
    """The result of a single operation; `by` is the type of its second operand."""
    return evaluate(single(opcode, *arrays, dtype=dtype, by=by, **attributes), named(arrays))[0]


def single(opcode: str, *arrays: Array, dtype: str, by: str = "", **attributes: object) -> Module:
    build = Builder()
    types = (dtype, by or dtype)
    inputs = [build.input(f"x{i}", types[i], a.shape) for i, a in enumerate(arrays)]
    return build.module(build.add(opcode, *inputs, **attributes))


def named(arrays: tuple[Array, ...]) -> dict[str, Array]:
    return {f"x{i}": array for i, array in enumerate(arrays)}


def whole(array: Array) -> Array:
    """The same numbers as Python integers, which never wrap."""
    found: Array = np.vectorize(int, otypes=[object])(array)
    return found


def wrapped(array: Array, dtype: str) -> list[int]:
    element = GRAPH_TYPES[dtype]
    low = int(element.lowest)
    return [(int(v) - low) % (1 << element.bits) + low for v in np.asarray(array).ravel()]


def as_ints(array: Array) -> list[int]:
    return [int(v) for v in array.ravel()]


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
}


@every_integer
@pytest.mark.parametrize("op", BINARY)
def test_integer_arithmetic_wraps(op: str, dtype: str) -> None:
    a, b = values(dtype, (5, 3)), values(dtype, (3,), 1)
    found = one("BinOp", a, b, dtype=dtype, op=op)
    assert found.dtype == GRAPH_TYPES[dtype].dtype
    assert as_ints(found) == wrapped(BINARY[op](whole(a), whole(b)), dtype)


@every_integer
def test_sums_products_and_signs_of_integers_are_exact_modulo_the_width(dtype: str) -> None:
    x, y = values(dtype, (4, 6)), values(dtype, (6, 5), 1)
    total = one("Sum", x, dtype=dtype, axes=(0,), keepdims=False)
    assert as_ints(total) == wrapped(whole(x).sum(0), dtype)
    assert as_ints(one("Neg", x, dtype=dtype)) == wrapped(-whole(x), dtype)
    found = one("MatMul", x, y, dtype=dtype)
    assert as_ints(found) == wrapped(whole(x) @ whole(y), dtype)
    dot = one("Dot", x[0], y, dtype=dtype)
    assert as_ints(dot) == wrapped(whole(x[0]) @ whole(y), dtype)


@every_integer
def test_the_mean_of_integers_is_exact_and_cut_towards_zero(dtype: str) -> None:
    x = values(dtype, (7, 3))
    found = one("Mean", x, dtype=dtype, axes=(0,), keepdims=True)
    assert as_ints(found) == [trunc(Fraction(v, 7)) for v in whole(x).sum(0)]


def test_the_mean_of_the_largest_integers_does_not_overflow() -> None:
    for extreme in (np.iinfo(np.int64).max, np.iinfo(np.int64).min):
        x = np.full(3, extreme, np.int64)
        assert one("Mean", x, dtype="i64", axes=(), keepdims=False) == extreme


@pytest.mark.parametrize("dtype", ["i4", "u4"])
def test_four_bits_stay_within_range_between_operations(dtype: str) -> None:
    build = Builder()
    x = build.input("x", dtype, (4,))
    total = build.add("BinOp", x, x, op="Add")
    mean = build.add("Mean", total, axes=(), keepdims=False)
    given = np.array([7, 6, 5, 7]).astype(GRAPH_TYPES[dtype].dtype)
    found = evaluate(build.module(total, mean), {"x": given})
    exact = wrapped(whole(given) * 2, dtype)
    assert as_ints(found[0]) == exact
    assert int(found[1]) == trunc(Fraction(sum(exact), 4))


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
@pytest.mark.parametrize("op", BINARY)
def test_narrow_floats_are_computed_in_f32_and_rounded_once(op: str, dtype: str) -> None:
    a, b = values(dtype, (64,)), values(dtype, (64,), 1)
    exact = BINARY[op](a.astype(np.float32), b.astype(np.float32))
    found = one("BinOp", a, b, dtype=dtype, op=op)
    assert found.tobytes() == exact.astype(GRAPH_TYPES[dtype].dtype).tobytes()


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_sums_of_narrow_floats_do_not_round_on_the_way(dtype: str) -> None:
    element = GRAPH_TYPES[dtype].dtype
    x = np.array([16.0, 0.25, 0.25, 0.25, 0.25, -16.0]).astype(element)
    assert float(one("Sum", x, dtype=dtype, axes=(0,), keepdims=False)) == 1.0
    ones = np.ones((6, 1), element)
    assert float(one("MatMul", x[None, :], ones, dtype=dtype).item()) == 1.0
    assert float(one("Mean", x[:5], dtype=dtype, axes=(), keepdims=False)) == float(
        np.array(17 / 5, np.float32).astype(element)
    )


@every_float
def test_reductions_and_products_of_floats_are_those_of_f64_within_their_precision(
    dtype: str,
) -> None:
    element = GRAPH_TYPES[dtype].dtype
    x, y = values(dtype, (3, 40)), values(dtype, (40, 4), 1)
    step = 2.0**-52 if dtype == "f64" else 2.0**-23
    cases = [
        (
            one("Sum", x, dtype=dtype, axes=(1,), keepdims=False),
            wide(x).sum(1),
            abs(wide(x)).sum(1),
        ),
        (one("MatMul", x, y, dtype=dtype), wide(x) @ wide(y), abs(wide(x)) @ abs(wide(y))),
    ]
    for found, exact, magnitude in cases:
        rounding = np.abs(exact - exact.astype(element).astype(np.float64))
        slack = 2 * rounding + 40 * step * magnitude
        if dtype in NARROW_FLOATS:  # a value close to the middle may round the other way
            slack = slack + np.abs(exact) * 2.0 ** -(2 if dtype == "f8e5m2" else 3)
        assert (np.abs(wide(found) - exact) <= slack).all()


def wide(x: Array) -> npt.NDArray[np.float64]:
    return x.astype(np.float64)


@every_float
def test_relu_is_zero_for_nan_and_neg_turns_the_sign_of_zero(dtype: str) -> None:
    x = np.array([np.nan, -1.0, 0.0, 2.0]).astype(GRAPH_TYPES[dtype].dtype)
    assert wide(one("Relu", x, dtype=dtype)).tolist() == [0.0, 0.0, 0.0, 2.0]
    zeros = np.zeros(2).astype(x.dtype)
    assert np.signbit(wide(one("Neg", zeros, dtype=dtype))).all()


def test_exp_and_log_follow_ieee() -> None:
    x = np.array([0.0, -1.0, np.inf, 1.0, -np.inf])
    assert one("Log", x, dtype="f64").tolist()[0] == -np.inf
    assert np.isnan(one("Log", x, dtype="f64")[1])
    assert one("Exp", x, dtype="f64").tolist() == np.exp(x).tolist()
    assert one("Exp", np.array(1000.0), dtype="f64") == np.inf


def convolved(x: Array, w: Array, pads: tuple[tuple[int, int], ...], strides: Array) -> Array:
    """A convolution as the text has it, one product after the other."""
    padded = np.pad(x, ((0, 0), *pads, (0, 0)))
    if x.dtype == object:
        padded = whole(padded)  # the padding too
    high = (padded.shape[1] - w.shape[0]) // strides[0] + 1
    broad = (padded.shape[2] - w.shape[1]) // strides[1] + 1
    result = np.zeros((x.shape[0], high, broad, w.shape[3]), object)
    for n, i, j, f in product(*map(range, result.shape)):
        top, left = i * strides[0], j * strides[1]
        window = padded[n, top : top + w.shape[0], left : left + w.shape[1]]
        result[n, i, j, f] = sum((window * w[..., f]).ravel().tolist())
    return result


@pytest.mark.parametrize(
    ("padding", "pads"),
    [
        ("Valid", ((0, 0), (0, 0))),
        ("Same", ((0, 1), (1, 1))),  # 6 rows by steps of 2 need one more, which goes to the end
        (Custom(((2, 0), (0, 3))), ((2, 0), (0, 3))),
    ],
)
@pytest.mark.parametrize("dtype", ["i32", "i64", "f64", "i8"])
def test_a_convolution_is_the_sum_over_its_window(
    dtype: str, padding: object, pads: tuple[tuple[int, int], ...]
) -> None:
    x, w = values(dtype, (2, 6, 5, 3)), values(dtype, (3, 3, 3, 4), 1)
    found = one("Conv2d", x, w, dtype=dtype, strides=(2, 1), padding=padding)
    if dtype == "f64":
        exact = convolved(x, w, pads, np.array([2, 1])).astype(np.float64)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13)
    else:
        assert as_ints(found) == wrapped(
            convolved(whole(x), whole(w), pads, np.array([2, 1])), dtype
        )


@pytest.mark.parametrize("dtype", [*GRAPH_TYPES])
def test_views_move_elements_of_every_type_as_numpy_does(dtype: str) -> None:
    x = values(dtype, (2, 3, 4)) if dtype != "bool" else values("i8", (2, 3, 4)) > 0
    rows = np.array([[1, 0], [1, 1]])
    cases: list[tuple[Array, Array]] = [
        (one("Reshape", x, dtype=dtype, new_shape=(4, -1)), x.reshape(4, 6)),
        (one("Transpose", x, dtype=dtype, permutation=(2, 0, 1)), x.transpose(2, 0, 1)),
        (one("ExpandDims", x, dtype=dtype, axes=(0, 2)), x[None, :, None]),
        (one("Squeeze", x[:1], dtype=dtype, axes=(0,)), x[0]),
        (one("Index", x, dtype=dtype, indices=(1, 2, 3)), x[1, 2, 3]),
        (
            one("Slice", x, dtype=dtype, starts=(0, 1, 0), ends=(9, 3, 4), steps=(1, 1, 3)),
            x[0:9, 1:3, 0:4:3],
        ),
        (one("Gather", x, rows, dtype=dtype, by="i64"), x[rows]),
    ]
    for found, expected in cases:
        assert found.dtype == GRAPH_TYPES[dtype].dtype
        assert found.shape == expected.shape
        assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def test_onnxruntime_gives_the_same_for_floats_and_integers() -> None:
    x, y = values("f32", (2, 8, 16)), values("f32", (16, 5), 1)
    found = one("MatMul", x, y, dtype="f32")
    np.testing.assert_allclose(found, onnx_result("MatMul", [x, y], {})[0], rtol=1e-5, atol=1e-5)
    axes = np.array([1])
    for opcode, theirs in (("Sum", "ReduceSum"), ("Mean", "ReduceMean")):
        ours = one(opcode, x, dtype="f32", axes=(1,), keepdims=True)
        expected = onnx_result(theirs, [x, axes], {"keepdims": 1}, [np.float32])[0]
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    whole_numbers, rows = values("i64", (5, 3)), np.array([[4, 0, 2]])
    gathered = onnx_result("Gather", [whole_numbers, rows], {"axis": 0})[0]
    assert (one("Gather", whole_numbers, rows, dtype="i64", by="i64") == gathered).all()
    moved = onnx_result("Transpose", [x], {"perm": [2, 0, 1]})[0]
    assert (one("Transpose", x, dtype="f32", permutation=(2, 0, 1)) == moved).all()


@pytest.mark.parametrize("padding", ["Valid", "Same"])
def test_onnxruntime_convolves_alike(padding: str) -> None:
    x, w = values("f32", (2, 9, 8, 3)), values("f32", (3, 2, 3, 4), 1)
    ours = one("Conv2d", x, w, dtype="f32", strides=(2, 3), padding=padding)
    given = {"strides": [2, 3], "auto_pad": "VALID" if padding == "Valid" else "SAME_UPPER"}
    theirs = onnx_result(
        "Conv",
        [
            np.ascontiguousarray(x.transpose(0, 3, 1, 2)),
            np.ascontiguousarray(w.transpose(3, 2, 0, 1)),
        ],
        given,
    )[0]
    np.testing.assert_allclose(ours, theirs.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)


def test_torch_gives_the_same_in_f64() -> None:
    torch = pytest.importorskip("torch")
    x, w = values("f64", (2, 9, 8, 3)), values("f64", (3, 2, 3, 4), 1)
    theirs = torch.nn.functional.conv2d(
        torch.from_numpy(x).permute(0, 3, 1, 2),
        torch.from_numpy(w).permute(3, 2, 0, 1),
        stride=(2, 1),
        padding=(1, 2),
    )
    ours = one("Conv2d", x, w, dtype="f64", strides=(2, 1), padding=Custom(((1, 1), (2, 2))))
    np.testing.assert_allclose(ours, theirs.permute(0, 2, 3, 1).numpy(), rtol=0, atol=1e-12)
    tensor = torch.from_numpy(x)
    for opcode, theirs in (("Exp", tensor.exp()), ("Neg", -tensor), ("Relu", tensor.relu())):
        np.testing.assert_allclose(one(opcode, x, dtype="f64"), theirs.numpy(), rtol=1e-15)


@given(modules())
def test_what_is_ordered_is_close_and_every_output_is_as_declared(module: Module) -> None:
    inputs = inputs_of(module)
    found = evaluate(module, inputs)
    for array, ordered, type_ in zip(
        found, evaluate(module, inputs, ordered=True), module.output_types, strict=True
    ):
        assert array.dtype == ordered.dtype == type_.element.dtype
        assert array.shape == ordered.shape == type_.shape
        if type_.element.is_integer:
            assert (array == ordered).all()


def test_a_scalar_f32_constant_is_rounded_to_f32() -> None:
    module = parse("%0 = ConstF32 () {value=0.1} : tensor<f32[]>\noutputs: %0, %0\n")
    first, second = evaluate(module)
    assert first.tobytes() == second.tobytes() == np.float32(0.1).tobytes()


def test_state_does_not_follow_an_array_of_the_caller() -> None:
    builder = Builder()
    h, x = builder.input("h", "f32", (2,)), builder.input("x", "f32", (2,))
    builder.state("h", x, builder.constant(np.zeros(2, np.float32)))
    session = builder.module(h).session()
    array = np.ones(2, np.float32)
    session.run({"x": array})
    array[:] = 7
    assert session.run({"x": array})[0].tolist() == [1, 1]


def test_inputs_that_are_no_mapping_are_refused() -> None:
    builder = Builder()
    module = builder.module(builder.input("x", "f32", (2,)))
    with pytest.raises(InputError, match="expected arrays by name"):
        evaluate(module, [np.zeros(2, np.float32)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="byte order"):
        evaluate(module, {"x": np.zeros(2, ">f4")})


def test_only_dense_arrays_of_the_declared_types_need_no_check() -> None:
    build = Builder()
    x = build.input("x", "f32", (2, 3))
    session = CoreSession(build.module(build.add("Neg", x)))
    right = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert session.try_fast_run({"x": right}) is not None
    others: list[Any] = [None, [right], {}, {"y": right}, {"x": right, "y": right}, {"x": [1, 2]}]
    others += [{"x": right[:, ::-1]}, {"x": right.astype(np.float64)}, {"x": right[:1]}]
    others += [{"x": np.ma.masked_array(right)}, {"x": right.astype(">f4")}]
    assert [session.try_fast_run(inputs) for inputs in others] == [None] * len(others)


def test_packed_inputs_and_states_are_always_checked() -> None:
    build = Builder()
    narrow = CoreSession(build.module(build.add("Neg", build.input("x", "i4", (2,)))))
    assert narrow.try_fast_run({"x": np.zeros(2, np.int8)}) is None
    build = Builder()
    h, x = build.input("h", "f32", (2,)), build.input("x", "f32", (2,))
    build.state("h", x, build.constant(np.zeros(2, np.float32)))
    two = np.ones(2, np.float32)
    assert CoreSession(build.module(h)).try_fast_run({"h": two, "x": two}) is None
