"""What a lowering must know of upstream's operations: bounds of loops, tiles of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from msgspec import Struct
from xdsl.dialects.affine import ForOp
from xdsl.dialects.builtin import Float16Type, MemRefType, NoneAttr
from xdsl.dialects.memref import SubviewOp
from xdsl.ir import Operation

_DYNAMIC = -(2**63)  # how upstream writes an offset that is an operand


class NotLoweredError(Exception):
    """An operation has no form in NEM."""

    def __init__(self, op: Operation, reason: str) -> None:
        self.op = op
        super().__init__(reason)


class Counter(Struct, frozen=True):
    """A loop's variable: NEM counts by ones from 0, upstream from `first` by `step`."""

    name: str
    first: int
    step: int
    count: int


class Tile(Struct, frozen=True):
    """A rectangle of a matrix: where it starts, in elements, and its rows and columns."""

    buffer: Any  # the value of the matrix
    terms: Mapping[str, int]  # elements a step of each loop
    constant: int
    shape: tuple[int, int]
    row_stride: int

    @property
    def extent(self) -> int:
        """The elements from its first to its last."""
        rows, columns = self.shape
        return (rows - 1) * self.row_stride + columns


def counter(op: ForOp, name: str) -> Counter:
    """The bounds of a loop, which must be constants."""
    first, last = _bound(op, op.lowerBoundMap), _bound(op, op.upperBoundMap)
    step = int(op.step.value.data)
    if op.results or last <= first:
        raise NotLoweredError(op, "a loop that yields values, or runs not at all, is not lowered")
    return Counter(name, first, step, -(-(last - first) // step))


def _bound(op: ForOp, map_: Any) -> int:  # noqa: ANN401
    results = map_.data.results
    if map_.data.num_dims or map_.data.num_symbols or len(results) != 1:
        raise NotLoweredError(op, "a bound that is no constant is not lowered")
    return int(map_.data.eval([], [])[0])


def require_matrix(op: Operation, type_: Any) -> tuple[int, int]:  # noqa: ANN401
    """The shape of a matrix of f16 whose rows follow each other."""
    is_matrix = isinstance(type_, MemRefType) and len(type_.get_shape()) == 2
    if not is_matrix or not isinstance(type_.element_type, Float16Type):
        raise NotLoweredError(op, f"`{type_}` is no matrix of f16")
    rows, columns = type_.get_shape()
    if min(rows, columns) < 1 or not isinstance(type_.layout, NoneAttr):
        raise NotLoweredError(op, f"`{type_}` is not dense, or of no fixed shape")
    return rows, columns


def tile_of(value: Any, user: Operation, counters: Mapping[Any, Counter]) -> Tile:  # noqa: ANN401
    """The tile that an operand is: a matrix, or a part of one."""
    op = value.owner
    if not isinstance(op, SubviewOp):
        rows, columns = require_matrix(user, value.type)
        return Tile(value, {}, 0, (rows, columns), columns)
    _, columns = require_matrix(op, op.source.type)
    sizes, strides = _static(op.static_sizes), _static(op.static_strides)
    if len(sizes) != 2 or min(sizes) < 1 or prod(strides) != 1:
        raise NotLoweredError(op, "a part with strides, or of no fixed size, is not lowered")
    dynamic_offsets = iter(op.offsets)
    terms: dict[str, int] = {}
    constant = 0
    for offset, stride in zip(_static(op.static_offsets), (columns, 1), strict=True):
        if offset != _DYNAMIC:
            constant += offset * stride
            continue
        counter = counters.get(next(dynamic_offsets))
        if counter is None:
            raise NotLoweredError(op, "an offset that is no loop's variable is not lowered")
        terms[counter.name] = terms.get(counter.name, 0) + counter.step * stride
        constant += counter.first * stride
    return Tile(op.source, terms, constant, (sizes[0], sizes[1]), columns)


def _static(array: Any) -> list[int]:  # noqa: ANN401
    return [int(value) for value in array.iter_values()]
