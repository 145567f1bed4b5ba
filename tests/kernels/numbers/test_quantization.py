from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Array, Quantization
from nacre.kernels.numbers.quantization import dequantizer, per_tensor, quantizer
from tests.kernels.oracle_elementwise import INTEGERS, bounds, onnx_result, type_of

ONNX_TYPES = ("i8", "u8", "i16", "u16")
scales = st.floats(2.0**-20, 2.0**20, width=32)


@st.composite
def quantized(draw: st.DrawFn) -> tuple[str, Quantization, int]:
    elem = draw(st.sampled_from(INTEGERS))
    low, high = (max(min(end, 2**31 - 1), -(2**31)) for end in bounds(elem))
    group, size = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    count = -(-size // group)
    scale = draw(st.lists(scales, min_size=count, max_size=count))
    zero = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    pairs = np.array(scale, np.float32), np.array(zero, np.int32)
    return elem, Quantization(*pairs, 1, group), size


@given(quantized(), st.data())
def test_dequantisation_is_the_exact_difference_times_the_scale(
    case: tuple[str, Quantization, int], data: st.DataObject
) -> None:
    elem, quant, size = case
    row = data.draw(st.lists(st.integers(*bounds(elem)), min_size=size, max_size=size))
    type_ = type_of(elem, (1, size), quant)
    found = dequantizer(type_)(np.array([row]).astype(type_.dtype))[0]
    for place, stored in enumerate(row):
        pair = place // quant.group_size
        exact = np.float32(stored - int(quant.zero_point[pair]))
        assert found[place] == exact * quant.scale[pair]


@given(quantized(), st.data())
def test_quantisation_rounds_to_even_moves_and_saturates(
    case: tuple[str, Quantization, int], data: st.DataObject
) -> None:
    elem, quant, size = case
    (low, high), number = bounds(elem), st.floats(width=32)
    row = data.draw(st.lists(number, min_size=size, max_size=size))
    found = quantizer(type_of(elem, (1, size), quant))(np.array([row], np.float32))[0]
    for place, real in enumerate(row):
        pair = place // quant.group_size
        zero = int(quant.zero_point[pair])
        with np.errstate(over="ignore"):
            steps = float(np.rint(np.float32(real) / quant.scale[pair]))
        if math.isnan(steps):
            assert found[place] == zero
        elif math.isinf(steps):
            assert found[place] == (high if steps > 0 else low)
        else:
            assert found[place] == min(max(int(steps) + zero, low), high)


@pytest.mark.parametrize("elem", ONNX_TYPES)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_both_ways_are_bit_for_bit_those_of_onnxruntime(elem: str, axis: int | None) -> None:
    rng = np.random.default_rng(7)
    count = 1 if axis is None else (5, 400)[axis]
    low, high = bounds(elem)
    dtype = type_of(elem, (1,)).dtype
    scale = rng.uniform(0.001, 0.3, count).astype(np.float32)
    zero = rng.integers(low, high, count, endpoint=True).astype(np.int32)
    type_ = type_of(elem, (5, 400), Quantization(scale, zero, axis))
    values = (rng.standard_normal((5, 400)) * scale.mean() * high).astype(np.float32)
    values[0, :40] = (np.arange(40) - 20.5) * scale[0]  # ties
    values[1, :2] = np.inf, -np.inf
    pair: list[Array] = [scale, zero.astype(dtype)]
    if axis is None:
        pair = [part.reshape(()) for part in pair]
    extra = {} if axis is None else {"axis": axis}
    stored = quantizer(type_)(values)
    expected = onnx_result("QuantizeLinear", [values, *pair], str(dtype), **extra)
    # A limited f32 is an integer of 32 bits only up to 2^31: ONNX leaves infinities open.
    np.testing.assert_array_equal(stored[2:], expected[2:])
    np.testing.assert_array_equal(stored[0], expected[0])
    assert stored[1, :2].tolist() == [high, low]
    reals = onnx_result("DequantizeLinear", [stored, *pair], "float32", **extra)
    np.testing.assert_array_equal(dequantizer(type_)(stored), reals)


def test_a_tensor_without_quantisation_is_refused() -> None:
    with pytest.raises(ValueError, match="carries no quantisation"):
        quantizer(type_of("i8", (2,)))


def test_halves_of_a_step_go_to_the_even_integer() -> None:
    type_ = type_of("i8", (6,), per_tensor(1.0, 1))
    values = np.array([-1.5, -0.5, 0.5, 1.5, 2.5, np.nan], np.float32)
    assert quantizer(type_)(values).tolist() == [-1, 1, 1, 3, 3, 1]


def test_a_tensor_of_rank_0_is_quantised_like_any_other() -> None:
    stored = quantizer(type_of("i8", (), per_tensor(0.5, 1)))(np.array(2.25, np.float32))
    assert (stored.shape, int(stored)) == ((), 5)
