"""About how large the values of a module are, from its weights alone, if inputs are around 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, inf, prod, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

_AT_A_TIME = 1 << 16  # elements that are squared together: more leave the cache
_SPREAD = 3.0  # the largest of some numbers, in terms of their mean square
_ONE = frozenset({"Softmax", "HardSigmoid", "OneHot"})
_BOUNDED = frozenset({"Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Sign"})
Sizes = dict[int, float]


def estimate_sizes(module: Module) -> Sizes:
    """About how large every value is, from the weights alone."""
    sizes: Sizes = {}
    for op in module.operations:
        array = constant_array(op)
        if array is not None:
            sizes[op.value_id] = _mean_size(array)
        else:
            size = _ESTIMATES.get(op.opcode, _largest_operand_size)(module, op, sizes)
            sizes[op.value_id] = min(size, 1e300) if size == size else inf
    return sizes


def _mean_size(array: Array) -> float:
    if array.dtype.kind not in "fiu" or not array.size:
        return 1.0
    elements, count, total = array.reshape(-1), 0, 0.0
    for first in range(0, elements.size, _AT_A_TIME):
        numbers = elements[first : first + _AT_A_TIME].astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        count += finite.size
        total += float(np.square(finite, out=finite).sum())
    return sqrt(total / count) if count else 0.0


def _largest_operand_size(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return max((sizes[value] for value in op.operands[:2]), default=1.0)


def _unit_size(module: Module, op: CoreOperation, sizes: Sizes) -> float:
    return 1.0


def _first_operand_size(module: Module, op: CoreOperation, sizes: Sizes) -> float:
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
    return min(a, b) if kind == "Min" else max(a, b)


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
        **dict.fromkeys(_ONE, _unit_size),
        **dict.fromkeys(
            ("Gather", "GatherAxis", "GatherElements", "GatherNd", "Pad"), _first_operand_size
        ),
        "BinOp": _binary,
        "Unary": _unary,
        "Exp": _exponential,
        **dict.fromkeys(("Sum", "Reduce", "CumSum"), _sum),
        "Clip": _clipped_size,
        "Input": _unit_size,
        "Compare": _unit_size,
    }
)
