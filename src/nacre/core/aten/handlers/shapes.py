"""Calls that change shapes, the order of axes and what stands around."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nacre.core.aten.call import AtenCall, as_axis
from nacre.core.aten.remedies import EMPTY
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

# By ATen's word for it.
_PADDINGS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_PAD_MODES = {"reflection": "reflect", "replication": "replicate"}


@handles("view.default", "_unsafe_view.default", "reshape.default")
def view(call: AtenCall) -> int:
    """Another shape; one dimension may be -1."""
    shape = call.integers("shape" if call.name == "reshape" else "size")
    return call.reshape(call.value("self"), complete_shape(shape, prod(call.shape_of("self"))))


def complete_shape(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """A shape in which -1 stands for what is left."""
    if list(shape).count(-1) > 1 or any(dim < -1 for dim in shape):
        raise Unsupported(f"the shape {list(shape)} has more than one open dimension")
    rest = prod(dim for dim in shape if dim != -1)
    if -1 in shape and (rest == 0 or count % rest):
        raise Unsupported(f"{count:,} elements do not divide into {list(shape)}")
    completed = tuple(count // rest if dim == -1 else dim for dim in shape)
    if prod(completed) != count:
        raise Unsupported(f"{count:,} elements do not have the shape {list(completed)}")
    return completed


@handles("view_as.default", "reshape_as.default")
def view_as(call: AtenCall) -> int:
    """The shape of another tensor."""
    return call.reshape(
        call.value("self"), complete_shape(call.shape_of("other"), prod(call.shape_of("self")))
    )


@handles("flatten.using_ints")
def flatten(call: AtenCall) -> int:
    """Several axes as one."""
    dims = call.shape_of("self") or (1,)
    first = as_axis(call.integer("start_dim", 0), len(dims))
    last = as_axis(call.integer("end_dim", -1), len(dims))
    if first > last:
        raise Unsupported(f"axes {first} to {last}")
    shape = (*dims[:first], prod(dims[first : last + 1]), *dims[last + 1 :])
    return call.reshape(call.value("self"), shape)


@handles("unflatten.int")
def unflatten(call: AtenCall) -> int:
    """One axis as several."""
    axis, dims = call.axis(), call.shape_of("self")
    sizes = complete_shape(call.integers("sizes"), dims[axis])
    return call.reshape(call.value("self"), (*dims[:axis], *sizes, *dims[axis + 1 :]))


@handles("unsqueeze.default")
def unsqueeze(call: AtenCall) -> int:
    """A new axis of size 1."""
    return call.add("ExpandDims", call.value("self"), axes=(call.axis(extra=1),))


@handles("squeeze.default", "squeeze.dim", "squeeze.dims")
def squeeze(call: AtenCall) -> int:
    """Axes of size 1 removed; others stay."""
    dims = call.shape_of("self")
    rank = max(len(dims), 1)
    given = call.integers("dim") if call.has("dim") else tuple(range(len(dims)))
    axes = tuple(sorted({as_axis(a, rank) for a in given}))
    gone = tuple(a for a in axes if a < len(dims) and dims[a] == 1)
    return call.add("Squeeze", call.value("self"), axes=gone) if gone else call.value("self")


@handles("permute.default")
def permute(call: AtenCall) -> int:
    """The axes in another order."""
    rank = len(call.shape_of("self"))
    return call.transpose(call.value("self"), [as_axis(d, rank) for d in call.integers("dims")])


@handles(
    "transpose.int",
    "t.default",
    "numpy_T.default",
    "mT.default",
    "swapaxes.default",
    "swapdims.default",
)
def transpose(call: AtenCall) -> int:
    """Two axes change places."""
    rank = len(call.shape_of("self"))
    if call.name in ("t", "numpy_T"):
        return call.transpose(call.value("self"), list(range(rank))[::-1])
    if call.name == "mT":
        return swap_axes(call, as_axis(-2, rank), as_axis(-1, rank))
    names = ("axis0", "axis1") if call.name == "swapaxes" else ("dim0", "dim1")
    return swap_axes(call, *(as_axis(call.integer(name), max(rank, 1)) for name in names))


def swap_axes(call: AtenCall, one: int, other: int) -> int:
    """Two axes change places."""
    order = list(range(len(call.shape_of("self"))))
    if order:
        order[one], order[other] = other, one
    return call.transpose(call.value("self"), order)


@handles("movedim.int")
def movedim(call: AtenCall) -> int:
    """One axis goes elsewhere."""
    rank = len(call.shape_of("self"))
    source, target = (as_axis(call.integer(n), rank) for n in ("source", "destination"))
    order = [a for a in range(rank) if a != source]
    order.insert(target, source)
    return call.transpose(call.value("self"), order)


@handles("expand.default")
def expand(call: AtenCall) -> int:
    """Stretched to a shape; -1 leaves a dimension as it is."""
    size, dims = call.integers("size"), call.shape_of("self")
    new = len(size) - len(dims)
    if new < 0 or any(dim == -1 for dim in size[:new]):
        raise Unsupported(f"a tensor {list(dims)} is to have the shape {list(size)}")
    wanted = [dims[i - new] if dim == -1 else dim for i, dim in enumerate(size)]
    return call.broadcast_to(call.value("self"), wanted)


@handles("expand_as.default")
def expand_as(call: AtenCall) -> int:
    """Stretched to the shape of another tensor."""
    return call.broadcast_to(call.value("self"), call.shape_of("other"))


@handles("repeat.default", "tile.default")
def repeat(call: AtenCall) -> int:
    """Repeated along every axis; axes may be new."""
    repeats = call.integers("repeats" if call.name == "repeat" else "dims")
    dims = call.shape_of("self")
    if call.name == "repeat" and len(repeats) < len(dims):
        raise Unsupported(f"{len(repeats)} repeats for {len(dims)} axes")
    rank = max(len(repeats), len(dims))
    value = call.reshape(call.value("self"), (*[1] * (rank - len(dims)), *dims))
    repeats = (*[1] * (rank - len(repeats)), *repeats)
    return value if set(repeats) <= {1} else call.add("Tile", value, repeats=repeats)


@handles("repeat_interleave.self_int")
def repeat_interleave(call: AtenCall) -> int:
    """Every place of an axis so often; without an axis, of all elements in a row."""
    count, x, dims = call.integer("repeats"), call.value("self"), call.shape_of("self")
    if not call.has("dim"):
        x, dims = call.reshape(x, (prod(dims),)), (prod(dims),)
    axis = as_axis(call.integer("dim", 0), len(dims))
    new = call.reshape(x, (*dims[: axis + 1], 1, *dims[axis + 1 :]))
    wide = call.broadcast_to(new, (*dims[: axis + 1], count, *dims[axis + 1 :]))
    return call.reshape(wide, (*dims[:axis], dims[axis] * count, *dims[axis + 1 :]))


@handles("cat.default", "stack.default")
def cat(call: AtenCall) -> int:
    """Tensors after each other; those without elements play no part."""
    tensors = call.get("tensors", ())
    if not tensors:
        raise Unsupported("there is no tensor")
    dtype = call.common_type(tensors)
    parts = [call.as_value(t, dtype) for t in tensors if 0 not in call.tensor_type(t).shape]
    if not parts:
        raise Unsupported(*EMPTY)
    rank = call.type_of(parts[0]).rank
    if call.name == "stack":
        axis = as_axis(call.integer("dim", 0), rank + 1)
        dims = [(*d[:axis], 1, *d[axis:]) for d in (call.type_of(p).shape for p in parts)]
        parts = [call.reshape(part, shape) for part, shape in zip(parts, dims, strict=True)]
    else:
        axis = as_axis(call.integer("dim", 0), max(rank, 1))
    return parts[0] if len(parts) == 1 else call.add("Concat", *parts, axis=axis)


@handles("flip.default")
def flip(call: AtenCall) -> int:
    """Axes run backwards."""
    rank = len(call.shape_of("self"))
    axes = tuple(as_axis(d, max(rank, 1)) for d in call.integers("dims"))
    return call.add("Flip", call.value("self"), axes=axes) if axes and rank else call.value("self")


@handles("constant_pad_nd.default", "pad.default", "reflection_pad1d.default",
         "reflection_pad2d.default", "reflection_pad3d.default", "replication_pad1d.default",
         "replication_pad2d.default", "replication_pad3d.default")  # fmt: skip
def pad(call: AtenCall) -> int:
    """Elements around; pads come in pairs, those of the last axis first; below 0 they cut."""
    given = call.integers("pad" if call.has("pad") else "padding")
    rank = len(call.shape_of("self"))
    if len(given) % 2 or len(given) > 2 * rank:
        raise Unsupported(f"pads {list(given)} for {rank} axes")
    around = [(0, 0)] * rank
    for index in range(len(given) // 2):
        around[rank - 1 - index] = (given[2 * index], given[2 * index + 1])
    pads = (*(a for a, _ in around), *(b for _, b in around))
    mode = _PAD_MODES.get(call.name.partition("_")[0], call.get("mode", "constant"))
    if mode not in _PADDINGS:
        raise Unsupported(f"no mode `{mode}`")
    if not any(pads):
        return call.value("self")
    number = float(call.number("value", 0.0))
    return call.add("Pad", call.value("self"), pads=pads, mode=_PADDINGS[mode], value=number)


@handles("pixel_shuffle.default", "pixel_unshuffle.default")
def pixel_shuffle(call: AtenCall) -> int:
    """Channels to a finer plane, or back."""
    is_up = call.name == "pixel_shuffle"
    opcode = "DepthToSpace" if is_up else "SpaceToDepth"
    block = call.integer("upscale_factor" if is_up else "downscale_factor")
    dims, x = call.shape_of("self"), call.value("self")
    if len(dims) < 3:
        raise Unsupported(f"a tensor of rank {len(dims)}")
    planes = call.reshape(x, (prod(dims[:-3]), *dims[-3:]))
    shuffled = call.add(opcode, planes, block=block, mode="CRD")
    return call.reshape(shuffled, (*dims[:-3], *call.type_of(shuffled).shape[1:]))


@handles("tril.default", "triu.default")
def triangle(call: AtenCall) -> int:
    """The lower or upper triangle of matrices."""
    diagonal = call.integer("diagonal", 0)
    return call.add("Trilu", call.value("self"), upper=call.name == "triu", k=diagonal)
