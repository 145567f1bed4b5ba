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
from collections.abc import Iterable, Iterator

import numpy as np

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

LEAST_NORMAL = 2.0**-14  # of f16: what is smaller has fewer digits
_PLAIN = 2.0**-10  # beside such a number f16 loses nothing of a power that counts
PRODUCTS = frozenset({"Linear", "Conv", "MatMul"})
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast"})
# What a chain goes through: each keeps what is small small.
_CARRYING = _VIEWS | {
    "BinOp", "Clip", "Neg", "Concat", "AvgPool", "MaxPool", "Reduce", "Sum", "Mean", "ReluNan",
    "Relu", "Where", "Pad", "CumSum", "Flip",
}  # fmt: skip
_SQUARE_ROOT = 0.5  # of a power f16 has it as well as it has amplitudes
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
_HOLDING = frozenset({"Relu", "ReluNan", "Clip"})
# Sums of amplitudes, which may be far smaller than what they are made of.
_SUMS = PRODUCTS | {"Sum", "Mean", "AvgPool"}
# What a logarithm goes through behind it, and where it meets what it is to be compared with.
_BEHIND = _CARRYING | {"LayerNorm", "RmsNorm"}
_CENTRED = frozenset({"LayerNorm"})


class LogarithmChains:
    """What leads to logarithms in a module, and from them to where they cancel."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._linear: set[int] = set()  # made linearly of inputs
        self._powers: set[int] = set()  # made of squares, exponentials or probabilities
        self.wide: set[int] = set()
        self.amplitudes: set[int] = set()  # of these, what leads from inputs to what is squared
        self._cancels = False  # a logarithm: what is before it needs more digits
        self._summed: set[int] = set()  # amplitudes that are added up
        self.guards: set[int] = set()  # products whose bias is a guard
        readers = [op for op in module.operations if self._depends_on_small_values(op)]
        if not readers:
            return
        for op in module.operations:
            if op.type.dtype == "f32":
                self._classify(op)
        for op in readers:
            if self._is_like_logarithm(op):
                self._add_logarithm(op)
            else:
                self._add_reciprocal(op)
        for op in readers:
            behind = self._cancelling(op) if op.value_id in self.wide else set()
            self._cancels |= bool(behind)
            self.wide |= behind
        self._find_summed()

    def needs_more_digits(self, value: int) -> bool:
        """Whether a product needs more digits of its own than f16 has."""
        return self._cancels or value in self._summed

    def _find_summed(self) -> None:
        for op in reversed(self._module.operations):
            if op.value_id not in self.amplitudes:
                continue
            is_sum = op.opcode in _SUMS or self._is_sum(op)
            if is_sum or (op.value_id in self._summed and op.opcode not in PRODUCTS):
                self._summed.update(op.operands)

    def _is_sum(self, op: CoreOperation) -> bool:
        is_added = op.opcode == "BinOp" and op.attributes["op"] in ("Add", "Sub")
        return is_added and len(self._computed_operands(op)) > 1

    def _classify(self, op: CoreOperation) -> None:
        """Operations come after what they are made of."""
        if self._is_made_linearly(op):
            self._linear.add(op.value_id)
        if self._is_squared(op) or self._is_made_of_power(op):
            self._powers.add(op.value_id)

    def _add_logarithm(self, op: CoreOperation) -> None:
        source = op.operands[0]
        guarded = tuple(self._values_up_to_guard(source))
        inner = self._before_guards(source)
        if source in self._powers or guarded or inner in self._linear:
            self.wide.update((op.value_id, *guarded))
            self._add_powers(source)
            self._add_amplitudes([inner])

    def _depends_on_small_values(self, op: CoreOperation) -> bool:
        """Whether what is small counts as much as what is large: logarithms and what is like one.

        A root of a high degree is, and so is whatever something is divided by.
        """
        if op.type.dtype != "f32":
            return False
        if self._is_like_logarithm(op):
            return True
        kind = op.attributes.get("op")
        if op.opcode == "BinOp" and kind in ("Div", "Pow"):
            is_known = self._number(op.operands[1]) is not None
            return is_known == (kind == "Pow") and (kind == "Div" or self._exponent(op) < 0)
        return op.opcode == "Unary" and kind in ("Reciprocal", "Rsqrt")

    def _is_like_logarithm(self, op: CoreOperation) -> bool:
        is_power = op.opcode == "BinOp" and op.attributes["op"] == "Pow"
        return op.opcode == "Log" or (is_power and 0 < self._exponent(op) < _SQUARE_ROOT)

    def _exponent(self, op: CoreOperation) -> float:
        """The least exponent of a power; 1 where it is unknown."""
        found = self._number(op.operands[1])
        return float(found.min()) if found is not None and found.size else 1.0

    def _add_reciprocal(self, op: CoreOperation) -> None:
        """What is divided by a length: squares of inputs, or such as a small number is added to."""
        source = op.operands[1 if op.attributes["op"] == "Div" else 0]
        if self._is_far_from_zero(self._op(self._before_views(source))):
            return
        powers = self._powers_of(source)
        squares = [self._op(value) for value in powers if self._is_squared(self._op(value))]
        is_of_inputs = any(not self._linear.isdisjoint(square.operands) for square in squares)
        is_guarded = any(self._is_kept_from_zero(self._op(value)) for value in powers)
        if squares and (is_of_inputs or is_guarded):
            self.wide.add(op.value_id)
            self._add_powers(source)

    def _is_far_from_zero(self, op: CoreOperation) -> bool:
        """Whether a power has a number added to it, as `1 + |x|` has, that f16 holds well."""
        if op.opcode != "BinOp" or op.attributes["op"] != "Add":
            return False
        numbers = [n for n in map(self._number, op.operands) if n is not None]
        return any(bool((number >= _PLAIN).all()) for number in numbers)

    def _is_kept_from_zero(self, op: CoreOperation) -> bool:
        """Whether a number that f16 does not have keeps something from 0."""
        is_added = op.opcode == "BinOp" and op.attributes["op"] in ("Add", "Max")
        is_tiny = is_added and any(self._is_tiny(value) for value in op.operands)
        return is_tiny or (op.opcode == "Clip" and self._is_guard(op))

    def _add_powers(self, value: int) -> None:
        """All that a power is made of, and what leads from inputs to what is squared."""
        powers = self._powers_of(value)
        self.wide |= powers
        for one in powers:
            if self._is_squared(self._op(one)):
                self._add_amplitudes(self._op(one).operands)

    def _powers_of(self, value: int) -> set[int]:
        waiting, taken = [value], set[int]()
        while waiting:
            op = self._op(waiting.pop())
            if op.value_id in taken or op.value_id not in self._powers:
                continue
            taken.add(op.value_id)
            if op.opcode not in _STARTING:
                waiting += op.operands
        return taken

    def _add_amplitudes(self, values: Iterable[int]) -> None:
        waiting = list(values)
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
        return op.opcode in PRODUCTS and not self._powers.isdisjoint(op.operands[:2])

    def _is_squared(self, op: CoreOperation) -> bool:
        """Whether an operation takes squares, or magnitudes."""
        kind = op.attributes.get("op")
        if op.opcode == "MatMul" or (op.opcode == "BinOp" and kind == "Mul"):
            return self._is_of_amplitudes(op)
        if op.opcode != "BinOp":
            is_sum = op.opcode == "Reduce" and kind in ("SumSquare", "L2", "L1")
            return is_sum or (op.opcode == "Unary" and kind == "Abs")
        power = self._number(op.operands[1]) if kind == "Pow" else None
        return power is not None and bool((np.abs(power) > 1).all())

    def _is_of_amplitudes(self, op: CoreOperation) -> bool:
        """Whether both factors are one value, or both are made of inputs."""
        factors = self._computed_operands(op)
        if len(factors) < 2:
            return False
        is_one = len({self._before_views(value) for value in factors}) == 1
        return is_one or self._linear.issuperset(factors)

    def _before_views(self, value: int) -> int:
        while self._op(value).opcode in _VIEWS:
            value = self._op(value).operands[0]
        return value

    def _computed_operands(self, op: CoreOperation) -> tuple[int, ...]:
        """The operands that are no constants, of two."""
        return tuple(value for value in op.operands[:2] if self._number(value) is None)

    def _is_made_linearly(self, op: CoreOperation) -> bool:
        if op.opcode == "Input":
            return True
        if op.opcode in PRODUCTS:
            unknown = self._computed_operands(op)
            return len(unknown) == 1 and unknown[0] in self._linear
        is_other = op.opcode == "BinOp" and op.attributes["op"] not in _LINEAR_OPS
        return op.opcode in _LINEAR and not is_other and not self._linear.isdisjoint(op.operands)

    def _values_up_to_guard(self, value: int) -> Iterator[int]:
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

    def _before_guards(self, value: int) -> int:
        """What is held above a number, or to which one is added, before a logarithm."""
        op = self._op(value)
        while op.opcode in _VIEWS or op.opcode in _HOLDING or self._is_guard(op):
            unknown = self._computed_operands(op)
            if len(unknown) != 1:
                break
            op = self._op(unknown[0])
        return op.value_id

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
            if inside and op.type.dtype == "f32" and self._may_follow_logarithm(op):
                reached.add(op.value_id)
                is_less = op.opcode == "BinOp" and op.attributes["op"] == "Sub"
                met |= op.opcode in _CENTRED or (is_less and len({*inside}) > 1)
        if not met:
            return set()
        for op in reversed(self._module.operations):  # what only moves may as well be narrow
            if op.value_id in reached and op.opcode in _VIEWS and not reached & users[op.value_id]:
                reached.discard(op.value_id)
        return reached

    def _may_follow_logarithm(self, op: CoreOperation) -> bool:
        is_root = op.opcode == "Unary" and op.attributes["op"] in _ROOTS
        return op.opcode in _BEHIND or is_root

    @property
    def _users(self) -> defaultdict[int, set[int]]:
        found = defaultdict[int, set[int]](set)
        for op in self._module.operations:
            for operand in op.operands:
                found[operand].add(op.value_id)
        return found
