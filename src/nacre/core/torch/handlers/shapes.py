"""Operations of ATen that change shapes and take parts at places known at import."""

from __future__ import annotations

from nacre.core.torch.handlers.table import handles
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import NOT_EMPTY
from nacre.core.torch.use import AtenCall, Value
from nacre.core.unsupported import Unsupported


@handles("view.default", "_unsafe_view.default", "unsqueeze.default", "squeeze.default",
         "squeeze.dim", "squeeze.dims")  # fmt: skip
def reshape(use: AtenCall) -> int:
    """Another shape, which PyTorch has worked out."""
    return use.reshaped(use.value("self"), use.shape)


@handles("permute.default")
def permute(use: AtenCall) -> int:
    """The axes in another order."""
    rank = len(use.shape_of("self"))
    return use.transposed(use.value("self"), [int(d) % rank for d in use.get("dims", ())])


@handles("transpose.int", "t.default")
def transpose(use: AtenCall) -> int:
    """Two axes change places."""
    rank = len(use.shape_of("self"))
    order = list(range(rank))
    if rank >= 2:
        one, other = (int(use.get(name, d)) % rank for name, d in (("dim0", -2), ("dim1", -1)))
        order[one], order[other] = other, one
    return use.transposed(use.value("self"), order)


@handles("expand.default")
def expand(use: AtenCall) -> int:
    """Stretched to a shape."""
    return use.broadcast_to(use.value("self"), use.shape)


@handles("repeat.default")
def repeat(use: AtenCall) -> int:
    """Repeated along every axis; axes may be new."""
    repeats = tuple(int(r) for r in use.get("repeats", ()))
    dims = use.shape_of("self")
    rank = max(len(repeats), len(dims))
    value = use.reshaped(use.value("self"), (*[1] * (rank - len(dims)), *dims))
    repeats = (*[1] * (rank - len(repeats)), *repeats)
    return value if set(repeats) <= {1} else use.add("Tile", value, repeats=repeats)


@handles("cat.default", "stack.default")
def cat(use: AtenCall) -> int:
    """Tensors after each other; those without elements play no part."""
    tensors, metas = use.get("tensors"), use.metas["tensors"]
    is_stack = use.name.startswith("stack")
    axis = int(use.get("dim", 0)) % len(use.shape)
    parts = [
        use.taken(tensor, use.dtype)
        for tensor, meta in zip(tensors, metas, strict=True)
        if 0 not in meta.shape
    ]
    if is_stack:
        dims = list(use.shape)
        dims[axis] = 1
        parts = [use.reshaped(part, dims) for part in parts]
    if not parts:
        raise Unsupported("the result has no elements; Core IR has no empty tensors", NOT_EMPTY)
    return parts[0] if len(parts) == 1 else use.add("Concat", *parts, axis=axis)


@handles("split.Tensor", "split_with_sizes.default")
def split(use: AtenCall) -> list[int]:
    """Parts along an axis, of the sizes that PyTorch has worked out."""
    axis, x = use.axis(), use.value("self")
    made, start = [], 0
    for part in use.result:
        end = start + int(part.shape[axis])
        made.append(sliced(use, x, {axis: (start, end, 1)}))
        start = end
    return made


@handles("unbind.int")
def unbind(use: AtenCall) -> list[int]:
    """Every part of an axis on its own."""
    axis, x = use.axis(), use.value("self")
    return [
        use.reshaped(sliced(use, x, {axis: (i, i + 1, 1)}), [int(d) for d in part.shape])
        for i, part in enumerate(use.result)
    ]


def sliced(use: AtenCall, value: int, parts: dict[int, tuple[int, int, int]]) -> int:
    """A part of a value: start, end and positive step of some axes."""
    dims = use.type_of(value).shape
    whole = [parts.get(axis, (0, dim, 1)) for axis, dim in enumerate(dims)]
    if all(part == (0, dim, 1) for part, dim in zip(whole, dims, strict=True)):
        return value
    if any(end <= start for start, end, _ in whole):
        raise Unsupported("the result has no elements; Core IR has no empty tensors", NOT_EMPTY)
    starts, ends, steps = (tuple(column) for column in zip(*whole, strict=True))
    return use.add("Slice", value, starts=starts, ends=ends, steps=steps)


