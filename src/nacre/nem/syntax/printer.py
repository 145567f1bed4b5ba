"""The canonical text of a node, on one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from nacre.nem.syntax.ast import (
    Attribute,
    Binary,
    BoolLit,
    BufferDecl,
    Compressed,
    Compute,
    ConstDecl,
    Copy,
    Decorator,
    FloatLit,
    IntLit,
    LetDecl,
    ListLit,
    Loop,
    MemLevel,
    NameRef,
    Negated,
    Operand,
    Paren,
    Quant,
    RegionDecl,
    RegionExpr,
    StringLit,
    TypeAttrs,
    UnitRef,
    Value,
    VariantRef,
    Wait,
)


def value_text(node: Value | UnitRef) -> str:
    """An expression or value."""
    match node:
        case NameRef(name=name):
            return name
        case IntLit(value=value):
            return str(value)
        case FloatLit(text=text):
            return text
        case Binary(op=op, left=left, right=right):
            return f"{value_text(left)} {op} {value_text(right)}"
        case Paren(inner=inner):
            return f"({value_text(inner)})"
        case Negated(operand=operand):
            return f"-{value_text(operand)}"
        case StringLit(value=text):
            return string_text(text)
        case BoolLit(value=flag):
            return "true" if flag else "false"
        case ListLit(items=items):
            return f"[{', '.join(value_text(item) for item in items)}]"
        case RegionExpr():
            return region_text(node)
        case UnitRef(unit=unit, index=index):
            return f"{unit.name}[{value_text(index)}]"
        case _:
            assert_never(node)


def string_text(text: str) -> str:
    """A string with its quotes and escapes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def region_text(node: RegionExpr) -> str:
    """A region with its type attributes."""
    bounds = region_bounds(node)
    return bounds if node.type is None else f"{bounds} {region_type_text(node.type)}"


def region_bounds(node: RegionExpr) -> str:
    """A region without its type attributes."""
    return f"region({node.buffer.name}, {value_text(node.offset)}, {value_text(node.extent)})"


def region_type_text(node: TypeAttrs | Compressed) -> str:
    """The type of a region, and how it is compressed."""
    if isinstance(node, Compressed):
        return f"{type_text(node.plain)}{compressed_suffix(node)}"
    return type_text(node)


def compressed_suffix(node: Compressed) -> str:
    """What stands behind the type of a region that is compressed."""
    parts = [("bits", node.bits), ("tables", node.tables)]
    given = ", ".join(f"{name}={value_text(value)}" for name, value in parts if value is not None)
    return f", compressed={node.form}{f'({given})' if given else ''}"


def type_text(node: TypeAttrs) -> str:
    """`elem=.., shape=.., layout=..` and `quant=..` where there is one."""
    parts = type_parts(node)
    if node.quant is not None:
        parts.append(f"quant={quant_text(node.quant)}")
    return ", ".join(parts)


def type_parts(node: TypeAttrs) -> list[str]:
    """The type attributes but `quant`."""
    parts = [] if node.name is None else [f"type={node.name.name}"]
    if node.elem is not None:
        parts.append(f"elem={node.elem.name}")
    if node.shape is not None:
        parts.append(f"shape={value_text(node.shape)}")
    if node.layout is not None:
        parts.append(f"layout={node.layout.name}")
    if node.strides is not None:
        parts.append(f"strides={value_text(node.strides)}")
    return parts


def quant_parts(node: Quant) -> list[tuple[str, Value]]:
    """The arguments of a quantisation descriptor, in order."""
    plural = "" if node.form == "per_tensor" else "s"
    pairs: list[tuple[str, Value | None]] = [
        ("axis", node.axis),
        ("group_size", node.group_size),
        (f"scale{plural}", node.scales),
        (f"zero_point{plural}", node.zero_points),
    ]
    return [(name, value) for name, value in pairs if value is not None]


def quant_text(node: Quant | NameRef) -> str:
    """A quantisation descriptor, or the name of one."""
    if isinstance(node, NameRef):
        return node.name
    parts = ", ".join(f"{name}={value_text(value)}" for name, value in quant_parts(node))
    return f"{node.form}({parts})"


def decorator_text(node: Decorator) -> str:
    """`@name` or `@name(args)`."""
    if node.args is None:
        return f"@{node.name.name}"
    return f"@{node.name.name}({', '.join(value_text(arg) for arg in node.args)})"


