"""A module as an ONNX model in a file.

Inputs and outputs keep their names and their order, parameters their names. A state stays an
input, whose default is what the state starts from, and its next value is an output behind the
others; the property `nacre.state` of the model lists them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.lazy import load_all
from nacre.core.constants import constant_array
from nacre.core.evaluation.run import operation_span
from nacre.core.module import CoreOperation, Module, State
from nacre.core.onnx.reading.files import require_onnx
from nacre.core.onnx_export.graph import Graph, Node, Tensor, Value
from nacre.core.onnx_export.model import MOST_INLINE, Interface, StateNames, write_model
from nacre.core.onnx_export.writer import FORMS, OnnxWriter
from nacre.core.rules.onnx_export import EXP01
from nacre.core.unsupported import Unsupported
from nacre.core.verify import MAX_FINDINGS, verify


def to_onnx(
    module: Module, path: str | os.PathLike[str], *, most_inline: int = MOST_INLINE
) -> None:
    """Write a module as an ONNX model, the same bytes for the same module.

    Where constants have more than `most_inline` bytes together, the large ones go to a file beside
    the model, whose name has `.data` behind it. InputError has the findings of the verifier, or
    every operation that has no form (EXP01); nothing is written then.
    """
    require_onnx()
    load_all("nacre.core.onnx_export.forms")
    findings = verify(module, "nacre-1")
    if has_errors(findings):
        raise InputError(findings)
    writing = _Exporter(module)
    for at, op in enumerate(module.operations):
        writing.take(at, op)
    if writing.findings:
        raise InputError(writing.findings[:MAX_FINDINGS])
    interface = writing.interface()
    write_model(Path(path), writing.graph, interface, most_inline)


class _Exporter:
    """The graph of a module on its way, and what was in the way of some operations."""

    def __init__(self, module: Module) -> None:
        self.graph = Graph()
        self.findings: list[Diagnostic] = []
        self._module = module
        self._labels: Mapping[int, str] = module.labels.nodes if module.labels else {}
        self._parameters = module.labels.parameters if module.labels else {}
        self._values: dict[int, Value] = {}
        # Names that callers use come first: what is inside gives way.
        for op in module.inputs:
            name = self.graph.name(str(op.attributes["name"]))
            self._values[op.value_id] = Value(name, op.type)
        names = [*module.output_names, *(f"{state.name}.next" for state in module.states)]
        ids = [*module.outputs, *(state.output for state in module.states)]
        self._outputs = [(self.graph.name(n), value) for n, value in zip(names, ids, strict=True)]
        # The first output of a value is that value itself, the others are copies.
        self._names = {value: name for name, value in reversed(self._outputs)}
        self._used = {*ids, *(operand for op in module.operations for operand in op.operands)}

    def take(self, at: int, op: CoreOperation) -> None:
        """One operation; where it has no form, the ones after it are looked at all the same."""
        if op.opcode == "Input":
            return
        array = constant_array(op)
        if array is not None:
            # One may be the start of a state and nothing else.
            if op.value_id in self._used:
                # Parameters keep their names: equal ones are different parameters.
                name, *_ = self._parameters.get(op.value_id) or (self._label(op),)
                self._values[op.value_id] = self.graph.tensor(name, array, op.type.dtype)
            return
        first = len(self.graph.nodes)
        writer = OnnxWriter(op, [self._values[operand] for operand in op.operands], self.graph)
        try:
            self._values[op.value_id] = self._named(op, FORMS.registered[op.opcode](writer), first)
        except Unsupported as reason:
            message = f"`{op.opcode}` %{op.value_id} cannot be written in ONNX: {reason}"
            self.findings.append(EXP01.at(operation_span(self._module, at), message))
            self._values[op.value_id] = Value(f"%{op.value_id}", op.type)

    def _label(self, op: CoreOperation) -> str:
        return self._labels.get(op.value_id) or f"%{op.value_id}"

    def _named(self, op: CoreOperation, value: Value, first: int) -> Value:
        """A result of the nodes since the first one under the name of the module's value."""
        nodes = self.graph.nodes
        at = next((i for i in range(first, len(nodes)) if value.name in nodes[i].results), None)
        if at is None:
            return value  # an operand, or a constant
        name = self._names.get(op.value_id) or self.graph.name(self._label(op))
        last = nodes[at]
        results = tuple(name if result == value.name else result for result in last.results)
        nodes[at] = Node(last.operation, last.operands, results, last.attributes, self._label(op))
        return Value(name, value.type)

    def interface(self) -> Interface:
        """Inputs, outputs and states, when every operation is in."""
        outputs = [self._output(name, self._values[value]) for name, value in self._outputs]
        inputs = {str(op.attributes["name"]): self._values[op.value_id]
                  for op in self._module.inputs}  # fmt: skip
        count = len(self._module.outputs)
        states = [
            self._state(state, inputs[state.name], following)
            for state, following in zip(self._module.states, outputs[count:], strict=True)
        ]
        names = [value.name for value in inputs.values()]
        self.graph.prune([value.name for value in outputs], names)
        return Interface(list(inputs.values()), outputs, states)

    def _output(self, name: str, source: Value) -> Value:
        """An output; one that is an input, a constant or another output is copied."""
        if source.name != name:
            self.graph.copy(source, name)
        return Value(name, source.type)

    def _state(self, state: State, taken: Value, following: Value) -> StateNames:
        array = constant_array(self._module.by_id[state.initial])
        assert array is not None  # the verifier says so
        # An initialiser with the name of an input is its default.
        self.graph.tensors.append(Tensor(taken.name, taken.dtype, array))
        return StateNames(taken.name, following.name)
