"""A program as its module, rewritten for inference, on the evaluator of Core IR.

Norms move into weights and chains become one operation, so outputs differ in their last bits from
those of the instructions one by one. A program whose course depends on elements has no
module, one with branches would compute all of them, and one whose weights would take more memory
than may be kept is not prepared, nor is one with calls that Core IR does not know: these are run
instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.core.builder import dtype_name
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module, TensorType
from nacre.core.passes.inference import INFERENCE
from nacre.core.passes.runner import Pass, run_passes
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.exact.fold_constants import fold_constants
from nacre.core.rewrite.exact.identity_ops import identity_ops
from nacre.core.rewrite.inexact.fold_floats import fold_floats
from nacre.core.values import Array
from nacre.nac.run.memory import is_copy, owner
from nacre.nac.spec.instructions import LIFTED

if TYPE_CHECKING:
    from nacre.nac.run.loaded_program import LoadedProgram
    from nacre.nac.run.weights import Weights

# What makes patterns show, the rewrites, and what they leave behind. Joining equal constants, as
# the canonical form does, takes longer than it saves.
_PASSES: tuple[Pass, ...] = (
    Pass("fold-floats", fold_floats),
    Pass("fold-constants", fold_constants),
    Pass("identity-ops", identity_ops),
    *INFERENCE,
    Pass("dead-code", dead_code),
)
_MOST_PROGRAMS = 4  # a program that is given longer and longer inputs is not rewritten for each
# A program that is too odd to be rewritten is run as it is written, which says what is wrong.
_REFUSALS = (InputError, ArithmeticError, LookupError, ValueError, TypeError, MemoryError)


@dataclass(frozen=True, eq=False)
class OptimisedProgram:
    """A module made ready for inputs of certain types; several runs may go on at once."""

    session: CoreSession
    names: Mapping[int, str]  # of inputs and states by instruction
    ids: Mapping[int, int]  # of states by instruction
    kept_bytes: int  # weights that are not mapped, and stay
    peak_bytes: int
    has_packed: bool  # inputs of less than a byte an element

    def run(self, given: Mapping[int, Array], state: Mapping[int, Array]) -> list[Any]:
        """The operands of the output; InputError where a kernel refuses values."""
        inputs = {
            name: given[index] if index in given else np.asarray(state[self.ids[index]], order="C")
            for index, name in self.names.items()
        }
        # Arrays are of the types that this was made for; only those below a byte are unpacked.
        run = self.session.run if self.has_packed else self.session.run_checked
        return list(run(inputs))


class OptimisedPrograms:
    """The program of a model by the types of its inputs, made ready once for all sessions."""

    def __init__(self) -> None:
        self._programs: dict[object, OptimisedProgram | None] = {}  # None: it is not to be
        self._lock = Lock()

    def of(
        self, model: LoadedProgram, key: object, given: Mapping[int, Array]
    ) -> OptimisedProgram | None:
        """The program for inputs of these types; None where it is run as it is written."""
        with self._lock:  # a second thread waits for the first: it needs the same
            if key not in self._programs and len(self._programs) < _MOST_PROGRAMS:
                self._programs[key] = optimise_program(model, given)
            return self._programs.get(key)

    def __len__(self) -> int:
        return len(self._programs)


def optimise_program(model: LoadedProgram, given: Mapping[int, Array]) -> OptimisedProgram | None:
    """A program made ready for inputs of these types; None where it is not to be."""
    from nacre.nac.program.lift import lift_run

    weights = model.weights
    if any(model.program[index].variant == LIFTED for index in given):
        return None  # a constant of the file is given another value
    if model.has_opaque:
        return None  # kernels that were registered are none of Core IR
    if model.blocks.branches or not weights.may_keep(weights.copied_bytes):
        return None  # a module would compute both branches
    types = {
        one.name: TensorType(dtype_name(array.dtype), array.shape)
        for one in model.all_inputs
        for array in (given.get(one.instruction),)
        if array is not None
    }
    try:
        module = run_passes(lift_run(model, types), _PASSES, verify_each=False)
        session = CoreSession(module)
    except _REFUSALS:
        return None
    kept = _kept_bytes(session, weights)
    if not weights.may_keep(kept):
        return None
    weights.keep(kept)
    names = {
        one.instruction: one.name
        for one in model.all_inputs
        if model.program[one.instruction].variant != LIFTED
    }
    ids = {index: model.program[index].id for index in names}
    has_packed = any(type_.element.bits < 8 for type_ in module.input_types.values())
    peak = kept + _value_bytes(module, session)
    return OptimisedProgram(session, names, ids, kept, peak, has_packed)


def _kept_bytes(session: CoreSession, weights: Weights) -> int:
    """The bytes of constants, and of what is made of them, beyond the file and what is kept."""
    owners = {id(owner(a)): owner(a) for a in session.kept_arrays if is_copy(a)}
    return sum(array.nbytes for array in owners.values() if not weights.has(array))


def _value_bytes(module: Module, session: CoreSession) -> int:
    """The bytes of inputs, of outputs, and of what is computed between."""
    types = (*module.input_types.values(), *module.output_types)
    return session.workspace_bytes + sum(prod(t.shape) * t.element.dtype.itemsize for t in types)
