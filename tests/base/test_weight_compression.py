"""Compressed elements: against naive loops that share no code, and there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.compression_forms import CompressionForm, size_bounds
from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.weight_compression import BrokenCompressionError, compress, decompress
from tests.base.naive_compression import naive_decompress

SPARSE = CompressionForm("sparse")


def packed(codes: list[int], bits: int) -> np.ndarray:
    """Numbers of so many bits as memory holds them."""
    whole = sum(code << (i * bits) for i, code in enumerate(codes))
    size = (len(codes) * bits + 7) // 8
    return np.frombuffer(whole.to_bytes(size, "little"), np.uint8)


@st.composite
def compressible(draw: st.DrawFn) -> tuple[list[int], int, CompressionForm]:
    bits = draw(st.sampled_from([4, 8, 16, 32]))
    if draw(st.booleans()):
        codes = st.one_of(st.just(0), st.integers(0, (1 << bits) - 1))
        return draw(st.lists(codes, min_size=1, max_size=70)), bits, SPARSE
    form = CompressionForm("palette", draw(st.integers(1, 8)), draw(st.integers(1, 3)))
    size = draw(st.integers(1, 25))
    elements: list[int] = []
    for _ in range(form.tables):
        some = st.lists(st.integers(0, (1 << bits) - 1), min_size=1, max_size=1 << form.bits)
        known = draw(some.map(lambda found: found[:16]))
        elements += draw(st.lists(st.sampled_from(known), min_size=size, max_size=size))
    return elements, bits, form


@given(compressible())
def test_elements_come_back_and_are_what_naive_loops_read(
    case: tuple[list[int], int, CompressionForm],
) -> None:
    codes, bits, form = case
    plain = packed(codes, bits)
    made = compress(plain, len(codes), bits, form)
    assert made is not None
    least, most = size_bounds(form, len(codes), bits)
    assert least <= made.size <= most
    back, used = decompress(made, len(codes), bits, form)
    assert back.tobytes() == plain.tobytes()
    assert used == made.size
    assert naive_decompress(made.tobytes(), len(codes), bits, form) == codes
    behind = np.concatenate([made, np.full(3, 0xAB, np.uint8)])
    assert decompress(behind, len(codes), bits, form)[1] == used


@given(
    st.binary(max_size=40),
    st.integers(1, 60),
    st.sampled_from([4, 8, 16, 32]),
    st.one_of(
        st.just(SPARSE),
        st.builds(CompressionForm, st.just("palette"), st.integers(1, 3), st.just(1)),
    ),
)
def test_bytes_of_strangers_are_elements_or_refused(
    data: bytes, count: int, bits: int, form: CompressionForm
) -> None:
    given_bytes = np.frombuffer(data, np.uint8)
    expected = naive_decompress(data, count, bits, form)
    if expected is None:
        with pytest.raises(BrokenCompressionError):
            decompress(given_bytes, count, bits, form)
    else:
        plain, _ = decompress(given_bytes, count, bits, form)
        assert plain.tobytes() == packed(expected, bits).tobytes()


def test_every_element_type_of_the_language_is_kept_bit_for_bit() -> None:
    generator = np.random.default_rng(1)
    for element in ELEMENT_TYPES.values():
        plain = generator.integers(0, 256, bytes_needed(33, element), np.uint8)
        plain[: plain.size // 2] = 0
        if element.bits == 4:
            plain[-1] &= 0xF  # the spare half
        made = compress(plain, 33, element.bits, SPARSE)
        assert made is not None
        assert decompress(made, 33, element.bits, SPARSE)[0].tobytes() == plain.tobytes()


def test_minus_zero_is_no_zero() -> None:
    plain = np.array([0.0, -0.0], np.float16)
    made = compress(plain.view(np.uint8), 2, 16, SPARSE)
    assert made is not None
    assert made.tobytes() == b"\x02\x00\x80"


def test_a_palette_that_is_too_small_is_none() -> None:
    plain = np.arange(6, dtype=np.uint8)
    assert compress(plain, 6, 8, CompressionForm("palette", 2)) is None
    assert compress(plain, 6, 8, CompressionForm("palette", 2, 4)) is None  # no parts of one size
    two = compress(plain, 6, 8, CompressionForm("palette", 2, 2))
    assert two is not None
    # Two tables of four, then the places 0 1 2 0 1 2.
    assert two.tobytes() == bytes([0, 1, 2, 0, 3, 4, 5, 0, 0b00100100, 0b1001])
