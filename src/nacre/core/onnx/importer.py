"""The walk over a graph: nodes on known tensors are computed, the others become operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.suggest import did_you_mean
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.onnx.files import parsed_model, read_model, tensor_array
from nacre.core.onnx.findings import NoForm, Unsound, finding
from nacre.core.onnx.folding import can_fold, folded
from nacre.core.onnx.handlers import handlers
from nacre.core.onnx.interface import input_types
from nacre.core.onnx.nodes import Node, node_of, opsets_of
from nacre.core.onnx.use import Tensor, Use
from nacre.core.rules.onnx import ONX01, ONX04
from nacre.core.values import Array


def from_onnx(
    source: str | Path | bytes,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    constants: Mapping[str, Array] | None = None,
) -> Module:
    """An ONNX model as a module of `nacre-1`; InputError lists all that stands in the way.

    `shapes` gives sizes to inputs whose dimensions the model leaves open; `constants` binds inputs
    to values for good, such as one that holds a shape.
    """
    if isinstance(source, bytes):
        model, name, folder = parsed_model(source, "<model>"), "<model>", None
    else:
        path = Path(source)
        model, name, folder = read_model(path), str(path), path.parent
    walk = Walk(name, folder, opsets_of(model.opset_import))
    walk.tensors.update({n: np.asarray(a) for n, a in (constants or {}).items()})
    walk.bring_in(model.graph, shapes or {})
    if walk.found:
        raise InputError(walk.found)
    return walk.module(model.graph)


class Lost:
    """Stands for a tensor that a refused node should have made."""


@dataclass(eq=False)
class Walk:
    """Goes down a graph. What is wrong is collected; one report for one cause."""

    name: str
    folder: Path | None
    opsets: Mapping[str, int]
    builder: Builder = field(default_factory=Builder)
    tensors: dict[str, Tensor | Lost] = field(default_factory=dict)
    found: list[Diagnostic] = field(default_factory=list)

    def bring_in(self, graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:  # noqa: ANN401
        """Initialisers, inputs and nodes."""
        self._initialisers(graph.initializer)
        declared = [i for i in graph.input if i.name not in self.tensors]
        types, problems = input_types(declared, shapes, self.name)
        self.found += problems
        if problems:
            return
        for name, type_ in types.items():
            self.tensors[name] = self.builder.input(name, type_.dtype, type_.shape)
        self.nodes(graph.node)

    def _initialisers(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            try:
                self.tensors[tensor.name] = tensor_array(tensor, self.folder, self.name)
            except Unsound as problem:
                self._unsound(str(problem))
                self.tensors[tensor.name] = Lost()

    def nodes(self, protos: Iterable[Any]) -> None:
        """Nodes in their order, which is that of their definitions."""
        for proto in protos:
            try:
                node = node_of(proto, self.opsets, self._read)
            except Unsound as problem:
                self._unsound(f"node `{proto.op_type}`: {problem}")
                self._lose(proto.output)
                continue
            self._take(node)

    def _read(self, tensor: Any) -> Array:  # noqa: ANN401 - onnx.TensorProto
        return tensor_array(tensor, self.folder, self.name)

    def _take(self, node: Node) -> None:
        operands: list[Tensor | None] = []
        for name in node.inputs:
            tensor = self.tensors.get(name) if name else None
            if name and tensor is None:
                self._unsound(f"{node.title} uses `{name}`, which nothing before it defines")
                tensor = Lost()
            if isinstance(tensor, Lost):
                self._lose(node.outputs)
                return
            operands.append(tensor)
        try:
            self._define(node, self._made(node, operands))
        except NoForm as problem:
            self._refuse(node, operands, problem)
        except Unsound as problem:
            self._unsound(f"{node.title}: {problem}")
            self._lose(node.outputs)

    def _made(self, node: Node, operands: Sequence[Tensor | None]) -> Sequence[Tensor]:
        if can_fold(node, operands):
            arrays = [o if isinstance(o, np.ndarray) else None for o in operands]
            return folded(node, arrays)
        handler = handlers().get(node.key)
        if handler is None:
            hint = did_you_mean(node.key, handlers())
            raise NoForm("the operation is not known", hint)
        made = handler(Use(node, operands, self.builder))
        return [made] if isinstance(made, int | np.ndarray) else made

    def _define(self, node: Node, tensors: Sequence[Tensor]) -> None:
        for name, tensor in zip(node.outputs, tensors, strict=False):
            if not name:
                continue
            if name in self.tensors:
                self._unsound(f"{node.title} defines `{name}`, which is defined already")
            self.tensors[name] = tensor
        missing = [name for name in node.outputs[len(tensors) :] if name]
        if missing:
            raise NoForm(f"its output `{missing[0]}` is not supported")

    def _lose(self, names: Iterable[str]) -> None:
        for name in names:
            self.tensors.setdefault(name, Lost())

    def _refuse(self, node: Node, operands: Sequence[Tensor | None], problem: NoForm) -> None:
        shapes = ", ".join(_described(o, self.builder) for o in operands)
        message = f"{node.title} of ({shapes}), opset {node.opset}: {problem.reason}"
        self.found.append(finding(ONX01, self.name, message, problem.rewrite))
        self._lose(node.outputs)

    def _unsound(self, message: str) -> None:
        self.found.append(finding(ONX04, self.name, message))

    def module(self, graph: Any) -> Module:  # noqa: ANN401 - onnx.GraphProto
        """The module, when every node is in."""
        outputs = []
        for output in graph.output:
            tensor = self.tensors.get(output.name)
            if tensor is None or isinstance(tensor, Lost):
                self._unsound(f"output `{output.name}` is not defined")
                continue
            use = Use(Node("output", "", output.name, (), (), {}, 0), [tensor], self.builder)
            try:
                outputs.append(use.value(0))
            except NoForm as problem:
                self._unsound(f"output `{output.name}`: {problem.reason}")
        if self.found:
            raise InputError(self.found)
        return self.builder.module(*outputs)


def _described(operand: Tensor | None, builder: Builder) -> str:
    if operand is None:
        return "-"
    if isinstance(operand, int):
        type_ = builder.type_of(operand)
        return f"{type_.dtype}{list(type_.shape)}"
    return f"{operand.dtype}{list(operand.shape)}"
