"""Random numbers: drawn from the generator of the run, which follows from its seed.

The numbers are not those that PyTorch draws from the same seed; their distributions are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import DType, dtype_of
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.table import computes

Generator = np.random.Generator
_I64 = np.dtype(np.int64)


def _uniform(rng: Generator, shape: Sequence[int], dtype: DType) -> Array:
    """Numbers from 0 on, below 1 in any precision."""
    bits = {"float16": 11, "bfloat16": 8, "float32": 24}.get(dtype.name, 53)
    drawn = np.asarray(rng.integers(0, 1 << bits, tuple(shape)))
    return (drawn / float(1 << bits)).astype(dtype)


def _sized(size: Sequence[int], dtype: str | None = None) -> ArrayType:
    return ArrayType(dtype_of(dtype), tuple(size))


def _alike(x: Array, dtype: str | None = None) -> ArrayType:
    return ArrayType(dtype_of(dtype, x.dtype), x.shape)


@computes("rand.default", schema="size:I * dtype:d?", shape=_sized, random=True)
def rand(size: Sequence[int], dtype: str | None, rng: Generator) -> Array:
    """Even between 0 and 1."""
    return _uniform(rng, size, dtype_of(dtype))


@computes("rand_like.default", schema="self:T * dtype:d?", shape=_alike, random=True)
def rand_like(x: Array, dtype: str | None, rng: Generator) -> Array:
    """The same in the shape of a tensor."""
    return _uniform(rng, x.shape, dtype_of(dtype, x.dtype))


@computes("randn.default", schema="size:I * dtype:d?", shape=_sized, random=True)
def randn(size: Sequence[int], dtype: str | None, rng: Generator) -> Array:
    """Normal, around 0, of variance 1."""
    return rng.standard_normal(tuple(size)).astype(dtype_of(dtype))


@computes("randn_like.default", schema="self:T * dtype:d?", shape=_alike, random=True)
def randn_like(x: Array, dtype: str | None, rng: Generator) -> Array:
    """The same in the shape of a tensor."""
    return rng.standard_normal(x.shape).astype(dtype_of(dtype, x.dtype))


def _integers(low: int, high: int, size: Sequence[int], dtype: str | None = None) -> ArrayType:
    return ArrayType(dtype_of(dtype, _I64), tuple(size))


@computes(
    "randint.low", schema="low:i high:i size:I * dtype:d?", shape=_integers, random=True
)  # fmt: skip
def randint_between(
    low: int, high: int, size: Sequence[int], dtype: str | None, rng: Generator
) -> Array:
    """Integers from a number on, below another."""
    return np.asarray(rng.integers(low, high, tuple(size))).astype(dtype_of(dtype, _I64))


@computes(
    "randint.default",
    schema="high:i size:I * dtype:d?",
    shape=lambda high, size, dtype=None: _integers(0, high, size, dtype),
    random=True,
)
def randint(high: int, size: Sequence[int], dtype: str | None, rng: Generator) -> Array:
    """The same from 0 on."""
    return randint_between(0, high, size, dtype, rng)


@computes(
    "randint_like.low_dtype",
    schema="self:T low:i high:i * dtype:d?",
    shape=lambda x, low, high, dtype=None: _alike(x, dtype),
    random=True,
)
def randint_like_between(x: Array, low: int, high: int, dtype: str | None, rng: Generator) -> Array:
    """The same in the shape of a tensor, in its type."""
    return np.asarray(rng.integers(low, high, x.shape)).astype(dtype_of(dtype, x.dtype))


@computes(
    "randint_like.default",
    schema="self:T high:i * dtype:d?",
    shape=lambda x, high, dtype=None: _alike(x, dtype),
    random=True,
)
def randint_like(x: Array, high: int, dtype: str | None, rng: Generator) -> Array:
    """The same from 0 on."""
    return randint_like_between(x, 0, high, dtype, rng)


@computes(
    "randperm.default",
    schema="n:i * dtype:d?",
    shape=lambda n, dtype=None: ArrayType(dtype_of(dtype, _I64), (n,)),
    random=True,
)
def randperm(n: int, dtype: str | None, rng: Generator) -> Array:
    """Every number below another once, in any order."""
    return rng.permutation(n).astype(dtype_of(dtype, _I64))


def _require_chances(p: Array) -> None:
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise ValueError("a probability is not between 0 and 1")


@computes("bernoulli.default", schema="self:T", shape=_alike, random=True)
def bernoulli(p: Array, rng: Generator) -> Array:
    """1 with the probability that an element is, else 0."""
    _require_chances(p)
    return (rng.random(p.shape) < p).astype(p.dtype)


@computes(
    "bernoulli.p", schema="self:T p:f=0.5", shape=lambda x, p: _alike(x), random=True
)  # fmt: skip
def bernoulli_in(x: Array, p: float, rng: Generator) -> Array:
    """The same with one probability, in the shape of a tensor."""
    _require_chances(np.asarray(p))
    return (rng.random(x.shape) < p).astype(x.dtype)


def _drawn_shape(weights: Array, num_samples: int, replacement: bool = False) -> ArrayType:
    if weights.ndim not in (1, 2) or num_samples < 1:
        raise ValueError(f"{num_samples} samples by weights {list(weights.shape)}")
    if not replacement and num_samples > weights.shape[-1]:
        raise ValueError(f"{num_samples} different samples of {weights.shape[-1]}")
    return ArrayType(_I64, (*weights.shape[:-1], num_samples))


@computes(
    "multinomial.default",
    schema="self:T num_samples:i replacement:b=false",
    shape=_drawn_shape,
    random=True,
)
def multinomial(weights: Array, num_samples: int, replacement: bool, rng: Generator) -> Array:
    """Places, each as likely as its weight says; without replacement none twice."""
    rows = np.atleast_2d(weights).astype(np.float64)
    sums = rows.sum(axis=-1, keepdims=True)
    if not np.isfinite(rows).all() or (rows < 0).any() or (sums <= 0).any():
        raise ValueError("weights are finite, not below 0, and their sum is above it")
    if replacement:
        ends = np.cumsum(rows / sums, axis=-1)
        drawn = rng.random((len(rows), num_samples))
        found = np.stack([np.searchsorted(e, d, "right") for e, d in zip(ends, drawn, strict=True)])
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=-1)
        found = np.minimum(found, last[:, None])
    else:
        if ((rows > 0).sum(axis=-1) < num_samples).any():
            raise ValueError(f"fewer than {num_samples} weights are above 0")
        # The first of exponential times with these rates are such a sample.
        times = rng.standard_exponential(rows.shape)
        waits = np.where(rows > 0, times / np.where(rows > 0, rows, 1.0), np.inf)
        found = np.argsort(waits, axis=-1, kind="stable")[:, :num_samples]
    return found.reshape(*weights.shape[:-1], num_samples).astype(np.int64)


def _normal(rng: Generator, mean: Array | float, std: Array | float, like: ArrayType) -> Array:
    if bool((np.asarray(std) < 0).any()):
        raise ValueError("a standard deviation is below 0")
    return (rng.standard_normal(like.shape) * std + mean).astype(like.dtype)


def _normal_shape(
    mean: Array | float, std: Array | float, size: Sequence[int] = (), dtype: str | None = None
) -> ArrayType:
    arrays = [x for x in (mean, std) if isinstance(x, np.ndarray)]
    if not arrays:
        return _sized(size, dtype)
    return ArrayType(arrays[0].dtype, np.broadcast_shapes(*(x.shape for x in arrays)))


def _normal_of(mean: Array | float, std: Array | float, rng: Generator) -> Array:
    """Normal, with a mean and a standard deviation for each element."""
    return _normal(rng, mean, std, _normal_shape(mean, std))


for _call, _schema in (
    ("normal.Tensor_Tensor", "mean:T std:T"), ("normal.Tensor_float", "mean:T std:f=1"),
    ("normal.float_Tensor", "mean:f std:T"),
):  # fmt: skip
    computes(_call, schema=_schema, shape=_normal_shape, random=True)(_normal_of)


@computes(
    "normal.float_float",
    schema="mean:f std:f size:I * dtype:d?",
    shape=_normal_shape,
    random=True,
)
def normal_sized(
    mean: float, std: float, size: Sequence[int], dtype: str | None, rng: Generator
) -> Array:
    """The same in a shape."""
    return _normal(rng, mean, std, _sized(size, dtype))


def _filled(x: Array, *_: object) -> ArrayType:
    return _alike(x)


@computes(
    "normal_functional.default", schema="self:T mean:f=0 std:f=1", shape=_filled, random=True
)  # fmt: skip
def normal_in(x: Array, mean: float, std: float, rng: Generator) -> Array:
    """The same in the shape of a tensor."""
    return _normal(rng, mean, std, _alike(x))


@computes("uniform.default", schema="self:T from:f=0 to:f=1", shape=_filled, random=True)
def uniform(x: Array, low: float, high: float, rng: Generator) -> Array:
    """Even between two numbers, in the shape of a tensor."""
    return (_uniform(rng, x.shape, x.dtype).astype(np.float64) * (high - low) + low).astype(x.dtype)


@computes("exponential.default", schema="self:T lambd:f=1", shape=_filled, random=True)
def exponential(x: Array, rate: float, rng: Generator) -> Array:
    """Times between events of a rate, in the shape of a tensor."""
    return (rng.standard_exponential(x.shape) / rate).astype(x.dtype)


# Dropout in training; in inference Core IR has a form for it


def _dropout_mask(p: float, shape: Sequence[int], rng: Generator) -> Array:
    _require_chances(np.asarray(p))
    return np.asarray(rng.random(tuple(shape)) >= p)


def _drop(x: Array, mask: Array, p: float) -> Array:
    scale = x.dtype.type(0.0 if p == 1 else 1 / (1 - p))
    return np.asarray(np.where(mask, x * scale, x.dtype.type(0))).astype(x.dtype)


@computes("dropout.default", schema="input:T p:f train:b", shape=_filled, random=True)
def dropout(x: Array, p: float, train: bool, rng: Generator) -> Array:
    """Elements that are 0 with a probability; the others grow, so that sums stay."""
    return _drop(x, _dropout_mask(p, x.shape, rng), p) if train else x


@computes("feature_dropout.default", schema="input:T p:f train:b", shape=_filled, random=True)
def feature_dropout(x: Array, p: float, train: bool, rng: Generator) -> Array:
    """The same for whole channels."""
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2))
    return _drop(x, _dropout_mask(p, shape, rng), p) if train else x


@computes(
    "native_dropout.default",
    schema="input:T p:f train:b?",
    shape=lambda x, p, train: [_alike(x), ArrayType(np.dtype(bool), x.shape)],
    random=True,
)
def native_dropout(x: Array, p: float, train: bool | None, rng: Generator) -> Sequence[Array]:
    """Dropout, and which elements were kept."""
    if train is False:
        return x, np.ones(x.shape, bool)
    kept = _dropout_mask(p, x.shape, rng)
    return _drop(x, kept, p), kept
