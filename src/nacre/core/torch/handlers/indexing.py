"""Operations of ATen that take elements at places which a tensor names."""

from __future__ import annotations

from nacre.core.torch.handlers.shapes import sliced
from nacre.core.torch.handlers.table import handles
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import NEWER
from nacre.core.torch.use import AtenCall, Tensor, Value
from nacre.core.unsupported import Unsupported

_MASK = "a mask chooses elements when the model runs, so the shape of the result is not known"
_MASK_REWRITE = "keep the shape: `torch.where(mask, x, other)`"


def places(use: AtenCall, found: Tensor) -> int:
    """Indices as a value, i64 unless they are i32."""
    value = use.taken(found)
    return value if use.type_of(value).dtype == "i32" else use.cast(value, "i64")


@handles("embedding.default")
def embedding(use: AtenCall) -> int:
    """Rows of a table."""
    return use.add("Gather", use.value("weight"), places(use, use.get("indices")))


@handles("index_select.default")
def index_select(use: AtenCall) -> int:
    """Parts of an axis by index."""
    made = use.add("GatherAxis", use.value("self"), places(use, use.get("index")), axis=use.axis())
    return use.reshaped(made, use.shape)


@handles("gather.default")
def gather(use: AtenCall) -> int:
    """An index of an axis for each element; other axes may be cut."""
    at, axis = places(use, use.get("index")), use.axis()
    x = use.value("self")
    if use.type_of(x).rank == 0:
        return x
    reach = use.type_of(at).shape
    x = sliced(use, x, {a: (0, dim, 1) for a, dim in enumerate(reach) if a != axis})
    return use.add("GatherElements", x, at, axis=axis)


def without_masks(indices: list[Tensor]) -> list[Tensor]:
    """Indices with those in the place of masks that say the same, where these are known."""
    kinds = (torch().bool, torch().uint8)
    found: list[Tensor] = []
    for index in indices:
        if isinstance(index, torch().Tensor) and index.dtype in kinds:
            found += index.nonzero(as_tuple=True)
        else:
            found.append(index)
    return found


def chosen(use: AtenCall, shape: tuple[int, ...]) -> tuple[list[int], list[Tensor]]:
    """The axes that `indices` names and an index for each; known masks become indices."""
    axes: list[int] = []
    found: list[Tensor] = []
    at = 0
    for index in without_masks(use.get("indices")):
        if isinstance(index, Value) and use.type_of(index.id).dtype in ("bool", "u8"):
            raise Unsupported(_MASK, _MASK_REWRITE)
        if index is not None:
            found.append(index)
            axes.append(at)
        at += 1
    if at > len(shape):
        raise Unsupported(f"{at} indices for {len(shape)} axes", NEWER)
    return axes, found


def tuples(use: AtenCall, indices: list[Tensor]) -> int:
    """Index tuples, which the last axis holds, of indices that broadcast against each other."""
    library = torch()
    if not any(isinstance(index, Value) for index in indices):
        wide = [index.to(library.int64) for index in indices]
        return use.taken(library.stack(library.broadcast_tensors(*wide), -1))
    values = [use.cast(places(use, index), "i64") for index in indices]
    shapes = [use.type_of(value).shape for value in values]
    shape = tuple(library.broadcast_shapes(*shapes))
    parts = [use.reshaped(use.broadcast_to(value, shape), (*shape, 1)) for value in values]
    return parts[0] if len(parts) == 1 else use.add("Concat", *parts, axis=len(shape))


@handles("index.Tensor", "_unsafe_index.Tensor")
def index(use: AtenCall) -> int:
    """Elements at indices of some axes, which broadcast against each other."""
    x, dims = use.value("self"), use.shape_of("self")
    axes, indices = chosen(use, dims)
    if len(axes) == 1:
        made = use.add("GatherAxis", x, places(use, indices[0]), axis=axes[0])
        return use.reshaped(made, use.shape)
    rest = [a for a in range(len(dims)) if a not in axes]
    at = tuples(use, indices)
    made = use.add("GatherNd", use.transposed(x, [*axes, *rest]), at)
    # Indices of neighbouring axes stand where the first of them was, others before all.
    if axes == list(range(axes[0], axes[0] + len(axes))) and axes[0] > 0:
        width = use.type_of(at).rank - 1
        before = [width + i for i in range(axes[0])]
        behind = range(width + axes[0], use.type_of(made).rank)
        made = use.transposed(made, [*before, *range(width), *behind])
    return use.reshaped(made, use.shape)


@handles("one_hot.default")
def one_hot(use: AtenCall) -> int:
    """A new axis that is 1 at the index."""
    depth = use.shape[-1]
    values = use.taken(torch().tensor([0, 1]))
    return use.add("OneHot", use.value("self"), values, depth=depth, axis=-1)
