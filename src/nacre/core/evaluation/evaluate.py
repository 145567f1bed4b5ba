"""What a module computes, on the shared kernels: the oracle for everything below it.

Integers wrap. Floats of up to 32 bits are computed in f32, f64 in f64, and rounded once to their
type. The mean of integers is exact and cut towards zero. Sums of floats are taken as NumPy and
BLAS arrange them, reproducibly on one build; with `ordered` one by one in row-major order (along
ascending k for products), with the same bytes on every platform.

Every operation is computed, also one that nothing uses. A value makes room after its last use; a
session keeps the memory of its values for the next run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.packing import as_nibbles
from nacre.base.suggest import Suggestions
from nacre.core.constants import kernel_type, to_carried
from nacre.core.evaluation.memory import captured_arrays
from nacre.core.evaluation.plan import initial_values, make_plan, to_declared
from nacre.core.evaluation.run import Plan, operation_span
from nacre.core.module import Module, Shape, TensorType
from nacre.core.rules.evaluation import EVL01, EVL02, EVL03
from nacre.core.sessions import Progress
from nacre.core.values import Array, array_or_none
from nacre.core.verify import MAX_FINDINGS


@dataclass(frozen=True)
class Evaluation:
    """What came out, in the order of the outputs, and how much memory the values took."""

    outputs: list[Array]
    peak_bytes: int  # of the tensors alive at one time; what kernels need inside is not counted


def evaluate(
    module: Module, inputs: Mapping[str, Any] | None = None, *, ordered: bool = False
) -> list[Array]:
    """The outputs in order; state starts from its initial value. InputError says what is wrong.

    A module that is evaluated often is better kept in a `CoreSession`, which prepares it once.
    """
    return CoreSession(module, ordered=ordered).run(inputs)


def evaluate_with_peak(
    module: Module, inputs: Mapping[str, Any] | None = None, *, ordered: bool = False
) -> Evaluation:
    """The outputs in order, and the peak of memory."""
    session = CoreSession(module, ordered=ordered)
    return Evaluation(session.run(inputs), session.peak_bytes)


class CoreSession:
    """A module made ready once and run many times; its state is kept between runs."""

    def __init__(self, module: Module, *, ordered: bool = False) -> None:
        self._module = module
        self._plan: Plan = make_plan(module, ordered)
        self._initial = initial_values(module)
        self._state = dict(self._initial)
        self._handed_out = self._outputs_without_copy()
        self._inputs = tuple((op.value_id, str(op.attributes["name"])) for op in module.inputs)
        self._outputs = tuple(zip(module.outputs, module.output_types, strict=True))
        self._wanted = None if module.states else _plain_inputs(module)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that tensors take at one time in a run."""
        return self._plan.peak_bytes

    @property
    def workspace_bytes(self) -> int:
        """The bytes that a session keeps between runs for the values that it computes."""
        return self._plan.layout.size

    @property
    def kept_arrays(self) -> list[Array]:
        """The arrays that a session keeps between runs: constants, and what was made of them."""
        plan = self._plan
        return [*plan.constants.values(), *captured_arrays([step.run for step in plan.steps])]

    @property
    def state(self) -> dict[str, Array]:
        """The state as it stands, by the name of the input that it feeds."""
        types = self._module.input_types
        return {name: to_declared(value, types[name]) for name, value in self._state.items()}

    def reset(self) -> None:
        """Put the state back to its initial value."""
        self._state = dict(self._initial)

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
    ) -> list[Array]:
        """The outputs of one run. A state that is given as an input starts from what is given.

        A run that fails leaves the state as it was. `progress` is told how many operations of how
        many are done.
        """
        outputs = None if progress else self.try_fast_run(inputs)
        if outputs is not None:
            return outputs
        given = check_inputs(self._module, {} if inputs is None else inputs, self._state)
        return self.run_checked(given, progress=progress)

    def try_fast_run(self, inputs: Mapping[str, Any] | None) -> list[Array] | None:
        """The same for dense arrays of the declared types, in a fraction of the time to check them.

        None where inputs are anything else, and in a module with states.
        """
        wanted = self._wanted
        if wanted is None or type(inputs) is not dict or len(inputs) != len(wanted):
            return None
        ready: dict[int, Array] = {}
        for value, name, dtype, shape in wanted:
            array = inputs.get(name)
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            if not array.flags.c_contiguous:
                return None
            ready[value] = array
        return self._declared_outputs(self._plan.run(ready))

    def run_checked(
        self, given: Mapping[str, Array], *, progress: Progress | None = None
    ) -> list[Array]:
        """The same for arrays that are known to be right, as `checked_inputs` gives them."""
        module = self._module
        ready = {
            value: given[name] if name in given else self._state[name]
            for value, name in self._inputs
        }
        kept = self._plan.run(ready, progress)
        # A state that takes up an input is copied: the caller may change that array.
        self._state = {
            s.name: np.array(kept[s.output]) if s.output in ready else kept[s.output]
            for s in module.states
        }
        return self._declared_outputs(kept)

    def _declared_outputs(self, kept: Mapping[int, Array]) -> list[Array]:
        """The outputs as they are declared, of what a run has left."""
        return [
            kept[value] if value in self._handed_out else to_declared(kept[value], type_)
            for value, type_ in self._outputs
        ]

    def _outputs_without_copy(self) -> frozenset[int]:
        """The outputs that a caller may have as they are: nothing else looks at them."""
        module, fresh = self._module, self._plan.leaving
        uses = Counter([*module.outputs, *(state.output for state in module.states)])
        types = {value: module.by_id[value].type for value in module.outputs}
        return frozenset(
            value
            for value, type_ in types.items()
            if uses[value] == 1
            and value in fresh
            and kernel_type(type_).dtype == type_.element.dtype
        )


