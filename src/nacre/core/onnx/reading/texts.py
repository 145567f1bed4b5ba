"""Whether the names in a model are text: protobuf hands on bytes where they are not UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def has_wrong_text(model: Any) -> bool:  # noqa: ANN401 - onnx.ModelProto
    """Whether anything that the importer takes for text is something else."""
    return any(isinstance(text, bytes) for text in _texts(model))


def _texts(model: Any) -> Iterator[object]:  # noqa: ANN401
    for entry in model.opset_import:
        yield entry.domain
    graphs = [model.graph]
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        yield from (entry.domain for entry in function.opset_import)
        yield from _attributes(function.attribute_proto, graphs)
        yield from _nodes(function.node, graphs)
    while graphs:
        graph = graphs.pop()
        yield from _values((*graph.input, *graph.output))
        for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
            yield from _tensor(tensor)
        yield from _nodes(graph.node, graphs)


def _nodes(nodes: Iterable[Any], graphs: list[Any]) -> Iterator[object]:
    """The texts of nodes; the graphs that they hold are put aside."""
    for node in nodes:
        yield from (node.op_type, node.domain, node.name, node.overload)
        yield from node.input
        yield from node.output
        yield from _attributes(node.attribute, graphs)


def _attributes(attributes: Iterable[Any], graphs: list[Any]) -> Iterator[object]:
    for attribute in attributes:
        yield from (attribute.name, attribute.ref_attr_name)
        if attribute.HasField("t"):
            yield from _tensor(attribute.t)
        if attribute.HasField("g"):
            graphs.append(attribute.g)
        graphs += attribute.graphs


def _values(values: Iterable[Any]) -> Iterator[object]:
    for value in values:
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


def _tensor(tensor: Any) -> Iterator[object]:  # noqa: ANN401 - onnx.TensorProto
    yield tensor.name
    for entry in tensor.external_data:
        yield from (entry.key, entry.value)
