"""Where ONNX leaves something open or means something else, the model says what Core IR means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.base.elements import GRAPH_TYPES, ElementType
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from tests.byte_products import skip_where_they_saturate
from tests.core.modules import same_bits
from tests.core.onnx_export.running import (
    Array,
    assert_close,
    attempt,
    operations_of,
    plain,
    run,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

Loose = Any  # attributes

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, 3e38, -3e38])
UNARY = ("Abs", "Sign", "Ceil", "Floor", "Round", "Trunc", "Sqrt", "Rsqrt", "Reciprocal", "Sin",
         "Tanh", "Sigmoid", "Softplus", "Softsign", "IsNan", "IsInf", "Log1p", "Expm1", "Log2",
         "Log10", "Exp2")  # fmt: skip
FUNCTIONS = ("Relu", "ReluNan", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "HardSwish", "Silu",
             "Neg", "Exp", "Log")  # fmt: skip


def of(opcode: str, *arrays: Array, **given: object) -> tuple[Module, dict[str, Array]]:
    """One operation on inputs with these elements."""
    builder = Builder()
    named = {f"x{i}": array for i, array in enumerate(arrays)}
    types = {str(e.dtype): name for name, e in GRAPH_TYPES.items()}
    values = [builder.input(n, types[str(a.dtype)], a.shape) for n, a in named.items()]
    return builder.module(builder.add(opcode, *values, **given)), named


def agrees(
    folder: Path, opcode: str, *arrays: Array, ulps: float = 0, part: float = 0, **given: Loose
) -> None:
    """Whether the results agree; `part` is of the largest element of a tensor of floats."""
    module, inputs = of(opcode, *arrays, **given)
    found, expected = run(module, inputs, folder, is_plain=True), evaluate(module, inputs)
    assert_close(found, expected, ulps, part)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("word", UNARY)
def test_functions_have_the_same_limits(word: str, dtype: str, tmp_path: Path) -> None:
    agrees(tmp_path, "Unary", ODD.astype(dtype), ulps=32, op=word)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_activations_have_the_same_limits(opcode: str, dtype: str, tmp_path: Path) -> None:
    agrees(tmp_path, opcode, ODD.astype(dtype), ulps=32)


@pytest.mark.parametrize("word", ["none", "tanh"])
def test_gelu_goes_to_zero(word: str, tmp_path: Path) -> None:
    module, inputs = of("Gelu", ODD.astype("f4"), approximate=word)
    found, expected = run(module, inputs, tmp_path), evaluate(module, inputs)
    np.testing.assert_allclose(found[0], expected[0], 1e-5, 1e-7)  # NaN and infinities the same


def test_relu_makes_zero_of_nan_and_of_the_negative_zero(tmp_path: Path) -> None:
    module, inputs = of("Relu", np.array([np.nan, -0.0, -1, 2], np.float32))
    assert same_bits(run(module, inputs, tmp_path)[0], np.array([0, 0, 0, 2], np.float32))
    assert operations_of(tmp_path / "model.onnx") == ["Greater", "Where"]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("word", ["Expm1", "Log1p"])
def test_small_numbers_lose_no_digits(word: str, dtype: str, tmp_path: Path) -> None:
    powers = 10.0 ** np.arange(-30, 1.5, 0.25)
    module, inputs = of("Unary", np.concatenate([powers, -powers / 20]).astype(dtype), op=word)
    assert_close(run(module, inputs, tmp_path), evaluate(module, inputs), ulps=6)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u32"])
@pytest.mark.parametrize("word", ["Div", "Mod", "Rem", "Add", "Mul", "Min", "Max"])
def test_arithmetic_at_the_ends_of_integers(word: str, dtype: str, tmp_path: Path) -> None:
    ends = np.iinfo(GRAPH_TYPES[dtype].dtype)
    pool = np.array([ends.min, ends.min + 1, ends.max, ends.max - 1, 1, 2, 7, 100],
                    GRAPH_TYPES[dtype].dtype)  # fmt: skip
    pool = np.append(pool, pool.dtype.type(-1)) if ends.min < 0 else pool
    other = pool[pool != 0]
    agrees(tmp_path, "BinOp", pool[:, None], other, op=word)


def test_a_constant_divisor_needs_no_guard(tmp_path: Path) -> None:
    builder = Builder()
    x = builder.input("x", "i64", (3,))
    three = builder.constant(np.array(3))
    module = builder.module(builder.add("BinOp", x, three, op="Div"))
    found = run(module, {"x": np.array([-7, 7, 9])}, tmp_path)
    assert found[0].tolist() == [-2, 2, 3]
    assert operations_of(tmp_path / "model.onnx") == ["Div"]


@pytest.mark.parametrize("word", ["Mod", "Rem"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_remainders_of_floats(word: str, dtype: str, tmp_path: Path) -> None:
    a = np.array([7.5, -7.5, 0.0, -0.0, np.inf, np.nan, 3, 1e30], dtype)
    b = np.array([2.0, -2.0, 0.75, 0.0, np.inf, -np.inf, np.nan], dtype)
    module, inputs = of("BinOp", a[:, None], b, op=word)
    # `Where` of onnxruntime loses the sign of zeros.
    assert_close(run(module, inputs, tmp_path), evaluate(module, inputs))


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u32", "i64"])
@pytest.mark.parametrize("word", ["ShiftLeft", "ShiftRight"])
def test_shifts_beyond_the_width(word: str, dtype: str, tmp_path: Path) -> None:
    ends = np.iinfo(GRAPH_TYPES[dtype].dtype)
    a = np.array([ends.min, ends.max, 1, 5, 77], GRAPH_TYPES[dtype].dtype)
    agrees(tmp_path, "BinOp", a[:, None], np.array([0, 1, 7, 8, 31, 32, 63, 64, 100]).astype(
        GRAPH_TYPES[dtype].dtype), op=word)  # fmt: skip


@pytest.mark.parametrize("dtype", ["i8", "u16", "i64"])
def test_an_integer_power_with_known_exponents_wraps(dtype: str, tmp_path: Path) -> None:
    builder = Builder()
    x = builder.input("x", dtype, (4,))
    exponents = builder.constant(np.array([[0], [1], [5], [11]]), dtype)
    module = builder.module(builder.add("BinOp", x, exponents, op="Pow"))
    inputs = {"x": np.array([0, 2, 3, 99]).astype(GRAPH_TYPES[dtype].dtype)}
    assert_close(run(module, inputs, tmp_path), evaluate(module, inputs))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("to", list(GRAPH_TYPES))
@pytest.mark.parametrize("source", ["f32", "f64", "i64", "u32", "i8"])
def test_casts_at_the_ends(source: str, to: str, saturate: bool, tmp_path: Path) -> None:
    if source == "f32":
        x: Array = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 2.5, -2.5, 0.25, 127.5, -0.0,
                             2.0**31, -(2.0**31), 2.0**63, 6e4, 65520, 464, 449], "f4")  # fmt: skip
    elif source == "f64":
        x = np.array([np.nan, np.inf, -np.inf, 1e300, 2.0**63, -(2.0**63), 2.0**32 - 1, -0.5, 7])
    else:
        ends = np.iinfo(GRAPH_TYPES[source].dtype)
        x = np.array([ends.min, ends.max, 0, 1, 100], GRAPH_TYPES[source].dtype)
    if to == "f8e5m2" and not saturate and source[0] == "f":
        x = x[~(np.abs(x) > GRAPH_TYPES[to].highest)]  # onnxruntime has NaN there, not infinity
    module, inputs = of("Cast", x, to=to, saturate=saturate)
    module = plain(module)
    assert_close(run(module, inputs, tmp_path), evaluate(module, inputs))


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u32", "i64"])
@pytest.mark.parametrize("word", ["Max", "Min", "Prod", "SumSquare", "L1", "Sum", "Mean"])
def test_reductions_of_integers_wrap(word: str, dtype: str, tmp_path: Path) -> None:
    ends = np.iinfo(GRAPH_TYPES[dtype].dtype)
    x = np.random.default_rng(1).integers(ends.min, ends.max, (3, 5, 2), GRAPH_TYPES[dtype].dtype,
                                          endpoint=True)  # fmt: skip
    x[0] = ends.max
    for axes in ((), (1,), (0, 2)):
        if word in ("Sum", "Mean"):
            agrees(tmp_path, word, x, axes=axes)
        else:
            agrees(tmp_path, "Reduce", x, axes=axes, op=word)


def test_the_halves_of_long_integers_are_compared_as_one(tmp_path: Path) -> None:
    x = np.array([3_000_000_000, 0, 5, -3_000_000_000, 2**40 + 2**31, 2**40])
    for word in ("Min", "Max"):
        agrees(tmp_path, "BinOp", x, x[::-1].copy(), op=word)
        agrees(tmp_path, "Reduce", x, op=word, axes=(0,))
    agrees(tmp_path, "Clip", x, min=0, max=2_500_000_000)
    agrees(tmp_path, "Unary", x, op="Sign")
    agrees(tmp_path, "ReluNan", x)
    agrees(tmp_path, "ArgMax", x, axis=0)
    agrees(tmp_path, "TopKValues", x, axis=0, k=3)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads_cut_and_surround(mode: str, tmp_path: Path) -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    for pads in ((1, -1, 2, 1), (-2, 0, 1, 2), (0, 3, 0, -1)):
        agrees(tmp_path, "Pad", x, pads=pads, mode=mode, value=7.0)
    if mode == "wrap":
        agrees(tmp_path, "Pad", x, pads=(9, 0, 0, 13), mode=mode)


@pytest.mark.parametrize("opcode", ["MaxPool", "AvgPool", "LpPool"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_windows_in_padding(opcode: str, layout: str, tmp_path: Path) -> None:
    x = np.random.default_rng(2).normal(0, 1, (1, 7, 5, 3)).astype(np.float32)
    plans: list[dict[str, Loose]] = [
        {"kernel": (2, 2), "pads": (2, 0, 2, 0), "strides": (2, 1)},
        {"kernel": (3, 2), "pads": (1, 1, 1, 1), "strides": (2, 3), "ceil": True},
        {"kernel": (2, 1), "dilations": (3, 1), "pads": (1, 0, 1, 0)},
    ]
    for plan in plans:
        agrees(tmp_path, opcode, x, layout=layout, part=1e-6, **plan)
        if opcode == "AvgPool":
            agrees(tmp_path, opcode, x, layout=layout, part=1e-6, count_pad=True, **plan)


def test_a_query_that_sees_nothing_gives_zeros(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    q, k, v = (random.normal(0, 1, (2, 3, 4)).astype(np.float32) for _ in range(3))
    mask = np.array([[True, False, True], [False, False, False], [True, True, True]])
    module, inputs = of("Attention", q, k, v, mask)
    found = run(module, inputs, tmp_path)[0]
    assert (found[:, 1] == 0).all()
    assert_close([found], evaluate(module, inputs), 8, 1e-6)


def test_einsum_stretches_and_hides_axes(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-9, 9, shape) for shape in ((2, 1, 3, 4), (4, 1)))
    agrees(tmp_path, "Einsum", a, b, equation="...ij,jk->...ik")
    agrees(tmp_path, "Einsum", a, np.ones((5, 1, 1), np.int64), equation="abij,bij->ia")
    agrees(tmp_path, "Einsum", np.arange(9).reshape(3, 3), equation="ii")


@pytest.mark.parametrize("to", ["i8", "u8", "i16", "i32", "i4", "f8e4m3"])
@pytest.mark.parametrize("source", ["f4", "f8", "f2"])
def test_quantize_rounds_and_stops(source: str, to: str, tmp_path: Path) -> None:
    x = np.array([[0.25, 0.75, 1.25, -1e4, 1e4, 3.3]], source)
    module, inputs = of("Quantize", x, np.array([0.5, 0.5, 0.5, 2, 2, 0.1], source), to=to, axis=1)
    module = plain(module)
    assert_close(run(module, inputs, tmp_path), evaluate(module, inputs))


@pytest.mark.parametrize("types", ["i8 i8 i8", "u8 i8 u8", "u8 u8 u8", "i8 i8 i16", "i16 i8 i8",
                                   "u8 u8 i32"])  # fmt: skip
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_fused_products_have_the_same_bits(types: str, layout: str, tmp_path: Path) -> None:
    if types == "u8 i8 u8":
        skip_where_they_saturate()
    random = np.random.default_rng(5)
    x_type, w_type, to = (GRAPH_TYPES[name] for name in types.split())

    def drawn(element: ElementType, *shape: int) -> Array:
        low, high = max(int(element.lowest), -128), min(int(element.highest), 255)
        return random.integers(low, high, shape).astype(element.dtype)

    x = drawn(x_type, 2, 6, 5, 4) if layout == "NCHW" else drawn(x_type, 2, 5, 4, 6)
    w = drawn(w_type, 4, 3, 3, 2) if layout == "NCHW" else drawn(w_type, 3, 2, 3, 4)
    bias = random.integers(-999, 999, 4).astype(np.int32)
    zero = 0 if to.kind == "signed" else 100
    scales: dict[str, Loose] = {
        "x_scale": 0.013,
        "x_zero": 3,
        "y_scale": 0.7,
        "y_zero": zero,
        "to": to.name,
    }
    for w_scales, w_zeros in (((0.02,), ()), ((0.02, 0.01, 0.5, 0.07), (1, 2, 3, 4))):
        given: dict[str, Loose] = {**scales, "w_scales": w_scales, "w_zeros": w_zeros}
        agrees(tmp_path, "QConv", x, w, bias, layout=layout, groups=2, pads=(1, 0, 0, 1), **given)
        rows, columns = drawn(x_type, 3, 2, 7), drawn(w_type, 4, 7)
        agrees(tmp_path, "QLinear", rows, columns, bias, **given)
        agrees(tmp_path, "QLinear", rows, columns, **given)


@pytest.mark.parametrize("op", ["Max", "Avg"])
@pytest.mark.parametrize("y_scale", [0.5, 0.3])
@pytest.mark.parametrize("count_pad", [False, True])
def test_fused_pools_have_the_same_bits(
    op: str, y_scale: float, count_pad: bool, tmp_path: Path
) -> None:
    x = np.random.default_rng(6).integers(-128, 128, (1, 2, 7, 5)).astype(np.int8)
    for layout, to in (("NCHW", "i8"), ("NHWC", "u8"), ("NCHW", "i32")):
        agrees(tmp_path, "QPool", x, op=op, kernel=(3, 2), strides=(2, 2), pads=(1, 1, 1, 0),
               layout=layout, count_pad=count_pad, x_scale=0.5, x_zero=-3, y_scale=y_scale,
               y_zero=-3 if to != "u8" else 9, to=to, ceil=True)  # fmt: skip


def test_a_mean_of_many_reals_is_refused(tmp_path: Path) -> None:
    x = np.zeros((1, 1, 9, 9), np.int8)
    module, inputs = of("QPool", x, op="Avg", kernel=(9, 9), x_scale=0.5, y_scale=0.3, to="i8")
    _, reasons = attempt(module, inputs, tmp_path)
    assert len(reasons) == 1
    assert "a mean of more than 64 reals" in reasons[0]


_PLANE = np.arange(2 * 5 * 9, dtype=np.float32).reshape(1, 2, 5, 9)
_COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric",
                "align_corners")  # fmt: skip


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinate", _COORDINATES)
def test_neighbours_are_ours_where_f32_has_others(
    coordinate: str, rounding: str, tmp_path: Path
) -> None:
    """From 5 to 18 and from 9 to 21 coordinates are nearly whole, from 9 to 18 nearly halves."""
    for sizes in ((1, 2, 18, 21), (1, 2, 3, 18), (1, 2, 21, 3), (1, 2, 3, 13)):
        given: Loose = {"sizes": sizes, "coordinate": coordinate, "rounding": rounding}
        agrees(tmp_path, "Resize", _PLANE, mode="nearest", **given)


def test_neighbours_by_whole_factors_stay_one_resize(tmp_path: Path) -> None:
    for coordinate in _COORDINATES:
        agrees(tmp_path, "Resize", _PLANE, mode="nearest", sizes=(1, 2, 10, 27),
               coordinate=coordinate)  # fmt: skip
        assert operations_of(tmp_path / "model.onnx") == ["Resize"]


@pytest.mark.parametrize(
    ("mode", "antialias"), [("nearest", False), ("linear", False), ("linear", True)]
)
def test_a_scale_that_keeps_a_size_is_no_copy(mode: str, antialias: bool, tmp_path: Path) -> None:
    scale = float(np.float32(1.1))
    for sizes, scales in (((5, 9), (scale, scale)), ((5, 18), (scale, 2.0))):
        given: Loose = {
            "sizes": (1, 2, *sizes),
            "scales": (1.0, 1.0, *scales),
            "antialias": antialias,
        }
        agrees(tmp_path, "Resize", _PLANE, mode=mode, part=1e-5, **given)


def test_a_scale_that_f32_rounds_up_to_the_next_size(tmp_path: Path) -> None:
    """10 times 2.3 of f32 is below 23, but 23 when the product is one of f32."""
    x, scale = np.arange(20, dtype=np.float32).reshape(1, 1, 2, 10), float(np.float32(2.3))
    given: Loose = {"sizes": (1, 1, 4, 22), "scales": (1.0, 1.0, 2.0, scale)}
    agrees(tmp_path, "Resize", x, mode="linear", part=1e-5, **given)
