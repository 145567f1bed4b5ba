"""Poolings that graphs have, in either layout: one axis after the other.

A window's largest element is the largest of its rows' largest, and its sum the sum of its rows'
sums. Along an axis not windows are visited but the places in them: every window takes its element
at a place in one step. So sums have one order on every platform, asked for or not.

A window that lies wholly in padding has the lowest value of the type as its maximum (minus
infinity for floats), and 0 as its mean and norm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from nacre.kernels.call import Array, Attributes, Call, Primitive, Run, Work
from nacre.kernels.fitting import Fitting, Misfit, expect_length
from nacre.kernels.graph_sliding import (
    Axis,
    Sliding,
    fitting_counts,
    fitting_windows,
    has_channels_last,
    joined,
    spatial_of,
)
from nacre.kernels.normalization_rows import through_double
from nacre.kernels.products import same_nan
from nacre.kernels.reductions import wide_float, widening
from nacre.kernels.runs import filling, swift
from nacre.kernels.shapes import Dims

# So many elements of one window are taken in one step, where their order is not asked for.
_LONG = 8
_LARGEST_POWER = 1 << 20
Pool = Callable[[Array], Array]  # along one axis; what is given is not changed


def _sliding(call: Call) -> Sliding:
    return fitting_windows(call.input(0).shape, call.attributes["kernel"], call.attributes)


def _along_axes(call: Call, combine: np.ufunc, neutral: float) -> Pool:
    """Combine the elements of every window, axis by axis."""
    use = _sliding(call)
    first = 1 if use.is_last else 2
    pools = [
        _along(axis, first + at, combine, neutral, call.ordered)
        for at, axis in enumerate(use.axes)
        if not axis.is_plain
    ]

    def run(x: Array) -> Array:
        for pool in pools:
            x = pool(x)
        return x

    return run


def _along(axis: Axis, at: int, combine: np.ufunc, neutral: float, is_ordered: bool) -> Pool:
    before = (slice(None),) * at
    steps = [((*before, target), (*before, source)) for target, source in axis.steps]
    if axis.count == 1 and len(steps) >= _LONG and not is_ordered:
        first, last = axis.steps[0][1].start, axis.steps[-1][1].start
        run = (*before, slice(first, last + 1, axis.dilation))
        return lambda x: combine.reduce(x[run], axis=at, keepdims=True)
    # Those that all windows take part in come first: there is nothing yet to combine with.
    whole = [source for target, source in steps if target[at] == slice(0, axis.count)]
    rest = [step for step in steps if step[0][at] != slice(0, axis.count)]

    def pool(x: Array) -> Array:
        shape = (*x.shape[:at], axis.count, *x.shape[at + 1 :])
        if len(whole) >= 2:
            found: Array = combine(x[whole[0]], x[whole[1]])
        elif whole:
            found = x[whole[0]].copy()
        else:
            found = np.full(shape, neutral, x.dtype)
        for source in whole[2:]:
            combine(found, x[source], out=found)
        for target, source in rest:
            held = found[target]
            combine(held, x[source], out=held)
        return found

    return pool


def _bind_max(call: Call) -> Run:
    elem, wide = call.output.elem, widening(call.output)
    pool = _along_axes(call, np.maximum, elem.lowest if elem.is_integer else -np.inf)

    def fill(x: Array, y: Array) -> None:
        y[...] = pool(wide(x))

    return swift(filling(fill))


def _bind_average(call: Call) -> Run:
    wide, pool, is_ordered = widening(call.input(0)), _along_axes(call, np.add, 0), call.ordered
    divisors = _divisors(call)

    def fill(x: Array, y: Array) -> None:
        mean = np.divide(pool(wide(x)), divisors)
        y[...] = same_nan(mean) if is_ordered else mean

    return swift(filling(fill))


def _divisors(call: Call) -> Array:
    """How many elements each window counts, to be broadcast against the sums; never 0."""
    use, with_padding = _sliding(call), bool(call.attributes["count_pad"])
    found = np.ones((), np.float64)
    for axis in use.axes:
        counts = [axis.elements(index, with_padding) for index in range(axis.count)]
        found = found[..., None] * np.array(counts, np.float64)
    divisors: Array = np.maximum(found, 1).astype(wide_float(call.input(0)))
    if (divisors == divisors.flat[0]).all():
        return divisors.reshape(-1)[:1]
    return divisors[..., None] if use.is_last else divisors


def _bind_norm(call: Call) -> Run:
    wide, pool, is_ordered = widening(call.input(0)), _along_axes(call, np.add, 0), call.ordered
    powers, roots = _powers(call)

    def fill(x: Array, y: Array) -> None:
        norm = roots(pool(powers(wide(x))))
        y[...] = same_nan(norm) if is_ordered else norm

    return swift(filling(fill))


def _powers(call: Call) -> tuple[Pool, Pool]:
    """`|x|^p` and `x^(1/p)`."""
    p, dtype = call.attributes["p"], wide_float(call.input(0))
    if p == 1:
        return np.abs, np.positive
    if p == 2:
        return np.square, np.sqrt
    power = through_double(np.power, call.ordered)
    exponent, inverse = dtype.type(p), dtype.type(1 / p)
    return lambda x: power(np.abs(x), exponent), lambda x: power(x, inverse)


def fit_pooling(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of a pooling."""
    x, kernel = inputs[0], attributes["kernel"]
    expect_length(kernel, len(spatial_of(x, attributes)), "kernel")
    if not 1 <= attributes.get("p", 1) <= _LARGEST_POWER:
        raise Misfit(f"`p` is {attributes['p']}, expected 1 to {_LARGEST_POWER}")
    sliding = fitting_windows(x, kernel, attributes)
    is_last = has_channels_last(attributes)
    return joined(x[0], fitting_counts(sliding), x[-1] if is_last else x[1], is_last)


def _work(call: Call) -> Work:
    return Work(elements=call.output.count * prod(call.attributes["kernel"]))


GRAPH_POOLING: tuple[Primitive, ...] = (
    Primitive("core.MaxPool", _bind_max, Fitting(fit_pooling), _work),
    Primitive("core.AvgPool", _bind_average, Fitting(fit_pooling), _work),
    Primitive("core.LpPool", _bind_norm, Fitting(fit_pooling), _work),
)
