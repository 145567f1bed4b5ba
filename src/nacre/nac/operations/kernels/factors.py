"""Matrices taken apart: Cholesky, QR, singular values, eigenvalues, and what follows from them.

Factors are unique up to signs and the order within equal values; ours are those of LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import (
    axis_of,
    complex_of,
    dtype_of,
    inexact,
    inexact_of,
    like,
    real_of,
)
from nacre.nac.operations.kernels.matrices import I32, require_square
from nacre.nac.operations.operation import ArrayType, Types
from nacre.nac.operations.table import computes

_linalg: Any = np.linalg  # whose types know no words that are given at run time


def require_matrices(a: Array) -> tuple[tuple[int, ...], int, int]:
    """Shape of the batch, rows and columns; ValueError where an array has no matrices."""
    if a.ndim < 2:
        raise ValueError(f"{list(a.shape)} has no matrices")
    return a.shape[:-2], a.shape[-2], a.shape[-1]


def _square(a: Array, *_: object, **__: object) -> ArrayType:
    require_square(a)
    return like(a, a.shape)


@computes(
    "linalg_cholesky.default", schema="self:T * upper:b=false", shape=_square, effort="cubic"
)  # fmt: skip
def cholesky(a: Array, upper: bool = False) -> Array:
    """The triangle whose product with its own transpose a matrix is."""
    low = np.linalg.cholesky(inexact(a))
    return low.swapaxes(-1, -2).conj() if upper else low


computes("cholesky.default", schema="self:T upper:b=false", shape=_square, effort="cubic")(cholesky)


@computes(
    "linalg_cholesky_ex.default",
    schema="self:T * upper:b=false check_errors:b=false",
    shape=lambda a, upper, check_errors: [_square(a), ArrayType(I32, a.shape[:-2])],
    effort="cubic",
)
def cholesky_ex(a: Array, upper: bool, check_errors: bool) -> Sequence[Array]:
    """The same, and that all went well."""
    return cholesky(a, upper), np.zeros(a.shape[:-2], np.int32)


def _qr_shape(a: Array, mode: str) -> Types:
    batch, rows, columns = require_matrices(a)
    least = min(rows, columns)
    if mode == "r":
        return [None, like(a, (*batch, least, columns))]
    inner = {"reduced": least, "complete": rows}[mode]
    return [like(a, (*batch, rows, inner)), like(a, (*batch, inner, columns))]


@computes("linalg_qr.default", schema='A:T mode:s="reduced"', shape=_qr_shape, effort="cubic")
def qr(a: Array, mode: str) -> Sequence[Array | None]:
    """Columns that are orthonormal, and a triangle."""
    found = _linalg.qr(inexact(a), mode)
    return (None, found) if mode == "r" else tuple(found)


def _svd_shape(a: Array, full_matrices: bool, *_: object, **__: object) -> Types:
    batch, rows, columns = require_matrices(a)
    least = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (least, least)
    values = ArrayType(real_of(a.dtype), (*batch, least))
    return [like(a, (*batch, rows, left)), values, like(a, (*batch, right, columns))]


@computes(
    "linalg_svd.default",
    schema="A:T full_matrices:b=true * driver:s?",
    shape=_svd_shape,
    effort="cubic",
)
def svd(a: Array, full_matrices: bool, driver: str | None = None) -> Sequence[Array]:
    """Singular values in order, and the vectors on both sides."""
    return tuple(np.linalg.svd(inexact(a), full_matrices))


def _short_svd_shape(a: Array, full_matrices: bool, compute_uv: bool, driver: object) -> Types:
    vectors = _svd_shape(a, full_matrices)
    assert isinstance(vectors, list)
    return vectors if compute_uv else [None, vectors[1], None]


@computes(
    "_linalg_svd.default",
    schema="A:T full_matrices:b=false compute_uv:b=true * driver:s?",
    shape=_short_svd_shape,
    effort="cubic",
)
def svd_or_values(
    a: Array, full_matrices: bool, compute_uv: bool, driver: str | None
) -> Sequence[Array | None]:
    """The same, or the values alone."""
    return svd(a, full_matrices) if compute_uv else (None, svdvals(a, None), None)


def _values_shape(a: Array, *_: object, **__: object) -> ArrayType:
    batch, rows, columns = require_matrices(a)
    return ArrayType(real_of(a.dtype), (*batch, min(rows, columns)))


@computes(
    "linalg_svdvals.default", schema="A:T * driver:s?", shape=_values_shape, effort="cubic"
)  # fmt: skip
def svdvals(a: Array, driver: str | None) -> Array:
    """Singular values in order."""
    return np.linalg.svd(inexact(a), compute_uv=False)


def _eigh_shape(a: Array, *_: object) -> list[ArrayType]:
    require_square(a)
    return [ArrayType(real_of(a.dtype), a.shape[:-1]), like(a, a.shape)]


@computes("linalg_eigh.default", schema='self:T UPLO:s="L"', shape=_eigh_shape, effort="cubic")
def eigh(a: Array, uplo: str) -> Sequence[Array]:
    """Eigenvalues of symmetric matrices, the least first, and their vectors."""
    return tuple(_linalg.eigh(inexact(a), uplo))


@computes(
    "_linalg_eigh.default",
    schema='A:T UPLO:s="L" compute_v:b=true',
    shape=lambda a, uplo, v: _eigh_shape(a) if v else [_eigh_shape(a)[0], None],
    effort="cubic",
)
def eigh_or_values(a: Array, uplo: str, compute_v: bool) -> Sequence[Array | None]:
    """The same, or the values alone."""
    return eigh(a, uplo) if compute_v else (eigh(a, uplo)[0], None)


@computes(
    "linalg_eigvalsh.default",
    schema='self:T UPLO:s="L"',
    shape=lambda a, uplo: _eigh_shape(a)[0],
    effort="cubic",
)
def eigvalsh(a: Array, uplo: str) -> Array:
    """The values alone."""
    return np.asarray(_linalg.eigvalsh(inexact(a), uplo))


def _eig_shape(a: Array) -> list[ArrayType]:
    require_square(a)
    dtype = complex_of(inexact_of(a.dtype))
    return [ArrayType(dtype, a.shape[:-1]), ArrayType(dtype, a.shape)]


@computes("linalg_eig.default", schema="self:T", shape=_eig_shape, effort="cubic")
def eig(a: Array) -> Sequence[Array]:
    """Eigenvalues of any square matrices, complex, and their vectors."""
    return [part.astype(complex_of(a.dtype)) for part in np.linalg.eig(inexact(a))]


@computes(
    "linalg_eigvals.default", "_linalg_eigvals.default", schema="self:T",
    shape=lambda a: _eig_shape(a)[0], effort="cubic",
)  # fmt: skip
def eigvals(a: Array) -> Array:
    """The values alone."""
    return np.linalg.eigvals(inexact(a)).astype(complex_of(a.dtype))


# Inverses of what has none, and least squares


def _pinv_shape(a: Array, *_: object, **__: object) -> ArrayType:
    batch, rows, columns = require_matrices(a)
    return like(a, (*batch, columns, rows))


def _pinv(a: Array, atol: Any, rtol: Any) -> Array:  # noqa: ANN401 - numbers or arrays
    left, values, right = np.linalg.svd(inexact(a).astype(np.result_type(a, np.float64)), False)
    largest = values.max(axis=-1, initial=0.0)
    least = np.maximum(np.asarray(atol), np.asarray(rtol) * largest)[..., None]
    inverse = np.where(values > least, 1.0 / np.where(values > least, values, 1.0), 0.0)
    found = (right.swapaxes(-1, -2).conj() * inverse[..., None, :]) @ left.swapaxes(-1, -2).conj()
    result: Array = found.astype(inexact_of(a.dtype))
    return result


@computes(
    "linalg_pinv.default", "pinverse.default", schema="self:T rcond:f=1e-15 hermitian:b=false",
    shape=_pinv_shape, effort="cubic",
)  # fmt: skip
def pinv(a: Array, rcond: float, hermitian: bool = False) -> Array:
    """The pseudo-inverse; singular values up to a part of the largest count as 0."""
    return _pinv(a, 0.0, rcond)


def _pinv_within(
    a: Array, atol: Array | float | None, rtol: Array | float | None, hermitian: bool
) -> Array:
    """The same with bounds as they are given; the part is the rounding of as many elements."""
    if rtol is None:
        rounding = float(np.finfo(real_of(a.dtype)).eps) * max(a.shape[-2:])
        rtol = rounding if atol is None else np.where(np.asarray(atol) > 0, 0.0, rounding)
    return _pinv(a, 0.0 if atol is None else atol, rtol)


for _kind, _letter in (("float", "f"), ("tensor", "T")):
    computes(
        f"linalg_pinv.atol_rtol_{_kind}", shape=_pinv_shape, effort="cubic",
        schema=f"self:T * atol:{_letter}? rtol:{_letter}? hermitian:b=false",
    )(_pinv_within)  # fmt: skip


def _lstsq_shape(a: Array, b: Array, rcond: object, driver: object = None) -> Types:
    batch, _, columns = require_matrices(a)
    shape = (*batch, columns) if b.ndim < a.ndim else (*batch, columns, b.shape[-1])
    return [like(a, shape), None, ArrayType(np.dtype(np.int64), batch), None]


@computes(
    "linalg_lstsq.default",
    schema="self:T b:T rcond:f? * driver:s?",
    shape=_lstsq_shape,
    effort="cubic",
)
def lstsq(
    a: Array, b: Array, rcond: float | None, driver: str | None = None
) -> Sequence[Array | None]:
    """The x with the least squares of `a x - b`, the shortest of them, and the rank."""
    right = b[..., None] if b.ndim < a.ndim else b
    limit = float(np.finfo(real_of(a.dtype)).eps) * max(a.shape[-2:]) if rcond is None else rcond
    found = _pinv(a, 0.0, limit) @ inexact(right)
    values = svdvals(a, None)
    rank = (values > limit * values.max(axis=-1, initial=0.0, keepdims=True)).sum(axis=-1)
    solution = found[..., 0] if b.ndim < a.ndim else found
    return solution, None, rank.astype(np.int64), None


# Norms


def _norm_shape(
    x: Array,
    order: object = None,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> ArrayType:
    axes = range(x.ndim) if dim is None else [axis_of(axis, x.ndim) for axis in dim]
    kept = [1 if at in axes else size for at, size in enumerate(x.shape)]
    shape = kept if keepdim else [size for at, size in enumerate(x.shape) if at not in axes]
    return ArrayType(real_of(dtype_of(dtype, x.dtype)), tuple(shape))


@computes(
    "linalg_norm.default",
    schema="self:T ord:n? dim:I? keepdim:b=false * dtype:d?",
    shape=_norm_shape,
    effort="cubic",
    is_kept=False,
)
def norm(
    x: Array,
    order: float | str | None = None,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> Array:
    """A norm of vectors, or of matrices where two axes are meant."""
    given = inexact(x).astype(dtype_of(dtype, inexact(x).dtype))
    if dim is None and order is None:
        flat = np.linalg.norm(given.reshape(-1))
        return np.asarray(flat).reshape((1,) * x.ndim if keepdim else ())
    axes = tuple(range(x.ndim)) if dim is None else tuple(dim)
    axis = axes[0] if len(axes) == 1 else axes
    return np.asarray(_linalg.norm(given, order, axis, keepdim))


computes(
    "linalg_norm.ord_str", schema="self:T ord:s dim:I? keepdim:b=false * dtype:d?",
    shape=_norm_shape, effort="cubic", is_kept=False,
)(norm)  # fmt: skip
computes(
    "linalg_matrix_norm.default", schema="self:T ord:n dim:I=[-2,-1] keepdim:b=false * dtype:d?",
    shape=_norm_shape, effort="cubic", is_kept=False,
)(norm)  # fmt: skip
computes(
    "linalg_matrix_norm.str_ord", effort="cubic", shape=_norm_shape, is_kept=False,
    schema='self:T ord:s="fro" dim:I=[-2,-1] keepdim:b=false * dtype:d?',
)(norm)  # fmt: skip
