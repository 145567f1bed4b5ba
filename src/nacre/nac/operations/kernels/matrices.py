"""Matrices inverted, solved by and raised to powers: `torch.linalg`, on NumPy's.

NumPy computes in 64 bits, and results are rounded to the type of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import inexact, like, real_of
from nacre.nac.operations.operation import ArrayType, Types
from nacre.nac.operations.table import computes

I32 = np.dtype(np.int32)


def require_square(a: Array) -> None:
    """ValueError where an array has no square matrices."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{list(a.shape)} has no square matrices")


def _batch(a: Array) -> ArrayType:
    require_square(a)
    return like(a, a.shape[:-2])


@computes("linalg_det.default", "det.default", schema="A:T", shape=_batch, effort="cubic")
def det(a: Array) -> Array:
    """The determinant of each matrix."""
    return np.asarray(np.linalg.det(inexact(a)))


@computes(
    "_linalg_det.default", schema="A:T", shape=lambda a: [_batch(a), None, None], effort="cubic"
)
def det_and_factors(a: Array) -> Sequence[Array | None]:
    """The same; the factors that PyTorch keeps for a gradient are not made."""
    return det(a), None, None


def _sign_and_log(a: Array) -> list[ArrayType]:
    sign = _batch(a)
    return [sign, ArrayType(real_of(a.dtype), sign.shape)]


@computes(
    "linalg_slogdet.default", "slogdet.default", schema="A:T", shape=_sign_and_log, effort="cubic"
)
def slogdet(a: Array) -> Sequence[Array]:
    """The sign of a determinant, and the logarithm of its size."""
    return tuple(np.linalg.slogdet(inexact(a)))


@computes(
    "_linalg_slogdet.default",
    schema="A:T",
    shape=lambda a: [*_sign_and_log(a), None, None],
    effort="cubic",
)
def slogdet_and_factors(a: Array) -> Sequence[Array | None]:
    """The same, without the factors."""
    return (*slogdet(a), None, None)


@computes("logdet.default", schema="self:T", shape=_batch, effort="cubic")
def logdet(a: Array) -> Array:
    """The logarithm of a determinant; none where that is below 0."""
    sign, log = slogdet(a)
    return np.where(sign < 0, np.nan, log)


def _same(a: Array, *_: object) -> ArrayType:
    require_square(a)
    return like(a, a.shape)


@computes("linalg_inv.default", "inverse.default", schema="A:T", shape=_same, effort="cubic")
def inv(a: Array) -> Array:
    """The inverse; LinAlgError where a matrix has none."""
    return np.linalg.inv(inexact(a))


def _same_and_info(a: Array, *_: object, **__: object) -> list[ArrayType]:
    return [_same(a), ArrayType(I32, a.shape[:-2])]


@computes(
    "linalg_inv_ex.default", schema="A:T * check_errors:b=false", shape=_same_and_info,
    effort="cubic",
)  # fmt: skip
def inv_ex(a: Array, check_errors: bool) -> Sequence[Array]:
    """The same, and that all went well."""
    return inv(a), np.zeros(a.shape[:-2], np.int32)


def _matrix_power(a: Array, n: int) -> ArrayType:
    return _same(a)


@computes(
    "linalg_matrix_power.default",
    schema="self:T n:i",
    shape=_matrix_power,
    effort="cubic",
    is_kept=False,
)
def matrix_power(a: Array, n: int) -> Array:
    """A matrix by itself so many times; below 0 its inverse."""
    return np.linalg.matrix_power(inexact(a), n)


@computes(
    "linalg_tensorinv.default",
    schema="self:T ind:i=2",
    shape=lambda a, ind: like(a, (*a.shape[ind:], *a.shape[:ind])),
    effort="cubic",
)
def tensorinv(a: Array, ind: int) -> Array:
    """The inverse of a tensor as a matrix whose rows are its first axes."""
    rows, columns = prod(a.shape[:ind]), prod(a.shape[ind:])
    if not 0 < ind < a.ndim or rows != columns:
        raise ValueError(f"{list(a.shape)} is no square matrix before and behind axis {ind}")
    return inv(a.reshape(rows, columns)).reshape(*a.shape[ind:], *a.shape[:ind])


