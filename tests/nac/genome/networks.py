"""Blocks of well-known networks, written with the builder of Core IR as frameworks write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nacre import nac
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes
from nacre.nac.genome.graph import ProgramGraph, graph_of
from nacre.nac.tools.opening import open_nac


@dataclass
class Network:
    """A builder with layers; weights are drawn."""

    builder: Builder = field(default_factory=Builder)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def weight(self, *shape: int) -> int:
        return self.builder.constant(self.random.normal(size=shape).astype(np.float32))

    def conv(self, x: int, out: int, size: int = 3, *, groups: int = 1, stride: int = 1) -> int:
        channels = self.builder.type_of(x).shape[1]
        pad = 0 if size == stride else size // 2
        given = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [1, 1]}
        return self.builder.add(
            "Conv", x, self.weight(out, channels // groups, size, size), self.weight(out),
            groups=groups, **given,
        )  # fmt: skip

    def depthwise(self, x: int, size: int = 3) -> int:
        channels = self.builder.type_of(x).shape[1]
        return self.conv(x, channels, size, groups=channels)

    def norm(self, x: int) -> int:
        width = self.builder.type_of(x).shape[-1]
        return self.builder.add(
            "LayerNorm", x, self.weight(width), self.weight(width), axis=-1, epsilon=1e-5
        )

    def linear(self, x: int, out: int) -> int:
        width = self.builder.type_of(x).shape[-1]
        return self.builder.add("Linear", x, self.weight(out, width), self.weight(out))

    def relu(self, x: int) -> int:
        return self.builder.add("Relu", x)

    def add(self, x: int, y: int) -> int:
        return self.builder.add("BinOp", x, y, op="Add")

    def mul(self, x: int, y: int) -> int:
        return self.builder.add("BinOp", x, y, op="Mul")

    def sigmoid(self, x: int) -> int:
        return self.builder.add("Unary", x, op="Sigmoid")

    def mean(self, x: int) -> int:
        return self.builder.add("Mean", x, axes=[2, 3], keepdims=True)

    def squeeze_excite(self, x: int) -> int:
        channels = self.builder.type_of(x).shape[1]
        small = self.relu(self.conv(self.mean(x), channels // 2, 1))
        return self.mul(x, self.sigmoid(self.conv(small, channels, 1)))

    def attention(self, x: int) -> int:
        made = [self.linear(x, self.builder.type_of(x).shape[-1]) for _ in range(3)]
        turned = self.builder.add("Transpose", made[1], permutation=[0, 2, 1])
        scores = self.builder.add("MatMul", made[0], turned)
        scaled = self.mul(scores, self.builder.constant(np.float32(0.25)))
        weighed = self.builder.add("Softmax", scaled, axis=-1)
        return self.linear(self.builder.add("MatMul", weighed, made[2]), 8)


def graph_from(
    write: Callable[[Network, int], int], shape: tuple[int, ...] = (1, 8, 8, 8)
) -> ProgramGraph:
    """The graph of a file with one input."""
    network = Network()
    x = network.builder.input("x", "f32", shape)
    module = network.builder.module(write(network, x))
    return graph_of(open_nac(to_bytes(nac.build(module).file)))
