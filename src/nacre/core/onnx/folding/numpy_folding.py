"""The nodes that shapes are made of, on known tensors, computed at once.

Models have hundreds of them. The reference implementation of onnx builds a model for each, which
takes a thousand times as long and leaves memory behind; it is asked for whatever has no form here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from nacre.core.onnx.reading.files import onnx
from nacre.core.onnx.reading.nodes import Node
from nacre.core.values import Array

Arrays = Sequence[Array]
Fold = Callable[[Node, Arrays], Array | None]

_WHOLE = "iub"  # kinds of NumPy: integers and truth values
_PLAIN = frozenset("?bBhHiIlLqQfd")  # what NumPy casts as ONNX says


def fold_with_numpy(node: Node, arrays: Sequence[Array | None]) -> Array | None:
    """The only output of a node; None where the reference implementation has to be asked."""
    first, fold = _FORMS.get(node.op, (0, None))
    known = [array for array in arrays if array is not None]
    if fold is None or node.opset < first or len(known) < len(arrays) or len(node.outputs) != 1:
        return None
    try:
        folded = fold(node, known)
    except (ValueError, LookupError, TypeError, ArithmeticError):
        return None  # whatever is wrong is said by those who come next
    return None if folded is None else np.asarray(folded)  # NumPy has scalars that are no arrays


def _squeeze(node: Node, arrays: Arrays) -> Array | None:
    axes = _axes(node, arrays)
    return np.squeeze(arrays[0], axes) if axes else None  # without any all may be meant


def _unsqueeze(node: Node, arrays: Arrays) -> Array:
    return np.expand_dims(arrays[0], _axes(node, arrays))


def _axes(node: Node, arrays: Arrays) -> tuple[int, ...]:
    """Axes are an operand since opset 13."""
    given = arrays[1].tolist() if len(arrays) > 1 else node.attributes["axes"]
    return tuple(given)


def _reshape(node: Node, arrays: Arrays) -> Array:
    x, shape = arrays
    wanted = shape.tolist()
    if not node.attributes.get("allowzero", 0):
        wanted = [x.shape[at] if n == 0 else n for at, n in enumerate(wanted)]
    return x.reshape(wanted)


def _cast(node: Node, arrays: Arrays) -> Array | None:
    (x,), dtype = arrays, onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"])
    is_plain = x.dtype.kind in _WHOLE and {x.dtype.char, dtype.char} <= _PLAIN
    return x.astype(dtype) if is_plain else None


def _concat(node: Node, arrays: Arrays) -> Array | None:
    is_one_type = len({array.dtype for array in arrays}) == 1
    return np.concatenate(arrays, node.attributes["axis"]) if is_one_type else None


def _slice(node: Node, arrays: Arrays) -> Array | None:
    x, starts, ends, *rest = arrays
    axes = rest[0].tolist() if rest else list(range(len(starts)))
    if (
        len({len(starts), len({axis % x.ndim for axis in axes}), *map(len, [ends, axes, *rest])})
        > 1
    ):
        return None  # one start and one end for each axis, which is named once
    if len(rest) > 1 and (rest[1] != 1).any():
        return None
    taken = [slice(None)] * x.ndim
    for axis, start, end in zip(axes, starts.tolist(), ends.tolist(), strict=True):
        taken[axis] = slice(start, end)
    return x[tuple(taken)]


def _gather(node: Node, arrays: Arrays) -> Array:
    x, indices = arrays
    return np.take(x, indices, node.attributes.get("axis", 0))


def _shape(node: Node, arrays: Arrays) -> Array | None:
    rank = arrays[0].ndim
    start, end = node.attributes.get("start", 0), node.attributes.get("end", rank)
    if not (-rank <= start <= rank and -rank <= end <= rank):
        return None
    return np.array(arrays[0].shape[start:end], np.int64)


def _transpose(node: Node, arrays: Arrays) -> Array:
    return arrays[0].transpose(node.attributes["perm"])


# From which opset on, and how: before it the node has other operands.
_FORMS: Mapping[str, tuple[int, Fold]] = MappingProxyType(
    {
        "Reshape": (5, _reshape),
        "Cast": (6, _cast),
        "Concat": (4, _concat),
        "Slice": (10, _slice),
        "Gather": (1, _gather),
        "Shape": (1, _shape),
        "Squeeze": (1, _squeeze),
        "Unsqueeze": (1, _unsqueeze),
        "Transpose": (1, _transpose),
    }
)
