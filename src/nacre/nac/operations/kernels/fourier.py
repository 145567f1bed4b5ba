"""Discrete Fourier transforms, `torch.fft`: on NumPy's, in the precision of what they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import (
    axis_of,
    complex_of,
    dtype_of,
    inexact,
    like,
    real_of,
)
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.table import computes

_ONE = "self:T n:i? dim:i=-1 norm:s?"
_TWO = "self:T s:I? dim:I=[-2,-1] norm:s?"
_MANY = "self:T s:I? dim:I? norm:s?"
# Which way a transform goes, and whether its input or its result is half of one that is real.
_NUMPYS: dict[str, Callable[..., Any]] = {
    "fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn, "irfft": np.fft.irfftn,
}  # fmt: skip
_INVERSE = {"hfft": ("irfft", {"backward": "forward", "forward": "backward"}),
            "ihfft": ("rfft", {"backward": "forward", "forward": "backward"})}  # fmt: skip
_NORMS = ("backward", "ortho", "forward")


def _plan(
    x: Array, kind: str, sizes: Sequence[int | None] | None, dims: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """The length of the transform along each of its axes, and these."""
    rank = x.ndim
    if dims is None:
        count = rank if sizes is None else len(sizes)
        dims = range(rank - count, rank)
    axes = [axis_of(dim, rank) for dim in dims]
    wanted = [None] * len(axes) if sizes is None else list(sizes)
    if not axes or len(set(axes)) < len(axes) or len(wanted) != len(axes):
        raise ValueError(f"{len(wanted)} sizes for the axes {axes}")
    lengths = [
        x.shape[axis] if size is None or size == -1 else size
        for axis, size in zip(axes, wanted, strict=True)
    ]
    if kind == "irfft" and (wanted[-1] is None or wanted[-1] == -1):
        lengths[-1] = 2 * (x.shape[axes[-1]] - 1)
    if min(lengths) < 1:
        raise ValueError(f"a transform of the length {min(lengths)}")
    return lengths, axes


def _shape(
    x: Array, kind: str, sizes: Sequence[int | None] | None, dims: Sequence[int] | None
) -> ArrayType:
    lengths, axes = _plan(x, kind, sizes, dims)
    shape = list(x.shape)
    for length, axis in zip(lengths, axes, strict=True):
        shape[axis] = length
    if kind == "rfft":
        shape[axes[-1]] = lengths[-1] // 2 + 1
    dtype = real_of(x.dtype) if kind == "irfft" else complex_of(x.dtype)
    return like(x, tuple(shape), dtype)


def _transform(
    x: Array,
    kind: str,
    sizes: Sequence[int | None] | None,
    dims: Sequence[int] | None,
    norm: str | None,
) -> Array:
    if kind == "rfft" and x.dtype.kind == "c":
        raise ValueError("it is for real numbers, found complex ones")
    lengths, axes = _plan(x, kind, sizes, dims)
    result: Array = _NUMPYS[kind](inexact(x), s=lengths, axes=axes, norm=norm or "backward")
    return result


def _register_one(kind: str) -> None:
    """A transform along one axis; those of Hermitian signals are real ones the other way."""
    inner, norms = _INVERSE.get(kind, (kind, {}))

    def shape(x: Array, n: int | None, dim: int, norm: str | None) -> ArrayType:
        return _shape(x, inner, [n], [dim])

    def kernel(x: Array, n: int | None, dim: int, norm: str | None) -> Array:
        way = norms.get(norm or "backward", norm)
        given = np.conj(x) if kind == "hfft" else x
        found = _transform(given, inner, [n], [dim], way)
        return np.conj(found) if kind == "ihfft" else found

    computes(f"fft_{kind}.default", schema=_ONE, shape=shape)(kernel)


def _register_many(kind: str, suffix: str, schema: str) -> None:
    """The same along several axes."""

    def shape(x: Array, s: Any, dim: Any, norm: str | None) -> ArrayType:  # noqa: ANN401
        return _shape(x, kind, s, dim)

    def kernel(x: Array, s: Any, dim: Any, norm: str | None) -> Array:  # noqa: ANN401 - integers
        return _transform(x, kind, s, dim, norm)

    computes(f"fft_{kind}{suffix}.default", schema=schema, shape=shape)(kernel)


for _kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _register_one(_kind)
for _kind in _NUMPYS:
    _register_many(_kind, "2", _TWO)
    _register_many(_kind, "n", _MANY)


# What PyTorch writes the others by. Its number says how a result is scaled.


def _scale(length: int, normalization: int) -> float:
    """What a transform without any scale is multiplied by: nothing, or 1 by a root or by all."""
    return (1.0, length**-0.5, 1.0 / length)[normalization]


def _c2c_shape(x: Array, dim: Sequence[int], normalization: int, forward: bool) -> ArrayType:
    return _shape(x, "fft", None, dim)


@computes("_fft_c2c.default", schema="self:T dim:I normalization:i forward:b", shape=_c2c_shape)
def c2c(x: Array, dim: Sequence[int], normalization: int, forward: bool) -> Array:
    """Complex to complex."""
    lengths, _ = _plan(x, "fft", None, dim)
    scale = _scale(prod(lengths), normalization)
    # Each way is the one that NumPy does not scale.
    found = _transform(
        x, "fft" if forward else "ifft", None, dim, "backward" if forward else "forward"
    )
    return np.asarray(found * found.real.dtype.type(scale))


def _r2c_shape(x: Array, dim: Sequence[int], normalization: int, onesided: bool) -> ArrayType:
    return _shape(x, "rfft" if onesided else "fft", None, dim)


@computes("_fft_r2c.default", schema="self:T dim:I normalization:i onesided:b", shape=_r2c_shape)
def r2c(x: Array, dim: Sequence[int], normalization: int, onesided: bool) -> Array:
    """Real to complex; the half that follows from the other is left out."""
    lengths, _ = _plan(x, "fft", None, dim)
    found = _transform(x, "rfft" if onesided else "fft", None, dim, "backward")
    return np.asarray(found * found.real.dtype.type(_scale(prod(lengths), normalization)))


def _c2r_sizes(x: Array, dim: Sequence[int], last: int) -> list[int | None]:
    return [None] * (len(dim) - 1) + [last]


def _c2r_shape(x: Array, dim: Sequence[int], normalization: int, last_dim_size: int) -> ArrayType:
    return _shape(x, "irfft", _c2r_sizes(x, dim, last_dim_size), dim)


@computes(
    "_fft_c2r.default", schema="self:T dim:I normalization:i last_dim_size:i", shape=_c2r_shape
)
def c2r(x: Array, dim: Sequence[int], normalization: int, last_dim_size: int) -> Array:
    """Half of a complex signal to a real one."""
    sizes = _c2r_sizes(x, dim, last_dim_size)
    lengths, _ = _plan(x, "irfft", sizes, dim)
    found = _transform(x, "irfft", sizes, dim, "forward")
    return np.asarray(found * found.dtype.type(_scale(prod(lengths), normalization)))


# The frequencies of a transform


def _frequencies_shape(
    count: int, distance: float = 1.0, dtype: str | None = None, is_half: bool = False
) -> ArrayType:
    if count < 1 or distance == 0:
        raise ValueError(f"frequencies of {count} samples, {distance} apart")
    return ArrayType(dtype_of(dtype), (count // 2 + 1 if is_half else count,))


@computes("fft_fftfreq.default", schema="n:i d:f=1 * dtype:d?", shape=_frequencies_shape)
def fftfreq(count: int, distance: float, dtype: str | None = None) -> Array:
    """From 0 up, then the negative ones; `distance` lies between samples."""
    return np.fft.fftfreq(count, distance).astype(dtype_of(dtype))


@computes(
    "fft_rfftfreq.default",
    schema="n:i d:f=1 * dtype:d?",
    shape=lambda count, distance=1.0, dtype=None: _frequencies_shape(count, distance, dtype, True),
)
def rfftfreq(count: int, distance: float, dtype: str | None = None) -> Array:
    """Those that are not negative."""
    return np.fft.rfftfreq(count, distance).astype(dtype_of(dtype))
