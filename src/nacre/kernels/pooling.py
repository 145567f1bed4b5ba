"""Pooling of [N, spatial.., C]: every window's largest element or mean, padding left out.

A window that lies wholly in padding has no element. Its maximum is the lowest value of the type
(minus infinity for floats), its mean the real value 0: the zero point where the tensor carries a
quantisation.

The windows are not visited: their positions are, row by row, and every window takes its element
at that position in one step. So sums have one order on every platform, asked for or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np

from nacre.kernels import shapes
from nacre.kernels.call import Array, Attributes, Call, Primitive, Run, Work, integers
from nacre.kernels.products import same_nan
from nacre.kernels.quantization import dequantizer, quantizer
from nacre.kernels.reductions import wide_float, widening
from nacre.kernels.runs import filling, quiet
from nacre.kernels.shapes import Dims
from nacre.kernels.views import Index

# For each position in a window: the windows that have an element there, and those elements.
Positions = list[tuple[Index, Index]]


def _positions(call: Call) -> Positions:
    size, kernel = call.input(0).shape[1:-1], call.attributes["kernel_shape"]
    axes = zip(
        size,
        kernel,
        call.attributes["pads"][: len(size)],
        call.attributes["strides"],
        call.output.shape[1:-1],
        strict=True,
    )
    every = slice(None)
    found = []
    for position in product(*(_along(*axis) for axis in axes)):
        targets, sources = zip(*position, strict=True)
        found.append(((every, *targets), (every, *sources)))
    return found


def _along(
    size: int, window: int, begin: int, stride: int, count: int
) -> list[tuple[slice, slice]]:
    """For each offset in a window along an axis: windows inside of it there, and where they are."""
    found = []
    for offset in range(window):
        shift = offset - begin  # window i has element i * stride + shift here
        first = max(0, -(shift // stride))
        last = min(count - 1, (size - 1 - shift) // stride)
        if first <= last:
            source = slice(first * stride + shift, last * stride + shift + 1, stride)
            found.append((slice(first, last + 1), source))
    return found


def _counts(call: Call, positions: Positions) -> Array:
    """How many elements each window has, shaped to broadcast against the output."""
    found = np.zeros((1, *call.output.shape[1:-1], 1), np.int64)
    for target, _ in positions:
        found[target] += 1
    return found


def _maxpool(call: Call) -> Run:
    positions = _positions(call)
    elem = call.output.elem
    lowest = elem.lowest if elem.is_integer else -np.inf

    def pick(x: Array, y: Array) -> None:
        y.fill(lowest)
        for target, source in positions:
            held = y[target]
            np.maximum(held, x[source], out=held)

    if elem.is_integer or elem.bits >= 32:
        return filling(pick)
    wide, shape = widening(call.output), call.output.shape

    def fill(x: Array, y: Array) -> None:
        found = np.empty(shape, np.float32)
        pick(wide(x), found)
        y[...] = found

    return filling(fill)


def _avgpool(call: Call) -> Run:
    x, y = call.input(0), call.output
    positions = _positions(call)
    counts = _counts(call, positions)
    if x.quant is not None and y.quant is not None and not x.quant.equals(y.quant):
        return _requantized_mean(call, positions, counts)
    if x.elem.is_integer:
        return _integer_mean(call, positions, counts)
    return _float_mean(call, positions, counts)


def _total(x: Array, shape: Dims, positions: Positions) -> Array:
    total = np.zeros(shape, x.dtype)
    for target, source in positions:
        held = total[target]
        np.add(held, x[source], out=held)
    return total


def _float_mean(call: Call, positions: Positions, counts: Array) -> Run:
    wide, shape, is_ordered = widening(call.input(0)), call.output.shape, call.ordered
    divisors = np.maximum(counts, 1).astype(wide_float(call.input(0)))

    def fill(x: Array, y: Array) -> None:
        total = _total(wide(x), shape, positions)
        np.divide(total, divisors, out=total)
        y[...] = same_nan(total) if is_ordered else total

    return quiet(filling(fill))


def _requantized_mean(call: Call, positions: Positions, counts: Array) -> Run:
    real, stored = dequantizer(call.input(0)), quantizer(call.output)
    shape = call.output.shape
    divisors = np.maximum(counts, 1).astype(np.float32)

    def fill(x: Array, y: Array) -> None:
        total = _total(real(x), shape, positions)
        y[...] = stored(total / divisors)

    return quiet(filling(fill))


def _integer_mean(call: Call, positions: Positions, counts: Array) -> Run:
    """Exact sums, divided and rounded half to even."""
    shape, divisors = call.output.shape, np.maximum(counts, 1)
    mean, wide = _exact_division(call.input(0).elem.bits, int(counts.max(initial=1)))
    divisors = divisors.astype(wide)
    is_empty = counts == 0
    has_empty = bool(is_empty.any())
    quant = call.output.quant or call.input(0).quant
    zero = np.int32(0) if quant is None else quant.spread(shape)[1]

    def fill(x: Array, y: Array) -> None:
        total = _total(x.astype(wide), shape, positions)
        y[...] = mean(total, divisors)
        if has_empty:
            np.copyto(y, zero, where=is_empty, casting="unsafe")

    return filling(fill)


def _exact_division(
    bits: int, count: int
) -> tuple[Callable[[Array, Array], Array], np.dtype[np.generic]]:
    """How to divide sums of so many integers, and the type to sum them in.

    A float quotient rounds as the exact one while one bit more than the sum needs fits into the
    significand: halves are exact then, and nothing else is rounded to a half.
    """
    needed = bits + count.bit_length() + 1
    if needed <= 24:
        return _float_rounded, np.dtype(np.float32)
    if needed <= 53:
        return _float_rounded, np.dtype(np.float64)
    return _integer_rounded, np.dtype(np.int64)


def _float_rounded(total: Array, count: Array) -> Array:
    return np.rint(np.divide(total, count, out=total), out=total)


def _integer_rounded(total: Array, count: Array) -> Array:
    whole, rest = np.divmod(total, count)
    doubled = 2 * rest
    rounds_up: Array = (doubled > count) | ((doubled == count) & (whole % 2 == 1))
    return whole + rounds_up


def _shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x = inputs[0]
    kernel, pads = integers(attributes, "kernel_shape"), integers(attributes, "pads")
    strides = integers(attributes, "strides")
    if x is None or kernel is None or pads is None or strides is None:
        return None
    rank = len(x) - 2
    if rank < 1 or (len(kernel), len(pads), len(strides)) != (rank, 2 * rank, rank):
        return None
    if min(kernel + strides) < 1 or min(pads) < 0:
        return None
    result = shapes.pool(x, kernel, pads, strides)
    return [result] if min(result) >= 1 else None


def _work(call: Call) -> Work:
    return Work(elements=call.output.count * prod(call.attributes["kernel_shape"]))


POOLING = (
    Primitive("maxpool", _maxpool, _shape, _work),
    Primitive("avgpool", _avgpool, _shape, _work),
)
