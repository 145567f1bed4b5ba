"""What a program takes, keeps and gives: inputs, weights, state, outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nacre.base.diagnostics import Diagnostic
from nacre.core.aten.remedies import NOT_EMPTY, OTHERWISE
from nacre.core.importing.findings import finding
from nacre.core.module import TensorType
from nacre.core.rules.torch import TCH01, TCH02
from nacre.core.torch.elements import element_name
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import NEWER
from nacre.core.torch.sizes import Shapes, shape_option, suggestions
from nacre.core.torch.ties import Ties
from nacre.core.unsupported import Unsupported

_PARAMETERS = ("PARAMETER", "BUFFER")
_FIXED = "keep the shape by `torch.where(mask, x, other)`, or choose by integers that are known"


@dataclass
class Interface:
    """By the names of nodes. A buffer that the program changes is an input and a state."""

    inputs: dict[str, tuple[str, TensorType]] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)  # weights, and numbers fixed by export
    states: list[tuple[str, Any, Any]] = field(default_factory=list)  # name, node, initial
    outputs: list[Any] = field(default_factory=list)  # nodes or numbers
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of weights in the model
    fixed: set[str] = field(default_factory=set)  # names of buffers that are saved with no model
    untrained: set[str] = field(default_factory=set)  # names of buffers and of frozen parameters


def interface_of(
    program: Any,  # noqa: ANN401 - ExportedProgram
    name: str,
    shapes: Shapes,
    ties: Ties,
) -> tuple[Interface, list[Diagnostic]]:
    """The interface of a program, and what is wrong with it; shapes are those that were given."""
    interface, findings = Interface(), list[Diagnostic]()
    nodes = {node.name: node for node in program.graph_module.graph.nodes}
    changed = _changed_states(program)
    users = {spec.arg.name for spec in program.graph_signature.input_specs
             if spec.kind.name == "USER_INPUT"}  # fmt: skip
    kept: dict[str, tuple[str, Any]] = {}
    for spec in program.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        try:
            if spec.kind.name == "USER_INPUT":
                _user_input(interface, node)
            elif spec.kind.name == "TOKEN":  # the order of effects, of which there is none
                interface.known[node.name] = None
            elif spec.target in changed:
                title = spec.arg.name if spec.target in users else spec.target
                tensor = _tensor(program, spec)
                interface.inputs[node.name] = (title, static_type(tensor))
                kept[spec.target] = (title, tensor)
            else:
                interface.known[node.name] = _tensor(program, spec)
                if spec.kind.name in _PARAMETERS:
                    tied = ties.get(spec.target, ())
                    interface.names[node.name] = tuple(dict.fromkeys((spec.target, *tied)))
                    if not _is_trained(spec, interface.known[node.name]):
                        interface.untrained.update(interface.names[node.name])
                    if spec.target not in program.state_dict:
                        interface.fixed.update(interface.names[node.name])
        except Unsupported as problem:
            message = f"input `{node.name}`: {problem.reason}"
            findings.append(finding(TCH01, name, message, problem.help))
    for title, (dims, example) in suggestions(program, shapes).items():
        message = f"input `{title}` has the shape [{dims}], expected sizes"
        findings.append(finding(TCH02, name, message, shape_option(title, example)))
    _outputs(interface, program, kept, findings, name)
    return interface, findings


def _is_trained(spec: Any, tensor: Any) -> bool:  # noqa: ANN401 - a spec and its tensor
    """Whether an optimiser of PyTorch would change a tensor."""
    return bool(spec.kind.name == "PARAMETER" and tensor.requires_grad)


def _changed_states(program: Any) -> set[str]:  # noqa: ANN401 - ExportedProgram
    kinds = ("BUFFER_MUTATION", "PARAMETER_MUTATION")
    outputs = program.graph_signature.output_specs
    return {spec.target for spec in outputs if spec.kind.name in kinds}


def _user_input(interface: Interface, node: Any) -> None:  # noqa: ANN401
    meta = node.meta.get("val")
    if not hasattr(meta, "dtype"):
        interface.known[node.name] = meta  # a number or None, which export has fixed
    elif not is_open(meta):
        interface.inputs[node.name] = (node.name, static_type(meta))


def is_open(meta: Any) -> bool:  # noqa: ANN401 - fake tensors, or a number
    """Whether a shape is not known before the model runs."""
    if isinstance(meta, list | tuple):
        return any(is_open(part) for part in meta)
    if not hasattr(meta, "shape"):
        return hasattr(meta, "node")  # a symbol in the place of a number
    return any(not isinstance(dim, int) for dim in meta.shape)


def is_empty(meta: Any) -> bool:  # noqa: ANN401 - a fake tensor
    """Whether a tensor is known to have no elements."""
    shape = getattr(meta, "shape", ())
    return all(isinstance(dim, int) for dim in shape) and 0 in shape


def static_type(meta: Any) -> TensorType:  # noqa: ANN401 - a fake tensor
    """The type of a tensor; Unsupported where it has none in Core IR."""
    if not hasattr(meta, "dtype"):
        raise Unsupported("it is no tensor", OTHERWISE)
    if is_open(meta):
        raise Unsupported("the shape of its result depends on elements", _FIXED)
    if 0 in meta.shape:
        raise Unsupported("it has no elements; Core IR has no empty tensors", NOT_EMPTY)
    return TensorType(element_name(meta.dtype), tuple(meta.shape))


def _tensor(program: Any, spec: Any) -> Any:  # noqa: ANN401 - a weight or constant
    tensor = program.state_dict.get(spec.target, program.constants.get(spec.target))
    if tensor is None:
        raise Unsupported(f"{spec.kind.name.lower()} `{spec.target}` is not in the program", NEWER)
    library = torch()
    if isinstance(tensor, library.Tensor):
        if tensor.layout != library.strided:
            raise Unsupported(f"`{spec.target}` is a sparse tensor", "save it as `.to_dense()`")
        if tensor.is_meta or isinstance(tensor, library._subclasses.FakeTensor):
            raise Unsupported(
                f"`{spec.target}` has no elements, only a shape", "load weights first"
            )
    return tensor


def _outputs(
    interface: Interface,
    program: Any,  # noqa: ANN401 - ExportedProgram
    changed_states: dict[str, tuple[str, Any]],
    findings: list[Diagnostic],
    name: str,
) -> None:
    graph = program.graph_module.graph
    given = next(node for node in graph.nodes if node.op == "output").args[0]
    for spec, value in zip(program.graph_signature.output_specs, given, strict=True):
        if spec.target in changed_states:
            title, initial = changed_states[spec.target]
            interface.states.append((title, value, initial))
        elif spec.kind.name == "USER_OUTPUT":
            if value is not None:
                interface.outputs.append(value)
        elif spec.kind.name != "TOKEN":
            message = f"`{spec.target}` is changed in place ({spec.kind.name.lower()})"
            help_ = "return the new value, or keep the tensor as a buffer of the module"
            findings.append(finding(TCH01, name, message, help_))
