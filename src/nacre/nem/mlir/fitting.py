"""Whether a task fits its opcode: what verifiers ask, and what an export must know before."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.nem.mlir.signatures import segment_sizes
from nacre.nem.spec.opcodes import AttributeSpec, Opcode
from nacre.nem.syntax.ast import (
    Attribute,
    Binary,
    BoolLit,
    Expr,
    FloatLit,
    IntLit,
    ListLit,
    NameRef,
    Negated,
    Paren,
    StringLit,
    Value,
)

_EXPRESSIONS = (IntLit, FloatLit, NameRef, Negated, Binary, Paren)


def misfit(row: Opcode, inputs: int, outputs: int, attributes: Sequence[Attribute]) -> str | None:
    """What a task of this opcode may not have, in words; None where it fits."""
    for word, parts, count in (("input", row.inputs, inputs), ("output", row.outputs, outputs)):
        if segment_sizes(parts, count) is None:
            return f"`{row.name}` does not take {count} {word}{'' if count == 1 else 's'}"
    values = {attribute.name.name: attribute.value for attribute in attributes}
    for spec in row.attributes:
        if spec.name in values:
            wrong = _wrong_value(spec, values[spec.name])
            if wrong is not None:
                return f"attribute `{spec.name}` of `{row.name}` {wrong}"
        elif spec.required:
            return f"`{row.name}` lacks its attribute `{spec.name}`"
    unknown = [name for name in values if row.attribute(name) is None]
    if unknown and "open_attributes" not in row.traits:
        return f"`{row.name}` has no attribute `{unknown[0]}`"
    return None


def _wrong_value(spec: AttributeSpec, value: Value) -> str | None:
    if isinstance(value, NameRef):
        is_closed = spec.type == "id" and spec.allowed and value.name not in spec.allowed
        return f"is not one of {', '.join(spec.allowed)}" if is_closed else None
    match spec.type:
        case "int" | "float":
            return _wrong_number(spec, value)
        case "int_list":
            return _wrong_list(spec, value)
        case "bool":
            return None if isinstance(value, BoolLit) else "is no boolean"
        case "string":
            return None if isinstance(value, StringLit) else "is no string"
        case _:
            return "is no name"


def _wrong_number(spec: AttributeSpec, value: Value) -> str | None:
    if not isinstance(value, _EXPRESSIONS):
        return "is no expression"
    number = _literal(value)
    if number is not None and spec.minimum is not None and number < spec.minimum:
        return f"is {number}, expected at least {spec.minimum}"
    return None


def _wrong_list(spec: AttributeSpec, value: Value) -> str | None:
    if not isinstance(value, ListLit):
        return "is no list"
    if spec.length is not None and len(value.items) != spec.length:
        return f"has {len(value.items)} members, expected {spec.length}"
    return next((wrong for item in value.items if (wrong := _wrong_number(spec, item))), None)


def _literal(value: Expr | Value) -> int | None:
    """The integer that is written out; None for anything that must be worked out."""
    if isinstance(value, Negated) and isinstance(value.operand, IntLit):
        return -value.operand.value
    return value.value if isinstance(value, IntLit) else None
