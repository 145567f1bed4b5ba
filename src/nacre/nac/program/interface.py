"""What a program takes and keeps, as far as the file says it.

The format has no place for the types of inputs, nor for type and initial value of a state. We write
them as resources, which other readers pass over: `nacre.interface.json`

    {"inputs": {"x": {"dtype": "f32", "shape": [1, 3, 32, 32]}}, "outputs": ["probabilities"]}

and, where there is state, `nacre.state.json`

    {"states": [{"id": 0, "name": "cache", "output": 1, "dtype": "f32", "shape": [1, 8, 64, 32],
                 "initial": 0.0}]}

in which `initial` is one number for all elements, a list of them in order, or `{"parameter": 7}`,
and `output` the operand of `<OUTPUT B=0>` that becomes the next state. An output that feeds a state
is not returned unless it is listed with `"returned": true`. Names of parameters that share a tensor
are in a resource of their own, see `parameters`, and so is what is known of calls that nothing here
computes, see `operation_calls`, and what training leaves as it is, see `trainable`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import msgspec

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.nac.format.external import External
from nacre.nac.format.positions import BinarySource, Position, finding
from nacre.nac.format.scales import is_scaled
from nacre.nac.format.values import Bytes, NacFile, Tensor
from nacre.nac.program.operation_calls import OPERATIONS, OperationTable, table_problems
from nacre.nac.program.parameters import PARAMETERS, ParameterNames, ParameterTable, parameter_names
from nacre.nac.program.trainable import TRAINING, TrainingRecord
from nacre.nac.rules.running import NAC42, NAC43
from nacre.nac.spec.constants import STRING
from nacre.nac.spec.elements import DTYPES, FP16, MOST_AXES, QUANTIZATIONS, STORED_AS
from nacre.nac.spec.instructions import INPUT, LIFTED, STATE, USER

INTERFACE = "nacre.interface.json"
STATES = "nacre.state.json"
OWN_RESOURCES = frozenset(
    {INTERFACE, STATES, PARAMETERS, OPERATIONS, TRAINING}
)  # written anew with every program
_MOST_ELEMENTS = 1 << 30  # of a state
Number = int | float  # integers of 64 bits have more digits than a float
Record = TypeVar("Record", bound=msgspec.Struct)


class InputType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The type of an input."""

    dtype: str
    shape: tuple[int, ...]


