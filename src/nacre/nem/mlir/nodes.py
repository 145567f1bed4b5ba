"""Attributes of the dialect as values of the tree; places are left open.

Reading is verifying: an attribute that is no value of the language raises `MalformedError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute as MlirAttribute
from xdsl.ir import ParametrizedAttribute

from nacre.base.terms import INT64_MIN
from nacre.nem.mlir.kinds import OPERATORS
from nacre.nem.mlir.signatures import ORDER
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax.ast import (
    Attribute,
    Binary,
    BoolLit,
    Compressed,
    Decorator,
    Expr,
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

Read = TypeVar("Read")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_SYMBOLS = {name: symbol for symbol, name in OPERATORS.items()}
_TIGHT = frozenset({"*", "/", "mod"})


class MalformedError(Exception):
    """An attribute that is no value of the language."""


def parameters(attribute: MlirAttribute) -> tuple[Any, ...]:
    """The parameters of an attribute of ours."""
    return attribute.parameters if isinstance(attribute, ParametrizedAttribute) else ()


def string_of(attribute: MlirAttribute) -> str:
    """A string; NEM has no line ends in any."""
    text = attribute.data if isinstance(attribute, StringAttr) else _decode(attribute)
    if "\n" in text:
        raise MalformedError(f"{attribute} has a line end")
    return text


def _decode(attribute: MlirAttribute) -> str:
    """A string that was written with bytes by their numbers, as xDSL has it."""
    try:
        return attribute.data.decode() if isinstance(attribute, BytesAttr) else _refuse(attribute)
    except UnicodeDecodeError:
        return _refuse(attribute)


def _refuse(attribute: MlirAttribute) -> str:
    raise MalformedError(f"{attribute} is no string in UTF-8")


def word_of(attribute: MlirAttribute, pattern: re.Pattern[str] = _WORD) -> NameRef:
    """A name."""
    text = string_of(attribute)
    if pattern.fullmatch(text) is None:
        raise MalformedError(f"{attribute} is no name")
    return NameRef(0, 0, text)


def dotted_of(attribute: MlirAttribute) -> NameRef:
    """A name that may have dots."""
    return word_of(attribute, _DOTTED)


def list_of(attribute: MlirAttribute, item: Callable[[MlirAttribute], Read]) -> tuple[Read, ...]:
    """The members of an array."""
    if not isinstance(attribute, ArrayAttr):
        raise MalformedError(f"{attribute} is no array")
    return tuple(map(item, attribute.data))


def words_of(attribute: MlirAttribute) -> tuple[NameRef, ...]:
    """An array of names."""
    return list_of(attribute, word_of)


def integer_of(attribute: MlirAttribute) -> IntLit:
    """An integer literal, with its sign."""
    if not isinstance(attribute, IntegerAttr) or attribute.type != IntegerType(64):
        raise MalformedError(f"{attribute} is no integer of 64 bits")
    return IntLit(0, 0, int(attribute.value.data))


def expression_of(attribute: MlirAttribute) -> Expr:
    """An expression; parentheses are added where the tree needs them and has none."""
    match attribute.name:
        case "integer":
            number = integer_of(attribute)
            is_literal = number.value >= 0 or number.value == INT64_MIN
            return number if is_literal else Negated(0, 0, IntLit(0, 0, -number.value))
        case "nem.name":
            return word_of(parameters(attribute)[0])
        case "nem.float":
            return _float_of(parameters(attribute)[0])
        case "nem.paren":
            return Paren(0, 0, expression_of(parameters(attribute)[0]))
        case "nem.negated":
            operand = expression_of(parameters(attribute)[0])
            return Negated(0, 0, _group(operand, isinstance(operand, Binary)))
    symbol = _SYMBOLS.get(attribute.name.removeprefix("nem."))
    if symbol is None:
        raise MalformedError(f"{attribute} is no expression")
    left, right = map(expression_of, parameters(attribute))
    is_tight = symbol in _TIGHT
    return Binary(
        0,
        0,
        symbol,
        _group(left, is_tight and _is_loose(left)),
        _group(right, isinstance(right, Binary) and (is_tight or _is_loose(right))),
    )


def _is_loose(node: Expr) -> bool:
    return isinstance(node, Binary) and node.op not in _TIGHT


def _group(node: Expr, is_needed: bool) -> Expr:
    return Paren(0, 0, node) if is_needed else node


def _float_of(attribute: MlirAttribute) -> FloatLit:
    literal = FloatLit(0, 0, string_of(attribute))
    if not literal.is_well_formed:
        raise MalformedError(f"{attribute} is no float")
    return literal


def value_of(attribute: MlirAttribute) -> Value:
    """A value."""
    match attribute:
        case StringAttr() | BytesAttr():
            return StringLit(0, 0, string_of(attribute))
        case ArrayAttr():
            return ListLit(0, 0, list_of(attribute, value_of))
        case IntegerAttr() if attribute.type == IntegerType(1):
            return BoolLit(0, 0, bool(attribute.value.data))
    return _area_of(attribute) if attribute.name == "nem.area" else expression_of(attribute)


def numbers_of(attribute: MlirAttribute) -> ListLit | NameRef:
    """A list of expressions, or the name of one."""
    if isinstance(attribute, ArrayAttr):
        return ListLit(0, 0, list_of(attribute, expression_of))
    name = expression_of(attribute)
    if not isinstance(name, NameRef):
        raise MalformedError(f"{attribute} is neither a list nor a name")
    return name


def _area_of(attribute: MlirAttribute) -> RegionExpr:
    buffer, offset, extent, type_ = parameters(attribute)
    return region_of(word_of(buffer), offset, extent, None if _is_absent(type_) else type_)


def region_of(
    buffer: NameRef, offset: MlirAttribute, extent: MlirAttribute, type_: MlirAttribute | None
) -> RegionExpr:
    """A region of a buffer."""
    read = None if type_ is None else _region_type_of(type_)
    return RegionExpr(0, 0, buffer, expression_of(offset), expression_of(extent), read)


def _is_absent(attribute: MlirAttribute) -> bool:
    return isinstance(attribute, UnitAttr)


def _region_type_of(attribute: MlirAttribute) -> TypeAttrs | Compressed:
    """The type of a region, compressed or not."""
    match attribute.name:
        case "nem.sparse":
            (plain,) = parameters(attribute)
            return Compressed(0, 0, tensor_of(plain), "sparse", None, None)
        case "nem.palette":
            plain, bits, tables = parameters(attribute)
            count = None if _is_absent(tables) else integer_of(tables)
            return Compressed(0, 0, tensor_of(plain), "palette", integer_of(bits), count)
    return tensor_of(attribute)


def tensor_of(attribute: MlirAttribute) -> TypeAttrs:
    """Type attributes."""
    given = parameters(attribute)
    quant = quant_of(given[-1])
    match attribute.name:
        case "nem.alias":
            return TypeAttrs(0, 0, None, None, None, None, quant, word_of(given[0]))
        case "nem.dense":
            layout = word_of(given[2])
            return TypeAttrs(0, 0, word_of(given[0]), numbers_of(given[1]), layout, None, quant)
        case "nem.strided":
            strides = numbers_of(given[2])
            return TypeAttrs(0, 0, word_of(given[0]), numbers_of(given[1]), None, strides, quant)
    raise MalformedError(f"{attribute} is no type of a region")


def quant_of(attribute: MlirAttribute) -> Quant | NameRef | None:
    """A quantisation, the name of one, or none."""
    if _is_absent(attribute):
        return None
    if attribute.name == "nem.name":
        return word_of(parameters(attribute)[0])
    return descriptor_of(attribute)


def descriptor_of(attribute: MlirAttribute) -> Quant:
    """A quantisation that is written out."""
    *integers, scales, zero_points = parameters(attribute)
    axis, group = [*map(integer_of, integers), None, None][:2]
    read = _scales_of(scales), _scales_of(zero_points)
    return Quant(0, 0, attribute.name.removeprefix("nem."), axis, group, *read)


def _scales_of(attribute: MlirAttribute) -> Value:
    is_list = isinstance(attribute, ArrayAttr)
    return numbers_of(attribute) if is_list else expression_of(attribute)


def bound_of(attribute: MlirAttribute) -> Value | Quant | TypeAttrs:
    """What a `let` names."""
    read = _BOUND.get(attribute.name)
    return value_of(attribute) if read is None else read(attribute)


_BOUND: Mapping[str, Callable[[MlirAttribute], Any]] = MappingProxyType(
    {
        **dict.fromkeys(("nem.per_tensor", "nem.per_channel", "nem.per_group"), descriptor_of),
        **dict.fromkeys(("nem.dense", "nem.strided", "nem.alias"), tensor_of),
    }
)


def decorators_of(attribute: MlirAttribute | None) -> tuple[Decorator, ...]:
    """An array of decorators; none where there is no such attribute."""
    return () if attribute is None else list_of(attribute, _decorator_of)


def _decorator_of(attribute: MlirAttribute) -> Decorator:
    if attribute.name != "nem.decorator":
        raise MalformedError(f"{attribute} is no decorator")
    name, arguments = parameters(attribute)
    read = None if _is_absent(arguments) else list_of(arguments, _argument_of)
    return Decorator(0, 0, word_of(name), read)


def _argument_of(attribute: MlirAttribute) -> Value | UnitRef:
    if attribute.name != "nem.unit":
        return value_of(attribute)
    unit, index = parameters(attribute)
    return UnitRef(0, 0, word_of(unit), expression_of(index))


def attributes_of(attribute: MlirAttribute) -> tuple[Attribute, ...]:
    """An array of a task's attributes."""
    return list_of(attribute, _attribute_of)


def _attribute_of(attribute: MlirAttribute) -> Attribute:
    if attribute.name != "nem.attribute":
        raise MalformedError(f"{attribute} is no attribute of a task")
    name, value = parameters(attribute)
    return Attribute(0, 0, word_of(name), value_of(value))


def task_attributes(kind: str, entries: Mapping[str, MlirAttribute]) -> tuple[Attribute, ...]:
    """The attributes of a task, in the order in which they were written."""
    more = attributes_of(entries["attributes"]) if "attributes" in entries else ()
    if kind not in OPCODES:
        return more
    known = [
        Attribute(0, 0, NameRef(0, 0, spec.name), value_of(entries[spec.name]))
        for spec in OPCODES[kind].attributes
        if spec.name in entries
    ]
    order = list_of(entries[ORDER], string_of) if ORDER in entries else ()
    # A stable sort: what the order does not name stays behind the rest.
    rank = {name: at for at, name in enumerate(order)}
    return tuple(sorted([*known, *more], key=lambda a: rank.get(a.name.name, len(rank))))
