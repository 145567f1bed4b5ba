"""A module of Core IR as a program: the inverse of `lift`.

Every operation becomes one instruction, in order, but for `Conv2d`, which `channels` tells about,
and for choices, which become `<CONTROL_FLOW>` with two branches, see `choices`; a
constant becomes a parameter that is loaded just before its first use. Equal ones are stored once,
and keep their names, see `parameters`. What is used very late has a relay on the way, see `reach`.
What the format has no place for, types of inputs and state, is written as resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.aten.schemas import Schema
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.opaque.calls import OPAQUE
from nacre.core.values import Array
from nacre.nac.format.packing import name_place_of_refusal
from nacre.nac.format.values import NacFile, Plan, Resource
from nacre.nac.program.array_keys import array_key
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.program.calls import core_schema
from nacre.nac.program.channels import TO_FIRST, TO_LAST, WEIGHTS_TO_FIRST, window_call
from nacre.nac.program.choices import Branch, Choice, find_choices
from nacre.nac.program.interface import (
    INTERFACE,
    STATES,
    InitialParameter,
    InputType,
    Interface,
    StateRecord,
    StateTable,
    encode_record,
)
from nacre.nac.program.lowering import Argument, Operand, lower_operation
from nacre.nac.program.opaque_lowering import OpaqueLowering
from nacre.nac.program.operation_calls import OPERATIONS, OperationTable
from nacre.nac.program.parameters import PARAMETERS, ParameterTable
from nacre.nac.program.reach import RELAY, Reach
from nacre.nac.program.schedule import make_schedule
from nacre.nac.program.trainable import TRAINING, training_record
from nacre.nac.spec.calls import constant_code, schemas, tensor_code
from nacre.nac.spec.elements import STORED_AS
from nacre.nac.spec.header import CURRENT
from nacre.nac.spec.operations import standard_ids

# The names of standard operations by the call that each is; an alias is not written.
_STANDARD = {row.call: row.name for row in standard_ids(CURRENT.byte).values() if "." in row.call}


def lower(
    module: Module,
    *,
    d_model: int = 0,
    resources: Sequence[Resource] = (),
    manifest: bytes = b"",
    plan: Plan | None = None,
) -> NacFile:
    """The file of a module, without quantisation; InputError where the format is too narrow."""
    lowerer = _Lowerer(module, resources)
    lowerer.fill()
    given = {"d_model": d_model, "manifest": manifest, "plan": plan}
    return lowerer.file(given)


@dataclass
class _Lowerer:
    """Puts a program together."""

    module: Module
    resources: Sequence[Resource] = ()
    assembler: Assembler = field(default_factory=Assembler)
    _refs: dict[int, Ref] = field(default_factory=dict)
    _weights: dict[object, int] = field(default_factory=dict)  # parameters by their elements
    _filters: dict[int, Ref] = field(default_factory=dict)  # with their channels first
    _names: set[str] = field(default_factory=set)  # of parameters, as they are stored
    _parameters: dict[int, str] = field(default_factory=dict)  # names of constants
    _states: list[StateRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reach = Reach(self.module)
        self._choices = find_choices(self.module)
        self._opaque = OpaqueLowering(self.module, self.assembler, self._operand_ref, self._define)
        names = self.module.parameter_names
        self._taken = {name for all_names in names.values() for name in all_names}
        self._keys = {
            op.value_id: array_key(array)
            for op in self.module.operations
            if (array := constant_array(op)) is not None
        }
        # What is stored is called after a parameter of the model if it is one.
        self._owners: dict[object, int] = {}
        for value in sorted(names):
            self._owners.setdefault(self._keys.get(value), value)

    def fill(self) -> None:
        """Every instruction."""
        for place, op in enumerate(self.module.operations):
            if self._choices.stands_alone(op.value_id):
                self._relay(place)
                self._lower(op)
        self._relay(len(self.module.operations))
        returned = [self._operand_ref(value) for value in self.module.outputs]
        kept = [self._operand_ref(state.output) for state in self.module.states]
        self._describe_states(len(returned))
        self.assembler.output(*returned, *kept)

    def _lower(self, op: CoreOperation) -> None:
        """The instructions of an operation, or of a choice and its branches."""
        with name_place_of_refusal(lambda: self._describe(op)):
            choice = self._choices.by_first.get(op.value_id)
            if choice is not None:
                self._choose(choice)
            elif op.opcode == "Input":
                self._input(op)
            elif op.opcode == OPAQUE:
                self._opaque.lower(op)
            elif constant_array(op) is None and not self._lower_window(op):
                self._call(op)

    def _choose(self, choice: Choice) -> None:
        """A choice, both branches, and its results."""
        made = self.assembler.begin_branches(self._operand_ref(choice.condition))
        lengths = [self._branch(branch) for branch in (choice.true, choice.false)]
        self.assembler.end_branches(made, *lengths)
        several = len(choice.values) > 1
        for place, value in enumerate(choice.values):
            # Python's own function, which has no namespace.
            result = self.assembler.call("getitem", made, place, codes="Ti") if several else made
            self._define(value, result)

    def _branch(self, branch: Branch) -> int:
        """How many instructions a branch has; what it loads is there for it alone."""
        start, refs, filters = self.assembler.count, dict(self._refs), dict(self._filters)
        with self.assembler.inside_branch():
            for op in branch.operations:
                if op.value_id not in self._choices.later:
                    self._lower(op)
            self.assembler.end_branch(*(self._operand_ref(value) for value in branch.results))
        self._refs, self._filters = refs, filters
        return self.assembler.count - start

    def _define(self, value: int, ref: Ref) -> None:
        """A value that cannot be loaded again is the result of an instruction."""
        self._refs[value] = ref
        self._reach.add_carrier(value, ref)

    def _relay(self, place: int) -> None:
        """Hand on what the operation at a place, or a later one, would not reach."""
        for value, ref in self._reach.values_out_of_reach(self.assembler.count, place):
            self._define(value, self.assembler.call(RELAY, ref))

    def _describe(self, op: CoreOperation) -> str:
        """An operation as people know it: by what their model calls it, if it does."""
        labels = self.module.labels
        name = labels.nodes.get(op.value_id) if labels is not None else None
        return f"{op.opcode} {backquote(name)}" if name else f"%{op.value_id} = {op.opcode}"

    def file(self, given: Mapping[str, Any]) -> NacFile:
        """The whole of it."""
        made = self.assembler.file(resources=self._resources(), **given)
        return NacFile(made.header, {**made.sections, "MMAP": make_schedule(made)})

    def _input(self, op: CoreOperation) -> None:
        name = str(op.attributes["name"])
        names = [state.name for state in self.module.states]
        if name in names:
            self._define(op.value_id, self.assembler.state(names.index(name), name))
        else:
            self._define(op.value_id, self.assembler.input(name))

    def _operand_ref(self, value: int) -> Ref:
        """A value that was computed, or a constant, loaded now."""
        found = self._refs.get(value)
        if found is None:
            array = constant_array(self.module.by_id[value])
            assert array is not None
            found = self._refs[value] = self._load(value, array, self._keys[value])
        return found

    def _load(self, value: int, array: Array, key: object) -> Ref:
        """A constant, loaded now; its elements may lie otherwise than the module has them."""
        id_ = self._weight(value, array, key)
        return self.assembler.parameter(id_, self._name(value))

    def _weight(self, value: int, array: Array, key: object) -> int:
        """The id under which elements are stored, once."""
        if key not in self._weights:
            name = self._stored_name(self._name(self._owners.get(key, value)))
            self._weights[key] = self.assembler.weight(name, array)
        return self._weights[key]

    def _stored_name(self, wanted: str) -> str:
        """A name that no other tensor has."""
        name, count = wanted, 0
        while name in self._names or (count and name in self._taken):
            count += 1
            name = f"{wanted}.{count}"
        self._names.add(name)
        return name

    def _name(self, value: int) -> str:
        """What the model calls a constant; one without a name has one that no other has."""
        if value not in self._parameters:
            labels = self.module.labels
            given = self.module.parameter_names.get(value)
            node = labels.nodes.get(value) if labels is not None else None
            self._parameters[value] = given[0] if given else self._new_name(node)
        return self._parameters[value]

    def _new_name(self, wanted: str | None) -> str:
        first = name = wanted or f"c{len(self._weights) + 1}"
        count = 0
        while name in self._taken:
            count += 1
            name = f"{first}.{count}"
        self._taken.add(name)
        return name

    def _call(self, op: CoreOperation) -> None:
        operands = [self._operand_ref(value) for value in op.operands]
        types = tuple(self.module.by_id[value].type for value in op.operands)
        call, arguments = lower_operation(op, types)
        schema = schemas().get(call) or core_schema(call)
        assert schema is not None
        given: list[Ref | object] = []
        codes = ""
        for place, argument in enumerate(arguments):
            for part, code in _argument_parts(schema, place, argument):
                given.append(operands[part.place] if isinstance(part, Operand) else part)
                codes += code
        name = _STANDARD.get(call, call if call.startswith("core.") else f"aten.{call}")
        self._define(op.value_id, self.assembler.call(name, *given, codes=codes))  # type: ignore[arg-type]

    def _lower_window(self, op: CoreOperation) -> bool:
        """Whether an operation was a `Conv2d` that became three calls."""
        call_and_arguments = window_call(op) if op.opcode == "Conv2d" else None
        if call_and_arguments is None:
            return False
        call, given = call_and_arguments
        x, (_, filter_) = self._operand_ref(op.operands[0]), op.operands
        array = constant_array(self.module.by_id[filter_])
        if array is None:
            weight = self._permute(self._operand_ref(filter_), WEIGHTS_TO_FIRST)
        else:
            weight = self._load_filter_first(filter_, array)
        convolved = self._emit(call, (self._permute(x, TO_FIRST), weight, *given))
        self._define(op.value_id, self._permute(convolved, TO_LAST))
        return True

    def _load_filter_first(self, value: int, array: Array) -> Ref:
        """A filter with its channels first, loaded now."""
        found = self._filters.get(value)
        if found is None:
            moved = np.ascontiguousarray(array.transpose(WEIGHTS_TO_FIRST))
            found = self._filters[value] = self._load(value, moved, array_key(moved))
        return found

    def _permute(self, value: Ref, order: tuple[int, ...]) -> Ref:
        return self._emit("permute.default", (value, order))

    def _emit(self, call: str, given: tuple[Any, ...]) -> Ref:
        """A call of ATen; its arguments as they stand in an instruction."""
        parameters = zip(schemas()[call].parameters, given, strict=True)
        codes = [
            tensor_code(schemas()[call], parameter)
            if isinstance(part, Ref)
            else constant_code(parameter, part)
            for parameter, part in parameters
        ]
        return self.assembler.call(f"aten.{call}", *given, codes="".join(codes))

    def _describe_states(self, returned: int) -> None:
        for index, state in enumerate(self.module.states):
            type_ = self.module.input_types[state.name]
            array = constant_array(self.module.by_id[state.initial])
            assert array is not None
            filling = _uniform_number(array, type_.element.is_integer)
            initial: InitialParameter | int | float | None = filling
            if initial is None:
                initial = InitialParameter(self._initial_weight(state.initial, array))
            record = StateRecord(
                index, returned + index, type_.dtype, type_.shape, initial, state.name
            )
            self._states.append(record)

    def _initial_weight(self, value: int, array: Array) -> int:
        """What a state starts as, in a type of the format; the record has the state's own."""
        wide = STORED_AS.get(self.module.by_id[value].type.dtype)
        if wide is None:
            return self._weight(value, array, self._keys[value])
        stored = array.astype(GRAPH_TYPES[wide].dtype)
        return self._weight(value, stored, array_key(stored))

    def _tied_parameters(self) -> list[tuple[int, tuple[str, ...]]]:
        """Parameters of several names that the program loads."""
        named = self.module.parameter_names.items()
        return [(v, names) for v, names in named if len(names) > 1 and v in self._parameters]

    def _resources(self) -> Sequence[Resource]:
        states = {state.name for state in self.module.states}
        inputs = {
            name: InputType(type_.dtype, type_.shape)
            for name, type_ in self.module.input_types.items()
            if name not in states
        }
        labels = self.module.labels
        interface = Interface(inputs, labels.outputs if labels is not None else ())
        resources = [Resource(INTERFACE, encode_record(interface))]
        if self._states:
            resources.append(Resource(STATES, encode_record(StateTable(tuple(self._states)))))
        if self._opaque.calls:
            table = OperationTable(self._opaque.calls)
            resources.append(Resource(OPERATIONS, encode_record(table)))
        tied = {names[0]: names[1:] for _, names in self._tied_parameters()}
        names = ParameterTable(self.assembler.load_names, tied)
        if names != ParameterTable():
            resources.append(Resource(PARAMETERS, encode_record(names)))
        training = training_record(self.module, self._parameters)
        if training is not None:
            resources.append(Resource(TRAINING, encode_record(training)))
        return [*resources, *self.resources]


def _uniform_number(array: Array, is_integer: bool) -> int | float | None:
    """The number that all elements are, to the bit; None where there is none that JSON has."""
    flat = array.reshape(-1)
    number = int(flat[0]) if is_integer else float(flat[0])
    same = np.full(flat.shape, flat[0], flat.dtype)
    return number if isfinite(number) and same.tobytes() == flat.tobytes() else None


def _argument_parts(schema: Schema, place: int, argument: Argument) -> list[tuple[Argument, str]]:
    """An argument as it stands in an instruction: a list of tensors is spread."""
    parameter = schema.parameters[place]
    if isinstance(argument, Operand):
        return [(argument, tensor_code(schema, parameter))]
    if parameter.is_list:
        return [(part, "T" if isinstance(part, Operand) else "c") for part in argument]
    return [(argument, constant_code(parameter, argument))]
