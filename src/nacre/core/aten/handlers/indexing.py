"""Calls that take elements at places which a tensor names."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import Argument, AtenCall, ConstantTensor, Tensor
from nacre.core.aten.handlers.parts import slice_part
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MASK = (
    "a mask chooses elements when the model runs, so the shape of the result is not known",
    "keep the shape: `torch.where(mask, x, other)`",
)


def as_indices(call: AtenCall, argument: Argument, name: str) -> int:
    """Indices as a value, i64 unless they are i32; what is between two places is no index."""
    if isinstance(argument, bool | float) and float(argument).is_integer():
        argument = int(argument)  # in files in use 1, 1.0 and True are one constant
    value = call.as_value(argument, None, name)
    dtype = call.type_of(value).dtype
    if GRAPH_TYPES[dtype].kind not in ("signed", "unsigned"):
        raise Unsupported(f"`{name}` is of {dtype}, expected integers")
    return value if dtype == "i32" else call.cast(value, "i64")


def index_argument(call: AtenCall, name: str) -> int:
    """An argument that is indices."""
    return as_indices(call, call.get(name), name)


@handles("embedding.default")
def embedding(call: AtenCall) -> int:
    """Rows of a table."""
    return call.add("Gather", call.value("weight"), index_argument(call, "indices"))


@handles("index_select.default")
def index_select(call: AtenCall) -> int:
    """Parts of an axis by index; an index without axes is one place."""
    at = index_argument(call, "index")
    if call.type_of(at).rank == 0:
        at = call.reshape(at, (1,))
    return call.add("GatherAxis", call.value("self"), at, axis=call.axis())


@handles("gather.default")
def gather(call: AtenCall) -> int:
    """An index of an axis for each element; other axes may be cut."""
    at, axis, x = index_argument(call, "index"), call.axis(), call.value("self")
    dims, reach = call.type_of(x).shape, call.type_of(at).shape
    if not dims:
        return x
    if len(reach) != len(dims) or any(r > d for a, (r, d) in _pairs(reach, dims) if a != axis):
        raise Unsupported(f"an index {list(reach)} into a tensor {list(dims)}")
    x = slice_part(call, x, {a: (0, dim, 1) for a, dim in enumerate(reach) if a != axis})
    return call.add("GatherElements", x, at, axis=axis)


def _pairs(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[int, tuple[int, int]]]:
    return list(enumerate(zip(a, b, strict=True)))


def indices_by_axis(call: AtenCall, rank: int) -> tuple[list[int], list[Argument]]:
    """The axes that `indices` names and an index for each; masks become indices."""
    axes: list[int] = []
    indices: list[Argument] = []
    at = 0
    for index in call.get("indices", ()):
        if index is None:
            at += 1
            continue
        parts = _mask_to_indices(call, index)
        indices += parts
        axes += range(at, at + len(parts))
        at += len(parts)
    if at > rank or not axes:
        raise Unsupported(f"{at} indices for {rank} axes")
    return axes, indices


def _mask_to_indices(call: AtenCall, index: Argument) -> list[Argument]:
    if not isinstance(index, Tensor) or call.tensor_type(index).dtype not in ("bool", "u8"):
        return [index]
    mask = call.elements(index)
    if mask is None:
        raise Unsupported(*_MASK)
    return [part.astype(np.int64) for part in np.nonzero(mask)]


def index_tuples(call: AtenCall, indices: list[Argument]) -> int:
    """Index tuples, which the last axis holds, of indices that broadcast against each other."""
    known = [_known_elements(index) for index in indices]
    arrays = [array for array in known if array is not None]
    if len(arrays) == len(indices):
        return call.constant(np.stack(np.broadcast_arrays(*arrays), -1).astype(np.int64), "i64")
    values = [call.cast(as_indices(call, index, "indices"), "i64") for index in indices]
    try:
        shape = np.broadcast_shapes(*(call.type_of(value).shape for value in values))
    except ValueError:
        raise Unsupported("the indices do not broadcast against each other") from None
    parts = [call.reshape(call.broadcast_to(value, shape), (*shape, 1)) for value in values]
    return parts[0] if len(parts) == 1 else call.add("Concat", *parts, axis=len(shape))


def _known_elements(index: Argument) -> Array | None:
    if isinstance(index, ConstantTensor):
        return index.elements()
    return index if isinstance(index, np.ndarray) else None


@handles("index.Tensor", "_unsafe_index.Tensor")
def index(call: AtenCall) -> int:
    """Elements at indices of some axes, which broadcast against each other."""
    x, rank = call.value("self"), len(call.shape_of("self"))
    axes, indices = indices_by_axis(call, rank)
    if len(axes) == 1:
        return call.add("GatherAxis", x, as_indices(call, indices[0], "indices"), axis=axes[0])
    rest = [a for a in range(rank) if a not in axes]
    at = index_tuples(call, indices)
    picked = call.add("GatherNd", call.transpose(x, [*axes, *rest]), at)
    # Indices of neighbouring axes stand where the first of them was, others before all.
    if axes == list(range(axes[0], axes[0] + len(axes))) and axes[0] > 0:
        width = call.type_of(at).rank - 1
        before = [width + i for i in range(axes[0])]
        behind = range(width + axes[0], call.type_of(picked).rank)
        picked = call.transpose(picked, [*before, *range(width), *behind])
    return picked


@handles("one_hot.default")
def one_hot(call: AtenCall) -> int:
    """A new axis that is 1 at the index."""
    depth = call.integer("num_classes", -1)
    if depth < 0:
        elements = call.elements(call.get("self"))
        if elements is None:
            raise Unsupported("the number of classes depends on elements")
        depth = int(elements.max()) + 1
    values = call.constant(np.array([0, 1]), "i64")
    return call.add("OneHot", call.value("self"), values, depth=depth, axis=-1)
