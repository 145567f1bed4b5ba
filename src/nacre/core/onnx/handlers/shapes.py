"""Operations of ONNX that move elements, and those that ask for shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.core.onnx.findings import BIND, BY_ELEMENTS, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.use import OnnxNode, Tensor
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
def shape(use: OnnxNode) -> Array:
    """The shape, which is known."""
    dims = use.shape(0)
    start, end = use.attribute("start", 0), use.attribute("end", None)
    return np.array(dims[slice(start, end)], np.int64)


@handles("Size")
def size(use: OnnxNode) -> Array:
    """The number of elements, which is known."""
    return np.array(prod(use.shape(0)), np.int64)


@handles("Constant")
def constant(use: OnnxNode) -> Array:
    """A tensor among the attributes."""
    kinds = {"value_float": np.float32, "value_int": np.int64, "value_floats": np.float32,
             "value_ints": np.int64}  # fmt: skip
    for name in ("value", "sparse_value"):
        if name in use.node.attributes:
            found: Array = use.node.attributes[name]
            return found
    for name, kind in kinds.items():
        if name in use.node.attributes:
            return np.array(use.node.attributes[name], kind)
    if not use.node.attributes:
        raise Unsound("it has no value", "give it the attribute `value`")
    raise Unsupported("it holds text", "make it a tensor of numbers")


@handles("ConstantOfShape")
def constant_of_shape(use: OnnxNode) -> Tensor:
    """One value everywhere."""
    dims = tuple(int(d) for d in np.ravel(use.require_known(0, "the shape")))
    value = np.ravel(use.attribute("value", np.zeros(1, np.float32)))
    if value.size != 1 or min(dims, default=0) < 0:
        raise Unsound(f"the shape is {list(dims)}, of {value.size} values")
    if prod(dims) <= _MOST_KNOWN:
        return np.broadcast_to(value[0], dims)
    return use.add("Broadcast", use.constant(value.reshape(())), shape=dims)


@handles("Reshape")
def reshape(use: OnnxNode) -> int:
    """Another shape; 0 keeps a size, -1 takes the rest."""
    wanted = use.ints("shape", 1)
    if wanted is None:
        raise Unsound("the shape is missing")
    own = use.shape(0)
    keeps = not use.attribute("allowzero", 0)
    dims = [own[i] if d == 0 and keeps and i < len(own) else d for i, d in enumerate(wanted)]
    return use.reshape(use.value(0), _with_rest(dims, prod(own)))


def _with_rest(dims: list[int], count: int) -> tuple[int, ...]:
    known = prod(d for d in dims if d != -1)
    if dims.count(-1) == 1 and known > 0:
        dims = [count // known if d == -1 else d for d in dims]
    return tuple(dims)


@handles("Flatten")
def flatten(use: OnnxNode) -> int:
    """A matrix: the axes before `axis`, and those from it on."""
    dims = use.shape(0)
    given = int(use.attribute("axis", 1))
    axis = given + len(dims) if given < 0 else given
    if not 0 <= axis <= len(dims):
        raise Unsound(f"`axis` is {given}, expected {-len(dims)} to {len(dims)}")
    return use.reshape(use.value(0), (prod(dims[:axis]), prod(dims[axis:])))


@handles("Squeeze")
def squeeze(use: OnnxNode) -> int:
    """Without axes of size 1."""
    dims = use.shape(0)
    axes = use.ints("axes", 1)
    if axes is None:
        axes = tuple(i for i, dim in enumerate(dims) if dim == 1)
    removed = set(normalise_axes(axes, len(dims)))
    if any(dims[a] != 1 for a in removed):
        raise Unsound(f"`axes` names {sorted(removed)} of the shape {list(dims)}")
    return use.reshape(use.value(0), [d for i, d in enumerate(dims) if i not in removed])


@handles("Unsqueeze")
def unsqueeze(use: OnnxNode) -> int:
    """With axes of size 1."""
    dims = list(use.shape(0))
    axes = use.ints("axes", 1)
    if axes is None:
        raise Unsound("`axes` is missing")
    rank = len(dims) + len(axes)
    for axis in sorted(normalise_axes(axes, rank)):
        dims.insert(axis, 1)
    return use.reshape(use.value(0), dims)


@handles("Transpose")
def transpose(use: OnnxNode) -> int:
    """The axes in another order; backwards where none is given."""
    rank = len(use.shape(0))
    order = use.attribute("perm", tuple(reversed(range(rank))))
    return use.transpose(use.value(0), [int(a) for a in order])


@handles("Expand")
def expand(use: OnnxNode) -> int:
    """Stretched by a shape, which broadcasts in both directions."""
    wanted = use.ints("shape", 1) or ()
    try:
        dims = np.broadcast_shapes(use.shape(0), wanted)
    except ValueError:
        raise Unsound(f"{list(use.shape(0))} and {list(wanted)} do not broadcast") from None
    if dims == use.shape(0):
        return use.value(0)
    return use.add("Broadcast", use.value(0), shape=tuple(int(d) for d in dims))


@handles("Concat")
def concat(use: OnnxNode) -> int:
    """Tensors after each other; those without elements play no part."""
    axis = use.axis(default=0)
    parts = [i for i in range(use.count) if 0 not in use.shape(i)]
    if len(parts) == 1:
        return use.value(parts[0])
    return use.add("Concat", *(use.value(i) for i in parts), axis=axis)


@handles("Gather")
def gather(use: OnnxNode) -> int:
    """Parts of an axis by index."""
    return use.add("GatherAxis", use.value(0), use.value(1), axis=use.axis(default=0))


@handles("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(use: OnnxNode) -> int:
    """Parts of the last axis by index."""
    indices = use.reshape(use.value(1), (prod(use.shape(1)),))
    made = use.add("GatherAxis", use.value(0), indices, axis=len(use.shape(0)) - 1)
    return use.reshape(made, (1, prod(use.shape(1)))) if len(use.shape(0)) == 1 else made


@handles("Compress")
def compress(use: OnnxNode) -> int:
    """The parts along an axis, or the elements, at which a condition holds that is known."""
    condition = use.known(1)
    if condition is None:
        raise Unsupported(BY_ELEMENTS, BIND)
    x, axis = use.value(0), 0
    if "axis" in use.node.attributes:
        axis = use.axis()
    else:
        x = use.reshape(x, (prod(use.shape(0)),))
    places = np.flatnonzero(condition)
    places = places[places < use.builder.type_of(x).shape[axis]]
    return use.add("GatherAxis", x, use.constant(places.astype(np.int64)), axis=axis)


@handles("GatherElements")
def gather_elements(use: OnnxNode) -> int:
    """An index of an axis for each element."""
    return use.add("GatherElements", use.value(0), use.value(1), axis=use.axis(default=0))


@handles("GatherND")
def gather_nd(use: OnnxNode) -> int:
    """Parts by index tuples."""
    dims = int(use.attribute("batch_dims", 0))
    return use.add("GatherNd", use.value(0), use.value(1), batch_dims=dims)


@handles("ScatterElements", "Scatter")
def scatter_elements(use: OnnxNode) -> int:
    """Elements replaced or combined by index."""
    values = (use.value(0), use.value(1), use.value(2))
    reduction = use.attribute("reduction", "none")
    return use.add("ScatterElements", *values, axis=use.axis(default=0), reduction=reduction)


@handles("ScatterND")
def scatter_nd(use: OnnxNode) -> int:
    """Parts replaced or combined by index tuples."""
    values = (use.value(0), use.value(1), use.value(2))
    return use.add("ScatterNd", *values, reduction=use.attribute("reduction", "none"))


@handles("Tile")
def tile(use: OnnxNode) -> int:
    """Repeated along every axis."""
    repeats = use.ints("repeats", 1) or ()
    return use.add("Tile", use.value(0), repeats=repeats)


@handles("DepthToSpace")
def depth_to_space(use: OnnxNode) -> int:
    """Channels to a finer plane."""
    block, mode = int(use.require("blocksize")), use.attribute("mode", "DCR")
    return use.add("DepthToSpace", use.value(0), block=block, mode=mode)


@handles("SpaceToDepth")
def space_to_depth(use: OnnxNode) -> int:
    """A plane to more channels."""
    block, mode = int(use.require("blocksize")), use.attribute("mode", "DCR")
    return use.add("SpaceToDepth", use.value(0), block=block, mode=mode)


@handles("Trilu")
def trilu(use: OnnxNode) -> int:
    """The upper or lower triangle."""
    k = use.ints("k", 1, [0]) or (0,)
    return use.add("Trilu", use.value(0), upper=bool(use.attribute("upper", 1)), k=k[0])


@handles("EyeLike")
def eye_like(use: OnnxNode) -> Array:
    """Ones on a diagonal, known from the shape."""
    from nacre.core.onnx.handlers.elementwise import element_name

    rows, columns = use.shape(0)
    kind = use.attribute("dtype", None)
    name = use.type(0).dtype if kind is None else element_name(int(kind))
    from nacre.base.elements import GRAPH_TYPES

    return np.eye(rows, columns, int(use.attribute("k", 0))).astype(GRAPH_TYPES[name].dtype)


@handles("OneHot")
def one_hot(use: OnnxNode) -> int:
    """A new axis that is on at the index; an index beyond its ends is nowhere on."""
    depth = int(np.ravel(use.require_known(1, "`depth`"))[0])
    dims = use.shape(0)
    axis, rank = int(use.attribute("axis", -1)), len(dims) + 1
    if depth < 1 or not -rank <= axis < rank:
        raise Unsound(f"`depth` is {depth}, `axis` is {axis} of {rank} axes")
    at = axis % rank
    indices = operand(use, 0).to("i64").reshape(*dims[:at], 1, *dims[at:])
    counted = indices.is_("Lt", 0).choose(indices + depth, indices)
    line = (depth, *[1] * (rank - at - 1))
    places = Expr(use, use.add("Iota", shape=line, axis=0, dtype="i64"))
    off, on = (operand(use, 2).rows(known_expr(use, np.array(i))) for i in (0, 1))
    return counted.is_("Eq", places).choose(on, off).value


@handles("TopK")
def top_k(use: OnnxNode) -> Sequence[Tensor]:
    """The k largest or smallest elements, and where they lie."""
    found = use.ints("k", 1)
    if found is None:
        raise Unsound("`k` is missing")
    given = {
        "k": found[0],
        "axis": int(use.attribute("axis", -1)),
        "largest": bool(use.attribute("largest", 1)),
    }
    x = use.value(0)
    return [use.add("TopKValues", x, **given), use.add("TopKIndices", x, **given)]
