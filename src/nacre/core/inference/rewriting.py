"""A walk that builds a module anew and lets patterns put something else in a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nacre.core.builder import Builder
from nacre.core.evaluation.plan import constant_array
from nacre.core.inference.names import carried
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.core.passes.dead_code import dead_code
from nacre.core.values import Array

# What to use in the place of the operation at hand; None: the operation as it is.
Pattern = Callable[["RewriteSite"], int | None]


class RewriteSite:
    """An operation in its place: what stands before it, and a way to add what stands instead."""

    def __init__(self, walk: _Walk, op: CoreOperation, operands: tuple[int, ...]) -> None:
        self._walk = walk
        self.op = op
        self.operands = operands

    @property
    def attributes(self) -> Mapping[str, object]:
        """The attributes of the operation, defaults filled in."""
        return OPS[self.op.opcode].filled(self.op.attributes)

    def maker(self, value: int, /, *opcodes: str, **attributes: object) -> CoreOperation | None:
        """The operation that defines a value, if it is one of these with these attributes."""
        found = self._walk.builder.operation(value)
        if opcodes and found.opcode not in opcodes:
            return None
        filled = OPS[found.opcode].filled(found.attributes)
        return found if all(filled.get(k) == v for k, v in attributes.items()) else None

    def only(self, value: int, /, *opcodes: str, **attributes: object) -> CoreOperation | None:
        """The same, where nobody else uses the value."""
        return self.maker(value, *opcodes, **attributes) if self.is_single(value) else None

    def is_single(self, value: int) -> bool:
        """Whether a value has one use."""
        return self._walk.uses[value] <= 1

    def type(self, value: int) -> TensorType:
        """The type of a value."""
        return self._walk.builder.type_of(value)

    def constant(self, value: int) -> Array | None:
        """The elements of a constant."""
        return constant_array(self._walk.builder.operation(value))

    def number(self, value: int) -> float | None:
        """The element of a constant that has the same one everywhere."""
        array = self.constant(value)
        if array is None or array.size == 0 or array.dtype.kind not in "fiu":
            return None
        first = array.flat[0]
        return float(first) if bool((array == first).all()) else None

    def split(self, operands: Sequence[int]) -> tuple[int, Array] | None:
        """The value and the constant of two operands, in whatever order they stand."""
        a, b = operands
        for value, other in ((a, b), (b, a)):
            found = self.constant(other)
            if found is not None and self.constant(value) is None:
                return value, found
        return None

    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        """An operation more."""
        return self._walk.builder.add(opcode, *operands, **attributes)

    def literal(self, array: Array, dtype: str) -> int:
        """A constant more, rounded to an element type."""
        from nacre.base.elements import GRAPH_TYPES

        elements = array.astype(GRAPH_TYPES[dtype].dtype)
        return self._walk.builder.constant(elements, dtype, copy=False)


class _Walk:
    """Goes down a module. Values are numbered anew; uses are counted under the new numbers."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.builder = Builder()
        self.ids: dict[int, int] = {}
        counted = Counter(o for op in module.operations for o in op.operands)
        counted.update(module.outputs)
        counted.update(state.output for state in module.states)
        self._counted = counted
        self.uses: Counter[int] = Counter()
        self._origins: list[int] = []  # for each new operation, the place of the old one

    def take(
        self, index: int, op: CoreOperation, patterns: Mapping[str, Sequence[Pattern]]
    ) -> None:
        """One operation."""
        operands = tuple(self.ids[o] for o in op.operands)
        site = RewriteSite(self, op, operands)
        made: int | None = None
        for pattern in patterns.get(op.opcode, ()):
            made = pattern(site)
            if made is not None and self.builder.type_of(made) == op.type:
                break
            made = None  # a constant spread the result of what the pattern stands for
        if made is None:
            made = self.builder.copy(op, operands)
        self.ids[op.value_id] = made
        self.uses[made] += self._counted[op.value_id]
        self._origins += [index] * (self.builder.count - len(self._origins))

    def finished(self) -> Module:
        """The module; what is dead goes."""
        for state in self.module.states:
            self.builder.state(state.name, self.ids[state.output], self.ids[state.initial])
        made = self.builder.module(*(self.ids[value] for value in self.module.outputs))
        places = self.module.places
        if places is not None:
            places = replace(places, spans=tuple([places.spans[at] for at in self._origins]))
            made = replace(made, places=places)
        kept = dead_code(made).placed_as(made)
        if self.module.labels is None:
            return kept
        at = dict(zip((op.value_id for op in made.operations), self._origins, strict=True))
        return replace(kept, labels=carried(self.module, kept, at, self.ids))


def rewritten(module: Module, patterns: Mapping[str, Sequence[Pattern]]) -> Module:
    """A module with patterns applied at every operation, top to bottom; what is dead goes."""
    walk = _Walk(module)
    for index, op in enumerate(module.operations):
        walk.take(index, op, patterns)
    return walk.finished()


def per_channel(array: Array, shape: Sequence[int], axis: int) -> Array | None:
    """One number for each place along an axis, if that is what a constant comes to.

    `shape` is that of the tensor that the constant is broadcast against.
    """
    if array.ndim > len(shape):
        return None
    whole = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(dim != 1 for at, dim in enumerate(whole.shape) if at != axis):
        return None
    return np.broadcast_to(np.ravel(whole), (shape[axis],)).astype(np.float64)
