"""A module of Core IR as a program: the inverse of `lift`.

Every operation becomes one instruction, in order; a constant becomes a parameter that is loaded
just before its first use, and equal ones are stored once. What the format has no place for, types
of inputs and state, is written as resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array, Literal
from nacre.nac.assembly import Assembler
from nacre.nac.aten.binding import Ref
from nacre.nac.aten.derived import core_schema
from nacre.nac.aten.lowering import Argument, Operand, lowered
from nacre.nac.format.values import NacFile, Resource
from nacre.nac.interface import (
    INTERFACE,
    STATES,
    Initial,
    InputType,
    Interface,
    StateRecord,
    StateTable,
    encoded,
)
from nacre.nac.schedule import scheduled
from nacre.nac.spec.aten import Schema, constant_code, schemas, tensor_code
from nacre.nac.spec.header import CURRENT
from nacre.nac.spec.operations import standard_ids

_SCALARS = {"ConstI64": np.int64, "ConstF32": np.float32, "ConstF64": np.float64}
# The names of standard operations by the call that each is; an alias is not written.
_STANDARD = {row.call: row.name for row in standard_ids(CURRENT.byte).values() if "." in row.call}


def lower(module: Module) -> NacFile:
    """The file of a module, without quantisation; InputError where the format is too narrow."""
    return _Lowerer(module).file()


@dataclass
class _Lowerer:
    """Puts a program together."""

    module: Module
    assembler: Assembler = field(default_factory=Assembler)
    _refs: dict[int, Ref] = field(default_factory=dict)
    _weights: dict[object, int] = field(default_factory=dict)  # parameters by their elements
    _states: list[StateRecord] = field(default_factory=list)

    def file(self) -> NacFile:
        """The whole of it."""
        for op in self.module.operations:
            if op.opcode == "Input":
                self._input(op)
            elif _elements(op) is None:
                self._call(op)
        returned = [self._ref(value) for value in self.module.outputs]
        kept = [self._ref(state.output) for state in self.module.states]
        self._describe_states(len(returned))
        self.assembler.output(*returned, *kept)
        made = self.assembler.file(resources=self._resources())
        return self.assembler.file(resources=self._resources(), schedule=scheduled(made))

    def _input(self, op: CoreOperation) -> None:
        name = str(op.attributes["name"])
        names = [state.name for state in self.module.states]
        if name in names:
            self._refs[op.value_id] = self.assembler.state(names.index(name), name)
        else:
            self._refs[op.value_id] = self.assembler.input(name)

    def _ref(self, value: int) -> Ref:
        """A value that was computed, or a constant, loaded now."""
        found = self._refs.get(value)
        if found is None:
            array = _elements(self.module.by_id[value])
            assert array is not None
            found = self._refs[value] = self.assembler.parameter(self._weight(value, array))
        return found

    def _weight(self, value: int, array: Array) -> int:
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._weights:
            self._weights[key] = self.assembler.weight(self._name(value), array)
        return self._weights[key]

    def _name(self, value: int) -> str:
        labels = self.module.labels
        return labels.nodes.get(value, f"c{value}") if labels is not None else f"c{value}"

    def _call(self, op: CoreOperation) -> None:
        operands = [self._ref(value) for value in op.operands]
        types = tuple(self.module.by_id[value].type for value in op.operands)
        call, arguments = lowered(op, types)
        schema = schemas().get(call) or core_schema(call)
        assert schema is not None
        given: list[Ref | object] = []
        codes = ""
        for place, argument in enumerate(arguments):
            for part, code in _parts(schema, place, argument):
                given.append(operands[part.place] if isinstance(part, Operand) else part)
                codes += code
        name = _STANDARD.get(call, call if call.startswith("core.") else f"aten.{call}")
        self._refs[op.value_id] = self.assembler.call(name, *given, codes=codes)  # type: ignore[arg-type]

    def _describe_states(self, returned: int) -> None:
        for index, state in enumerate(self.module.states):
            type_ = self.module.input_types[state.name]
            array = _elements(self.module.by_id[state.initial])
            assert array is not None
            first = array.reshape(-1)[0]
            is_filled = bool((array == first).all()) and np.isfinite(float(first))
            initial: float | Initial = float(first) if is_filled else Initial(
                self._weight(state.initial, array))  # fmt: skip
            record = StateRecord(
                index, returned + index, type_.dtype, type_.shape, initial, state.name
            )
            self._states.append(record)

    def _resources(self) -> Sequence[Resource]:
        states = {state.name for state in self.module.states}
        inputs = {
            name: InputType(type_.dtype, type_.shape)
            for name, type_ in self.module.input_types.items()
            if name not in states
        }
        labels = self.module.labels
        interface = Interface(inputs, labels.outputs if labels is not None else ())
        made = [Resource(INTERFACE, encoded(interface))]
        if self._states:
            made.append(Resource(STATES, encoded(StateTable(tuple(self._states)))))
        return made


def _elements(op: CoreOperation) -> Array | None:
    """The elements of a constant."""
    if op.opcode in _SCALARS:
        return np.array(op.attributes["value"], _SCALARS[op.opcode])
    data = op.attributes.get("data")
    return data.array if op.opcode == "ConstTensor" and isinstance(data, Literal) else None


def _parts(schema: Schema, place: int, argument: Argument) -> list[tuple[Argument, str]]:
    """An argument as it stands in an instruction: a list of tensors is spread."""
    parameter = schema.parameters[place]
    if isinstance(argument, Operand):
        return [(argument, tensor_code(schema, parameter))]
    if parameter.is_list:
        return [(part, "T" if isinstance(part, Operand) else "c") for part in argument]
    return [(argument, constant_code(parameter, argument))]
