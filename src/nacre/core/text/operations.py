"""Operations and modules as canonical text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from nacre.core.operations import CoreOperation, State
from nacre.core.values import Array, Attributes, Custom, Literal, Word

# Quotes, and what would end a line somewhere, move a cursor, turn the direction of reading, or has
# no UTF-8.
_SPECIAL = re.compile(
    '["\\\\\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]'
)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}


def module_text(
    operations: Iterable[CoreOperation], outputs: Iterable[int], states: Iterable[State]
) -> str:
    """The canonical text: one operation a line, outputs last, then state."""
    lines = [operation_text(op) for op in operations]
    lines.append(" ".join(["outputs:", ", ".join(f"%{v}" for v in outputs)]).rstrip())
    lines += [f"state: {quote(s.name)} <- %{s.output} = %{s.initial}" for s in states]
    return "\n".join(lines) + "\n"


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
        return quote(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Custom):
        return f"Custom({value_text(tuple(value))})"
    if isinstance(value, Literal):
        return literal_text(value.array)
    return "[" + ", ".join(value_text(item) for item in value) + "]"


def quote(text: str) -> str:
    """A string in quotes."""
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


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
    if item.dtype == np.float64 or not math.isfinite(float(item)):
        return float_text(float(item))
    if item.dtype.itemsize <= 2:
        return _narrow_text(item.dtype, item.tobytes())
    # The shortest digits for f32, not for the double that it widens to.
    value = float(str(item))
    return repr(value if np.float32(value) == item else float(item))


@cache
def _narrow_text(dtype: np.dtype[Any], raw: bytes) -> str:
    """The fewest digits that read back to a float of one or two bytes."""
    item = np.frombuffer(raw, dtype)[0]
    wide = float(item)
    for digits in range(1, 9):
        value = float(f"{wide:.{digits}g}")
        with np.errstate(all="ignore"):  # the largest one, rounded up
            if np.array(value).astype(dtype).tobytes() == raw:
                return repr(value)
    return repr(wide)
