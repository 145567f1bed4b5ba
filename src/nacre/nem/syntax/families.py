"""Type families: which element types an opcode's operands may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nacre.nem.spec.rules.document import DOC19
from nacre.nem.syntax.ast import (
    AttributeBinding,
    Conformance,
    NameRef,
    Node,
    OperandBinding,
    TypeFamily,
    TypeParam,
    VariantDecl,
)
from nacre.nem.syntax.cursor import Cursor
from nacre.nem.syntax.regions import element_type

AnyNode = TypeVar("AnyNode", bound=Node)


def type_family(c: Cursor) -> TypeFamily:
    """`type_family NAME<T: {..}> { bindings variants: ... }`."""
    start = c.start()
    c.i += 1
    name = _dotted_name(c)
    params = _parameters(c) if c.texts[c.i] == "<" else ()
    c.expect("{")
    operands: list[OperandBinding] = []
    attributes: list[AttributeBinding] = []
    while c.texts[c.i] != "variants" or c.texts[c.i + 1] != ":":
        if c.texts[c.i + 1] == ":":
            operands.append(_operand_binding(c))
        elif c.texts[c.i + 1] == "=":
            attributes.append(_attribute_binding(c))
        else:
            expected = "an operand binding, an attribute binding or `variants:`"
            c.fail_here(DOC19, f"expected {expected}, found {c.describe()}")
    variants_start = c.start()
    c.i += 2
    variants = []
    while c.texts[c.i] != "}":
        variants.append(_variant(c))
    c.i += 1
    return TypeFamily(
        start,
        c.last_end(),
        name,
        params,
        tuple(operands),
        tuple(attributes),
        tuple(variants),
        variants_start,
    )


def _dotted_name(c: Cursor) -> NameRef:
    text = c.texts[c.i]
    parts = text.split(".")
    is_name = len(parts) <= 2 and all(part.isidentifier() for part in parts)
    if not is_name or c.texts[c.i + 1] == "=" or c.at_next_statement():
        c.fail_expected("a family's name: one or two words joined by a dot")
    start = c.start()
    c.i += 1
    return NameRef(start, start + len(text), text)


def read_separated(
    c: Cursor, closing: str, item: Callable[[Cursor], AnyNode]
) -> tuple[AnyNode, ...]:
    """One or more items with commas between them, up to and with the closing mark."""
    items = [item(c)]
    while c.texts[c.i] == ",":
        c.i += 1
        items.append(item(c))
    if c.texts[c.i] != closing:
        c.fail_expected(f"`,` or `{closing}`")
    c.i += 1
    return tuple(items)


def element_name(c: Cursor) -> NameRef:
    """An element type; one that does not exist is reported and kept by its name."""
    at = c.i
    known = element_type(c)
    if known is not None:
        return known
    start = c.starts[at]
    return NameRef(start, start + len(c.texts[at]), c.texts[at])


def _parameters(c: Cursor) -> tuple[TypeParam, ...]:
    c.i += 1
    return read_separated(c, ">", _parameter)


def _parameter(c: Cursor) -> TypeParam:
    name = c.name("a type parameter")
    c.expect(":", "the type parameter")
    c.expect("{")
    types = read_separated(c, "}", element_name)
    return TypeParam(name.start, c.last_end(), name, types)


def _operand_binding(c: Cursor) -> OperandBinding:
    operand = c.name("an operand")
    c.expect(":", "the operand")
    bound = c.name("an element type, a type parameter or `absent`")
    return OperandBinding(operand.start, bound.end, operand, bound)


def _attribute_binding(c: Cursor) -> AttributeBinding:
    name = c.name("an attribute")
    c.i += 1
    value = c.name("an element type, `required` or `absent`")
    on = None
    if c.texts[c.i] == "on" and c.texts[c.i + 1] not in (":", "="):
        c.i += 1
        on = c.name("an operand after `on`")
    return AttributeBinding(name.start, c.last_end(), name, value, on)


def _variant(c: Cursor) -> VariantDecl:
    name = c.name("a variant's name or `}`")
    c.expect(":", "the variant's name")
    c.expect("{")
    operands = []
    while c.texts[c.i] != "}":
        operands.append(_operand_binding(c))
    c.i += 1
    if c.texts[c.i] != "conformance":
        c.fail_expected("`conformance:` after the variant's bindings")
    c.i += 1
    c.expect(":", "`conformance`")
    c.expect("{")
    entries = []
    while c.texts[c.i] != "}":
        entries.append(_conformance(c))
    c.i += 1
    return VariantDecl(name.start, c.last_end(), name, tuple(operands), tuple(entries))


def _conformance(c: Cursor) -> Conformance:
    level = c.name("`MUST`, `MAY` or `}`")
    if level.name not in ("MUST", "MAY"):
        c.i -= 1
        c.fail(DOC19, f"a conformance class is `MUST` or `MAY`, found {c.describe()}")
    types: tuple[NameRef, ...] = ()
    if c.texts[c.i] == "<":
        c.i += 1
        types = read_separated(c, ">", element_name)
    return Conformance(level.start, c.last_end(), level, types)
