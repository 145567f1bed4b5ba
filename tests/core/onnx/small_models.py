"""Small networks as ONNX models: a convolutional one and a transformer, with weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
F32 = np.float32


class Network:
    """Nodes and weights, added one after the other; each node gives one tensor."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def held(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *dims: int, scale: float = 0.3) -> str:
        return self.held((self.rng.standard_normal(dims) * scale).astype(F32))

    def add(self, op: str, *inputs: str, **given: Any) -> str:  # noqa: ANN401
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"n_{name}", **given))
        return name

    def model(self, inputs: dict[str, tuple[int, list[int]]], output: str, opset: int) -> Any:  # noqa: ANN401
        given = [helper.make_tensor_value_info(n, k, dims) for n, (k, dims) in inputs.items()]
        made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "network", given, made, self.weights)
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=9)


def convolutional(opset: int = 17) -> Any:  # noqa: ANN401
    """Convolutions with activations, a shortcut, poolings, a squeeze, a classifier."""
    net = Network(1)
    conv: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4}
    x = net.add("Conv", "x", net.weight(8, 3, 3, 3), net.weight(8), strides=[2, 2], **conv)
    norm = [net.held(np.abs(net.rng.standard_normal(8)).astype(F32) + F32(0.5)) for _ in range(4)]
    x = net.add("Relu", net.add("BatchNormalization", x, *norm))
    y = net.add("LeakyRelu", net.add("Conv", x, net.weight(8, 8, 3, 3), **conv), alpha=0.1)
    y = net.add("Relu", net.add("Add", net.add("Conv", y, net.weight(8, 8, 1, 1)), x))
    y = net.add("Concat", y, net.add("MaxPool", x, strides=[1, 1], **conv), axis=1)
    y = net.add("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Conv", y, net.weight(16, 1, 3, 3), group=16, **conv)
    gate = net.add("Conv", net.add("GlobalAveragePool", y), net.weight(16, 16, 1, 1))
    y = net.add("Mul", y, net.add("Sigmoid", gate))
    flat = net.add("Flatten", net.add("GlobalAveragePool", y))
    scores = net.add("Gemm", flat, net.weight(10, 16), net.weight(10), transB=1)
    y = net.add("Softmax", scores, axis=1)
    return net.model({"x": (TensorProto.FLOAT, [1, 3, 16, 16])}, y, opset)


_WIDTH, _HEADS, _WORDS, _LENGTH = 16, 2, 20, 6


def transformer(opset: int = 14) -> Any:  # noqa: ANN401
    """Embeddings and two blocks of attention; norms and Gelu are written out before opset 17."""
    net = Network(2)
    words = net.add("Gather", net.weight(_WORDS, _WIDTH), "ids")
    x = net.add("Add", words, net.weight(1, _LENGTH, _WIDTH))
    x = _normalised(net, x, opset)
    for _ in range(2):
        x = _normalised(net, net.add("Add", _attention(net, x), x), opset)
        inner = _gelu(net, _linear(net, x, _WIDTH, 2 * _WIDTH))
        x = _normalised(net, net.add("Add", _linear(net, inner, 2 * _WIDTH, _WIDTH), x), opset)
    return net.model({"ids": (TensorProto.INT64, [2, _LENGTH])}, x, opset)


def _linear(net: Network, x: str, rows: int, columns: int) -> str:
    return net.add("Add", net.weight(columns), net.add("MatMul", x, net.weight(rows, columns)))


def _attention(net: Network, x: str) -> str:
    apart = net.held(np.array([2, _LENGTH, _HEADS, _WIDTH // _HEADS]))
    sides = [net.add("Reshape", _linear(net, x, _WIDTH, _WIDTH), apart) for _ in range(3)]
    q, v = (net.add("Transpose", sides[i], perm=[0, 2, 1, 3]) for i in (0, 2))
    k = net.add("Transpose", sides[1], perm=[0, 2, 3, 1])
    scale = net.held(np.array(np.sqrt(_WIDTH // _HEADS), F32))
    shares = net.add("Softmax", net.add("Div", net.add("MatMul", q, k), scale), axis=3)
    made = net.add("Transpose", net.add("MatMul", shares, v), perm=[0, 2, 1, 3])
    joined = net.add("Reshape", made, net.held(np.array([2, _LENGTH, _WIDTH])))
    return _linear(net, joined, _WIDTH, _WIDTH)


def _gelu(net: Network, x: str) -> str:
    root, one, half = (net.held(np.array(v, F32)) for v in (np.sqrt(2), 1, 0.5))
    inner = net.add("Add", net.add("Erf", net.add("Div", x, root)), one)
    return net.add("Mul", net.add("Mul", x, inner), half)


def _normalised(net: Network, x: str, opset: int) -> str:
    scale, bias = net.weight(_WIDTH), net.weight(_WIDTH)
    if opset >= 17:
        return net.add("LayerNormalization", x, scale, bias, axis=-1)
    apart = net.add("Sub", x, net.add("ReduceMean", x, axes=[-1]))
    squares = net.add("Pow", apart, net.held(np.array(2, F32)))
    small = net.held(np.array(1e-5, F32))
    root = net.add("Sqrt", net.add("Add", net.add("ReduceMean", squares, axes=[-1]), small))
    return net.add("Add", net.add("Mul", net.add("Div", apart, root), scale), bias)


def recurrent(opset: int = 17) -> Any:  # noqa: ANN401
    """An LSTM in both directions, and a product."""
    net = Network(3)
    weights = [net.weight(2, 32, 6), net.weight(2, 32, 8), net.weight(2, 64)]
    made = net.add("LSTM", "x", *weights, hidden_size=8, direction="bidirectional")
    flat = net.add("Transpose", made, perm=[0, 2, 1, 3])
    rows = net.add("Reshape", flat, net.held(np.array([5, 2, 16])))
    y = _linear(net, rows, 16, 4)
    return net.model({"x": (TensorProto.FLOAT, [5, 2, 6])}, y, opset)


def inputs_of(model: Any, seed: int) -> dict[str, Array]:  # noqa: ANN401
    """Arrays for the inputs of one of these models."""
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for value in model.graph.input:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            made[value.name] = rng.integers(0, _WORDS, dims)
        else:
            made[value.name] = rng.standard_normal(dims).astype(F32)
    return made
