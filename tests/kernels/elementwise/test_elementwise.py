from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.elementwise.elementwise import ELEMENTWISE
from nacre.kernels.interface.call import Array, Call, Quantization
from nacre.kernels.numbers.quantization import per_tensor
from nacre.kernels.numbers.real_functions import ULPS
from tests.kernels.oracle_elementwise import (
    FLOATS,
    INTEGERS,
    bounds,
    fault_of,
    onnx_result,
    run,
    type_of,
    ulps,
)

PRIMITIVES = {row.name: row for row in ELEMENTWISE}
BINARY = ("add", "sub", "mul", "div", "min", "max", "pow")
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "leaky_relu": {"alpha": 0.1},
    "clamp": {"min_val": -0.7, "max_val": 1.3},
    "gelu_tanh": {"approximate": "tanh"},
}


def computed(name: str, *inputs: Array, elem: str = "f32", **options: Any) -> Array:  # noqa: ANN401
    attributes = options.pop("attributes", ATTRIBUTES.get(name, {}))
    elems = [elem] * (len(inputs) + 1)
    opcode = PRIMITIVES[name.removesuffix("_tanh") if name == "gelu_tanh" else name]
    return run(opcode, list(inputs), elems, attributes, **options)


def _safe(function: Callable[[float], float], limit: float) -> Callable[[float], float]:
    def run(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return limit

    return run


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def _tanh_inner(x: float) -> float:
    return 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


REAL: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "sigmoid": _sigmoid,
    "tanh": math.tanh,
    "exp": _safe(math.exp, math.inf),
    "log": lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "abs": abs,
    "neg": lambda x: -x,
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x * _sigmoid(_tanh_inner(x)),
    "silu": lambda x: x * _sigmoid(x),
    "leaky_relu": lambda x: x if x > 0 else x * float(np.float32(0.1)),
    "clamp": lambda x: min(max(x, float(np.float32(-0.7))), float(np.float32(1.3))),
}


def every_magnitude() -> Array:
    bits = np.arange(0, 0x7F800000, 200_003, dtype=np.uint32).view(np.float32)
    near = np.linspace(-110, 110, 20_001, dtype=np.float32)
    return np.concatenate([bits, -bits, near, near / 64])


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", sorted(REAL))
def test_f32_is_within_the_stated_ulps_of_a_naive_loop(name: str, ordered: bool) -> None:
    x = every_magnitude()
    exact = np.array([REAL[name](float(v)) for v in x])
    error = ulps(computed(name, x, ordered=ordered), exact)
    if name == "silu" and not ordered:
        assert error[x < -87].max() * 2.0**-149 < 2.0**-143
        error = error[x >= -87]
    assert error.max() <= (0.51 if ordered else ULPS.get(name, 0.5))


