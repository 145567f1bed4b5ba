"""Random graphs over everything that the compiler takes, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module, State
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.values import attributes

Array = npt.NDArray[Any]
Dims = tuple[int, ...]
MOST = 6000  # elements of a value
SIZES = st.one_of(st.integers(1, 9), st.sampled_from((1, 1, 16, 17, 31)))


@dataclass(frozen=True, eq=False)
class Case:
    """A model and what it is run on."""

    module: Module
    feeds: dict[str, Array]

    def __repr__(self) -> str:
        # Constants make the text long, and a failure shows the reduced model anyway.
        return f"a model of {len(self.module.operations)} operations"


def feeds_of(module: Module, seed: int = 3) -> dict[str, Array]:
    """Numbers around 0; the name of an input of indices says below what they lie."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, type_ in module.input_types.items():
        if type_.element.is_integer:
            below = int(name.rpartition("_below_")[2])
            found[name] = random.integers(0, below, type_.shape).astype(type_.element.dtype)
        else:
            found[name] = random.standard_normal(type_.shape).astype(type_.element.dtype)
    for state in module.states:
        found.pop(state.name, None)
    return found


@st.composite
def cases(draw: st.DrawFn, most: int = 6, *, states: bool = True) -> Case:
    """A graph of some steps; outputs are any values, most often the last."""
    from tests.compile.random_steps import STEPS

    growing = Growing(draw)
    growing.input(draw(st.integers(1, 5)))
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(STEPS))(growing)
    chosen = [growing.values[-1]]
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        chosen.append(growing.pick())
    if states and draw(st.integers(0, 7)) == 0:
        growing.keep()
    module = growing.module(tuple(chosen))
    return Case(module, feeds_of(module))


class Growing:
    """A graph while it grows."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.builder = Builder()
        self.values: list[int] = []  # of f32
        self._inputs: dict[int, str] = {}  # constants that become inputs, which come first
        self._states: list[State] = []
        self._random = np.random.default_rng(11)

    # What is there

    def shape(self, value: int) -> Dims:
        """The shape of a value."""
        return self.builder.type_of(value).shape

    def number(self, first: int, last: int) -> int:
        """A number."""
        return self.draw(st.integers(first, last))

    def chance(self, one_in: int) -> bool:
        """Whether something that is rare happens."""
        return self.number(0, one_in - 1) == one_in - 1

    def pick(self, rank: int | None = None, where: Callable[[Dims], bool] | None = None) -> int:
        """A value, often the last; a new input where none is of the kind."""
        found = [
            v
            for v in self.values
            if (bool(self.shape(v)) if rank is None else len(self.shape(v)) == rank)
            and (where is None or where(self.shape(v)))
        ]
        if not found:
            return self.input(3 if rank is None else rank)
        return found[-1] if self.number(0, 1) else self.draw(st.sampled_from(found))

    # What is added

    def input(self, rank: int, shape: Dims | None = None) -> int:
        """One more input of floats."""
        if shape is None:
            sizes = [self.draw(SIZES) for _ in range(rank)]
            while prod(sizes) > MOST:
                sizes[sizes.index(max(sizes))] //= 2
            shape = tuple(sizes)
        made = self._input("x", "f32", shape)
        return self.put(made) if shape else made

    def _input(self, word: str, dtype: str, shape: Dims, ending: str = "") -> int:
        value = self.builder.constant(np.zeros(shape, GRAPH_TYPES[dtype].dtype))
        self._inputs[value] = f"{word}{len(self._inputs)}{ending}"
        return value

    def indices(self, shape: Dims, below: int) -> int:
        """Numbers of rows: computed on the host, or known."""
        if self.chance(3):
            return self.builder.constant(self._random.integers(0, below, shape).astype(np.int64))
        dtype = self.draw(st.sampled_from(("i32", "i64")))
        return self._input("i", dtype, shape, f"_below_{below}")

    def weights(self, *shape: int, spread: float = 1.0) -> int:
        """Constants around 0."""
        return self.builder.constant(
            (self._random.standard_normal(shape) * spread).astype(np.float32)
        )

    def put(self, value: int) -> int:
        """A value that others may read."""
        self.values.append(value)
        return value

    def add(self, opcode: str, *operands: int, **given: object) -> int:
        """An operation whose result others may read."""
        return self.put(self.builder.add(opcode, *operands, **given))

    def keep(self) -> None:
        """A value that is an input of the next run."""
        value = self.pick()
        shape = self.shape(value)
        held = self._input("held", "f32", shape)
        initial = self.weights(*shape, spread=0.5)
        self._states.append(State(self._inputs[held], value, initial))
        self.add("BinOp", held, value, op="Add")

    def module(self, outputs: Dims) -> Module:
        """The model, its inputs first."""
        made = self.builder.module(*outputs)
        operations = tuple(
            CoreOperation(
                op.value_id, "Input", (), attributes({"name": self._inputs[op.value_id]}), op.type
            )
            if op.value_id in self._inputs
            else op
            for op in made.operations
        )
        return hoist_inputs(Module(operations, outputs, tuple(self._states)))
