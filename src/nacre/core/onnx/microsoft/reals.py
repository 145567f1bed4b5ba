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
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import (
    broadcast_to,
    delegate,
    optional_tensor,
    replace_operands,
    shape_of,
)
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


def apply_activation(node: OnnxNode, value: int, given: Sequence[float | None]) -> int:
    """The function that the attribute `activation` names, of a value."""
    name = node.attribute("activation", "") or ""
    if not name:
        return value
    activation = _ACTIVATIONS.get(name)
    if activation is None:
        reason = f"`activation` is {backquote(name)}, expected one of {', '.join(_ACTIVATIONS)}"
        raise Unsupported(reason, "write the activation as a node of its own")
    named = {"op": activation.op} if activation.op else {}
    numbers = list(given) + [None] * len(activation.parameters)
    filled = {
        key: float(default if number is None else number)
        for (key, default), number in zip(activation.parameters, numbers, strict=False)
    }
    return node.add(activation.opcode, value, **named, **filled)


@handles("com.microsoft.FusedConv")
def fused_conv(node: OnnxNode) -> int:
    """A convolution, a tensor added to it, and a function of the sum."""
    made = delegate(replace_operands(node, {}, min(node.count, 3)), "Conv")
    if node.has(3):
        made = node.add("BinOp", made, node.value(3), op="Add")
    return apply_activation(node, made, node.attribute("activation_params", ()))


@handles("com.microsoft.FusedGemm")
def fused_gemm(node: OnnxNode) -> int:
    """A Gemm and a function of it."""
    return apply_activation(node, delegate(node, "Gemm"), _named_parameters(node))


def _named_parameters(node: OnnxNode) -> list[float | None]:
    return [node.attribute(f"activation_{name}") for name in ("alpha", "beta", "gamma")]


@handles(
    "com.microsoft.FusedMatMul",
    "com.microsoft.TransposeMatMul",
    "com.microsoft.FusedMatMulActivation",
)
def fused_matmul(node: OnnxNode) -> int:
    """Alpha times the product of matrices, each turned in its last axes or in its batch."""
    sides = []
    for index, side in enumerate("AB"):
        rank = len(node.shape(index))
        order = list(range(rank))
        if node.attribute(f"transBatch{side}", 0) and rank > 2:
            order = [*order[1:-1], 0, rank - 1]
        if node.attribute(f"trans{side}", 0) and rank > 1:
            order[-2:] = reversed(order[-2:])
        sides.append(node.transpose(node.value(index), order))
    alpha = float(node.attribute("alpha", 1.0))
    scaled = scale(node, product(node, *sides), alpha, node.type(0).dtype)
    return apply_activation(node, scaled, _named_parameters(node))


def _add_tensor(node: OnnxNode, value: int, tensor: Tensor | None) -> int:
    """A value plus a tensor that stretches to it."""
    if tensor is None:
        return value
    broadcast_to(node, tensor, node.builder.type_of(value).shape)
    return node.add("BinOp", value, node.materialise(tensor), op="Add")


@handles("com.microsoft.BiasGelu", "com.microsoft.FastGelu")
def bias_gelu(node: OnnxNode) -> int:
    """Gelu of x plus a bias; the fast one by Tanh."""
    x = _add_tensor(node, node.value(0), optional_tensor(node, 1))
    approximate = "tanh" if node.op == "FastGelu" else "none"
    return node.add("Gelu", x, approximate=approximate)


@handles("com.microsoft.QuickGelu")
def quick_gelu(node: OnnxNode) -> int:
    """X times Sigmoid of alpha x."""
    alpha = node.scalar(float(node.attribute("alpha", 1.702)), node.type(0).dtype)
    inner = node.add("BinOp", node.value(0), alpha, op="Mul")
    return node.add("BinOp", node.value(0), node.add("Unary", inner, op="Sigmoid"), op="Mul")


@handles("com.microsoft.BiasAdd")
def bias_add(node: OnnxNode) -> int:
    """X plus a bias plus a residual."""
    return _add_tensor(node, _add_tensor(node, node.value(0), node.tensor(1)), node.tensor(2))


