"""Linear algebra, beside PyTorch.

Tolerances: 2e-5 of the largest element in f32 and 1e-11 in f64, for matrices of small condition;
NumPy computes f32 in 64 bits, PyTorch does not. Factors that are unique up to signs are compared by
their products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nacre.base.diagnostics import InputError  # noqa: E402 - where PyTorch is
from nacre.core.values import Array  # noqa: E402
from tests.nac.operations.torch_calls import compared, model_of  # noqa: E402

Loose = Any
ULPS = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11}
DTYPES = [torch.float32, torch.float64, torch.complex64]
EVERY_TYPE = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(5)


def check(call: str, *args: Loose, count: int | None = None, **named: Loose) -> None:
    for found, expected in compared(call, *args, count=count, **named):
        assert_near(found, expected)


def assert_near(found: Array, expected: Array) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    scale = float(np.abs(expected).max(initial=1.0))
    tolerance = ULPS.get(str(expected.dtype), 0.0) * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def square(*shape: int, dtype: Loose = torch.float32) -> Loose:
    """Matrices that are far from singular."""
    return torch.randn(*shape, dtype=dtype) + 4 * torch.eye(shape[-1], dtype=dtype)


def definite(*shape: int, dtype: Loose = torch.float32) -> Loose:
    a = square(*shape, dtype=dtype)
    return a @ a.mH


@EVERY_TYPE
def test_determinants_and_inverses(dtype: Loose) -> None:
    a = square(2, 4, 4, dtype=dtype)
    for call in ("linalg_det.default", "linalg_inv.default", "inverse.default"):
        check(call, a)
    check("_linalg_det.default", a, count=1)
    check("linalg_slogdet.default", a)
    check("slogdet.default", a)
    check("_linalg_slogdet.default", a, count=2)
    check("linalg_inv_ex.default", a)
    for n in (-2, 0, 1, 5):
        check("linalg_matrix_power.default", a / 4, n)
    if not dtype.is_complex:
        check("logdet.default", definite(2, 3, 3, dtype=dtype))
        check("logdet.default", torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=dtype))


@EVERY_TYPE
def test_equations(dtype: Loose) -> None:
    a = square(2, 4, 4, dtype=dtype)
    b = torch.randn(2, 4, 3, dtype=dtype)
    check("linalg_solve.default", a, b)
    check("linalg_solve.default", a, b.mT.contiguous(), left=False)
    check("linalg_solve.default", a, torch.randn(2, 4, dtype=dtype))
    check("linalg_solve.default", a[0], torch.randn(4, dtype=dtype))
    check("linalg_solve_ex.default", a, b)
    check("_linalg_solve_ex.default", a, b, count=1)
    for upper in (True, False):
        check("linalg_solve_triangular.default", a, b, upper=upper)
        check(
            "linalg_solve_triangular.default", a, b.mT.contiguous(), upper=upper, left=False,
            unitriangular=True,
        )  # fmt: skip
        check("triangular_solve.default", b, a, upper, False, False)
        check("triangular_solve.default", b, a, upper, True, True)
        check("cholesky_solve.default", b, a, upper)


@EVERY_TYPE
def test_triangles_of_cholesky(dtype: Loose) -> None:
    a = definite(2, 4, 4, dtype=dtype)
    for upper in (True, False):
        check("linalg_cholesky.default", a, upper=upper)
        check("cholesky.default", a, upper)
        check("linalg_cholesky_ex.default", a, upper=upper)


@EVERY_TYPE
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 5)])
def test_orthogonal_factors(dtype: Loose, shape: tuple[int, ...]) -> None:
    a = torch.randn(*shape, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = (found for found, _ in compared("linalg_qr.default", a, mode))
        assert_near(_product(q, r, dtype), _as_array(a))
    if not dtype.is_complex:
        (pair,) = compared("linalg_qr.default", a, count=None)[1:]
        assert_near(np.abs(pair[0]), np.abs(pair[1]))


def _as_array(a: Loose) -> Array:
    found: Array = a.numpy()
    return found


def _plain(pairs: Array, dtype: Loose) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1] if dtype.is_complex else pairs


def _product(q: Array, r: Array, dtype: Loose) -> Array:
    made: Array = _plain(q, dtype) @ _plain(r, dtype)
    return made


@EVERY_TYPE
@pytest.mark.parametrize("full", [True, False])
def test_singular_values(dtype: Loose, full: bool) -> None:
    a = torch.randn(2, 5, 3, dtype=dtype)
    (u, wide), (s, values), (v, _) = compared("linalg_svd.default", a, full)
    assert u.shape == wide.shape
    assert_near(s, values)
    left, right = _plain(u, dtype)[..., :3], _plain(v, dtype)
    assert_near((left * s[..., None, :]) @ right, _as_array(a))
    check("linalg_svdvals.default", a)
    ((_, _), (s, values), (_, _)) = compared("_linalg_svd.default", a, full)
    assert_near(s, values)


@EVERY_TYPE
def test_eigenvalues(dtype: Loose) -> None:
    a = definite(2, 4, 4, dtype=dtype)
    for uplo in ("L", "U"):
        (values, expected), (vectors, _) = compared("linalg_eigh.default", a, uplo)
        assert_near(values, expected)
        v = _plain(vectors, dtype)
        assert_near((v * values[..., None, :]) @ np.conj(v).swapaxes(-1, -2), _as_array(a))
        check("linalg_eigvalsh.default", a, uplo)
        check("_linalg_eigh.default", a, uplo, True, count=1)
    b = torch.randn(4, 4, dtype=dtype)
    (values, _), (vectors, _) = compared("linalg_eig.default", b)
    w, v = (x[..., 0] + 1j * x[..., 1] for x in (values, vectors))
    scale = np.abs(w).max()
    np.testing.assert_allclose(_as_array(b) @ v, v * w, atol=1e-5 * scale)
    (pair,) = compared("linalg_eigvals.default", b)
    ours, theirs = (np.sort_complex(x[..., 0] + 1j * x[..., 1]) for x in pair)
    np.testing.assert_allclose(ours, theirs, atol=1e-4 * scale)


@EVERY_TYPE
def test_inverses_of_what_has_none(dtype: Loose) -> None:
    a = torch.randn(2, 5, 3, dtype=dtype)
    check("linalg_pinv.default", a, 1e-15)
    check("linalg_pinv.atol_rtol_float", a)
    check("linalg_pinv.atol_rtol_float", a, atol=0.5, rtol=0.1)
    bounds = torch.tensor([0.5, 0.0], dtype=a.real.dtype)
    check("linalg_pinv.atol_rtol_tensor", a, atol=bounds, rtol=bounds / 5)
    deficient = a[..., :1] @ a.mH[..., :1, :]
    check("linalg_pinv.default", deficient, 1e-4)
    b = torch.randn(2, 5, 2, dtype=dtype)
    (solution, expected), *_ = compared("linalg_lstsq.default", a, b, count=1)
    assert_near(solution, expected)
    (solution, expected), *_ = compared(
        "linalg_lstsq.default", a.mT.contiguous(), b[:, :3], count=1
    )
    assert_near(solution, expected)


@EVERY_TYPE
def test_products_of_vectors(dtype: Loose) -> None:
    a, b = torch.randn(2, 4, 3, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    check("linalg_cross.default", a, b.expand(2, 4, 3).contiguous())
    check("linalg_cross.default", a.mT.contiguous(), a.mT.contiguous() + 1, dim=1)
    check("linalg_vecdot.default", a, b)
    check("linalg_vecdot.default", a, b, dim=1)


@EVERY_TYPE
def test_norms(dtype: Loose) -> None:
    a = torch.randn(2, 4, 3, dtype=dtype)
    check("linalg_norm.default", a)
    check("linalg_norm.default", a, None, None, True)
    for order in (1, 2, 0.5, float("inf"), -float("inf"), 0):
        check("linalg_norm.default", a, order, [1], True)
    for order in (1, 2, -2, float("inf")):
        check("linalg_norm.default", a, order, [0, 2])
        check("linalg_matrix_norm.default", a, order, [-2, -1], True)
    for word in ("fro", "nuc"):
        check("linalg_norm.ord_str", a, word, [1, 2])
        check("linalg_matrix_norm.str_ord", a, word)


@pytest.mark.parametrize(
    ("call", "args", "told"),
    [
        ("linalg_inv.default", (torch.zeros(2, 2),), "Singular"),
        ("linalg_inv.default", (torch.zeros(2, 3),), "no square matrices"),
        ("linalg_cholesky.default", (-torch.eye(2),), "positive definite"),
        ("linalg_qr.default", (torch.zeros(2),), "no matrices"),
        ("linalg_qr.default", (torch.zeros(2, 2), "x"), "KeyError"),
        ("linalg_solve.default", (torch.eye(2), torch.zeros(3, 1)), "do not fit"),
        ("linalg_cross.default", (torch.zeros(2), torch.zeros(2)), "expected 3"),
    ],
)
def test_what_cannot_be_computed_is_a_finding(
    call: str, args: tuple[Loose, ...], told: str
) -> None:
    model, feeds = model_of(call, args, {}, [False, False] if "qr" in call else [False])
    with pytest.raises(InputError, match=told) as refused:
        model.run(feeds)
    assert refused.value.diagnostics[0].code == "NAC47"


def test_a_hostile_size_is_refused_before_it_is_taken() -> None:
    model, feeds = model_of("fft_fft.default", (torch.zeros(4), 1 << 40), {}, [True])
    with pytest.raises(InputError) as refused:
        model.run(feeds)
    assert refused.value.diagnostics[0].code == "NAC48"
    model, feeds = model_of("linalg_inv.default", (torch.eye(3),), {}, [False])
    with pytest.raises(InputError) as refused:
        model.session(max_work=100).run(feeds)
    assert refused.value.diagnostics[0].code == "NAC52"