def bounds(use: AtenCall, dim: int) -> range:
    """What `start`, `end` and `step` take of an axis."""
    ends = (use.get("start"), use.get("end"), use.get("step", 1))
    if any(isinstance(end, Value | torch().Tensor) for end in ends):
        raise Unsupported(
            "a bound is computed when the model runs",
            "take a part of fixed size by an index tensor, with `index_select` or `index_copy_`",
        )
    return range(*slice(*ends).indices(dim))


@handles("slice.Tensor")
def slice_(use: AtenCall) -> int:
    """A regular part of an axis."""
    axis, dims = use.axis(), use.shape_of("self")
    taken = bounds(use, dims[axis])
    return sliced(use, use.value("self"), {axis: (taken.start, taken.stop, taken.step)})


@handles("select.int")
def select(use: AtenCall) -> int:
    """One place of an axis, which goes away."""
    axis, index = use.axis(), use.get("index")
    if not isinstance(index, int):
        raise Unsupported("the place is computed when the model runs", "use `index_select`")
    at = index % use.shape_of("self")[axis]
    return use.reshaped(sliced(use, use.value("self"), {axis: (at, at + 1, 1)}), use.shape)


@handles("flip.default")
def flip(use: AtenCall) -> int:
    """Axes run backwards."""
    rank = len(use.shape_of("self"))
    axes = tuple(int(d) % rank for d in use.get("dims", ()))
    return use.add("Flip", use.value("self"), axes=axes) if axes else use.value("self")


@handles("roll.default")
def roll(use: AtenCall) -> int:
    """Elements move along axes, and those that leave come back at the other end."""
    x, dims = use.value("self"), use.shape_of("self")
    axes, shifts = use.get("dims", ()), use.get("shifts")
    if not axes:
        return use.reshaped(_rolled(use, use.reshaped(x, (-1,)), 0, shifts[0]), dims)
    for axis, shift in zip(axes, shifts, strict=True):
        x = _rolled(use, x, axis % len(dims), shift)
    return x


def _rolled(use: AtenCall, x: int, axis: int, shift: int) -> int:
    size = use.type_of(x).shape[axis]
    at = -shift % size
    if at == 0:
        return x
    parts = [sliced(use, x, {axis: part}) for part in ((at, size, 1), (0, at, 1))]
    return use.add("Concat", *parts, axis=axis)


# By PyTorch's word for it.
_PADDINGS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@handles("constant_pad_nd.default", "pad.default", "reflection_pad1d.default",
         "reflection_pad2d.default", "reflection_pad3d.default", "replication_pad1d.default",
         "replication_pad2d.default", "replication_pad3d.default")  # fmt: skip
def pad(use: AtenCall) -> int:
    """Elements around; pads come in pairs, those of the last axis first; below 0 they cut."""
    given = [int(p) for p in use.get("pad", use.get("padding"))]
    rank = len(use.shape_of("self"))
    around = [(0, 0)] * rank
    for index in range(len(given) // 2):
        around[rank - 1 - index] = (given[2 * index], given[2 * index + 1])
    pads = (*(a for a, _ in around), *(b for _, b in around))
    mode = {"refl": "reflect", "repl": "replicate"}.get(use.name[:4], use.get("mode", "constant"))
    if not any(pads):
        return use.value("self")
    number = float(use.get("value", 0.0))
    return use.add("Pad", use.value("self"), pads=pads, mode=_PADDINGS[mode], value=number)


@handles("pixel_shuffle.default", "pixel_unshuffle.default")
def pixel_shuffle(use: AtenCall) -> int:
    """Channels to a finer plane, or back."""
    is_up = use.name.startswith("pixel_shuffle")
    opcode = "DepthToSpace" if is_up else "SpaceToDepth"
    block = int(use.get("upscale_factor" if is_up else "downscale_factor"))
    dims = use.shape_of("self")
    planes = use.reshaped(use.value("self"), (-1, *dims[-3:])) if len(dims) != 4 else None
    x = use.value("self") if planes is None else planes
    return use.reshaped(use.add(opcode, x, block=block, mode="CRD"), use.shape)


@handles("tril.default", "triu.default")
def triangle(use: AtenCall) -> int:
    """The lower or upper triangle of matrices."""
    is_upper = use.name.startswith("triu")
    return use.add("Trilu", use.value("self"), upper=is_upper, k=int(use.get("diagonal", 0)))
