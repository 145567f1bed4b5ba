"""The walk over an exported graph: calls on known tensors are computed, others brought in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.aten.call import AtenCall, Value
from nacre.core.aten.catalogue import handlers
from nacre.core.aten.refusals import CHECKED, COMPLEX, REFUSED, explain_open_shape, explain_refusal
from nacre.core.aten.remedies import OTHERWISE
from nacre.core.importing.findings import finding, refusal
from nacre.core.importing.model_builder import MOST_OPERATIONS, ModelBuilder
from nacre.core.module import Labels, Module
from nacre.core.opaque.calls import ComplexValue, OpaqueCallNames
from nacre.core.ops import OPS
from nacre.core.rules.torch import TCH01
from nacre.core.torch.checks import CHECKS, ITEMS, is_only_checked
from nacre.core.torch.constants import Constants
from nacre.core.torch.elements import dtype_of
from nacre.core.torch.exporting import program_of
from nacre.core.torch.folding import can_fold, fill, fold, is_layout, leaves_of
from nacre.core.torch.interface import Interface, interface_of, is_empty, is_open, static_type
from nacre.core.torch.layouts import is_computed, shared_parameters
from nacre.core.torch.library import silenced, torch
from nacre.core.torch.nodes import (
    argument,
    arguments_by_name,
    arguments_of,
    as_tensors,
    contains_kind,
    describe,
    feeds_transform,
    fold_number_call,
    key_of,
    label_of,
    map_arguments,
    output_item,
)
from nacre.core.torch.opaque_calls import file_name, has_complex, keep_call
from nacre.core.torch.regions import REGIONS, AlreadyReported, RegionCall
from nacre.core.torch.remedies import PARTS, place_of
from nacre.core.torch.sizes import Shapes
from nacre.core.torch.ties import Ties
from nacre.core.unsupported import Unsupported

_SIZES = frozenset(
    {"sym_size.int", "sym_numel.default", "sym_stride.int", "sym_storage_offset.default"}
)

Progress = Callable[[int, int], None]  # nodes that are in, of how many


def from_torch(
    source: Any,  # noqa: ANN401 - a module, a program, a path
    example_args: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    shapes: Shapes | None = None,
    *,
    progress: Progress | None = None,
    keep_parameters: bool = False,
    opaque_calls: OpaqueCallNames | None = None,
) -> Module:
    """A PyTorch module, a program of `torch.export` or a `.pt2` file as a module of `nacre-1`.

    Example arguments say shapes and types, as `torch.export` wants them. `shapes` gives sizes to
    inputs whose dimensions a program leaves open. Buffers that the module changes become state.
    `progress` is told how many nodes of how many are in. What depends on parameters alone is
    computed now; with `keep_parameters` by the module, so that they can be changed in it. With
    `opaque_calls` what nothing knows becomes an `Opaque` operation, and so do these, by their names
    in files (`aten.fft_fft.default`), where Core IR has no form for them.
    InputError lists all that stands in the way.
    """
    exported = program_of(source, example_args, example_kwargs, shapes, opaque_calls)
    walk, interface = walk_graph(exported, shapes, progress, keep_parameters, opaque_calls)
    return walk.module(interface)


def walk_graph(
    exported: tuple[Any, str, Ties],
    shapes: Shapes | None,
    progress: Progress | None = None,
    keep_parameters: bool = False,
    opaque_calls: OpaqueCallNames | None = None,
) -> tuple[Walk, Interface]:
    """A graph that was gone down, with what was found wrong on the way; InputError before it."""
    program, name, ties = exported
    interface, problems = interface_of(program, name, shapes or {}, ties)
    if problems:
        raise InputError(problems)
    walk = Walk(name, progress, ModelBuilder(keep_parameters), opaque_calls=opaque_calls)
    walk.import_graph(program.graph_module, interface)
    return walk, interface


@dataclass(frozen=True)
class Refusal:
    """A node that has no form."""

    node: Any  # fx.Node
    reason: str
    help: str


class LostTensor:
    """Stands for what a refused node should have made, where not even its type is known."""


@dataclass(eq=False)
class Walk:
    """Goes down a graph. What is wrong is collected; one report for one cause."""

    name: str
    progress: Progress | None = None
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    tensors: dict[str, Any] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    lost: int = 0  # nodes that could not be looked at
    labels: dict[int, str] = field(default_factory=dict)  # nodes by the values that they became
    opaque_calls: OpaqueCallNames | None = None  # None: what nothing knows is refused
    constants: Constants = field(init=False)
    _looked_at: int = 0  # nodes, and how many there are outside of loops
    _total: int = 0

    def __post_init__(self) -> None:
        self.constants = Constants(self.builder)

    def import_graph(self, graph_module: Any, interface: Interface) -> None:  # noqa: ANN401
        """Inputs, weights and calls."""
        for node, (name, type_) in interface.inputs.items():
            self.tensors[node] = Value(self.builder.input(name, type_.dtype, type_.shape))
        self.tensors.update(interface.known)
        for node, names in interface.names.items():
            self.constants.add_parameter(self.tensors[node], names)
        self.constants.fixed |= interface.fixed
        if self.builder.keep_parameters:
            for node in shared_parameters(graph_module.graph, interface.names):
                self.builder.shared |= set(interface.names[node])
        self._total = len(graph_module.graph.nodes)
        self.calls(graph_module, self.tensors)

    def calls(self, graph_module: Any, tensors: dict[str, Any]) -> None:  # noqa: ANN401
        """Nodes in their order, which is that of their definitions."""
        for node in graph_module.graph.nodes:
            if self.progress is not None:
                self.progress(self._looked_at, max(self._total, self._looked_at))
                self._looked_at += 1
            if node.op == "get_attr":
                tensors[node.name] = getattr(graph_module, node.target)
            elif node.op == "call_function":
                before = self.builder.count
                tensors[node.name] = self._result(node, tensors)
                self._label(node, before)
                if self.builder.count >= MOST_OPERATIONS:
                    message = f"it has more than {MOST_OPERATIONS:,} operations"
                    raise refusal(TCH01, self.name, message, PARTS)

    def nested(self, graph_module: Any, given: Sequence[Any]) -> list[Any]:  # noqa: ANN401
        """What a graph inside of another gives for some tensors."""
        nodes = graph_module.graph.nodes
        holders = [node.name for node in nodes if node.op == "placeholder"]
        tensors = dict(zip(holders, given, strict=True))
        before = len(self.findings)
        self.calls(graph_module, tensors)
        if len(self.findings) > before:  # once, however often a loop comes to it
            raise AlreadyReported
        outputs = next(node for node in nodes if node.op == "output").args[0]
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        return [map_arguments(part, lambda node: tensors[node.name]) for part in outputs]

    def _label(self, node: Any, before: int) -> None:  # noqa: ANN401 - fx.Node
        """Call what a node has become after it; weights keep names of their own."""
        for op in self.builder.operations_since(before):
            if "constant" not in OPS[op.opcode].traits:
                self.labels.setdefault(op.value_id, label_of(node))

    def _result(self, node: Any, tensors: dict[str, Any]) -> Any:  # noqa: ANN401 - fx.Node
        args, kwargs = (
            map_arguments(part, lambda n: tensors[n.name]) for part in arguments_of(node)
        )
        if contains_kind(args, LostTensor) or contains_kind(kwargs, LostTensor):
            self.lost += 1
            return LostTensor()
        try:
            return self._compute(node, args, kwargs)
        except Unsupported as problem:
            self._refuse(node, problem)
        except AlreadyReported:
            self.lost += 1
        return self._stand_in(node.meta.get("val"))

    def _stand_in(self, meta: Any) -> Any:  # noqa: ANN401 - fake tensors
        """A tensor in the place of one that could not be made: what follows is looked at too."""
        if isinstance(meta, list | tuple):
            return [self._stand_in(part) for part in meta]
        try:
            type_ = static_type(meta)
        except Unsupported:
            return LostTensor()
        return Value(self.builder.stand_in(type_))

    def _compute(self, node: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        target = node.target
        if target is operator.getitem:
            return output_item(args[0], args[1])
        key = key_of(target)
        if key in CHECKS:
            return None
        if key in REGIONS and contains_kind(args, ComplexValue):
            raise Unsupported("complex tensors go into a branch or a loop", OTHERWISE)
        if key in REGIONS:
            return REGIONS[key](RegionCall(self.nested, self.builder, self.constants), *args)
        result, is_call = node.meta.get("val"), hasattr(target, "_schema")
        if is_call and can_fold(key, target, [args, kwargs], result):
            folded = self._keep_names(node, fold(target, args, kwargs), args, kwargs)
            if is_open(result):  # now its shape is known too
                node.meta["val"] = folded
            return folded
        if key in ITEMS and is_only_checked(node):
            raise Unsupported(*CHECKED)
        if is_call and is_open(result):
            result = node.meta["val"] = self._result_shape(target, args, kwargs)
        if key in _SIZES and isinstance(result, int):
            return result
        if is_empty(result):
            return torch().empty(tuple(result.shape), dtype=result.dtype)  # known: it has none
        if self.opaque_calls is not None and is_call:
            return self._handle_or_keep(node, args, kwargs, self.opaque_calls)
        return self._handle(node, args, kwargs)

    def _handle_or_keep(
        self,
        node: Any,  # noqa: ANN401 - fx.Node
        args: list[Any],
        kwargs: dict[str, Any],
        opaque_calls: OpaqueCallNames,
    ) -> Any:  # noqa: ANN401 - see _handle
        """What a call becomes in the module, where it may stay what it is."""
        key, name = key_of(node.target), file_name(node.target)
        is_unknown = key not in handlers() and key not in REFUSED
        is_complex = has_complex([args, kwargs, node.meta.get("val")])
        if is_complex and not is_unknown and name not in opaque_calls.complex_names:
            raise Unsupported(*COMPLEX)
        if is_complex or is_unknown:
            return keep_call(node, args, kwargs, self.constants)
        try:
            return self._handle(node, args, kwargs)
        except Unsupported:
            if name not in opaque_calls.names:
                raise
            return keep_call(node, args, kwargs, self.constants)

    def _handle(self, node: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """What a call becomes in the module."""
        target, result = node.target, node.meta.get("val")
        key, is_call = key_of(target), hasattr(target, "_schema")
        handler = handlers().get(key)
        if handler is not None and feeds_transform(node):
            return None  # a complex tensor; the transform is what the user has written
        if key in REFUSED or (handler is None and is_call):
            raise Unsupported(*explain_refusal(key))
        if handler is None:
            return fold_number_call(target, args)
        given = arguments_by_name(target, args, kwargs)
        known = fill(key, given, result)
        if known is not None:
            return known
        call = {name: argument(part, self.constants) for name, part in given.items()}
        results = as_tensors(handler(AtenCall(key, call, self.builder)))
        self._require_types(results, result)
        return results

    def _require_types(self, results: Any, wanted: Any) -> None:  # noqa: ANN401 - values, fake tensors
        """That what was made is what PyTorch says: handlers work types out on their own."""
        parts, metas = ([x] if not isinstance(x, list | tuple) else x for x in (results, wanted))
        for value, meta in zip(parts, metas, strict=False):
            if isinstance(value, Value) and not is_open(meta):
                found, expected = self.builder.type_of(value.id), static_type(meta)
                if found != expected:
                    reason = f"it is taken to give {found}, and PyTorch gives {expected}"
                    raise Unsupported(f"{reason}: a mistake of ours", OTHERWISE)

    def _keep_names(self, node: Any, results: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """What was computed; a parameter that was laid out anew is still that parameter."""
        source = args[0] if args and is_layout(key_of(node.target)) else None
        names = self.constants.names_of(source) if isinstance(source, torch().Tensor) else ()
        if self.builder.keep_parameters and names:
            names = () if is_computed(self.constants, node.target, args, results) else names
        for tensor in leaves_of(results) if names else ():
            self.constants.add_parameter(tensor, names)
        if self.builder.keep_parameters and not names:
            self._record_derivation(node, results, args, kwargs)
        return results

    def _record_derivation(
        self,
        node: Any,  # noqa: ANN401 - fx.Node
        results: Any,  # noqa: ANN401 - tensors
        args: list[Any],
        kwargs: dict[str, Any],
    ) -> None:
        """How tensors were computed that follow from parameters."""
        tensors = [x for x in leaves_of([args, kwargs]) if isinstance(x, torch().Tensor)]
        given = [tensor for tensor in tensors if self.constants.is_changeable(tensor)]
        if not given:
            return

        def emit(_: ModelBuilder, place: int) -> int | None:
            values = list(leaves_of(self._handle(node, args, kwargs)))
            value = values[place] if place < len(values) else None
            return value.id if isinstance(value, Value) else None

        for place, tensor in enumerate(leaves_of(results)):
            self.constants.add_derived(tensor, given, partial(emit, place=place))

    def _result_shape(self, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """What a call gives, without elements, where a shape followed from ones that are known."""
        library = torch()

        def as_meta(argument: Any) -> Any:  # noqa: ANN401 - an argument
            if isinstance(argument, Value):
                type_ = self.builder.type_of(argument.id)
                return library.empty(type_.shape, dtype=dtype_of(type_.dtype), device="meta")
            if isinstance(argument, ComplexValue):
                type_ = self.builder.type_of(argument.id)
                pairs = library.empty(type_.shape, dtype=dtype_of(type_.dtype), device="meta")
                return library.view_as_complex(pairs)
            if isinstance(argument, library.device):
                return library.device("meta")
            return argument.to("meta") if isinstance(argument, library.Tensor) else argument

        if key_of(target) == "index.Tensor":
            args = [args[0], _without_masks(args[1])]
        given = [map_arguments(part, as_meta, lambda _: True) for part in (args, kwargs)]
        try:
            with library.no_grad(), silenced():
                return target(*given[0], **given[1])
        except Exception:  # PyTorch has no shape for it
            raise Unsupported(*explain_open_shape(key_of(target))) from None

    def _refuse(self, node: Any, problem: Unsupported) -> None:  # noqa: ANN401
        shapes = ", ".join(describe(n.meta.get("val")) for n in node.all_input_nodes)
        key = key_of(node.target)
        place = place_of(node.meta.get("stack_trace") or "")
        message = f"node `{node.name}` ({key}) of ({shapes}){place}: {problem.reason}"
        help_ = problem.help or OTHERWISE
        self.refused.append(Refusal(node, problem.reason, help_))
        self.findings.append(finding(TCH01, self.name, message, help_))

    def module(self, interface: Interface) -> Module:
        """The module, when every node is in."""
        outputs = [self._output(place, node) for place, node in enumerate(interface.outputs)]
        states = []
        for name, node, initial in interface.states:
            output = self._output(name, node)
            states.append((name, output, self._constant(name, initial)))
        if self.findings:
            raise InputError(self.findings)
        for name, output, start in states:
            self.builder.state(name, output, start)
        named = self.builder.parameters
        fixed = self.builder.origins.parts_of(interface.untrained, named.values())
        labels = Labels(nodes=self.labels, source=self.name, parameters=named, fixed=fixed)
        return replace(self.builder.module(*outputs), labels=labels)

    def _output(self, place: object, node: Any) -> int:  # noqa: ANN401 - fx.Node or a number
        tensor = self.tensors.get(node.name) if hasattr(node, "name") else node
        if isinstance(tensor, Value):
            return tensor.id
        if isinstance(tensor, LostTensor):  # the cause is reported
            return 0
        if isinstance(tensor, ComplexValue):
            message = f"output `{place}` is complex, which Core IR lacks"
            help_ = "return `torch.view_as_real` of it"
            self.findings.append(finding(TCH01, self.name, message, help_))
            return 0
        return self._constant(place, torch().as_tensor(tensor))

    def _constant(self, place: object, tensor: Any) -> int:  # noqa: ANN401 - torch.Tensor
        try:
            return self.constants.value(tensor)
        except Unsupported as problem:
            message = f"output `{place}`: {problem.reason}"
            self.findings.append(finding(TCH01, self.name, message, problem.help))
            return 0


def _without_masks(indices: Sequence[Any]) -> list[Any]:
    """Indices with those in the place of masks that say the same, where these are known."""
    kinds = (torch().bool, torch().uint8)
    found: list[Any] = []
    for index in indices:
        is_mask = isinstance(index, torch().Tensor) and index.dtype in kinds
        found += index.nonzero(as_tuple=True) if is_mask else [index]
    return found