_Wanted = tuple[tuple[int, str, np.dtype[Any], Shape], ...]  # values, their names and types


def _plain_inputs(module: Module) -> _Wanted | None:
    """The inputs of a module; None where kernels carry one in another type."""
    types = [kernel_type(op.type) for op in module.inputs]
    pairs = tuple(zip(module.inputs, types, strict=True))
    if any(type_.dtype != op.type.element.dtype for op, type_ in pairs):
        return None
    return tuple(
        (op.value_id, str(op.attributes["name"]), type_.dtype, op.type.shape) for op, type_ in pairs
    )


def check_inputs(
    module: Module, inputs: Mapping[str, Any], state: Mapping[str, Array]
) -> dict[str, Array]:
    """The given arrays as the kernels carry them; InputError with all that is wrong about them."""
    if not isinstance(inputs, Mapping):
        message = f"inputs are a {type(inputs).__name__}, expected arrays by name"
        raise InputError([EVL03.at(operation_span(module, 0), message)])
    ready: dict[str, Array] = {}
    findings = list(islice(_problems(module, inputs, state, ready), MAX_FINDINGS))
    if findings:
        raise InputError(findings)
    return ready


def _problems(
    module: Module,
    inputs: Mapping[str, Any],
    state: Mapping[str, Array],
    ready: dict[str, Array],
) -> Iterator[Diagnostic]:
    """What is wrong with the given arrays; those that are right go to `ready`."""
    names = {str(op.attributes["name"]): op.type for op in module.inputs}
    for index, (name, type_) in enumerate(names.items()):  # they come first in the module
        if name not in inputs:
            if name not in state:
                message = f"input {backquote(name)} is missing, expected {type_}"
                yield EVL01.at(operation_span(module, index), message)
            continue
        array = array_or_none(inputs[name])
        array = None if array is None else as_nibbles(array, type_.element)
        if array is None or array.dtype != type_.element.dtype or array.shape != type_.shape:
            problem = (
                _four_bit_overflow(array, type_)
                or f"is {_describe(inputs[name])}, expected {type_}"
            )
            yield EVL03.at(operation_span(module, index), f"input {backquote(name)} {problem}")
        else:
            ready[name] = to_carried(array, type_)
    hints = Suggestions(names)
    for extra in inputs:
        if extra not in names:
            message = f"the module has no input {backquote(str(extra))}{hints.suffix(str(extra))}"
            yield EVL02.at(operation_span(module, 0), message)


def _four_bit_overflow(array: Array | None, type_: TensorType) -> str | None:
    """The first of bytes that 4 bits do not hold, and where it lies; None where that is not it."""
    element = type_.element
    if array is None or element.bits >= 8 or array.shape != type_.shape:
        return None
    if array.dtype.name not in ("int8", "uint8"):
        return None
    far = np.argwhere((array < element.lowest) | (array > element.highest))
    if not far.size:
        return None
    at = tuple(map(int, far[0]))
    more = f" and {len(far) - 1} more like it" if len(far) > 1 else ""
    return (
        f"has {int(array[at])} at [{', '.join(map(str, at))}]{more}, "
        f"{element.name} holds {int(element.lowest)} to {int(element.highest)}"
    )


def _describe(value: object) -> str:
    array = array_or_none(value)
    if array is None:
        return "a masked array" if isinstance(value, np.ma.MaskedArray) else "no array"
    order = "" if array.dtype.isnative else " in the byte order of other machines"
    return f"an array of {array.dtype.name}{order} with shape [{', '.join(map(str, array.shape))}]"
