"""The walk over a graph: nodes on known tensors are computed, the others become operations."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.suggest import did_you_mean
from nacre.core.module import Labels, Module
from nacre.core.onnx.control import CONTROL
from nacre.core.onnx.files import parsed_model, read_model, tensor_array
from nacre.core.onnx.findings import NoForm, Unsound, finding
from nacre.core.onnx.folding import can_fold, folded
from nacre.core.onnx.functions import Function, Key, called, definition, key_of, local_functions
from nacre.core.onnx.handlers import handlers
from nacre.core.onnx.interface import bound_inputs, input_types, type_only_inputs
from nacre.core.onnx.model_builder import ModelBuilder
from nacre.core.onnx.nodes import Node, node_of, opsets_of
from nacre.core.onnx.recurrent import RECURRENT
from nacre.core.onnx.schemas import opset_problem, require_schema
from nacre.core.onnx.scopes import MOST_DEPTH, Allowance, Lost, Reported, Spent
from nacre.core.onnx.use import Tensor, Use
from nacre.core.rules.onnx import ONX01, ONX04
from nacre.core.values import Array


def from_onnx(
    source: str | Path | bytes,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    constants: Mapping[str, Array] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Module:
    """An ONNX model as a module of `nacre-1`; InputError lists all that stands in the way.

    `shapes` gives sizes to inputs whose dimensions the model leaves open; `constants` binds inputs
    to values for good, such as one that holds a shape. `progress` is told how many nodes of how
    many are in.
    """
    walk, graph = walked(source, shapes, constants, progress)
    if walk.found:
        raise InputError(walk.found)
    return walk.module(graph)


def walked(
    source: str | Path | bytes,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Array] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Walk, Any]:
    """The walk over a model's graph, whatever it found, and the graph."""
    if isinstance(source, bytes):
        model, name, folder = parsed_model(source, "<model>"), "<model>", None
    else:
        path = Path(source)
        model, name, folder = read_model(path), str(path), path.parent
    functions, twice = local_functions(model.functions)
    walk = Walk(name, folder, opsets_of(model.opset_import), functions, progress)
    for repeated in twice:
        walk.unsound(f"the function `{repeated}` is defined twice")
    wrong = opset_problem(walk.opsets, model.graph.node)
    if wrong is not None:
        walk.unsound(wrong)
        return walk, model.graph
    if not model.graph.output:
        walk.unsound("the model has no output")
    bound, problems = bound_inputs(model.graph.input, constants or {}, name)
    walk.tensors.update(bound)
    walk.found += problems
    walk.bring_in(model.graph, shapes or {})
    return walk, model.graph


# What a handler may run into where attributes are of another kind, or shapes of another rank.
_MISFITS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


@dataclass(frozen=True)
class Refusal:
    """A node without a form, and why."""

    node: Node
    reason: str


