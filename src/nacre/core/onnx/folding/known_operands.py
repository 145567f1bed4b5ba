"""What the elements of known operands must be, whatever the others turn out to hold.

A node is asked before it is computed at import: the reference implementation of onnx wraps indices
and drops what lists have too many of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.values import Array

# Indices


def require_indices(node: OnnxNode) -> None:
    """Raise Unsound where a known index makes every run of a node fail."""
    check = _INDEXED.get(node.source.key)
    if check is not None:
        check(node)


def _along_axis(node: OnnxNode) -> None:
    """Indices into one axis."""
    indices, dims = node.known(1), node.shape(0)
    if indices is not None and dims:
        axis = node.axis(default=0)
        _require_inside(indices, axis, dims[axis])


def _by_tuples(node: OnnxNode) -> None:
    """Tuples along the last axis of the indices: one for each axis behind those of the batch."""
    indices, dims = node.known(1), node.shape(0)
    first = int(node.attribute("batch_dims", 0))
    if indices is None or not indices.ndim or not 0 <= first <= len(dims) - indices.shape[-1]:
        return  # shapes that do not fit are told by the handler
    for place in range(indices.shape[-1]):
        _require_inside(indices[..., place], first + place, dims[first + place])


def _require_inside(indices: Array, axis: int, size: int) -> None:
    """Raise Unsound for the first index that an axis lacks; negative ones count from behind."""
    if not indices.size or (indices.min() >= -size and indices.max() < size):
        return
    wrong = indices[(indices < -size) | (indices >= size)]
    allowed = f"{-size} to {size - 1}" if size else "none"
    message = f"the index {wrong.flat[0]} is outside of axis {axis}, which has the size {size}"
    raise Unsound(f"{message}; expected {allowed}", "give it an index that the axis has")


_INDEXED: Mapping[str, Callable[[OnnxNode], None]] = MappingProxyType(
    {
        **dict.fromkeys(("Gather", "GatherElements", "Scatter", "ScatterElements"), _along_axis),
        **dict.fromkeys(("GatherND", "ScatterND"), _by_tuples),
    }
)


# Lists


def require_lists(node: OnnxNode) -> None:
    """Raise Unsound where a Slice lacks a start or an end for an axis, or a step leads nowhere."""
    if node.source.key != "Slice":
        return
    names = ("starts", "ends", "axes", "steps")
    lists = {name: found for place, name in enumerate(names, 1)
             if (found := _numbers(node, name, place)) is not None}  # fmt: skip
    lengths = {name: found.size for name, found in lists.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        message = f"its lists differ in length: {shown}, expected as many of each"
        raise Unsound(message, "give one entry of each for every axis that is cut")
    steps = lists.get("steps", np.ones(1))
    if not steps.all():
        message = f"`steps` is 0 at place {np.argmin(steps != 0)}: such a step leads nowhere"
        raise Unsound(message, "make it 1, or another number; below 0 it runs backwards")


def _numbers(node: OnnxNode, name: str, place: int) -> Array | None:
    """Numbers that are an attribute before opset 10, which may be empty, a known operand since."""
    given = node.attributes.get(name)
    if given:
        return np.array(given)
    found = node.known(place)
    return None if found is None else np.ravel(found)
