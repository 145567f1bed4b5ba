"""Operations of the domain com.microsoft on reals: several of ONNX in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from nacre.base.excerpt import backquote
from nacre.core.importing.products import product
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.linear import scale
from nacre.core.onnx.handlers.normalization import (
    add_layer_norm,
    add_rms_norm,
    moments,
    reciprocal_root,
)
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.tensors import broadcast_to, delegate, optional, replace_operands, shape_of
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array


class Activation(Struct, frozen=True):
    """A function that is fused to a product: an operation, and its parameters with defaults."""

    opcode: str
    op: str | None = None
    parameters: tuple[tuple[str, float], ...] = ()


_ACTIVATIONS: Mapping[str, Activation] = MappingProxyType(
    {
        "Relu": Activation("ReluNan"),
        "Tanh": Activation("Unary", "Tanh"),
        "Sigmoid": Activation("Unary", "Sigmoid"),
        "Softplus": Activation("Unary", "Softplus"),
        "Softsign": Activation("Unary", "Softsign"),
        "LeakyRelu": Activation("LeakyRelu", None, (("alpha", 0.01),)),
        "Elu": Activation("Elu", None, (("alpha", 1.0),)),
        "Clip": Activation("Clip", None, (("min", float("-inf")), ("max", float("inf")))),
        "HardSigmoid": Activation("HardSigmoid", None, (("alpha", 0.2), ("beta", 0.5))),
        "HardSwish": Activation("HardSwish"),
    }
)


def apply_activation(use: OnnxNode, value: int, given: Sequence[float | None]) -> int:
    """The function that the attribute `activation` names, of a value."""
    name = use.attribute("activation", "") or ""
    if not name:
        return value
    found = _ACTIVATIONS.get(name)
    if found is None:
        reason = f"`activation` is {backquote(name)}, expected one of {', '.join(_ACTIVATIONS)}"
        raise Unsupported(reason, "write the activation as a node of its own")
    named = {"op": found.op} if found.op else {}
    numbers = list(given) + [None] * len(found.parameters)
    filled = {
        key: float(default if number is None else number)
        for (key, default), number in zip(found.parameters, numbers, strict=False)
    }
    return use.add(found.opcode, value, **named, **filled)


@handles("com.microsoft.FusedConv")
def fused_conv(use: OnnxNode) -> int:
    """A convolution, a tensor added to it, and a function of the sum."""
    made = delegate(replace_operands(use, {}, min(use.count, 3)), "Conv")
    if use.has(3):
        made = use.add("BinOp", made, use.value(3), op="Add")
    return apply_activation(use, made, use.attribute("activation_params", ()))


@handles("com.microsoft.FusedGemm")
def fused_gemm(use: OnnxNode) -> int:
    """A Gemm and a function of it."""
    return apply_activation(use, delegate(use, "Gemm"), _named_parameters(use))


def _named_parameters(use: OnnxNode) -> list[float | None]:
    return [use.attribute(f"activation_{name}") for name in ("alpha", "beta", "gamma")]


@handles(
    "com.microsoft.FusedMatMul",
    "com.microsoft.TransposeMatMul",
    "com.microsoft.FusedMatMulActivation",
)
def fused_matmul(use: OnnxNode) -> int:
    """Alpha times the product of matrices, each turned in its last axes or in its batch."""
    sides = []
    for index, side in enumerate("AB"):
        rank = len(use.shape(index))
        order = list(range(rank))
        if use.attribute(f"transBatch{side}", 0) and rank > 2:
            order = [*order[1:-1], 0, rank - 1]
        if use.attribute(f"trans{side}", 0) and rank > 1:
            order[-2:] = reversed(order[-2:])
        sides.append(use.transpose(use.value(index), order))
    alpha = float(use.attribute("alpha", 1.0))
    made = scale(use, product(use, *sides), alpha, use.type(0).dtype)
    return apply_activation(use, made, _named_parameters(use))


def _plus(use: OnnxNode, value: int, tensor: Tensor | None) -> int:
    """A value plus a tensor that stretches to it."""
    if tensor is None:
        return value
    broadcast_to(use, tensor, use.builder.type_of(value).shape)
    return use.add("BinOp", value, use.materialise(tensor), op="Add")


@handles("com.microsoft.BiasGelu", "com.microsoft.FastGelu")
def bias_gelu(use: OnnxNode) -> int:
    """Gelu of x plus a bias; the fast one by Tanh."""
    x = _plus(use, use.value(0), optional(use, 1))
    approximate = "tanh" if use.node.op == "FastGelu" else "none"
    return use.add("Gelu", x, approximate=approximate)


@handles("com.microsoft.QuickGelu")
def quick_gelu(use: OnnxNode) -> int:
    """X times Sigmoid of alpha x."""
    alpha = use.scalar(float(use.attribute("alpha", 1.702)), use.type(0).dtype)
    inner = use.add("BinOp", use.value(0), alpha, op="Mul")
    return use.add("BinOp", use.value(0), use.add("Unary", inner, op="Sigmoid"), op="Mul")


@handles("com.microsoft.BiasAdd")
def bias_add(use: OnnxNode) -> int:
    """X plus a bias plus a residual."""
    return _plus(use, _plus(use, use.value(0), use.tensor(1)), use.tensor(2))


@handles("com.microsoft.BiasSoftmax")
def bias_softmax(use: OnnxNode) -> int:
    """Softmax of x plus a bias, over all axes from one on together."""
    dims, axis = use.shape(0), use.axis(default=1)
    own = list(shape_of(use, use.tensor(1)))
    if len(own) != len(dims):
        reason = f"the bias has the shape {own}, expected as many axes as {list(dims)}"
        raise Unsupported(reason, "reshape the bias, or write Add and Softmax apart")
    total = _plus(use, use.value(0), use.tensor(1))
    flat = use.reshape(total, (prod(dims[:axis]), prod(dims[axis:])))
    return use.reshape(use.add("Softmax", flat, axis=1), dims)


def _sum_with_bias(use: OnnxNode, bias: int) -> int:
    """Operands 0 and 1, of which the second may lack the batch, plus a bias."""
    total = _plus(use, use.value(0), use.tensor(1))
    return _plus(use, total, optional(use, bias))


def _or_none(use: OnnxNode, index: int, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Results where any output from `index` on is asked for."""
    return list(tensors) if any(use.node.outputs[index:]) else []


