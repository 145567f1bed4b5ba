"""A float model with encodings as a model that comes quantised: pairs of nodes at its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.onnx.encodings.encodings import Encoding, Encodings
from nacre.core.onnx.findings import refusal
from nacre.core.onnx.reading.files import OnnxModel, onnx, tensor_array
from nacre.core.rules.onnx import ONX11
from nacre.core.values import Array

_DOMAIN = "com.microsoft"  # whose nodes take integers of 4 and 16 bits in every opset
# Operations with weights, and along which axis of these their channels run.
_CHANNELS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "PRelu": 0}


def apply_encodings(read: OnnxModel, folder: Path | None, encodings: Encodings) -> None:
    """Change a model such that every tensor with an encoding is stored so; names stay."""
    graph = read.proto.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    made = {name for node in graph.node for name in node.output} | {v.name for v in graph.input}
    _require_known(encodings, weights.keys(), made - weights.keys())
    axes = _channel_axes(graph)
    for name, encoding in encodings.parameters.items():
        array = tensor_array(weights[name], folder, encodings.file, read.detached)
        _store_parameter(graph, weights[name], array, encoding, axes.get(name), encodings.file)
    _store_activations(graph, encodings)
    if not any(opset.domain == _DOMAIN for opset in read.proto.opset_import):
        read.proto.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))


def _require_known(encodings: Encodings, weights: Any, tensors: Any) -> None:  # noqa: ANN401
    for found, known, what in (
        (encodings.parameters, weights, "parameter"),
        (encodings.activations, tensors, "tensor"),
    ):
        for name in found:
            if name not in known:
                hint = did_you_mean(name, sorted(known)) or "they belong to another model"
                message = f"the model has no {what} {backquote(name)}"
                raise refusal(ONX11, encodings.file, message, hint)


def _channel_axes(graph: Any) -> dict[str, int]:  # noqa: ANN401 - onnx.GraphProto
    """The axis of each weight along which its channels run, by the node that takes it."""
    axes: dict[str, int] = {}
    for node in graph.node:
        if node.op_type == "Gemm":
            turned = next((a.i for a in node.attribute if a.name == "transB"), 0)
            axes.setdefault(node.input[1] if len(node.input) > 1 else "", 0 if turned else 1)
        elif node.op_type in _CHANNELS and len(node.input) > 1:
            axes.setdefault(node.input[1], _CHANNELS[node.op_type])
    return axes


def _store_parameter(
    graph: Any,  # noqa: ANN401
    tensor: Any,  # noqa: ANN401
    array: Array,
    encoding: Encoding,
    axis: int | None,
    file: str,
) -> None:
    """Stored integers in the place of a parameter, and a node that makes floats of them."""
    name, count = tensor.name, encoding.scales.size
    shape = [1] * array.ndim
    if count > 1:
        if axis is None or not array.ndim or array.shape[axis] != count:
            message = f"{count} scales for {backquote(name)} of the shape {list(array.shape)}"
            raise refusal(ONX11, file, message, "its channels are those of its node's outputs")
        shape[axis] = count
    low, high = _ends(encoding)
    scales, zeros = encoding.scales.reshape(shape), encoding.zeros.reshape(shape)
    stored = np.clip(np.rint(array.astype(np.float32) / scales) + zeros, low, high)
    kind = _element_type(encoding)
    graph.initializer.remove(tensor)
    values = stored.astype(np.int64).ravel().tolist()
    graph.initializer.append(onnx.helper.make_tensor(f"{name}/stored", kind, array.shape, values))
    along = 0 if axis is None else axis % array.ndim
    node = _node(graph, "DequantizeLinear", f"{name}/stored", name, name, encoding, along)
    graph.node.insert(0, node)


def _store_activations(graph: Any, encodings: Encodings) -> None:  # noqa: ANN401
    nodes, inputs = list(graph.node), {value.name for value in graph.input}
    made: list[Any] = []
    renamed = {name: f"{name}/encoded" for name in encodings.activations if name in inputs}
    for name, held in renamed.items():
        made += _pair(graph, name, held, encodings.activations[name])
    for node in nodes:
        for at, name in enumerate(node.input):
            node.input[at] = renamed.get(name, name)
        pairs: list[Any] = []
        for at, name in enumerate(node.output):
            if name in encodings.activations:
                node.output[at] = f"{name}/float"
                pairs += _pair(graph, f"{name}/float", name, encodings.activations[name])
        made += [node, *pairs]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in made]
    del graph.node[:]
    graph.node.extend(copies)


def _pair(graph: Any, source: str, target: str, encoding: Encoding) -> Iterator[Any]:  # noqa: ANN401
    stored = f"{encoding.name}/stored"
    yield _node(graph, "QuantizeLinear", source, stored, encoding.name, encoding, 1)
    yield _node(graph, "DequantizeLinear", stored, target, encoding.name, encoding, 1, again=True)


def _node(
    graph: Any,  # noqa: ANN401
    op: str,
    source: str,
    target: str,
    name: str,
    encoding: Encoding,
    axis: int,
    *,
    again: bool = False,
) -> Any:  # noqa: ANN401 - onnx.NodeProto
    """A node between floats and integers; scale and zero point are made once for a pair."""
    parts = [f"{name}/scale", f"{name}/zero"]
    if not again:
        shape = () if encoding.scales.size == 1 else encoding.scales.shape
        graph.initializer.extend([
            onnx.numpy_helper.from_array(encoding.scales.reshape(shape), parts[0]),
            onnx.helper.make_tensor(
                parts[1], _element_type(encoding), shape, encoding.zeros.ravel().tolist()
            ),
        ])  # fmt: skip
    return onnx.helper.make_node(
        op, [source, *parts], [target], name=f"{name}/{op}", domain=_DOMAIN, axis=axis
    )


def _element_type(encoding: Encoding) -> int:
    kinds: Mapping[int, str] = {4: "INT4", 8: "INT8", 16: "INT16"}
    name = kinds[encoding.bits]
    return int(getattr(onnx.TensorProto, name if encoding.is_symmetric else f"U{name}"))


def _ends(encoding: Encoding) -> tuple[int, int]:
    count = 1 << encoding.bits
    return (-(count // 2), count // 2 - 1) if encoding.is_symmetric else (0, count - 1)
