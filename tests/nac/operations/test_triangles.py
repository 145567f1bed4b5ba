"""Triangles with row exchanges, reflections and exponentials of matrices, beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nacre import nac  # noqa: E402 - where PyTorch is
from nacre.base.diagnostics import InputError  # noqa: E402
from tests.nac.operations.test_matrices import (  # noqa: E402
    EVERY_TYPE,
    assert_near,
    check,
    definite,
    square,
)
from tests.nac.operations.torch_calls import compared, model_of  # noqa: E402

Loose = Any


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(6)


@EVERY_TYPE
@pytest.mark.parametrize("shape", [(2, 4, 4), (2, 5, 3), (3, 5)])
def test_elimination_with_row_exchanges(dtype: Loose, shape: tuple[int, ...]) -> None:
    a = torch.randn(*shape, dtype=dtype)
    for call in ("linalg_lu_factor.default", "linalg_lu_factor_ex.default", "linalg_lu.default"):
        check(call, a)
    made, swaps = torch.linalg.lu_factor(a)
    check("lu_unpack.default", made, swaps)
    check("lu_unpack.default", made, swaps, True, True)


@EVERY_TYPE
def test_equations_by_triangles(dtype: Loose) -> None:
    made, swaps = torch.linalg.lu_factor(square(2, 4, 4, dtype=dtype))
    b = torch.randn(2, 4, 3, dtype=dtype)
    for adjoint in (False, True):
        check("linalg_lu_solve.default", made, swaps, b, left=True, adjoint=adjoint)
        across = b.mT.contiguous()
        check("linalg_lu_solve.default", made, swaps, across, left=False, adjoint=adjoint)
    check("lu_solve.default", b, made, swaps)


def test_a_matrix_without_a_pivot() -> None:
    a = torch.ones(2, 3, 3)
    check("linalg_lu_factor_ex.default", a)
    model, feeds = model_of("linalg_lu_factor.default", (a,), {}, [False, False])
    with pytest.raises(InputError, match="column 2 has no pivot"):
        model.run(feeds)
    bad = torch.full((2, 3), 9, dtype=torch.int32)
    model, feeds = model_of("lu_unpack.default", (a, bad), {}, [False] * 3)
    with pytest.raises(InputError, match="not between 1 and 3"):
        model.run(feeds)


@EVERY_TYPE
def test_reflections(dtype: Loose) -> None:
    a = torch.randn(5, 3, dtype=dtype)
    check("geqrf.default", a)
    check("geqrf.default", a.mT.contiguous())
    made, scales = torch.geqrf(a)
    check("linalg_householder_product.default", made, scales)
    check("orgqr.default", made, scales)
    for transpose in (False, True):
        right = torch.randn(5, 2, dtype=dtype)
        check("ormqr.default", made, scales, right, True, transpose)
        check("ormqr.default", made, scales, right.mT.contiguous(), False, transpose)
    many = torch.randn(2, 5, 3, dtype=dtype)
    check("linalg_householder_product.default", many, torch.randn(2, 3, dtype=dtype) / 4)


@EVERY_TYPE
def test_exponentials(dtype: Loose) -> None:
    for size in (0.01, 1, 5):
        check("linalg_matrix_exp.default", size * torch.randn(2, 3, 3, dtype=dtype))
    turning = torch.tensor([[0.0, 4.0], [-4.0, 0.0]], dtype=dtype)
    check("linalg_matrix_exp.default", turning)
    check("linalg_matrix_exp.default", torch.zeros(3, 3, dtype=dtype))
    check("linalg_matrix_exp.default", torch.diag(torch.tensor([-20.0, 2.0])).to(dtype))
    huge = torch.eye(2, dtype=torch.float64) * 1e30
    ((found, _),) = compared("linalg_matrix_exp.default", huge)
    assert np.isnan(found).all(), "not one digit would be right"


@EVERY_TYPE
def test_inverses_of_factors_and_tensors(dtype: Loose) -> None:
    for upper in (False, True):
        factor = torch.linalg.cholesky(definite(2, 3, 3, dtype=dtype), upper=upper)
        check("cholesky_inverse.default", factor, upper)
    check("linalg_tensorinv.default", square(6, 6, dtype=dtype).reshape(2, 3, 6), 2)
    model, feeds = model_of("linalg_tensorinv.default", (torch.ones(2, 3),), {"ind": 1}, [False])
    with pytest.raises(InputError, match="no square matrix before and behind axis 1"):
        model.run(feeds)


class Factors(torch.nn.Module):  # type: ignore[misc, name-defined]
    """What PyTorch writes by checks and by results that nobody takes."""

    def forward(self, x: Loose) -> Loose:
        made, swaps = torch.linalg.lu_factor(x)
        a = x @ x.mT
        return (
            torch.linalg.lu_solve(made, swaps, x), torch.linalg.qr(x, "r").R.abs(),
            torch.linalg.tensorinv(a.reshape(2, 2, 4)), torch.linalg.matrix_exp(x / 9),
            *torch.lu_unpack(made, swaps), torch.ormqr(*torch.geqrf(x), x),
            torch.cholesky_inverse(torch.linalg.cholesky(a)), x[0] * torch.fft.fftfreq(4, 0.5),
        )  # fmt: skip


@pytest.mark.full
def test_a_model_of_factors_runs_as_pytorch_runs_it() -> None:
    x = square(4, 4)
    model = nac.build(Factors(), example_args=(x,))
    for found, expected in zip(model.run({"x": x.numpy()}), Factors()(x), strict=True):
        assert_near(found, expected.numpy())
