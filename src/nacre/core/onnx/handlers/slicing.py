"""Tensors that may be known, taken apart and put together: known ones stay known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.core.onnx.onnx_node import OnnxNode, Tensor, describe_tensor
from nacre.core.onnx.tensors import shape_of, slice_axis, with_shape
from nacre.core.unsupported import Unsupported


def slice_tensor(node: OnnxNode, tensor: Tensor, axis: int, start: int, end: int) -> Tensor:
    """The elements from `start` up to `end` along an axis."""
    if isinstance(tensor, np.ndarray):
        return tensor[(slice(None),) * axis + (slice(start, end),)]
    return slice_axis(node, tensor, axis, start, end)


def select_index(node: OnnxNode, tensor: Tensor, axis: int, index: int) -> Tensor:
    """One index of an axis, which goes away."""
    dims = shape_of(node, tensor)
    found = slice_tensor(node, tensor, axis, index, index + 1)
    return with_shape(node, found, dims[:axis] + dims[axis + 1 :])


def concatenate_tensors(node: OnnxNode, tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors after each other."""
    known = [t for t in tensors if isinstance(t, np.ndarray)]
    if len(known) == len(tensors):
        return np.concatenate(known, axis)
    if len(tensors) == 1:
        return tensors[0]
    return node.add("Concat", *(node.materialise(t) for t in tensors), axis=axis)


def stack(node: OnnxNode, tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of one type along a new axis."""
    types = {node.type_of(tensor) for tensor in tensors}
    if len(types) > 1:
        type_texts = " and ".join(sorted(map(describe_tensor, types))[:2])
        raise Unsupported(
            f"it collects tensors of several types: {type_texts}", "give them one shape"
        )
    dims = shape_of(node, tensors[0])
    wide = (*dims[:axis], 1, *dims[axis:])
    return concatenate_tensors(node, [with_shape(node, tensor, wide) for tensor in tensors], axis)
