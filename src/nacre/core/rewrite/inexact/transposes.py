"""Transpositions moved down until they meet and cancel.

An operation on transposed tensors is the transposition of the operation on the tensors themselves,
where it treats all axes alike or names those that it means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.site import Rewrite, RewriteSite

Order = tuple[int, ...]


def inverse(order: Sequence[int]) -> Order:
    """The permutation that undoes another."""
    return tuple(int(axis) for axis in np.argsort(order))


def join_transposes(site: RewriteSite) -> int | None:
    """Two transpositions are one, or none."""
    before = site.maker(site.operands[0], "Transpose")
    if before is None:
        return None
    order = tuple(before.attributes["permutation"][a] for a in site.op.attributes["permutation"])
    if order == tuple(range(len(order))):
        return before.operands[0]
    return site.add("Transpose", before.operands[0], permutation=order)


def transpose_of_ones(site: RewriteSite) -> int | None:
    """A transposition that moves nothing but axes of size 1 is a reshape."""
    shape = site.type(site.operands[0]).shape
    kept = [axis for axis in site.op.attributes["permutation"] if shape[axis] != 1]
    if kept != sorted(kept):
        return None
    return site.add("Reshape", site.operands[0], new_shape=site.op.type.shape)


def elementwise(site: RewriteSite) -> int | None:
    """A function of transposed tensors: the transposition of the function."""
    order = _common_order(site)
    if order is None:
        return None
    operands = [_transpose(site, value, order) for value in site.operands]
    if any(value is None for value in operands):
        return None
    result = site.add(site.op.opcode, *(v for v in operands if v is not None), **site.op.attributes)
    return site.add("Transpose", result, permutation=order)


def _common_order(site: RewriteSite) -> Order | None:
    """The one order in which operands are transposed."""
    rank = site.op.type.rank
    orders = {
        tuple(found.attributes["permutation"])
        for value in site.operands
        if (found := site.maker(value, "Transpose")) is not None
    }
    return orders.pop() if len(orders) == 1 and rank == len(next(iter(orders))) else None


def _transpose(site: RewriteSite, value: int, order: Order) -> int | None:
    """An operand as it was before the transposition; None where that would cost something."""
    before = site.maker(value, "Transpose")
    if before is not None:
        return before.operands[0]
    shape = site.type(value).shape
    whole = (1,) * (len(order) - len(shape)) + shape
    back = inverse(order)
    reordered = tuple(whole[axis] for axis in back)
    constant = site.constant(value)
    if constant is not None:
        array = np.ascontiguousarray(constant.reshape(whole).transpose(back))
        return site.literal(array, site.type(value).dtype)
    sizes = [dim for dim in whole if dim != 1]
    if sizes == [dim for dim in reordered if dim != 1] and len(sizes) <= 1:
        # One axis at most has more than one element: the order of elements stays.
        return value if shape == reordered else site.add("Reshape", value, new_shape=reordered)
    return None


def _rewrite_attributes(
    change: Callable[[Mapping[str, object], Order], dict[str, object]],
) -> Callable[[RewriteSite], int | None]:
    """A rewrite for an operation with one tensor whose attributes name axes."""

    def rewrite(site: RewriteSite) -> int | None:
        before = site.maker(site.operands[0], "Transpose")
        if before is None:
            return None
        order = tuple(before.attributes["permutation"])
        filled = OPS[site.op.opcode].with_defaults(site.op.attributes)
        given = change(filled, order)
        result = site.add(site.op.opcode, before.operands[0], *site.operands[1:], **given)
        return site.add("Transpose", result, permutation=order)

    return rewrite


def _axis(filled: Mapping[str, object], order: Order) -> dict[str, object]:
    axis = filled["axis"]
    assert isinstance(axis, int)
    return {**filled, "axis": order[axis]}


def pads_attributes(filled: Mapping[str, object], order: Order) -> dict[str, object]:
    """What pads of a transposed tensor are before the transposition."""
    pads = filled["pads"]
    assert isinstance(pads, tuple)
    back, half = inverse(order), len(order)
    begins = tuple(pads[axis] for axis in back)
    return {**filled, "pads": (*begins, *(pads[half + axis] for axis in back))}


def slice_attributes(filled: Mapping[str, object], order: Order) -> dict[str, object]:
    """What a slice of a transposed tensor is before the transposition."""
    back = inverse(order)
    moved: dict[str, object] = {}
    for name in ("starts", "ends", "steps"):
        values = filled[name]
        assert isinstance(values, tuple)
        moved[name] = tuple(values[axis] for axis in back)
    return moved


def _sizes(filled: Mapping[str, object], order: Order) -> dict[str, object]:
    back = inverse(order)
    found = dict(filled)
    for name in ("sizes", "scales"):
        values = filled[name]
        assert isinstance(values, tuple)
        found[name] = tuple(values[axis] for axis in back) if values else ()
    return found


resize = _rewrite_attributes(_sizes)
softmax = _rewrite_attributes(_axis)
pad = _rewrite_attributes(pads_attributes)
slice_ = _rewrite_attributes(slice_attributes)


def concat(site: RewriteSite) -> int | None:
    """Transposed tensors after each other."""
    order = _common_order(site)
    if order is None:
        return None
    sources = [site.maker(value, "Transpose") for value in site.operands]
    if any(found is None for found in sources):
        return None
    axis = order[site.op.attributes["axis"]]
    joined = site.add("Concat", *(f.operands[0] for f in sources if f is not None), axis=axis)
    return site.add("Transpose", joined, permutation=order)


def reduction(site: RewriteSite) -> int | None:
    """A reduction over axes that are kept, or that leaves the rest in order."""
    before = site.maker(site.operands[0], "Transpose")
    axes = site.op.attributes["axes"]
    if before is None or not axes:
        return None
    order = tuple(before.attributes["permutation"])
    over = tuple(sorted(order[axis] for axis in axes))
    return _reduce_before_transpose(site, before, over, {"axes": over})


def arg_extremum(site: RewriteSite) -> int | None:
    """Where the largest or the smallest element is: along the axis as it lay before."""
    before = site.maker(site.operands[0], "Transpose")
    if before is None:
        return None
    axis = before.attributes["permutation"][site.op.attributes["axis"]]
    return _reduce_before_transpose(site, before, (axis,), {"axis": axis})


def _reduce_before_transpose(
    site: RewriteSite, before: CoreOperation, over: Order, named: Mapping[str, object]
) -> int | None:
    """An operation that goes over axes of what was transposed."""
    order = tuple(before.attributes["permutation"])
    rest = [axis for axis in order if axis not in over]
    is_kept = bool(site.attributes["keepdims"])
    if not is_kept and rest != sorted(rest):
        return None
    reduced = site.add(site.op.opcode, before.operands[0], **{**site.op.attributes, **named})
    return site.add("Transpose", reduced, permutation=order) if is_kept else reduced


def convolution(site: RewriteSite) -> int | None:
    """A window operation with channels first, between transpositions: with channels last."""
    if site.attributes["layout"] != "NCHW" or site.op.type.rank != 4:
        return None
    given: dict[str, object] = {**site.op.attributes, "layout": "NHWC"}
    operands = list(site.operands)
    operands[0] = site.add("Transpose", operands[0], permutation=(0, 2, 3, 1))
    if site.op.opcode in ("Conv", "ConvTranspose"):
        weights = site.constant(operands[1])
        if weights is None:
            return None
        weights_last = np.ascontiguousarray(weights.transpose(2, 3, 1, 0))
        operands[1] = site.literal(weights_last, site.type(operands[1]).dtype)
    convolved = site.add(site.op.opcode, *operands, **given)
    return site.add("Transpose", convolved, permutation=(0, 3, 1, 2))


ELEMENTWISE = tuple(name for name, spec in OPS.items() if "elementwise" in spec.traits)
SINKING: Mapping[str, Sequence[Rewrite]] = {
    **{name: [elementwise] for name in ELEMENTWISE},
    **{name: [softmax] for name in ("Softmax", "LogSoftmax", "BatchNorm", "CumSum")},
    **{name: [reduction] for name in ("Sum", "Mean", "Reduce")},
    **{name: [arg_extremum] for name in ("ArgMax", "ArgMin")},
    "Transpose": [join_transposes],
    "Resize": [resize],
    "Concat": [concat],
    "Pad": [pad],
    "Slice": [slice_],
}
LAST: Mapping[str, Sequence[Rewrite]] = {
    name: [convolution] for name in ("Conv", "ConvTranspose", "MaxPool", "AvgPool", "LpPool")
}
IDLE: Mapping[str, Sequence[Rewrite]] = {"Transpose": [transpose_of_ones]}
