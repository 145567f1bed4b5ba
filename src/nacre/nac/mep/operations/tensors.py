"""Tensors made, joined, taken apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.dtypes import DTYPE_WORDS
from nacre.core.values import Array
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import (
    Fault,
    Value,
    array,
    describe,
    numbers,
    one_number,
    slot_value,
    unfit_fault,
    whole_number,
)
from nacre.nac.mep.work import EMPTY, Work
from nacre.nac.rules.plans import NAC91

_MOST_AXES = 32
_MOST_RANK = 4  # that TENSOR_EXTRACT is defined for


def _convert(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values as another type; what it cannot hold is refused."""
    if dtype.kind not in "iu" or not values.size:
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    is_whole = values.dtype.kind in "biu" or bool((np.floor(values) == values).all())
    # Python compares integers and floats exactly; NumPy would round the limit up.
    low, high = values.min().item(), values.max().item()
    if not is_whole or not limits.min <= low <= high <= limits.max:
        raise Fault(NAC91, f"a value is no {dtype.name}")
    return values.astype(dtype)


def _shape(value: Value) -> tuple[int, ...]:
    found = numbers(value, "the shape").reshape(-1)
    if found.size > _MOST_AXES:
        raise Fault(NAC91, f"the shape has {found.size:,} axes, at most {_MOST_AXES}")
    return tuple(whole_number(one, "an axis of the shape", 0) for one in found.tolist())


@performs("tensor_create")
def tensor_create(work: Work, dtype: str, kind: str, argument: Value) -> Array:
    """A tensor of an element type."""
    element = GRAPH_TYPES[DTYPE_WORDS[dtype]].dtype
    if kind == "values":
        given_numbers = numbers(argument, "the argument")
        work.budget.take((8 + element.itemsize) * given_numbers.size)
        return _convert(given_numbers, element).reshape(1, -1)
    if kind == "arange":
        end = whole_number(argument, "the end", 0)
        work.budget.take((8 + element.itemsize) * end)
        return _convert(np.arange(end), element).reshape(1, -1)
    shape = _shape(argument)
    work.budget.take(element.itemsize * math.prod(shape))
    return np.full(shape, int(kind == "ones"), element)


@performs("tensor_manipulate", "pad")
def pad(work: Work, tensor: Value, width: Value, value: Value) -> Array:
    """Copies of a value before the last axis."""
    operand = numbers(tensor, "the tensor")
    if not operand.ndim:
        raise unfit_fault("the tensor", tensor, "one with an axis")
    count = whole_number(width, "the width", 0)
    rows = math.prod(operand.shape[:-1])
    work.budget.take(operand.itemsize * rows * (count + operand.shape[-1]))
    filler = _convert(np.array(one_number(value, "the value")), operand.dtype)
    head = np.broadcast_to(filler, (*operand.shape[:-1], count))
    return np.concatenate([head, operand], axis=-1)


@performs("tensor_manipulate", "unsqueeze")
def unsqueeze(work: Work, tensor: Value, dim: Value) -> Array:
    """An axis more."""
    operand = array(tensor, "the tensor")
    rank = operand.ndim + 1
    if rank > _MOST_AXES:
        raise Fault(NAC91, f"the tensor has {operand.ndim} axes, at most {_MOST_AXES}")
    return np.expand_dims(operand, whole_number(dim, "the axis", -rank, rank - 1))


@performs("tensor_manipulate", "squeeze")
def squeeze(work: Work, tensor: Value, dim: Value) -> Value:
    """An axis less."""
    operand = array(tensor, "the tensor")
    axis = _axis(operand, dim)
    if operand.shape[axis] != 1:
        raise Fault(NAC91, f"axis {axis} has size {operand.shape[axis]}, expected 1")
    return slot_value(operand.squeeze(axis))


def _axis(operand: Array, dim: Value) -> int:
    if not operand.ndim:
        raise unfit_fault("the tensor", operand, "one with an axis")
    return whole_number(dim, "the axis", -operand.ndim, operand.ndim - 1) % operand.ndim


@performs("tensor_combine", "concat")
def concat(work: Work, values: Sequence[Value], axis: Value) -> Array:
    """Tensors behind each other."""
    operands = [array(value, f"value {place}") for place, value in enumerate(values)]
    if not operands:
        raise Fault(NAC91, "there is nothing to join")
    along = _axis(operands[0], axis)
    first = operands[0]
    for place, other in enumerate(operands):
        is_alike = other.ndim == first.ndim and all(
            a == b
            for i, (a, b) in enumerate(zip(other.shape, first.shape, strict=True))
            if i != along
        )
        is_text = other.dtype.kind == first.dtype.kind == "U"
        if not is_alike or (other.dtype != first.dtype and not is_text):
            message = f"value {place} is {describe(other)}, which does not fit to {describe(first)}"
            raise Fault(NAC91, message)
    width = max(operand.itemsize for operand in operands)
    work.budget.take(width * sum(operand.size for operand in operands))
    return np.concatenate(operands, axis=along)


@performs("tensor_info", "shape")
def shape(work: Work, tensor: Value) -> tuple[int, ...]:
    """The sizes of all axes."""
    return array(tensor, "the tensor").shape


@performs("tensor_info", "size")
def size(work: Work, tensor: Value, dim: Value) -> int:
    """The size of an axis."""
    operand = array(tensor, "the tensor")
    return int(operand.shape[_axis(operand, dim)])


@performs("tensor_info", "item")
def item(work: Work, tensor: Value) -> Value:
    """The only element."""
    return one_number(tensor, "the tensor")


@performs("tensor_extract")
def tensor_extract(work: Work, tensor: Value, index: Value) -> Value:
    """What stands at an index of the first axis, or of the second behind the first of the first."""
    operand = array(tensor, "the tensor")
    if not 1 <= operand.ndim <= _MOST_RANK:
        raise unfit_fault("the tensor", operand, f"rank 1 to {_MOST_RANK}")
    rows = operand if operand.ndim == 1 else operand[:1]
    if operand.ndim > 1 and not len(rows):
        raise unfit_fault("the tensor", operand, "a first axis that is not empty")
    row = operand if operand.ndim == 1 else rows[0]
    place = whole_number(index, "the index", -len(row), len(row) - 1)
    element = row[place]
    if isinstance(element, np.ndarray):
        work.budget.take(element.nbytes)  # a copy: a view would keep all of the tensor alive
        element = element.copy()
    return slot_value(element)


@performs("sys_copy")
def sys_copy(work: Work, value: Value) -> Value:
    """The same value."""
    return value


@performs("res_unload", "slot")
def unload_slot(work: Work) -> object:
    """An empty slot."""
    return EMPTY
