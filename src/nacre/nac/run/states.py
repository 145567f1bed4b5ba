"""States: what each starts as, and what it must be when it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.hints import setting
from nacre.core.values import Array
from nacre.nac.program.interface import InitialParameter, StateRecord
from nacre.nac.rules.running import NAC47, NAC48
from nacre.nac.run.calls import format_type
from nacre.nac.run.limits import Limits
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.shape_only import shape_only_array
from nacre.nac.spec.instructions import STATE


def initial_state(program: LoadedProgram, record: StateRecord) -> Array:
    """What a state starts as."""
    dtype = GRAPH_TYPES[record.dtype].dtype
    if isinstance(record.initial, InitialParameter):
        return program.weights[record.initial.parameter].astype(dtype).reshape(record.shape)
    is_integer = GRAPH_TYPES[record.dtype].is_integer
    wide, number = (np.int64, int) if is_integer else (np.float64, float)
    if isinstance(record.initial, tuple):
        every = np.array([number(each) for each in record.initial], wide)
        return every.astype(dtype).reshape(record.shape)
    return np.full(record.shape, np.array(number(record.initial), wide).astype(dtype))


def state_shapes(program: LoadedProgram) -> dict[int, Array]:
    """The states by id, as shapes alone."""
    records = program.surroundings.states
    return {
        id_: shape_only_array(GRAPH_TYPES[r.dtype].dtype, r.shape) for id_, r in records.items()
    }


def require_next_state(program: LoadedProgram, record: StateRecord, outputs: Sequence[Any]) -> None:
    """InputError where what feeds a state is not of its type."""
    output = outputs[record.output]
    wanted = shape_only_array(GRAPH_TYPES[record.dtype].dtype, record.shape)
    is_tensor = isinstance(output, np.ndarray)
    if not is_tensor or output.shape != wanted.shape or output.dtype != wanted.dtype:
        message = (
            f"output {record.output} is {format_type(output)}, and feeds state {record.id}, which "
            f"is {format_type(wanted)}"
        )
        raise program.fault(len(program.program) - 1, NAC47, message)


def require_states(program: LoadedProgram, limits: Limits) -> None:
    """InputError where the states alone take more memory than a run may have."""
    total = sum(array.nbytes for array in state_shapes(program).values())
    if total > limits.bytes:
        message = f"the states need {total:,} bytes, at most {limits.bytes:,} may be taken"
        help_ = f"if that is meant, allow more: {setting('`--max-bytes`', '`max_bytes=`')}"
        kinds = [(i.kind, i.variant) for i in program.program]
        at = kinds.index(("input", STATE)) if ("input", STATE) in kinds else 0
        raise program.fault(at, NAC48, message, help_)