# Coefficients of Pade's fraction of degree 13, and how large a matrix it is exact for (Higham 2005)
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_NORM = 5.371920351148152
_MOST_HALVINGS = 60  # of a larger matrix not one digit would be right


@computes("linalg_matrix_exp.default", schema="self:T", shape=_same, effort="cubic")
def matrix_exp(a: Array) -> Array:
    """The exponential: of a part of the matrix by a fraction, squared again."""
    wide = inexact(a).astype(np.result_type(a, np.float64))
    norms = np.abs(wide).sum(axis=-2).max(axis=-1, initial=0.0)
    is_far = ~(norms < _PADE_NORM * 2.0**_MOST_HALVINGS)
    norms = np.where(is_far, 0.0, norms)
    halvings = np.ceil(np.log2(np.maximum(norms / _PADE_NORM, 1.0))).astype(int)
    part = np.where(is_far[..., None, None], 0.0, wide) / 2.0 ** halvings[..., None, None]
    found = _pade(part)
    with np.errstate(over="ignore", invalid="ignore"):
        for done in range(halvings.max(initial=0)):
            found = np.where((done < halvings)[..., None, None], found @ found, found)
    found = np.where(is_far[..., None, None], np.nan, found)
    return found.astype(inexact(a[..., :0]).dtype)


def _pade(a: Array) -> Array:
    """The exponential of small matrices."""
    eye = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    second = a @ a
    even, odd, power = eye * _PADE[0], eye * _PADE[1], eye
    for at in range(2, 14, 2):
        power = power @ second
        even, odd = even + _PADE[at] * power, odd + _PADE[at + 1] * power
    odd = a @ odd
    return np.linalg.solve(even - odd, even + odd)


# Equations


