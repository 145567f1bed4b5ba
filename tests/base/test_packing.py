from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.packing import pack_i4, unpack_i4

NIBBLES = st.lists(st.integers(-8, 7), max_size=40)


def pack_by_hand(values: list[int]) -> list[int]:
    """Low nibble first, the spare one 0, written without any array arithmetic."""
    padded = values + [0] * (len(values) % 2)
    return [
        (low % 16) + 16 * (high % 16) for low, high in zip(padded[::2], padded[1::2], strict=True)
    ]


@given(NIBBLES)
def test_packing_agrees_with_packing_by_hand(values: list[int]) -> None:
    packed = pack_i4(values)
    assert packed.dtype == np.uint8
    assert packed.tolist() == pack_by_hand(values)
    assert packed.size == bytes_needed(len(values), ELEMENT_TYPES["i4"])


@given(NIBBLES)
def test_unpacking_gives_back_what_was_packed(values: list[int]) -> None:
    unpacked = unpack_i4(pack_i4(values), len(values))
    assert unpacked.dtype == np.int8
    assert unpacked.tolist() == values


@given(st.binary(max_size=40))
def test_packing_gives_back_what_was_unpacked(raw: bytes) -> None:
    packed = np.frombuffer(raw, np.uint8)
    np.testing.assert_array_equal(pack_i4(unpack_i4(packed, 2 * len(raw))), packed)


def test_an_odd_count_leaves_a_zero_in_the_spare_nibble() -> None:
    assert pack_i4([-1, -1, -1]).tolist() == [0xFF, 0x0F]
    assert unpack_i4(np.array([0xFF, 0xFF], np.uint8), 3).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, ml_dtypes.int4])
def test_any_shape_is_packed_in_memory_order(dtype: type) -> None:
    values: np.ndarray[tuple[int, ...], np.dtype[Any]] = np.array([[1, 2, 3], [-4, -5, -6]], dtype)
    assert pack_i4(values).tolist() == pack_by_hand([1, 2, 3, -4, -5, -6])
    assert pack_i4(values.T).tolist() == pack_by_hand([1, -4, 2, -5, 3, -6])


def test_ml_dtypes_unpacks_to_the_same_values() -> None:
    everything = np.arange(256, dtype=np.uint8)
    expected = np.stack([everything & 0xF, everything >> 4], axis=1).astype(ml_dtypes.uint4)
    signed = expected.astype(np.uint8).astype(ml_dtypes.int4).astype(np.int8).reshape(-1)
    np.testing.assert_array_equal(unpack_i4(everything, 512), signed)


@pytest.mark.parametrize("values", [[8], [0, -9], [7, -8, 300], np.array([2**64 - 1], np.uint64)])
def test_values_that_do_not_fit_are_refused_with_their_range(values: list[int]) -> None:
    low, high = int(min(values)), int(max(values))
    with pytest.raises(ValueError, match=rf"i4 holds -8\.\.7, found {low}\.\.{high}"):
        pack_i4(values)


@pytest.mark.parametrize("count", [-1, 5, 100])
def test_more_values_than_there_are_nibbles_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"2 bytes hold 4 i4 values, {count} asked for"):
        unpack_i4(np.zeros(2, np.uint8), count)


def test_nothing_packs_to_nothing() -> None:
    assert pack_i4([]).size == 0
    assert unpack_i4(np.zeros(0, np.uint8), 0).size == 0
