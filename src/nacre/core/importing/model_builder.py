"""The builder of an imported model: one constant for one array, and an end to its growth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nacre.core.importing.derivations import Derivations, Emitter, Key
from nacre.core.importing.fallible import BranchBuilder
from nacre.core.importing.origins import Origins, Span, array_span
from nacre.core.module import TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, Attributes

# Unrolled loops can grow without end; no module this long is worth having.
MOST_OPERATIONS = 200_000
MOST_ITERATIONS = 1024
_SMALL = 64  # bytes: such constants are known by their elements, others by their identity first
_LOOKED_AT = 64  # elements of an array

Emit = Emitter["ModelBuilder"]


def array_key(array: Array) -> Key:
    """What tells an array from others while it lives."""
    address: int = array.__array_interface__["data"][0]
    return address, array.shape, array.strides, array.dtype.str


def _sampled_bytes(array: Array) -> bytes:
    """A few elements, from the first to the last: other arrays hardly have the same."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    places = np.linspace(0, array.size - 1, min(array.size, _LOOKED_AT)).astype(np.int64)
    return np.asarray(flat[places]).tobytes()


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays of a type and a shape have the same bytes."""
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (one, other))
    return bool(np.array_equal(a, b))


class ModelBuilder(BranchBuilder):
    """Appends operations; an array that many nodes use becomes one constant."""

    def __init__(self, keep_parameters: bool = False) -> None:
        super().__init__()
        self.keep_parameters = keep_parameters  # what is computed from them stays computed
        # An array is kept beside its value, so that no other one can come to have its identity.
        self._constants: dict[object, tuple[int, Array]] = {}
        self._alike: dict[object, list[tuple[int, Array]]] = {}
        self.facts: dict[int, object] = {}  # what a handler knows of a value beside its type
        self.origins = Origins()
        self.derivations = Derivations[ModelBuilder]()
        self.parameters: dict[int, tuple[str, ...]] = {}  # names of constants that are parameters
        self.shared: set[str] = set()  # names of parameters that are laid out in several ways

    def fork(self) -> ModelBuilder:
        """A builder with the same operations, which goes its own way."""
        copy = ModelBuilder(self.keep_parameters)
        copy._operations = list(self._operations)
        copy._types = dict(self._types)
        copy._inputs = dict(self._inputs)
        copy._branches = self._branches
        copy._constants = dict(self._constants)
        copy._alike = {key: list(found) for key, found in self._alike.items()}
        copy.facts = dict(self.facts)
        copy.origins = self.origins
        copy.derivations = self.derivations.fork()
        copy.parameters = dict(self.parameters)
        copy.shared = self.shared
        return copy

    def constant(
        self,
        array: npt.ArrayLike,
        dtype: str | None = None,
        *,
        copy: bool = False,
        names: tuple[str, ...] = (),
    ) -> int:
        """A tensor literal, the one that is there already where there is one.

        One that has names is a parameter. It is another one than all those with other names, and
        what lies in the memory of a parameter is one even without.
        """
        array = np.asarray(array)
        derived = self.derivations.value(array_key(array), self) if not names else None
        if derived is not None and self.type_of(derived).shape == array.shape:
            return derived
        names = names or self.origins.of_array(array)
        kind = (dtype, array.dtype.str, array.shape, names)
        key = (*kind, array.tobytes()) if array.nbytes <= _SMALL else (*kind, id(array))
        if key not in self._constants:
            # Rounds of a loop compute the same elements again; a few of them say whether.
            alike = self._alike.setdefault((*kind, _sampled_bytes(array)), [])
            known = next((value for value, found in alike if _is_same(found, array)), None)
            if known is None:
                known = super().constant(array, dtype, copy=copy)
                alike.append((known, array))
                if names:
                    self.parameters[known] = names
            self._constants[key] = known, array
        return self._constants[key][0]

    def is_changeable(self, array: Array) -> bool:
        """Whether an array is a float parameter, which training changes, or follows from one."""
        is_float = array.dtype.kind not in "biuOSU"
        is_parameter = is_float and bool(self.origins.owners(array_span(array)))
        return is_parameter or self.is_derived(array)

    def is_derived(self, array: Array) -> bool:
        """Whether an array was computed from a parameter."""
        return array_key(array) in self.derivations

    def is_shared(self, span: Span) -> bool:
        """Whether memory is that of a parameter that stays one: the module computes layouts."""
        return not self.shared.isdisjoint(self.origins.owners(span))

    def add_derived(self, array: Array, sources: Sequence[Array], emit: Emit) -> None:
        """An array that was computed, from which others, and how a module computes it."""
        operands = [array_key(source) for source in sources]
        self.derivations.add(array_key(array), array, operands, emit)

    def _append(
        self, opcode: str, operands: tuple[int, ...], given: Attributes, type_: TensorType
    ) -> int:
        if self.count >= MOST_OPERATIONS:
            reason = f"the module would have more than {MOST_OPERATIONS:,} operations"
            raise Unsupported(reason, "import a part of the model, or shorter sequences")
        return super()._append(opcode, operands, given, type_)
