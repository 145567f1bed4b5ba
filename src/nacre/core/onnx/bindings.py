"""Inputs of a model that are bound to values: what was given, in the type that the model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.core.module import TensorType
from nacre.core.onnx.findings import finding
from nacre.core.onnx.interface import input_type, unknown_input
from nacre.core.onnx.onnx_node import describe_tensor
from nacre.core.rules.onnx import ONX06
from nacre.core.values import Array

_NUMBERS = "give a number, or an array of numbers"


def bind_inputs(
    inputs: Sequence[Any], constants: Mapping[str, npt.ArrayLike], name: str
) -> tuple[dict[str, Array], list[Diagnostic]]:
    """The values that inputs are bound to, and what is wrong with them."""
    arrays: dict[str, Array] = {}
    problems: list[Diagnostic] = []
    by_name = {value.name: value for value in inputs}
    for given, value in constants.items():
        if given not in by_name:
            problems.append(unknown_input(given, inputs, name))
            continue
        bound = _bind(by_name[given], value, name)
        if isinstance(bound, Diagnostic):
            problems.append(bound)
        else:
            arrays[given] = bound
    return arrays, problems


def _bind(declared: Any, value: npt.ArrayLike, name: str) -> Array | Diagnostic:  # noqa: ANN401
    title = f"input {backquote(declared.name)}"
    array = _array(value)
    if array is None:
        message = f"{title} was given {backquote(repr(value))}, expected numbers"
        return finding(ONX06, name, message, _NUMBERS)
    if np.isscalar(value):
        array = array.reshape(_one_element(declared))
    type_ = input_type(declared, array.shape, name, is_free=False)
    if isinstance(type_, Diagnostic):
        # Without elements, or of a type that Core IR lacks, it is no input but may be a constant.
        is_contradiction = type_.code == ONX06.code and 0 not in array.shape
        if is_contradiction and np.isscalar(value):
            message = f"{title} was given one number, and the model has more elements there"
            return finding(ONX06, name, message, "give an array of the input's shape")
        return type_ if is_contradiction else array
    fitting = array if array.dtype == type_.element.dtype else _convert(array, value, type_)
    if fitting is not None:
        return fitting
    message = f"{title} was given {describe_tensor(array)}, the model says {describe_tensor(type_)}"
    help_ = f"convert the array: `array.astype({type_.element.dtype.name!r})`"
    return finding(ONX06, name, message, help_)


def _array(value: npt.ArrayLike) -> Array | None:
    """An array of the machine's byte order; None for what is none, such as rows of two lengths."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return None
    is_text = array.dtype.kind == "O" and all(isinstance(item, str) for item in array.flat)
    if array.dtype.kind in "mMc" or (array.dtype.kind == "O" and not is_text):
        return None
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _one_element(declared: Any) -> tuple[int, ...]:  # noqa: ANN401 - onnx.ValueInfoProto
    """The shape of a single number: as many axes of size 1 as the model says, else none."""
    dims = declared.type.tensor_type.shape.dim
    return (1,) * len(dims)


def _convert(array: Array, value: npt.ArrayLike, wanted: TensorType) -> Array | None:
    """An array in the type that is wanted, where that says the same: None where it does not.

    Numbers of Python have no type of their own; NumPy's files keep of bf16 and its like no more
    than their size.
    """
    dtype = wanted.element.dtype
    if array.dtype.kind == "V" and array.dtype.names is None:
        is_same_size = array.dtype.itemsize == dtype.itemsize and dtype.isbuiltin != 1
        return array.view(dtype) if is_same_size else None
    if isinstance(value, np.ndarray | np.generic) or array.dtype.kind not in "biuf":
        return None
    if (array.dtype.kind == "b") != (dtype.kind == "b"):
        return None
    with np.errstate(all="ignore"):
        converted: Array = array.astype(dtype)
        is_same = wanted.element.kind == "float" or bool(np.all(converted == array))
    return converted if is_same else None
