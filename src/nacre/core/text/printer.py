"""A module as canonical text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array, Attributes, Custom, Literal, Word


def print_module(module: Module) -> str:
    """The canonical text: one operation a line, outputs last, then state."""
    lines = [operation_text(op) for op in module.operations]
    lines.append("outputs: " + ", ".join(f"%{value}" for value in module.outputs))
    lines += [f"state: {quoted(s.name)} <- %{s.output} = %{s.initial}" for s in module.states]
    return "\n".join(lines).replace("outputs: \n", "outputs:\n") + "\n"


def operation_text(op: CoreOperation) -> str:
    """One operation."""
    operands = ", ".join([f"%{operand}" for operand in op.operands])
    braces = f" {attributes_text(op.attributes)}" if op.attributes else ""
    return f"%{op.value_id} = {op.opcode} ({operands}){braces} : {op.type}"


def attributes_text(attributes: Attributes) -> str:
    """Attributes in braces, sorted by name."""
    return (
        "{" + ", ".join(f"{key}={value_text(attributes[key])}" for key in sorted(attributes)) + "}"
    )


def value_text(value: Any) -> str:  # noqa: ANN401 - whatever an attribute holds
    """A value as the text form writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Custom):
        return f"Custom({value_text(tuple(value))})"
    if isinstance(value, Literal):
        return literal_text(value.array)
    return "[" + ", ".join(value_text(item) for item in value) + "]"


def quoted(text: str) -> str:
    """A string in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def float_text(value: float) -> str:
    """The shortest digits that read back to the same double."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def literal_text(array: Array) -> str:
    """A tensor's elements, nested as its shape."""
    if array.ndim == 0:
        return _element_text(array[()])
    if array.ndim > 1:
        return "[" + ", ".join(literal_text(part) for part in array) + "]"
    return "[" + ", ".join([_element_text(item) for item in array]) + "]"


def _element_text(item: Any) -> str:  # noqa: ANN401 - a scalar of any type
    if item.dtype == np.bool_:
        return "true" if item else "false"
    if item.dtype.kind in "iu" or item.dtype.name in ("int4", "uint4"):
        return str(int(item))
    if item.dtype == np.float32 and np.isfinite(item):
        # The shortest digits for f32, not for the double that it widens to.
        return str(item)
    return float_text(float(item))