@pytest.mark.parametrize("ordered", [False, True])
def test_powers_are_within_the_stated_ulps(ordered: bool) -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(0, 3, 20_000)).astype(np.float32)
    b = rng.normal(0, 6, a.size).astype(np.float32)
    exact = np.array([math.pow(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    assert ulps(computed("pow", a, b, ordered=ordered), exact).max() <= (
        0.51 if ordered else ULPS["pow"]
    )


@pytest.mark.parametrize(("name", "elem"), list(product((*sorted(REAL), *BINARY), ("f16", "bf16"))))
def test_narrow_floats_are_computed_in_f32_and_rounded_once(name: str, elem: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    inputs: list[Array] = [every.view(type_of(elem, ()).dtype)]
    if name in BINARY:
        inputs.append(np.random.default_rng(1).permutation(inputs[0]))
    with np.errstate(all="ignore"):  # NaNs that signal do so on some processors
        wide = computed(name, *(x.astype(np.float32) for x in inputs))
        expected = wide.astype(inputs[0].dtype).astype(np.float32)
    found = computed(name, *inputs, elem=elem)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found.astype(np.float32), expected)


ONNX = {
    "relu": "Relu",
    "leaky_relu": "LeakyRelu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "neg": "Neg",
    "gelu": "Gelu",
    "gelu_tanh": "Gelu",
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "min": "Min",
    "max": "Max",
    "pow": "Pow",
}
# Of onnxruntime's own, in ulps of the larger of result and operand, in addition to ours.
ONNX_ULPS = {"sigmoid": 4, "tanh": 4, "exp": 2, "log": 1, "gelu": 4, "gelu_tanh": 4, "pow": 1}


@pytest.mark.parametrize("name", sorted(ONNX))
def test_f32_is_what_onnxruntime_gives(name: str) -> None:
    rng = np.random.default_rng(2)
    inputs = [rng.normal(0, 3, 4000).astype(np.float32) for _ in range(1 + (name in BINARY))]
    if name in ("log", "sqrt", "pow"):
        inputs[0] = np.abs(inputs[0])
    attributes = {
        k: v for k, v in ATTRIBUTES.get(name, {}).items() if k in ("alpha", "approximate")
    }
    expected = onnx_result(ONNX[name], inputs, **attributes).astype(np.float64)
    unit = np.maximum(np.abs(expected), np.abs(inputs[0])) if name in ONNX_ULPS else expected
    error = ulps(computed(name, *inputs), expected, unit)
    assert error.max() <= ULPS.get(name, 0) + ONNX_ULPS.get(name, 0)


@pytest.mark.parametrize(
    "name", ["relu", "sqrt", "add", "sub", "mul", "div", "min", "max", "abs", "neg"]
)
def test_f16_is_bit_for_bit_what_onnxruntime_gives(name: str) -> None:
    rng = np.random.default_rng(3)
    inputs = [rng.normal(0, 30, 4000).astype(np.float16) for _ in range(1 + (name in BINARY))]
    if name == "sqrt":
        inputs[0] = np.abs(inputs[0])
    np.testing.assert_array_equal(
        computed(name, *inputs, elem="f16"), onnx_result(ONNX[name], inputs)
    )


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", [*sorted(REAL), *BINARY])
def test_nan_in_gives_nan_out_without_a_warning(name: str, elem: str) -> None:
    dtype = type_of(elem, ()).dtype
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30], np.float32)
    with np.errstate(over="ignore"):
        inputs = (
            [odd.astype(dtype)]
            if name not in BINARY
            else [part.astype(dtype) for part in np.meshgrid(odd, odd)]
        )
    found = computed(name, *inputs, elem=elem)
    is_nan = np.isnan(inputs[0].astype(float))
    if name == "pow":
        is_nan &= inputs[1].astype(float) != 0  # IEEE: anything to the power 0 is 1
    assert np.isnan(found[is_nan].astype(float)).all()


def test_infinities_give_the_limits() -> None:
    x = np.array([np.inf, -np.inf, 1e4, -1e4], np.float32)
    assert computed("sigmoid", x).tolist() == [1, 0, 1, 0]
    assert computed("tanh", x).tolist() == [1, -1, 1, -1]
    assert computed("exp", x).tolist() == [np.inf, 0, np.inf, 0]
    for name, ordered in product(("silu", "gelu", "gelu_tanh"), (False, True)):
        assert computed(name, x, ordered=ordered).tolist() == [np.inf, 0, 1e4, 0]


@pytest.mark.parametrize("elem", [*FLOATS, "i8", "i32"])
@pytest.mark.parametrize("name", [*sorted(REAL), *BINARY])
def test_in_place_strided_and_unaligned_arrays_give_the_same_bits(name: str, elem: str) -> None:
    if elem in INTEGERS and (name not in INTEGER or name == "pow"):
        return
    type_ = type_of(elem, (5, 37))
    rng = np.random.default_rng(4)
    inputs = [(rng.uniform(1, 9, (5, 37))).astype(type_.dtype) for _ in range(1 + (name in BINARY))]
    expected = computed(name, *inputs, elem=elem)
    opcode = PRIMITIVES["gelu" if name == "gelu_tanh" else name]
    call = Call((type_,) * len(inputs), (type_,), ATTRIBUTES.get(name, {}))
    bound = opcode.bind(call)
    for place in range(len(inputs)):
        copies = [x.copy() for x in inputs]
        assert bound(copies, [copies[place]]) is None
        np.testing.assert_array_equal(copies[place], expected)
    spread = [np.repeat(x, 2, axis=1)[:, ::2] for x in inputs]
    output = np.zeros((37, 5), type_.dtype).T
    assert bound(spread, [output]) is None
    np.testing.assert_array_equal(output, expected)
    size = inputs[0].nbytes
    moved = [np.frombuffer(bytearray(b"\0" + x.tobytes()), np.uint8)[1:] for x in inputs]
    views = [m.view(type_.dtype).reshape(5, 37) for m in moved]
    target = np.zeros(size + 1, np.uint8)[1:].view(type_.dtype).reshape(5, 37)
    assert bound(views, [target]) is None
    np.testing.assert_array_equal(target, expected)


def _trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _leaky(x: int) -> int:
    return x if x > 0 else round(x * 1.7)


INTEGER: dict[str, Callable[..., int]] = {
    "relu": lambda x: max(x, 0),
    "leaky_relu": _leaky,
    "abs": abs,
    "neg": lambda x: -x,
    "clamp": lambda x: min(max(x, -3), 5),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _trunc_div,
    "min": min,
    "max": max,
    "pow": lambda a, b: a**b,
}
INTEGER_ATTRIBUTES = {"leaky_relu": {"alpha": 1.7}, "clamp": {"min_val": -3.9, "max_val": 5.9}}


def narrowed(value: int, elem: str, saturate: bool) -> int:
    low, high = bounds(elem)
    return min(max(value, low), high) if saturate else (value - low) % (high - low + 1) + low


@pytest.mark.sampled(4)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", sorted(INTEGER))
@given(st.sampled_from(INTEGERS), st.data())
def test_plain_integers_are_exact_then_wrapped_or_saturated(
    name: str, saturate: bool, elem: str, data: st.DataObject
) -> None:
    low, high = bounds(elem)
    size = data.draw(st.integers(1, 8))
    ends = st.sampled_from([low, high, max(low, -1), 0, 1])
    first = data.draw(
        st.lists(st.one_of(st.integers(low, high), ends), min_size=size, max_size=size)
    )
    operands = [first]
    if name in BINARY:
        second: st.SearchStrategy[int] = st.one_of(st.integers(low, high), ends)
        second = st.integers(0, min(high, 70)) if name == "pow" else second
        second = second.filter(bool) if name == "div" else second
        operands.append(data.draw(st.lists(second, min_size=size, max_size=size)))
    arrays = [np.array(x).astype(type_of(elem, ()).dtype) for x in operands]
    attributes = {**INTEGER_ATTRIBUTES.get(name, {}), "saturate": saturate}
    found = computed(name, *arrays, elem=elem, attributes=attributes)
    expected = [narrowed(INTEGER[name](*x), elem, saturate) for x in zip(*operands, strict=True)]
    assert found.tolist() == expected


@pytest.mark.sampled(4)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("name", "elem"), list(product(sorted(INTEGER), ("i4", "i8", "u8"))))
def test_every_pair_of_narrow_integers_is_exact(name: str, elem: str, saturate: bool) -> None:
    low, high = bounds(elem)
    values = np.arange(low, high + 1).astype(type_of(elem, ()).dtype)
    others = values[values > 0] if name in ("div", "pow") else values
    arrays = np.meshgrid(values, others) if name in BINARY else [values]
    attributes = {**INTEGER_ATTRIBUTES.get(name, {}), "saturate": saturate}
    found = computed(name, *arrays, elem=elem, attributes=attributes)
    pairs = zip(*(x.ravel().tolist() for x in arrays), strict=True)
    exact = [narrowed(INTEGER[name](*pair), elem, saturate) for pair in pairs]
    assert found.ravel().tolist() == exact


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1))
def test_large_exponents_wrap_as_modular_powers(base: int, exponent: int) -> None:
    found = computed("pow", np.array([base]), np.array([exponent]), elem="i32")
    assert int(found[0]) % 2**32 == pow(base, exponent, 2**32)