def decorators_text(nodes: Iterable[Decorator]) -> str:
    """All of them, each with a blank before it."""
    return "".join(f" {decorator_text(node)}" for node in nodes)


def operand_text(node: Operand) -> str:
    """A name or a region, with decorators."""
    return value_text(node.value) + decorators_text(node.decorators)


def operands_text(nodes: Iterable[Operand]) -> str:
    """A list of operands."""
    return ", ".join(operand_text(node) for node in nodes)


def names_text(nodes: Iterable[NameRef]) -> str:
    """A list of names."""
    return ", ".join(node.name for node in nodes)


def attribute_text(node: Attribute) -> str:
    """`name=value`."""
    return f"{node.name.name}={value_text(node.value)}"


def task_head(node: Copy | Compute) -> str:
    """`token = opcode.form`."""
    token = f"{node.token.name} = " if node.token is not None else ""
    return f"{token}{node.op.name}.{'sync' if node.is_sync else 'async'}"


def copy_arguments(node: Copy) -> list[tuple[str, Operand]]:
    """`dst` and `src`, those that are there."""
    pairs = (("dst", node.dst), ("src", node.src))
    return [(name, operand) for name, operand in pairs if operand is not None]


def _level_text(node: MemLevel) -> str:
    return node.name if node.index is None else f"{node.name}[{value_text(node.index)}]"


def _buffer_text(node: BufferDecl) -> str:
    properties = []
    if node.size is not None:
        properties.append(f"size={value_text(node.size)}")
    if node.align is not None:
        properties.append(f"align={node.align.value}")
    level = _level_text(node.level) if node.level is not None else ""
    return f"buffer {node.name.name} : {level} ({', '.join(properties)})"


def _copy_text(node: Copy) -> str:
    arguments = [f"{name}={operand_text(operand)}" for name, operand in copy_arguments(node)]
    if node.deps:
        arguments.append(f"deps=[{names_text(node.deps)}]")
    return f"{task_head(node)}({', '.join(arguments)})"


def _compute_text(node: Compute) -> str:
    parts = [task_head(node), f"in {operands_text(node.inputs)}",
             f"out {operands_text(node.outputs)}"]  # fmt: skip
    if node.deps:
        parts.append(f"deps=[{names_text(node.deps)}]")
    parts += [attribute_text(attribute) for attribute in node.attributes]
    return " ".join(parts)


def _bound_text(node: Value | Quant | TypeAttrs) -> str:
    if isinstance(node, TypeAttrs):
        return type_text(node)
    return quant_text(node) if isinstance(node, Quant) else value_text(node)


SimpleStmt = BufferDecl | RegionDecl | LetDecl | ConstDecl | Copy | Wait | Compute


def statement_text(node: SimpleStmt) -> str:
    """A statement other than a loop."""
    match node:
        case BufferDecl():
            return _buffer_text(node) + decorators_text(node.decorators)
        case RegionDecl():
            head = f"{node.name.name} = {region_text(node.region)}"
            return head + decorators_text(node.decorators)
        case LetDecl():
            head = f"let {node.name.name} = {_bound_text(node.value)}"
            return head + decorators_text(node.decorators)
        case ConstDecl():
            return f"const {node.name.name} = {value_text(node.value)}"
        case Copy():
            return _copy_text(node) + decorators_text(node.decorators)
        case Wait():
            return f"wait({names_text(node.tokens)})"
        case Compute():
            return _compute_text(node) + decorators_text(node.decorators)
        case _:
            assert_never(node)


def loop_header(node: Loop) -> str:
    """`loop i in [a..b] @deco:`."""
    variable = node.variable.name if node.variable is not None else ""
    first = value_text(node.first) if node.first is not None else ""
    last = value_text(node.last) if node.last is not None else ""
    return f"loop {variable} in [{first}..{last}]{decorators_text(node.decorators)}:"


def variant_text(node: VariantRef) -> str:
    """`family<types>.variant`, the form that every table and message uses."""
    return variant_id(node.family, tuple(t.name for t in node.types or ()), node.variant)


def variant_id(family: str, types: tuple[str, ...], variant: str) -> str:
    """The canonical name of a variant: `quantize<f16, i8>.default`."""
    return f"{family}<{', '.join(types)}>.{variant}" if types else f"{family}.{variant}"
