"""Norms between integers: a scale goes into the norm itself, and a cast does the rest.

A norm divides by what its row spreads over, so rows of stored integers give the same as rows of
the reals that they stand for, once epsilon counts in their steps. What leaves the norm is a
product and a sum for each column, which take the steps of the result as well. So neither way needs
`quantize` or `dequantize`, which are work for the slowest unit.
"""

from __future__ import annotations

import numpy as np

from nacre.compile.quantise.walking import QuantisedValue, Walk
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import Array

_NORMS = frozenset({"LayerNorm", "RmsNorm"})
_CENTRED = frozenset({"LayerNorm"})  # where a number added to every element is nothing
_MOST_EPSILON = 2.0**100
_MOST_FACTOR = 2.0**12  # of f16, with room for what it is multiplied with


def norm(walk: Walk, op: CoreOperation) -> QuantisedValue | None:
    """A norm on floats of 16 bits that are integers before or after; None where nothing changes."""
    if op.opcode not in _NORMS:
        return None
    given = OPS[op.opcode].with_defaults(op.attributes)
    entered = _floats_in_steps(walk, op, float(given["epsilon"]))
    leaving = _scaled_parameters(walk, op)
    if entered is None and leaving is None:
        return None
    x, epsilon = entered or (walk.floats(op.operands[0]), given["epsilon"])
    if leaving is None:
        others = [walk.floats(operand) for operand in op.operands[1:]]
    else:
        others = [walk.builder.constant(array, "f16") for array in leaving]
    result = walk.builder.add(op.opcode, x, *others, **{**op.attributes, "epsilon": epsilon})
    if leaving is None:
        return QuantisedValue(result)
    y = walk.scales.of(op.value_id)
    if y.zero and op.opcode not in _CENTRED:  # it has no sums that could take it
        result = walk.builder.add("BinOp", result, walk.half_constant(np.float16(y.zero)), op="Add")
    return QuantisedValue(walk.steps(result), y)


def _floats_in_steps(walk: Walk, op: CoreOperation, epsilon: float) -> tuple[int, float] | None:
    """Integers as floats without their scale, and epsilon in their steps."""
    stored = walk.stored.get(op.operands[0])
    if stored is None or stored.affine is None:
        return None
    if stored.affine.zero and op.opcode not in _CENTRED:
        return None
    steps = epsilon / stored.affine.scale**2
    if steps > _MOST_EPSILON:
        return None
    value = stored.value
    return walk.make_once(
        (value, "steps"), lambda: walk.builder.add("Cast", value, to="f16")
    ), steps


def _scaled_parameters(walk: Walk, op: CoreOperation) -> list[Array] | None:
    """The factors and sums of a norm whose result is in steps of its scale, from zero on."""
    y = walk.scales.of(op.value_id)
    if not walk.is_only_stored(op, y):
        return None
    given = [walk.graph.constants.get(operand) for operand in op.operands[1:]]
    columns = walk.graph.op(op.value_id).type.shape[-1:]
    known = [array for array in given if array is not None]
    if len(known) < len(given) or any(array.shape != columns for array in known):
        return None
    factors, *sums = known or [np.ones(columns, np.float32)]
    scaled = [factors / np.float32(y.scale)]
    if op.opcode in _CENTRED:
        sums = sums or [np.zeros(columns, np.float32)]
        scaled.append(sums[0] / np.float32(y.scale) + np.float32(y.zero))
    if any(not np.abs(array).max(initial=0.0) < _MOST_FACTOR for array in scaled):
        return None
    return [array.astype(np.float16) for array in scaled]
