"""Orthogonal matrices as LAPACK keeps them: reflections in the lower triangle, and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import inexact, like
from nacre.nac.operations.kernels.factors import require_matrices
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.table import computes

_linalg: Any = np.linalg  # whose types know no words that are given at run time


def _geqrf_shape(a: Array) -> list[ArrayType]:
    batch, rows, columns = require_matrices(a)
    return [like(a, a.shape), like(a, (*batch, min(rows, columns)))]


@computes("geqrf.default", schema="self:T", shape=_geqrf_shape, effort="cubic")
def geqrf(a: Array) -> Sequence[Array]:
    """The triangle of QR with reflections below it, and their scales."""
    made, scales = _linalg.qr(inexact(a), "raw")
    dtype = inexact(a[..., :0]).dtype
    return made.swapaxes(-1, -2).astype(dtype), scales.astype(dtype)


def _product(made: Array, scales: Array, columns: int) -> Array:
    """The first columns of the product of all reflections, in 64 bits."""
    batch, rows, _ = require_matrices(made)
    wide = np.result_type(made, np.float64)
    found = np.broadcast_to(np.eye(rows, columns, dtype=wide), (*batch, rows, columns)).copy()
    for k in reversed(range(scales.shape[-1])):
        vector = made[..., k].astype(wide)
        vector[..., :k] = 0
        vector[..., k] = 1
        along = np.einsum("...i,...ij->...j", vector.conj(), found)
        found -= (scales[..., k, None] * vector)[..., None] * along[..., None, :]
    return found


def _require_reflections(made: Array, scales: Array) -> None:
    batch, rows, columns = require_matrices(made)
    count = scales.shape[-1] if scales.ndim else 0
    if scales.shape[:-1] != batch or not 0 < count <= columns <= rows:
        raise ValueError(f"{list(made.shape)} with {list(scales.shape)} are no reflections")


def _same_shape(made: Array, scales: Array) -> ArrayType:
    _require_reflections(made, scales)
    return like(made, made.shape)


@computes(
    "linalg_householder_product.default", schema="input:T tau:T", shape=_same_shape, effort="cubic"
)
def householder_product(made: Array, scales: Array) -> Array:
    """The columns that reflections make of those of the identity."""
    return _product(made, scales, made.shape[-1]).astype(inexact(made[..., :0]).dtype)


computes("orgqr.default", schema="self:T input2:T", shape=_same_shape, effort="cubic")(
    householder_product
)


def _applied_shape(
    made: Array, scales: Array, other: Array, left: bool, transpose: bool
) -> ArrayType:
    batch, rows, _ = require_matrices(made)
    if other.shape[:-2] != batch or other.shape[-2 if left else -1] != rows:
        raise ValueError(f"{list(made.shape)} and {list(other.shape)} do not fit each other")
    return like(other, other.shape)


@computes(
    "ormqr.default",
    schema="self:T input2:T input3:T left:b=true transpose:b=false",
    shape=_applied_shape,
    effort="cubic",
)
def ormqr(made: Array, scales: Array, other: Array, left: bool, transpose: bool) -> Array:
    """A product with the whole orthogonal matrix, or its adjoint, from one side."""
    whole = _product(made, scales, made.shape[-2])
    if transpose:
        whole = whole.swapaxes(-1, -2).conj()
    found = whole @ other if left else other @ whole
    return found.astype(inexact(other[..., :0]).dtype)
