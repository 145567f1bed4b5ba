"""What each operation of a legal module is to the quantiser, and which of them stay floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from nacre.compile.legalise.forms.masks.levelling import mask_values
from nacre.compile.legalise.lowerings import lowering_of
from nacre.compile.quantise.observers import Histogram
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

# product: weights are constant; pair: other products of matrices; scale: channels times a computed
# vector; keep: elements are moved or picked, so integers mean after it what they meant before;
# island: floats of 16 bits; plain: the result is no float.
Role = Literal[
    "input", "constant", "product", "pair", "scale", "map", "pool", "keep", "island", "plain"
]  # fmt: skip

_KEEPS = frozenset({
    "Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Concat", "Broadcast", "Pad", "Flip",
    "Tile", "Index", "MaxPool", "DepthToSpace", "SpaceToDepth", "TopKValues", "DynamicSlice",
})  # fmt: skip
_GATHERS = frozenset({"Gather", "GatherAxis", "GatherElements", "GatherNd"})
_PICKED = frozenset({"Max", "Min"})  # of `Reduce`
# Of a range that begins at 0, the share in which a steep function loses the small elements.
_STEEP = 1.0 / 16.0
_MOST_EXPONENT = 3.0


class Graph:
    """A module with what is asked of it again and again."""

    def __init__(self, module: Module, given: frozenset[tuple[float, float]] = frozenset()) -> None:
        self.module, self._given = module, given
        self.constants: dict[int, Array] = {}
        self.users: dict[int, list[CoreOperation]] = {}
        for op in module.operations:
            array = constant_array(op)
            if array is not None:
                self.constants[op.value_id] = array
            for operand in dict.fromkeys(op.operands):
                self.users.setdefault(operand, []).append(op)
        self.kept = frozenset(module.outputs)
        self.wide = mask_values(module)  # f32 until the largest of each row is taken off
        self.roles: dict[int, Role] = {op.value_id: self._role(op) for op in module.operations}

    def op(self, value: int) -> CoreOperation:
        """What defines a value."""
        return self.module.by_id[value]

    def is_float(self, value: int) -> bool:
        """Whether a value is of floats."""
        return self.op(value).type.element.kind == "float"

    def computed_operands(self, op: CoreOperation) -> list[int]:
        """The operands that are floats and no constants."""
        return [o for o in op.operands if o not in self.constants and self.is_float(o)]

    def only_user(self, value: int) -> CoreOperation | None:
        """The one operation that uses a value, once; None where there is none or an output."""
        users = self.users.get(value, [])
        if value in self.kept or len(users) != 1 or users[0].operands.count(value) != 1:
            return None
        return users[0]

    def table_bounds(self, op: CoreOperation) -> tuple[float, float] | None:
        """The bounds that say the scale of a constant table, by what holds the rows taken from it.

        None where the model gives none, or the operation takes no rows.
        """
        if op.opcode not in _GATHERS or op.operands[0] not in self.constants:
            return None
        user = self.only_user(op.value_id)
        bounds = None if user is None else bounds_of(user)
        return bounds if bounds in self._given else None

    def _role(self, op: CoreOperation) -> Role:
        if op.value_id in self.constants:
            return "constant"
        if op.opcode == "Input":
            return "input"
        if op.type.element.kind != "float":
            return "plain"
        if op.value_id in self.wide:
            return "island"
        return _FINDERS.get(op.opcode, _map_or_island)(self, op)


def _product(graph: Graph, op: CoreOperation) -> Role:
    """Constant weights make a product; a computed vector of weights scales channels."""
    if all(operand in graph.constants for operand in op.operands[1:]):
        return "product" if np.isfinite(graph.constants[op.operands[1]]).all() else "island"
    return "scale" if op.opcode == "Conv" and _scales_channels(graph, op) else "island"


def _scales_channels(graph: Graph, op: CoreOperation) -> bool:
    weights = graph.op(op.operands[1]).type.shape
    filled = OPS["Conv"].with_defaults(op.attributes)
    is_single = weights[:-1] == (1,) * (len(weights) - 1)
    return len(op.operands) == 2 and is_single and filled["groups"] == weights[-1]


def _gather(graph: Graph, op: CoreOperation) -> Role:
    """Rows of a constant table stay floats: one scale for all words of a language is too coarse.

    Where the model has such a scale itself, nothing is lost.
    """
    is_known = op.operands[0] not in graph.constants or graph.table_bounds(op) is not None
    return "keep" if is_known else "island"


def _pair(graph: Graph, op: CoreOperation) -> Role:
    """Matrices image by image, of which one may be a constant."""
    known = [graph.constants[o] for o in op.operands if o in graph.constants]
    is_finite = all(np.isfinite(array).all() for array in known)
    are_floats = len(graph.computed_operands(op)) + len(known) == len(op.operands)
    return "pair" if is_finite and are_floats else "island"


def _resize(graph: Graph, op: CoreOperation) -> Role:
    return "keep" if OPS["Resize"].with_defaults(op.attributes)["mode"] == "nearest" else "island"


def _pad(graph: Graph, op: CoreOperation) -> Role:
    return "keep" if np.isfinite(OPS["Pad"].with_defaults(op.attributes)["value"]) else "island"


def _reduce(graph: Graph, op: CoreOperation) -> Role:
    return "keep" if op.attributes["op"] in _PICKED else "island"


def _keep(graph: Graph, op: CoreOperation) -> Role:
    return "keep"


def _pool(graph: Graph, op: CoreOperation) -> Role:
    return "pool"


def _map_or_island(graph: Graph, op: CoreOperation) -> Role:
    row = lowering_of(op)
    is_map = row is not None and row.kind == "map" and op.opcode != "Cast"
    finite = all(np.isfinite(graph.constants[o]).all() for o in op.operands if o in graph.constants)
    return "map" if is_map and finite and graph.computed_operands(op) else "island"


_FINDERS: Mapping[str, Callable[[Graph, CoreOperation], Role]] = {
    **dict.fromkeys(_KEEPS, _keep),
    **dict.fromkeys(_GATHERS, _gather),
    "Linear": _product,
    "Conv": _product,
    "MatMul": _pair,
    "AvgPool": _pool,
    "Resize": _resize,
    "Pad": _pad,
    "Reduce": _reduce,
}


def scale_factor(graph: Graph, op: CoreOperation) -> float | None:
    """The positive number that an operation multiplies one tensor by; None where it does not."""
    if op.opcode != "BinOp" or op.attributes["op"] not in ("Mul", "Div"):
        return None
    is_product = op.attributes["op"] == "Mul"
    number = _constant_operand(graph, op, is_commutative=is_product)
    if number is None or not 2.0**-20 < number < 2.0**20:
        return None
    return number if is_product else 1.0 / number


def added_number(graph: Graph, op: CoreOperation) -> float | None:
    """The number that an operation adds to one tensor; None where it does something else."""
    if op.opcode != "BinOp" or op.attributes["op"] not in ("Add", "Sub"):
        return None
    is_sum = op.attributes["op"] == "Add"
    found = _constant_operand(graph, op, is_commutative=is_sum)
    return found if found is None or is_sum else -found


def _constant_operand(graph: Graph, op: CoreOperation, is_commutative: bool) -> float | None:
    """The finite number that the other operand is joined with; on the left only if that turns."""
    left, right = op.operands
    value = right if right in graph.constants else left if is_commutative else -1
    array = graph.constants.get(value)
    other = left if value == right else right
    if array is None or other in graph.constants or graph.op(other).type.shape != op.type.shape:
        return None
    number = float(array.flat[0]) if array.size and (array == array.flat[0]).all() else np.nan
    return number if np.isfinite(number) else None


def bounds_of(op: CoreOperation) -> tuple[float, float] | None:
    """Between which numbers an operation holds its operand; None where it does something else."""
    if op.opcode == "ReluNan":
        return 0.0, float("inf")
    if op.opcode != "Clip":
        return None
    filled = OPS["Clip"].with_defaults(op.attributes)
    return float(filled["min"]), float(filled["max"])


def is_dangerous(graph: Graph, op: CoreOperation, histograms: Mapping[int, Histogram]) -> bool:
    """Whether steps of equal size would lose what a steep function makes of small elements."""
    name = str(op.attributes.get("op", op.opcode))
    found = _DANGERS.get(name)
    return found is not None and found(graph, op, histograms)


def _value_range(
    graph: Graph, value: int, histograms: Mapping[int, Histogram]
) -> tuple[float, float]:
    if value in graph.constants:
        array = graph.constants[value]
        return float(array.min()), float(array.max())
    found = histograms.get(value)
    return (found.low, found.high) if found is not None and not found.is_empty else (0.0, 0.0)


def _comes_near_zero(graph: Graph, op: CoreOperation, histograms: Mapping[int, Histogram]) -> bool:
    """The last operand comes close to 0, compared with its greatest magnitude."""
    low, high = _value_range(graph, op.operands[-1], histograms)
    least = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    return least <= _STEEP * max(abs(low), abs(high))


def _divides_by_near_zero(
    graph: Graph, op: CoreOperation, histograms: Mapping[int, Histogram]
) -> bool:
    return scale_factor(graph, op) is None and _comes_near_zero(graph, op, histograms)


def _exponent_overflows(
    graph: Graph, op: CoreOperation, histograms: Mapping[int, Histogram]
) -> bool:
    low, high = _value_range(graph, op.operands[0], histograms)
    return high - low > _MOST_EXPONENT


def _is_steep_power(graph: Graph, op: CoreOperation, histograms: Mapping[int, Histogram]) -> bool:
    """Squares are fine, whatever else is not."""
    array = graph.constants.get(op.operands[1])
    return array is None or not bool(np.isin(array, (1.0, 2.0)).all())


_DANGERS: Mapping[str, Callable[[Graph, CoreOperation, Mapping[int, Histogram]], bool]] = {
    "Sqrt": _comes_near_zero,
    "Log": _comes_near_zero,
    "Div": _divides_by_near_zero,
    "Exp": _exponent_overflows,
    "Pow": _is_steep_power,
}
