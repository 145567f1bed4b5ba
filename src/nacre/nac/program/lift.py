"""A program as a module of Core IR: every call becomes the operations that the runtime computes.

Core IR has static shapes. A file that says the types of its inputs is lifted as it is; for others
the caller gives them. Numbers that follow from shapes are folded; a call that needs elements which
are only known in a run has no form. Of branches that are chosen by them both are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.aten.call import AtenCall, Number, Value, ready_values
from nacre.core.builder import dtype_name
from nacre.core.importing.fallible import BranchBuilder, first_unknown
from nacre.core.module import Labels, Module, TensorType
from nacre.core.opaque.calls import ComplexValue
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, Literal
from nacre.nac.program.binding import Given
from nacre.nac.program.calls import handler_of
from nacre.nac.program.canonical import arrange
from nacre.nac.program.channels import WEIGHTS_TO_LAST, Window, windows_of
from nacre.nac.program.interface import NacInput
from nacre.nac.program.opaque_lifting import lift_call
from nacre.nac.rules.running import NAC46, NAC49
from nacre.nac.run.interpreter import MISSING, Interpreter, Operands, RunBranch
from nacre.nac.run.limits import limits_for
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import Memory, keep_all
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.run.shape_only import shape_only_array
from nacre.nac.run.states import initial_state
from nacre.nac.spec.instructions import LIFTED, PARAMETER, STATE

Types = Mapping[str, TensorType]


def lift(model: LoadedProgram, types: Types | None = None) -> Module:
    """The module of a model; InputError has all that has no form in Core IR.

    `types` gives the types of inputs that the file does not say.
    """
    return _Lifter(model, {} if types is None else types).module()


def lift_run(model: LoadedProgram, types: Types) -> Module:
    """The module of one run: states are inputs, and all operands of the output are outputs."""
    return _Lifter(model, types).run_module()


def lift_literally(model: LoadedProgram, types: Types | None = None) -> Module:
    """The module of a model, call by call: weights lie in it as the file has them."""
    return _Lifter(model, {} if types is None else types, is_literal=True).module()


def result_types(model: LoadedProgram, types: Types | None = None) -> dict[int, list[TensorType]]:
    """The types of what every instruction makes; InputError where they are not known."""
    return _Lifter(model, {} if types is None else types, is_literal=True).result_types()


class ValueDomain:
    """Results are values of a module. What is wrong is collected; one report for one cause."""

    tensor = (Value, ComplexValue)
    refusals = (Unsupported, ArithmeticError, LookupError, ValueError, TypeError)

    def __init__(self, program: LoadedProgram, types: Types, windows: Mapping[int, Window]) -> None:
        self.builder = BranchBuilder()
        self.findings: list[Diagnostic] = []
        # Of loads that have names, by id and name; filters with their channels last.
        self.weights: dict[tuple[int, str], Value] = {}
        self.filters: dict[tuple[int, str], Value] = {}
        self.calls: dict[int, str] = {}  # what is known by its name alone, by where it stands
        self._program = program
        self._types = types
        self._names = program.surroundings.parameters
        self._windows = windows
        self._passed = {at for window in windows.values() for at in window.permutations}
        self._lifted: dict[int, Any] = {}
        given = [
            shape_only_array(GRAPH_TYPES[type_.dtype].dtype, type_.shape)
            for type_ in self._input_types()
        ]
        self._room = limits_for(program.file_bytes, given, program.max_bytes).bytes
        self._inputs = {  # they come first in a module
            wanted.instruction: self._input(wanted)
            for wanted in program.all_inputs
            if program.program[wanted.instruction].variant != LIFTED
        }

    def _input_types(self) -> Iterator[TensorType]:
        for one in self._program.all_inputs:
            if one.dtype is not None and one.shape is not None:
                yield TensorType(one.dtype, one.shape)
            elif one.name in self._types:
                yield self._types[one.name]

    def _input(self, wanted: NacInput) -> Any:  # noqa: ANN401 - a value, or none
        given = self._types.get(wanted.name)
        dtype, shape = wanted.dtype, wanted.shape
        if given is not None and (dtype is None or shape is None):
            dtype, shape = given.dtype, given.shape
        if dtype is None or shape is None:
            message = f"the file does not say the type of input {backquote(wanted.name)}"
            help_ = (
                f'give it: `types={{"{_message_name(wanted.name)}": TensorType("f32", (1, 3))}}`'
            )
            self.findings.append(self._program.finding(wanted.instruction, NAC46, message, help_))
            return MISSING
        return Value(self.builder.input(wanted.name, dtype, shape))

    def load(self, index: int, instruction: PreparedInstruction) -> Any:  # noqa: ANN401 - a value or a number
        """An input, or a constant of the module."""
        if index in self._inputs:
            return self._inputs[index]
        if instruction.variant == PARAMETER:
            key = instruction.id, self._names.of_load(index)
            if key not in self.weights:
                self.weights[key] = self.constant(self._program.weights.load_fresh(instruction.id))
            return self.weights[key]
        if instruction.variant == STATE:
            raise Unsupported("the state has no name")
        if instruction.id not in self._lifted:
            value = self._program.lifted_constant(instruction.id)
            result = self.constant(value) if isinstance(value, np.ndarray) else value
            self._lifted[instruction.id] = result
        return self._lifted[instruction.id]

    def constant(self, array: Array) -> Value:
        """A constant of the module."""
        if 0 in array.shape:
            raise Unsupported("it has no elements; Core IR has no empty tensors")
        return Value(self.builder.constant(array, dtype_name(array.dtype), copy=False))

    def call(self, index: int, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
        """The operations that a call is."""
        if index in self._passed:
            return operands.tensors[0]
        if index in self._windows:
            return self._window(self._windows[index], operands.tensors)
        is_complex = any(isinstance(tensor, ComplexValue) for tensor in operands.tensors)
        if instruction.opaque is not None or is_complex:
            before = self.builder.count
            lifted = lift_call(self.builder, instruction, operands)
            made = self.builder.operations_since(before)
            self.calls.update({op.value_id: f"instruction {index}" for op in made})
            return lifted
        prepared = instruction.call
        assert prepared is not None
        computed = {
            name: _substitute_values(a, operands.tensors) for name, a in operands.arguments.items()
        }
        handler = handler_of(prepared.name)
        arguments = prepared.arguments(computed)
        result = handler(
            AtenCall(prepared.name, arguments, self.builder, self._elements, self._room)
        )
        if isinstance(result, Number):
            return result.number
        return (
            Value(result) if isinstance(result, int) else [Value(v) for v in ready_values(result)]
        )

    def _window(self, window: Window, operands: Sequence[Value]) -> Value:
        """A `Conv2d` of ours."""
        x, weight = operands
        if window.is_stored:
            weight = self._transposed_filter(window.weight)
        return Value(self.builder.add("Conv2d", x.id, weight.id, **window.attributes))

    def _transposed_filter(self, index: int) -> Value:
        id_ = self._program.program[index].id
        key = id_, self._names.of_load(index)
        if key not in self.filters:
            array = self._program.weights.load_fresh(id_).transpose(WEIGHTS_TO_LAST)
            self.filters[key] = self.constant(np.ascontiguousarray(array))
        return self.filters[key]

    def number(self, tensor: Value | ComplexValue) -> Any:  # noqa: ANN401 - a number of Python
        """The element of a constant that has one."""
        if isinstance(tensor, ComplexValue):
            raise Unsupported("a number is complex")
        known = self._elements(tensor.id)
        if known is None or known.size != 1:
            raise Unsupported("a number is only known in a run")
        return known.item()

    def choose(self, condition: Any, branches: Sequence[RunBranch]) -> Any:  # noqa: ANN401 - values
        """The branch of a number or a constant of one element; else both, and a choice."""
        is_value = isinstance(condition, Value)
        known = self._elements(condition.id) if is_value else np.asarray(condition)
        if known is not None and known.size == 1:
            return branches[0 if known.item() else 1]()
        if known is not None or prod(self.builder.type_of(condition.id).shape) != 1:
            raise Unsupported("its condition has several elements")
        start, truth = self.builder.count, self._truth(condition)
        results = []
        for branch, is_true in zip(branches, (True, False), strict=True):
            with self.builder.branch(truth, is_true):
                results.append(_as_list(branch()))
        if any(result is MISSING for side in results for result in side):
            return MISSING
        unknown = first_unknown(self.builder.operations_since(start))
        if unknown is not None:
            raise Unsupported(f"`{unknown}` of a branch can fail where the other is meant")
        chosen = [self._select(truth, *pair) for pair in zip(*results, strict=True)]
        return chosen if len(chosen) > 1 else chosen[0]

    def _truth(self, condition: Value) -> int:
        """The condition without axes; of numbers all but 0 are true, as in a run."""
        flat, type_ = condition.id, self.builder.type_of(condition.id)
        if type_.shape:
            flat = self.builder.add("Reshape", flat, new_shape=())
        if type_.dtype == "bool":
            return flat
        zero = self.builder.constant(np.zeros((), type_.element.dtype), type_.dtype)
        return self.builder.add("Compare", flat, zero, op="Ne")

    def _select(self, condition: int, true: Any, false: Any) -> Value:  # noqa: ANN401 - values
        """One of two tensors, whole."""
        if not isinstance(true, Value) or not isinstance(false, Value):
            raise Unsupported("a branch gives a number, expected tensors")
        types = [self.builder.type_of(value.id) for value in (true, false)]
        if types[0] != types[1]:
            raise Unsupported(f"its branches give {types[0]} and {types[1]}, expected one type")
        return Value(self.builder.add("Where", condition, true.id, false.id))

    def merge(self, branches: Iterator[Any], percent: int) -> Any:  # noqa: ANN401 - never
        """Unsupported: how branches agree is only known in a run."""
        raise Unsupported("Core IR has no branches that are merged")

    def refuse(self, index: int, operands: Sequence[Any], problem: Exception) -> Any:  # noqa: ANN401
        """Write down why, and go on."""
        message = f"{backquote(self._program.program[index].name, 80)}: {problem}"
        self.findings.append(self._program.finding(index, NAC49, message))
        return MISSING

    def _elements(self, value: int) -> Array | None:
        op = self.builder.operation(value)
        data = op.attributes.get("data")
        return data.array if isinstance(data, Literal) else None


def _as_list(result: Any) -> list[Any]:  # noqa: ANN401 - values
    return result if isinstance(result, list) else [result]


def _substitute_values(given: Given, tensors: Sequence[Value]) -> Given:
    """An argument with the values of the module in it."""
    if isinstance(given, Value):
        return tensors[given.id]
    return (
        tuple(_substitute_values(part, tensors) for part in given)
        if isinstance(given, tuple)
        else given
    )


class _Lifter:
    """A program that was walked down; InputError where something in it has no form."""

    def __init__(self, program: LoadedProgram, types: Types, is_literal: bool = False) -> None:
        """`is_literal`: instructions that belong together stay apart."""
        windows = {} if is_literal else windows_of(program.file, program.program)
        self._program = program
        self._domain = ValueDomain(program, types, windows)
        # A value of a module takes no memory, and all of them are kept.
        memory, schedule = Memory(limit=0), keep_all(len(program.program))
        interpreter = Interpreter(program, self._domain, memory, schedule)
        self._outputs = interpreter.outputs()
        self._results = interpreter.results
        if self._domain.findings:
            raise InputError(self._domain.findings)

    def run_module(self) -> Module:
        """The module without names, states or an order of its own."""
        return self._domain.builder.module(*self._output_values())

    def module(self) -> Module:
        """The module with its states and names, in order."""
        domain, around = self._domain, self._program.surroundings
        inputs = {i.instruction: i.name for i in self._program.all_inputs}
        values = self._output_values()
        for index, instruction in enumerate(self._program.program):
            if instruction.kind == "input" and instruction.variant == STATE:
                record = around.states[instruction.id]
                initial = domain.constant(initial_state(self._program, record)).id
                domain.builder.state(inputs[index], values[record.output], initial)
        hidden = {record.output for record in around.states.values() if not record.returned}
        returned = [value for at, value in enumerate(values) if at not in hidden]
        module = domain.builder.module(*returned)
        loaded = (*domain.weights.items(), *domain.filters.items())
        names = around.parameters
        parameters = {value.id: names.with_ties(name) for (_, name), value in loaded}
        nodes = {value: names[0] for value, names in parameters.items()}
        nodes |= domain.calls
        labels = Labels(around.output_names, nodes, parameters=parameters, fixed=around.fixed)
        return arrange(replace(module, labels=labels))

    def result_types(self) -> dict[int, list[TensorType]]:
        """The types of results by instruction; a number has none."""
        types = {}
        for index, result in enumerate(self._results):
            if self._program.program[index].kind == "output":
                continue
            parts = result if isinstance(result, list) else [result]
            values = [part.id for part in parts if isinstance(part, Value)]
            types[index] = [self._domain.builder.type_of(value) for value in values]
        return types

    def _output_values(self) -> list[int]:
        builder = self._domain.builder
        return [
            value.id
            if isinstance(value, Value | ComplexValue)
            else builder.constant(np.asarray(value))
            for value in self._outputs
        ]


def _message_name(name: str) -> str:
    """A name as a message can hold it."""
    return backquote(name).strip("`")