@pytest.mark.parametrize(("name", "kind", "bad"), [("div", "division", 0), ("pow", "exponent", -2)])
def test_a_value_without_a_result_is_a_fault_with_its_place(name: str, kind: str, bad: int) -> None:
    type_ = type_of("i16", (3, 4))
    a, b = np.full((3, 4), 7, np.int16), np.full((3, 4), 2, np.int16)
    b[1, 2] = b[2, 0] = bad
    output = np.full((3, 4), 99, np.int16)
    fault = fault_of(PRIMITIVES[name], Call((type_, type_), (type_,)), [a, b], output)
    assert fault is not None
    assert (fault.kind, fault.position, fault.is_fatal) == (kind, (1, 2), True)
    assert (output == 99).all()


@pytest.mark.parametrize(
    ("low", "high", "saturate", "expected"),
    [
        (-math.inf, math.inf, False, [-128, 0, 127]),
        (0.2, 0.8, False, [0, 0, 0]),  # no integer between: min(max(x, 1), 0)
        (200.0, 300.0, False, [-56, -56, -56]),
        (200.0, 300.0, True, [127, 127, 127]),
        (-500.0, -300.0, True, [-128, -128, -128]),
        (-500.0, -300.0, False, [-44, -44, -44]),
        (200.0, 5.0, False, [5, 5, 5]),
    ],
)
def test_clamp_limits_outside_the_type(
    low: float, high: float, saturate: bool, expected: list[int]
) -> None:
    attributes = {"min_val": low, "max_val": high, "saturate": saturate}
    x = np.array([-128, 0, 127], np.int8)
    assert computed("clamp", x, elem="i8", attributes=attributes).tolist() == expected


