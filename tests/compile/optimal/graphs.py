"""Small random graphs: chains with branches of convolutions, products, poolings and sums."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from nacre.core.builder import Builder
from nacre.core.module import Module

_COUNTS = (1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 6)  # of operations
_CHANNELS = (8, 8, 16, 24)


def random_graph(seed: int) -> Module:
    """A graph of a few layers, pictures or matrices, from a seed."""
    random = Random(seed)
    grow = _pictures if random.random() < 0.7 else _matrices
    return grow(random, _Weights(seed))


class _Weights:
    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, builder: Builder, *shape: int) -> int:
        spread = float(np.prod(shape[:-1])) ** -0.5
        values = self._random.standard_normal(shape) * spread
        return builder.constant(values.astype(np.float32))


class _Growing:
    """A graph while it grows: its last value, and an earlier one of the same shape."""

    def __init__(self, random: Random, weights: _Weights, shape: tuple[int, ...]) -> None:
        self.random, self.weights, self.builder = random, weights, Builder()
        self.value, self.shape = self.builder.input("x", "f32", shape), shape
        self.earlier: list[tuple[int, tuple[int, ...]]] = []

    def grow(self, value: int, shape: tuple[int, ...]) -> None:
        self.earlier.append((self.value, self.shape))
        self.value, self.shape = value, shape

    def module(self) -> Module:
        return self.builder.module(self.value)


def _pictures(random: Random, weights: _Weights) -> Module:
    height, width = random.randint(3, 7), random.randint(3, 7)
    growing = _Growing(random, weights, (1, height, width, random.choice(_CHANNELS)))
    steps: list[Callable[[_Growing], None]] = [_window, _window, _pixels, _pixels, _pool, _sum]
    _convolution(growing, 3 if random.random() < 0.5 else 1, 1)
    for _ in range(random.choice(_COUNTS) - 1):
        random.choice(steps)(growing)
    return growing.module()


def _window(growing: _Growing) -> None:
    _convolution(growing, 3, growing.random.choice((1, 1, 2)))


def _pixels(growing: _Growing) -> None:
    _convolution(growing, 1, 1)


def _convolution(growing: _Growing, kernel: int, stride: int) -> None:
    _, height, width, channels = growing.shape
    out = growing.random.choice((channels, *_CHANNELS))
    pad = kernel // 2
    made = growing.builder.add(
        "Conv", growing.value, growing.weights(growing.builder, kernel, kernel, channels, out),
        layout="NHWC", pads=(pad,) * 4, strides=(stride, stride),
    )  # fmt: skip
    if growing.random.random() < 0.5:
        made = growing.builder.add("ReluNan", made)
    growing.grow(made, (1, -(-height // stride), -(-width // stride), out))


def _pool(growing: _Growing) -> None:
    _, height, width, channels = growing.shape
    if min(height, width) < 4:
        return _pixels(growing)
    made = growing.builder.add(
        "MaxPool", growing.value, layout="NHWC", kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0)
    )
    growing.grow(made, (1, height // 2, width // 2, channels))
    return None


def _sum(growing: _Growing) -> None:
    same = [value for value, shape in growing.earlier if shape == growing.shape]
    if not same:
        return _pixels(growing)
    other = growing.random.choice(same)
    growing.grow(growing.builder.add("BinOp", growing.value, other, op="Add"), growing.shape)
    return None


def _matrices(random: Random, weights: _Weights) -> Module:
    growing = _Growing(random, weights, (random.randint(4, 24), random.choice(_CHANNELS)))
    _product(growing)
    for _ in range(random.choice(_COUNTS) - 1):
        random.choice((_product, _product, _sum_of_matrices))(growing)
    return growing.module()


def _product(growing: _Growing) -> None:
    rows, depth = growing.shape
    columns = growing.random.choice((depth, *_CHANNELS, 48))
    made = growing.builder.add(
        "MatMul", growing.value, growing.weights(growing.builder, depth, columns)
    )
    if growing.random.random() < 0.5:
        made = growing.builder.add("ReluNan", made)
    growing.grow(made, (rows, columns))


def _sum_of_matrices(growing: _Growing) -> None:
    same = [value for value, shape in growing.earlier if shape == growing.shape]
    if not same:
        return _product(growing)
    other = growing.random.choice(same)
    growing.grow(growing.builder.add("BinOp", growing.value, other, op="Add"), growing.shape)
    return None
