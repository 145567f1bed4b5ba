"""A decoder's graph: read once, brought into Core IR for any length of its cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nacre.core.canonical import canonicalise
from nacre.core.module import Module
from nacre.core.onnx.importer import finish_module, walk_read_model
from nacre.core.onnx.reading.files import OnnxModel, onnx, read_model
from nacre.llm.model.problems import refusal
from nacre.llm.onnx_decoder.ports import Ports, find_ports
from nacre.llm.rules.graph import LLM30

_GROUPED, _POSITION_OPERAND = "GroupQueryAttention", 9


@dataclass(frozen=True, eq=False)
class DecoderGraph:
    """An ONNX model with past and present."""

    name: str
    folder: Path
    ports: Ports
    read: OnnxModel

    @property
    def positions(self) -> str:
        """The input that says the places of tokens."""
        assert self.ports.positions is not None  # `read_graph` saw to it
        return self.ports.positions

    def module(self, past: int, tokens: int) -> Module:
        """What it computes of so many tokens after so many, in canonical form.

        Nothing is masked but what the model itself hides; inputs are tokens, their places and the
        cache.
        """
        ports = self.ports
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
            (ports.tokens, self.positions), (1, tokens)
        )
        cache = (1, ports.kv_heads, past, ports.head_size)
        shapes |= dict.fromkeys((port.past for port in ports.caches), cache)
        constants: dict[str, Any] = {}
        if ports.mask is not None:
            constants[ports.mask] = np.ones((1, past + tokens), np.int64)
        if ports.branch is not None:
            constants[ports.branch] = np.ones(1, np.bool_)
        walked = walk_read_model(self.read, self.name, self.folder, shapes, constants)
        return canonicalise(finish_module(*walked, None))


def read_graph(path: Path) -> DecoderGraph:
    """The decoder of an ONNX file; InputError where it is none."""
    read, name = read_model(path), str(path)
    ports = _with_positions(name, read.proto.graph, find_ports(name, read.proto.graph))
    return DecoderGraph(name, path.parent, ports, read)


def _with_positions(name: str, graph: Any, ports: Ports) -> Ports:  # noqa: ANN401 - GraphProto
    """Ports with an input for places, of which nodes are told that would count the cache."""
    counting = [node for node in graph.node if _counts_positions(node)]
    places = ports.positions
    if places is None:
        if not counting:
            message = "the graph has no input `position_ids`, and nothing in it counts positions"
            raise refusal(LLM30, name, message, "export it with `position_ids`")
        places, dims = _free_name(graph, "position_ids"), ["batch", "tokens"]
        added = onnx.helper.make_tensor_value_info(places, onnx.TensorProto.INT64, dims)
        graph.input.append(added)
    for node in counting:
        missing = _POSITION_OPERAND - len(node.input)
        node.input.extend([""] * missing)
        node.input.append(places)
    return replace(ports, positions=places)


def _counts_positions(node: Any) -> bool:  # noqa: ANN401 - onnx.NodeProto
    attributes: Mapping[str, Any] = {a.name: a for a in node.attribute}
    turns = "do_rotary" in attributes and attributes["do_rotary"].i
    return node.op_type == _GROUPED and bool(turns) and len(node.input) <= _POSITION_OPERAND


def _free_name(graph: Any, wanted: str) -> str:  # noqa: ANN401 - onnx.GraphProto
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    taken |= {tensor.name for tensor in graph.initializer}
    while wanted in taken:
        wanted += "_"
    return wanted
