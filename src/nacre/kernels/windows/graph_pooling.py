"""Poolings that graphs have, in either layout: one axis after the other, as those of plans.

A window that lies wholly in padding has the lowest value of the type as its maximum (minus
infinity for floats), and 0 as its mean and norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.kernels.interface.call import Array, Attributes, Call, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, expect_length
from nacre.kernels.interface.runs import fill_run, quiet, unbuffered
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.products import same_nan
from nacre.kernels.reductions.normalization_rows import through_double
from nacre.kernels.reductions.reductions import wide_float, widening
from nacre.kernels.windows.pooling import Pool, average, pick_largest, window_sums
from nacre.kernels.windows.sliding import (
    Sliding,
    fitting_counts,
    fitting_windows,
    has_channels_last,
    join_shape,
    spatial_of,
)

_LARGEST_POWER = 1 << 20


def _sliding(call: Call) -> Sliding:
    return fitting_windows(call.input(0).shape, call.attributes["kernel"], call.attributes)


def _sums(call: Call) -> Pool:
    use = _sliding(call)
    return window_sums(use.axes, _first_axis(use), call.ordered)


def _bind_max(call: Call) -> Run:
    use = _sliding(call)
    return quiet(pick_largest(use.axes, _first_axis(use), call.output))


def _bind_average(call: Call) -> Run:
    use = _sliding(call)
    return unbuffered(fill_run(average(use.axes, _first_axis(use), call, _counts(call))))


def _first_axis(use: Sliding) -> int:
    """Of those that windows lie over."""
    return 1 if use.is_last else 2


def _counts(call: Call) -> Array:
    """How many elements each window counts, to be broadcast against the sums."""
    use, with_padding = _sliding(call), bool(call.attributes["count_pad"])
    found = np.ones((), np.float64)
    for axis in use.axes:
        counts = [axis.elements(index, with_padding) for index in range(axis.count)]
        found = found[..., None] * np.array(counts, np.float64)
    if (found == found.flat[0]).all():
        return found.reshape(-1)[:1]
    return found[..., None] if use.is_last else found


def _bind_norm(call: Call) -> Run:
    wide, pool, is_ordered = widening(call.input(0)), _sums(call), call.ordered
    powers, roots = _powers(call)

    def fill(x: Array, y: Array) -> None:
        norm = roots(pool(powers(wide(x))))
        y[...] = same_nan(norm) if is_ordered else norm

    return unbuffered(fill_run(fill))


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
    return join_shape(x[0], fitting_counts(sliding), x[-1] if is_last else x[1], is_last)


def _work(call: Call) -> Work:
    return Work(elements=call.output.count * prod(call.attributes["kernel"]))


GRAPH_POOLING: tuple[Primitive, ...] = (
    Primitive("core.MaxPool", _bind_max, Fitting(fit_pooling), _work),
    Primitive("core.AvgPool", _bind_average, Fitting(fit_pooling), _work),
    Primitive("core.LpPool", _bind_norm, Fitting(fit_pooling), _work),
)
