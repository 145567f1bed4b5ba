"""Operations of ONNX that move elements, and those that ask for shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.core.onnx.findings import BIND, BY_ELEMENTS, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MOST_KNOWN = 1 << 20  # elements of one value that are worth knowing


def normalise_axes(axes: Sequence[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Axes counted from the front; each may be named once."""
    found = tuple(axis % rank if -rank <= axis < rank else -1 for axis in axes)
    if -1 in found or len(set(found)) < len(found):
        raise Unsound(f"`{name}` is {list(axes)}, expected different ones of {rank} axes")
    return found


@handles("Shape")
def shape(node: OnnxNode) -> Array:
    """The shape, which is known."""
    dims = node.shape(0)
    start, end = node.attribute("start", 0), node.attribute("end", None)
    return np.array(dims[slice(start, end)], np.int64)


@handles("Size")
def size(node: OnnxNode) -> Array:
    """The number of elements, which is known."""
    return np.array(prod(node.shape(0)), np.int64)


@handles("Constant")
def constant(node: OnnxNode) -> Array:
    """A tensor among the attributes."""
    kinds = {"value_float": np.float32, "value_int": np.int64, "value_floats": np.float32,
             "value_ints": np.int64}  # fmt: skip
    for name in ("value", "sparse_value"):
        if name in node.attributes:
            array: Array = node.attributes[name]
            return array
    for name, kind in kinds.items():
        if name in node.attributes:
            return np.array(node.attributes[name], kind)
    if not node.attributes:
        raise Unsound("it has no value", "give it the attribute `value`")
    raise Unsupported("it holds text", "make it a tensor of numbers")


@handles("ConstantOfShape")
def constant_of_shape(node: OnnxNode) -> Tensor:
    """One value everywhere."""
    dims = tuple(int(d) for d in np.ravel(node.require_known(0, "the shape")))
    value = np.ravel(node.attribute("value", np.zeros(1, np.float32)))
    if value.size != 1 or min(dims, default=0) < 0:
        raise Unsound(f"the shape is {list(dims)}, of {value.size} values")
    if prod(dims) <= _MOST_KNOWN:
        return np.broadcast_to(value[0], dims)
    return node.add("Broadcast", node.constant(value.reshape(())), shape=dims)


@handles("Reshape")
def reshape(node: OnnxNode) -> int:
    """Another shape; 0 keeps a size, -1 takes the rest."""
    wanted = node.ints("shape", 1)
    if wanted is None:
        raise Unsound("the shape is missing")
    own = node.shape(0)
    keeps = not node.attribute("allowzero", 0)
    dims = [own[i] if d == 0 and keeps and i < len(own) else d for i, d in enumerate(wanted)]
    return node.reshape(node.value(0), _with_rest(dims, prod(own)))


