"""Random models of the kinds that the compiler knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.api import NemInterpreter

Array = npt.NDArray[Any]
# Without Neg: two of them are nothing, and a model that gives back its input is refused.
ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "Abs", "Silu", "LeakyRelu")


def values(shape: tuple[int, ...], seed: int, spread: float = 1.0) -> Array:
    """Numbers around 0, f32."""
    made: Array = (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)
    return made


def inputs_of(module: Module, seed: int = 7) -> dict[str, Array]:
    """Values for the inputs of a model."""
    named = enumerate(module.input_types.items())
    return {name: values(type_.shape, seed + index) for index, (name, type_) in named}


def require_any_order(bundle: Bundle, feeds: Mapping[str, Array], seeds: int) -> None:
    """Random schedules give the same bytes; in the first of them races are looked for."""
    interpreter = NemInterpreter()
    program = interpreter.load_string(bundle.program)
    filled: dict[str, object] = {
        port.buffer: port.to_memory(feeds[port.name]) for port in bundle.manifest.inputs
    }
    filled["weights"] = bundle.weights
    outputs = [port.buffer for port in bundle.manifest.outputs]
    first = interpreter.run(program, filled)
    assert first.status == "completed"
    expected = [first.read_buffer(buffer) for buffer in outputs]
    for seed in range(seeds):
        interpreter.set_scheduling("random", seed)
        result = interpreter.run(program, filled, detect_races=seed < 5)
        assert result.status == "completed"
        assert [result.read_buffer(buffer) for buffer in outputs] == expected


def linear_model(
    rows: int = 256, depth: int = 64, columns: int = 96, *, bias: bool = True, relu: bool = True
) -> Module:
    """One product with what follows it."""
    builder = Builder("core-v1")
    x = builder.input("x", "f32", (rows, depth))
    weights = builder.constant(values((depth, columns), 1, depth**-0.5))
    y = builder.add("MatMul", x, weights)
    if bias:
        y = builder.add("BinOp", y, builder.constant(values((columns,), 2)), op="Add")
    return builder.module(builder.add("Relu", y) if relu else y)


def convolution_model(
    x: tuple[int, ...] = (1, 28, 28, 16),
    kernel: tuple[int, ...] = (3, 3, 16, 32),
    strides: tuple[int, int] = (1, 1),
    padding: object = "Same",
) -> Module:
    """One convolution."""
    builder = Builder("core-v1")
    given = builder.input("image", "f32", x)
    weights = builder.constant(values(kernel, 3, float(np.prod(kernel[:3])) ** -0.5))
    made = builder.add("Conv2d", given, weights, strides=strides, padding=padding)
    return builder.module(made)


@st.composite
def models(draw: st.DrawFn) -> Module:
    """A chain of products, convolutions and functions, now and then with a branch."""
    growing = _Growing(draw)
    for _ in range(draw(st.integers(1, 4))):
        growing.grow()
    return growing.module()


class _Growing:
    """A model that grows layer by layer."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._builder = Builder()
        side = st.integers(1, 17)
        channels = draw(st.integers(1, 20))
        if draw(st.booleans()):
            shape: tuple[int, ...] = (draw(st.integers(1, 3)), draw(side), draw(side), channels)
        else:
            shape = (draw(st.integers(1, 70)), channels)
        self._value = self._builder.input("x", "f32", shape)
        self._seed = 10

    def grow(self) -> None:
        """One more layer."""
        rank = self._builder.type_of(self._value).rank
        ways = [self._linear, self._function, self._residual]
        ways += [self._convolution] * 3 if rank == 4 else []
        self._draw(st.sampled_from(ways))()

    def module(self) -> Module:
        """The model; an input alone gets a function."""
        if self._builder.type_of(self._value).rank and self._seed == 10:
            self._function()
        return self._builder.module(self._value)

    def _weights(self, shape: tuple[int, ...]) -> int:
        self._seed += 1
        spread = float(np.prod(shape[:-1])) ** -0.5
        return self._builder.constant(values(shape, self._seed, spread))

    def _finish(self, value: int, channels: int) -> None:
        if self._draw(st.booleans()):
            bias = self._weights((channels,))
            value = self._builder.add("BinOp", value, bias, op="Add")
        self._value = value
        if self._draw(st.booleans()):
            self._function()

    def _linear(self) -> None:
        columns = self._draw(st.integers(1, 40))
        depth = self._builder.type_of(self._value).shape[-1]
        weights = self._weights((depth, columns))
        self._finish(self._builder.add("MatMul", self._value, weights), columns)

    def _convolution(self) -> None:
        _, height, width, channels = self._builder.type_of(self._value).shape
        kernel = tuple(self._draw(st.integers(1, min(3, size))) for size in (height, width))
        groups = channels if self._draw(st.integers(0, 3)) == 0 else 1
        out = channels if groups > 1 else self._draw(st.integers(1, 24))
        # A window that sees nothing but padding above or below has a test of its own.
        tall, wide = (st.integers(0, min(2, size - 1)) for size in kernel)
        pads = self._draw(st.tuples(tall, wide, tall, wide))
        strides = self._draw(st.tuples(*[st.integers(1, 2)] * 2))
        weights = self._weights((*kernel, channels // groups, out))
        made = self._builder.add(
            "Conv", self._value, weights, layout="NHWC", pads=pads, strides=strides, groups=groups
        )
        self._finish(made, out)

    def _function(self) -> None:
        self._seed += 1
        name = self._draw(st.sampled_from(ACTIVATIONS))
        if name in ("Sigmoid", "Tanh", "Abs"):
            self._value = self._builder.add("Unary", self._value, op=name)
        else:
            self._value = self._builder.add(name, self._value)

    def _residual(self) -> None:
        """A value and a function of it, added."""
        before = self._value
        self._function()
        kind = self._draw(st.sampled_from(["Add", "Sub", "Mul", "Max"]))
        self._value = self._builder.add("BinOp", before, self._value, op=kind)
