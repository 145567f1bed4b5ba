"""What a task's operands and attributes are, iteration by iteration: mostly one answer for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.call import Call, Quantization, TensorType
from nacre.nem.model.folding import LoopVariable, Operation
from nacre.nem.model.program import Operand, Quant, Region, Task
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.terms import Values
from nacre.nem.run.layouts import Layout, layout

Symbolic = LoopVariable | Operation
Lookup = Mapping[Symbolic, int]
# What stays as it is: a scale a channel makes long tuples of these.
_PLAIN = frozenset({int, float, str, bool, type(None)})


@dataclass(frozen=True, eq=False)
class Signature:
    """A task in some of its iterations: everything about it but where its operands begin."""

    call: Call | None  # of compute tasks
    layouts: tuple[Layout | None, ...]  # by operand; None: it has no type


@dataclass(frozen=True, eq=False)
class Signatures:
    """The distinct signatures of a task, and which of them each row has."""

    distinct: tuple[Signature, ...]
    index: list[int] | None  # None: one for all rows

    def at(self, row: int) -> Signature:
        """The signature of a row."""
        return self.distinct[0 if self.index is None else self.index[row]]


def signatures(task: Task, grid: Grid, *, ordered: bool = False) -> Signatures:
    """Every distinct signature of a task, in the order of the rows that first have it."""
    symbolic = tuple(dict.fromkeys(_symbolic(_parts(task))))
    if not symbolic:
        return Signatures((_signature(task, {}, ordered),), None)
    columns = {term: grid.evaluate(term) for term in symbolic}
    table = np.stack(
        [np.broadcast_to(np.asarray(c), (grid.rows,)) for c in columns.values()], axis=1
    )
    _, first, index = np.unique(table, axis=0, return_index=True, return_inverse=True)
    made = tuple(_signature(task, _at(columns, int(row)), ordered) for row in first)
    return Signatures(made, index.reshape(-1).tolist())


def lookup_at(parts: tuple[object, ...], grid: Grid, row: int) -> dict[Symbolic, int]:
    """The values that the symbolic parts of something have in a row."""
    terms = dict.fromkeys(_symbolic(parts))
    return dict(_at({term: grid.evaluate(term) for term in terms}, row))


def concrete(value: Any, lookup: Lookup) -> Any:  # noqa: ANN401 - as nested as it came
    """A value with everything symbolic in it looked up."""
    if isinstance(value, LoopVariable | Operation):
        return lookup[value]
    if isinstance(value, tuple) and not _PLAIN.issuperset(map(type, value)):
        return tuple(concrete(item, lookup) for item in value)
    return value


def offsets(region: Region, grid: Grid) -> Values:
    """Where a region begins in its buffer, in every row."""
    return grid.evaluate(_number(region.offset))


def extents(region: Region, grid: Grid) -> Values:
    """How many bytes a region has, in every row."""
    return grid.evaluate(_number(region.extent))


def _number(value: object) -> int | Symbolic:
    if isinstance(value, int | LoopVariable | Operation):
        return value
    raise ValueError("a region of a program with errors")


def _parts(task: Task) -> tuple[object, ...]:
    parts: list[object] = list(task.attributes.values())
    for operand in task.operands:
        region = operand.region
        if region is not None:
            parts += (*(region.shape or ()), *(region.strides or ()), region.quant)
    return tuple(parts)


def _symbolic(value: object) -> Iterator[Symbolic]:
    if isinstance(value, LoopVariable | Operation):
        yield value
    elif isinstance(value, tuple):
        if not _PLAIN.issuperset(map(type, value)):
            for item in value:
                yield from _symbolic(item)
    elif isinstance(value, Quant):
        yield from _symbolic(value.scales)
        yield from _symbolic(value.zero_points)


def _at(columns: Mapping[Symbolic, Values], row: int) -> Lookup:
    return {t: c if isinstance(c, int) else int(c[row]) for t, c in columns.items()}


def _signature(task: Task, lookup: Lookup, ordered: bool) -> Signature:
    layouts = tuple(_layout(operand.region, lookup) for operand in task.operands)
    is_compute = task.opcode is not None and task.opcode.category != "data_movement"
    return Signature(_call(task, lookup, ordered) if is_compute else None, layouts)


def _layout(region: Region | None, lookup: Lookup) -> Layout | None:
    if region is None or region.elem is None or region.shape is None:
        return None
    strides = None if region.strides is None else concrete(region.strides, lookup)
    return layout(ELEMENT_TYPES[region.elem], concrete(region.shape, lookup), strides)


def _call(task: Task, lookup: Lookup, ordered: bool) -> Call:
    return Call(
        tuple(_type(o, lookup) for o in task.operands if o.access == "read"),
        tuple(_type(o, lookup) for o in task.operands if o.access == "write"),
        _attributes(task, lookup),
        ordered,
    )


def _attributes(task: Task, lookup: Lookup) -> dict[str, Any]:
    given = {name: concrete(value, lookup) for name, value in task.attributes.items()}
    specs = task.opcode.attributes if task.opcode is not None else ()
    for spec in specs:
        if spec.name not in given and spec.default is not None:
            given[spec.name] = spec.default
        elif spec.type == "float" and spec.name in given:
            given[spec.name] = float(given[spec.name])
    return given


def _type(operand: Operand, lookup: Lookup) -> TensorType:
    region = operand.region
    if region is None:
        raise ValueError("a region of a program with errors")
    return tensor_type(region, lookup)


def tensor_type(region: Region, lookup: Lookup) -> TensorType:
    """The type of a region, symbolic dimensions looked up."""
    if region.elem is None or region.shape is None:
        raise ValueError("a region without type")
    shape = concrete(region.shape, lookup)
    return TensorType(ELEMENT_TYPES[region.elem], shape, _quantization(region.quant, shape, lookup))


def _quantization(
    quant: Quant | None, shape: tuple[int, ...], lookup: Lookup
) -> Quantization | None:
    if quant is None:
        return None
    return Quantization(
        np.array(concrete(quant.scales, lookup), np.float32),
        np.array(concrete(quant.zero_points, lookup), np.int32),
        None if quant.axis is None else quant.axis % len(shape),
        quant.group_size or 1,
    )
