"""CON01-CON07: constants, and whether a literal is what it is declared to be."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES, ElementType
from nacre.base.excerpt import backquote
from nacre.core.module import Shape, TensorType
from nacre.core.rules.facts import OperationFacts, operation_rule
from nacre.core.rules.signature import count_text, is_bounded, shape_text, type_text
from nacre.core.rules.signature import element_count as elements_of
from nacre.core.values import Literal, Word

_CONSTANTS = "Constants"
_I64 = GRAPH_TYPES["i64"]


@operation_rule("CON01", "const-i64", _CONSTANTS, "ConstI64")
def const_i64(facts: OperationFacts) -> Iterator[str]:
    """A ConstI64 is not declared `tensor<i64[]>`, or its value is no integer of 64 bits."""
    value = facts.attributes.get("value")
    if type(value) is not int:
        yield f"the value of `ConstI64` is {short_text(value)}, expected an integer"
    elif not _I64.lowest <= value <= _I64.highest:
        yield f"the value {short_text(value)} of `ConstI64` is outside of -2^63 to 2^63 - 1"
    yield from _scalar_of(facts, "i64")


@operation_rule("CON02", "const-f32", _CONSTANTS, "ConstF32")
def const_f32(facts: OperationFacts) -> Iterator[str]:
    """A ConstF32 is not declared `tensor<f32[]>`."""
    yield from _scalar_of(facts, "f32")


@operation_rule("CON03", "const-f64", _CONSTANTS, "ConstF64")
def const_f64(facts: OperationFacts) -> Iterator[str]:
    """A ConstF64 is not declared `tensor<f64[]>`."""
    yield from _scalar_of(facts, "f64")


def _scalar_of(facts: OperationFacts, dtype: str) -> Iterator[str]:
    if facts.type != TensorType(dtype):
        yield f"`{facts.opcode}` is declared {type_text(facts.type)}, expected {TensorType(dtype)}"


@operation_rule("CON04", "element-count", _CONSTANTS, "ConstTensor")
def element_count(facts: OperationFacts) -> Iterator[str]:
    """A ConstTensor has more or fewer elements than its shape asks for."""
    nested, declared = literal_shape(facts.attributes.get("data")), facts.ints("shape")
    if nested is None or declared is None or _is_as_large(nested, declared):
        return
    wanted = count_text(elements_of(declared))
    yield (
        f"the data has {elements_of(nested)} elements, "
        f"expected {wanted} for shape {shape_text(declared)}"
    )


@operation_rule("CON05", "element-value", _CONSTANTS, "ConstTensor", "ConstF32", "ConstF64")
def element_value(facts: OperationFacts) -> Iterator[str]:
    """An element of a literal is no value of its type: `1.5` or 2^40 in an `i32`."""
    if facts.opcode != "ConstTensor":
        value = facts.attributes.get("value")
        if not is_value_of(value, GRAPH_TYPES[facts.opcode.removeprefix("Const").lower()]):
            yield f"the value {short_text(value)} is out of range for `{facts.opcode}`"
        return
    element = GRAPH_TYPES.get(str(facts.attributes.get("dtype")))
    data = facts.attributes.get("data")
    if element is None:
        return
    if isinstance(data, Literal):
        if data.dtype != element.dtype:
            yield f"the data is an array of {data.dtype}, expected `{element.name}`"
        return
    for position, value in enumerate(flat_elements(data)):
        if not is_value_of(value, element):
            yield f"element {position} of the data is {short_text(value)}, no `{element.name}`"
            return


@operation_rule("CON06", "literal-nesting", _CONSTANTS, "ConstTensor")
def literal_nesting(facts: OperationFacts) -> Iterator[str]:
    """A literal is nested otherwise than its shape says, or its rows differ in length.

    Flat data for a shape of two or more axes is such a literal.
    """
    nested, declared = literal_shape(facts.attributes.get("data")), facts.ints("shape")
    if declared is None:
        return
    if nested is None:
        yield f"the rows of the data differ in length, expected shape {shape_text(declared)}"
    elif nested != declared and _is_as_large(nested, declared):
        yield f"the data has shape {shape_text(nested)}, expected {shape_text(declared)}"


@operation_rule("CON07", "literal-type", _CONSTANTS, "ConstTensor")
def literal_type(facts: OperationFacts) -> Iterator[str]:
    """`dtype` or `shape` of a ConstTensor is missing, or differs from the declared type."""
    dtype, shape = facts.attributes.get("dtype"), facts.attributes.get("shape")
    if dtype is None:
        yield "`ConstTensor` lacks the attribute `dtype`"
    elif not isinstance(dtype, Word):
        yield f"attribute `dtype` of `ConstTensor` is {short_text(dtype)}, expected an element type"
    elif dtype != facts.type.dtype:
        declared = type_text(facts.type)
        yield f"attribute `dtype` is {backquote(dtype)}, the declared type is {declared}"
    if shape is None:
        yield "`ConstTensor` lacks the attribute `shape`"
        return
    known = facts.ints("shape")
    if known is None:
        yield "attribute `shape` of `ConstTensor` is not a list of integers"
    elif known != facts.type.shape:
        declared = type_text(facts.type)
        yield f"attribute `shape` is {shape_text(known)}, the declared type is {declared}"


def _is_as_large(found: Shape, declared: Shape) -> bool:
    return elements_of(found) == elements_of(declared)


def literal_shape(data: object) -> Shape | None:
    """The shape of a literal; None where its rows differ in length."""
    if isinstance(data, Literal):
        return data.shape
    shape: list[int] = []
    level: list[Any] = [data]
    while any(isinstance(item, tuple) for item in level):
        lengths = {len(item) if isinstance(item, tuple) else -1 for item in level}
        if len(lengths) > 1:
            return None
        shape.append(lengths.pop())
        level = [part for item in level for part in item]
    return tuple(shape)


def flat_elements(data: object) -> Iterator[object]:
    """The elements of nested tuples, in order."""
    waiting: list[Iterator[object]] = [iter((data,))]
    while waiting:
        item = next(waiting[-1], _END)
        if item is _END:
            waiting.pop()
        elif isinstance(item, tuple):
            waiting.append(iter(item))
        else:
            yield item


_END = object()


def is_value_of(value: object, element: ElementType) -> bool:
    """Whether a literal's element can be stored in a type."""
    if isinstance(value, bool):
        return element.kind == "bool"
    if element.kind == "bool" or not isinstance(value, int | float):
        return False
    if element.is_integer:
        return isinstance(value, int) and element.lowest <= value <= element.highest
    try:
        wide = float(value)
    except OverflowError:
        return False
    if not isfinite(wide):
        return True
    # Rounded, not compared: the shortest digits of the largest f32 are above it as a double.
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = float(np.array(wide).astype(element.dtype))
    return isfinite(rounded)


def short_text(value: object) -> str:
    """A value for a message, short whatever it is."""
    if isinstance(value, int) and not is_bounded(value):
        return "(an integer of more than 40 digits)"
    if isinstance(value, str):
        return backquote(value)
    return str(value) if isinstance(value, int | float) else f"a {type(value).__name__}"
