"""The cache of a model: what its parts are called, and where the rows of tokens stand in them.

Keys stand as columns: queries multiply by them, and no step turns all of them over. Where a cache
is that of several texts, these are its first axis.
"""

from __future__ import annotations

from typing import Protocol

from nacre.core.builder import Builder

_FROM_END = {"keys": 1, "values": 2}  # the axis along which tokens follow each other


class HasLayers(Protocol):
    """A model with so many layers."""

    @property
    def layers(self) -> int:
        """How many layers have keys and values."""
        ...


class CacheSizes(HasLayers, Protocol):
    """A model as its caches see it."""

    @property
    def kv_heads(self) -> int:
        """Heads of keys and of values."""
        ...

    @property
    def head_size(self) -> int:
        """Elements of a head."""
        ...

    @property
    def context(self) -> int:
        """Positions that the model was made for."""
        ...


def cache_names(config: HasLayers) -> list[str]:
    """The caches of all layers in order: `cache.0.keys`, `cache.0.values`, ..."""
    return [f"cache.{i}.{part}" for i in range(config.layers) for part in _FROM_END]


def row_name(cache: str) -> str:
    """What the new rows of a cache are called."""
    return cache.replace("cache", "rows", 1)


def cache_shape(config: CacheSizes, cache: str, rows: int, texts: int = 1) -> tuple[int, ...]:
    """The shape of a cache of so many rows: `[heads, size, rows]` of keys."""
    size = config.head_size
    last = (size, rows) if cache_axis(cache) == 2 else (rows, size)
    return (*((texts,) if texts > 1 else ()), config.kv_heads, *last)


def cache_axis(cache: str) -> int:
    """The axis of one text's cache along which tokens follow each other."""
    return 3 - _FROM_END[cache.rpartition(".")[2]]


def cache_slices(cache: str, begin: int, end: int) -> tuple[slice, ...]:
    """Where some tokens stand in one text's cache, or in what a step gives for it."""
    return (*(slice(None),) * cache_axis(cache), slice(begin, end))


def transpose_keys(b: Builder, value: int, cache: str) -> int:
    """Keys of one text's cache with tokens as rows, or such rows as the cache has them.

    Values have tokens as rows anyway, and stay as they are.
    """
    return b.add("Transpose", value, permutation=(0, 2, 1)) if cache_axis(cache) == 2 else value