@handles("com.microsoft.BiasSoftmax")
def bias_softmax(node: OnnxNode) -> int:
    """Softmax of x plus a bias, over all axes from one on together."""
    dims, axis = node.shape(0), node.axis(default=1)
    own = list(shape_of(node, node.tensor(1)))
    if len(own) != len(dims):
        reason = f"the bias has the shape {own}, expected as many axes as {list(dims)}"
        raise Unsupported(reason, "reshape the bias, or write Add and Softmax apart")
    total = _add_tensor(node, node.value(0), node.tensor(1))
    flat = node.reshape(total, (prod(dims[:axis]), prod(dims[axis:])))
    return node.reshape(node.add("Softmax", flat, axis=1), dims)


def _sum_with_bias(node: OnnxNode, bias: int) -> int:
    """Operands 0 and 1, of which the second may lack the batch, plus a bias."""
    total = _add_tensor(node, node.value(0), node.tensor(1))
    return _add_tensor(node, total, optional_tensor(node, bias))


def _results_if_asked(node: OnnxNode, index: int, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Results where any output from `index` on is asked for."""
    return list(tensors) if any(node.outputs[index:]) else []


@handles("com.microsoft.SkipLayerNormalization")
def skip_layer_norm(node: OnnxNode) -> Sequence[Tensor]:
    """LayerNormalization of a sum; also mean, 1 / deviation and the sum."""
    total, epsilon = _sum_with_bias(node, 4), float(node.attribute("epsilon", 1e-12))
    last = len(node.shape(0)) - 1
    made = add_layer_norm(node, total, node.tensor(2), optional_tensor(node, 3), last, epsilon)
    more = moments(node, total, last, epsilon, "f32") if any(node.outputs[1:3]) else [total] * 2
    return [made, *_results_if_asked(node, 1, [*more, total])]


@handles("com.microsoft.SkipSimplifiedLayerNormalization")
def skip_rms_norm(node: OnnxNode) -> Sequence[Tensor]:
    """RMSNormalization of a sum; also 1 / root and the sum."""
    total, epsilon = _sum_with_bias(node, 3), float(node.attribute("epsilon", 1e-12))
    last = len(node.shape(0)) - 1
    norm = add_rms_norm(node, total, node.tensor(2), last, epsilon)
    if len(node.outputs) > 1 and node.outputs[1]:
        reason = f"its output `{node.outputs[1]}`, a mean, is not defined"
        raise Unsupported(reason, "leave the output out")
    if not any(node.outputs[2:]):
        return [norm]
    root = total
    if node.outputs[2]:
        root = reciprocal_root(node, node.cast(total, "f32"), (last,), epsilon)
    return [norm, total, root, total]


@handles("com.microsoft.EmbedLayerNormalization")
def embed_layer_norm(node: OnnxNode) -> Sequence[Tensor]:
    """Embeddings of words, places and segments, added and normalised."""
    ids = node.shape(0)
    if len(ids) != 2:
        raise Unsound(f"the word ids have the shape {list(ids)}, expected two axes")
    batch, length = ids
    total = _rows(node, 2, node.tensor(0))
    places: Tensor = np.arange(length, dtype=np.int64)[None]
    total = _add_tensor(node, total, _rows(node, 3, node.tensor(8) if node.has(8) else places))
    if node.has(1) and node.has(4):
        total = _add_tensor(node, total, _rows(node, 4, node.tensor(1)))
    epsilon = float(node.attribute("epsilon", 1e-12))
    norm = add_layer_norm(node, total, node.tensor(5), optional_tensor(node, 6), 2, epsilon)
    return [norm, *_results_if_asked(node, 1, [_word_counts(node, batch), total])]


def _rows(node: OnnxNode, table: int, indices: Tensor) -> int:
    return node.add("GatherAxis", node.value(table), node.materialise(indices), axis=0)


def _word_counts(node: OnnxNode, batch: int) -> Tensor:
    """How many ones the mask has; 0 without one."""
    if not node.has(7):
        zeros: Array = np.zeros(batch, np.int32)
        return zeros
    ones = node.add("Compare", node.value(7), node.scalar(1, node.type(7).dtype), op="Eq")
    return node.add("Sum", node.cast(ones, "i32"), axes=(1,), keepdims=False)
