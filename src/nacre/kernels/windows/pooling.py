"""Pooling of [N, spatial.., C]: every window's largest element or mean, padding left out.

A window that lies wholly in padding has no element. Its maximum is the lowest value of the type
(minus infinity for floats), its mean the real value 0: the zero point where the tensor carries a
quantisation.

The windows are not visited: their positions are, and every window takes its element at that
position in one step. The largest elements are found along one axis after the other, and floats
summed up so; if they are ordered row by row, as integers are and reals that are quantised again.
So a window's sum has one order, in any tile and on every platform. Poolings of graphs are these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Example,
    Primitive,
    Run,
    TensorType,
    Work,
    integers,
)
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch
from nacre.kernels.interface.runs import fill_run, present, quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.movement.views import Index
from nacre.kernels.numbers.quantization import dequantizer, quantizer
from nacre.kernels.products.products import same_nan
from nacre.kernels.reductions.reductions import wide_float, widening
from nacre.kernels.windows.long_windows import combine_blocks, is_long
from nacre.kernels.windows.sliding import Axis

# For each position in a window: the windows that have an element there, and those elements.
Positions = list[tuple[Index, Index]]
Pool = Callable[[Array], Array]  # what is given is not changed
Fill = Callable[[Array, Array], None]  # from X to Y
_LONG = 8  # so many elements of one window are taken in one step


def _positions(axes: Sequence[Axis], first: int) -> Positions:
    """Row by row; the axes of windows are those from `first` on."""
    before = (slice(None),) * first
    found = []
    for position in product(*(axis.steps for axis in axes)):
        targets, sources = zip(*position, strict=True)
        found.append(((*before, *targets), (*before, *sources)))
    return found


def _window_axes(call: Call) -> list[Axis]:
    """The windows along each axis; the output says whether their number was rounded up."""
    attributes, size = call.attributes, call.input(0).shape[1:-1]
    begins, ends = attributes["pads"][: len(size)], attributes["pads"][len(size) :]
    windows = (attributes["kernel_shape"], begins, ends, attributes["strides"])
    found = []
    for count, plan in zip(call.output.shape[1:-1], zip(size, *windows, strict=True), strict=True):
        axis = Axis(*plan, 1)
        found.append(axis if axis.count == count else replace(axis, rounds_up=True))
    return found


def _counts(axes: Sequence[Axis]) -> Array:
    """How many elements each window has, shaped to broadcast against the output."""
    found = np.ones(1, np.int64)
    for axis in axes:
        counts = [axis.elements(index, with_padding=False) for index in range(axis.count)]
        found = found[..., None] * np.array(counts, np.int64)
    return found[..., None]


def _maxpool(call: Call) -> Run:
    return pick_largest(_window_axes(call), 1, call.output)


def pick_largest(axes: Sequence[Axis], first: int, type_: TensorType) -> Run:
    """The largest element of every window; the axes of windows are those from `first` on."""
    elem, wide = type_.elem, widening(type_)
    lowest = elem.lowest if elem.is_integer else -np.inf
    pool = pool_along(axes, first, np.maximum, lowest)

    def fill(x: Array, y: Array) -> None:
        y[...] = pool(wide(x))

    def calls(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        return largest_calls(axes, first, lowest, present(inputs[0]), outputs[0], room)

    run = fill_run(fill)
    is_plain = elem.is_integer or elem.bits >= 32
    return FixableRun(calls, run) if is_plain else run


def largest_calls(
    axes: Sequence[Axis], first: int, lowest: float, x: Array, y: Array, room: Scratch
) -> Iterator[FixedCall]:
    """The calls that find the largest elements along one axis after the other."""
    left = [(axis, first + at) for at, axis in enumerate(axes) if not axis.is_plain]
    if not left:
        yield partial(np.copyto, y, x)
    for step, (axis, at) in enumerate(left, 1):
        shape = (*x.shape[:at], axis.count, *x.shape[at + 1 :])
        # Those of the axis before are read while these are written.
        found = y if step == len(left) else room(f"largest {step % 2}", shape, x.dtype)
        yield from _axis_calls(axis, at, lowest, x, found)
        x = found


def _axis_calls(axis: Axis, at: int, lowest: float, x: Array, y: Array) -> Iterator[FixedCall]:
    before = (slice(None),) * at
    if is_long(axis) and axis.single is None:
        pool = combine_blocks(axis, at, np.maximum, lowest)
        yield lambda: np.copyto(y, pool(x))
        return
    if (some := _long_window(axis)) is not None:
        yield partial(np.maximum.reduce, x[(*before, some)], axis=at, keepdims=True, out=y)
        return
    every, steps = slice(0, axis.count), list(axis.steps)
    # Where all windows have two elements, there is nothing yet to compare them with.
    whole = [source for target, source in steps if target == every][:2]
    if len(whole) == 2:
        steps = [(target, source) for target, source in steps if source not in whole]
        yield partial(np.maximum, x[(*before, whole[0])], x[(*before, whole[1])], out=y)
    else:
        yield partial(y.fill, lowest)
    for target, source in steps:
        held = y[(*before, target)]
        yield partial(np.maximum, held, x[(*before, source)], out=held)


def _avgpool(call: Call) -> Run:
    x, y = call.input(0), call.output
    axes = _window_axes(call)
    counts = _counts(axes)
    if x.quant is not None and y.quant is not None and not x.quant.equals(y.quant):
        return _requantized_mean(call, axes, counts)
    if x.elem.is_integer:
        return _integer_mean(call, axes, counts)
    return _float_mean(call, axes, counts)


def _total(x: Array, shape: Dims, positions: Positions) -> Array:
    total = np.zeros(shape, x.dtype)
    for target, source in positions:
        held = total[target]
        np.add(held, x[source], out=held)
    return total


def window_sums(axes: Sequence[Axis], first: int, is_ordered: bool) -> Pool:
    """The sum of every window of floats; the axes of windows are those from `first` on."""
    if not is_ordered:
        return pool_along(axes, first, np.add, 0.0)
    positions, counts = _positions(axes, first), tuple(axis.count for axis in axes)

    def run(x: Array) -> Array:
        shape = (*x.shape[:first], *counts, *x.shape[first + len(counts) :])
        return _total(x, shape, positions)

    return run


def pool_along(axes: Sequence[Axis], first: int, combine: np.ufunc, neutral: float) -> Pool:
    """Combine the elements of every window along one axis after the other, from `first` on."""
    pools = [
        _pool_axis(axis, first + at, combine, neutral)
        for at, axis in enumerate(axes)
        if not axis.is_plain
    ]

    def run(x: Array) -> Array:
        for pool in pools:
            x = pool(x)
        return x

    return run


def _pool_axis(axis: Axis, at: int, combine: np.ufunc, neutral: float) -> Pool:
    step_by_step = _pool_by_steps(axis, at, combine, neutral)
    if combine is not np.maximum or not _is_quick(axis):
        return step_by_step
    in_runs = _in_runs(axis, at, neutral)
    return lambda x: (in_runs if x.ndim == at + 1 and x.flags.c_contiguous else step_by_step)(x)


def _is_quick(axis: Axis) -> bool:
    """Whether windows that are cut off are few, and hardly an element is looked at in vain."""
    is_close = 1 < axis.stride <= axis.window <= _LONG and axis.dilation == 1
    return is_close and len(_whole(axis)) > axis.count // 2


def _whole(axis: Axis) -> range:
    """The windows that lie in no padding."""
    first = -(-axis.begin // axis.stride)
    return range(first, min(axis.count, (axis.size - axis.window + axis.begin) // axis.stride + 1))


def _in_runs(axis: Axis, at: int, lowest: float) -> Pool:
    """The largest of every window along the last axis, from the largest at every element on.

    Between elements that follow each other NumPy compares many at once, between every other one
    each by itself. At the ends of rows are windows of two rows: they are not taken.
    """
    whole, before = _whole(axis), (slice(None),) * at
    start = whole.start * axis.stride - axis.begin
    taken = (*before, slice(start, start + (len(whole) - 1) * axis.stride + 1, axis.stride))
    starts = {index: index * axis.stride - axis.begin for index in range(axis.count)}
    ends = [
        (index, slice(max(0, first), max(0, min(first + axis.window, axis.size))))
        for index, first in starts.items()
        if index not in whole
    ]

    def pool(x: Array) -> Array:
        flat = x.reshape(-1)
        length = flat.size - axis.window + 1
        room = np.empty(x.shape, x.dtype)
        largest = room.reshape(-1)[:length]
        np.maximum(flat[:length], flat[1 : length + 1], out=largest)
        for place in range(2, axis.window):
            np.maximum(largest, flat[place : length + place], out=largest)
        if not ends:
            return room[taken]
        found = np.empty((*x.shape[:at], axis.count), x.dtype)
        found[..., whole.start : whole.stop] = room[taken]
        for index, some in ends:
            np.maximum.reduce(x[..., some], axis=at, out=found[..., index], initial=lowest)
        return found

    return pool


def _pool_by_steps(axis: Axis, at: int, combine: np.ufunc, neutral: float) -> Pool:
    before = (slice(None),) * at
    is_sum = combine is np.add
    if is_long(axis) and (is_sum or axis.single is None):
        return combine_blocks(axis, at, combine, neutral)
    if (some := _long_window(axis)) is not None:
        return _single(combine, at, (*before, some))
    every = slice(0, axis.count)
    steps = [
        (target == every, (*before, target), (*before, source)) for target, source in axis.steps
    ]
    # Where all windows have the first two elements, there is nothing yet to combine them with.
    ready = 2 if len(steps) >= 2 and steps[0][0] and steps[1][0] else 0

    def pool(x: Array) -> Array:
        if ready:
            found: Array = combine(x[steps[0][2]], x[steps[1][2]])
        else:
            found = np.full((*x.shape[:at], axis.count, *x.shape[at + 1 :]), neutral, x.dtype)
        for is_whole, target, source in steps[ready:]:
            held = found if is_whole else found[target]
            combine(held, x[source], out=held)
        return found

    return pool


def _long_window(axis: Axis) -> slice | None:
    """The elements of the only window along an axis, where one step for each were slow."""
    some = axis.single
    return some if some is not None and len(range(axis.size)[some]) >= _LONG else None


def _single(combine: np.ufunc, at: int, elements: Index) -> Pool:
    """One window of many elements, which are taken in the order that short ones are taken in."""
    if combine is not np.add:
        return lambda x: combine.reduce(x[elements], axis=at, keepdims=True)
    last = (slice(None),) * at + (slice(-1, None),)
    return lambda x: np.add.accumulate(x[elements], axis=at, dtype=x.dtype)[last]


def _float_mean(call: Call, axes: Sequence[Axis], counts: Array) -> Run:
    return quiet(fill_run(average(axes, 1, call, counts)))


def average(axes: Sequence[Axis], first: int, call: Call, counts: Array) -> Fill:
    """The mean of every window of floats, of so many elements each; of none it is 0."""
    wide, is_ordered = widening(call.input(0)), call.ordered
    divisors = np.maximum(counts, 1).astype(wide_float(call.input(0)))
    pool = window_sums(axes, first, is_ordered)

    def fill(x: Array, y: Array) -> None:
        mean = np.divide(pool(wide(x)), divisors)
        y[...] = same_nan(mean) if is_ordered else mean

    return fill


def _requantized_mean(call: Call, axes: Sequence[Axis], counts: Array) -> Run:
    real, stored = dequantizer(call.input(0)), quantizer(call.output)
    pool = window_sums(axes, 1, is_ordered=not any(map(is_long, axes)))
    divisors = np.maximum(counts, 1).astype(np.float32)

    def fill(x: Array, y: Array) -> None:
        y[...] = stored(pool(real(x)) / divisors)

    return quiet(fill_run(fill))


def _integer_mean(call: Call, axes: Sequence[Axis], counts: Array) -> Run:
    """Exact sums, divided and rounded half to even."""
    shape, divisors = call.output.shape, np.maximum(counts, 1)
    mean, wide = _exact_division(call.input(0).elem.bits, int(counts.max(initial=1)))
    divisors = divisors.astype(wide)
    is_empty = counts == 0
    has_empty = bool(is_empty.any())
    quant = call.output.quant or call.input(0).quant
    zero = np.int32(0) if quant is None else quant.broadcast_parameters(shape)[1]
    pool = window_sums(axes, 1, is_ordered=not any(map(is_long, axes)))

    def fill(x: Array, y: Array) -> None:
        y[...] = mean(pool(x.astype(wide)), divisors)
        if has_empty:
            np.copyto(y, zero, where=is_empty, casting="unsafe")

    return fill_run(fill)


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


def _example(x: Dims, kernel: Dims, pads: Dims, strides: Dims) -> Example:
    return Example((x,), {"kernel_shape": kernel, "pads": pads, "strides": strides})


_EXAMPLES = (
    _example((1, 6, 6, 3), (2, 2), (0, 0, 0, 0), (2, 2)),
    _example((2, 5, 7, 1), (3, 2), (1, 0, 1, 1), (2, 1)),
    _example((1, 1, 1, 1), (1, 1), (1, 1, 1, 1), (1, 1)),  # windows without any element
)
POOLING = tuple(
    Primitive(name, bind, _shape, _work, examples=_EXAMPLES)
    for name, bind in (("maxpool", _maxpool), ("avgpool", _avgpool))
)
