"""Transpositions sink and cancel, and values stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.passes.inference import channels_last, sink_transposes
from tests.core.rewrite.test_inference import inputs_of, opcodes, require_kept, values


class Growing:
    """A network with channels first that grows layer by layer."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.builder = Builder()
        self.value = self.builder.input("x", "f32", (1, 4, 6, 5))
        self.seed = 0

    def grow(self) -> None:
        """One more layer."""
        ways = [
            self.conv,
            self.pool,
            self.bias,
            self.gate,
            self.join,
            self.pad,
            self.cut,
            self.norm,
        ]
        self.draw(st.sampled_from(ways))()

    def literal(self, *shape: int) -> int:
        self.seed += 1
        return self.builder.constant(values(shape, self.seed) / 2)

    @property
    def channels(self) -> int:
        return self.builder.type_of(self.value).shape[1]

    def conv(self) -> None:
        groups = self.draw(st.sampled_from([1, 2])) if self.channels % 2 == 0 else 1
        weights = self.literal(4, self.channels // groups, 3, 3)
        pads = self.draw(st.sampled_from([(1, 1, 1, 1), (1, 2, 1, 0)]))
        self.value = self.builder.add("Conv", self.value, weights, pads=pads, groups=groups)

    def pool(self) -> None:
        opcode = self.draw(st.sampled_from(["MaxPool", "AvgPool"]))
        self.value = self.builder.add(opcode, self.value, kernel=(2, 2), pads=(1, 0, 0, 1))

    def bias(self) -> None:
        shape = self.draw(st.sampled_from([(self.channels, 1, 1), (), (1, self.channels, 1, 1)]))
        self.value = self.builder.add("BinOp", self.literal(*shape), self.value, op="Add")

    def gate(self) -> None:
        """A squeeze and excitation block."""
        mean = self.builder.add("Mean", self.value, axes=(2, 3), keepdims=True)
        inner = self.builder.add("Conv", mean, self.literal(self.channels, self.channels, 1, 1))
        scale = self.builder.add("Unary", inner, op="Sigmoid")
        self.value = self.builder.add("BinOp", self.value, scale, op="Mul")

    def join(self) -> None:
        other = self.builder.add("Unary", self.value, op="Tanh")
        if self.channels <= 8:
            self.value = self.builder.add("Concat", self.value, other, axis=1)

    def pad(self) -> None:
        self.value = self.builder.add("Pad", self.value, pads=(0, 0, 1, 0, 0, 0, 0, 2))

    def cut(self) -> None:
        shape = self.builder.type_of(self.value).shape
        starts = (0, shape[1] // 2, 0, 0)
        self.value = self.builder.add(
            "Slice", self.value, starts=starts, ends=shape, steps=(1,) * 4
        )

    def norm(self) -> None:
        self.value = self.builder.add("Softmax", self.value, axis=1)


@st.composite
def networks(draw: st.DrawFn) -> Module:
    growing = Growing(draw)
    for _ in range(draw(st.integers(2, 7))):
        growing.grow()
    growing.conv()
    return growing.builder.module(growing.value)


@given(networks())
def test_channels_move_to_the_end_and_transpositions_to_the_border(module: Module) -> None:
    made = canonicalise(channels_last(module))
    require_kept(module, made, 1e-4)
    windows = [op for op in made if op.opcode in ("Conv", "MaxPool", "AvgPool")]
    assert all(op.attributes["layout"] == "NHWC" for op in windows)
    assert opcodes(made).count("Transpose") <= 2


def test_an_operand_that_is_not_transposed_holds_it_up() -> None:
    builder = Builder()
    x, y = builder.input("x", "f32", (2, 3)), builder.input("y", "f32", (3, 2))
    turned = builder.add("Transpose", x, permutation=(1, 0))
    module = builder.module(builder.add("BinOp", turned, y, op="Add"))
    assert opcodes(canonicalise(sink_transposes(module))) == ["Transpose", "BinOp"]


@pytest.mark.parametrize("keepdims", [True, False])
def test_a_reduction_takes_the_axes_that_it_means(keepdims: bool) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 3, 4))
    turned = builder.add("Transpose", x, permutation=(2, 0, 1))
    module = builder.module(builder.add("Sum", turned, axes=(0,), keepdims=keepdims))
    made = canonicalise(sink_transposes(module))
    found, expected = (evaluate(m, inputs_of(module), ordered=True)[0] for m in (made, module))
    assert np.array_equal(found, expected)
    assert opcodes(made) == (["Sum", "Reshape"] if keepdims else ["Sum"])


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("opcode", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, -2, 2])
def test_a_place_is_found_along_the_axis_as_it_lay(opcode: str, axis: int, keepdims: bool) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 3, 4))
    turned = builder.add("Transpose", x, permutation=(2, 0, 1))
    module = builder.module(builder.add(opcode, turned, axis=axis, keepdims=keepdims))
    made = canonicalise(sink_transposes(module))
    found, expected = (evaluate(m, inputs_of(module), ordered=True)[0] for m in (made, module))
    assert np.array_equal(found, expected)
    assert opcodes(made)[0] == opcode or (not keepdims and axis != 0)


def test_axes_of_size_one_move_without_a_copy() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 5, 1))
    module = builder.module(builder.add("Transpose", x, permutation=(1, 2, 0)))
    made = sink_transposes(module)
    assert opcodes(made) == ["Reshape"]
    require_kept(module, made, 0.0)
