"""Calls that are known by their names, brought back into a module as `Opaque` operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import Value
from nacre.core.builder import Builder, dtype_name
from nacre.core.module import TensorType
from nacre.core.opaque.arguments import Argument, Operand
from nacre.core.opaque.calls import (
    PARTS,
    ComplexValue,
    OpaqueCall,
    ResultType,
    add_call,
    values_of,
)
from nacre.core.unsupported import Unsupported
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.registry import find_operation, our_operations
from nacre.nac.program.binding import Given
from nacre.nac.program.opaque_lowering import TO_COMPLEX, TO_PAIRS
from nacre.nac.program.operation_calls import COMPLEX, module_result
from nacre.nac.run.interpreter import Operands
from nacre.nac.run.opaque import call_types, is_selection, select_result
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.run.shape_only import shape_only_array

Tensor = Value | ComplexValue


def lift_call(builder: Builder, instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
    """The values of a call; Unsupported where nothing says what it gives."""
    tensors: Sequence[Tensor] = operands.tensors
    if instruction.name == TO_PAIRS and isinstance(tensors[0], ComplexValue):
        return Value(tensors[0].id)
    if instruction.name == TO_COMPLEX and isinstance(tensors[0], Value):
        return _as_complex(builder, tensors[0])
    if is_selection(instruction):
        return select_result(instruction, operands)
    types = [_array_type(builder, tensor) for tensor in tensors]
    shapes = Operands(
        operands.arguments, [shape_only_array(t.dtype, t.shape) for t in types], operands.routes
    )
    found = call_types(instruction, shapes, find_operation(instruction.name))
    if found is None:
        raise Unsupported("nothing says the type of its result; register it with `shape=`")
    types_found = found if isinstance(found, list) else [found]
    unused = _unused_results(instruction)
    results = [
        None if type_ is None or place in unused else _module_result(type_)
        for place, type_ in enumerate(types_found)
    ]
    call = _call(instruction, operands, tuple(results), isinstance(found, list))
    values = values_of(add_call(builder, call, builder.count), results)
    kept = [Value(value) if isinstance(value, int) else value for value in values]
    return kept if call.is_list else kept[0]


def _unused_results(instruction: PreparedInstruction) -> set[int]:
    """The results that nothing used when the file was written."""
    form = instruction.opaque
    results = () if form is None else form.results
    return {place for place, result in enumerate(results) if result is None}


def _as_complex(builder: Builder, value: Value) -> ComplexValue:
    type_ = builder.type_of(value.id)
    if type_.dtype not in COMPLEX or type_.shape[-1:] != (2,):
        raise Unsupported(f"{type_} holds no pairs of floats")
    return ComplexValue(value.id)


def _array_type(builder: Builder, tensor: Tensor) -> ArrayType:
    type_ = builder.type_of(tensor.id)
    if isinstance(tensor, ComplexValue):
        return ArrayType(np.dtype(COMPLEX[type_.dtype]), type_.shape[:-1])
    return ArrayType(GRAPH_TYPES[type_.dtype].dtype, type_.shape)


def _module_result(type_: ArrayType) -> ResultType:
    if type_.dtype.name in PARTS:
        return module_result(type_, type_.dtype.name)
    try:
        return ResultType(TensorType(dtype_name(type_.dtype), type_.shape))
    except ValueError:
        raise Unsupported(f"Core IR has no elements of {type_.dtype}") from None


def _call(
    instruction: PreparedInstruction,
    operands: Operands,
    results: tuple[ResultType | None, ...],
    is_list: bool,
) -> OpaqueCall:
    prepared, form = instruction.call, instruction.opaque
    assert prepared is not None
    values: list[int] = []
    tensors: Sequence[Tensor] = operands.tensors

    def argument_of(value: Given) -> Argument:
        if isinstance(value, Value):
            tensor = tensors[value.id]
            values.append(tensor.id)
            return Operand(len(values) - 1, isinstance(tensor, ComplexValue))
        return tuple(map(argument_of, value)) if isinstance(value, tuple) else value

    schema = form.schema if form is not None else _complex_schema(instruction.name)
    given = prepared.arguments(operands.arguments)
    names = [parameter.name for parameter in schema.schema.parameters]
    arguments = tuple(argument_of(given.get(name)) for name in names)
    return OpaqueCall(instruction.name, schema.text, arguments, tuple(values), results, is_list)


def _complex_schema(name: str) -> Any:  # noqa: ANN401 - OpaqueSchema
    """The schema of a call on complex numbers that has a form in Core IR on others."""
    operation = our_operations().get(name)
    if operation is None or operation.schema is None:
        raise Unsupported("it works on complex numbers, which Core IR lacks")
    return operation.schema
