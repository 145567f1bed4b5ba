"""Arithmetic on tensors that may be known: known ones stay known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx.findings import NOT_EMPTY, Unsound
from nacre.core.onnx.handlers.table import registered_handlers
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_FUNCTIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide,
              "And": np.logical_and}  # fmt: skip


def shape_of(node: OnnxNode, tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tensor.shape if isinstance(tensor, np.ndarray) else node.builder.type_of(tensor).shape


def optional_tensor(node: OnnxNode, index: int) -> Tensor | None:
    """An operand, where it is given."""
    return node.tensor(index) if node.has(index) else None


def replace_operands(
    node: OnnxNode, operands: Mapping[int, Tensor | None], count: int | None = None
) -> OnnxNode:
    """The same node with other operands in some places, and with the first `count` only."""
    size = node.count if count is None else count
    return OnnxNode(
        node.source, [operands.get(i, optional_tensor(node, i)) for i in range(size)], node.builder
    )


def delegate(node: OnnxNode, operation: str) -> int:
    """What the handler of another operation makes of a node: its first result."""
    made = registered_handlers()[operation](node)
    first = made if isinstance(made, int | np.ndarray) else made[0]
    return node.materialise(first)


def with_shape(node: OnnxNode, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """The same elements under another shape."""
    own = shape_of(node, tensor)
    if prod(own) != prod(dims):
        raise Unsound(f"an operand has the shape {list(own)}, expected {list(dims)}")
    if isinstance(tensor, np.ndarray):
        return tensor.reshape(tuple(dims))
    return node.reshape(tensor, dims)


def as_scalar(node: OnnxNode, tensor: Tensor) -> Tensor:
    """One number as a tensor of rank 0."""
    return with_shape(node, tensor, ())


def transpose(node: OnnxNode, tensor: Tensor, order: Sequence[int]) -> Tensor:
    """The axes in another order."""
    if len(shape_of(node, tensor)) != len(order):
        found = list(shape_of(node, tensor))
        raise Unsound(f"an operand has the shape {found}, expected {len(order)} axes")
    if isinstance(tensor, np.ndarray):
        return np.ascontiguousarray(tensor.transpose(tuple(order)))
    return node.transpose(tensor, order)


def cast_tensor(node: OnnxNode, tensor: Tensor, dtype: str) -> Tensor:
    """A tensor in another element type."""
    if isinstance(tensor, np.ndarray):
        return tensor.astype(GRAPH_TYPES[dtype].dtype)
    return node.cast(tensor, dtype)


def combine(node: OnnxNode, op: str, a: Tensor, b: Tensor) -> Tensor:
    """Two tensors element by element, in their own type."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return node.add("BinOp", node.materialise(a), node.materialise(b), op=op)
    broadcast(node, a, b)
    with np.errstate(all="ignore"):
        made: Array = np.asarray(_FUNCTIONS[op](a, b))
    return made


def broadcast(node: OnnxNode, *tensors: Tensor) -> tuple[int, ...]:
    """The shape that tensors stretch to together."""
    return _broadcast_shape(*(shape_of(node, tensor) for tensor in tensors))


def _broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        shown = " and ".join(str(list(dims)) for dims in shapes)
        raise Unsound(f"the shapes {shown} do not broadcast") from None


def broadcast_to(node: OnnxNode, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """A tensor stretched to a shape."""
    own, wanted = shape_of(node, tensor), tuple(dims)
    if own == wanted:
        return tensor
    if _broadcast_shape(own, wanted) != wanted:
        raise Unsound(f"the shape {list(own)} does not stretch to {list(dims)}")
    if isinstance(tensor, np.ndarray):
        return np.broadcast_to(tensor, wanted)
    return node.add("Broadcast", tensor, shape=wanted)


def repeat_along(node: OnnxNode, tensor: Tensor, axis: int, count: int) -> Tensor:
    """Each part along an axis several times, one after the other."""
    if count == 1:
        return tensor
    if isinstance(tensor, np.ndarray):
        return np.repeat(tensor, count, axis=axis)
    dims = shape_of(node, tensor)
    before, behind = dims[: axis + 1], dims[axis + 1 :]
    wide = node.add("Broadcast", node.reshape(tensor, (*before, 1, *behind)),
                   shape=(*before, count, *behind))  # fmt: skip
    return node.reshape(wide, (*dims[:axis], dims[axis] * count, *behind))


def slice_axis(node: OnnxNode, value: int, axis: int, start: int, end: int) -> int:
    """A part along one axis."""
    dims = node.builder.type_of(value).shape
    if not 0 <= start < end <= dims[axis]:
        reason = f"a part from {start} to {end} of {dims[axis]} has no elements"
        raise Unsupported(reason, NOT_EMPTY)
    if (start, end) == (0, dims[axis]):
        return value
    starts = tuple(start if a == axis else 0 for a in range(len(dims)))
    ends = tuple(end if a == axis else d for a, d in enumerate(dims))
    return node.add("Slice", value, starts=starts, ends=ends, steps=(1,) * len(dims))