def _with_rest(dims: list[int], count: int) -> tuple[int, ...]:
    known = prod(d for d in dims if d != -1)
    if dims.count(-1) == 1 and known > 0:
        dims = [count // known if d == -1 else d for d in dims]
    return tuple(dims)


@handles("Flatten")
def flatten(node: OnnxNode) -> int:
    """A matrix: the axes before `axis`, and those from it on."""
    dims = node.shape(0)
    given = int(node.attribute("axis", 1))
    axis = given + len(dims) if given < 0 else given
    if not 0 <= axis <= len(dims):
        raise Unsound(f"`axis` is {given}, expected {-len(dims)} to {len(dims)}")
    return node.reshape(node.value(0), (prod(dims[:axis]), prod(dims[axis:])))


@handles("Squeeze")
def squeeze(node: OnnxNode) -> int:
    """Without axes of size 1."""
    dims = node.shape(0)
    axes = node.ints("axes", 1)
    if axes is None:
        axes = tuple(i for i, dim in enumerate(dims) if dim == 1)
    removed = set(normalise_axes(axes, len(dims)))
    if any(dims[a] != 1 for a in removed):
        raise Unsound(f"`axes` names {sorted(removed)} of the shape {list(dims)}")
    return node.reshape(node.value(0), [d for i, d in enumerate(dims) if i not in removed])


@handles("Unsqueeze")
def unsqueeze(node: OnnxNode) -> int:
    """With axes of size 1."""
    dims = list(node.shape(0))
    axes = node.ints("axes", 1)
    if axes is None:
        raise Unsound("`axes` is missing")
    rank = len(dims) + len(axes)
    for axis in sorted(normalise_axes(axes, rank)):
        dims.insert(axis, 1)
    return node.reshape(node.value(0), dims)


@handles("Transpose")
def transpose(node: OnnxNode) -> int:
    """The axes in another order; backwards where none is given."""
    rank = len(node.shape(0))
    order = node.attribute("perm", tuple(reversed(range(rank))))
    return node.transpose(node.value(0), [int(a) for a in order])


@handles("Expand")
def expand(node: OnnxNode) -> int:
    """Stretched by a shape, which broadcasts in both directions."""
    wanted = node.ints("shape", 1) or ()
    try:
        dims = np.broadcast_shapes(node.shape(0), wanted)
    except ValueError:
        raise Unsound(f"{list(node.shape(0))} and {list(wanted)} do not broadcast") from None
    if dims == node.shape(0):
        return node.value(0)
    return node.add("Broadcast", node.value(0), shape=tuple(int(d) for d in dims))


@handles("Concat")
def concat(node: OnnxNode) -> int:
    """Tensors after each other; those without elements play no part."""
    axis = node.axis(default=0)
    parts = [i for i in range(node.count) if 0 not in node.shape(i)]
    if len(parts) == 1:
        return node.value(parts[0])
    return node.add("Concat", *(node.value(i) for i in parts), axis=axis)


@handles("Gather")
def gather(node: OnnxNode) -> int:
    """Parts of an axis by index."""
    return node.add("GatherAxis", node.value(0), node.value(1), axis=node.axis(default=0))


@handles("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(node: OnnxNode) -> int:
    """Parts of the last axis by index."""
    indices = node.reshape(node.value(1), (prod(node.shape(1)),))
    made = node.add("GatherAxis", node.value(0), indices, axis=len(node.shape(0)) - 1)
    return node.reshape(made, (1, prod(node.shape(1)))) if len(node.shape(0)) == 1 else made


@handles("Compress")
def compress(node: OnnxNode) -> int:
    """The parts along an axis, or the elements, at which a condition holds that is known."""
    condition = node.known(1)
    if condition is None:
        raise Unsupported(BY_ELEMENTS, BIND)
    x, axis = node.value(0), 0
    if "axis" in node.attributes:
        axis = node.axis()
    else:
        x = node.reshape(x, (prod(node.shape(0)),))
    places = np.flatnonzero(condition)
    places = places[places < node.builder.type_of(x).shape[axis]]
    return node.add("GatherAxis", x, node.constant(places.astype(np.int64)), axis=axis)


@handles("GatherElements")
def gather_elements(node: OnnxNode) -> int:
    """An index of an axis for each element."""
    return node.add("GatherElements", node.value(0), node.value(1), axis=node.axis(default=0))


@handles("GatherND")
def gather_nd(node: OnnxNode) -> int:
    """Parts by index tuples."""
    dims = int(node.attribute("batch_dims", 0))
    return node.add("GatherNd", node.value(0), node.value(1), batch_dims=dims)


@handles("ScatterElements", "Scatter")
def scatter_elements(node: OnnxNode) -> int:
    """Elements replaced or combined by index."""
    values = (node.value(0), node.value(1), node.value(2))
    reduction = node.attribute("reduction", "none")
    return node.add("ScatterElements", *values, axis=node.axis(default=0), reduction=reduction)


@handles("ScatterND")
def scatter_nd(node: OnnxNode) -> int:
    """Parts replaced or combined by index tuples."""
    values = (node.value(0), node.value(1), node.value(2))
    return node.add("ScatterNd", *values, reduction=node.attribute("reduction", "none"))


@handles("Tile")
def tile(node: OnnxNode) -> int:
    """Repeated along every axis."""
    repeats = node.ints("repeats", 1) or ()
    return node.add("Tile", node.value(0), repeats=repeats)


@handles("DepthToSpace")
def depth_to_space(node: OnnxNode) -> int:
    """Channels to a finer plane."""
    block, mode = int(node.require("blocksize")), node.attribute("mode", "DCR")
    return node.add("DepthToSpace", node.value(0), block=block, mode=mode)


@handles("SpaceToDepth")
def space_to_depth(node: OnnxNode) -> int:
    """A plane to more channels."""
    block, mode = int(node.require("blocksize")), node.attribute("mode", "DCR")
    return node.add("SpaceToDepth", node.value(0), block=block, mode=mode)


@handles("Trilu")
def trilu(node: OnnxNode) -> int:
    """The upper or lower triangle."""
    k = node.ints("k", 1, [0]) or (0,)
    return node.add("Trilu", node.value(0), upper=bool(node.attribute("upper", 1)), k=k[0])


@handles("EyeLike")
def eye_like(node: OnnxNode) -> Array:
    """Ones on a diagonal, known from the shape."""
    from nacre.core.onnx.handlers.elementwise import element_name

    rows, columns = node.shape(0)
    kind = node.attribute("dtype", None)
    name = node.type(0).dtype if kind is None else element_name(int(kind))
    from nacre.base.elements import GRAPH_TYPES

    return np.eye(rows, columns, int(node.attribute("k", 0))).astype(GRAPH_TYPES[name].dtype)


@handles("OneHot")
def one_hot(node: OnnxNode) -> int:
    """A new axis that is on at the index; an index beyond its ends is nowhere on."""
    depth = int(np.ravel(node.require_known(1, "`depth`"))[0])
    dims = node.shape(0)
    axis, rank = int(node.attribute("axis", -1)), len(dims) + 1
    if depth < 1 or not -rank <= axis < rank:
        raise Unsound(f"`depth` is {depth}, `axis` is {axis} of {rank} axes")
    at = axis % rank
    indices = operand(node, 0).to("i64").reshape(*dims[:at], 1, *dims[at:])
    counted = indices.is_("Lt", 0).choose(indices + depth, indices)
    line = (depth, *[1] * (rank - at - 1))
    places = Expr(node, node.add("Iota", shape=line, axis=0, dtype="i64"))
    off, on = (operand(node, 2).rows(known_expr(node, np.array(i))) for i in (0, 1))
    return counted.is_("Eq", places).choose(on, off).value


@handles("TopK")
def top_k(node: OnnxNode) -> Sequence[Tensor]:
    """The k largest or smallest elements, and where they lie."""
    counts = node.ints("k", 1)
    if counts is None:
        raise Unsound("`k` is missing")
    given = {
        "k": counts[0],
        "axis": int(node.attribute("axis", -1)),
        "largest": bool(node.attribute("largest", 1)),
    }
    x = node.value(0)
    return [node.add("TopKValues", x, **given), node.add("TopKIndices", x, **given)]
