"""Layers, written one after the other: shapes, parameters and products are counted as they come.

Without a source of weights nothing but the counting is done, so that widths can be tried cheaply;
with one the same calls write a module of Core IR: what is counted is what is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod, sqrt

import numpy as np

from nacre.core.builder import Builder
from nacre.core.module import Labels, Module
from nacre.core.values import Array

Shape = tuple[int, ...]

_UNARY = {"sigmoid": "Sigmoid", "tanh": "Tanh"}
_ACTIVATIONS = {"gelu": "Gelu", "hardswish": "HardSwish", "relu": "ReluNan", "silu": "Silu"}
ACTIVATIONS = (*_ACTIVATIONS, "relu6", *_UNARY)
NORMS = ("none", "batch", "group", "layer", "rms")
_MOST_GROUPS = 8
INPUT = "x"
STATISTICS = (".mean", ".variance")  # ends of names of what is measured, not trained


class Unfit(Exception):  # noqa: N818 - an answer, no failure
    """A layer that cannot stand where it does, such as a window larger than its image."""


@dataclass(frozen=True)
class Value:
    """A value of the network: its shape, and its place in the module where one is written."""

    shape: Shape
    id: int = -1

    @property
    def width(self) -> int:
        """Channels of an image, or the last axis of anything else."""
        return self.shape[1] if len(self.shape) == 4 else self.shape[-1]


@dataclass
class Layers:
    """Writes layers; with `random` there is a module, without only counts."""

    random: np.random.Generator | None = None
    known: Mapping[str, Array] = field(default_factory=dict)  # weights that are not drawn
    parameters: int = 0
    macs: int = 0
    prefix: str = ""  # of the names of parameters
    _builder: Builder = field(default_factory=Builder)
    _names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)

    def input(self, shape: Shape) -> Value:
        """What the network is given."""
        return Value(shape, self._builder.input(INPUT, "f32", shape) if self.random else -1)

    def module(self, output: Value) -> Module:
        """What was written."""
        firsts = (names[0] for names in self._names.values())
        fixed = frozenset(name for name in firsts if name.endswith(STATISTICS))
        labels = Labels(outputs=("y",), parameters=dict(self._names), fixed=fixed)
        return replace(self._builder.module(output.id), labels=labels)

    # Products

    def conv(
        self,
        x: Value,
        out: int,
        kernel: int = 1,
        stride: int = 1,
        *,
        groups: int = 1,
        gain: float = 2.0,
    ) -> Value:
        """A convolution with a bias, padded so that only strides make an image smaller.

        `gain` is what it makes of the mean square of its input, at first.
        """
        batch, channels, *places = x.shape
        pad = 0 if kernel == stride else kernel // 2
        shape = (batch, out, *((size + 2 * pad - kernel) // stride + 1 for size in places))
        weight = (out, channels // groups, kernel, kernel)
        self.macs += prod(shape) * prod(weight[1:])
        name = self._layer("conv")
        operands = (
            self._weight(f"{name}.weight", weight, sqrt(gain / prod(weight[1:]))),
            self._weight(f"{name}.bias", (out,)),
        )
        return self._add(
            shape, "Conv", x, *operands, groups=groups, strides=[stride] * 2, pads=[pad] * 4,
            dilations=[1, 1],
        )  # fmt: skip

    def linear(self, x: Value, out: int, gain: float = 2.0) -> Value:
        """Rows by weights, plus a bias."""
        width = x.shape[-1]
        self.macs += prod(x.shape) * out
        name = self._layer("linear")
        weight = self._weight(f"{name}.weight", (out, width), sqrt(gain / width))
        return self._add(
            (*x.shape[:-1], out), "Linear", x, weight, self._weight(f"{name}.bias", (out,))
        )

    def attention(self, x: Value, heads: int) -> Value:
        """Attention of a sequence to itself, with the four layers around it."""
        batch, length, width = x.shape
        split = (batch, length, heads, width // heads)
        parts = []
        for _ in range(3):
            cut = self._add(split, "Reshape", self.linear(x, width, 1.0), new_shape=list(split))
            turned = (batch, heads, length, width // heads)
            parts.append(self._add(turned, "Transpose", cut, permutation=[0, 2, 1, 3]))
        self.macs += 2 * batch * length * length * width
        mixed = self._add(parts[0].shape, "Attention", *parts)
        back = self._add(split, "Transpose", mixed, permutation=[0, 2, 1, 3])
        whole = self._add(x.shape, "Reshape", back, new_shape=list(x.shape))
        return self.linear(whole, width, 1.0)

    # What is done to each element

    def norm(self, x: Value, kind: str) -> Value:
        """A norm over channels; `batch` with statistics that are given."""
        if kind == "none":
            return x
        name, width = self._layer("norm"), x.width
        scale = self._weight(f"{name}.scale", (width,), fill=1.0)
        if kind == "rms":
            return self._channels_last(x, "RmsNorm", scale)
        bias = self._weight(f"{name}.bias", (width,))
        if kind == "layer":
            return self._channels_last(x, "LayerNorm", scale, bias)
        if kind == "batch":
            mean = self._weight(f"{name}.mean", (width,))
            variance = self._weight(f"{name}.variance", (width,), fill=1.0)
            axis = 1 if len(x.shape) == 4 else len(x.shape) - 1
            return self._add(x.shape, "BatchNorm", x, scale, bias, mean, variance, axis=axis)
        groups = max(g for g in range(1, _MOST_GROUPS + 1) if width % g == 0)
        return self._add(x.shape, "GroupNorm", x, scale, bias, groups=groups)

    def _channels_last(self, x: Value, opcode: str, *operands: Value) -> Value:
        last = self.transpose(x, (0, 2, 3, 1)) if len(x.shape) == 4 else x
        made = self._add(last.shape, opcode, last, *operands, axis=len(x.shape) - 1)
        return self.transpose(made, (0, 3, 1, 2)) if len(x.shape) == 4 else made

    def act(self, x: Value, kind: str) -> Value:
        """An activation."""
        if kind == "relu6":
            return self._add(x.shape, "Clip", x, min=0.0, max=6.0)
        if kind in _UNARY:
            return self._add(x.shape, "Unary", x, op=_UNARY[kind])
        return self._add(x.shape, _ACTIVATIONS[kind], x)

    def add(self, x: Value, y: Value) -> Value:
        """Two values of one shape, added."""
        if x.shape[1:] != y.shape[1:]:
            raise Unfit(f"{x.shape} and {y.shape} are not added")
        return self._add(x.shape, "BinOp", x, y, op="Add")

    def mul(self, x: Value, y: Value) -> Value:
        """A value times one that may have fewer places."""
        return self._add(x.shape, "BinOp", x, y, op="Mul")

    def position(self, x: Value) -> Value:
        """A vector for each place of a sequence, added."""
        shape = (1, *x.shape[1:])
        return self.add(x, self._weight(f"{self._layer('position')}.weight", shape, 0.02))

    # Places

    def pool(self, x: Value, kind: str, kernel: int, stride: int) -> Value:
        """The largest or the mean of windows."""
        pad = 0 if kernel == stride else kernel // 2
        places = ((size + 2 * pad - kernel) // stride + 1 for size in x.shape[2:])
        given = {"kernel": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        opcode = "MaxPool" if kind == "max" else "AvgPool"
        return self._add((*x.shape[:2], *places), opcode, x, **given)

    def mean(self, x: Value, *, keep: bool = False) -> Value:
        """The mean over all places."""
        axes = [2, 3] if len(x.shape) == 4 else [1]
        kept = tuple(1 for _ in axes) if keep else ()
        return self._add((x.shape[0], x.width, *kept), "Mean", x, axes=axes, keepdims=keep)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """The axes in another order."""
        shape = tuple(x.shape[axis] for axis in order)
        return self._add(shape, "Transpose", x, permutation=list(order))

    def reshape(self, x: Value, shape: Shape) -> Value:
        """The same elements under another shape."""
        return self._add(shape, "Reshape", x, new_shape=list(shape))

    def concat(self, *values: Value) -> Value:
        """Channels side by side."""
        if len({value.shape[2:] for value in values}) > 1:
            raise Unfit("images of different sizes are not put side by side")
        width = sum(value.width for value in values)
        shape = (values[0].shape[0], width, *values[0].shape[2:])
        return self._add(shape, "Concat", *values, axis=1)

    # What all of them use

    def _add(self, shape: Shape, opcode: str, *operands: Value, **given: object) -> Value:
        if self.random is None:
            return Value(shape)
        made = self._builder.add(opcode, *(operand.id for operand in operands), **given)
        assert self._builder.type_of(made).shape == shape, (opcode, shape)
        return Value(shape, made)

    def _layer(self, kind: str) -> str:
        """A name that no other layer has."""
        name = f"{self.prefix}{kind}"
        self._taken[name] = self._taken.get(name, 0) + 1
        return f"{name}{self._taken[name]}"

    def _weight(self, name: str, shape: Shape, spread: float = 0.0, fill: float = 0.0) -> Value:
        self.parameters += prod(shape)
        if self.random is None:
            return Value(shape)
        drawn = self._drawn(shape, spread, fill)
        made = self._builder.constant(self.known.get(name, drawn), "f32", copy=False)
        self._names[made] = (name,)
        return Value(shape, made)

    def _drawn(self, shape: Shape, spread: float, fill: float) -> Array:
        if not spread or self.random is None:
            return np.full(shape, fill, np.float32)
        return self.random.normal(0.0, spread, shape).astype(np.float32)
