"""Fourier transforms and complex numbers, beside PyTorch.

Tolerances: 2e-6 of the largest element in f32, 1e-13 in f64, since both sum in other orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nacre.base.diagnostics import InputError  # noqa: E402 - where PyTorch is
from tests.nac.operations.torch_calls import compared, model_of  # noqa: E402

Loose = Any
ULPS = {"float32": 2e-6, "float64": 1e-13}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(5)


def check(call: str, *args: Loose, **named: Loose) -> None:
    for found, expected in compared(call, *args, **named):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        scale = float(np.abs(expected).max(initial=1.0))
        tolerance = ULPS.get(str(expected.dtype), 0.0) * scale
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def real(*shape: int, dtype: Loose = None) -> Loose:
    return torch.randn(*shape, dtype=dtype or torch.float32)


def complex_(*shape: int, dtype: Loose = None) -> Loose:
    return torch.randn(*shape, dtype=dtype or torch.complex64)


ONE = ["fft", "ifft", "hfft", "irfft"]


@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
@pytest.mark.parametrize("kind", [*ONE, "rfft", "ihfft"])
def test_one_axis(kind: str, norm: str | None) -> None:
    given = complex_(3, 7, 4) if kind in ONE else real(3, 7, 4)
    for n, dim in ((None, -1), (5, 1), (9, 1), (1, 0)):
        if not (kind in ("hfft", "irfft") and n == 1):
            check(f"fft_{kind}.default", given, n, dim, norm)


@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_several_axes(kind: str) -> None:
    given = real(3, 6, 5) if kind == "rfft" else complex_(3, 6, 5)
    check(f"fft_{kind}2.default", given)
    check(f"fft_{kind}2.default", given, [4, 7], [0, 1], "ortho")
    check(f"fft_{kind}n.default", given)
    check(f"fft_{kind}n.default", given, None, [2, 0], "forward")
    check(f"fft_{kind}n.default", given, [4, 8])


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_other_types(dtype: Loose) -> None:
    given = torch.arange(12).reshape(3, 4).to(dtype)
    check("fft_fft.default", given)
    check("fft_rfft.default", given, 6)
    if dtype == torch.float64:
        check("fft_irfft.default", complex_(3, 4, dtype=torch.complex128))


@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_what_pytorch_writes_them_by(normalization: int) -> None:
    check("_fft_c2c.default", complex_(3, 4, 5), [1, 2], normalization, True)
    check("_fft_c2c.default", complex_(3, 4, 5), [0], normalization, False)
    check("_fft_r2c.default", real(3, 4, 5), [1, 2], normalization, True)
    check("_fft_r2c.default", real(3, 4, 5), [2], normalization, False)
    check("_fft_c2r.default", complex_(3, 4, 5), [0, 2], normalization, 9)


@pytest.mark.parametrize("shape", [(40,), (2, 40)])
def test_short_time_transforms(shape: tuple[int, ...]) -> None:
    window = torch.hann_window(8)
    plain = (False, None, True)
    check("stft.default", real(*shape), 8, None, None, window, *plain)
    check("stft.default", real(*shape), 12, 5, 8, window, True, False, True)
    check("stft.default", real(*shape), 9, 3, None, None, False, None, False)
    check("stft.default", complex_(*shape), 8, 3, None, window, False, None, True)
    check("stft.center", real(*shape), 8, 3, None, window, True, "reflect", *plain)
    check("stft.center", real(*shape), 8, 3, 6, torch.hann_window(6), True, "constant", *plain)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_short_time_transforms_inverted(center: bool, normalized: bool) -> None:
    window = torch.hamming_window(8)
    signal = real(2, 40)
    given = (8, 2, 8, window)
    spectra = torch.stft(signal, *given, center=center, normalized=normalized, return_complex=True)
    for length in (None, 30, 45 if center else 40):
        check("istft.default", spectra, *given, center, normalized, None, length)
    whole = torch.stft(
        signal, *given, center=center, normalized=normalized, onesided=False, return_complex=True
    )
    check("istft.default", whole, *given, center, normalized, False, None, True)


UNARY = [
    "real", "imag", "abs", "angle", "neg", "exp", "sqrt", "log", "square", "reciprocal",
    "conj_physical", "_conj", "sgn",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_complex_numbers_one_by_one(name: str) -> None:
    check(f"{name}.default", complex_(3, 4))


def test_angles_and_signs_of_real_numbers() -> None:
    check("angle.default", torch.tensor([-1.5, 0.0, 2.0]))


@pytest.mark.parametrize("name", ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"])
def test_complex_numbers_by_two(name: str) -> None:
    check(name, complex_(3, 1, 4), complex_(2, 4))
    check(name, complex_(3, 4), real(4))
    check(name, real(3, 4), complex_(3, 4))
    check(name, complex_(3, 4), torch.arange(1, 5))
    check(name, complex_(3, 4), real(4, dtype=torch.float64))
    if name[:3] in ("add", "sub"):
        check(name, complex_(3, 4), complex_(3, 4), alpha=2)
    check(name.replace("Tensor", "Scalar"), complex_(3, 4), 1.5)


VIEWS: list[tuple[str, Callable[[], tuple[Loose, ...]]]] = [
    ("view.default", lambda: (complex_(3, 4), [2, -1])),
    ("reshape.default", lambda: (complex_(3, 4), [12])),
    ("permute.default", lambda: (complex_(3, 4, 2), [2, 0, 1])),
    ("transpose.int", lambda: (complex_(3, 4, 2), -1, 0)),
    ("unsqueeze.default", lambda: (complex_(3, 4), -1)),
    ("squeeze.dims", lambda: (complex_(1, 4, 1), [0, 2])),
    ("squeeze.dim", lambda: (complex_(1, 4, 1), 1)),
    ("expand.default", lambda: (complex_(1, 4), [2, 3, -1])),
    ("slice.Tensor", lambda: (complex_(5, 4), 0, 1, 9, 2)),
    ("select.int", lambda: (complex_(5, 4), -1, -2)),
    ("flip.default", lambda: (complex_(5, 4), [0, 1])),
    ("roll.default", lambda: (complex_(5, 4), [2, -1], [0, 1])),
    ("roll.default", lambda: (complex_(5, 4), [3])),
    ("cat.default", lambda: ([complex_(2, 4), complex_(3, 4)], 0)),
    ("constant_pad_nd.default", lambda: (complex_(2, 4), [1, 2, 0, 1], 0)),
    ("clone.default", lambda: (complex_(2, 4),)),
    ("sum.dim_IntList", lambda: (complex_(2, 4, 3), [0, 2], True)),
    ("mean.dim", lambda: (complex_(2, 4, 3), [1])),
    ("matmul.default", lambda: (complex_(2, 4, 3), complex_(3, 5))),
    ("matmul.default", lambda: (complex_(4), complex_(4))),
    ("bmm.default", lambda: (complex_(2, 4, 3), complex_(2, 3, 5))),
    ("_to_copy.default", lambda: (complex_(2, 4),)),
    ("complex.default", lambda: (real(2, 4), real(4))),
    ("polar.default", lambda: (real(2, 4).abs(), real(2, 4))),
    ("pow.Tensor_Scalar", lambda: (complex_(2, 4), 2)),
]


@pytest.mark.parametrize(("call", "make"), VIEWS)
def test_complex_numbers_moved_and_summed(call: str, make: Callable[[], tuple[Loose, ...]]) -> None:
    check(call, *make())


def test_types_become_complex_and_real() -> None:
    check("_to_copy.default", complex_(2, 3), dtype=torch.complex128)


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("fft_fft.default", (real(3), 0)),
        ("fft_fft.default", (real(3), None, 2)),
        ("fft_rfft.default", (complex_(3),)),
        ("fft_fftn.default", (real(3, 3), None, [0, 0])),
        ("stft.default", (real(3), 8, None, None, None, False, None, True)),
        ("view_as_complex.default", (real(3, 3),)),
        ("view_as_real.default", (real(3, 3),)),
        ("cumsum.default", (complex_(3), 0)),
    ],
)
def test_what_makes_no_sense_is_a_finding(call: str, args: tuple[Loose, ...]) -> None:
    model, feeds = model_of(call, args, {}, [False])
    with pytest.raises(InputError) as refused:
        model.run(feeds)
    assert refused.value.diagnostics[0].code == "NAC47"
