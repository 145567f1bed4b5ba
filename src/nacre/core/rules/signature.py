"""MOD10-MOD13: opcodes, operand counts, attributes, and the declared type."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.excerpt import quoted
from nacre.base.suggest import did_you_mean
from nacre.core.ops import V1_TYPES, AttributeSpec
from nacre.core.rules.facts import Use, use_rule
from nacre.core.values import Custom, Literal, Word

_MODEL = "IR module model"


@use_rule("MOD10", "signature", _MODEL)
def signature(use: Use) -> Iterator[str]:
    """The number of operands is wrong, an attribute is missing, unknown, or of another kind.

    An opcode that does not exist, or not in the profile, is reported with this code too.
    """
    least, most = use.spec.least, len(use.spec.operands)
    if not least <= len(use.types) <= most:
        wanted = str(most) if least == most else f"{least} to {most}"
        yield f"`{use.opcode}` has {len(use.types)} operands, expected {wanted}"
    for spec in use.spec.attributes:
        if spec.is_required and spec.name not in use.attributes:
            yield f"`{use.opcode}` lacks the attribute `{spec.name}`"
    known = [spec.name for spec in use.spec.attributes]
    for name, value in use.attributes.items():
        found = use.spec.attribute(name)
        if found is None:
            hint = did_you_mean(name, known)
            yield f"`{use.opcode}` has no attribute {quoted(name)}{'; ' + hint if hint else ''}"
        elif not is_of_kind(found, value):
            yield f"attribute `{name}` of `{use.opcode}` is not {KINDS[found.kind]}"


KINDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "`true` or `false`",
    "string": "a string in quotes",
    "word": "a word",
    "dtype": "an element type",
    "ints": "a list of integers",
    "floats": "a list of numbers",
    "data": "a number or nested lists of numbers",
    "padding": "`Valid`, `Same` or `Custom([[t, b], [l, r]])`",
}


def is_of_kind(spec: AttributeSpec, value: object) -> bool:
    """Whether a value is of the kind that an attribute asks for."""
    kind = spec.kind
    if kind == "bool":
        return isinstance(value, bool)
    if kind in ("word", "dtype"):
        return isinstance(value, Word)
    if kind == "string":
        return isinstance(value, str) and not isinstance(value, Word)
    if kind == "padding":
        return isinstance(value, Word | Custom)
    if kind == "data":
        return isinstance(value, Literal | tuple | bool | int | float)
    if isinstance(value, bool):
        return False
    if kind == "int":
        return isinstance(value, int)
    if kind == "float":
        return isinstance(value, int | float)
    allowed = (int,) if kind == "ints" else (int, float)
    return isinstance(value, tuple) and all(
        isinstance(item, allowed) and not isinstance(item, bool) for item in value
    )


@use_rule("MOD11", "declared-type", _MODEL)
def declared_type(use: Use) -> Iterator[str]:
    """The declared result type is not the one that follows from operands and attributes."""
    inferred = use.spec.infer(use.types, use.attributes)
    if inferred is not None and inferred != use.type:
        yield f"`{use.opcode}` gives {inferred}, declared {use.type}"


@use_rule("MOD12", "dimensions-positive", "Verification 3")
def dimensions_positive(use: Use) -> Iterator[str]:
    """A dimension of a tensor is zero or negative, or a tensor has more elements than 2^63 - 1."""
    if any(dim <= 0 for dim in use.type.shape):
        yield f"{use.type} has a dimension that is not positive"
        return
    count = 1
    for dim in use.type.shape:
        count *= dim
    if count >= 1 << 63:
        yield f"{use.type} has more elements than 2^63 - 1"


@use_rule("MOD13", "element-type", "Instruction set and semantics")
def element_type(use: Use) -> Iterator[str]:
    """The element type is not one of the profile's: `i32`, `i64`, `f32` and `f64` in `core-v1`."""
    if use.profile == "core-v1" and use.type.dtype not in V1_TYPES:
        yield f"`{use.type.dtype}` is no element type of `core-v1`"
