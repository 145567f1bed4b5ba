"""The function that each element of a value goes through before anything else sees it.

`HardSwish` is several operations on a device: a value plus 3, held between bounds, times the value
itself. Whatever lies below -3 is 0 afterwards, so a scale need not reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nacre.compile.quantise.observers import Function
from nacre.compile.quantise.roles import Graph
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import Array
from nacre.kernels.interface.call import Call
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.runs import quietly
from nacre.kernels.registry import PRIMITIVES

_MOST_STEPS = 8  # operations that are looked at


def function_after(graph: Graph, value: int) -> Function | None:
    """What is made of each element alone, up to the first value that is all that others see."""
    inside: dict[int, CoreOperation | None] = {value: None}
    while len(inside) <= _MOST_STEPS:
        step = _next_elementwise(graph, inside)
        if step is None:
            return None
        inside[step.value_id] = step
        if _values_used_outside(graph, inside) == {step.value_id}:
            steps = [op for op in inside.values() if op is not None]
            return partial(_apply, graph, value, steps)
    return None


def _next_elementwise(
    graph: Graph, inside: dict[int, CoreOperation | None]
) -> CoreOperation | None:
    """The first operation that makes something of single elements of what is inside."""
    users = (user for value in inside for user in graph.users.get(value, []))
    open_ = (user for user in users if user.value_id not in inside)
    return next((user for user in open_ if _is_elementwise_of(graph, user, inside)), None)


def _is_elementwise_of(
    graph: Graph, op: CoreOperation, inside: dict[int, CoreOperation | None]
) -> bool:
    return graph.roles[op.value_id] == "map" and all(
        _is_number(graph, operand) if operand in graph.constants else operand in inside
        for operand in op.operands
    )


def _is_number(graph: Graph, value: int) -> bool:
    array = graph.constants[value]
    return bool(array.size) and bool((array == array.flat[0]).all())


def _values_used_outside(graph: Graph, inside: dict[int, CoreOperation | None]) -> set[int]:
    """The values that something else uses, or that are outputs."""
    return {
        value
        for value in inside
        if value in graph.kept
        or not graph.users.get(value)
        or any(user.value_id not in inside for user in graph.users[value])
    }


def _apply(graph: Graph, value: int, steps: Sequence[CoreOperation], x: Array) -> Array:
    """Operations on single elements one after the other, in their own type."""
    values = {value: x}
    for op in steps:
        operands = [
            np.full(x.shape, graph.constants[operand].flat[0])
            if operand in graph.constants
            else values[operand]
            for operand in op.operands
        ]
        values[op.value_id] = _run_operation(op, operands)
    return values[steps[-1].value_id]


def _run_operation(op: CoreOperation, operands: Sequence[Array]) -> Array:
    spec = OPS[op.opcode]
    assert spec.primitive is not None
    type_ = KernelType(op.type.element, operands[0].shape)
    types = (type_,) * len(operands)
    run = PRIMITIVES[spec.primitive].bind(Call(types, (type_,), spec.with_defaults(op.attributes)))
    result = np.empty(type_.shape, type_.dtype)
    quietly(run, [operand.astype(type_.dtype, copy=False) for operand in operands], [result])
    return result
