"""A row gives the same bits in every tile, layout and language."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Array, Call, TensorType
from nacre.kernels.reductions.reductions import float_sum
from nacre.kernels.registry import PRIMITIVES

pytestmark = pytest.mark.fuzz
# An opcode, the operation that means the same, how many parameters it takes.
PAIRS = [
    ("softmax", "core.Softmax", 0),
    ("log_softmax", "core.LogSoftmax", 0),
    ("layernorm", "core.LayerNorm", 2),
    ("rmsnorm", "core.RmsNorm", 1),
]
SIZES = (1, 2, 7, 16, 17, 33, 64, 100, 197, 385)
elems = st.sampled_from(["f16", "bf16", "f32"])
sizes, rows = st.sampled_from(SIZES), st.integers(1, 40)
seeds = st.integers(0, 2**32 - 1)


def drawn(elem: str, shape: tuple[int, ...], seed: int) -> Array:
    """Numbers of several magnitudes: rows near 0, large ones, hidden elements."""
    random = np.random.default_rng(seed)
    spread = random.choice([0.1, 1.0, 30.0, 300.0], (*shape[:-1], 1))
    values = random.standard_normal(shape) * spread
    values[random.random(shape) < 0.02] = -1e4
    result: Array = values.astype(GRAPH_TYPES[elem].dtype)
    return result


def bound(name: str, arrays: list[Array], elem: str, **attributes: object) -> Array:
    type_ = GRAPH_TYPES[elem]
    types = tuple(TensorType(type_, array.shape) for array in arrays)
    out = np.zeros(arrays[0].shape, type_.dtype)
    call = Call(types, (TensorType(type_, out.shape),), {"epsilon": 1e-5, **attributes})
    assert PRIMITIVES[name].bind(call)(arrays, [out]) is None
    return out


def same_bits(a: Array, b: Array) -> bool:
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return bool(np.array_equal(a.view(bits), b.view(bits)))


@pytest.mark.parametrize(("opcode", "operation", "count"), PAIRS)
@given(elems, sizes, rows, seeds)
def test_graphs_and_plans_have_the_same_bits(
    opcode: str, operation: str, count: int, elem: str, size: int, rows: int, seed: int
) -> None:
    x = drawn(elem, (rows, size), seed)
    given = [drawn(elem, (size,), seed + at + 1) for at in range(count)]
    found = bound(opcode, [x, *given], elem, axis=1)
    assert same_bits(found, bound(operation, [x, *given], elem, axis=1))


@pytest.mark.parametrize("names", PAIRS)
@given(elems, sizes, rows, st.integers(0, 40), seeds)
def test_any_split_of_rows_gives_the_same_bits(
    names: tuple[str, str, int], elem: str, size: int, rows: int, cut: int, seed: int
) -> None:
    x = drawn(elem, (rows, size), seed)
    given = [drawn(elem, (size,), seed + at + 1) for at in range(names[2])]
    whole = bound(names[0], [x, *given], elem, axis=1)
    for part in (slice(0, cut), slice(cut, None)):
        if len(x[part]):
            assert same_bits(bound(names[1], [x[part], *given], elem, axis=1), whole[part])


@pytest.mark.parametrize("names", PAIRS)
@given(elems, sizes, st.integers(1, 5), st.integers(1, 5), seeds)
def test_any_axis_and_layout_gives_the_same_bits(
    names: tuple[str, str, int], elem: str, size: int, before: int, behind: int, seed: int
) -> None:
    x = drawn(elem, (before, behind, size), seed)
    given = [drawn(elem, (size,), seed + at + 1) for at in range(names[2])]
    whole = bound(names[0], [x, *given], elem, axis=2)
    turned = x.transpose(0, 2, 1)
    for array in (turned, turned.copy()):
        found = bound(names[0], [array, *given], elem, axis=1)
        assert same_bits(found.transpose(0, 2, 1).copy(), whole)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    shifted = raw[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    assert same_bits(bound(names[0], [shifted, *given], elem, axis=2), whole)


@given(st.sampled_from(["f32", "f64"]), st.integers(1, 700), st.integers(0, 5), seeds)
@example("f32", 3136, 3, 1)
@example("f32", 12544, 2, 1)
@example("f64", 8192, 2, 1)
@example("f32", 1024 + 5, 3, 1)
def test_a_sum_of_floats_follows_from_its_terms(elem: str, size: int, wide: int, seed: int) -> None:
    behind = (1, 3, 16, 64, 1024, 1500)[wide]
    x = np.random.default_rng(seed).standard_normal((2, size, behind))
    x = x.astype(GRAPH_TYPES[elem].dtype)
    whole = float_sum(x, (1,), is_ordered=False)
    for column in {0, behind // 2, behind - 1}:
        one = x[:, :, column : column + 1]
        assert same_bits(float_sum(one, (1,), False), whole[:, :, column : column + 1].copy())
        assert same_bits(float_sum(one[1:].copy(), (1,), False), whole[1:, :, column, None].copy())


@pytest.mark.parametrize("shape", [(3, 5), (9, 2000), (129, 700), (4096, 20), (200, 400)])
def test_a_sum_of_negative_zeros_is_zero(shape: tuple[int, int]) -> None:
    x = np.full(shape, -0.0, np.float32)
    for array, axis in ((x, 0), (np.ascontiguousarray(x.T), 1)):
        assert not np.signbit(float_sum(array, (axis,), is_ordered=False)).any()


@given(st.lists(st.integers(1, 40), min_size=2, max_size=2), st.integers(1, 6), seeds)
def test_a_mean_of_a_window_does_not_depend_on_the_tile(
    size: list[int], window: int, seed: int
) -> None:
    x = np.random.default_rng(seed).standard_normal((1, *size, 2)).astype(np.float32)
    kernel = (min(window, size[0]), min(window, size[1]))
    pads = (kernel[0] - 1, kernel[1] - 1) * 2
    window_of = {"kernel": kernel, "strides": (1, 1), "dilations": (), "pads": pads, "ceil": False}
    core = pooled("core.AvgPool", x, **window_of, layout="NHWC", count_pad=False)
    plan = pooled("avgpool", x, kernel_shape=kernel, strides=(1, 1), pads=pads)
    assert same_bits(core, plan)
    alone = pooled("avgpool", x[:, : kernel[0], : kernel[1]], kernel_shape=kernel,
                   strides=(1, 1), pads=(0, 0, 0, 0))  # fmt: skip
    inside = core[:, kernel[0] - 1 : kernel[0], kernel[1] - 1 : kernel[1]].copy()
    assert same_bits(alone, inside)


def pooled(name: str, x: Array, **attributes: object) -> Array:
    type_ = TensorType(GRAPH_TYPES["f32"], x.shape)
    shapes = PRIMITIVES[name].shape([x.shape], attributes)
    assert shapes is not None
    out = np.zeros(shapes[0], np.float32)
    call = Call((type_,), (TensorType(type_.elem, out.shape),), attributes)
    assert PRIMITIVES[name].bind(call)([x], [out]) is None
    return out


@pytest.mark.parametrize(("opcode", "operation"), [("sigmoid", "Sigmoid"), ("silu", "Silu")])
@given(seeds, st.sampled_from([-np.inf, np.nan, -88.0, -1e4]))
def test_an_element_does_not_depend_on_those_beside_it(
    opcode: str, operation: str, seed: int, beside: float
) -> None:
    x = (np.random.default_rng(seed).standard_normal(50) * 40).astype(np.float32)
    whole = bound(opcode, [np.append(x, np.float32(beside))], "f32")[:-1].copy()
    for at in range(0, 50, 7):
        assert same_bits(bound(opcode, [x[at : at + 1].copy()], "f32"), whole[at : at + 1])
    name, more = ("core.Unary", {"op": operation}) if operation == "Sigmoid" else ("core.Silu", {})
    assert same_bits(bound(name, [x], "f32", **more), whole)