def _is_vector(a: Array, b: Array) -> bool:
    """Whether right sides are vectors, by PyTorch's rule."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


def _solved(a: Array, b: Array, left: bool = True) -> ArrayType:
    require_square(a)
    dtype = np.result_type(inexact(a[..., :0]), inexact(b[..., :0]))
    if _is_vector(a, b):
        return ArrayType(dtype, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-1]), a.shape[-1]))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise ValueError(f"{list(a.shape)} and {list(b.shape)} do not fit each other")
    return ArrayType(dtype, (*batch, *b.shape[-2:]))


@computes(
    "linalg_solve.default", schema="A:T B:T * left:b=true", shape=_solved, effort="cubic"
)  # fmt: skip
def solve(a: Array, b: Array, left: bool = True) -> Array:
    """The x of `a x = b`, or of `x a = b`."""
    a, b = inexact(a), inexact(b)
    if _is_vector(a, b):
        return np.linalg.solve(a, b[..., None])[..., 0]
    if left:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def _solved_and_info(a: Array, b: Array, left: bool, check_errors: bool) -> Types:
    return [_solved(a, b, left), ArrayType(I32, a.shape[:-2])]


@computes(
    "linalg_solve_ex.default",
    schema="A:T B:T * left:b=true check_errors:b=false",
    shape=_solved_and_info,
    effort="cubic",
)
def solve_ex(a: Array, b: Array, left: bool, check_errors: bool) -> Sequence[Array]:
    """The same, and that all went well."""
    return solve(a, b, left), np.zeros(a.shape[:-2], np.int32)


@computes(
    "_linalg_solve_ex.default",
    schema="A:T B:T * left:b=true check_errors:b=false",
    shape=lambda a, b, left, check_errors: [
        _solved(a, b, left), None, None, ArrayType(I32, a.shape[:-2])
    ],
    effort="cubic",
)  # fmt: skip
def solve_with_factors(
    a: Array, b: Array, left: bool, check_errors: bool
) -> Sequence[Array | None]:
    """The same, without the factors."""
    return solve(a, b, left), None, None, np.zeros(a.shape[:-2], np.int32)


def _triangle(a: Array, upper: bool, unitriangular: bool) -> Array:
    kept = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        eye = np.eye(a.shape[-1], dtype=a.dtype)
        kept = kept * (1 - eye) + eye
    return kept


def _triangular_shape(
    a: Array, b: Array, upper: bool, left: bool = True, unitriangular: bool = False
) -> ArrayType:
    require_square(a)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return like(b, (*batch, *b.shape[-2:]))


@computes(
    "linalg_solve_triangular.default",
    schema="self:T B:T * upper:b left:b=true unitriangular:b=false",
    shape=_triangular_shape,
    effort="cubic",
)
def solve_triangular(
    a: Array, b: Array, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """The same for a triangle; what lies on its other side is not looked at."""
    kept = inexact(_triangle(a, upper, unitriangular))
    if left:
        return np.linalg.solve(kept, inexact(b))
    return np.linalg.solve(kept.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def _old_triangular_shape(b: Array, a: Array, *_: object) -> list[ArrayType]:
    return [_triangular_shape(a, b, True), _same(a)]


@computes(
    "triangular_solve.default",
    schema="self:T A:T upper:b=true transpose:b=false unitriangular:b=false",
    shape=_old_triangular_shape,
    effort="cubic",
)
def triangular_solve(
    b: Array, a: Array, upper: bool, transpose: bool, unitriangular: bool
) -> Sequence[Array]:
    """The same by its older name, right sides first, and the matrix again."""
    kept = inexact(_triangle(a, upper, unitriangular))
    return np.linalg.solve(kept.swapaxes(-1, -2) if transpose else kept, inexact(b)), a


def _cholesky_solve_shape(b: Array, factor: Array, upper: bool) -> ArrayType:
    return _triangular_shape(factor, b, upper)


@computes(
    "cholesky_solve.default",
    schema="self:T input2:T upper:b=false",
    shape=_cholesky_solve_shape,
    effort="cubic",
)
def cholesky_solve(b: Array, factor: Array, upper: bool) -> Array:
    """The x of `a x = b`, where a factor of a is known."""
    low = np.triu(factor).swapaxes(-1, -2).conj() if upper else np.tril(factor)
    return np.linalg.solve(low @ low.swapaxes(-1, -2).conj(), inexact(b))


@computes("cholesky_inverse.default", schema="self:T upper:b=false", shape=lambda a, _: _same(a),
          effort="cubic")  # fmt: skip
def cholesky_inverse(factor: Array, upper: bool) -> Array:
    """The inverse of a, where a factor of it is known."""
    return cholesky_solve(np.eye(factor.shape[-1], dtype=factor.dtype), factor, upper)


# Products of vectors


def _cross_shape(a: Array, b: Array, dim: int = -1) -> ArrayType:
    shape = np.broadcast_shapes(a.shape, b.shape)
    if shape[dim] != 3:
        raise ValueError(f"vectors of {shape[dim]}, expected 3")
    return ArrayType(np.result_type(a.dtype, b.dtype), shape)


@computes(
    "linalg_cross.default", schema="self:T other:T * dim:i=-1", shape=_cross_shape, is_kept=False
)
def cross(a: Array, b: Array, dim: int = -1) -> Array:
    """The vector that stands upright on two."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    first, second = (np.broadcast_to(x, shape) for x in (a, b))
    return np.cross(first, second, axis=dim)


def _vecdot_shape(a: Array, b: Array, dim: int = -1) -> ArrayType:
    shape = list(np.broadcast_shapes(a.shape, b.shape))
    del shape[dim]
    return ArrayType(np.result_type(a.dtype, b.dtype), tuple(shape))


@computes(
    "linalg_vecdot.default", schema="x:T y:T * dim:i=-1", shape=_vecdot_shape, is_kept=False
)  # fmt: skip
def vecdot(a: Array, b: Array, dim: int = -1) -> Array:
    """The product of vectors, the first conjugated."""
    return np.asarray(np.sum(np.conj(a) * b, axis=dim))
