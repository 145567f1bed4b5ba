"""The builder of an imported model: one constant for one array, and an end to its growth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nacre.core.builder import Builder
from nacre.core.importing.findings import NoForm
from nacre.core.module import CoreOperation, TensorType
from nacre.core.values import Array, Attributes

# Unrolled loops can grow without end; no module this long is worth having.
MOST_OPERATIONS = 200_000
_SMALL = 64  # bytes: such constants are told apart by their elements, others by their identity


class ModelBuilder(Builder):
    """Appends operations; an array that many nodes use becomes one constant."""

    def __init__(self) -> None:
        super().__init__()
        # An array is kept beside its value, so that no other one can come to have its identity.
        self._constants: dict[object, tuple[int, Array]] = {}
        self.facts: dict[int, object] = {}  # what a handler knows of a value beside its type

    def copied(self) -> ModelBuilder:
        """A builder with the same operations, which goes its own way."""
        made = ModelBuilder()
        made._operations = list(self._operations)
        made._types = dict(self._types)
        made._inputs = dict(self._inputs)
        made._constants = dict(self._constants)
        made.facts = dict(self.facts)
        return made

    def since(self, count: int) -> Sequence[CoreOperation]:
        """The operations that were added when there were already so many."""
        return self._operations[count:]

    def constant(
        self, array: npt.ArrayLike, dtype: str | None = None, *, copy: bool = False
    ) -> int:
        """A tensor literal, the one that is there already where there is one."""
        array = np.asarray(array)
        small = (array.dtype.str, array.shape, array.tobytes()) if array.nbytes <= _SMALL else None
        key = (dtype, small or id(array))
        if key not in self._constants:
            self._constants[key] = (super().constant(array, dtype, copy=copy), array)
        return self._constants[key][0]

    def _append(
        self, opcode: str, operands: tuple[int, ...], given: Attributes, type_: TensorType
    ) -> int:
        if self.count >= MOST_OPERATIONS:
            reason = f"the module would have more than {MOST_OPERATIONS:,} operations"
            raise NoForm(reason, "import a part of the model, or shorter sequences")
        return super()._append(opcode, operands, given, type_)
