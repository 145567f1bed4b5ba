"""Values of the tree as attributes of the dialect, in text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from nacre.base.diagnostics import InternalError
from nacre.nem.mlir.kinds import OPERATORS
from nacre.nem.syntax.ast import (
    Attribute,
    Binary,
    BoolLit,
    Compressed,
    Decorator,
    FloatLit,
    IntLit,
    ListLit,
    NameRef,
    Negated,
    Paren,
    Quant,
    RegionExpr,
    StringLit,
    TypeAttrs,
    UnitRef,
    Value,
)

_PLAIN = re.compile(r"[ !#-\[\]-~]*", re.ASCII)


def quote(text: str) -> str:
    """A string as MLIR writes it: what is not ASCII as bytes of UTF-8, by their numbers."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    raw = text.encode("utf-8", "surrogatepass")
    return f'"{"".join(map(_escape, raw))}"'


def _escape(byte: int) -> str:
    character = chr(byte)
    if character == "\\":
        return "\\\\"
    return character if " " <= character <= "~" and character != '"' else f"\\{byte:02X}"


def strings(texts: Iterable[str]) -> str:
    """An array of strings."""
    return f"[{', '.join(map(quote, texts))}]"


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    return f'#nem.name<"{name}">'


def value_attribute(node: Value | UnitRef) -> str:
    """A value: expressions keep their parentheses and floats their digits."""
    match node:
        case IntLit(value=value):
            return str(value)
        case NameRef(name=name):
            return _name(name)
        case Binary(op=op, left=left, right=right):
            return f"#nem.{OPERATORS[op]}<{value_attribute(left)}, {value_attribute(right)}>"
        case Paren(inner=inner):
            return f"#nem.paren<{value_attribute(inner)}>"
        case Negated(operand=operand):
            return f"#nem.negated<{value_attribute(operand)}>"
        case FloatLit(text=text):
            return f'#nem.float<"{text}">'
        case StringLit(value=text):
            return quote(text)
        case BoolLit(value=flag):
            return "true" if flag else "false"
        case ListLit(items=items):
            return f"[{', '.join(map(value_attribute, items))}]"
        case UnitRef(unit=unit, index=index):
            return f'#nem.unit<"{unit.name}", {value_attribute(index)}>'
        case _:
            return _area(node)


def _area(node: RegionExpr) -> str:
    bounds = f"{value_attribute(node.offset)}, {value_attribute(node.extent)}"
    type_ = "unit" if node.type is None else region_type_attribute(node.type)
    return f'#nem.area<"{node.buffer.name}", {bounds}, {type_}>'


def quant_attribute(node: Quant | NameRef | None) -> str:
    """A quantisation, the name of one, or none."""
    if node is None:
        return "unit"
    if isinstance(node, NameRef):
        return _name(node.name)
    parts = (node.axis, node.group_size, node.scales, node.zero_points)
    return f"#nem.{node.form}<{', '.join(value_attribute(p) for p in parts if p is not None)}>"


def region_type_attribute(node: TypeAttrs | Compressed) -> str:
    """The type of a region, compressed or not."""
    if not isinstance(node, Compressed):
        return type_attribute(node)
    plain = type_attribute(node.plain)
    if node.form == "sparse":
        return f"#nem.sparse<{plain}>"
    if node.bits is None:
        raise InternalError("a palette that lacks a part has been reported")
    tables = "unit" if node.tables is None else str(node.tables.value)
    return f"#nem.palette<{plain}, {node.bits.value}, {tables}>"


def type_attribute(node: TypeAttrs) -> str:
    """Type attributes."""
    quant = quant_attribute(node.quant)
    if node.name is not None:
        return f'#nem.alias<"{node.name.name}", {quant}>'
    if node.elem is None or node.shape is None:
        raise InternalError("a type that lacks a part has been reported")
    head = f'"{node.elem.name}", {value_attribute(node.shape)}'
    if node.strides is not None:
        return f"#nem.strided<{head}, {value_attribute(node.strides)}, {quant}>"
    if node.layout is None:
        raise InternalError("a type that lacks a part has been reported")
    return f'#nem.dense<{head}, "{node.layout.name}", {quant}>'


def bound_attribute(node: Value | Quant | TypeAttrs) -> str:
    """What a `let` names."""
    if isinstance(node, TypeAttrs):
        return type_attribute(node)
    return quant_attribute(node) if isinstance(node, Quant) else value_attribute(node)


def decorators_attribute(nodes: Sequence[Decorator]) -> str:
    """An array of decorators; one without parentheses has `unit` for its arguments."""
    return f"[{', '.join(map(_decorator, nodes))}]"


def _decorator(node: Decorator) -> str:
    arguments = (
        "unit" if node.args is None else f"[{', '.join(value_attribute(arg) for arg in node.args)}]"
    )
    return f'#nem.decorator<"{node.name.name}", {arguments}>'


def attributes_attribute(nodes: Iterable[Attribute]) -> str:
    """Attributes of a task as an array, in their order."""
    return f"[{', '.join(map(_attribute, nodes))}]"


def _attribute(node: Attribute) -> str:
    return f'#nem.attribute<"{node.name.name}", {value_attribute(node.value)}>'
