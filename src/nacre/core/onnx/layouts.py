"""Initialisers that a graph lays out in several ways, or repeats: there each use is computed.

One that is transposed on its way to its only use can be a constant in that layout. One of which an
element stands in several places stays one tensor: training changes them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.importing.origins import array_span
from nacre.core.onnx.folding.reference import LAID_OUT, fold
from nacre.core.onnx.reading.nodes import Node
from nacre.core.values import Array

_REPEATING = frozenset({"Expand", "Gather", "GatherElements", "GatherND", "Tile"})


def is_computed(
    builder: ModelBuilder,
    node: Node,
    operands: Sequence[Array | None],
    results: Sequence[Array],
) -> bool:
    """Whether a module computes a layout of an initialiser, as others share its elements."""
    source = operands[0]
    if not builder.keep_parameters or source is None or not builder.is_changeable(source):
        return False
    is_shared = builder.is_derived(source) or builder.is_shared(array_span(source))
    return is_shared or _repeats_elements(node, operands, results)


def _repeats_elements(
    node: Node, operands: Sequence[Array | None], results: Sequence[Array]
) -> bool:
    """Whether a layout of its first operand has an element of it several times."""
    source = operands[0]
    if node.op not in _REPEATING or source is None:
        return False
    if results[0].size > source.size:
        return True
    numbers = np.arange(source.size).reshape(source.shape)
    traced = fold(node, [numbers, *operands[1:]])
    return traced is None or np.unique(traced[0]).size < traced[0].size


def shared_initialisers(graph: Any) -> set[str]:  # noqa: ANN401 - onnx.GraphProto
    """The names of initialisers of which several layouts are used.

    Whether they have elements in common is not asked, but for those of one `Split`, which have not.
    """
    users = _users(graph)
    shared = set()
    for tensor in graph.initializer:
        ends = dict(_ends(tensor.name, users))
        makers = set(ends.values())
        is_split = len(makers) == 1 and None not in makers
        if len(ends) > 1 and not is_split:
            shared.add(tensor.name)
    return shared


def _users(graph: Any) -> dict[str, list[Any]]:  # noqa: ANN401 - onnx.GraphProto
    """Nodes by what they take, graphs inside of them included."""
    users: defaultdict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                for name in _outer_names(inner):
                    users[name].append(node)
    return users


def _outer_names(graph: Any) -> Iterator[str]:  # noqa: ANN401 - onnx.GraphProto
    waiting = [graph]
    while waiting:
        found = waiting.pop()
        for node in found.node:
            yield from node.input
            for attribute in node.attribute:
                waiting += (attribute.g, *attribute.graphs)


def _is_statistic(node: Any, name: str) -> bool:  # noqa: ANN401 - onnx.NodeProto
    """Whether a batch norm takes a tensor as the mean or the variance, which nobody learns."""
    return node.op_type == "BatchNormalization" and name in node.input[3:5]


def _ends(name: str, users: dict[str, list[Any]]) -> Iterator[tuple[str, int | None]]:
    """Layouts of a tensor that something else than a layout takes, with the `Split` of each."""
    waiting: list[tuple[str, int | None]] = [(name, None)]
    seen = {name}
    while waiting:
        found, split = waiting.pop()
        for node in users.get(found, ()):
            is_layout = node.op_type in LAID_OUT and node.input[:1] == [found] and not node.domain
            if not is_layout:
                yield (f"statistic {found}" if _is_statistic(node, found) else found), split
                continue
            maker = id(node) if node.op_type == "Split" and split is None else split
            outputs = [output for output in node.output if output not in seen]
            seen.update(outputs)
            waiting += [(output, maker) for output in outputs]
