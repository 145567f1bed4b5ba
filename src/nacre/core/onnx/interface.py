"""The inputs of a model: element types, and shapes made static."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.base.suggest import did_you_mean
from nacre.core.builder import dtype_name
from nacre.core.module import TensorType
from nacre.core.onnx.files import onnx
from nacre.core.onnx.findings import finding
from nacre.core.rules.onnx import ONX01, ONX02, ONX06


def input_types(
    inputs: Sequence[Any], shapes: Mapping[str, Sequence[int]], name: str
) -> tuple[dict[str, TensorType], list[Diagnostic]]:
    """The types of inputs by name, and what is wrong with them."""
    found: dict[str, TensorType] = {}
    problems = [_unknown(given, inputs, name) for given in shapes if given not in _names(inputs)]
    for value in inputs:
        made = _type(value, shapes.get(value.name), name)
        if isinstance(made, Diagnostic):
            problems.append(made)
        else:
            found[value.name] = made
    return found, problems


def _names(inputs: Sequence[Any]) -> list[str]:
    return [value.name for value in inputs]


def _unknown(given: str, inputs: Sequence[Any], name: str) -> Diagnostic:
    hint = did_you_mean(given, _names(inputs)) or f"the inputs are {', '.join(_names(inputs))}"
    return finding(ONX06, name, f"the model has no input `{given}`", hint)


def _type(value: Any, given: Sequence[int] | None, name: str) -> TensorType | Diagnostic:  # noqa: ANN401
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return finding(ONX01, name, f"input `{value.name}` is no tensor")
    try:
        dtype = dtype_name(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
    except (ValueError, KeyError, TypeError):
        kind = tensor.elem_type
        return finding(ONX01, name, f"input `{value.name}` has element type {kind}, not supported")
    dims = list(tensor.shape.dim) if tensor.HasField("shape") else None
    sizes = (
        [d.dim_value if d.HasField("dim_value") else 0 for d in dims] if dims is not None else []
    )
    if given is None:
        if dims is None or any(size < 1 for size in sizes):
            return _open(value, dims, name)
        return TensorType(dtype, tuple(sizes))
    wanted = tuple(int(dim) for dim in given)
    fits = dims is None or (
        len(wanted) == len(sizes) and all(s in (0, w) for s, w in zip(sizes, wanted, strict=True))
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
