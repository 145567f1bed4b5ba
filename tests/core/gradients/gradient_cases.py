"""One operation a case, for every operation that has a gradient, and what PyTorch calls it.

A case builds its operation from float inputs. The result is multiplied by weights, so that no two
elements have the same gradient; once more it is the output itself, where gradients stay thin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.values import Custom

Array = npt.NDArray[Any]
Loose = Any  # attributes, and whatever belongs to torch, which need not be installed
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """An operation, the shapes of its float inputs, and the range of their values."""

    name: str  # OPCODE, or OPCODE.WORD, then what is special about it
    shapes: Shapes
    build: Callable[..., int]
    torch: Callable[..., Loose] | None = None
    low: float = 0.3
    high: float = 1.7
    signed: bool = True

    @property
    def key(self) -> tuple[str, str]:
        opcode, _, word = self.name.split(" ")[0].partition(".")
        return opcode, word

    @property
    def names(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.shapes))]

    def module(self, weighted: bool, dtype: str = "f64") -> Module:
        builder = Builder()
        inputs = [
            builder.input(name, dtype, shape)
            for name, shape in zip(self.names, self.shapes, strict=True)
        ]
        y = self.build(builder, *inputs)
        if weighted:
            weights = self.weights(builder.type_of(y).shape)
            y = builder.add("BinOp", y, builder.constant(weights, dtype), op="Mul")
        return builder.module(y)

    @staticmethod
    def weights(shape: Sequence[int]) -> Array:
        return np.random.default_rng(7).uniform(0.5, 1.5, shape)

    def values(self) -> dict[str, Array]:
        """Numbers that all differ, in no order, away from 0 and from each other."""
        random = np.random.default_rng(3)
        total = sum(prod(shape) for shape in self.shapes)
        pool = random.permutation(np.linspace(self.low, self.high, total))
        if self.signed:
            pool *= np.where(random.integers(0, 2, total) == 0, -1, 1)
        found, at = {}, 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            found[name] = pool[at : at + prod(shape)].reshape(shape).copy()
            at += prod(shape)
        return found


def op(opcode: str, **given: object) -> Callable[..., int]:
    return lambda b, *inputs: b.add(opcode, *inputs, **given)


def unary(word: str, **given: Loose) -> Case:
    function = given.pop("torch", word.lower())
    call = function if callable(function) else lambda t, x: getattr(t, function)(x)
    return Case(f"Unary.{word}", [(2, 3)], op("Unary", op=word), call, **given)


def plain(opcode: str, torch: Callable[..., Loose] | None, **given: Loose) -> Case:
    ranges = {n: given.pop(n) for n in ("low", "high", "signed") if n in given}
    told = "".join(f" {n}={v}" for n, v in given.items())
    return Case(opcode + told, [(2, 3)], op(opcode, **given), torch, **ranges)


def binary(word: str, torch: Callable[..., Loose], **given: Loose) -> list[Case]:
    shapes: dict[str, Shapes] = {
        "same": [(2, 3), (2, 3)],
        "row": [(2, 3), (3,)],
        "outer": [(2, 1), (1, 3)],
        "scalar": [(), (2, 3)],
        "deep": [(3, 1), (2, 1, 4)],
    }
    return [
        Case(f"BinOp.{word} {name}", pair, op("BinOp", op=word), torch, **given)
        for name, pair in shapes.items()
    ]


def reduction(
    opcode: str, word: str, torch: Callable[..., Loose] | None, **given: Loose
) -> list[Case]:
    words = {"op": word} if opcode == "Reduce" else {}
    key = f"Reduce.{word}" if words else opcode
    found = []
    for axes, keep in (((1,), False), ((0, -1), True), ((), False), ((0, 2), False)):
        call = op(opcode, axes=axes, keepdims=keep, **words)
        real = axes or (0, 1, 2)
        made = (
            None
            if torch is None
            else (
                lambda t, x, real=real, keep=keep, axes=axes: torch(t, x, real, keep and bool(axes))
            )
        )
        found.append(Case(f"{key} axes={axes} keep={keep}", [(2, 3, 2)], call, made, **given))
    return found


def indexed(opcode: str, indices: Loose, dtype: str = "i64", at: int = 1, **given: object) -> Loose:
    """An operation one of whose operands is a constant of indices."""

    def build(b: Builder, *inputs: int) -> int:
        operands = [*inputs[:at], b.constant(np.array(indices), dtype), *inputs[at:]]
        return b.add(opcode, *operands, **given)

    return build


def long(t: Loose, indices: Loose) -> Loose:
    return t.tensor(indices, dtype=t.int64)


ELEMENTWISE = [
    *(unary(word) for word in ("Abs", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Erf",
                               "Tanh", "Sigmoid", "Expm1", "Exp2")),
    *(unary(word, signed=False) for word in ("Sqrt", "Rsqrt", "Log1p", "Log2", "Log10")),
    unary("Reciprocal"),
    *(unary(word, low=0.1, high=0.9) for word in ("Asin", "Acos", "Atanh")),
    unary("Acosh", low=1.2, high=3.0, signed=False),
    unary("Softplus", torch=lambda t, x: t.nn.functional.softplus(x)),
    unary("Softsign", torch=lambda t, x: t.nn.functional.softsign(x)),
    *(unary(word) for word in ("Sign", "Ceil", "Floor", "Round", "Trunc")),
    plain("Neg", lambda t, x: -x),
    plain("Exp", lambda t, x: t.exp(x)),
    plain("Log", lambda t, x: t.log(x), signed=False),
    plain("Relu", lambda t, x: t.relu(x)),
    plain("ReluNan", lambda t, x: t.relu(x)),
    plain("LeakyRelu", lambda t, x: t.nn.functional.leaky_relu(x, 0.2), alpha=0.2),
    plain("Elu", lambda t, x: t.nn.functional.elu(x, 1.5), alpha=1.5),
    plain("Selu", lambda t, x: t.nn.functional.selu(x)),
    plain("HardSigmoid", None, alpha=0.9, beta=0.4),
    plain("HardSigmoid", lambda t, x: t.clamp(x / 6 + 0.5, 0, 1), alpha=1 / 6, high=4.0),
    plain("HardSwish", lambda t, x: t.nn.functional.hardswish(x), high=4.0),
    plain("Gelu", lambda t, x: t.nn.functional.gelu(x)),
    plain("Gelu", lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), approximate="tanh"),
    plain("Silu", lambda t, x: t.nn.functional.silu(x)),
    plain("Clip", lambda t, x: t.clamp(x, -1.0, 0.7), min=-1.0, max=0.7),
    plain("Clip", lambda t, x: t.clamp(x, max=0.7), max=0.7),
    plain("Cast", lambda t, x: x.to(t.float64), to="f64"),
    Case("PRelu", [(2, 3, 2), (3, 1)], op("PRelu"), lambda t, x, s: t.where(x > 0, x, x * s)),
    *binary("Add", lambda t, a, b: a + b),
    *binary("Sub", lambda t, a, b: a - b),
    *binary("Mul", lambda t, a, b: a * b),
    *binary("Div", lambda t, a, b: a / b),
    *binary("Pow", lambda t, a, b: t.pow(a, b), signed=False),
    *binary("Mod", lambda t, a, b: t.remainder(a, b)),
    *binary("Rem", lambda t, a, b: a - b * t.trunc(a.detach() / b.detach())),
    *binary("Min", lambda t, a, b: t.minimum(a, b)),
    *binary("Max", lambda t, a, b: t.maximum(a, b)),
    Case("Where", [(3,), (2, 1), (2, 3)],
         lambda b, c, x, y: b.add("Where", b.add("Compare", c, y, op="Lt"), x, y),
         lambda t, c, x, y: t.where(c < y, x, y)),
]  # fmt: skip

REDUCTIONS = [
    *reduction("Sum", "", lambda t, x, a, k: t.sum(x, a, keepdim=k)),
    *reduction("Mean", "", lambda t, x, a, k: t.mean(x, a, keepdim=k)),
    *reduction("Reduce", "Max", lambda t, x, a, k: t.amax(x, a, keepdim=k)),
    *reduction("Reduce", "Min", lambda t, x, a, k: t.amin(x, a, keepdim=k)),
    *reduction("Reduce", "Prod", None),
    *reduction("Reduce", "SumSquare", lambda t, x, a, k: t.sum(x * x, a, keepdim=k)),
    *reduction("Reduce", "L1", lambda t, x, a, k: t.sum(x.abs(), a, keepdim=k)),
    *reduction("Reduce", "L2", lambda t, x, a, k: t.linalg.vector_norm(x, 2, a, keepdim=k)),
    *reduction("Reduce", "LogSum", lambda t, x, a, k: t.sum(x, a, keepdim=k).log(), signed=False),
    *reduction("Reduce", "LogSumExp", lambda t, x, a, k: t.logsumexp(x, a, keepdim=k)),
    *(
        Case(f"{name} {exclusive} {reverse}", [(2, 4, 2)],
             op(name, axis=-2, exclusive=exclusive, reverse=reverse),
             None if exclusive or reverse else lambda t, x, c=call: getattr(t, c)(x, 1))
        for name, call in (("CumSum", "cumsum"), ("CumProd", "cumprod"))
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    Case("Softmax", [(2, 3, 2)], op("Softmax", axis=1), lambda t, x: t.softmax(x, 1)),
    Case("LogSoftmax", [(2, 3)], op("LogSoftmax", axis=-1), lambda t, x: t.log_softmax(x, 1)),
]  # fmt: skip


def f(t: Loose) -> Loose:
    return t.nn.functional


NORMALIZATION = [
    Case("LayerNorm", [(2, 3, 4), (3, 4), (3, 4)], op("LayerNorm", axis=1, epsilon=0.1),
         lambda t, x, s, b: f(t).layer_norm(x, (3, 4), s, b, 0.1)),
    Case("LayerNorm plain", [(3, 4)], op("LayerNorm", axis=-1),
         lambda t, x: f(t).layer_norm(x, (4,))),
    Case("RmsNorm", [(2, 3, 4), (4,)], op("RmsNorm", axis=2, epsilon=0.1),
         lambda t, x, s: f(t).rms_norm(x, (4,), s, 0.1)),
    Case("RmsNorm plain", [(2, 3)], op("RmsNorm", axis=0), None),
    Case("GroupNorm", [(2, 4, 3), (4,), (4,)], op("GroupNorm", groups=2, epsilon=0.1),
         lambda t, x, s, b: f(t).group_norm(x, 2, s, b, 0.1)),
    Case("GroupNorm plain", [(2, 4, 2, 2)], op("GroupNorm", groups=4),
         lambda t, x: f(t).group_norm(x, 4)),
    Case("InstanceNorm", [(2, 3, 2, 3), (3,), (3,)], op("InstanceNorm", epsilon=0.1),
         lambda t, x, s, b: f(t).instance_norm(x, weight=s, bias=b, eps=0.1)),
    Case("BatchNorm", [(2, 3, 2), (3,), (3,), (3,), (3,)], op("BatchNorm", epsilon=0.1),
         lambda t, x, s, b, m, v: (x - m[:, None]) / (v[:, None] + 0.1).sqrt() * s[:, None]
         + b[:, None], signed=False),
    Case("BatchNorm last", [(2, 4, 3), (3,), (3,), (3,), (3,)], op("BatchNorm", axis=2),
         None, signed=False),
    Case("Lrn", [(2, 5, 2, 2)], op("Lrn", size=3, alpha=0.5, beta=0.75, bias=2.0),
         lambda t, x: f(t).local_response_norm(x, 3, 0.5, 0.75, 2.0)),
    Case("Lrn even", [(1, 4, 3)], op("Lrn", size=4, alpha=0.5, beta=1.5, bias=1.0)),
    Case("Lrn wide", [(2, 3)], op("Lrn", size=99, alpha=9.0)),
]  # fmt: skip


def einsum(equation: str, *shapes: tuple[int, ...]) -> Case:
    build = op("Einsum", equation=equation)
    return Case(f"Einsum {equation}", shapes, build, lambda t, *x: t.einsum(equation, *x))


def attention(name: str, *shapes: tuple[int, ...], **given: Loose) -> Case:
    def call(t: Loose, q: Loose, k: Loose, v: Loose, mask: Loose = None) -> Loose:
        scale = given.get("scale")
        if given.get("causal"):
            keep = t.ones(q.shape[-2], k.shape[-2], dtype=t.bool).tril()
            mask = t.zeros(keep.shape, dtype=t.float64).masked_fill(~keep, -t.inf)
        return f(t).scaled_dot_product_attention(q, k, v, mask, scale=scale)

    return Case(f"Attention {name}", shapes, op("Attention", **given), call)


def _seen(b: Builder, q: int, k: int, v: int) -> int:
    mask = b.constant(np.array([[True, False, True], [False, False, False]]), "bool")
    return b.add("Attention", q, k, v, mask)


def matrices(*shapes: tuple[int, ...], opcode: str = "MatMul") -> Case:
    return Case(f"{opcode} {shapes}", shapes, op(opcode), lambda t, a, b: t.matmul(a, b))


PRODUCTS = [
    matrices((2, 3), (3, 4)),
    matrices((2, 1, 2, 3), (3, 3, 2)),
    matrices((2, 3, 2), (2, 3)),
    matrices((3, 2), (2, 1, 2, 2)),
    matrices((3,), (3,), opcode="Dot"),
    matrices((2, 3), (3,), opcode="Dot"),
    matrices((2,), (2, 3), opcode="Dot"),
    matrices((2, 3), (3, 2), opcode="Dot"),
    Case("Linear", [(2, 2, 3), (4, 3), (4,)], op("Linear"),
         lambda t, x, w, b: f(t).linear(x, w, b)),
    Case("Linear vector", [(3,), (4, 3)], op("Linear"), lambda t, x, w: f(t).linear(x, w)),
    einsum("ij,jk->ik", (2, 3), (3, 4)),
    einsum("bij,bjk,k->b", (2, 2, 3), (2, 3, 2), (2,)),
    einsum("ij->j", (2, 3)),
    einsum("ii->i", (3, 3)),
    einsum("iij,k->j", (3, 3, 2), (2,)),
    einsum("iii", (2, 2, 2)),
    einsum("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    einsum("...i,i->...", (2, 3, 2), (2,)),
    einsum("ij,jk", (2, 1), (3, 2)),
    einsum("ij,ij->", (2, 3), (2, 3)),
    attention("plain", (2, 2, 3), (2, 4, 3), (2, 4, 2)),
    attention("shared", (2, 2, 3), (4, 3), (1, 4, 2), scale=0.7),
    attention("causal", (3, 2), (4, 2), (4, 3), causal=True),
    attention("mask", (2, 2, 3), (2, 3, 3), (2, 3, 2), (2, 3)),
    Case("Attention seen", [(2, 2, 3), (3, 3), (3, 2)], _seen),
]  # fmt: skip


def conv(name: str, x: tuple[int, ...], w: tuple[int, ...], **given: Loose) -> list[Case]:
    """In both layouts: the weights are turned with the tensor."""
    rank = len(x) - 2
    is_turned = name.startswith("ConvTranspose")
    channels = (w[1] if is_turned else w[0]) * (given.get("groups", 1) if is_turned else 1)
    pads = given.get("pads", (0,) * 2 * rank)
    parts = {n: given[n] for n in ("dilations", "groups") if n in given}
    stride = given.get("strides", 1)

    def call(t: Loose, x: Loose, w: Loose, bias: Loose) -> Loose:
        around = [n for a in reversed(range(rank)) for n in (pads[a], pads[a + rank])]
        dilation = parts.get("dilations", 1)
        groups = parts.get("groups", 1)
        if not is_turned:
            function = getattr(f(t), f"conv{rank}d")
            return function(f(t).pad(x, around), w, bias, stride, 0, dilation, groups)
        function = getattr(f(t), f"conv_transpose{rank}d")
        extra = given.get("output_padding", 0)
        y = function(x, w, bias, stride, 0, extra, groups, dilation)
        return f(t).pad(y, [-n for n in around])

    opcode = name.split(" ")[0]
    last = [(x[0], *x[2:], x[1]), (*w[2:], w[1], w[0]), (channels,)]
    return [
        Case(name, [x, w, (channels,)], op(opcode, **given), call),
        Case(f"{name} last", last, op(opcode, layout="NHWC", **given)),
    ]


def conv2d(padding: object, strides: tuple[int, int], size: tuple[int, int]) -> Case:
    return Case(f"Conv2d {padding} {strides}", [(2, *size, 2), (3, 2, 2, 3)],
                op("Conv2d", strides=strides, padding=padding))  # fmt: skip


CONVOLUTION = [
    conv2d("Valid", (1, 1), (4, 3)),
    conv2d("Valid", (2, 3), (6, 7)),
    conv2d("Same", (1, 1), (3, 4)),
    conv2d("Same", (2, 3), (5, 4)),
    conv2d(Custom(((0, 2), (1, 0))), (2, 1), (4, 3)),
    conv2d(Custom(((4, 4), (3, 3))), (3, 2), (2, 2)),
    *conv("Conv", (2, 2, 5), (3, 2, 3)),
    *conv("Conv strides", (2, 3, 6), (2, 3, 2), strides=(4,)),
    *conv("Conv pads", (1, 2, 4, 5), (2, 2, 3, 2), pads=(1, 0, 2, 1), strides=(2, 3)),
    *conv("Conv dilations", (2, 2, 7), (2, 2, 3), dilations=(2,), strides=(2,), pads=(1, 0)),
    *conv("Conv groups", (2, 4, 5), (6, 2, 2), groups=2, strides=(2,)),
    *conv("Conv depthwise", (1, 3, 4, 4), (3, 1, 2, 2), groups=3, pads=(1, 1, 1, 1)),
    *conv("Conv deep", (1, 2, 3, 3, 2), (2, 2, 2, 2, 1), strides=(1, 2, 1)),
    *conv("ConvTranspose", (2, 2, 3), (2, 3, 3)),
    *conv("ConvTranspose strides", (2, 2, 3), (2, 2, 2), strides=(3,), output_padding=(2,)),
    *conv("ConvTranspose pads", (1, 2, 2, 3), (2, 2, 3, 2), pads=(1, 0, 1, 1), strides=(2, 1)),
    *conv("ConvTranspose dilations", (1, 2, 3), (2, 2, 2), dilations=(4,), output_padding=(3,)),
    *conv("ConvTranspose groups", (2, 4, 3), (4, 2, 2), groups=2, strides=(2,)),
]


def pool(opcode: str, x: tuple[int, ...], **given: Loose) -> list[Case]:
    rank = len(x) - 2
    pads = given.get("pads", (0,) * 2 * rank)
    is_even = pads[:rank] == pads[rank:]

    def largest(t: Loose, x: Loose) -> Loose:
        function = getattr(f(t), f"max_pool{rank}d")
        parts = given.get("dilations", 1), given.get("ceil", False)
        return function(x, given["kernel"], given.get("strides", 1), pads[:rank], *parts)

    def average(t: Loose, x: Loose) -> Loose:
        function = getattr(f(t), f"avg_pool{rank}d")
        parts = given.get("ceil", False), given.get("count_pad", False)
        return function(x, given["kernel"], given.get("strides", 1), pads[:rank], *parts)

    calls = {"MaxPool": largest, "AvgPool": None if "dilations" in given else average}
    call = calls.get(opcode) if is_even else None
    told = " ".join(f"{n}={v}" for n, v in given.items())
    last = (x[0], *x[2:], x[1])
    return [
        Case(f"{opcode} {told}", [x], op(opcode, **given), call),
        Case(f"{opcode} last {told}", [last], op(opcode, layout="NHWC", **given)),
    ]


POOLING = [
    case
    for opcode in ("MaxPool", "AvgPool", "LpPool")
    for case in (
        *pool(opcode, (2, 2, 5), kernel=(2,)),
        *pool(opcode, (1, 2, 5, 4), kernel=(3, 2), strides=(2, 2)),
        *pool(opcode, (1, 2, 5, 4), kernel=(3, 2), strides=(2, 3), pads=(1, 1, 1, 1), ceil=True),
        *pool(opcode, (1, 1, 4, 5), kernel=(3, 2), pads=(0, 1, 2, 0), strides=(2, 1)),
        *pool(opcode, (2, 1, 7), kernel=(3,), dilations=(2,), pads=(1, 1), strides=(2,)),
        *pool(opcode, (1, 2, 3, 2, 3), kernel=(2, 2, 2)),
    )
] + [
    *pool("AvgPool", (1, 2, 5, 4), kernel=(3, 2), pads=(1, 1, 1, 1), count_pad=True, ceil=True,
          strides=(2, 2)),
    *pool("LpPool", (1, 2, 5), kernel=(2,), p=1),
    *pool("LpPool", (1, 2, 5), kernel=(3,), p=3, strides=(2,)),
]  # fmt: skip


def pad(mode: str, pads: tuple[int, ...]) -> Case:
    return Case(f"Pad {mode} {pads}", [(3, 4)], op("Pad", mode=mode, pads=pads))


def resize(mode: str, sizes: tuple[int, ...], torch: Loose = None, **given: Loose) -> Case:
    told = " ".join(map(str, given.values()))
    build = op("Resize", mode=mode, sizes=sizes, **given)
    return Case(f"Resize {mode} {sizes} {told}", [(1, 2, 3, 4)], build, torch)


MOVEMENT = [
    Case("Reshape", [(2, 3)], op("Reshape", new_shape=(3, -1)), lambda t, x: x.reshape(3, 2)),
    Case("Transpose", [(2, 3, 4)], op("Transpose", permutation=(2, 0, 1)),
         lambda t, x: x.permute(2, 0, 1)),
    Case("ExpandDims", [(2, 3)], op("ExpandDims", axes=(0, 2)),
         lambda t, x: x.reshape(1, 2, 1, 3)),
    Case("Squeeze", [(1, 3, 1)], op("Squeeze", axes=(0,)), lambda t, x: x.squeeze(0)),
    Case("Index", [(3, 4)], op("Index", indices=(2, 1)), lambda t, x: x[2, 1]),
    Case("Slice", [(5, 4)], op("Slice", starts=(1, 0), ends=(4, 9), steps=(1, 1)),
         lambda t, x: x[1:4]),
    Case("Slice steps", [(8, 5)], op("Slice", starts=(1, -3), ends=(8, 5), steps=(3, 2)),
         lambda t, x: x[1:8:3, ::2]),
    Case("Slice far", [(4,)], op("Slice", starts=(3,), ends=(4,), steps=(7,)),
         lambda t, x: x[3:]),
    Case("Broadcast", [(2, 1)], op("Broadcast", shape=(3, 2, 4)),
         lambda t, x: x.expand(3, 2, 4)),
    Case("Concat", [(2, 3), (2, 1), (2, 2)], op("Concat", axis=-1),
         lambda t, *x: t.cat(x, 1)),
    pad("constant", (1, 0, 2, 3)),
    pad("constant", (-1, 2, 1, -2)),
    pad("reflect", (1, 2, 1, 1)),
    pad("reflect", (-1, 2, 1, 0)),
    pad("edge", (2, 0, 0, 3)),
    pad("edge", (2, -1, -1, 3)),
    pad("wrap", (4, 1, 2, 9)),
    Case("Flip", [(2, 3, 2)], op("Flip", axes=(0, -1)), lambda t, x: x.flip(0, 2)),
    Case("Tile", [(2, 3)], op("Tile", repeats=(3, 2)), lambda t, x: x.repeat(3, 2)),
    *(
        Case(f"{name} {mode}", [shape], op(name, block=2, mode=mode), call)
        for name, shape, calls in (
            ("DepthToSpace", (1, 8, 2, 1), (None, lambda t, x: f(t).pixel_shuffle(x, 2))),
            ("SpaceToDepth", (1, 2, 4, 2), (None, lambda t, x: f(t).pixel_unshuffle(x, 2))),
        )
        for mode, call in zip(("DCR", "CRD"), calls, strict=True)
    ),
    Case("Trilu", [(2, 3, 4)], op("Trilu", upper=True, k=1), lambda t, x: x.triu(1)),
    Case("Trilu lower", [(3, 4)], op("Trilu", upper=False, k=-1), lambda t, x: x.tril(-1)),
    resize("nearest", (1, 2, 5, 3), lambda t, x: f(t).interpolate(x, (5, 3)), rounding="floor",
           coordinate="asymmetric"),
    resize("nearest", (1, 2, 7, 2), scales=(1.0, 1.0, 2.5, 0.6)),
    resize("linear", (1, 2, 5, 3),
           lambda t, x: f(t).interpolate(x, (5, 3), mode="bilinear", align_corners=False)),
    resize("linear", (1, 3, 2, 7), coordinate="align_corners"),
    resize("linear", (1, 2, 7, 2), scales=(1.0, 1.0, 2.4, 0.6)),
    resize("linear", (1, 2, 2, 2), antialias=True),
    resize("cubic", (1, 2, 5, 3),
           lambda t, x: f(t).interpolate(x, (5, 3), mode="bicubic", align_corners=False)),
    resize("cubic", (1, 2, 5, 3), exclude_outside=True),
    Case("Resize same", [(2, 3)], op("Resize", sizes=(2, 3), mode="linear")),
]  # fmt: skip

_ELEMENTS = [[0, 2, 2], [1, -1, 1]]
_PAIRS = [[[0, 1], [2, 0]], [[0, 1], [-1, -1]]]


def scatter(opcode: str, word: str, torch: Loose, **given: Loose) -> Case:
    indices = _ELEMENTS if opcode == "ScatterElements" else _PAIRS
    shapes = [(3, 4), np.shape(indices)] if "axis" in given else [(3, 2, 2), (2, 2, 2)]
    build = indexed(opcode, indices, reduction=word, **given)
    return Case(f"{opcode} {word}", shapes, build, torch)


def _reduce(word: str) -> Loose:
    return lambda t, x, u: x.scatter_reduce(0, long(t, [[0, 2, 2], [1, 2, 1]]), u, word)


INDEXING = [
    Case("Gather", [(3, 2)], indexed("Gather", [[0, 2], [2, 1]]),
         lambda t, x: x[long(t, [[0, 2], [2, 1]])]),
    Case("Gather i32", [(3,)], indexed("Gather", 1, "i32")),
    Case("GatherAxis", [(2, 3, 2)], indexed("GatherAxis", [[0, -1], [2, 0]], axis=1),
         lambda t, x: x[:, long(t, [[0, 2], [2, 0]])]),
    Case("GatherAxis single", [(2, 3)], indexed("GatherAxis", 2, "i32", axis=-1),
         lambda t, x: x[:, 2]),
    Case("GatherElements", [(3, 4)], indexed("GatherElements", _ELEMENTS, axis=0),
         lambda t, x: x.gather(0, long(t, [[0, 2, 2], [1, 2, 1]]))),
    Case("GatherNd", [(3, 2, 2)], indexed("GatherNd", _PAIRS),
         lambda t, x: x[long(t, [[0, 2], [0, 2]]), long(t, [[1, 0], [1, 1]])]),
    Case("GatherNd batch", [(2, 3, 2)], indexed("GatherNd", [[[2], [0]], [[1], [1]]],
                                                batch_dims=1)),
    Case("GatherNd batches", [(2, 2, 3)], indexed("GatherNd", [[[2], [0]], [[1], [1]]], "i32",
                                                  batch_dims=2)),
    scatter("ScatterElements", "none", None, axis=0),
    scatter("ScatterElements", "add", _reduce("sum"), axis=0),
    scatter("ScatterElements", "mul", _reduce("prod"), axis=0),
    scatter("ScatterElements", "min", _reduce("amin"), axis=0),
    scatter("ScatterElements", "max", _reduce("amax"), axis=0),
    *(scatter("ScatterNd", word, None) for word in ("none", "add", "mul", "min", "max")),
    Case("ScatterRows", [(4, 2), (3, 2)], indexed("ScatterRows", [1, 3, 1])),
    Case("ScatterRows single", [(4, 2), (2,)], indexed("ScatterRows", -1)),
    Case("ScatterRows row", [(4, 2), (1, 2)], indexed("ScatterRows", 2)),
    Case("TopKValues", [(2, 4, 2)], op("TopKValues", k=2, axis=1),
         lambda t, x: x.topk(2, 1).values),
    Case("TopKValues least", [(5,)], op("TopKValues", k=3, axis=-1, largest=False),
         lambda t, x: x.topk(3, largest=False).values),
    Case("OneHot", [(2,)], indexed("OneHot", [[0, 2], [-1, 7]], at=0, depth=3, axis=1)),
    Case("DynamicSlice", [(4, 3)], indexed("DynamicSlice", [9, 1], sizes=(2, 2)),
         lambda t, x: x[2:4, 1:3]),
    Case("DynamicUpdate", [(4, 3), (2, 2)], indexed("DynamicUpdate", [1, -5], at=2)),
]  # fmt: skip

CASES = [
    *ELEMENTWISE, *REDUCTIONS, *NORMALIZATION, *PRODUCTS, *CONVOLUTION, *POOLING, *MOVEMENT,
    *INDEXING,
]  # fmt: skip
