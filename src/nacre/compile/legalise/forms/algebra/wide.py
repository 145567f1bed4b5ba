"""Chains around a logarithm, which stay in f32 where the plan is in f16.

A power is a square: from the least number of f16 that has all its digits to the largest there are
9 decades, of amplitudes that is half as many, and a logarithm sees all of them. So what leads from
squares, exponentials or probabilities to a logarithm is f32, as is what a number is added to before
one, and what leads from the inputs to what is squared: a weak tone beside a loud one is less than
what f16 rounds off. What is subtracted from a logarithm that it was made of, as a mean is, cancels
it: what follows is f32 up to there, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

LEAST_NORMAL = 2.0**-14  # of f16: what is smaller has fewer digits
PRODUCTS = frozenset({"Linear", "Conv"})
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast"})
# What a chain goes through: each keeps what is small small.
_CARRYING = _VIEWS | {
    "BinOp", "Clip", "Neg", "Concat", "AvgPool", "MaxPool", "Reduce", "Sum", "Mean", "ReluNan",
    "Relu", "Where", "Pad", "CumSum", "Flip",
}  # fmt: skip
_ROOTS = frozenset({"Sqrt", "Abs", "Reciprocal"})
# What comes near to 0, or to a number that it is subtracted from, and never gets there.
_LIMITED = frozenset({"Sigmoid", "Tanh", "Erf"})
_STARTING = frozenset({"Exp", "Softmax"})
# What leads from inputs to amplitudes: sums, weights, and elements in other places.
_LINEAR = _VIEWS | {
    "BinOp", "Neg", "Concat", "AvgPool", "Sum", "Mean", "Where", "Pad", "Flip", "Gather",
    "GatherAxis", "GatherElements", "GatherNd", "ScatterElements", "Tile",
}  # fmt: skip
_LINEAR_OPS = frozenset({"Add", "Sub", "Mul", "Div"})
# What a logarithm goes through behind it, and where it meets what it is to be compared with.
_BEHIND = _CARRYING | {"LayerNorm", "RmsNorm"}
_CENTRED = frozenset({"LayerNorm"})


class Chains:
    """What leads to logarithms in a module, and from them to where they cancel."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._linear: set[int] = set()  # made linearly of inputs
        self._powers: set[int] = set()  # made of squares, exponentials or probabilities
        self.wide: set[int] = set()
        self.amplitudes: set[int] = set()  # of these, what leads from inputs to what is squared
        self.is_fine = False  # a logarithm cancels: what is before it needs more digits
        self.guards: set[int] = set()  # products whose bias is a guard
        logarithms = [op for op in module.operations if op.opcode == "Log"]
        if not logarithms:
            return
        for op in module.operations:
            if op.type.dtype == "f32":
                self._classify(op)
        for op in logarithms:
            self._take_logarithm(op)
        for op in logarithms:
            behind = self._cancelling(op) if op.value_id in self.wide else set()
            self.is_fine |= bool(behind)
            self.wide |= behind

    def _classify(self, op: CoreOperation) -> None:
        """Operations come after what they are made of."""
        if self._is_made_linearly(op):
            self._linear.add(op.value_id)
        if self._is_squared(op) or self._is_made_of_power(op):
            self._powers.add(op.value_id)

    def _take_logarithm(self, op: CoreOperation) -> None:
        source = op.operands[0]
        guarded = tuple(self._guarded(source))
        if source in self._powers or guarded:
            self.wide.update((op.value_id, *guarded))
            self._take_powers(source)

    def _take_powers(self, value: int) -> None:
        """All that a power is made of, and what leads from inputs to what is squared."""
        waiting, taken = [value], set[int]()
        while waiting:
            op = self._op(waiting.pop())
            if op.value_id in taken or op.value_id not in self._powers:
                continue
            taken.add(op.value_id)
            if self._is_squared(op) and op.operands[0] not in self._powers:
                self._take_amplitudes(op.operands[0])
            elif op.opcode not in _STARTING:
                waiting += op.operands
        self.wide |= taken

    def _take_amplitudes(self, value: int) -> None:
        waiting = [value]
        while waiting:
            value = waiting.pop()
            if value in self._linear and value not in self.amplitudes:
                self.amplitudes.add(value)
                waiting += self._op(value).operands
        self.wide |= self.amplitudes

    def _op(self, value: int) -> CoreOperation:
        return self._module.by_id[value]

    def _number(self, value: int) -> Array | None:
        return constant_array(self._op(value))

    def _is_made_of_power(self, op: CoreOperation) -> bool:
        kind = op.attributes.get("op")
        if op.opcode in _STARTING or (op.opcode == "Unary" and kind in _LIMITED):
            return True
        is_root = op.opcode == "Unary" and kind in _ROOTS
        if op.opcode in _CARRYING or is_root:
            return not self._powers.isdisjoint(op.operands)
        is_product = op.opcode in PRODUCTS and self._number(op.operands[1]) is not None
        return is_product and op.operands[0] in self._powers

    def _is_squared(self, op: CoreOperation) -> bool:
        """Whether an operation takes squares, or magnitudes."""
        kind = op.attributes.get("op")
        if op.opcode != "BinOp":
            is_sum = op.opcode == "Reduce" and kind in ("SumSquare", "L2", "L1")
            return is_sum or (op.opcode == "Unary" and kind == "Abs")
        a, b = op.operands
        if kind != "Pow":
            return kind == "Mul" and a == b
        power = self._number(b)
        return power is not None and bool((np.abs(power) > 1).all())

    def _is_made_linearly(self, op: CoreOperation) -> bool:
        if op.opcode == "Input":
            return True
        if op.opcode in PRODUCTS:
            is_known = self._number(op.operands[1]) is not None
            return is_known and op.operands[0] in self._linear
        is_other = op.opcode == "BinOp" and op.attributes["op"] not in _LINEAR_OPS
        return op.opcode in _LINEAR and not is_other and not self._linear.isdisjoint(op.operands)

    def _guarded(self, value: int) -> Iterator[int]:
        """What stands between a logarithm and the number that keeps it from 0."""
        op, behind = self._op(value), list[int]()
        while op.opcode in _VIEWS:
            behind.append(op.value_id)
            op = self._op(op.operands[0])
        if op.opcode in PRODUCTS and len(op.operands) > 2 and self._is_tiny(op.operands[2]):
            self.guards.add(op.value_id)
            yield from behind
        elif self._is_guard(op):
            yield from (*behind, op.value_id)

    def _is_guard(self, op: CoreOperation) -> bool:
        """A small number below, or any that is added: of 1 + x, too, x may be small."""
        if op.opcode == "Clip":
            least = op.attributes.get("min")
            return isinstance(least, float) and 0 < least < LEAST_NORMAL
        if op.opcode != "BinOp":
            return False
        kind = op.attributes["op"]
        if kind in ("Add", "Sub"):
            return any(self._number(value) is not None for value in op.operands)
        return kind == "Max" and any(self._is_tiny(value) for value in op.operands)

    def _is_tiny(self, value: int) -> bool:
        array = self._number(value)
        if array is None or array.dtype.kind != "f" or not array.size:
            return False
        return bool((array != 0).any() and (np.abs(array) < LEAST_NORMAL).all())

    def _cancelling(self, logarithm: CoreOperation) -> set[int]:
        """What a logarithm is made into, up to where it meets itself again and cancels."""
        reached, met = {logarithm.value_id}, False
        users = self._users
        for op in self._module.operations:
            inside = [operand for operand in op.operands if operand in reached]
            if inside and op.type.dtype == "f32" and self._goes_behind(op):
                reached.add(op.value_id)
                is_less = op.opcode == "BinOp" and op.attributes["op"] == "Sub"
                met |= op.opcode in _CENTRED or (is_less and len({*inside}) > 1)
        if not met:
            return set()
        for op in reversed(self._module.operations):  # what only moves may as well be narrow
            if op.value_id in reached and op.opcode in _VIEWS and not reached & users[op.value_id]:
                reached.discard(op.value_id)
        return reached

    def _goes_behind(self, op: CoreOperation) -> bool:
        is_root = op.opcode == "Unary" and op.attributes["op"] in _ROOTS
        return op.opcode in _BEHIND or is_root

    @property
    def _users(self) -> defaultdict[int, set[int]]:
        found = defaultdict[int, set[int]](set)
        for op in self._module.operations:
            for operand in op.operands:
                found[operand].add(op.value_id)
        return found
