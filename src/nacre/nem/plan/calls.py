"""Compute tasks as calls of primitives: types and attributes, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.term_columns import Values
from nacre.base.terms import LoopVariable, Operation
from nacre.kernels.interface.call import Call, Quantization, TensorType, Work
from nacre.nem.model.program import Operand, Quant, Region, Task
from nacre.nem.plan.grid import Grid
from nacre.nem.spec.opcodes import OPCODES

Symbolic = LoopVariable | Operation
_SYMBOLIC = (LoopVariable, Operation)
Lookup = Mapping[Symbolic, int]
# For those below who know nothing of kernels.
TaskCall = Call
TaskWork = Work
# What stays as it is: a scale a channel makes long tuples of these.
_PLAIN = frozenset({int, float, str, bool, type(None)})


def lookup_at(parts: tuple[object, ...], grid: Grid, row: int) -> dict[Symbolic, int]:
    """The values that the symbolic parts of something have in a row."""
    terms = dict.fromkeys(symbolic_terms(parts))
    return dict(values_at({term: grid.evaluate(term) for term in terms}, row))


def resolve_symbols(value: Any, lookup: Lookup) -> Any:  # noqa: ANN401 - as nested as it came
    """A value with everything symbolic in it looked up."""
    if isinstance(value, _SYMBOLIC):
        return lookup[value]
    if isinstance(value, tuple) and not _PLAIN.issuperset(map(type, value)):
        return tuple(resolve_symbols(item, lookup) for item in value)
    return value


def varying_parts(task: Task) -> tuple[object, ...]:
    """What of a task may vary from iteration to iteration, where its operands begin left out."""
    parts: list[object] = list(task.attributes.values())
    for operand in task.operands:
        region = operand.region
        if region is not None:
            parts += (*(region.shape or ()), *(region.strides or ()), region.quant)
    return tuple(parts)


def symbolic_terms(value: object) -> Iterator[Symbolic]:
    """The terms over loop variables in a value, however nested."""
    if isinstance(value, _SYMBOLIC):
        yield value
    elif isinstance(value, tuple):
        if not _PLAIN.issuperset(map(type, value)):
            for item in value:
                if type(item) not in _PLAIN:
                    yield from symbolic_terms(item)
    elif isinstance(value, Quant):
        yield from symbolic_terms(value.scales)
        yield from symbolic_terms(value.zero_points)


def values_at(columns: Mapping[Symbolic, Values], row: int) -> Lookup:
    """The values of some columns in a row."""
    return {t: c if isinstance(c, int) else int(c[row]) for t, c in columns.items()}


def distinct_calls(task: Task, grid: Grid) -> Iterator[tuple[Call, int]]:
    """The distinct calls that a compute task is, each with the first row that has it."""
    terms = tuple(dict.fromkeys(symbolic_terms(varying_parts(task))))
    if not terms:
        yield call_of(task, {}, False), 0
        return
    columns = {term: grid.evaluate(term) for term in terms}
    table = np.stack(
        [np.broadcast_to(np.asarray(c), (grid.rows,)) for c in columns.values()], axis=1
    )
    _, first = np.unique(table, axis=0, return_index=True)
    for row in sorted(int(row) for row in first):
        yield call_of(task, values_at(columns, row), False), row


def call_of(task: Task, lookup: Lookup, ordered: bool, *, quants: bool = True) -> Call:
    """A compute task as a call of its primitive; without `quants` its types have none."""
    return Call(
        tuple([_type(o, lookup, quants) for o in task.operands if o.access == "read"]),
        tuple([_type(o, lookup, quants) for o in task.operands if o.access == "write"]),
        attributes_of(task, lookup),
        ordered,
    )


def attributes_of(task: Task, lookup: Lookup) -> dict[str, Any]:
    """The attributes of a compute task, with those that have a default."""
    attributes: dict[str, Any] = dict(task.attributes)
    if lookup:
        attributes = {name: resolve_symbols(value, lookup) for name, value in attributes.items()}
    if task.opcode is None:
        return attributes
    defaults, floats = _defaults(task.opcode.name)
    for name in floats:
        if name in attributes:
            attributes[name] = float(attributes[name])
    return {**defaults, **attributes}


@cache
def _defaults(opcode: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The attributes of an opcode that have a default, and those that are floats."""
    specs = OPCODES[opcode].attributes
    defaults = {spec.name: spec.default for spec in specs if spec.default is not None}
    return defaults, tuple(spec.name for spec in specs if spec.type == "float")


def _type(operand: Operand, lookup: Lookup, quants: bool) -> TensorType:
    region = operand.region
    if region is None:
        raise ValueError("a region of a program with errors")
    return tensor_type(region, lookup, quants=quants)


def tensor_type(region: Region, lookup: Lookup, *, quants: bool = True) -> TensorType:
    """The type of a region, symbolic dimensions looked up."""
    if region.elem is None or region.shape is None:
        raise ValueError("a region without type")
    shape: Any = resolve_symbols(region.shape, lookup) if lookup else region.shape
    if region.quant is None or not quants:
        return plain_type(region.elem, shape)
    return TensorType(ELEMENT_TYPES[region.elem], shape, _quantization(region.quant, shape, lookup))


@lru_cache(maxsize=4096)
def plain_type(elem: str, shape: tuple[int, ...]) -> TensorType:
    """A type without quantisation, which tiles of a layer share."""
    return TensorType(ELEMENT_TYPES[elem], shape)


def _quantization(quant: Quant, shape: tuple[int, ...], lookup: Lookup) -> Quantization:
    return Quantization(
        np.array(resolve_symbols(quant.scales, lookup), np.float32),
        np.array(resolve_symbols(quant.zero_points, lookup), np.int32),
        None if quant.axis is None else quant.axis % len(shape),
        quant.group_size or 1,
    )
