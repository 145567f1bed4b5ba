"""Softmax and normalisations of rows: what the opcodes of plans and the operations of graphs share.

A row's bits follow from its values alone, not from the rows beside it, from where it lies in
memory or from the axis that it ran along: rows are gathered into dense memory, and every row is
summed up by a call of its own. So a tile of a tensor gives what the whole tensor gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.kernels.interface.call import Array, Call, Fault, Run
from nacre.kernels.interface.graph_runs import with_dense_output
from nacre.kernels.interface.runs import Function, present, quietly, unbuffered
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.interface.shapes import even_parts
from nacre.kernels.products.graph_products import dense, settle
from nacre.kernels.reductions.reductions import float_sum, wide_float, widening

# From rows [count, size] to others of that shape; a softmax also takes [before, size, behind].
Rows = Callable[[Array, Array], None]
# So many elements are normalised at a time: they are passed over several times.
_BLOCK = 1 << 15
# The largest of a row is not taken off where it is as near to 0 as this, by the bytes of a float:
# powers of e can be added up and divided as they are, by the hundred million.
_TAME = MappingProxyType({4: 40.0, 8: 600.0})
_NARROW = 64  # fewer columns beside each other are hardly quicker than one
_SHORT = 16  # so many elements are summed up one by one, all rows at a time


@dataclass(frozen=True)
class Parameters:
    """How the scale and the bias of rows are seen, `groups` rows of parts having one of each."""

    groups: int = 1
    parts: int = 1  # of a row, each with a scale and bias of its own

    def apply(self, rows: Array, start: int, given: Sequence[Array | None]) -> None:
        """Multiply rows, the first of which is the row `start`, and add, in their place."""
        which = np.arange(start, start + len(rows)) % self.groups
        split = rows.reshape(len(rows), self.parts, -1)
        for operation, values in zip((np.multiply, np.add), given, strict=False):
            if values is not None:
                each = values.reshape(self.groups, self.parts, 1)
                operation(split, each if self.groups == 1 else each[which], out=split)


def row_by_row(call: Call, size: int, compute: Rows, parameters: Parameters) -> Run:
    """A run over every `size` elements that follow each other, some rows at a time."""
    wide, dtype, is_ordered = widening(call.input(0)), wide_float(call.input(0)), call.ordered
    step, shape = max(1, _BLOCK // size), call.output.shape

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, y = dense(present(inputs[0])).reshape(-1, size), outputs[0]
        given = [None if one is None else wide(one) for one in inputs[1:]]
        is_dense = y.shape == shape and y.flags.c_contiguous and y.flags.aligned
        target = y if is_dense else np.empty(y.shape, y.dtype)
        results = target.reshape(-1, size)
        for start in range(0, len(x), step):
            values, result = wide(x[start : start + step]), results[start : start + step]
            rows = result if result.dtype == dtype else np.empty(values.shape, dtype)
            compute(values, rows)
            parameters.apply(rows, start, given)
            settle(rows, is_ordered)
            if rows is not result:
                result[...] = rows
        if target is not y:
            y[...] = target
        return None

    return unbuffered(run)


def along_axis(call: Call, axis: int, compute: Rows, parameters: Parameters) -> Run:
    """The same along any axis, which is the last one while rows are computed."""
    shape = call.input(0).shape
    run = row_by_row(call, shape[axis], compute, parameters)
    if prod(shape[axis + 1 :]) == 1:
        return run

    def run_moved(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, *given = inputs
        return run([np.moveaxis(present(x), axis, -1), *given], [np.moveaxis(outputs[0], axis, -1)])

    return run_moved


def softmax_along(call: Call, axis: int, make: Callable[[Call, int], Rows]) -> Run:
    """A softmax along any axis; elements stay where they are, for only sums need rows."""
    shape, wide, is_ordered = call.input(0).shape, widening(call.input(0)), call.ordered
    size, behind = shape[axis], prod(shape[axis + 1 :])
    compute = make(call, size)
    if behind == 1:
        return row_by_row(call, size, compute, Parameters())
    dtype, step = wide_float(call.input(0)), max(1, _BLOCK // (size * behind))

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x = dense(present(inputs[0])).reshape(-1, size, behind)
        y = outputs[0].reshape(-1, size, behind)
        for start in range(0, len(x), step):
            values, result = wide(x[start : start + step]), y[start : start + step]
            found = result if y.dtype == dtype else np.empty(values.shape, dtype)
            compute(values, found)
            settle(found, is_ordered)
            if found is not result:
                result[...] = found
        return None

    return unbuffered(with_dense_output(run))


def softmax_rows(call: Call, size: int) -> Rows:
    """Powers of e, divided by their sum; of nothing but minus infinity zeros."""
    exp, total = through_double(np.exp, call.ordered), row_sums(call, size)
    limit = 0.0 if call.ordered else _TAME[wide_float(call.input(0)).itemsize]

    def run(rows: Array, out: Array) -> None:
        exp(_subtract_maximum(rows, out, limit), out=out)
        sums = total(out)
        sums[sums == 0] = 1  # a row that is masked whole: every other one has a power of e
        np.divide(out, sums, out=out)

    return run


def _subtract_maximum(rows: Array, out: Array, limit: float) -> Array:
    """Rows less a number that keeps their powers in range: their largest, or 0 where that will do.

    Which of them depends on the row alone; rows that all lie near 0 are seen to at once.
    """
    most, least = np.maximum.reduce(rows, axis=None), np.minimum.reduce(rows, axis=None)
    if -limit < least and most < limit:
        return rows
    top = np.maximum.reduce(rows, axis=1, keepdims=True)
    top[(np.abs(top) < limit) | (top == -np.inf)] = 0
    return np.subtract(rows, top, out=out)


def log_softmax_rows(call: Call, size: int) -> Rows:
    """Values less the logarithm of the sum of their powers of e."""
    exp, log = (through_double(function, call.ordered) for function in (np.exp, np.log))
    total = row_sums(call, size)

    def run(rows: Array, out: Array) -> None:
        np.subtract(rows, np.maximum.reduce(rows, axis=1, keepdims=True), out=out)
        np.subtract(out, log(total(exp(out))), out=out)

    return run


def through_double(function: np.ufunc, is_ordered: bool) -> Function:
    """A function of floats; ordered, from f64: the libraries of all platforms round it alike."""
    if not is_ordered:
        return function

    def run(x: Array, *others: object, out: Array | None = None) -> Array:
        exact: Array = function(x.astype(np.float64), *others)
        if out is None:
            return exact.astype(x.dtype)
        out[...] = exact
        return out

    return run


def row_sums(call: Call, size: int) -> Callable[[Array], Array]:
    """Sums along axis 1, which stays with size 1; ordered, one by one from the front."""
    if call.ordered:
        return lambda rows: float_sum(rows, (1,), is_ordered=True)
    if size <= _SHORT:
        return _sum_columns
    ones = np.ones(size, wide_float(call.input(0)))
    return lambda rows: _row_dots(rows, ones)


def _sum_columns(rows: Array) -> Array:
    total = rows[:, :1].copy()
    for at in range(1, rows.shape[1]):
        np.add(total, rows[:, at : at + 1], out=total)
    return total


def _row_dots(rows: Array, ones: Array) -> Array:
    """Sums of long rows, each by a call of its own.

    A product with a vector would be quicker, but it takes several rows at a time, and what a row
    gives would depend on how many there are.
    """
    if rows.ndim == 2:
        sums: Array = np.vecdot(rows, ones)[:, None]
        return sums
    total = np.empty((len(rows), 1, rows.shape[2]), rows.dtype)
    width = even_parts(rows.shape[2], max(_NARROW, _BLOCK // len(ones)))
    for part, found in zip(rows, total, strict=True):
        for start in range(0, part.shape[1], width):
            some = slice(start, start + width)
            np.vecdot(_columns_as_rows(part[:, some]), ones, out=found[0, some])
    return total


def _columns_as_rows(columns: Array) -> Array:
    """Columns as rows. First they come near each other: far apart they meet in the cache."""
    near = scratch("columns", columns.shape, columns.dtype)
    np.copyto(near, columns)
    rows = scratch("rows", columns.shape[::-1], columns.dtype)
    np.copyto(rows, near.T)
    return rows


def _square_sums(call: Call) -> Callable[[Array], Array]:
    if call.ordered:
        return lambda rows: float_sum(np.square(rows), (1,), is_ordered=True)
    return lambda rows: np.vecdot(rows, rows)[:, None]


def centre_rows(call: Call, size: int) -> Rows:
    """To mean 0 and variance 1."""
    level, total = normalise_mean_square(call, size), row_sums(call, size)
    count = wide_float(call.input(0)).type(size)

    def run(rows: Array, out: Array) -> None:
        mean = total(rows)
        np.divide(mean, count, out=mean)
        np.subtract(rows, mean, out=out)
        level(out, out)

    return run


def normalise_mean_square(call: Call, size: int) -> Rows:
    """To mean square 1."""
    dtype, total = wide_float(call.input(0)), _square_sums(call)
    epsilon, count = scalar_of_type(call.attributes["epsilon"], dtype), dtype.type(size)

    def run(rows: Array, out: Array) -> None:
        root = total(rows)
        np.divide(root, count, out=root)
        np.sqrt(np.add(root, epsilon, out=root), out=root)
        # A root and a reciprocal on the short side instead of a long division.
        np.multiply(rows, np.divide(1, root, out=root), out=out)

    return run


def scalar_of_type(value: float, dtype: np.dtype[Any]) -> Array:
    """A number as an array of rank 0; infinite where it leaves the type."""
    return quietly(np.asarray(float(value)).astype, dtype)
