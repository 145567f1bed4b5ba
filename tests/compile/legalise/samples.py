"""Modules with one operation of interest, of every kind that importers make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.module import Module, operation
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.values import attributes

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class Sample:
    """A builder with inputs and weights at hand."""

    def __init__(self, seed: int = 0) -> None:
        self.builder = Builder()
        self._random = np.random.default_rng(seed)
        self._late: dict[int, str] = {}
        self._inputs = 0

    def x(self, *shape: int, dtype: str = "f32") -> int:
        """One more input."""
        self._inputs += 1
        name = f"x{self._inputs}"
        if self.builder.count < self._inputs:
            return self.builder.input(name, dtype, shape)
        value = self.builder.constant(np.zeros(shape, GRAPH_TYPES[dtype].dtype), dtype)
        self._late[value] = name
        return value

    def w(self, *shape: int, spread: float = 1.0) -> int:
        """Weights."""
        return self.builder.constant(self.array(*shape) * np.float32(spread))

    def array(self, *shape: int) -> Array:
        """Numbers around 0."""
        made: Array = self._random.standard_normal(shape).astype(np.float32)
        return made

    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        """An operation."""
        return self.builder.add(opcode, *operands, **attributes)

    def module(self, *outputs: int) -> Module:
        """The module, its inputs first."""
        made = self.builder.module(*outputs)
        operations = tuple(
            operation(
                op.value_id, "Input", (), op.type, attributes({"name": self._late[op.value_id]})
            )
            if op.value_id in self._late
            else op
            for op in made.operations
        )
        return hoist_inputs(replace(made, operations=operations))


def module_of(make: Callable[[Sample], int | tuple[int, ...]]) -> Module:
    """A module that a function makes."""
    sample = Sample()
    made = make(sample)
    return sample.module(*(made if isinstance(made, tuple) else (made,)))


def feeds_of(module: Module, seed: int = 3) -> dict[str, Array]:
    """Inputs for a module: numbers around 0, small indices, both truth values."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, type_ in module.input_types.items():
        if type_.dtype == "bool":
            found[name] = random.random(type_.shape) < 0.6
        elif type_.element.is_integer:
            found[name] = random.integers(0, 4, type_.shape).astype(type_.element.dtype)
        else:
            found[name] = random.standard_normal(type_.shape).astype(type_.element.dtype)
    return found
