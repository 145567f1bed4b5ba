"""Products on integers that see their input in 16 bits: as steps of 8, and as what rounding left.

Where a few elements are far larger than all others, 256 steps have little left for the others. The
rest of each element, in steps of 1/256, goes through the same product as a second set of rows: the
weights are read once, products of integers are twice as many, as those of f16 would be. All scales
are powers of two, so nothing is lost on the way but what f16 has not.
"""

from __future__ import annotations

from collections.abc import Set
from math import ceil, log2, prod

import numpy as np

from nacre.compile.quantise.affine import HIGH, WIDE_HIGH, Affine
from nacre.compile.quantise.roles import Graph
from nacre.compile.quantise.walking import QuantisedValue, Walk
from nacre.compile.quantise.weights import quantised_weights
from nacre.core.module import CoreOperation
from nacre.core.values import Array

_PARTS = 256.0  # of a step that the rest is counted in
_DEVIATIONS = 8.0  # of what sums of such rests, which are like noise, have room for
_SPREAD = 74.0  # the deviation of numbers that are equally likely from -128 to 127
_ROOM = 1.25  # what was not seen may be larger
_PASSES = 4  # over the elements of input and result that cost about what a weight does
_LEAST, _MOST = 2.0**-20, 2.0**14  # of a step


def takes_parts(graph: Graph, value: int, wide: Set[str]) -> bool:
    """Whether a product may take its input so, and weights are what costs most in it.

    Of many rows and few weights, the passes over the rows would cost more than f16 does.
    """
    op = graph.op(value)
    is_product = op.opcode == "Linear" and graph.roles[value] == "product"
    if not (is_product and op.opcode in wide) or value in graph.kept:
        return False
    columns, depth = graph.constants[op.operands[1]].shape
    rows = prod(op.type.shape[:-1])
    return bool(_PASSES * rows * (depth + columns) <= depth * columns)


def product_of_parts(walk: Walk, op: CoreOperation) -> QuantisedValue | None:
    """The product as floats; None where f16 has no such steps."""
    reach = walk.scales.largest_magnitude(op.operands[0]) * _ROOM
    step = 2.0 ** ceil(log2(max(reach, _LEAST) / HIGH))
    weights = walk.graph.constants[op.operands[1]]
    noise = step * _SPREAD * _DEVIATIONS * float(np.sqrt(np.square(weights).sum(axis=1).max()))
    most = max(walk.scales.wide(op.value_id).scale * WIDE_HIGH, noise)
    y = 2.0 ** ceil(log2(max(most, _LEAST) / WIDE_HIGH))
    if not (_LEAST <= step <= _MOST and y / _PARTS >= _LEAST and most <= _MOST):
        return None
    x = op.operands[0]  # which several products may take
    both = walk.make_once((x, "parts", step), lambda: _input_parts(walk, x, step))
    bias = walk.graph.constants[op.operands[2]] if len(op.operands) > 2 else None
    sums = _integer_sums(walk, both, weights, bias, Affine(step, 0), Affine(y, 0))
    return QuantisedValue(_join(walk, sums, y))


def _input_parts(walk: Walk, value: int, step: float) -> int:
    """A value in steps, and behind it what rounding left of it in parts of a step."""
    add, x = walk.builder.add, walk.floats(value)
    steps = add("BinOp", x, walk.half_constant(np.float16(1 / step)), op="Mul")
    first = walk.steps(steps)
    left = add("BinOp", steps, add("Cast", first, to="f16"), op="Sub")
    parts = add("BinOp", left, walk.half_constant(np.float16(_PARTS)), op="Mul")
    return add("Concat", first, walk.steps(parts), axis=0)


def _integer_sums(
    walk: Walk, both: int, weights: Array, bias: Array | None, x: Affine, y: Affine
) -> int:
    """The products of both parts; each has its share of the bias."""
    share = None if bias is None else bias * np.float32(_PARTS / (_PARTS + 1))
    made = quantised_weights(weights, share, 0, x, y, searched=walk.searched, on_grid=walk.on_grid)
    stored = walk.builder.constant(made.stored, "i8")
    added = walk.builder.constant(made.bias, "i32")
    return walk.builder.add(
        "QLinear", both, stored, added, x_scale=x.scale, x_zero=0, w_scales=made.scales,
        y_scale=y.scale, y_zero=0, to="i16",
    )  # fmt: skip


def _join(walk: Walk, sums: int, y: float) -> int:
    """The sums of both parts as one, in f16."""
    add, shape = walk.builder.add, walk.builder.type_of(sums).shape
    floats, count = add("Cast", sums, to="f16"), shape[0] // 2
    halves = [_slice_rows(walk, floats, shape, first, count) for first in (0, count)]
    first, left = (
        add("BinOp", half, walk.half_constant(np.float16(scale)), op="Mul")
        for half, scale in zip(halves, (y, y / _PARTS), strict=True)
    )
    return add("BinOp", first, left, op="Add")


def _slice_rows(walk: Walk, value: int, shape: tuple[int, ...], first: int, count: int) -> int:
    starts, ends = (first, *(0 for _ in shape[1:])), (first + count, *shape[1:])
    return walk.builder.add("Slice", value, starts=starts, ends=ends, steps=(1,) * len(shape))
