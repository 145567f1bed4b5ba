"""The memory of a run, and every step of a plan with its arrays in it.

A step whose arrays stay where they are is a list of calls. Inputs and outputs are new in every run:
small ones are copied, so that the steps that take or make them need not follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct

from nacre.core.module import Shape
from nacre.core.values import Array
from nacre.kernels.interface.call import Fault, Run
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.fixed import FixableRun, FixedCall
from nacre.kernels.interface.runs import bare_run
from nacre.kernels.interface.scratch import aligned_bytes

_SMALL_BYTES = 1 << 16  # of an input or an output that is copied
_SLOW_BYTES = 1 << 20  # of an input for a step that has much to prepare
_MOST_CALLS = 4096  # of a step that are kept; one of more makes them anew in every run

Slots = Mapping[int, Sequence[tuple[list[Array | None], int]]]


class Step(Struct, frozen=True, gc=False):
    """One operation, or several that are computed as one, bound to their types."""

    index: int  # of the operation
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[KernelType, ...]  # of the results
    run: Run
    in_place_operands: tuple[int, ...] = ()  # operands over which the last result may be written


class BoundStep(NamedTuple):
    """A step with its arrays: calls that cannot go wrong, or a run that may."""

    step: Step
    calls: list[FixedCall]
    run: Callable[[], Fault | None] | None


@dataclass(frozen=True, slots=True)
class Workspace:
    """The memory of one run at a time."""

    steps: list[BoundStep]
    # Where values go that are new in every run: lists of arrays, and the places in them.
    slots: Slots
    copied_inputs: Mapping[int, Array]
    copied_outputs: Mapping[int, Array]

    def put(self, values: Mapping[int, Array]) -> None:
        """Let every step that takes or makes one of these values have its array."""
        for value, places in self.slots.items():
            array = values[value]
            for arrays, at in places:
                arrays[at] = array
        for value, array in self.copied_inputs.items():
            np.copyto(array, values[value])

    def outputs(self) -> dict[int, Array]:
        """Copies of the outputs that have their place here."""
        return {value: array.copy() for value, array in self.copied_outputs.items()}

    def clear(self) -> None:
        """Forget what the caller gave, and what is handed out."""
        for places in self.slots.values():
            for arrays, at in places:
                arrays[at] = None


def new_workspace(
    steps: Sequence[Step],
    arrays: Mapping[int, Array],
    inputs: Mapping[int, KernelType],
    outputs: Mapping[int, KernelType],
) -> Workspace:
    """A workspace in which some values have their arrays."""
    slow = {value for step in steps if _is_slow(step) for value in step.operands}
    copied_inputs = {
        value: np.empty(type_.shape, type_.dtype)
        for value, type_ in inputs.items()
        if _size_bytes(type_) <= (_SLOW_BYTES if value in slow else _SMALL_BYTES)
    }
    copied_outputs = {
        value: np.empty(type_.shape, type_.dtype)
        for value, type_ in outputs.items()
        if _size_bytes(type_) <= _SMALL_BYTES
    }
    known = {**arrays, **copied_inputs, **copied_outputs}
    slots = defaultdict[int, list[tuple[list[Array | None], int]]](list)
    pending = []
    for step in steps:
        operands, results = ([known.get(v) for v in side] for side in (step.operands, step.results))
        pending.append((step, operands, results))
        for held, values in ((operands, step.operands), (results, step.results)):
            for at, value in enumerate(values):
                if value not in known:
                    slots[value].append((held, at))
    scratch = _Scratch()
    for one in pending:  # the first time for the sizes alone
        _bind(*one, scratch)
    scratch = _Scratch(scratch.sizes)
    bound = [_bind(*one, scratch) for one in pending]
    return Workspace(bound, dict(slots), copied_inputs, copied_outputs)


def _is_slow(step: Step) -> bool:
    """Whether a step has much to prepare on arrays that it has not seen before."""
    run = bare_run(step.run)
    return isinstance(run, FixableRun) and run.run is None


def _size_bytes(type_: KernelType) -> int:
    return prod(type_.shape) * type_.dtype.itemsize


class _Scratch:
    """Memory that steps fill and read, one after the other."""

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        self.sizes = dict(sizes or {})  # the most bytes that are asked for, by use
        self._by_use: dict[str, Array] = {}

    def __call__(self, use: str, shape: Shape, dtype: np.dtype[Any]) -> Array:
        self.sizes[use] = max(self.sizes.get(use, 0), prod(shape) * dtype.itemsize)
        memory = self._by_use.get(use)
        if memory is None or memory.nbytes < self.sizes[use]:
            memory = self._by_use[use] = aligned_bytes(self.sizes[use])
        return np.ndarray(shape, dtype, memory)


def _bind(
    step: Step, operands: list[Array | None], results: list[Array | None], scratch: _Scratch
) -> BoundStep:
    run = bare_run(step.run)
    outputs = [array for array in results if array is not None]
    is_fixed = len(outputs) == len(results) and all(array is not None for array in operands)
    if is_fixed and isinstance(run, FixableRun):
        calls = list(islice(run.fix(operands, outputs, scratch), _MOST_CALLS + 1))
        if len(calls) <= _MOST_CALLS:
            return BoundStep(step, calls, None)
    # Arrays that are not there yet come before it is called.
    return BoundStep(step, [], partial(run, operands, cast(list[Array], results)))
