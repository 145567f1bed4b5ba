"""Operations that move elements, as slices, copies and transpositions of two runs of axes."""

from __future__ import annotations

import numpy as np

from nacre.compile.geometry import swap_of
from nacre.compile.legalise.forms.products.along import take_along
from nacre.compile.legalise.forms.windows.windows import Ints, slice_axis
from nacre.compile.legalise.lowerings import MAP_OPCODES
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def idle_transpose(site: RewriteSite) -> int | None:
    """A transposition that moves nothing but axes of size 1 is a reshape."""
    shape, order = site.type(site.operands[0]).shape, site.op.attributes["permutation"]
    kept = [axis for axis in order if shape[axis] != 1]
    if kept != sorted(kept):
        return None
    return site.reshape(site.operands[0], site.op.type.shape)


def chain_of_swaps(site: RewriteSite) -> int | None:
    """Any other transposition: one axis after the other is brought to its place."""
    shape, order = site.type(site.operands[0]).shape, tuple(site.op.attributes["permutation"])
    if swap_of(shape, order) is not None:
        return None
    value, left = site.operands[0], list(range(len(order)))
    for place in range(len(order)):
        at = left.index(order[place])
        if at == place:
            continue
        # As many axes as follow each other in both come along.
        run = 1
        while at + run < len(left) and left[at : at + run + 1] == list(
            order[place : place + run + 1]
        ):
            run += 1
        step = (*range(place), *range(at, at + run), *range(place, at), *range(at + run, len(left)))
        value = _swap_axes(site, value, step)
        left = [left[axis] for axis in step]
    return value


def _swap_axes(site: RewriteSite, value: int, order: Ints) -> int:
    shape = site.type(value).shape
    kept = [axis for axis in order if shape[axis] != 1]
    if kept == sorted(kept):
        return site.reshape(value, [shape[axis] for axis in order])
    return site.add("Transpose", value, permutation=order)


def index(site: RewriteSite) -> int | None:
    """One element: a slice without axes."""
    value = site.operands[0]
    indices = site.attributes["indices"]
    assert isinstance(indices, tuple)
    for axis, at in enumerate(indices):
        value = slice_axis(site, value, axis, at, at + 1)
    return site.reshape(value, site.op.type.shape)


def flip(site: RewriteSite) -> int | None:
    """Axes that run backwards, one after the other."""
    value = site.operands[0]
    axes = site.attributes["axes"]
    assert isinstance(axes, tuple)
    for axis in axes:
        size = site.type(value).shape[axis]
        flipped = take_along(site, value, axis % site.op.type.rank, np.arange(size)[::-1])
        if flipped is None:
            return None
        value = flipped
    return value


def tile(site: RewriteSite) -> int | None:
    """Repetition: an axis of size 1 before each, stretched."""
    x, repeats = site.operands[0], site.attributes["repeats"]
    assert isinstance(repeats, tuple)
    shape = site.type(x).shape
    split = [dim for size in shape for dim in (1, size)]
    shape_with_repeats = [dim for n, size in zip(repeats, shape, strict=True) for dim in (n, size)]
    wide = site.add("Broadcast", site.reshape(x, split), shape=tuple(shape_with_repeats))
    return site.reshape(wide, site.op.type.shape)


def pad(site: RewriteSite) -> int | None:
    """Padding below 0 cuts; padding with elements of the tensor chooses among them."""
    pads, mode = site.attributes["pads"], str(site.attributes["mode"])
    assert isinstance(pads, tuple)
    rank = site.op.type.rank
    x, held = _crop(site, pads), tuple(max(0, p) for p in pads)
    if mode == "constant" or not any(held):
        if held == pads and any(held):
            return None
        return site.add("Pad", x, pads=held, value=site.attributes["value"]) if any(held) else x
    for axis in range(rank):
        places = _padded_sources(mode, site.type(x).shape[axis], held[axis], held[rank + axis])
        padded = take_along(site, x, axis, places)
        if padded is None:
            return None
        x = padded
    return x


def _crop(site: RewriteSite, pads: Ints) -> int:
    """What is left where pads are below 0."""
    value, rank = site.operands[0], site.op.type.rank
    for axis in range(rank):
        size = site.type(value).shape[axis]
        first, end = max(0, -pads[axis]), size - max(0, -pads[rank + axis])
        value = slice_axis(site, value, axis, first, end)
    return value


def _padded_sources(mode: str, size: int, before: int, behind: int) -> Array:
    """Where each element of a padded axis comes from."""
    at = np.arange(-before, size + behind)
    if mode == "edge" or size == 1:
        return np.clip(at, 0, size - 1)
    if mode == "wrap":
        return at % size
    period = 2 * (size - 1)
    return np.minimum(at % period, period - at % period)


def depth_to_space(site: RewriteSite) -> int | None:
    """A finer plane, with channels last between transpositions."""
    images, channels, height, width = site.type(site.operands[0]).shape
    block = site.attributes["block"]
    assert isinstance(block, int)
    left = channels // (block * block)
    x = site.add("Transpose", site.operands[0], permutation=(0, 2, 3, 1))
    if site.attributes["mode"] == "DCR":
        split = site.reshape(x, (images, height, width, block, block, left))
        woven = site.add("Transpose", split, permutation=(0, 1, 3, 2, 4, 5))
    else:
        split = site.reshape(x, (images, height, width, left, block, block))
        woven = site.add("Transpose", split, permutation=(0, 1, 4, 2, 5, 3))
    image = site.reshape(woven, (images, height * block, width * block, left))
    return site.add("Transpose", image, permutation=(0, 3, 1, 2))


def space_to_depth(site: RewriteSite) -> int | None:
    """A coarser plane, with channels last between transpositions."""
    images, channels, height, width = site.type(site.operands[0]).shape
    block = site.attributes["block"]
    assert isinstance(block, int)
    high, wide = height // block, width // block
    x = site.add("Transpose", site.operands[0], permutation=(0, 2, 3, 1))
    split = site.reshape(x, (images, high, block, wide, block, channels))
    order = (0, 1, 3, 2, 4, 5) if site.attributes["mode"] == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = site.add("Transpose", split, permutation=order)
    blocks = site.reshape(blocks, (images, high, wide, block * block * channels))
    return site.add("Transpose", blocks, permutation=(0, 3, 1, 2))


def map_before_view(site: RewriteSite) -> int | None:
    """A function of one element before a reshape rather than behind: beside what made it."""
    if len(site.operands) != 1:
        return None
    view = site.only(site.operands[0], "Reshape", "ExpandDims", "Squeeze")
    if view is None or site.constant(view.operands[0]) is not None:
        return None
    before = site.maker(view.operands[0])
    if before is None or before.opcode == "Input":
        return None
    mapped = site.add(site.op.opcode, view.operands[0], **site.op.attributes)
    return site.reshape(mapped, site.op.type.shape)


_MAPS_OF_ONE = tuple(opcode for opcode in MAP_OPCODES if opcode != "BinOp")
MOVE_FORMS: Rules = {
    "DepthToSpace": [depth_to_space],
    "SpaceToDepth": [space_to_depth],
    "Index": [index],
    "Flip": [flip],
    "Tile": [tile],
    "Pad": [pad],
}
MOVE_AND_MAP_FORMS: Rules = {**MOVE_FORMS, **{name: [map_before_view] for name in _MAPS_OF_ONE}}
TRANSPOSE_FORMS: Rules = {"Transpose": [idle_transpose, chain_of_swaps]}
