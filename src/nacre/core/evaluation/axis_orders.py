"""The order in which the axes of values lie in memory, which need not be that of the module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nacre.core.constants import CONSTANTS, constant_array, constant_attributes
from nacre.core.module import CoreOperation, Module, Shape, TensorType
from nacre.core.values import Array, Attributes, Literal, attributes

Order = tuple[int, ...]  # for every axis in memory, which axis of the value it is


@dataclass(frozen=True)
class ArrangedModule:
    """A module on values as they lie; what leaves it lies as it did."""

    source: Module
    module: Module
    origins: Sequence[int]  # for each operation, the place in the source of the one it is there for


def keep_order(module: Module) -> ArrangedModule:
    """A module whose values lie in their own order."""
    return ArrangedModule(module, module, range(len(module)))


def identity_order(rank: int) -> Order:
    """The axes as the module has them."""
    return tuple(range(rank))


def in_order(shape: Shape, order: Order) -> Shape:
    """A shape as it lies."""
    return tuple([shape[axis] for axis in order])


def _constant_in_order(op: CoreOperation, order: Order) -> Array:
    data = op.attributes.get("data")
    if isinstance(data, Literal) and data.dtype == op.type.element.dtype:
        return data.array_in_order(order)
    array = constant_array(op)
    assert array is not None
    return np.ascontiguousarray(array.transpose(order))


class Arranger:
    """Goes down a module and adds its operations anew, each on values as they lie.

    What is added has numbers below 0, which no value of a module has.
    """

    def __init__(self, source: Module) -> None:
        self.source = source
        self._operations: list[CoreOperation] = []
        self._origins: list[int] = []
        # Where each value lies, by the order of its axes; that in which it was made comes first.
        self._forms: dict[int, dict[Order, int]] = {}
        self._places: dict[int, int] = {}  # of operations, by the value that they define
        self._index = 0  # of the operation at hand

    def take(self, index: int, op: CoreOperation, rule: Rule | None) -> None:
        """One operation of the source; as it stands where no rule takes it."""
        self._index = self._places[op.value_id] = index
        if op.opcode in CONSTANTS:
            self._forms[op.value_id] = {}  # added when somebody needs it
        elif rule is None or not rule(self, op):
            self.add(op, identity_order(op.type.rank), map(self.form, op.operands), op.attributes)

    def result(self) -> ArrangedModule:
        """The module, with what leaves it as it was."""
        source = self.source
        for value in {*source.outputs, *(state.output for state in source.states)}:
            self._index = self._places[value]
            other = self.form(value)
            if other != value:  # it is seen where another value lies
                type_ = self.type(value)
                given = attributes({"new_shape": type_.shape})
                self._append(CoreOperation(value, "Reshape", (other,), given, type_))
        module = Module(tuple(self._operations), source.outputs, source.states)
        return ArrangedModule(source, module, self._origins)

    # What lies there

    def type(self, value: int) -> TensorType:
        """The type of a value of the source."""
        return self.source.by_id[value].type

    def order(self, value: int) -> Order:
        """The order in which a value was made; its own of a constant, which can have any."""
        return next(iter(self._forms[value]), identity_order(self.type(value).rank))

    def forms(self, value: int) -> Mapping[Order, int]:
        """Where a value lies, by the order of its axes."""
        return self._forms[value]

    def form(self, value: int, order: Order | None = None) -> int:
        """A value in an order, its own where none is named; transposed where it is not there."""
        own = identity_order(self.type(value).rank)
        order = own if order is None else order
        forms = self._forms[value]
        if order not in forms:
            result = value if order == own else self._new()
            self._append(self._transpose(value, order, result))
            forms[order] = result
        return forms[order]

    def _transpose(self, value: int, order: Order, result: int) -> CoreOperation:
        op = self.source.by_id[value]
        type_ = TensorType(op.type.dtype, in_order(op.type.shape, order))
        if op.opcode not in CONSTANTS:
            first, source = next(iter(self._forms[value].items()))
            given = attributes({"permutation": tuple([first.index(axis) for axis in order])})
            return CoreOperation(result, "Transpose", (source,), given, type_)
        if result == value:
            return op
        opcode, given = constant_attributes(_constant_in_order(op, order), type_)
        return CoreOperation(result, opcode, (), given, type_)

    # What is added

    def add(
        self, op: CoreOperation, order: Order, operands: Iterable[int], given: Attributes
    ) -> bool:
        """An operation on what lies there, whose result lies in an order."""
        taken = tuple(operands)
        value = op.value_id if order == identity_order(op.type.rank) else self._new()
        type_ = TensorType(op.type.dtype, in_order(op.type.shape, order))
        self._append(CoreOperation(value, op.opcode, taken, given, type_))
        self._forms[op.value_id] = {order: value}
        return True

    def reshape(self, op: CoreOperation, order: Order, operand: int) -> bool:
        """The result of an operation, which is what lies there under another shape."""
        shape = in_order(op.type.shape, order)
        reshaped = CoreOperation(op.value_id, "Reshape", (), op.attributes, op.type)
        return self.add(reshaped, order, (operand,), attributes({"new_shape": shape}))

    def see(self, op: CoreOperation, forms: Mapping[Order, int]) -> bool:
        """An operation whose result is what lies there, seen in another way."""
        self._forms[op.value_id] = dict(forms)
        return True

    def _append(self, op: CoreOperation) -> None:
        self._operations.append(op)
        self._origins.append(self._index)

    def _new(self) -> int:
        return -1 - len(self._operations)


Rule = Callable[[Arranger, CoreOperation], bool]  # whether it has added the operation
