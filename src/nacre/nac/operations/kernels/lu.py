"""Triangles with row exchanges: `torch.linalg.lu` and what is solved by them.

Elimination runs in 64 bits, column by column over all matrices of a batch, and is rounded then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import inexact, like
from nacre.nac.operations.kernels.factors import require_matrices
from nacre.nac.operations.kernels.matrices import I32, require_square
from nacre.nac.operations.operation import ArrayType, Types
from nacre.nac.operations.table import computes


def _eliminated(a: Array, pivot: bool) -> tuple[Array, Array]:
    """Both triangles in one array, in 64 bits, and the row that each row changed places with."""
    batch, rows, columns = require_matrices(a)
    made = a.astype(np.result_type(a, np.float64)).reshape(-1, rows, columns)
    least, every = min(rows, columns), np.arange(len(made))
    swaps = np.tile(np.arange(least), (len(made), 1))
    for k in range(least):
        if pivot:  # the size of a complex number is LAPACK's
            size = np.abs(made[:, k:, k].real) + np.abs(made[:, k:, k].imag)
            swaps[:, k] = k + np.argmax(size, axis=1)
            here = made[:, k].copy()
            made[:, k] = made[every, swaps[:, k]]
            made[every, swaps[:, k]] = here
        head = made[:, k, k, None]
        made[:, k + 1 :, k] /= np.where(head == 0, 1, head)
        made[:, k + 1 :, k + 1 :] -= made[:, k + 1 :, k, None] * made[:, None, k, k + 1 :]
    return made.reshape(a.shape), swaps.reshape(*batch, least)


def _first_zero(made: Array) -> Array:
    """The first column without a pivot, counted from 1; 0 where every column has one."""
    is_zero = np.diagonal(made, axis1=-2, axis2=-1) == 0
    return np.where(is_zero.any(-1), is_zero.argmax(-1) + 1, 0).astype(np.int32)


def _factor_shape(a: Array, pivot: bool = True, check_errors: bool = False) -> list[ArrayType]:
    batch, rows, columns = require_matrices(a)
    return [like(a, a.shape), ArrayType(I32, (*batch, min(rows, columns)))]


@computes(
    "linalg_lu_factor_ex.default",
    schema="A:T * pivot:b=true check_errors:b=false",
    shape=lambda a, **_: [*_factor_shape(a), ArrayType(I32, a.shape[:-2])],
    effort="cubic",
)
def lu_factor_ex(a: Array, pivot: bool = True, check_errors: bool = False) -> Sequence[Array]:
    """Both triangles in one array, the exchanges counted from 1, and where a pivot is missing."""
    made, swaps = _eliminated(inexact(a), pivot)
    missing = _first_zero(made)
    if check_errors and missing.any():
        raise ValueError(f"a matrix is singular: column {missing.max()} has no pivot")
    return made.astype(inexact(a[..., :0]).dtype), (swaps + 1).astype(np.int32), missing


@computes(
    "linalg_lu_factor.default", schema="A:T * pivot:b=true", shape=_factor_shape, effort="cubic"
)  # fmt: skip
def lu_factor(a: Array, pivot: bool = True) -> Sequence[Array]:
    """The same; ValueError where a pivot is missing."""
    return lu_factor_ex(a, pivot, check_errors=True)[:2]


def _exchanges(swaps: Array, rows: int) -> Array:
    """The matrix that puts rows back: a product with it undoes the exchanges."""
    flat = swaps.reshape(-1, swaps.shape[-1])
    if flat.size and not 0 <= flat.min() <= flat.max() < rows:
        raise ValueError(f"an exchange of rows is not between 1 and {rows}")
    order, every = np.tile(np.arange(rows), (len(flat), 1)), np.arange(len(flat))
    for k in range(flat.shape[1]):
        other = flat[:, k]
        here = order[:, k].copy()
        order[:, k] = order[every, other]
        order[every, other] = here
    made = np.zeros((len(flat), rows, rows))
    made[every[:, None], order, np.arange(rows)] = 1
    return made.reshape(*swaps.shape[:-1], rows, rows)


def _triangles(made: Array) -> tuple[Array, Array]:
    least = min(made.shape[-2:])
    low = np.tril(made[..., :, :least], -1) + np.eye(made.shape[-2], least, dtype=made.dtype)
    return low, np.triu(made[..., :least, :])


def _triangle_shapes(a: Array, *_: object, **__: object) -> list[ArrayType]:
    batch, rows, columns = require_matrices(a)
    least = min(rows, columns)
    shapes = ((rows, rows), (rows, least), (least, columns))
    return [like(a, (*batch, *shape)) for shape in shapes]


@computes("linalg_lu.default", schema="A:T * pivot:b=true", shape=_triangle_shapes, effort="cubic")
def lu(a: Array, pivot: bool = True) -> Sequence[Array]:
    """Exchanges as a matrix, the lower triangle, the upper one; their product is the matrix."""
    made, swaps = _eliminated(inexact(a), pivot)
    parts = (_exchanges(swaps, a.shape[-2]), *_triangles(made))
    return [part.astype(inexact(a[..., :0]).dtype) for part in parts]


def _unpacked_shapes(a: Array, pivots: Array, is_data: bool, is_pivots: bool) -> Types:
    exchanges, low, high = _triangle_shapes(a)
    return [exchanges if is_pivots else None, *((low, high) if is_data else (None, None))]


@computes(
    "lu_unpack.default",
    schema="LU_data:T LU_pivots:T unpack_data:b=true unpack_pivots:b=true",
    shape=_unpacked_shapes,
    effort="cubic",
)
def lu_unpack(made: Array, pivots: Array, is_data: bool, is_pivots: bool) -> Sequence[Array | None]:
    """The same of what `lu_factor` gives."""
    dtype = inexact(made[..., :0]).dtype
    exchanges = _exchanges(pivots - 1, made.shape[-2]).astype(dtype) if is_pivots else None
    return exchanges, *(_triangles(inexact(made)) if is_data else (None, None))


def _solved_shape(
    made: Array, pivots: Array, b: Array, left: bool = True, adjoint: bool = False
) -> ArrayType:
    require_square(made)
    if b.ndim < 2 or b.shape[-2 if left else -1] != made.shape[-1]:
        raise ValueError(f"{list(made.shape)} and {list(b.shape)} do not fit each other")
    return like(b, (*np.broadcast_shapes(made.shape[:-2], b.shape[:-2]), *b.shape[-2:]))


@computes(
    "linalg_lu_solve.default",
    schema="LU:T pivots:T B:T * left:b=true adjoint:b=false",
    shape=_solved_shape,
    effort="cubic",
)
def lu_solve(
    made: Array, pivots: Array, b: Array, left: bool = True, adjoint: bool = False
) -> Array:
    """The x of `a x = b`, or of `x a = b`, where the triangles of a are known."""
    low, high = _triangles(inexact(made).astype(np.result_type(made, np.float64)))
    a = _exchanges(pivots - 1, made.shape[-2]) @ low @ high
    if adjoint:
        a = a.swapaxes(-1, -2).conj()
    if left:
        found = np.linalg.solve(a, b)
    else:
        found = np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)
    return found.astype(inexact(b[..., :0]).dtype)


@computes(
    "lu_solve.default",
    schema="self:T LU_data:T LU_pivots:T",
    shape=lambda b, made, pivots: _solved_shape(made, pivots, b),
    effort="cubic",
)
def lu_solve_of(b: Array, made: Array, pivots: Array) -> Array:
    """The same by its older name, right sides first."""
    return lu_solve(made, pivots, b)
