"""Random numbers of further distributions: `torch.poisson`, and what fills a tensor in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.table import computes

Generator = np.random.Generator
_MOST_POISSON = 2.0**62  # NumPy counts in 64 bits


def _require(holds: Array | bool, reason: str) -> None:
    if not np.asarray(holds).all():
        raise ValueError(reason)


def _alike(x: Array, *_: object, **__: object) -> ArrayType:
    return ArrayType(x.dtype, x.shape)


@computes("poisson.default", schema="self:T", shape=_alike, random=True)
def poisson(rate: Array, rng: Generator) -> Array:
    """How many events there are in a time, of which each element says the mean."""
    _require((rate >= 0) & (rate < _MOST_POISSON), "a rate is below 0, or too large to count")
    return rng.poisson(rate.astype(np.float64)).astype(rate.dtype)


def _binomial_shape(count: Array, chance: Array) -> ArrayType:
    return ArrayType(count.dtype, np.broadcast_shapes(count.shape, chance.shape))


@computes("binomial.default", schema="count:T prob:T", shape=_binomial_shape, random=True)
def binomial(count: Array, chance: Array, rng: Generator) -> Array:
    """How many of so many trials go well."""
    _require((count >= 0) & (count < _MOST_POISSON), "a count is below 0, or too large")
    _require((chance >= 0) & (chance <= 1), "a probability is not between 0 and 1")
    return rng.binomial(count.astype(np.int64), chance.astype(np.float64)).astype(count.dtype)


@computes("_standard_gamma.default", schema="self:T", shape=_alike, random=True)
def standard_gamma(concentration: Array, rng: Generator) -> Array:
    """Gamma of scale 1, of which each element says the concentration."""
    _require(concentration > 0, "a concentration is not above 0")
    return rng.standard_gamma(concentration.astype(np.float64)).astype(concentration.dtype)


@computes("_sample_dirichlet.default", schema="self:T", shape=_alike, random=True)
def dirichlet(concentration: Array, rng: Generator) -> Array:
    """Shares of 1 along the last axis."""
    _require(concentration > 0, "a concentration is not above 0")
    drawn = rng.standard_gamma(concentration.astype(np.float64))
    drawn = np.maximum(drawn, np.finfo(np.float64).tiny)
    shares = drawn / drawn.sum(axis=-1, keepdims=True)
    return np.asarray(shares, concentration.dtype)


def _fills(call: str, schema: str) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Register what fills a tensor in place."""
    return computes(call, schema=schema, shape=_alike, random=True)


@_fills("cauchy.default", "self:T median:f=0 sigma:f=1")
def cauchy(x: Array, median: float, sigma: float, rng: Generator) -> Array:
    """Cauchy's, which has no mean: around a median, with a half-width."""
    _require(sigma > 0, "`sigma` is not above 0")
    return (median + sigma * rng.standard_cauchy(x.shape)).astype(x.dtype)


@_fills("log_normal.default", "self:T mean:f=1 std:f=2")
def log_normal(x: Array, mean: float, std: float, rng: Generator) -> Array:
    """Numbers whose logarithms are normal, with that mean and deviation."""
    _require(std > 0, "`std` is not above 0")
    with np.errstate(over="ignore"):
        return np.exp(mean + std * rng.standard_normal(x.shape)).astype(x.dtype)


@_fills("geometric.default", "self:T p:f")
def geometric(x: Array, p: float, rng: Generator) -> Array:
    """The number of the first trial that goes well, from 1 on."""
    _require(0 < p < 1, "`p` is not between 0 and 1")
    return rng.geometric(p, x.shape).astype(x.dtype)


@computes(
    "rrelu_with_noise_functional.default",
    schema=f"self:T noise:T lower:n=0.125 upper:n={1 / 3} training:b=false",
    shape=lambda x, noise, *_: [_alike(x), _alike(noise)],
    random=True,
)
def rrelu(
    x: Array, noise: Array, lower: float, upper: float, training: bool, rng: Generator
) -> Sequence[Array]:
    """Below 0 a slope that is drawn for each element, and the slopes; 1 above."""
    _require(lower <= upper, "`lower` is above `upper`")
    if not training:
        slope = x.dtype.type((lower + upper) / 2)
        return np.where(x > 0, x, x * slope), noise
    drawn = rng.uniform(lower, upper, x.shape).astype(x.dtype)
    slopes = np.where(x > 0, x.dtype.type(1), drawn)
    return x * slopes, slopes.astype(noise.dtype)
