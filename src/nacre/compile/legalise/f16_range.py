"""Values that f16 cannot hold: too large, or so small that few digits are left.

Weights alone tell about how large values are, if inputs are around 1. Where that comes near an end
of f16, the module is run in f32 on inputs that are drawn, and what is seen beyond stays f32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import exp, inf, prod, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.running import Watched
from nacre.compile.sampling.draw import draw_inputs
from nacre.core.constants import constant_array
from nacre.core.evaluation.plan import initial_values
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

_HIGHEST = GRAPH_TYPES["f16"].highest
_LARGE, _SMALL = _HIGHEST / 4, 2.0**-13  # of values that were seen: others come a little larger
_ROUNDED, _LOST = 2.0**-11, 2.0**-25  # what f16 rounds off: of a number, and of one near 0
_NEAR = 16.0  # how far estimates may be off
_MOST_MACS = 2e10  # of a module that is run
_SPREAD = 3.0  # the largest of some numbers, in terms of their mean square
_ALIKE, _FAR = 0.99, 1e3  # what is as good as the least; how far below all else a mask is
_NORMS = frozenset({"LayerNorm", "RmsNorm", "Log", "Softmax"})
_ENLARGING = frozenset({"Mul", "Div", "Pow", "Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal"})
_ONE = frozenset({"Softmax", "HardSigmoid", "OneHot"})
_BOUNDED = frozenset({"Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Sign"})
Sizes = dict[int, float]


@dataclass(frozen=True)
class Beyond:
    """The values of a module that f16 cannot hold, and the largest of each value that was seen."""

    values: frozenset[int] = frozenset()
    largest: Mapping[int, float] = field(default_factory=dict)
    faded: frozenset[int] = frozenset()  # small, and nothing is lost with what f16 loses of them


def beyond_half(module: Module, source: Module) -> Beyond:
    """What f16 cannot hold of a module in f32 that is made of a model."""
    if not _is_near_an_end(module) or _macs(module) > _MOST_MACS:
        return Beyond()
    largest = _observe_magnitudes(module, source)
    floats = {op.value_id for op in module.operations if op.type.dtype == "f32"}
    large = {value for value in floats if largest.get(value, 0.0) > _LARGE}
    small = {value for value in floats if 0 < largest.get(value, 0.0) < _SMALL}
    telling = _telling_values(module, small, largest)
    values = frozenset(large | telling)
    return Beyond(values, largest, frozenset(small - telling)) if values else Beyond()


def notes_on_small_outputs(module: Module, beyond: Beyond) -> Iterator[str]:
    """A note where outputs are so small that what leads to them is f32."""
    sizes = [beyond.largest[value] for value in module.outputs if value in beyond.values]
    least = min(sizes, default=inf)
    if least < _SMALL:
        count = sum(beyond.largest[value] < _SMALL for value in beyond.values)
        yield (
            f"outputs are about {least:.0e}, which f16 does not hold: what leads to them stays f32 "
            f"and takes longer (values: {count:,}); weights that nobody has trained give such"
        )


def _telling_values(module: Module, small: set[int], largest: Mapping[int, float]) -> set[int]:
    """Of small values those that are made large again or given out; what only fades may be lost."""
    found = small.intersection(module.outputs)
    for op in reversed(module.operations):
        inside = small.intersection(op.operands)
        if op.value_id in found:
            found |= {value for value in inside if not _is_lost(module, op, value, largest)}
        elif op.value_id not in small and _enlarges(op):
            found |= inside
    return found


def _is_lost(module: Module, op: CoreOperation, value: int, largest: Mapping[int, float]) -> bool:
    """Whether a result has as many digits as f16 gives, whatever f16 loses of an operand."""
    if op.opcode == "BinOp" and op.attributes["op"] in ("Add", "Sub"):
        gain = 1.0
    elif op.opcode in ("Linear", "Conv") and value == op.operands[0] and len(op.operands) > 2:
        gain = _gain(module, op)
    else:
        return False
    return gain * min(largest[value], _LOST) <= _ROUNDED * largest[op.value_id]


def _gain(module: Module, op: CoreOperation) -> float:
    """How much larger than the largest x its products can be, without the bias."""
    weights = constant_array(module.by_id[op.operands[1]])
    if weights is None or not weights.size:
        return inf
    axes = (1,) if op.opcode == "Linear" else tuple(range(weights.ndim - 1))
    return float(np.max(np.sum(np.abs(weights.astype(np.float64)), axis=axes)))


def _enlarges(op: CoreOperation) -> bool:
    return op.opcode in _NORMS or op.attributes.get("op") in _ENLARGING


def _is_near_an_end(module: Module) -> bool:
    sizes = estimate_sizes(module)
    computed = [
        sizes[op.value_id]
        for op in module.operations
        if op.type.dtype == "f32" and "constant" not in OPS[op.opcode].traits
    ]
    return any(size > _LARGE / _NEAR or 0 < size < _SMALL * _NEAR for size in computed)


def _macs(module: Module) -> float:
    total = 0.0
    for op in module.operations:
        shapes = [module.by_id[value].type.shape for value in op.operands]
        if op.opcode in ("Linear", "MatMul"):
            total += prod(op.type.shape) * shapes[0][-1]
        elif op.opcode == "Conv":
            total += prod(op.type.shape) * prod(shapes[1][:-1])
    return total


def _observe_magnitudes(module: Module, source: Module) -> dict[int, float]:
    """The largest magnitude of every value, on inputs that are drawn."""
    types = module.input_types
    given = {**initial_values(source), **draw_inputs(source, 0)}
    arrays = {
        name: np.asarray(given[name]).astype(type_.element.dtype) for name, type_ in types.items()
    }
    with np.errstate(all="ignore"):
        return {value: _largest(array) for value, array in Watched(module).run(arrays)}


def _largest(array: Array) -> float:
    """The largest magnitude, but for one negative number far below all others, which hides."""
    if array.dtype.kind != "f" or not array.size:
        return 0.0
    finite = array[np.isfinite(array)].astype(np.float64)
    whole = float(np.abs(finite).max(initial=0.0))
    least = float(finite.min(initial=0.0))
    if -least < whole:
        return whole
    rest = float(np.abs(finite[finite > _ALIKE * least]).max(initial=0.0))
    return rest if -least > max(_FAR * rest, _LARGE) else whole


def estimate_sizes(module: Module) -> Sizes:
    """About how large every value is, from the weights alone."""
    sizes: Sizes = {}
    for op in module.operations:
        array = constant_array(op)
        if array is not None:
            sizes[op.value_id] = _mean_size(array)
        else:
            found = _ESTIMATES.get(op.opcode, _alike)(module, op, sizes)
            sizes[op.value_id] = min(found, 1e300) if found == found else inf
    return sizes


def _mean_size(array: Array) -> float:
    if array.dtype.kind not in "fiu" or not array.size:
        return 1.0
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def _alike(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return max((sizes[value] for value in op.operands[:2]), default=1.0)


def _one(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return 1.0


def _first(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return sizes[op.operands[0]]


def _product(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    """Products of numbers that are independent of each other."""
    x, weights, *bias = op.operands
    shape = module.by_id[weights].type.shape
    axis = {"Linear": -1, "MatMul": -2}.get(op.opcode)
    depth = shape[axis] if axis is not None and len(shape) > 1 else prod(shape[:-1])
    added = sum(sizes[value] for value in bias)
    return sizes[x] * sizes[weights] * sqrt(max(depth, 1)) + added


def _norm(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return sum((sizes[value] for value in op.operands[1:]), 0.0) or 1.0


def _binary(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    a, b = (sizes[value] for value in op.operands)
    kind = op.attributes["op"]
    if kind == "Mul":
        return a * b
    if kind == "Div":
        return a / b if b else a
    if kind == "Pow":
        return float(np.float64(max(a, 1e-300)) ** min(b, 300.0))
    return max(a, b)


def _unary(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    size, kind = sizes[op.operands[0]], op.attributes["op"]
    if kind in _BOUNDED:
        return 1.0
    if kind == "Reciprocal":
        return 1 / size if size else 1.0
    return sqrt(size) if kind == "Sqrt" else size


def _exponential(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return exp(min(_SPREAD * sizes[op.operands[0]], 700.0))


def _sum(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    size = sizes[op.operands[0]]
    before, after = (prod(module.by_id[v].type.shape) for v in (op.operands[0], op.value_id))
    count, kind = before / max(after, 1), str(op.attributes.get("op", "Sum"))
    if kind == "SumSquare":
        return size * size * count
    return size * count if kind in ("Sum", "L1") else size * sqrt(count) if kind == "L2" else size


def _clipped_size(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    given: Mapping[str, Any] = OPS["Clip"].with_defaults(op.attributes)
    most = float(max(abs(given["min"]), abs(given["max"])))
    return min(sizes[op.operands[0]], most)


_Estimate = Callable[[Module, CoreOperation, Sizes], float]
_ESTIMATES: Mapping[str, _Estimate] = MappingProxyType(
    {
        **dict.fromkeys(("Linear", "MatMul", "Conv"), _product),
        **dict.fromkeys(("LayerNorm", "RmsNorm"), _norm),
        **dict.fromkeys(_ONE, _one),
        **dict.fromkeys(("Gather", "GatherAxis", "GatherElements", "GatherNd", "Pad"), _first),
        "BinOp": _binary,
        "Unary": _unary,
        "Exp": _exponential,
        **dict.fromkeys(("Sum", "Reduce", "CumSum"), _sum),
        "Clip": _clipped_size,
        "Input": _one,
        "Compare": _one,
    }
)
