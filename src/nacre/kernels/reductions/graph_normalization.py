"""Normalisations that graphs have, in f32 (f64 in f64), rounded once to the output type.

IEEE arithmetic decides about NaN and infinities, but for one case: a softmax over nothing but minus
infinity, a row that is masked whole, is 0. Over values that hold NaN or plus infinity it is NaN
throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite, prod

import numpy as np

from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, expect_rank, expect_shape, fitting_axis
from nacre.kernels.interface.runs import present, unbuffered
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.graph_products import settle
from nacre.kernels.reductions.normalization_rows import (
    Parameters,
    Rows,
    centre_rows,
    log_softmax_rows,
    normalise_mean_square,
    row_by_row,
    scalar_of_type,
    softmax_along,
    softmax_rows,
    through_double,
)
from nacre.kernels.reductions.reductions import wide_float, widening

Make = Callable[[Call, int], Rows]  # for rows of so many elements


def _number(call: Call, name: str) -> Array:
    """A float among the attributes, in the type that is computed in."""
    return scalar_of_type(call.attributes[name], wide_float(call.input(0)))


def _storing(call: Call, compute: Callable[..., Array]) -> Run:
    """A run that widens the operands, computes a new array, and rounds once."""
    wide, is_ordered = widening(call.input(0)), call.ordered

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        found = compute(*(wide(present(x)) for x in inputs))
        settle(found, is_ordered)
        outputs[0][...] = found
        return None

    return unbuffered(run)


def _bind_softmax(call: Call, rows: Make) -> Run:
    return softmax_along(call, _axis(call), rows)


def _axis(call: Call) -> int:
    return fitting_axis(call.attributes["axis"], len(call.input(0).shape))


def _bind_trailing(call: Call, rows: Make) -> Run:
    size = prod(call.input(0).shape[_axis(call) :])
    return row_by_row(call, size, rows(call, size), Parameters(1, size))


def _bind_channels(call: Call) -> Run:
    """`GroupNorm`, and `InstanceNorm`, where every channel is a group."""
    x = call.input(0).shape
    groups = call.attributes.get("groups", x[1])
    size = prod(x[1:]) // groups
    return row_by_row(call, size, centre_rows(call, size), Parameters(groups, x[1] // groups))


def _broadcast_shape(x: Dims, axis: int) -> Dims:
    """The shape under which one value per place along an axis broadcasts."""
    return tuple(dim if at == axis else 1 for at, dim in enumerate(x))


def _bind_batch_norm(call: Call) -> Run:
    spread, epsilon = _broadcast_shape(call.input(0).shape, _axis(call)), _number(call, "epsilon")

    def compute(x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
        factor = scale / np.sqrt(variance + epsilon)
        # One multiplication and one addition for each element, as onnxruntime and torch have it.
        shift = bias - mean * factor
        values: Array = np.multiply(x, factor.reshape(spread))
        np.add(values, shift.reshape(spread), out=values)
        return values

    return _storing(call, compute)


def _bind_lrn(call: Call) -> Run:
    channels, size = call.input(0).shape[1], call.attributes["size"]
    share = scalar_of_type(call.attributes["alpha"] / size, wide_float(call.input(0)))
    beta, bias = _number(call, "beta"), _number(call, "bias")
    power = through_double(np.power, call.ordered)
    before, behind = (size - 1) // 2, size - 1 - (size - 1) // 2
    offsets = range(-min(before, channels - 1), min(behind, channels - 1) + 1)

    def compute(x: Array) -> Array:
        squares = np.square(x)
        total = np.zeros_like(squares)
        for offset in offsets:
            first, last = max(0, -offset), min(channels, channels - offset)
            target = total[:, first:last]
            np.add(target, squares[:, first + offset : last + offset], out=target)
        np.multiply(total, share, out=total)
        np.add(total, bias, out=total)
        return np.divide(x, power(total, beta, out=total), out=total)

    return _storing(call, compute)


def expect_finite(attributes: Attributes, name: str, least: float | None = None) -> None:
    """Raise a Misfit where a number is NaN, infinite, or too small."""
    value = attributes[name]
    try:
        is_fine = isfinite(value) and (least is None or value >= least)
    except OverflowError:  # an integer beyond all floats
        is_fine = False
    if not is_fine:
        wanted = "a finite number" if least is None else f"a finite number of at least {least:g}"
        raise Misfit(f"`{name}` is {value}, expected {wanted}")


def _fit_softmax(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    fitting_axis(attributes["axis"], len(inputs[0]))
    return inputs[0]


def _parameters(inputs: Sequence[Dims], wanted: Dims) -> None:
    names = ("`scale`", "`bias`", "`mean`", "`variance`")
    for dims, name in zip(inputs[1:], names, strict=False):
        expect_shape(dims, wanted, name)


def _fit_trailing(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x = inputs[0]
    axis = fitting_axis(attributes["axis"], len(x))
    expect_finite(attributes, "epsilon", 0)
    _parameters(inputs, x[axis:])
    return x


def _fit_channels(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x = inputs[0]
    expect_rank(x, 3 if "groups" not in attributes else 2)
    groups = attributes.get("groups", x[1])
    if groups < 1 or x[1] % groups:
        raise Misfit(f"`groups` is {groups}, expected a divisor of the {x[1]} channels")
    expect_finite(attributes, "epsilon", 0)
    _parameters(inputs, x[1:2])
    return x


def _fit_batch_norm(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x = inputs[0]
    axis = fitting_axis(attributes["axis"], len(x))
    expect_finite(attributes, "epsilon", 0)
    _parameters(inputs, (x[axis],))
    return x


def _fit_lrn(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    expect_rank(inputs[0], 2)
    if attributes["size"] < 1:
        raise Misfit(f"`size` is {attributes['size']}, expected at least 1")
    for name in ("size", "alpha", "beta", "bias"):
        expect_finite(attributes, name)
    return inputs[0]


def _exponential_work(call: Call) -> Work:
    return Work(elements=call.output.count, each=11)  # e^x, and passes for maximum, sum, quotient


def _norm_work(call: Call) -> Work:
    return Work(elements=2 * call.output.count)


def _batch_norm_work(call: Call) -> Work:
    return Work(elements=call.output.count)


def _lrn_work(call: Call) -> Work:
    size = min(call.attributes["size"], 2 * call.input(0).shape[1])
    return Work(elements=call.output.count, each=8 + size)


GRAPH_NORMALIZATION: tuple[Primitive, ...] = (
    *(
        Primitive(name, partial(_bind_softmax, rows=rows), Fitting(_fit_softmax), _exponential_work)
        for name, rows in (("core.Softmax", softmax_rows), ("core.LogSoftmax", log_softmax_rows))
    ),
    *(
        Primitive(name, partial(_bind_trailing, rows=rows), Fitting(_fit_trailing), _norm_work)
        for name, rows in (("core.LayerNorm", centre_rows), ("core.RmsNorm", normalise_mean_square))
    ),
    *(
        Primitive(name, _bind_channels, Fitting(_fit_channels), _norm_work)
        for name in ("core.GroupNorm", "core.InstanceNorm")
    ),
    Primitive("core.BatchNorm", _bind_batch_norm, Fitting(_fit_batch_norm), _batch_norm_work),
    Primitive("core.Lrn", _bind_lrn, Fitting(_fit_lrn), _lrn_work),
)