class Interface(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The types of inputs by name, and the names of outputs."""

    inputs: dict[str, InputType] = {}
    outputs: tuple[str, ...] = ()


class InitialParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An initial value that is a parameter of the file."""

    parameter: int


class StateRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A state: its type, what it starts as, and which output feeds it."""

    id: int
    output: int
    dtype: str
    shape: tuple[int, ...]
    initial: Number | tuple[Number, ...] | InitialParameter = 0.0
    name: str = ""
    returned: bool = False


class StateTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every state."""

    states: tuple[StateRecord, ...] = ()


@dataclass(frozen=True)
class NacInput:
    """An input. What a file does not say about its type is None, and any array is taken."""

    name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    instruction: int
    is_optional: bool = False  # a lifted constant that the file holds, or a state


@dataclass(frozen=True)
class ProgramInterface:
    """Inputs in order, states by id, names of outputs and of parameters."""

    inputs: tuple[NacInput, ...]
    states: dict[int, StateRecord]
    output_names: tuple[str, ...]
    parameters: ParameterNames = field(default_factory=ParameterNames)
    fixed: frozenset[str] | None = None  # what training leaves; None where the file does not say


def program_interface(
    file: NacFile, source: Source, external: External | None = None
) -> tuple[ProgramInterface, list[Diagnostic]]:
    """What a program takes and keeps, and what is wrong with what the file says about it."""
    findings: list[Diagnostic] = []
    interface = _decode(file, source, INTERFACE, Interface, findings)
    table = _decode(file, source, STATES, StateTable, findings)
    states = _states(file, source, external, table or StateTable(), findings)
    inputs = _inputs(file, states, interface or Interface())
    named = {made.name for made in inputs}
    for name, type_ in (interface or Interface()).inputs.items():
        problem = _type_problem(type_.dtype, type_.shape)
        if name not in named:
            problem = "the program has no such input"
        if problem:
            message = f"{INTERFACE}: input {backquote(name)}: {problem}"
            findings.append(finding(NAC43, source, _place(file, INTERFACE), message))
    outputs = (interface or Interface()).outputs
    parameters, wrong = parameter_names(
        file, _decode(file, source, PARAMETERS, ParameterTable, findings)
    )
    place = _place(file, PARAMETERS)
    findings += [finding(NAC43, source, place, f"{PARAMETERS}: {problem}") for problem in wrong]
    findings += _operation_findings(file, source)
    training = _decode(file, source, TRAINING, TrainingRecord, findings)
    fixed = None if training is None else frozenset(training.fixed)
    return ProgramInterface(inputs, states, outputs, parameters, fixed), findings


def _operation_findings(file: NacFile, source: Source) -> list[Diagnostic]:
    """What is wrong with what the file says of calls that are known by their names alone."""
    findings: list[Diagnostic] = []
    table = _decode(file, source, OPERATIONS, OperationTable, findings)
    problems = [] if table is None else table_problems(file, table)
    place = _place(file, OPERATIONS)
    return findings + [finding(NAC43, source, place, f"{OPERATIONS}: {p}") for p in problems]


def operation_table(file: NacFile) -> OperationTable:
    """What a file says of such calls; nothing where that is malformed, which has been reported."""
    table = _decode(file, BinarySource("", 0), OPERATIONS, OperationTable, [])
    return table if table is not None and not table_problems(file, table) else OperationTable()


def _decode(
    file: NacFile, source: Source, name: str, kind: type[Record], findings: list[Diagnostic]
) -> Record | None:
    raw = file.resource(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(bytes(raw), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        rule = NAC42 if name == STATES else NAC43
        findings.append(finding(rule, source, _place(file, name), f"{name} is malformed: {error}"))
        return None


def _place(file: NacFile, name: str) -> Position:
    offsets = file.record_offsets.get("RSRC", ())
    records = [i for i, resource in enumerate(file.resources) if resource.name == name]
    return Position(offsets[records[0]] if records and offsets else 0, "RSRC")


def _type_problem(dtype: str, shape: tuple[int, ...]) -> str | None:
    if dtype not in GRAPH_TYPES:
        return f"{backquote(dtype)} is no element type"
    if len(shape) > MOST_AXES:
        return f"it has {len(shape):,} axes, at most {MOST_AXES}"
    if any(dim < 1 for dim in shape) or prod(shape) > _MOST_ELEMENTS:
        return f"{list(shape)} is no shape of a tensor"
    return None


def _states(
    file: NacFile,
    source: Source,
    external: External | None,
    table: StateTable,
    findings: list[Diagnostic],
) -> dict[int, StateRecord]:
    states: dict[int, StateRecord] = {}
    for record in table.states:
        problem = _type_problem(record.dtype, record.shape)
        if record.id in states:
            problem = "it is described twice"
        elif not 0 <= record.output < file.header.outputs:
            problem = f"output {record.output} of {file.header.outputs} feeds it"
        elif problem is None:
            problem = _initial_problem(file, external, record)
        if problem:
            message = f"{STATES}: state {record.id}: {problem}"
            findings.append(finding(NAC42, source, _place(file, STATES), message))
        states[record.id] = record
    for index, instruction in enumerate(file.instructions):
        is_state = (instruction.op, instruction.variant) == (INPUT, STATE)
        if is_state and instruction.c[1] not in states:
            offsets = file.record_offsets.get("OPS ", ())
            place = Position(offsets[index] if offsets else 0, "OPS ", index)
            message = f"state {instruction.c[1]} is not described in {STATES}"
            findings.append(finding(NAC42, source, place, message))
    return states


def _initial_problem(file: NacFile, external: External | None, record: StateRecord) -> str | None:
    """Why a state of a sound type cannot start as its record says."""
    initial = record.initial
    if isinstance(initial, InitialParameter):
        return _parameter_problem(file, external, record, initial.parameter)
    numbers = initial if isinstance(initial, tuple) else (initial,)
    if isinstance(initial, tuple) and len(initial) != prod(record.shape):
        return f"{len(initial):,} initial elements for {list(record.shape)}"
    element = GRAPH_TYPES[record.dtype]
    for number in numbers:
        is_held = element.lowest <= number <= element.highest
        if not is_held or (element.is_integer and number != int(number)):
            return f"it starts as {number!r}, which {record.dtype} does not hold"
    return None


def _parameter_problem(
    file: NacFile, external: External | None, record: StateRecord, id_: int
) -> str | None:
    """Why a state cannot start as a parameter."""
    names = {named.id: named.text for named in file.data.parameters}
    if id_ not in names:
        return f"its initial value is parameter {id_}, which is not there"
    if external is not None:
        problem = external.problem(names[id_], file.header.quant)
        tensor = None if problem else external.tensor(names[id_], id_)
    else:
        tensor = next((t for t in file.data.tensors if t.id == id_), None)
    if tensor is None:
        return f"its initial value is parameter {id_}, which has no tensor"
    has_blocks = QUANTIZATIONS[tensor.quant].has_blocks
    shape = tensor.true_shape if has_blocks else tensor.shape
    if shape != record.shape or record.dtype not in _possible_types(file, tensor):
        actual_text = f"{DTYPES[tensor.dtype]} of shape {list(shape)}"
        return f"its initial value is parameter {id_}, which is {actual_text}"
    return None


def _possible_types(file: NacFile, tensor: Tensor) -> tuple[str, ...]:
    """The types that a tensor may be of: stored halves may stand for f32, and integers do.

    A type that the format does not have is stored as a wider one.
    """
    stored = DTYPES[tensor.dtype]
    if is_scaled(tensor.quant):
        return ("f32",)
    narrow = tuple(name for name, wide in STORED_AS.items() if wide == stored)
    halves = ("f32",) if stored == "f16" and file.header.quant == FP16 else ()
    return (stored, *halves, *narrow)


def _inputs(
    file: NacFile, states: dict[int, StateRecord], interface: Interface
) -> tuple[NacInput, ...]:
    names = {named.id: named.text for named in file.data.inputs}
    inputs: list[NacInput] = []
    for index, instruction in enumerate(file.instructions):
        if instruction.op != INPUT or instruction.variant not in (USER, STATE, LIFTED):
            continue
        name, is_optional = names.get(index, ""), instruction.variant != USER
        type_ = interface.inputs.get(name)
        dtype, shape = (type_.dtype, type_.shape) if type_ else (None, None)
        if instruction.variant == STATE and instruction.c[1] in states:
            record = states[instruction.c[1]]
            name, dtype, shape = name or record.name, record.dtype, record.shape
        elif instruction.variant == LIFTED:
            # A constant whose value was lost when the file was made is a string: it must be given.
            constant = file.constant_of.get(instruction.c[1])
            is_optional = constant is not None and constant.tag != STRING
        if name:
            inputs.append(NacInput(name, dtype, shape, index, is_optional))
    return tuple(inputs)


def encode_record(value: msgspec.Struct) -> Bytes:
    """A resource of ours as bytes."""
    return msgspec.json.encode(value)