def test_limits_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        computed("clamp", np.zeros(2), elem="i8", attributes={"min_val": math.nan, "max_val": 1.0})


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp", "log", "sqrt", "gelu", "silu"])
def test_functions_without_a_meaning_in_plain_integers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no meaning in plain integers"):
        computed(name, np.zeros(2), elem="i8")


def test_integers_without_quantisation_are_not_mixed_with_floats() -> None:
    with pytest.raises(ValueError, match="carries no quantisation"):
        run(PRIMITIVES["add"], [np.zeros(2), np.zeros(2)], ["i8", "f32", "f32"])


def requantized(name: str, arrays: list[Array], quants: list[Quantization], elem: str) -> Array:
    """Dequantise, compute in f32 and quantise again, step by step."""
    reals = []
    for x, quant in zip(arrays, quants, strict=False):
        scale, zero = quant.broadcast_parameters(x.shape)
        reals.append((x.astype(np.int64) - zero).astype(np.float32) * scale)
    scale, zero = quants[-1].broadcast_parameters(arrays[0].shape)
    with np.errstate(all="ignore"):
        steps = np.rint(computed(name, *reals) / scale).astype(np.float64)
    steps = np.where(np.isnan(steps), 0, steps)
    return np.clip(steps + zero, *bounds(elem))


@pytest.mark.parametrize("elem", INTEGERS)
@pytest.mark.parametrize("name", [*sorted(REAL), *BINARY])
def test_quantised_integers_are_dequantised_computed_and_quantised(name: str, elem: str) -> None:
    rng = np.random.default_rng(5)
    low, high = bounds(elem)
    count = 1 + (name in BINARY)
    dtype = type_of(elem, ()).dtype
    arrays = [rng.integers(low, high, (3, 500), endpoint=True).astype(dtype) for _ in range(count)]
    zeros = rng.integers(max(low, -100), min(high, 100), 3).tolist()
    scales = (3.0 / high, 5.0 / high, 2.0 / high)
    uniform = [per_tensor(s, z) for s, z in zip(scales, zeros, strict=True)][: count + 1]
    rows = Quantization(np.array(scales, np.float32), np.array(zeros, np.int32), 0)
    for quants in (uniform, [rows, *uniform[1:]], [*uniform[:-1], rows]):
        elems = [elem] * (count + 1)
        opcode = PRIMITIVES["gelu" if name == "gelu_tanh" else name]
        found = run(opcode, arrays, elems, ATTRIBUTES.get(name, {}), quants)
        np.testing.assert_array_equal(found, requantized(name, arrays, quants, elem))


def test_with_quant_on_some_operands_only_integers_are_plain() -> None:
    x = np.array([100, 100], np.int8)
    quants = [per_tensor(0.5), per_tensor(0.5), None]
    found = run(PRIMITIVES["add"], [x, x], ["i8", "i8", "i8"], quants=quants)
    assert found.tolist() == [-56, -56]


def test_shapes_must_be_equal() -> None:
    assert PRIMITIVES["add"].shape([(2, 3), (2, 3)], {}) == [(2, 3)]
    assert PRIMITIVES["add"].shape([(2, 3), (3,)], {}) is None
    assert PRIMITIVES["add"].shape([(2, 3)], {}) is None
    assert PRIMITIVES["relu"].shape([(2, 3)], {}) == [(2, 3)]
    assert PRIMITIVES["relu"].shape([None], {}) is None


def test_work_is_one_pass_over_the_result() -> None:
    type_ = type_of("f32", (2, 3))
    assert PRIMITIVES["add"].work(Call((type_, type_), (type_,))).elements == 6
