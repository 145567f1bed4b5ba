"""Normalising elements that follow each other, some rows of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.kernels.call import Array, Call, Fault, Run
from nacre.kernels.graph_products import dense, settle
from nacre.kernels.reductions import float_sum, wide_float, widening
from nacre.kernels.runs import present, quietly, swift

Rows = Callable[[Array, Array], None]  # normalises rows [count, size] into others of that shape
# So many elements are normalised at a time: they are passed over several times.
_BLOCK = 1 << 15


@dataclass(frozen=True)
class Parameters:
    """How the scale and the bias of rows are seen, `groups` rows of parts having one of each."""

    groups: int
    parts: int  # of a row, each with a scale and bias of its own

    def apply(self, rows: Array, start: int, given: Sequence[Array]) -> None:
        """Multiply rows, the first of which is the row `start`, and add, in their place."""
        which = np.arange(start, start + len(rows)) % self.groups
        split = rows.reshape(len(rows), self.parts, -1)
        for operation, values in zip((np.multiply, np.add), given, strict=False):
            each = values.reshape(self.groups, self.parts, 1)
            operation(split, each if self.groups == 1 else each[which], out=split)


def row_by_row(call: Call, size: int, normalise: Rows, parameters: Parameters) -> Run:
    """A run over every `size` elements that follow each other, some rows at a time."""
    wide, dtype, is_ordered = widening(call.input(0)), wide_float(call.input(0)), call.ordered
    step, shape = max(1, _BLOCK // size), call.output.shape

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, y = dense(present(inputs[0])).reshape(-1, size), outputs[0]
        given = [wide(present(one)) for one in inputs[1:]]
        target = y if y.flags.c_contiguous and y.flags.aligned else np.empty(shape, y.dtype)
        results = target.reshape(-1, size)
        for start in range(0, len(x), step):
            values, result = wide(x[start : start + step]), results[start : start + step]
            rows = result if result.dtype == dtype else np.empty(values.shape, dtype)
            normalise(values, rows)
            parameters.apply(rows, start, given)
            settle(rows, is_ordered)
            if rows is not result:
                result[...] = rows
        if target is not y:
            y[...] = target
        return None

    return swift(run)


def centred(call: Call, size: int) -> Rows:
    """To mean 0 and variance 1."""
    level = levelled(call, size)
    count, is_ordered = wide_float(call.input(0)).type(size), call.ordered

    def run(rows: Array, out: Array) -> None:
        mean = float_sum(rows, (1,), is_ordered)
        np.divide(mean, count, out=mean)
        np.subtract(rows, mean, out=out)
        level(out, out)

    return run


def levelled(call: Call, size: int) -> Rows:
    """To mean square 1."""
    epsilon, is_ordered = (
        in_type(call.attributes["epsilon"], wide_float(call.input(0))),
        call.ordered,
    )
    count = wide_float(call.input(0)).type(size)

    def run(rows: Array, out: Array) -> None:
        if is_ordered:
            root = float_sum(np.square(rows), (1,), is_ordered)
        else:
            root = np.vecdot(rows, rows)[:, None]
        np.divide(root, count, out=root)
        np.sqrt(np.add(root, epsilon, out=root), out=root)
        # A root and a reciprocal on the short side instead of a long division.
        np.multiply(rows, np.divide(1, root, out=root), out=out)

    return run


def in_type(value: float, dtype: np.dtype[Any]) -> Array:
    """A number as an array of rank 0; infinite where it leaves the type."""
    return quietly(np.asarray(float(value)).astype, dtype)
