"""Reductions that graphs have, where the largest and smallest elements lie, and running sums.

Floats up to 32 bits are reduced in f32, f64 in f64, and rounded once; integers wrap. No axes named
means all of them, and gives the shape `[]`, as `Sum` does. A NaN is the largest and the smallest
of whatever it is among, and `ArgMax` and `ArgMin` say where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from nacre.kernels.interface.call import Array, Attributes, Call, Primitive, Run, TensorType, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, fitting_axes, fitting_axis
from nacre.kernels.interface.runs import fill_run, quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.core_products import low_bits
from nacre.kernels.products.products import same_nan
from nacre.kernels.reductions.reductions import float_sum, keepdims_shape, reads_input, widening

Reduce = Callable[[Array, Dims, bool], Array]  # floats, axes, ordered: the axes stay with size 1


def _extremum(pick: np.ufunc, sign: int) -> Reduce:
    def reduce(x: Array, axes: Dims, is_ordered: bool) -> Array:
        found: Array = np.asarray(pick.reduce(x, axis=axes, keepdims=True))
        return _settle_zeros(found, x, axes, sign) if is_ordered else found

    return reduce


def _settle_zeros(found: Array, x: Array, axes: Dims, sign: int) -> Array:
    """Zeros with a sign that does not depend on the platform: -0.0 is the smaller one."""
    is_zero = found == 0
    if is_zero.any():
        wanted = (x == 0) & (np.signbit(x) == (sign < 0))
        has_wanted = np.logical_or.reduce(wanted, axis=axes, keepdims=True)
        signed = np.where(has_wanted, sign, -sign)
        found = np.where(is_zero, np.copysign(found, signed).astype(found.dtype), found)
    return same_nan(found)


def _product(x: Array, axes: Dims, is_ordered: bool) -> Array:
    if not is_ordered:
        return np.asarray(np.multiply.reduce(x, axis=axes, keepdims=True))
    rest = tuple(axis for axis in range(x.ndim) if axis not in axes)
    rows = x.transpose((*sorted(axes), *rest)).reshape(-1, *(x.shape[axis] for axis in rest))
    # A running product multiplies one by one, however the platform would arrange a plain one.
    last = np.multiply.accumulate(rows, axis=0)[-1:]
    return same_nan(last.reshape(keepdims_shape(x.shape, axes)))


def _sum_square(x: Array, axes: Dims, is_ordered: bool) -> Array:
    return float_sum(x * x, axes, is_ordered)


def _l1(x: Array, axes: Dims, is_ordered: bool) -> Array:
    return float_sum(np.abs(x), axes, is_ordered)


def _l2(x: Array, axes: Dims, is_ordered: bool) -> Array:
    return np.sqrt(_sum_square(x, axes, is_ordered))


def _log_sum(x: Array, axes: Dims, is_ordered: bool) -> Array:
    return _library_function(np.log, float_sum(x, axes, is_ordered), is_ordered)


def _log_sum_exp(x: Array, axes: Dims, is_ordered: bool) -> Array:
    """By exponentials of differences to the largest element, which cannot overflow."""
    largest = np.asarray(np.maximum.reduce(x, axis=axes, keepdims=True))
    shift = np.where(np.isfinite(largest), largest, largest.dtype.type(0))
    total = float_sum(_library_function(np.exp, x - shift, is_ordered), axes, is_ordered)
    return _library_function(np.log, total, is_ordered) + shift


def _library_function(function: np.ufunc, x: Array, is_ordered: bool) -> Array:
    """A function of a library; ordered, by way of f64, where all libraries round alike."""
    if not is_ordered:
        return np.asarray(function(x))
    return same_nan(np.asarray(function(x.astype(np.float64)).astype(x.dtype)))


_FLOAT: Mapping[str, Reduce] = MappingProxyType(
    {
        "Max": _extremum(np.maximum, 1),
        "Min": _extremum(np.minimum, -1),
        "Prod": _product,
        "SumSquare": _sum_square,
        "L1": _l1,
        "L2": _l2,
        "LogSum": _log_sum,
        "LogSumExp": _log_sum_exp,
    }
)
# What happens to each element first, and what they are then joined by.
_INTEGER: Mapping[str, tuple[Callable[[Array], Array], np.ufunc]] = MappingProxyType(
    {
        "Max": (np.positive, np.maximum),
        "Min": (np.positive, np.minimum),
        "Prod": (np.positive, np.multiply),
        "SumSquare": (np.square, np.add),
        "L1": (np.absolute, np.add),
        "Any": (np.asarray, np.logical_or),
        "All": (np.asarray, np.logical_and),
    }
)


def _axes(axes: Sequence[int], rank: int) -> Dims:
    return fitting_axes(axes, rank) or tuple(range(rank))


def _reduce(call: Call) -> Run:
    type_, op = call.input(0), call.attributes["op"]
    axes = _axes(call.attributes["axes"], len(type_.shape))
    target = keepdims_shape(type_.shape, axes)
    if type_.elem.is_integer:
        return _reduce_integers(type_, op, axes)
    reduce, wide, is_ordered = _FLOAT[op], widening(type_), call.ordered

    def fill(x: Array, y: Array) -> None:
        y.reshape(target)[...] = reduce(wide(x), axes, is_ordered)

    return quiet(fill_run(fill))


def _reduce_integers(type_: TensorType, op: str, axes: Dims) -> Run:
    (first, join), elem, target = _INTEGER[op], type_.elem, keepdims_shape(type_.shape, axes)

    def fill(x: Array, y: Array) -> None:
        # Integer arithmetic of a width is arithmetic modulo that width.
        found = join.reduce(first(x), axis=axes, dtype=x.dtype, keepdims=True)
        y.reshape(target)[...] = low_bits(found, elem) if elem.bits < 8 else found

    return fill_run(fill)


def _position(is_largest: bool, call: Call) -> Run:
    type_, wide = call.input(0), widening(call.input(0))
    axis = fitting_axis(call.attributes["axis"], len(type_.shape))
    target, is_last, size = (
        keepdims_shape(type_.shape, (axis,)),
        call.attributes["last"],
        type_.shape[axis],
    )
    find = np.argmax if is_largest else np.argmin

    def fill(x: Array, y: Array) -> None:
        values = wide(x)
        if is_last:
            found = size - 1 - find(np.flip(values, axis), axis=axis, keepdims=True)
        else:
            found = find(values, axis=axis, keepdims=True)
        y.reshape(target)[...] = found

    return fill_run(fill)


def _running(join: np.ufunc, call: Call) -> Run:
    type_, elem, is_ordered = call.input(0), call.output.elem, call.ordered
    axis = fitting_axis(call.attributes["axis"], len(type_.shape))
    size = type_.shape[axis]
    skipped = 1 if call.attributes["exclusive"] else 0
    step = -1 if call.attributes["reverse"] else 1
    before = (slice(None),) * axis
    line, empty = (*before, slice(None, None, step)), (*before, slice(0, skipped))
    summed, filled = (*before, slice(0, size - skipped)), (*before, slice(skipped, None))
    wide = widening(type_)

    def fill(x: Array, y: Array) -> None:
        source, room = wide(x)[line], y[line]
        room[empty] = join.identity
        # One by one, on every platform.
        found = join.accumulate(source[summed], axis=axis, dtype=source.dtype)
        if is_ordered and not elem.is_integer:
            same_nan(found)
        room[filled] = low_bits(found, elem) if elem.bits < 8 else found

    return quiet(fill_run(fill))


def _fit_reduce(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    if attributes.get("op") not in OPERATIONS:
        expected = ", ".join(f"`{name}`" for name in OPERATIONS)
        raise Misfit(f"`op` is `{attributes.get('op')}`, expected one of {expected}")
    axes = fitting_axes(attributes["axes"], len(x))
    return _reduced_shape(x, axes, attributes["keepdims"]) if axes else ()


def _fit_position(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    axis = fitting_axis(attributes["axis"], len(x))
    return _reduced_shape(x, (axis,), attributes["keepdims"])


def _reduced_shape(x: Dims, axes: Dims, keepdims: bool) -> Dims:
    if keepdims:
        return keepdims_shape(x, axes)
    gone = frozenset(axes)
    return tuple(dim for axis, dim in enumerate(x) if axis not in gone)


def _fit_running(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    fitting_axis(attributes["axis"], len(inputs[0]))
    return inputs[0]


def _work(call: Call) -> Work:
    is_costly = call.attributes["op"] == "LogSumExp"
    return Work(elements=call.input(0).count, each=8 if is_costly else 1)


OPERATIONS = tuple(dict.fromkeys((*_FLOAT, *_INTEGER)))

GRAPH_REDUCTIONS: tuple[Primitive, ...] = (
    Primitive("core.Reduce", _reduce, Fitting(_fit_reduce), _work),
    Primitive("core.ArgMax", partial(_position, True), Fitting(_fit_position), reads_input),
    Primitive("core.ArgMin", partial(_position, False), Fitting(_fit_position), reads_input),
    Primitive("core.CumSum", partial(_running, np.add), Fitting(_fit_running), reads_input),
    Primitive("core.CumProd", partial(_running, np.multiply), Fitting(_fit_running), reads_input),
)
