"""A run on types alone: what every instruction would make, take and cost, before it does.

Arrays stand for tensors without having their elements. What follows from elements is not seen, nor
is what follows from that: such calls are looked at when the run comes to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.hints import setting
from nacre.core.aten.call import Elements
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.program.interface import StateRecord
from nacre.nac.rules.running import NAC47, NAC48
from nacre.nac.run.convergence import require_alike
from nacre.nac.run.execution import Execution, Gathered, format_type
from nacre.nac.run.limits import Limits, limits_for
from nacre.nac.run.memory import owner
from nacre.nac.run.program import Prepared
from nacre.nac.run.specialised import Typed
from nacre.nac.spec.instructions import LIFTED, PARAMETER, STATE

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel


class Unseen(Exception):  # noqa: N818 - no failure: the run will see
    """Something depends on elements that are not there yet."""


class _Unseen:
    """Stands for the result of such an instruction."""


_UNSEEN = _Unseen()


class ShapeOnlyArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of any size that takes no memory: all of its places are one."""

    elements: Callable[[], Array] | None = None  # where they can be had after all


def shape_only_array(
    dtype: np.dtype[Any],
    shape: Sequence[int],
    elements: Callable[[], Array] | None = None,
    place: Array | None = None,
) -> ShapeOnlyArray:
    """An array of a type, in the memory of another if given; Unsupported where NumPy has none."""
    try:
        one = np.zeros((), dtype) if place is None else place
        made = ShapeOnlyArray(tuple(shape), dtype, one, 0, (0,) * len(shape))
    except ValueError as error:  # more axes, or more elements, than arrays have
        raise Unsupported(str(error)) from None
    made.elements = elements
    return made


class DryRun(Execution):
    """Goes down a program as a run does. InputError says where it would fail, and why."""

    def outputs(self) -> list[Any]:
        """What the program would return; what feeds a state has its type."""
        made = super().outputs()
        for record in self._model.surroundings.states.values():
            if made[record.output] is not _UNSEEN:
                require_next(self._model, record, made[record.output])
        return made

    def _result(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see Execution
        if any(self._results[ref] is _UNSEEN for ref in instruction.refs):
            return _UNSEEN
        try:
            return super()._result(index, instruction)
        except Unseen:
            return _UNSEEN

    def _called(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see Execution
        gathered = Gathered()
        arguments = {o.name: self._gathered(o, gathered) for o in instruction.operands}
        call = self._typed(instruction, arguments, gathered)
        self._spend(call.bytes, call.work)
        if call.number is not None:
            return call.number.number
        made = [_result_of(call, value, gathered.arrays) for value in call.results]
        return made if call.is_list else made[0]

    def _elements(self, gathered: Gathered) -> Elements:
        return lambda value: _seen(gathered.arrays[value])

    def _loaded(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see Execution
        if self._results[index] is not None:
            return self._results[index]
        if instruction.variant == PARAMETER:
            weights, id_ = self._model.weights, instruction.id
            return shape_only_array(*weights.type_of(id_), lambda: weights[id_])
        if instruction.variant == LIFTED and index not in self._given:
            value = self._model.lifted(instruction.id)
            return _UNSEEN if isinstance(value, str) else value  # it must be given
        found = self._given.get(index)
        if found is None and instruction.variant == STATE:
            found = self._state.get(instruction.id)
        return _UNSEEN if found is None else shape_only_array(found.dtype, found.shape)

    def _number_of(self, array: Array) -> Any:  # noqa: ANN401 - a number of Python
        return super()._number_of(_seen(array))

    def _merged(self, branches: Sequence[Any], percent: int) -> Any:  # noqa: ANN401 - see Execution
        if any(branch is _UNSEEN for branch in branches):
            return _UNSEEN
        require_alike(branches)
        return shape_only_array(branches[0].dtype, branches[0].shape)


def _seen(array: Array) -> Array:
    if not isinstance(array, ShapeOnlyArray):
        return array
    if array.elements is None:
        raise Unseen
    return array.elements()


def _result_of(call: Typed, value: int, arrays: Sequence[Array]) -> Array:
    """A result; one that only has another shape than an operand is held with it."""
    type_, root = call.types[value], call.root(value)
    if root >= len(arrays):
        return shape_only_array(type_.elem.dtype, type_.shape)
    if root == value:
        return arrays[value]
    found = arrays[root]
    if not isinstance(found, ShapeOnlyArray):
        return found.reshape(type_.shape)
    return shape_only_array(type_.elem.dtype, type_.shape, None, owner(found))


def dry_run_findings(model: NacModel) -> list[Diagnostic]:
    """What keeps a run from its end, as far as the types of inputs that the file says tell."""
    given = {
        wanted.instruction: _of(wanted.dtype, wanted.shape)
        for wanted in model.inputs
        if wanted.dtype is not None and wanted.shape is not None
    }
    limits = limits_for(model.file_bytes, given.values(), model.max_bytes, model.max_work)
    try:
        require_states(model, limits)
        DryRun(model, given, _states(model), limits).outputs()
    except InputError as refused:
        return list(refused.diagnostics)
    return []


def _of(dtype: str, shape: Sequence[int]) -> Array:
    return shape_only_array(GRAPH_TYPES[dtype].dtype, shape)


def _states(model: NacModel) -> dict[int, Array]:
    return {i: _of(r.dtype, r.shape) for i, r in model.surroundings.states.items()}


def require_next(model: NacModel, record: StateRecord, made: Any) -> None:  # noqa: ANN401 - a result
    """InputError where what feeds a state is not of its type."""
    wanted = shape_only_array(GRAPH_TYPES[record.dtype].dtype, record.shape)
    is_tensor = isinstance(made, np.ndarray)
    if not is_tensor or made.shape != wanted.shape or made.dtype != wanted.dtype:
        message = (
            f"output {record.output} is {format_type(made)}, and feeds state {record.id}, which "
            f"is {format_type(wanted)}"
        )
        raise model.fault(len(model.program) - 1, NAC47, message)


def require_states(model: NacModel, limits: Limits) -> None:
    """InputError where the states alone take more memory than a run may have."""
    total = sum(array.nbytes for array in _states(model).values())
    if total > limits.bytes:
        message = f"the states need {total:,} bytes, at most {limits.bytes:,} may be taken"
        help_ = f"if that is meant, allow more: {setting('`--max-bytes`', '`max_bytes=`')}"
        kinds = [(i.kind, i.variant) for i in model.program]
        at = kinds.index(("input", STATE)) if ("input", STATE) in kinds else 0
        raise model.fault(at, NAC48, message, help_)
