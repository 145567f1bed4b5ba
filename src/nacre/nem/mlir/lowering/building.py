"""Operations and attributes of the dialect, made in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region

from nacre.base.diagnostics import InternalError
from nacre.nem.mlir.dialect import (
    ATTRIBUTE_CLASSES,
    OPERATION_CLASSES,
    TYPE_CLASSES,
    NemOperation,
    TerminatorOp,
)
from nacre.nem.mlir.signatures import SEGMENTS, SIGNATURES, segment_sizes
from nacre.nem.spec.opcodes import OPCODES

Given = Mapping[str, Any]  # attributes as values of Python, or as attributes


def as_attribute(value: Any) -> Attribute:  # noqa: ANN401 - what Python has for it
    """An integer, a string, or a list of such as an attribute."""
    match value:
        case int():
            return IntegerAttr(value, 64)
        case str():
            return StringAttr(value)
        case list():
            return ArrayAttr([as_attribute(item) for item in value])
        case None:
            return UnitAttr()
        case Attribute():
            return value
    raise InternalError(f"{value!r} is no attribute")


def attribute(name: str, *parameters: Any) -> Attribute:  # noqa: ANN401
    """An attribute of the dialect."""
    return ATTRIBUTE_CLASSES[name].new([as_attribute(parameter) for parameter in parameters])


def weighted_sum(terms: Mapping[str, int], constant: int) -> Attribute:
    """`(i * 64) + (j * 2) + 128`; parentheses keep readers from reading from left to right."""
    products = [_product(name, factor) for name, factor in terms.items() if factor]
    if len(products) > 1 or (products and constant):
        products = [attribute("paren", term) for term in products]
    if constant or not products:
        products.append(as_attribute(constant))
    total = products[0]
    for term in products[1:]:
        total = attribute("plus", total, term)
    return total


def _product(name: str, factor: int) -> Attribute:
    return attribute("times", attribute("name", name), factor)


def operation(
    name: str,
    values: Given,
    operands: Sequence[Any] = (),
    *,
    result: str | None = None,
    body: Sequence[Operation] = (),
) -> NemOperation:
    """An operation of the dialect; one with a body gets what ends it."""
    attributes = {key: as_attribute(value) for key, value in values.items()}
    regions = []
    if SIGNATURES[name].has_body:
        regions.append(Region(Block([*body, TerminatorOp()])))
    op: NemOperation = OPERATION_CLASSES[name].create(
        operands=list(operands),
        result_types=[] if result is None else [TYPE_CLASSES[result]()],
        attributes=attributes,
        regions=regions,
    )
    return op


def task(
    opcode: str,
    token: str,
    regions: tuple[Sequence[Any], Sequence[Any]],
    deps: Sequence[Any],
    values: Given,
) -> NemOperation:
    """An asynchronous task of an opcode, with its inputs and outputs."""
    inputs, outputs = regions
    every: dict[str, Any] = {"token": token, "form": "async", **values}
    row = OPCODES[opcode]
    if SIGNATURES[opcode].has_segments:
        sizes = [
            *(segment_sizes(row.inputs, len(inputs)) or ()),
            *(segment_sizes(row.outputs, len(outputs)) or ()),
            len(deps),
        ]
        every[SEGMENTS] = DenseArrayBase.from_list(i32, sizes)
    return operation(opcode, every, [*inputs, *outputs, *deps], result="token")
