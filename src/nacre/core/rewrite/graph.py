"""A module while it is rewritten, from its first operation to the one at hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array


class Graph(ABC):
    """What has been made so far; constants are looked at once."""

    def __init__(self, source: Module) -> None:
        self.source = source
        self.ids: dict[int, int] = {}  # what values of the source have become
        self.parameters = dict(source.parameter_names)  # names of constants that are parameters
        self._arrays: dict[int, Array | None] = {}
        self._numbers: dict[int, float | None] = {}

    @abstractmethod
    def is_single(self, value: int) -> bool:
        """Whether a value has one use."""

    @abstractmethod
    def operation(self, value: int) -> CoreOperation:
        """The operation that defines a value."""

    @abstractmethod
    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        """An operation more."""

    @abstractmethod
    def literal(self, array: Array, dtype: str) -> int:
        """A constant more."""

    @abstractmethod
    def replace(self, op: CoreOperation) -> int:
        """An operation in the place of the one at hand, whose type it has."""

    def constant(self, value: int) -> Array | None:
        """The elements of a constant."""
        if value not in self._arrays:
            self._arrays[value] = constant_array(self.operation(value))
        return self._arrays[value]

    def number(self, value: int) -> float | None:
        """The element of a constant that has the same one everywhere."""
        if value not in self._numbers:
            array = self.constant(value)
            self._numbers[value] = None if array is None else _number(array)
        return self._numbers[value]


def count_uses(module: Module) -> Counter[int]:
    """How often each value of a module is used."""
    counted = Counter(o for op in module.operations for o in op.operands)
    counted.update(module.outputs)
    counted.update(state.output for state in module.states)
    return counted


def _number(array: Array) -> float | None:
    if array.size == 0 or array.dtype.kind not in "fiu":
        return None
    first = array.flat[0]
    is_same = array.flat[-1] == first and bool((array == first).all())
    return float(first) if is_same else None


def users_of(module: Module) -> dict[int, list[CoreOperation]]:
    """The operations that take each value, in their order; twice where one takes it twice."""
    users: dict[int, list[CoreOperation]] = defaultdict(list)
    for op in module.operations:
        for operand in op.operands:
            users[operand].append(op)
    return users
