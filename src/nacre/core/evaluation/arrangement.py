"""Convolutions with channels last, and what stands between them on values as these lie.

The kernels that compute with channels last give the same bits in both layouts, and so do those of
the operations below: a plan may choose where the axes of a value lie. Transpositions that the
module itself has become other ways to look at a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.constants import CONSTANTS, kernel_type
from nacre.core.evaluation.axis_orders import (
    ArrangedModule,
    Arranger,
    Order,
    Rule,
    identity_order,
    keep_order,
)
from nacre.core.module import CoreOperation, Module, Shape
from nacre.core.ops import OPS
from nacre.core.rewrite.inexact.transposes import inverse, pads_attributes, slice_attributes
from nacre.core.values import attributes
from nacre.kernels.interface.call import Call, Constant
from nacre.kernels.windows.graph_convolution import is_arranged

_INTEGERS = frozenset({"signed", "unsigned"})
_INEXACT = frozenset({"Prod"})  # whose bits depend on the order of what is reduced


def arrange(module: Module) -> ArrangedModule:
    """A module as it is best computed."""
    if not any(_is_convolution(module, op) for op in module.operations):
        return keep_order(module)
    arranger = Arranger(module)
    for index, op in enumerate(module.operations):
        arranger.take(index, op, _RULES.get(op.opcode))
    return arranger.result()


def _is_convolution(module: Module, op: CoreOperation) -> bool:
    """Whether an operation has its channels first, and a kernel that has them last."""
    if op.opcode != "Conv" or module.by_id[op.operands[1]].opcode not in CONSTANTS:
        return False
    types = tuple([kernel_type(module.by_id[value].type) for value in op.operands])
    filled = OPS["Conv"].with_defaults(op.attributes)
    known = {1: Constant(np.empty(0))}  # what the weights are does not matter
    call = Call(types, (kernel_type(op.type),), filled, known=known)
    return filled["layout"] == "NCHW" and is_arranged(call)


def _channels_last(rank: int) -> Order:
    return (0, *range(2, rank), 1)


def _convolve(arranger: Arranger, op: CoreOperation) -> bool:
    if not _is_convolution(arranger.source, op):
        return False
    x, weights, *bias = op.operands
    last = _channels_last(op.type.rank)
    operands = [
        arranger.form(x, last),
        arranger.form(weights, (*last[1:], 0)),
        *map(arranger.form, bias),
    ]
    return arranger.add(op, last, operands, attributes({**op.attributes, "layout": "NHWC"}))


def _pool(arranger: Arranger, op: CoreOperation) -> bool:
    """A pooling of what has its channels last."""
    last = _channels_last(op.type.rank)
    if OPS[op.opcode].with_defaults(op.attributes)["layout"] != "NCHW":
        return False
    if arranger.order(op.operands[0]) != last:
        return False
    operands = [arranger.form(op.operands[0], last)]
    return arranger.add(op, last, operands, attributes({**op.attributes, "layout": "NHWC"}))


def _common_order(arranger: Arranger, op: CoreOperation) -> Order | None:
    """The order of the largest operand that does not lie in its own; None where all do."""
    rank = op.type.rank
    orders = [
        (prod(arranger.type(value).shape), order)
        for value in op.operands
        for order in (arranger.order(value),)
        if len(order) == rank and order != identity_order(rank)
    ]
    return max(orders, key=lambda pair: pair[0])[1] if orders else None


def _elementwise(arranger: Arranger, op: CoreOperation) -> bool:
    """A function of every element by itself, which cannot say that one of them is wrong."""
    order = _common_order(arranger, op)
    ranks = {len(arranger.type(value).shape) for value in op.operands}
    if order is None or not ranks <= {0, op.type.rank}:
        return False
    if any(GRAPH_TYPES[arranger.type(value).dtype].kind in _INTEGERS for value in op.operands):
        return False
    operands = [arranger.form(v, order if arranger.type(v).shape else None) for v in op.operands]
    return arranger.add(op, order, operands, op.attributes)


def _concat(arranger: Arranger, op: CoreOperation) -> bool:
    order = _common_order(arranger, op)
    if order is None:
        return False
    operands = [arranger.form(value, order) for value in op.operands]
    axis = order.index(op.attributes["axis"] % op.type.rank)
    return arranger.add(op, order, operands, attributes({**op.attributes, "axis": axis}))


def _along_axis(arranger: Arranger, op: CoreOperation) -> bool:
    """An operation along one axis; further operands have no other."""
    order = _order_of(arranger, op)
    if order is None:
        return False
    axis = order.index(OPS[op.opcode].with_defaults(op.attributes)["axis"] % op.type.rank)
    operands = [arranger.form(op.operands[0], order), *map(arranger.form, op.operands[1:])]
    return arranger.add(op, order, operands, attributes({**op.attributes, "axis": axis}))


def _order_of(arranger: Arranger, op: CoreOperation) -> Order | None:
    """The order of the first operand; None where it lies in its own."""
    order = arranger.order(op.operands[0])
    return None if order == identity_order(len(order)) else order


def _reduce(arranger: Arranger, op: CoreOperation) -> bool:
    """A reduction over axes that come in their own order."""
    order, axes = _order_of(arranger, op), op.attributes["axes"]
    if order is None or not axes or op.attributes.get("op") in _INEXACT:
        return False
    if GRAPH_TYPES[arranger.type(op.operands[0]).dtype].is_integer:
        return False
    rank = len(order)
    gone = {axis % rank for axis in axes}
    over = [at for at, axis in enumerate(order) if axis in gone]
    if [order[at] for at in over] != sorted(gone):
        return False
    if OPS[op.opcode].with_defaults(op.attributes)["keepdims"]:
        rest = order
    else:
        left = [axis for axis in range(rank) if axis not in gone]
        rest = tuple(left.index(axis) for axis in order if axis not in gone)
    operands = [arranger.form(op.operands[0], order)]
    return arranger.add(op, rest, operands, attributes({**op.attributes, "axes": tuple(over)}))


def _pad_or_slice(arranger: Arranger, op: CoreOperation) -> bool:
    """An operation whose attributes have a number for every axis."""
    order = _order_of(arranger, op)
    if order is None:
        return False
    change = pads_attributes if op.opcode == "Pad" else slice_attributes
    given = change(OPS[op.opcode].with_defaults(op.attributes), inverse(order))
    operands = [arranger.form(op.operands[0], order), *map(arranger.form, op.operands[1:])]
    return arranger.add(op, order, operands, attributes(given))


def _transpose(arranger: Arranger, op: CoreOperation) -> bool:
    """The same memory: only the axes have other numbers."""
    back = inverse(op.attributes["permutation"])
    forms = arranger.forms(op.operands[0])
    return bool(forms) and arranger.see(
        op, {tuple(back[axis] for axis in order): value for order, value in forms.items()}
    )


def _reshape(arranger: Arranger, op: CoreOperation) -> bool:
    """The same memory under another shape, where axes that are split or joined lie together."""
    order = _order_of(arranger, op)
    if order is None:
        return False
    (value,) = op.operands
    groups = _axis_groups(arranger.type(value).shape, op.type.shape)
    group_of = {axis: at for at, (before, _) in enumerate(groups) for axis in before}
    # New axes have one element: they may lie anywhere.
    ranks = list(dict.fromkeys([*(group_of[axis] for axis in order), *range(len(groups))]))
    together = tuple(axis for at in ranks for axis in groups[at][0])
    after = tuple(axis for at in ranks for axis in groups[at][1])
    return arranger.reshape(op, after, arranger.form(value, together))


def _axis_groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """Which axes become which, in as many groups as there are."""
    groups: list[tuple[list[int], list[int]]] = []
    left, right = 0, 0
    while left < len(before) or right < len(after):
        first, second = [left][: len(before) - left], [right][: len(after) - right]
        sizes = [prod(before[a] for a in first), prod(after[a] for a in second)]
        left, right = left + len(first), right + len(second)
        while sizes[0] != sizes[1]:
            if sizes[0] < sizes[1]:
                sizes[0] *= before[left]
                first.append(left)
                left += 1
            else:
                sizes[1] *= after[right]
                second.append(right)
                right += 1
        groups.append((first, second))
    return groups


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{name: _elementwise for name, spec in OPS.items() if "elementwise" in spec.traits},
        **dict.fromkeys(("MaxPool", "AvgPool", "LpPool"), _pool),
        **dict.fromkeys(("Sum", "Mean", "Reduce"), _reduce),
        **dict.fromkeys(("Softmax", "LogSoftmax", "BatchNorm"), _along_axis),
        **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _reshape),
        "Conv": _convolve,
        "Concat": _concat,
        **dict.fromkeys(("Pad", "Slice"), _pad_or_slice),
        "Transpose": _transpose,
    }
)
