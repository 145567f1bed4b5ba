"""Products of matrices of any element type, as the operations of graphs need them.

Floats up to 32 bits are multiplied in f32, f64 in f64; integers exactly, as far as 64 bits reach,
and modulo 2^64 beyond. What is stored is rounded or wrapped once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.call import Array, Fault, Run, TensorType
from nacre.kernels.core_products import low_bits
from nacre.kernels.numbers import widened
from nacre.kernels.products import Plan, exact_product, plan, same_nan
from nacre.kernels.runs import quiet

# The product of matrices [.., M, K] by [.., K, N], written into an array.
Multiply = Callable[[Array, Array, Array], object]

_BUFFER = 256  # elements


@dataclass(frozen=True, eq=False)
class Factors:
    """Two operands in the type that they are multiplied in, and how to multiply parts of them."""

    a: Array
    b: Array
    multiply: Multiply


def sums_dtype(elem: ElementType) -> np.dtype[Any]:
    """The array type of sums of products before they are stored."""
    if elem.is_integer:
        return np.dtype(np.int64)
    return np.dtype(np.float64 if elem.bits > 32 else np.float32)


def factoring(elem: ElementType, depth: int, is_ordered: bool) -> Callable[[Array, Array], Factors]:
    """How operands of an element type are made ready for sums of `depth` products each."""
    if elem.is_integer:
        return partial(_integer_factors, depth=depth)
    wide = _as_given if elem.bits > 32 else widened
    multiply: Multiply = _in_order if is_ordered else np.matmul
    return lambda a, b: Factors(_for_blas(wide(a)), _for_blas(wide(b)), multiply)


def multiplicands(elem: ElementType) -> Callable[[Array, Array], Factors]:
    """How operands are made ready to be multiplied element by element."""
    dtype = sums_dtype(elem)
    wide = widened if dtype == np.float32 else _as_given
    return lambda a, b: Factors(
        wide(a).astype(dtype, copy=False), wide(b).astype(dtype, copy=False), np.matmul
    )


def _as_given(values: Array) -> Array:
    return values


def _integer_factors(a: Array, b: Array, depth: int) -> Factors:
    chosen = plan(depth, reach(a), reach(b))
    return Factors(
        a.astype(chosen.dtype, order="C"),
        b.astype(chosen.dtype, order="C"),
        partial(_exactly, chosen=chosen),
    )


def reach(values: Array) -> int:
    """The largest absolute value."""
    return max(int(values.max()), -int(values.min()))


def _exactly(a: Array, b: Array, out: Array, chosen: Plan) -> None:
    out[...] = exact_product(a, b, chosen)


def _in_order(a: Array, b: Array, out: Array) -> None:
    """Each sum from +0 on in ascending order of k, rounded after every step."""
    out.fill(0)
    term = np.empty_like(out)
    for k in range(a.shape[-1]):
        np.multiply(a[..., k, None], b[..., k, None, :], out=term)
        np.add(out, term, out=out)


def dense(values: Array) -> Array:
    """The same array, or a copy where its elements do not follow each other."""
    if values.flags.c_contiguous and values.flags.aligned:
        return values
    return np.array(values, order="C")


def _for_blas(values: Array) -> Array:
    """The same array, or a copy where BLAS could not read it and NumPy would loop instead."""
    if values.flags.aligned and values.ndim > 1:
        (down, across), (height, width), size = (
            values.strides[-2:],
            values.shape[-2:],
            values.itemsize,
        )
        if (across == size and down >= width * size) or (down == size and across >= height * size):
            return values
    return dense(values)


def fill_with_sums(y: Array, type_: TensorType, fill: Callable[[Array], None]) -> None:
    """Let a function compute into an output, or into an array from which that is stored once."""
    elem, dtype = type_.elem, sums_dtype(type_.elem)
    if y.dtype == dtype and y.flags.c_contiguous and y.flags.aligned:
        fill(y)
        return
    sums = np.empty(type_.shape, dtype)
    fill(sums)
    y[...] = low_bits(sums, elem) if elem.is_integer else sums


def swift(run: Run) -> Run:
    """A quiet run in which NumPy does not gather short rows in buffers before it computes.

    For rows of fewer elements than a buffer holds it would, and take up to four times as long.
    """

    def run_swiftly(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        np.setbufsize(_BUFFER)  # of the context that `quiet` runs this in, and of no other
        return run(inputs, outputs)

    return quiet(run_swiftly)


def settle(sums: Array, is_ordered: bool) -> None:
    """Give ordered sums one NaN: its bits differ between platforms."""
    if is_ordered and sums.dtype.kind == "f":
        same_nan(sums)
