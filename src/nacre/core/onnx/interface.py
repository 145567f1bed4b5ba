"""The inputs of a model: element types, and shapes made static."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic
from nacre.base.suggest import did_you_mean
from nacre.core.module import TensorType
from nacre.core.onnx.elementwise import element_name
from nacre.core.onnx.findings import NoForm, finding
from nacre.core.rules.onnx import ONX01, ONX02, ONX06
from nacre.core.values import Array


def input_types(
    inputs: Sequence[Any],
    shapes: Mapping[str, Sequence[int]],
    name: str,
    type_only: Collection[str] = (),
) -> tuple[dict[str, TensorType], list[Diagnostic]]:
    """The types of inputs by name, and what is wrong with them.

    Open dimensions of inputs that only give a type have the size 1: no element of them is used.
    """
    found: dict[str, TensorType] = {}
    problems = [_unknown(given, inputs, name) for given in shapes if given not in _names(inputs)]
    for value in inputs:
        made = _type(value, shapes.get(value.name), name, is_free=value.name in type_only)
        if isinstance(made, Diagnostic):
            problems.append(made)
        else:
            found[value.name] = made
    return found, problems


def bound_inputs(
    inputs: Sequence[Any], constants: Mapping[str, npt.ArrayLike], name: str
) -> tuple[dict[str, Array], list[Diagnostic]]:
    """The values that inputs are bound to, and what is wrong with them."""
    found: dict[str, Array] = {}
    problems: list[Diagnostic] = []
    by_name = {value.name: value for value in inputs}
    for given, value in constants.items():
        array = np.asarray(value)
        if given not in by_name:
            problems.append(_unknown(given, inputs, name))
            continue
        made = _type(by_name[given], array.shape, name, is_free=False)
        if isinstance(made, TensorType) and made.element.dtype != array.dtype:
            message = f"input `{given}` was given {array.dtype}, the model says {made.dtype}"
            made = finding(ONX06, name, message)
        if isinstance(made, Diagnostic) and made.code == "ONX06" and 0 not in array.shape:
            problems.append(made)
        found[given] = array
    return found, problems


def type_only_inputs(graph: Any) -> frozenset[str]:  # noqa: ANN401 - onnx.GraphProto
    """Inputs that nothing uses, or only as the pattern of a type."""
    uses: Counter[str] = Counter(output.name for output in graph.output)
    for node in graph.node:
        is_like = node.op_type == "CastLike" and not node.domain
        uses.update(node.input[:1] if is_like else node.input)
        uses.update(name for a in node.attribute for name in _names_within(a))
    return frozenset(value.name for value in graph.input if not uses[value.name])


def _names_within(attribute: Any) -> list[str]:  # noqa: ANN401 - onnx.AttributeProto
    """Whatever names appear in graphs that an attribute holds."""
    found: list[str] = []
    waiting = [attribute.g, *attribute.graphs] if attribute.HasField("g") else [*attribute.graphs]
    while waiting:
        graph = waiting.pop()
        found += [output.name for output in graph.output]
        for node in graph.node:
            found += node.input
            for inner in node.attribute:
                waiting += [*([inner.g] if inner.HasField("g") else []), *inner.graphs]
    return found


def _names(inputs: Sequence[Any]) -> list[str]:
    return [value.name for value in inputs]


def _unknown(given: str, inputs: Sequence[Any], name: str) -> Diagnostic:
    hint = did_you_mean(given, _names(inputs)) or f"the inputs are {', '.join(_names(inputs))}"
    return finding(ONX06, name, f"the model has no input `{given}`", hint)


def _type(
    value: Any,  # noqa: ANN401 - onnx.ValueInfoProto
    given: Sequence[int] | None,
    name: str,
    *,
    is_free: bool,
) -> TensorType | Diagnostic:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        message = f"input `{value.name}` is a sequence, a map or optional; Core IR has tensors only"
        return finding(ONX01, name, message)
    try:
        dtype = element_name(tensor.elem_type)
    except NoForm as problem:
        return finding(ONX01, name, f"input `{value.name}`: {problem.reason}")
    dims = list(tensor.shape.dim) if tensor.HasField("shape") else None
    sizes = [d.dim_value if d.HasField("dim_value") else 0 for d in dims or ()]
    if given is None and is_free:
        return TensorType(dtype, tuple(max(size, 1) for size in sizes))
    if given is None:
        if dims is None or any(size < 1 for size in sizes):
            return _open(value, dims, name)
        return TensorType(dtype, tuple(sizes))
    wanted = tuple(int(dim) for dim in given)
    if 0 in wanted:
        message = f"input `{value.name}` was given the shape {list(wanted)}, without elements"
        return finding(ONX01, name, message, "Core IR has no empty tensors")
    fits = dims is None or (
        len(wanted) == len(sizes)
        and all(s < 1 or s == w for s, w in zip(sizes, wanted, strict=True))
    )
    if not fits or any(dim < 1 for dim in wanted):
        shown = _shown(dims) if dims is not None else "any shape"
        message = f"input `{value.name}` was given the shape {list(wanted)}, the model says {shown}"
        return finding(ONX06, name, message)
    return TensorType(dtype, wanted)


def _shown(dims: Sequence[Any]) -> str:
    return (
        f"[{', '.join(str(d.dim_value if d.dim_value > 0 else d.dim_param or '?') for d in dims)}]"
    )


def _open(value: Any, dims: Sequence[Any] | None, name: str) -> Diagnostic:  # noqa: ANN401
    shown = "no shape at all" if dims is None else f"the shape {_shown(dims)}"
    example = "x".join(str(max(d.dim_value, 1)) for d in dims or [])
    message = f"input `{value.name}` has {shown}, expected sizes"
    return finding(ONX02, name, message, f"--shape {value.name}={example or '1'}")
