"""Elements picked by index: slices where the indices are known, else rows of the first axis."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.products.along import has_few_runs, take_slices
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def known_indices(site: RewriteSite) -> int | None:
    """Indices that are known: slices, where few will do."""
    x, indices = site.operands
    known = site.constant(indices)
    axis, shape = _axis(site), site.type(x).shape
    if known is None or site.constant(x) is not None or known.size == 0:
        return None
    places = np.ravel(np.where(known < 0, known + shape[axis], known)).astype(np.int64)
    if places.min() < 0 or places.max() >= shape[axis] or not has_few_runs(places):
        return None
    return site.reshape(take_slices(site, x, axis, places), site.op.type.shape)


def along_first_axis(site: RewriteSite) -> int | None:
    """Along another axis: that axis in front, and the picked ones back in its place."""
    x, indices = site.operands
    axis, shape = _axis(site), site.type(x).shape
    if axis == 0:
        if site.attributes.get("axis", 0) == 0:
            return None
        return site.add("GatherAxis", x, indices, axis=0)
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    split = site.reshape(x, (before, shape[axis], behind))
    front = site.add("Transpose", split, permutation=(1, 0, 2))
    count = prod(site.type(indices).shape)
    rows = site.reshape(front, (shape[axis], before * behind))
    picked = site.add("GatherAxis", rows, site.reshape(indices, (count,)), axis=0)
    back = site.add(
        "Transpose", site.reshape(picked, (count, before, behind)), permutation=(1, 0, 2)
    )
    return site.reshape(back, site.op.type.shape)


def count_from_front(site: RewriteSite) -> int | None:
    """Indices that may be negative count from the end: the size is added to those.

    Indices that the host gives are taken as they are: the device refuses a negative one.
    """
    x, indices = site.operands
    if _counts_from_front(site, indices):
        return None
    below = site.add("Compare", indices, site.literal(np.zeros(()), "i32"), op="Lt")
    size = site.literal(np.array(site.type(x).shape[0]), "i32")
    behind = site.add("BinOp", indices, size, op="Add")
    return site.add("GatherAxis", x, site.add("Where", below, behind, indices), axis=0)


def _counts_from_front(site: RewriteSite, value: int) -> bool:
    """Whether indices are known not to be negative, or come from the host."""
    maker = site.maker(value)
    while maker is not None and maker.opcode in MOVED:
        value = maker.operands[0]
        maker = site.maker(value)
    known = site.constant(value)
    if known is not None:
        return bool((known >= 0).all())
    if site.type(value).dtype in ("bool", "u8", "u16", "u32"):
        return True
    if maker is None or maker.opcode in _COUNTED:
        return maker is not None
    sides = maker.operands[1:] if maker.opcode == "Where" else maker.operands
    if maker.opcode == "BinOp" and maker.attributes["op"] == "Max":
        return any(
            _counts_from_front(site, side) for side in sides if not _comes_from_host(site, side)
        )
    is_sum = maker.opcode in ("Sum", "Where") or maker.attributes.get("op") in ("Add", "Mul", "Min")
    return is_sum and all(
        _counts_from_front(site, side) and not _comes_from_host(site, side) for side in sides
    )


def _comes_from_host(site: RewriteSite, value: int) -> bool:
    """Whether the host gives a value: what is computed from it may be negative."""
    maker = site.maker(value)
    while maker is not None and maker.opcode in MOVED:
        maker = site.maker(maker.operands[0])
    return maker is not None and maker.opcode == "Input" and (
        maker.type.dtype not in ("bool", "u8", "u16", "u32")
    )  # fmt: skip


def known_tuples(site: RewriteSite) -> int | None:
    """`GatherNd` with tuples that are known: parts that are stretched, or rows by their numbers."""
    x, indices = site.operands
    known = site.constant(indices)
    shape, batches = site.type(x).shape, site.attributes["batch_dims"]
    if known is None or batches or known.size == 0:
        return None
    depth = known.shape[-1]
    sizes = np.array(shape[:depth])
    wrapped = np.where(known < 0, known + sizes, known)
    if bool((wrapped < 0).any() or (wrapped >= sizes).any()):
        return None
    places = np.ravel_multi_index(tuple(np.moveaxis(wrapped, -1, 0)), tuple(sizes))
    rest = shape[depth:]
    row_shape = _broadcast_to(np.asarray(places), int(sizes.prod()))
    if row_shape is not None:
        part = site.reshape(x, (*row_shape, *rest))
        if part != x and site.type(part).shape == site.op.type.shape:
            return part
        return site.add("Broadcast", part, shape=site.op.type.shape)
    rows = site.reshape(x, (int(sizes.prod()), *rest))
    picked = site.literal(np.ravel(places), "i32")
    return site.reshape(site.add("GatherAxis", rows, picked, axis=0), site.op.type.shape)


def _broadcast_to(places: Array, count: int) -> tuple[int, ...] | None:
    """The shape in which rows one after the other become places by being stretched."""
    whole = places
    for axis in range(places.ndim):
        first = whole.take([0], axis)
        if bool((whole == first).all()):
            whole = first
    is_each = whole.size == count and bool((np.ravel(whole) == np.arange(count)).all())
    return whole.shape if is_each else None


def _axis(site: RewriteSite) -> int:
    axis = site.attributes.get("axis", 0)
    assert isinstance(axis, int)
    return axis % site.type(site.operands[0]).rank


MOVED = frozenset({"Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast", "Cast"})
_COUNTED = frozenset({"Input", "ArgMax", "ArgMin", "TopKIndices", "NonZero"})
# Once, after the others.
FROM_FRONT: Rules = {"GatherAxis": [count_from_front]}
GATHER_FORMS: Rules = {
    "Gather": [known_indices],
    "GatherAxis": [known_indices, along_first_axis],
    "GatherNd": [known_tuples],
}
