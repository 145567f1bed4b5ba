"""Nodes of operations that nothing knows: kept by their names, with what the model says of results.

The types of results come from `value_info` or from the outputs of the graph: who made the model
knew them. Without, nothing that follows could have a type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.module import TensorType
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.interface import format_dims
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.opaque.arguments import Argument, Operand
from nacre.core.opaque.calls import OpaqueCall, ResultType, add_call
from nacre.core.unsupported import Unsupported

Declared = Mapping[str, TensorType | str]  # types by name, or why there is none
_DECLARE = (
    "say it in `graph.value_info`: `onnx.helper.make_tensor_value_info(name, type, shape)`, with"
    " sizes; `onnx.shape_inference.infer_shapes` does so for operations with a schema"
)


def declared_types(
    graph: Any,  # noqa: ANN401 - onnx.GraphProto
    types: Mapping[str, TensorType] | None = None,
) -> Declared:
    """What a graph says of its tensors; sizes with a name are those of the inputs' types."""
    sizes: dict[str, int] = {}
    for value in graph.input:
        shape = (types or {}).get(value.name, TensorType("f32")).shape
        dims = value.type.tensor_type.shape.dim
        sizes |= {d.dim_param: size for d, size in zip(dims, shape, strict=False) if d.dim_param}
    values = (*graph.value_info, *graph.output)
    return {value.name: _declared_type(value, sizes) for value in values}


def _declared_type(value: Any, sizes: Mapping[str, int]) -> TensorType | str:  # noqa: ANN401
    """A type, or why it is none."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return "it is a sequence, a map or optional"
    try:
        dtype = element_name(tensor.elem_type)
    except (Unsound, Unsupported) as problem:
        return str(problem)
    if not tensor.HasField("shape"):
        return f"it has the type {dtype}, and no shape"
    dims = [d.dim_value or sizes.get(d.dim_param, 0) for d in tensor.shape.dim]
    if any(dim < 1 for dim in dims):
        return f"its shape is {format_dims(tensor.shape.dim)}"
    return TensorType(dtype, tuple(dims))


def keep_node(node: OnnxNode, declared: Declared) -> list[int]:
    """The results of a node that is kept by its name; Unsupported where it cannot be."""
    results = tuple(_result_type(name, declared) if name else None for name in node.outputs)
    operands = _Operands(node)
    words, arguments = operands.inputs()
    named, constants = operands.attributes()
    domain = node.source.domain or "ai.onnx"
    call = OpaqueCall(
        f"{domain}::{node.op}",
        " ".join([*words, "*", *named] if named else words),
        (*arguments, *constants),
        tuple(operands.values),
        results,
        is_list=len(results) > 1,
    )
    # A result without a name has no use, and anything may stand for it.
    return [value or 0 for value in add_call(node.builder, call, node.builder.count)]


def _result_type(name: str, declared: Declared) -> ResultType:
    found = declared.get(name)
    if isinstance(found, TensorType):
        return ResultType(found)
    reason = "the operation is not known, and the model does not say the type of its result"
    why = f": {found}" if found else ""
    raise Unsupported(f"{reason} {backquote(name)}{why}", _DECLARE)


class _Operands:
    """The tensors among the operands and attributes of a node, in order."""

    def __init__(self, node: OnnxNode) -> None:
        self.values: list[int] = []
        self._node = node

    def inputs(self) -> tuple[list[str], list[Argument]]:
        """The operands of the node; one that is left out is null."""
        words: list[str] = []
        given: list[Argument] = []
        for index in range(len(self._node.source.inputs)):
            is_given = self._node.has(index)
            words.append(f"x{index}:T" if is_given else f"x{index}:T?")
            given.append(self._operand(self._node.value(index)) if is_given else None)
        return words, given

    def attributes(self) -> tuple[list[str], list[Argument]]:
        """The attributes in the order of their names; one that is a tensor is one."""
        words: list[str] = []
        given: list[Argument] = []
        for name, value in sorted(self._node.attributes.items()):
            kind, argument = self._attribute(name, value)
            words.append(f"{name}:{kind}")
            given.append(argument)
        return words, given

    def _attribute(self, name: str, value: Any) -> tuple[str, Argument]:  # noqa: ANN401
        if not name.isidentifier():
            raise Unsupported(f"its attribute {backquote(name)} has no name that a kernel can take")
        if isinstance(value, np.ndarray):
            return "T", self._operand(self._node.constant(value))
        if isinstance(value, tuple) and not any(isinstance(part, str) for part in value):
            return ("I" if all(isinstance(part, int) for part in value) else "F"), value
        for kind, letter in ((int, "i"), (float, "f"), (str, "s")):
            if isinstance(value, kind):
                return letter, value
        what = "a list of strings" if isinstance(value, tuple) else "a graph, or of a rare kind"
        raise Unsupported(f"its attribute {backquote(name)} is {what}; files have no such constant")

    def _operand(self, value: int) -> Operand:
        self.values.append(value)
        return Operand(len(self.values) - 1)
