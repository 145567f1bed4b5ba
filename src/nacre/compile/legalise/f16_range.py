"""Values that f16 cannot hold: too large, or so small that few digits are left.

Weights alone tell about how large values are, if inputs are around 1. Where that comes near an end
of f16, the module is run in f32 on inputs that are drawn, and what is seen beyond stays f32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, prod, sqrt

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.f16_digits import badly_scaled_values, cancelling_values, may_cancel
from nacre.compile.legalise.running import StepwiseRunner, kernel_call
from nacre.compile.legalise.size_estimates import estimate_sizes
from nacre.compile.sampling.draw import draw_inputs
from nacre.core.constants import constant_array
from nacre.core.evaluation.plan import initial_values
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array
from nacre.kernels.registry import PRIMITIVES

_HIGHEST = GRAPH_TYPES["f16"].highest
_LARGE, _SMALL = _HIGHEST / 4, 2.0**-13  # of values that were seen: others come a little larger
_ROUNDED, _LOST = 2.0**-11, 2.0**-25  # what f16 rounds off: of a number, and of one near 0
_FEW_DIGITS = 2.0**-9  # of a result that is no small one: f16 leaves fewer than that
_NEAR = 16.0  # how far estimates may be off
_MOST_MACS, _MOST_STEPS = 2e10, 2e9  # of a module that is run: products of matrices, all else
_MOST_ELEMENTS = 1 << 28  # of its largest value
_LOOKED_AT = 4  # times that every element of a value is, to find the largest
_STEPS_OF_PLACE = 10_000  # what a place of a window takes that is done by itself, in elements
_ALIKE, _FAR = 0.99, 1e3  # what is as good as the least; how far below all else a mask is
_PRODUCTS = frozenset({"Linear", "Conv", "MatMul"})
_NORMS = frozenset({"LayerNorm", "RmsNorm", "Log", "Softmax"})
_ENLARGING = frozenset({"Mul", "Div", "Pow", "Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal"})


@dataclass(frozen=True)
class OutOfF16Range:
    """The values of a module that f16 cannot hold, and the largest of each value that was seen."""

    values: frozenset[int] = frozenset()
    largest: Mapping[int, float] = field(default_factory=dict)
    faded: frozenset[int] = frozenset()  # small, and nothing is lost with what f16 loses of them
    alone: frozenset[int] = frozenset()  # f32 themselves, and not what is made of them


def values_beyond_f16(module: Module, source: Module) -> OutOfF16Range:
    """What f16 cannot hold of a module in f32 that is made of a model."""
    alone = badly_scaled_values(module)
    is_seen = _may_leave_f16(module) or may_cancel(module)
    if not is_seen or not _is_soon_run(module):
        return OutOfF16Range(alone=alone)
    largest = _observe_magnitudes(module, source)
    floats = {op.value_id for op in module.operations if op.type.dtype == "f32"}
    large = {value for value in floats if largest.get(value, 0.0) > _LARGE}
    small = {value for value in floats if 0 < largest.get(value, 0.0) < _SMALL}
    cancelling = cancelling_values(module, largest)
    counted = {operand for value in cancelling for operand in module.by_id[value].operands}
    telling = _significant_values(module, small, largest, counted.union(module.outputs))
    values, faded = frozenset(large | telling), frozenset(small - telling)
    return OutOfF16Range(values, largest, faded, (alone - faded) | cancelling)


def notes_on_small_outputs(module: Module, beyond: OutOfF16Range) -> Iterator[str]:
    """A note where outputs are so small that what leads to them is f32."""
    sizes = [beyond.largest[value] for value in module.outputs if value in beyond.values]
    least = min(sizes, default=inf)
    if least < _SMALL:
        count = sum(beyond.largest[value] < _SMALL for value in beyond.values)
        yield (
            f"outputs are about {least:.0e}, which f16 does not hold: what leads to them stays f32 "
            f"and takes longer (values: {count:,}); weights that nobody has trained give such"
        )


def _significant_values(
    module: Module, small: set[int], largest: Mapping[int, float], counted: set[int]
) -> set[int]:
    """Of small values those that are `counted` or made large again; what only fades may be lost."""
    telling = small & counted
    for op in reversed(module.operations):
        inside = small.intersection(op.operands)
        if inside and op.value_id in telling:
            telling |= {x for x in inside if _lost_share(module, op, x, largest) > _ROUNDED}
        elif inside and op.value_id not in small:
            telling |= {x for x in inside if _enlarges(module, op, x, largest)}
    return telling


def _enlarges(module: Module, op: CoreOperation, x: int, largest: Mapping[int, float]) -> bool:
    if op.opcode in _PRODUCTS:
        return _lost_share(module, op, x, largest) > _FEW_DIGITS
    return op.opcode in _NORMS or op.attributes.get("op") in _ENLARGING


def _lost_share(module: Module, op: CoreOperation, x: int, largest: Mapping[int, float]) -> float:
    """How much of a result is lost at most with what f16 loses of an operand."""
    is_sum = op.opcode == "BinOp" and op.attributes["op"] in ("Add", "Sub")
    if not is_sum and op.opcode not in _PRODUCTS:
        return 1.0
    gain = _gain(module, op, x, largest) if op.opcode in _PRODUCTS else 1.0
    return gain * min(largest[x], _LOST) / (largest[op.value_id] or inf)


def _gain(module: Module, op: CoreOperation, x: int, largest: Mapping[int, float]) -> float:
    """How much larger than errors of x those of products are, if they are independent."""
    factors = op.operands[:2]
    if x not in factors:
        return 1.0  # of a bias
    other = factors[1] if x == factors[0] else factors[0]
    array = constant_array(module.by_id[other])
    if array is None or not array.size:
        depth = module.by_id[factors[0]].type.shape[-1]
        return largest.get(other, 0.0) * sqrt(depth)
    axes: tuple[int, ...] = tuple(range(array.ndim - 1))  # of windows
    if op.opcode != "Conv":
        axes = (-2,) if op.opcode == "MatMul" and x == factors[0] and array.ndim > 1 else (-1,)
    return sqrt(np.max(np.sum(array.astype(np.float64) ** 2, axis=axes)))


def _may_leave_f16(module: Module) -> bool:
    sizes = estimate_sizes(module)
    computed = [
        sizes[op.value_id]
        for op in module.operations
        if op.type.dtype == "f32" and "constant" not in OPS[op.opcode].traits
    ]
    return any(size > _LARGE / _NEAR or 0 < size < _SMALL * _NEAR for size in computed)


def _is_soon_run(module: Module) -> bool:
    """Whether a run takes no longer, and no more memory, than what it tells is worth."""
    if any(prod(op.type.shape) > _MOST_ELEMENTS for op in module.operations):
        return False
    macs = steps = 0.0
    for op in module.operations:
        primitive = OPS[op.opcode].primitive
        if primitive is None:
            continue
        work = PRIMITIVES[primitive].work(kernel_call(module, op))
        is_product = op.opcode in _PRODUCTS and op.attributes.get("groups", 1) == 1
        macs += work.macs if is_product else 0
        steps += work.elements * work.each + (0 if is_product else work.macs)
        steps += _LOOKED_AT * prod(op.type.shape)
        if op.opcode == "Conv" and not is_product:
            window = module.by_id[op.operands[1]].type.shape[:-2]
            steps += _STEPS_OF_PLACE * prod(window)
    return macs <= _MOST_MACS and steps <= _MOST_STEPS


def _observe_magnitudes(module: Module, source: Module) -> dict[int, float]:
    """The largest magnitude of every value, on inputs that are drawn."""
    types = module.input_types
    given = {**initial_values(source), **draw_inputs(source, 0)}
    arrays = {
        name: np.asarray(given[name]).astype(type_.element.dtype) for name, type_ in types.items()
    }
    with np.errstate(all="ignore"):
        return {value: _largest(array) for value, array in StepwiseRunner(module).run(arrays)}


def _largest(array: Array) -> float:
    """The largest magnitude, but for one negative number far below all others, which hides."""
    if array.dtype.kind != "f" or not array.size:
        return 0.0
    highest, least = float(array.max()), float(array.min())
    if not (isfinite(highest) and isfinite(least)):
        array = array[np.isfinite(array)]
        highest, least = float(array.max(initial=0)), float(array.min(initial=0))
    whole = max(highest, -least)
    if highest > -least or whole <= _LARGE:
        return whole
    rest = float(np.abs(array[array > _ALIKE * least]).max(initial=0))
    return rest if whole > max(_FAR * rest, _LARGE) else whole
