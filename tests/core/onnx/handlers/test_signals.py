"""Fourier transforms against NumPy and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.hints import text_for_reader
from nacre.core.onnx.findings import BIND
from tests.core.onnx.single import Array, assert_agrees, by_nacre, single


def _signal(seed: int, *dims: int) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def _parts(values: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1)


@given(
    st.integers(0, 1 << 16),
    st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 4)),
    st.sampled_from([1, 2]),
    st.integers(0, 2),
    st.sampled_from([None, 1, 4, 8, 11]),
    st.booleans(),
    st.sampled_from([17, 20]),
)
def test_dft(
    seed: int,
    dims: tuple[int, int, int],
    parts: int,
    axis: int,
    length: int | None,
    is_inverse: bool,
    opset: int,
) -> None:
    x = _signal(seed, *dims, parts)
    count = None if length is None else np.array(length)
    given_: dict[str, Any] = {"inverse": int(is_inverse), "onesided": int(parts == 1)}
    given_["onesided"] *= not is_inverse
    inputs: list[Array | None] = [x, count]
    if opset < 20:
        given_["axis"] = axis
    else:
        inputs.append(np.array(axis))
    (found,) = by_nacre(single("DFT", inputs, opset, **given_), inputs, (1, 2))
    values = x[..., 0].astype(complex) if parts == 1 else x[..., 0] + 1j * x[..., 1]
    transform = np.fft.ifft if is_inverse else np.fft.fft
    expected = transform(values, n=length, axis=axis)
    if given_["onesided"]:
        expected = np.fft.rfft(x[..., 0], n=length, axis=axis)
    np.testing.assert_allclose(found, _parts(expected), 1e-4, 1e-4)


@given(st.integers(0, 1 << 16), st.integers(2, 6), st.sampled_from([None, 4, 7]))
def test_a_real_signal_comes_back_from_half_of_its_spectrum(
    seed: int, size: int, length: int | None
) -> None:
    x = _signal(seed, 2, size, 2)
    inputs = [x, None if length is None else np.array(length)]
    (found,) = by_nacre(single("DFT", inputs, 17, inverse=1, onesided=1), inputs, (1,))
    expected = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=1)
    np.testing.assert_allclose(found[..., 0], expected, 1e-4, 1e-4)


@given(
    st.integers(0, 1 << 16),
    st.integers(8, 30),
    st.integers(1, 5),
    st.sampled_from([3, 4, 8]),
    st.booleans(),
    st.booleans(),
)
def test_stft(
    seed: int, size: int, step: int, length: int, has_window: bool, is_half: bool
) -> None:
    window = _signal(seed + 1, length) if has_window else None
    inputs = [_signal(seed, 2, size, 1), np.array(step), window, np.array(length)]
    assert_agrees("STFT", inputs, 17, (1, 3), onesided=int(is_half), tolerance=1e-4)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_of_a_known_size(op: str, periodic: int) -> None:
    assert_agrees(op, [np.array(9, np.int32)], 17, (0,), periodic=periodic)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_of_a_size_that_is_computed_are_refused(op: str) -> None:
    inputs = [np.array(9, np.int32)]
    with pytest.raises(InputError, match="depends on elements that are computed") as told:
        by_nacre(single(op, inputs, 17), inputs)
    assert told.value.diagnostics[0].help == text_for_reader(BIND)


@pytest.mark.parametrize(
    ("x", "given_", "told"),
    [
        (np.zeros((1, 4, 3), np.float32), {}, "the last axis has 3 entries"),
        (np.zeros((1, 4, 1), np.float32), {"axis": 2}, "the last holds the parts"),
        (np.zeros((1, 9000, 1), np.float32), {}, "too long for a matrix"),
    ],
)
def test_what_is_not_transformed(x: Array, given_: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        by_nacre(single("DFT", [x], 17, **given_), [x])
