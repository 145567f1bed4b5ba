"""The outputs of a model: values of the module, and what the model says that they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.core.module import Labels, Module, TensorType
from nacre.core.onnx.control.scopes import LostTensor
from nacre.core.onnx.findings import finding
from nacre.core.onnx.handlers.elementwise import type_title
from nacre.core.onnx.interface import format_dims
from nacre.core.onnx.onnx_node import OnnxNode, describe_tensor
from nacre.core.onnx.reading.files import onnx
from nacre.core.onnx.reading.nodes import NO_NODE
from nacre.core.onnx.states import keep_states
from nacre.core.rules.onnx import ONX01, ONX08
from nacre.core.unsupported import Unsupported

if TYPE_CHECKING:
    from nacre.core.onnx.walk import Walk

_DECLARE = "declare what the node makes, or leave it open"


def module_of(walk: Walk, graph: Any) -> Module:  # noqa: ANN401
    """The module, when every node is in; InputError where an output is none."""
    values: dict[str, int] = {}
    for output in graph.output:
        title, tensor = f"output {backquote(output.name)}", walk.tensors.get(output.name)
        if tensor is None or isinstance(tensor, LostTensor):
            walk.unsound(f"{title} is not defined", walk.name_hint(output.name))
            continue
        node = OnnxNode(NO_NODE, [tensor], walk.builder)
        try:
            values[output.name] = node.value(0)
        except Unsupported as problem:
            message = f"{title}: {problem.reason}"
            walk.findings.append(finding(ONX01, walk.name, message, problem.help))
            continue
        kind = _type_mismatch(output, node.type(0))
        shape = _shape_mismatch(output, node.type(0))
        if kind is not None:
            walk.unsound(f"{title} is declared {kind}", _DECLARE)
        elif shape is not None:
            message = f"{title} is declared {shape}"
            walk.odd.append(finding(ONX08, walk.name, message, _DECLARE))
    if not walk.findings:
        following = {given: values[output] for given, output in walk.states.items()}
        keep_states(walk, following, walk.initial)
    if walk.findings:
        raise InputError(walk.findings)
    # The next value of a state is no output: the module keeps it.
    outs = tuple(o.name for o in graph.output if o.name not in walk.states.values())
    labels = Labels(outs, walk.labels, source=walk.name, parameters=walk.builder.parameters)
    return replace(walk.builder.module(*(values[name] for name in outs)), labels=labels)


def _type_mismatch(value: Any, actual: TensorType) -> str | None:  # noqa: ANN401
    """As what else an output is declared: no tensor, or one of another element type."""
    if value.type.WhichOneof("value") not in (None, "tensor_type"):
        return f"as no tensor, its node makes {describe_tensor(actual)}"
    declared = value.type.tensor_type.elem_type
    if not declared or declared == onnx.helper.np_dtype_to_tensor_dtype(actual.element.dtype):
        return None
    return f"as {type_title(declared)}, its node makes {describe_tensor(actual)}"


def _shape_mismatch(value: Any, actual: TensorType) -> str | None:  # noqa: ANN401
    """With which other shape an output is declared; open sizes fit all."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    is_same = len(dims) == actual.rank and all(
        dim.dim_value < 1 or dim.dim_value == own
        for dim, own in zip(dims, actual.shape, strict=True)
    )
    return None if is_same else f"with the shape {format_dims(dims)}, it has {list(actual.shape)}"