@dataclass(eq=False)
class Walk:
    """Goes down a graph. What is wrong is collected; one report for one cause."""

    name: str
    folder: Path | None
    opsets: Mapping[str, int]
    functions: Mapping[Key, Any]
    progress: Callable[[int, int], None] | None = None
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    # None is an operand of a function that its call leaves out.
    tensors: ChainMap[str, Tensor | Lost | None] = field(default_factory=ChainMap)
    found: list[Diagnostic] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)  # nodes by the values that they became
    allowance: Allowance = field(default_factory=Allowance)
    holders: tuple[Node, ...] = ()  # the nodes around this graph, outermost first

    def bring_in(self, graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:  # noqa: ANN401
        """Initialisers, inputs and nodes."""
        self.initialisers(graph)
        declared = [i for i in graph.input if i.name not in self.tensors]
        types, problems = input_types(declared, shapes, self.name, type_only_inputs(graph))
        self.found += problems
        if problems:
            return
        for name, type_ in types.items():
            try:
                self.tensors[name] = self.builder.input(name, type_.dtype, type_.shape)
            except InputError as error:
                self.unsound(f"input `{name}`: {error.diagnostics[0].message}")
                self.tensors[name] = Lost()
        self.nodes(graph.node)

    def initialisers(self, graph: Any) -> None:  # noqa: ANN401 - onnx.GraphProto
        """The tensors that a graph holds."""
        for tensor in graph.initializer:
            try:
                self.tensors[tensor.name] = tensor_array(tensor, self.folder, self.name)
            except Unsound as problem:
                self.unsound(str(problem))
                self.tensors[tensor.name] = Lost()
            except InputError as error:
                self.found += error.diagnostics
                self.tensors[tensor.name] = Lost()
        for sparse in graph.sparse_initializer:
            message = f"initialiser `{sparse.values.name}` is sparse, expected a dense one"
            self.found.append(finding(ONX01, self.name, message))
            self.tensors[sparse.values.name] = Lost()

    def nodes(self, protos: Sequence[Any]) -> None:
        """Nodes in their order, which is that of their definitions."""
        total = len(protos)
        for number, proto in enumerate(protos):
            if self.holders:
                self.allowance.take()
            elif self.progress is not None:
                self.progress(number, total)
            try:
                require_schema(proto, self.opsets)
                node = node_of(proto, self.opsets, self._read)
            except Unsound as problem:
                named = f" `{proto.name}`" if proto.name else ""
                self.unsound(f"`{proto.op_type}`{named}: {problem}")
                self._lose(proto.output)
            except InputError as error:  # weights beside the model
                self.found += error.diagnostics
                self._lose(proto.output)
            else:
                self._take(node, proto)

    def _read(self, tensor: Any) -> Array:  # noqa: ANN401 - onnx.TensorProto
        return tensor_array(tensor, self.folder, self.name)

    def _take(self, node: Node, proto: Any) -> None:  # noqa: ANN401 - onnx.NodeProto
        operands = self._operands(node)
        if operands is None:
            self._lose(node.outputs)
            return
        before = self.builder.count
        try:
            self._define(node, self._made(node, proto, operands))
            for op in self.builder.since(before):
                self.labels.setdefault(op.value_id, node.name or node.key)
        except Reported:
            self._lose(node.outputs)
        except NoForm as problem:
            if isinstance(problem, Spent) and self.holders:
                raise  # the outermost node is refused, once
            self._refuse(node, operands, problem)
        except InputError as error:  # from the builder
            told = "; ".join(d.message for d in error.diagnostics)
            self._refuse(node, operands, NoForm(told))
        except Unsound as problem:
            self.unsound(f"{node.title}: {problem}")
            self._lose(node.outputs)
        except _MISFITS as error:
            self.unsound(f"{node.title}: attributes or operands do not fit: {str(error)[:80]}")
            self._lose(node.outputs)

    def _operands(self, node: Node) -> list[Tensor | None] | None:
        """The operands of a node; None where one was lost, which has been reported."""
        operands: list[Tensor | None] = []
        for name in node.inputs:
            if name and name not in self.tensors:
                self.unsound(f"{node.title} uses `{name}`, which nothing before it defines")
                return None
            tensor = self.tensors[name] if name else None
            if isinstance(tensor, Lost):
                return None
            operands.append(tensor)
        return operands

    def _made(
        self,
        node: Node,
        proto: Any,  # noqa: ANN401 - onnx.NodeProto
        operands: Sequence[Tensor | None],
    ) -> Sequence[Tensor]:
        if any(attribute.ref_attr_name for attribute in proto.attribute):
            raise Unsound("an attribute refers to one of a function, but there is none around")
        local = self.functions.get(key_of(proto))
        if local is not None:
            return self._call(node, called(local, proto.attribute), operands)
        use = Use(node, operands, self.builder)
        if node.key in CONTROL:
            return CONTROL[node.key](use, self._inside(node))
        if node.key not in RECURRENT and can_fold(node, operands):
            arrays = [o if isinstance(o, np.ndarray) else None for o in operands]
            return folded(node, arrays)
        handler = handlers().get(node.key)
        if handler is None:
            return self._by_definition(node, proto, use)
        made = handler(use)
        return [made] if isinstance(made, int | np.ndarray) else made

    def _by_definition(self, node: Node, proto: Any, use: Use) -> Sequence[Tensor]:  # noqa: ANN401
        """An operation without a handler: ONNX may define it by others."""
        operands = [use.tensor(i) if use.has(i) else None for i in range(len(node.inputs))]
        types = [None if o is None else use.type_of(o) for o in operands]
        function = definition(node, proto, types)
        if function is None:
            raise NoForm("the operation is not known", did_you_mean(node.key, handlers()))
        return self._call(node, function, operands)

    def _inside(self, node: Node) -> Walk:
        if len(self.holders) == MOST_DEPTH:
            raise Spent(f"graphs and functions are nested deeper than {MOST_DEPTH} levels")
        return replace(self, holders=(*self.holders, node))

    def nested(self, graph: Any, given: Sequence[Tensor]) -> list[Tensor]:  # noqa: ANN401
        """The outputs of a graph that sees the tensors around it; Reported where it has none."""
        if len(graph.input) != len(given):
            raise Unsound(f"a graph has {len(graph.input)} inputs, expected {len(given)}")
        walk = replace(self, tensors=self.tensors.new_child())
        problems = len(self.found)
        walk.initialisers(graph)
        walk.tensors.update(zip((value.name for value in graph.input), given, strict=True))
        walk.nodes(graph.node)
        return walk.results([value.name for value in graph.output], problems)

    def _call(
        self, node: Node, function: Function, operands: Sequence[Tensor | None]
    ) -> list[Tensor]:
        """The outputs of a function, which sees its operands only."""
        names = function.inputs
        if len(operands) > len(names):
            raise NoForm(f"it has {len(operands)} operands, its function takes {len(names)}")
        given = [*operands, *([None] * (len(names) - len(operands)))]
        tensors: ChainMap[str, Tensor | Lost | None] = ChainMap(
            dict(zip(names, given, strict=True))
        )
        opsets = {
            **self.opsets,
            **function.opsets,
        }  # those of onnx itself name their own domain only
        walk = replace(self._inside(node), tensors=tensors, opsets=opsets)
        problems = len(self.found)
        walk.nodes(function.nodes)
        return walk.results(function.outputs[: len(node.outputs)], problems)

    def results(self, names: Iterable[str], problems: int) -> list[Tensor]:
        """Tensors by name, where there are no more problems than there were."""
        found: list[Tensor] = []
        for name in names:
            tensor = self.tensors.get(name)
            if isinstance(tensor, Lost) or len(self.found) > problems:
                raise Reported
            if tensor is None:
                raise Unsound(f"the output `{name}` of what it holds is not defined")
            found.append(tensor)
        return found

    def _define(self, node: Node, tensors: Sequence[Tensor]) -> None:
        for name, tensor in zip(node.outputs, tensors, strict=False):
            if not name:
                continue
            if name in self.tensors.maps[0]:
                self.unsound(f"{node.title} defines `{name}`, which is defined already")
            self.tensors[name] = tensor
        missing = [name for name in node.outputs[len(tensors) :] if name]
        if missing:
            raise NoForm(f"its output `{missing[0]}` is not supported")

    def _lose(self, names: Iterable[str]) -> None:
        for name in names:
            self.tensors.setdefault(name, Lost())

    def _refuse(self, node: Node, operands: Sequence[Tensor | None], problem: NoForm) -> None:
        shapes = ", ".join(_described(o, self.builder) for o in operands)
        where = f"opset {node.opset}{self._place()}"
        message = f"{node.title} of ({shapes}), {where}: {problem.reason}"
        self.found.append(finding(ONX01, self.name, message, problem.rewrite))
        self.refused.append(Refusal(node, problem.reason))
        self._lose(node.outputs)

    def unsound(self, message: str) -> None:
        """Report what breaks a rule of ONNX."""
        self.found.append(finding(ONX04, self.name, f"{message}{self._place()}"))

    def _place(self) -> str:
        return "".join(f", in {holder.title}" for holder in reversed(self.holders))

    def module(self, graph: Any) -> Module:  # noqa: ANN401 - onnx.GraphProto
        """The module, when every node is in."""
        outputs = []
        for output in graph.output:
            tensor = self.tensors.get(output.name)
            if tensor is None or isinstance(tensor, Lost):
                self.unsound(f"output `{output.name}` is not defined")
                continue
            use = Use(Node("output", "", output.name, (), (), {}, 0), [tensor], self.builder)
            try:
                outputs.append(use.value(0))
            except NoForm as problem:
                self.unsound(f"output `{output.name}`: {problem.reason}")
        if self.found:
            raise InputError(self.found)
        labels = Labels(tuple(output.name for output in graph.output), self.labels)
        return replace(self.builder.module(*outputs), labels=labels)


def _described(operand: Tensor | None, builder: ModelBuilder) -> str:
    if operand is None:
        return "-"
    if isinstance(operand, int):
        type_ = builder.type_of(operand)
        return f"{type_.dtype}{list(type_.shape)}"
    return f"{operand.dtype}{list(operand.shape)}"
