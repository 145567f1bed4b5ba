"""The file of an ONNX model, and the one beside it that has large constants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from nacre._version import __version__
from nacre.base.elements import GRAPH_TYPES, bytes_needed
from nacre.base.files import file_set, is_stored_name_of
from nacre.base.source import Unreadable, read_bytes
from nacre.core.onnx.reading.files import STATE, onnx
from nacre.core.onnx_export.graph import Graph, Tensor, Value, unique
from nacre.core.onnx_export.types import CODES, raw_bytes

OPSET = 21
PRODUCER = "nacre"
IR_VERSION = 10
MOST_INLINE = 1 << 30  # bytes of constants in the model; protobuf ends at 2^31
_SMALL = 1024  # bytes that always stay in the model
_PAGE = 4096  # where tensors of the other file begin, so that readers can map them
_SUFFIX = ".data"


class StateNames(Struct, frozen=True):
    """The names of a state: an input, and the output that is its next value."""

    input: str
    output: str


class Interface(Struct, frozen=True):
    """What a model takes and gives."""

    inputs: list[Value]
    outputs: list[Value]
    states: list[StateNames]


class _ExternalSpan(Struct, frozen=True):
    """Where a tensor lies in the other file."""

    offset: int
    length: int


def write_model(path: Path, graph: Graph, interface: Interface, most_inline: int) -> None:
    """Write a model, whole or not at all; the model commits, large constants lie beside it."""
    beside = _place_tensors(graph.tensors, most_inline)
    with file_set(path) as files:
        old = _names_beside(path)
        name = ""
        if beside:
            name = files.add(path.name + _SUFFIX, _data(graph.tensors, beside)).stored
        files.commit([_bytes(_model(graph, interface, name, beside))], old=old)


def _bytes(model: Any) -> bytes:  # noqa: ANN401 - onnx.ModelProto
    return bytes(model.SerializeToString(deterministic=True))


def _names_beside(path: Path) -> set[str]:
    """The files that the model at a place refers to, as far as we have written it."""
    raw = read_bytes(path, limit=2 * MOST_INLINE)
    if isinstance(raw, Unreadable):
        return set()
    try:
        present = onnx.ModelProto.FromString(raw)
    except Exception:  # whatever the parser says: it is none of ours
        return set()
    entries = (e for t in present.graph.initializer for e in t.external_data if e.key == "location")
    own = path.name + _SUFFIX
    is_ours = present.producer_name == PRODUCER
    return {entry.value for entry in entries if is_ours and is_stored_name_of(entry.value, own)}


def _size(tensor: Tensor) -> int:
    return bytes_needed(int(tensor.array.size), GRAPH_TYPES[tensor.dtype])


def _place_tensors(tensors: list[Tensor], most_inline: int) -> dict[str, _ExternalSpan]:
    """Where tensors lie in the other file; nowhere, where the model can hold all."""
    if sum(map(_size, tensors)) <= most_inline:
        return {}
    spans: dict[str, _ExternalSpan] = {}
    offset = 0
    for tensor in tensors:
        length = _size(tensor)
        if length > _SMALL:
            spans[tensor.name] = _ExternalSpan(offset, length)
            offset += -(-length // _PAGE) * _PAGE
    return spans


def _data(tensors: list[Tensor], beside: dict[str, _ExternalSpan]) -> Iterator[bytes]:
    end = 0
    for tensor in tensors:
        place = beside.get(tensor.name)
        if place is not None:
            yield bytes(place.offset - end)
            yield raw_bytes(tensor.array, tensor.dtype)
            end = place.offset + place.length


def _model(graph: Graph, interface: Interface, name: str, beside: dict[str, _ExternalSpan]) -> Any:  # noqa: ANN401 - onnx.ModelProto
    helper = onnx.helper
    taken: dict[str, int] = {}
    nodes = [
        helper.make_node(
            node.operation,
            node.operands,
            node.results,
            name=unique(node.name, taken),
            **dict(sorted(node.attributes.items())),
        )
        for node in graph.nodes
    ]
    proto = helper.make_graph(
        nodes,
        "main",
        [_value_info(value) for value in interface.inputs],
        [_value_info(value) for value in interface.outputs],
        [_tensor(tensor, name, beside.get(tensor.name)) for tensor in graph.tensors],
    )
    model = helper.make_model(
        proto,
        producer_name=PRODUCER,
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    if interface.states:
        states = [{"input": state.input, "output": state.output} for state in interface.states]
        model.metadata_props.add(key=STATE, value=json.dumps(states))
    return model


def _value_info(value: Value) -> Any:  # noqa: ANN401 - onnx.ValueInfoProto
    return onnx.helper.make_tensor_value_info(value.name, CODES[value.dtype], value.shape)


def _tensor(tensor: Tensor, name: str, place: _ExternalSpan | None) -> Any:  # noqa: ANN401
    proto = onnx.TensorProto(
        name=tensor.name, data_type=CODES[tensor.dtype], dims=tensor.array.shape
    )
    if place is None:
        proto.raw_data = raw_bytes(tensor.array, tensor.dtype)
        return proto
    proto.data_location = onnx.TensorProto.EXTERNAL
    entries = {"location": name, "offset": place.offset, "length": place.length}
    for key, value in entries.items():
        proto.external_data.add(key=key, value=str(value))
    return proto
