"""A program as a module of Core IR: every call becomes the operations that the runtime computes.

Core IR has static shapes. A file that says the types of its inputs is lifted as it is; for others
the caller gives them. Numbers that follow from shapes are folded; a call that needs elements which
are only known in a run has no form, nor has a branch that is chosen by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import quoted
from nacre.core.aten.call import AtenCall, Number, Value
from nacre.core.builder import Builder, dtype_name
from nacre.core.module import Labels, Module, TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, Literal
from nacre.nac.program.binding import Given, Ref
from nacre.nac.program.calls import handler_of
from nacre.nac.program.canonical import arranged
from nacre.nac.program.channels import WEIGHTS_TO_LAST, Window, windows_of
from nacre.nac.program.interface import NacInput
from nacre.nac.rules.running import NAC46, NAC49
from nacre.nac.run.dry_run import shape_only_array
from nacre.nac.run.limits import limits_for
from nacre.nac.run.model import NacModel
from nacre.nac.run.program import Operand, Prepared, the_one
from nacre.nac.spec.instructions import BRANCH, LIFTED, PARAMETER, STATE

Types = Mapping[str, TensorType]


def lift(model: NacModel, types: Types | None = None) -> Module:
    """The module of a model; InputError has all that has no form in Core IR.

    `types` gives the types of inputs that the file does not say.
    """
    walk = _Walk(model, {} if types is None else types)
    outputs = walk.outputs()
    if walk.found:
        raise InputError(walk.found)
    return walk.module(outputs)


def lift_run(model: NacModel, types: Types) -> Module:
    """The module of one run: states are inputs, and all operands of the output are outputs."""
    walk = _Walk(model, types)
    outputs = walk.outputs()
    if walk.found:
        raise InputError(walk.found)
    return walk.flat(outputs)


def result_types(model: NacModel, types: Types | None = None) -> dict[int, list[TensorType]]:
    """The types of what every instruction makes; InputError where they are not known."""
    walk = _Walk(model, {} if types is None else types, is_literal=True)
    walk.outputs()
    if walk.found:
        raise InputError(walk.found)
    return walk.made_types()


class _Lost:
    """Stands for what a refused instruction should have made."""


@dataclass(eq=False)
class _Walk:
    """Goes down a program. What is wrong is collected; one report for one cause."""

    model: NacModel
    types: Types
    is_literal: bool = False  # instructions that belong together stay apart
    builder: Builder = field(default_factory=Builder)
    found: list[Diagnostic] = field(default_factory=list)
    _results: dict[int, Any] = field(default_factory=dict)
    _weights: dict[tuple[int, str], Value] = field(default_factory=dict)  # by id and name
    _lifted: dict[int, Any] = field(default_factory=dict)
    # With their channels last.
    _filters: dict[tuple[int, str], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.model
        given = [
            shape_only_array(GRAPH_TYPES[type_.dtype].dtype, type_.shape)
            for type_ in self._input_types()
        ]
        self._room = limits_for(model.file_bytes, given, model.max_bytes).bytes
        self._names = model.surroundings.parameters
        self._windows: dict[int, Window] = {}
        if not self.is_literal:
            self._windows = windows_of(self.model.file, self.model.program)
        self._skipped = {at for window in self._windows.values() for at in window.skipped}

    def _input_types(self) -> Iterator[TensorType]:
        for one in self.model.all_inputs:
            if one.dtype is not None and one.shape is not None:
                yield TensorType(one.dtype, one.shape)
            elif one.name in self.types:
                yield self.types[one.name]

    def outputs(self) -> list[Any]:
        """What the program returns, as values of the module."""
        for wanted in self.model.all_inputs:  # inputs come first in a module
            if self.model.program[wanted.instruction].variant != LIFTED:
                self._results[wanted.instruction] = self._input(wanted)
        made = self._stretch(0, len(self.model.program))
        return made if isinstance(made, list) else [made]

    def _stretch(self, start: int, end: int) -> Any:  # noqa: ANN401 - values of the module
        index = start
        while index < end:
            instruction = self.model.program[index]
            if instruction.kind == "output":
                given = self._returned(index, instruction)
                return given[0] if instruction.variant == BRANCH and len(given) == 1 else given
            if index not in self._results and index not in self._skipped:
                self._results[index] = self._result(index, instruction)
            index = self.model.blocks.behind.get(index, index + 1)
        return []

    def _returned(self, index: int, instruction: Prepared) -> list[Any]:
        given = []
        for ref in instruction.refs:
            try:
                given.append(self._one(ref, "an output"))
            except Unsupported as problem:
                message = f"{quoted(instruction.name, 80)}: {problem}"
                self.found.append(self.model.finding(index, NAC49, message))
                given.append(_Lost())
        return given

    def _one(self, index: int, name: str) -> Any:  # noqa: ANN401 - see _stretch
        return the_one(self._results[index], self.model.program[index], name)

    def _result(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see _stretch
        window = self._windows.get(index)
        refs = instruction.refs if window is None else (window.source, window.weight)
        if any(isinstance(self._results[ref], _Lost) for ref in refs):
            return _Lost()
        try:
            if window is not None:
                return self._convolved(window)
            if instruction.kind == "call":
                return self._called(instruction)
            if instruction.kind == "input":
                return self._loaded(index, instruction)
            return self._branched(index, instruction)
        except (Unsupported, ArithmeticError, LookupError, ValueError, TypeError) as problem:
            message = f"{quoted(instruction.name, 80)}: {problem}"
            self.found.append(self.model.finding(index, NAC49, message))
            return _Lost()

    def _input(self, wanted: NacInput) -> Any:  # noqa: ANN401 - see _stretch
        given = self.types.get(wanted.name)
        dtype, shape = wanted.dtype, wanted.shape
        if given is not None and (dtype is None or shape is None):
            dtype, shape = given.dtype, given.shape
        if dtype is None or shape is None:
            message = f"the file does not say the type of input {quoted(wanted.name)}"
            help_ = f'give it: `types={{"{_short(wanted.name)}": TensorType("f32", (1, 3))}}`'
            made = self.model.finding(wanted.instruction, NAC46, message, help_)
            self.found.append(made)
            return _Lost()
        return Value(self.builder.input(wanted.name, dtype, shape))

    def _loaded(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see _stretch
        if instruction.variant == PARAMETER:
            key = instruction.id, self._names.of_load(index)
            if key not in self._weights:
                array = self.model.weights.fresh(instruction.id)
                self._weights[key] = self._constant(array)
            return self._weights[key]
        if instruction.variant == STATE:
            raise Unsupported("the state has no name")
        if instruction.id not in self._lifted:
            value = self.model.lifted(instruction.id)
            made = self._constant(value) if isinstance(value, np.ndarray) else value
            self._lifted[instruction.id] = made
        return self._lifted[instruction.id]

    def _constant(self, array: Array) -> Value:
        if 0 in array.shape:
            raise Unsupported("it has no elements; Core IR has no empty tensors")
        return Value(self.builder.constant(array, dtype_name(array.dtype), copy=False))

    def _branched(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see _stretch
        if instruction.kind == "converge":
            raise Unsupported("Core IR has no branches that are merged")
        chosen = self._results[instruction.refs[0]]
        known = self._elements(chosen.id) if isinstance(chosen, Value) else np.asarray(chosen)
        if known is None or known.size != 1:
            raise Unsupported("which branch is taken is only known in a run")
        return self._stretch(*self.model.blocks.branches[index][0 if known.item() else 1])

    def _called(self, instruction: Prepared) -> Any:  # noqa: ANN401 - see _stretch
        site = instruction.site
        assert site is not None
        computed = {o.name: self._gathered(o) for o in instruction.operands}
        both = {**site.constants, **computed}
        ordered = {name: both[name] for name in self.model.order(site.call, list(both))}
        handler = handler_of(site.call)
        made = handler(AtenCall(site.call, ordered, self.builder, self._elements, self._room))
        if isinstance(made, Number):
            return made.number
        return Value(made) if isinstance(made, int) else [Value(value) for value in made]

    def _convolved(self, window: Window) -> Value:
        """A `Conv2d` of ours."""
        weight = self._results[window.weight]
        if window.is_stored:
            weight = self._filter(window.weight)
        operands = (self._results[window.source].id, weight.id)
        return Value(self.builder.add("Conv2d", *operands, **window.attributes))

    def _filter(self, index: int) -> Value:
        id_ = self.model.program[index].id
        key = id_, self._names.of_load(index)
        if key not in self._filters:
            array = self.model.weights.fresh(id_).transpose(WEIGHTS_TO_LAST)
            self._filters[key] = self._constant(np.ascontiguousarray(array))
        return self._filters[key]

    def _gathered(self, operand: Operand) -> Given:
        source = operand.source
        if isinstance(source, Ref):
            return self._taken(source.index, operand)
        return tuple(
            self._taken(part.index, operand) if isinstance(part, Ref) else part for part in source
        )

    def _taken(self, index: int, operand: Operand) -> Given:
        found, kind = self._results[index], operand.kind
        if isinstance(found, list) and kind == "a":
            return tuple(found)
        found = self._one(index, f"`{operand.name}`")
        if not isinstance(found, Value) or kind in "Ta":
            return found
        known = self._elements(found.id)
        if known is None or known.size != 1:
            raise Unsupported("a number is only known in a run")
        return known.item()

    def _elements(self, value: int) -> Array | None:
        op = self.builder.operation(value)
        data = op.attributes.get("data")
        return data.array if isinstance(data, Literal) else None

    def flat(self, outputs: Sequence[Any]) -> Module:
        """The module without names, states or an order of its own."""
        return self.builder.module(*[self._output(value) for value in outputs])

    def module(self, outputs: Sequence[Any]) -> Module:
        """The module, when every instruction is in."""
        records = self.model.surroundings.states
        inputs = {i.instruction: i.name for i in self.model.all_inputs}
        values = [self._output(value) for value in outputs]
        session = self.model.session()
        for index, instruction in enumerate(self.model.program):
            if instruction.kind == "input" and instruction.variant == STATE:
                record = records[instruction.id]
                initial = self._constant(session.initial(record)).id
                self.builder.state(inputs[index], values[record.output], initial)
        hidden = {record.output for record in records.values() if not record.returned}
        returned = [value for place, value in enumerate(values) if place not in hidden]
        made = self.builder.module(*returned)
        loaded = (*self._weights.items(), *self._filters.items())
        parameters = {value.id: self._names.with_ties(name) for (_, name), value in loaded}
        nodes = {value: names[0] for value, names in parameters.items()}
        output_names = self.model.surroundings.output_names
        labels = Labels(output_names, nodes, parameters=parameters)
        return arranged(replace(made, labels=labels))

    def made_types(self) -> dict[int, list[TensorType]]:
        """The types of results by instruction; a number has none."""
        found = {}
        for index, result in self._results.items():
            parts = result if isinstance(result, list) else [result]
            values = [part.id for part in parts if isinstance(part, Value)]
            found[index] = [self.builder.type_of(value) for value in values]
        return found

    def _output(self, value: Any) -> int:  # noqa: ANN401 - see _stretch
        if isinstance(value, Value):
            return value.id
        return self.builder.constant(np.asarray(value))


def _short(name: str) -> str:
    """A name as a message can hold it."""
    return quoted(name).strip("`")