@handles("com.microsoft.SkipLayerNormalization")
def skip_layer_norm(use: OnnxNode) -> Sequence[Tensor]:
    """LayerNormalization of a sum; also mean, 1 / deviation and the sum."""
    total, epsilon = _sum_with_bias(use, 4), float(use.attribute("epsilon", 1e-12))
    last = len(use.shape(0)) - 1
    made = add_layer_norm(use, total, use.tensor(2), optional(use, 3), last, epsilon)
    more = moments(use, total, last, epsilon, "f32") if any(use.node.outputs[1:3]) else [total] * 2
    return [made, *_or_none(use, 1, [*more, total])]


@handles("com.microsoft.SkipSimplifiedLayerNormalization")
def skip_rms_norm(use: OnnxNode) -> Sequence[Tensor]:
    """RMSNormalization of a sum; also 1 / root and the sum."""
    total, epsilon = _sum_with_bias(use, 3), float(use.attribute("epsilon", 1e-12))
    last = len(use.shape(0)) - 1
    made = add_rms_norm(use, total, use.tensor(2), last, epsilon)
    if len(use.node.outputs) > 1 and use.node.outputs[1]:
        reason = f"its output `{use.node.outputs[1]}`, a mean, is not defined"
        raise Unsupported(reason, "leave the output out")
    if not any(use.node.outputs[2:]):
        return [made]
    root = total
    if use.node.outputs[2]:
        root = reciprocal_root(use, use.cast(total, "f32"), (last,), epsilon)
    return [made, total, root, total]


@handles("com.microsoft.EmbedLayerNormalization")
def embed_layer_norm(use: OnnxNode) -> Sequence[Tensor]:
    """Embeddings of words, places and segments, added and normalised."""
    ids = use.shape(0)
    if len(ids) != 2:
        raise Unsound(f"the word ids have the shape {list(ids)}, expected two axes")
    batch, length = ids
    total = _rows(use, 2, use.tensor(0))
    places: Tensor = np.arange(length, dtype=np.int64)[None]
    total = _plus(use, total, _rows(use, 3, use.tensor(8) if use.has(8) else places))
    if use.has(1) and use.has(4):
        total = _plus(use, total, _rows(use, 4, use.tensor(1)))
    epsilon = float(use.attribute("epsilon", 1e-12))
    made = add_layer_norm(use, total, use.tensor(5), optional(use, 6), 2, epsilon)
    return [made, *_or_none(use, 1, [_word_counts(use, batch), total])]


def _rows(use: OnnxNode, table: int, indices: Tensor) -> int:
    return use.add("GatherAxis", use.value(table), use.materialise(indices), axis=0)


def _word_counts(use: OnnxNode, batch: int) -> Tensor:
    """How many ones the mask has; 0 without one."""
    if not use.has(7):
        zeros: Array = np.zeros(batch, np.int32)
        return zeros
    ones = use.add("Compare", use.value(7), use.scalar(1, use.type(7).dtype), op="Eq")
    return use.add("Sum", use.cast(ones, "i32"), axes=(1,), keepdims=False)
