"""The walk over a graph: nodes on known tensors are computed, the others become operations."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.module import TensorType
from nacre.core.onnx.control.graphs import CONTROL
from nacre.core.onnx.control.scopes import (
    MOST_DEPTH,
    Allowance,
    AlreadyReported,
    DataDependentLoop,
    LostTensor,
    TooManyNodes,
)
from nacre.core.onnx.findings import CHECK, MISFITTING, SMALLER, Unsound, finding
from nacre.core.onnx.folding.known_operands import require_indices, require_lists
from nacre.core.onnx.folding.reference import LAID_OUT, MEASURES, can_fold, fold
from nacre.core.onnx.functions import (
    Function,
    Key,
    bind_attributes,
    flattened_node_count,
    function_definition,
    key_of,
)
from nacre.core.onnx.handlers.catalogue import handlers
from nacre.core.onnx.handlers.refusals import FOLDED_ONLY, LAYOUT_HELP, LAYOUTS
from nacre.core.onnx.interface import input_types, type_only_inputs
from nacre.core.onnx.layouts import is_computed
from nacre.core.onnx.onnx_node import OnnxNode, Tensor, describe_error
from nacre.core.onnx.opaque_nodes import Declared, declared_types, keep_node
from nacre.core.onnx.reading.files import tensor_array
from nacre.core.onnx.reading.nodes import NO_NODE, Node, node_of
from nacre.core.onnx.reading.schemas import require_schema, require_types
from nacre.core.onnx.reading.sparse import densify
from nacre.core.onnx.reading.wire import DetachedBytes
from nacre.core.onnx.recurrent.layers import RECURRENT
from nacre.core.onnx.reporting import MOST_HINTS, RENAME, Reports, find_repeated, require_distinct
from nacre.core.rules.onnx import ONX01, ONX04, ONX06
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_UNKNOWN = "add a function of this name to the model, written with operations of ONNX"
# What a handler may run into where attributes are of another kind, or shapes of another rank.
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(eq=False)
class Walk(Reports):
    """Goes down a graph. What is wrong is collected."""

    folder: Path | None
    opsets: Mapping[str, int]
    functions: Mapping[Key, Any]
    endless: frozenset[Key]  # functions that call themselves, which has been reported
    detached: Mapping[bytes, DetachedBytes]  # bytes that were read apart, by what stands for them
    progress: Callable[[int, int], None] | None = None
    bound: frozenset[str] = frozenset()  # inputs that were given values
    # Inputs, and the outputs that feed them.
    states: Mapping[str, str] = field(default_factory=dict)
    initial: dict[str, Array] = field(default_factory=dict)  # what states start from
    labels: dict[int, str] = field(default_factory=dict)  # nodes by the values that they became
    allowance: Allowance = field(default_factory=Allowance)
    is_run: bool = True  # by every run: what only some come to may fail
    keep_unknown: bool = False  # operations that nothing knows stay by their names
    declared: Declared = field(default_factory=dict)  # what the graph says of its tensors

    def import_graph(self, graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:  # noqa: ANN401
        """Initialisers, inputs and nodes."""
        self.initialisers(graph)
        for name in self.states:
            start = self.tensors.pop(name)
            if isinstance(start, np.ndarray):  # else it is lost, which has been reported
                self.initial[name] = start
        for name in find_repeated(value.name for value in graph.input):
            self.unsound(f"input {backquote(name)} is defined twice", RENAME)
        declared = [i for i in graph.input if i.name not in self.tensors]
        held = [name for name in shapes if name in self.tensors]
        for name in held:
            message = f"{backquote(name)} has a value already, a shape was given for it"
            self.findings.append(finding(ONX06, self.name, message, "leave the shape out"))
        wanted = {name: shape for name, shape in shapes.items() if name not in held}
        types, problems = input_types(declared, wanted, self.name, type_only_inputs(graph))
        self.findings += problems
        if problems:
            return
        for name, type_ in types.items():
            try:
                self.tensors[name] = self.builder.input(name, type_.dtype, type_.shape)
            except InputError as error:
                (first, *_) = error.diagnostics
                is_size = first.code == "MOD12"  # else the name is none, or taken
                rule, help_ = (ONX01, "give it another shape") if is_size else (ONX04, RENAME)
                message = f"input {backquote(name)}: {describe_error(error)}"
                self.findings.append(finding(rule, self.name, message, help_))
                self.tensors[name] = LostTensor()
        self.declared = declared_types(graph, types)
        self.nodes(graph.node)

    def initialisers(self, graph: Any) -> None:  # noqa: ANN401 - onnx.GraphProto
        """The tensors that a graph holds."""
        seen: set[str] = set()
        named = [(tensor.name, tensor) for tensor in graph.initializer]
        named += [(sparse.values.name, sparse) for sparse in graph.sparse_initializer]
        for name, tensor in named:
            if name in seen:
                self.unsound(f"initialiser {backquote(name)} is defined twice", RENAME)
            seen.add(name)
            if name in self.bound:
                continue  # a value stands in the place of this default
            self.tensors[name] = LostTensor()
            try:
                self.tensors[name] = array = self._read(tensor)
                self.builder.origins.add_array(array, (name,))
            except Unsound as problem:
                self.unsound(str(problem), problem.help)
            except InputError as error:
                self.findings += error.diagnostics

    def nodes(self, protos: Sequence[Any]) -> None:
        """Nodes in their order, which is that of their definitions."""
        total, self.protos = len(protos), protos
        for number, proto in enumerate(protos):
            if self.holders:
                self.allowance.take()
            elif self.progress is not None:
                self.progress(number, total)
            try:
                require_schema(proto, self.opsets)
                node = node_of(proto, self.opsets, self._read)
            except Unsound as problem:
                named = f" {backquote(proto.name)}" if proto.name else ""
                self.unsound(f"{backquote(proto.op_type)}{named}: {problem}", problem.help)
                self.mark_lost(proto.output)
            except InputError as error:  # weights beside the model
                self.findings += error.diagnostics
                self.mark_lost(proto.output)
            else:
                self._import_node(node, proto)

    def _read(self, tensor: Any) -> Array:  # noqa: ANN401 - a TensorProto, a sparse one
        if hasattr(tensor, "indices"):
            return densify(tensor, self.folder, self.name)
        return tensor_array(tensor, self.folder, self.name, self.detached)

    def _import_node(self, node: Node, proto: Any) -> None:  # noqa: ANN401 - onnx.NodeProto
        operands = self._operands(node)
        if operands is None:
            self.mark_lost(node.outputs)
            return
        before, problems = self.builder.count, len(self.findings)
        try:
            self._define(node, self._node_results(node, proto, operands))
            for op in self.builder.operations_since(before):
                self.labels.setdefault(op.value_id, node.name or _default_name(node))
        except AlreadyReported:
            self.mark_lost(node.outputs)
        except Unsupported as problem:
            if isinstance(problem, TooManyNodes) and self.holders:
                raise  # the outermost node is refused, once
            first = problems if isinstance(problem, DataDependentLoop) else None
            self.refuse(node, operands, problem, first)
        except InputError as error:  # from the builder
            self.refuse(node, operands, Unsupported(describe_error(error), SMALLER))
        except Unsound as problem:
            self.report_unsound(node, operands, str(problem), problem.help)
        except MemoryError:
            self.refuse(node, operands, Unsupported("it takes more memory than there is", SMALLER))
        except _MISFITS:
            given = ", ".join(f"`{name}`" for name in node.attributes)
            which = f"operands and attributes ({given})" if given else "operands"
            self.report_unsound(node, operands, f"its {which} do not fit each other", CHECK)

    def _operands(self, node: Node) -> list[Tensor | None] | None:
        """The operands of a node; None where one was lost, which has been reported."""
        operands: list[Tensor | None] = []
        for name in node.inputs:
            if name and name not in self.tensors:
                message = f"{node.title} uses {backquote(name)}, which nothing before it defines"
                self.unsound(message, self.name_hint(name))
                return None
            tensor = self.tensors[name] if name else None
            if isinstance(tensor, LostTensor):
                return None
            operands.append(tensor)
        return operands

    def _node_results(
        self,
        node: Node,
        proto: Any,  # noqa: ANN401 - onnx.NodeProto
        operands: Sequence[Tensor | None],
    ) -> Sequence[Tensor]:
        if any(attribute.ref_attr_name for attribute in proto.attribute):
            message = "an attribute refers to one of a function, but there is none around"
            raise Unsound(message, "give the attribute a value of its own")
        key = key_of(proto)
        if key in self.endless:
            raise AlreadyReported
        local = self.functions.get(key)
        if local is not None:
            if not self.holders:
                most = self.allowance.left + 1
                self.allowance.expect(flattened_node_count(key, self.functions, most))
            return self._call(node, bind_attributes(local, proto.attribute), operands)
        operation = OnnxNode(node, operands, self.builder)
        require_types(node, [None if o is None else _dtype(o, self.builder) for o in operands])
        require_lists(operation)
        if self.is_run:
            require_indices(operation)
        if node.key in CONTROL:
            return CONTROL[node.key](operation, self._nested_walk(node))
        handler = handlers().get(node.key)
        if node.key not in RECURRENT and can_fold(node, operands):
            arrays = [o if isinstance(o, np.ndarray) else None for o in operands]
            folded = fold(node, arrays)
            if folded is not None:
                self._derive(node, folded, arrays)
                return folded
            if node.key in FOLDED_ONLY:
                raise Unsound(MISFITTING)
        if handler is None:
            return self._by_definition(node, proto, operation)
        return _as_list(handler(operation))

    def _derive(
        self, node: Node, results: Sequence[Array], sources: Sequence[Array | None]
    ) -> None:
        """An initialiser that was laid out anew is still that initialiser."""
        origins, source = self.builder.origins, next(iter(sources), None)
        names = origins.of_array(source) if node.op in LAID_OUT and source is not None else ()
        if names and not is_computed(self.builder, node, sources, results):
            for array in results:
                origins.add_array(array, names)
        elif self.builder.keep_parameters:
            self._record_derivation(node, results, sources)

    def _record_derivation(
        self, node: Node, results: Sequence[Array], sources: Sequence[Array | None]
    ) -> None:
        """How arrays were computed that follow from initialisers."""
        given = [a for a in sources if a is not None and self.builder.is_changeable(a)]
        handler = handlers().get(node.key)
        if handler is None or not given or node.op in MEASURES:
            return

        def emit(builder: ModelBuilder, place: int) -> int | None:
            try:
                value = _as_list(handler(OnnxNode(node, sources, builder)))[place]
            except (Unsound, InputError, *_MISFITS):  # it becomes a constant
                return None
            return value if isinstance(value, int) else None

        for place, array in enumerate(results):
            self.builder.add_derived(array, given, partial(emit, place=place))

    def _by_definition(self, node: Node, proto: Any, operation: OnnxNode) -> Sequence[Tensor]:  # noqa: ANN401
        """An operation without a handler: ONNX may define it by others."""
        operands = [
            operation.tensor(i) if operation.has(i) else None for i in range(len(node.inputs))
        ]
        types = [None if o is None else operation.type_of(o) for o in operands]
        function = function_definition(node, proto, types)
        if function is None and self.keep_unknown:
            return keep_node(operation, self.declared)
        if function is None:
            raise _unknown(node, has_hint=len(self.findings) < MOST_HINTS)
        return self._call(node, function, operands)

    def _nested_walk(self, node: Node) -> Walk:
        if len(self.holders) == MOST_DEPTH:
            reason = f"graphs and functions are nested deeper than {MOST_DEPTH} levels"
            raise TooManyNodes(reason, "call functions in a row, not inside of each other")
        return replace(self, holders=(*self.holders, node))

    def nested(
        self,
        graph: Any,  # noqa: ANN401 - onnx.GraphProto
        given: Sequence[Tensor],
        is_run: bool = True,
    ) -> list[Tensor]:
        """The outputs of a graph that sees the tensors around it; Reported where it has none."""
        if len(graph.input) != len(given):
            raise Unsound(f"a graph has {len(graph.input)} inputs, expected {len(given)}")
        require_distinct((value.name for value in graph.input), "a graph")
        tensors = self.tensors.new_child()
        walk = replace(self, tensors=tensors, bound=frozenset(), is_run=self.is_run and is_run)
        walk.declared = {**self.declared, **declared_types(graph)}
        problems = len(self.findings)
        walk.initialisers(graph)
        walk.tensors.update(zip((value.name for value in graph.input), given, strict=True))
        walk.nodes(graph.node)
        return walk.results([value.name for value in graph.output], problems)

    def types_of(self, graph: Any, given: Sequence[Tensor]) -> list[TensorType] | None:  # noqa: ANN401
        """The types of the outputs of a graph, which itself is left out; None where it has none."""
        walk = replace(self, builder=self.builder.fork(), findings=[], refused=[], labels={})
        try:
            made = walk.nested(graph, given, is_run=False)
            return [OnnxNode(NO_NODE, [t], walk.builder).type(0) for t in made]
        except (Unsupported, Unsound, AlreadyReported, InputError, MemoryError, *_MISFITS):
            return None

    def _call(
        self, node: Node, function: Function, operands: Sequence[Tensor | None]
    ) -> list[Tensor]:
        """The outputs of a function, which sees its operands only."""
        names = function.inputs
        if len(operands) > len(names):
            message = f"it has {len(operands)} operands, its function takes {len(names)}"
            raise Unsound(message, "leave the others out")
        require_distinct(names, "its function")
        given = [*operands, *([None] * (len(names) - len(operands)))]
        tensors: ChainMap[str, Tensor | LostTensor | None] = ChainMap(
            dict(zip(names, given, strict=True))
        )
        # Those of onnx itself name their own domain only.
        opsets = {**self.opsets, **function.opsets}
        walk = replace(self._nested_walk(node), tensors=tensors, opsets=opsets)
        problems = len(self.findings)
        walk.nodes(function.nodes)
        return walk.results(function.outputs[: len(node.outputs)], problems)

    def results(self, names: Iterable[str], problems: int) -> list[Tensor]:
        """Tensors by name, where there are no more problems than there were."""
        results: list[Tensor] = []
        for name in names:
            tensor = self.tensors.get(name)
            if isinstance(tensor, LostTensor) or len(self.findings) > problems:
                raise AlreadyReported(self.tensors)
            if tensor is None:
                message = f"the output {backquote(name)} of what it holds is not defined"
                raise Unsound(message, self.name_hint(name))
            results.append(tensor)
        return results

    def _define(self, node: Node, tensors: Sequence[Tensor]) -> None:
        for name, tensor in zip(node.outputs, tensors, strict=False):
            if not name:
                continue
            if name in self.tensors.maps[0]:
                message = f"{node.title} defines {backquote(name)}, which is defined already"
                self.unsound(message, RENAME)
            self.tensors[name] = tensor
        missing = [name for name in node.outputs[len(tensors) :] if name]
        if missing:
            reason = f"its output {backquote(missing[0])} is not supported"
            raise Unsupported(reason, "leave the output out, and what uses it")


def _unknown(node: Node, has_hint: bool) -> Unsupported:
    """Why a node has no form that nothing defines."""
    if node.domain in LAYOUTS:
        return Unsupported("it is in a layout that onnxruntime made for one machine", LAYOUT_HELP)
    hint = did_you_mean(node.key, handlers()) if has_hint else None
    return Unsupported("the operation is not known", hint or _UNKNOWN)


def _dtype(operand: Tensor, builder: ModelBuilder) -> np.dtype[Any]:
    if isinstance(operand, int):
        return builder.type_of(operand).element.dtype
    return operand.dtype


def _as_list(results: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [results] if isinstance(results, int | np.ndarray) else results


def _default_name(node: Node) -> str:
    """What a node without a name is called: by what it does, and by its first output."""
    return f"{node.key}:{next(filter(None, node.outputs), '')}"
