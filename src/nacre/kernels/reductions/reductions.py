"""Reductions over axes, and where along an axis the largest or smallest element lies.

Sums of floats are taken in f32 (f64 in f64) and rounded once; sums of integers are exact and then
wrapped to their type, unless both sides carry a quantisation: then real values are summed. A NaN
is the maximum and the minimum of whatever it is among, and the first one is where those lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

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
from nacre.kernels.numbers.numbers import saturate_to, widen_to_f32, wrap_to
from nacre.kernels.numbers.quantization import dequantizer, quantizer
from nacre.kernels.products.products import same_nan
from nacre.kernels.reductions.column_sums import are_worth_it, column_sum_calls


def wide_float(type_: TensorType) -> np.dtype[Any]:
    """The type that a float tensor is computed in: f32, or f64 where the tensor is wider."""
    return np.dtype(np.float64 if type_.elem.bits > 32 else np.float32)


def widening(type_: TensorType) -> Callable[[Array], Array]:
    """How a tensor becomes what it is computed in: floats as `wide_float` says, the rest stays.

    That is exact. Comparisons too are quicker so, and ml_dtypes would warn of NaN.
    """
    if type_.elem.is_integer or type_.elem.bits > 32:
        return lambda values: values
    return widen_to_f32


def keepdims_shape(x: Dims, axes: Dims) -> Dims:
    """The shape with size 1 along the axes: any result shape is that one but for sizes of 1.

    Arrays are reshaped to it and from it, which never copies, whatever their strides.
    """
    return shapes.reduce(x, axes, keepdims=True)


def float_sum(x: Array, axes: Dims, is_ordered: bool) -> Array:
    """The sum over some axes, which stay with size 1; in row-major order if so asked."""
    ascending, rest, target, size = _arrangement(x.shape, axes)
    if not is_ordered:
        # What is summed up lies behind the rest: rows are dense as they are.
        if size is not None and x.flags.c_contiguous and x.flags.aligned:
            return np.asarray(np.add.reduce(x.reshape(-1, size), axis=1)).reshape(target)
        return _row_sums(x, ascending, rest).reshape(target)
    rows = x.transpose(ascending + rest).reshape(-1, *(x.shape[axis] for axis in rest))
    # A running sum adds one by one, however the platform would arrange a plain sum.
    # From +0 on, as NumPy's own sums: a sum of -0.0 is 0.0.
    last = np.add.accumulate(rows, axis=0)[-1:] + x.dtype.type(0)
    return same_nan(last.reshape(target))


@lru_cache(maxsize=1024)
def _arrangement(x: Dims, axes: Dims) -> tuple[Dims, Dims, Dims, int | None]:
    """The axes of sums, the others, the shape that is kept, and how long the rows of sums are.

    None where sums do not run over the last axes.
    """
    ascending = tuple(sorted(axes))
    rest = tuple(axis for axis in range(len(x)) if axis not in axes)
    is_last = bool(axes) and rest == tuple(range(len(rest)))
    size = prod(x[axis] for axis in axes) if is_last else None
    return ascending, rest, keepdims_shape(x, axes), size


def _row_sums(x: Array, axes: Dims, rest: Dims) -> Array:
    """Sums that follow from their terms alone, in whatever tile or layout they come.

    NumPy adds up in an order that depends on strides and on the sizes of other axes, so it is
    given dense rows; or its order is followed where rows would have to be gathered.
    """
    size = prod(x.shape[axis] for axis in axes)
    columns = _columns(x, axes, size)
    if columns is not None:
        total = np.empty((columns.shape[0], columns.shape[2]), x.dtype)
        for call in column_sum_calls(columns, total):
            call()
        return total
    rows = np.require(x.transpose(rest + axes).reshape(-1, size), None, ("C", "A"))
    return np.asarray(np.add.reduce(rows, axis=1))


def _columns(x: Array, axes: Dims, size: int) -> Array | None:
    """X as [before, size, behind] where sums are taken so; None where rows are gathered."""
    if not axes or axes[-1] - axes[0] != len(axes) - 1:
        return None
    if not (x.flags.c_contiguous and x.flags.aligned):
        return None
    before, behind = prod(x.shape[: axes[0]]), prod(x.shape[axes[-1] + 1 :])
    # Of one column NumPy would make a row.
    if behind == 1 or not are_worth_it(before, size, behind):
        return None
    return x.reshape(before, size, behind)


def sum_calls(x: Array, axes: Dims, total: Array, room: Scratch) -> Iterator[FixedCall]:
    """The calls that fill a dense array with the sums of a dense array over axes, by no order."""
    ascending, rest, _, row = _arrangement(x.shape, axes)
    if row is not None:
        yield partial(np.add.reduce, x.reshape(-1, row), axis=1, out=total.reshape(-1))
        return
    size = prod(x.shape[axis] for axis in axes)
    columns = _columns(x, ascending, size)
    if columns is not None:
        yield from column_sum_calls(columns, total.reshape(columns.shape[0], columns.shape[2]))
        return
    moved = x.transpose(rest + ascending)
    rows = room("rows", moved.shape, x.dtype)
    yield partial(np.copyto, rows, moved)
    yield partial(np.add.reduce, rows.reshape(-1, size), axis=1, out=total.reshape(-1))


def bind_sum(call: Call, axes: Dims) -> Run:
    """A sum over axes counted from the front, stored values taken as they are."""
    type_, target = call.input(0), keepdims_shape(call.input(0).shape, axes)
    if not type_.elem.is_integer:
        return _float_sum(call, axes)
    if type_.elem.bits < 8:

        def fill_narrow(x: Array, y: Array) -> None:
            total = np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=True)
            y.reshape(target)[...] = wrap_to(total, type_.elem)

        return fill_run(fill_narrow)

    def fill(x: Array, y: Array) -> None:
        # Integer arithmetic of a width is arithmetic modulo that width.
        np.add.reduce(x, axis=axes, dtype=x.dtype, out=y.reshape(target), keepdims=True)

    return fill_run(fill)


def _float_sum(call: Call, axes: Dims) -> Run:
    return float_sums(call, axes, None)


def float_sums(call: Call, axes: Dims, divisor: float | None) -> Run:
    """The sums of floats over axes, or their means where there is something to divide by."""
    type_, target = call.input(0), keepdims_shape(call.input(0).shape, axes)
    wide, is_ordered = widening(type_), call.ordered
    count = None if divisor is None else wide_float(type_).type(divisor)

    def fill(x: Array, y: Array) -> None:
        total = float_sum(wide(x), axes, is_ordered)
        y.reshape(target)[...] = total if count is None else total / count

    def calls(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        y = outputs[0]
        yield from sum_calls(present(inputs[0]), axes, y, room)
        if count is not None:
            yield partial(np.divide, y, count, y)

    run = fill_run(fill)
    is_plain = type_.dtype == call.output.dtype == wide_float(type_) and not is_ordered
    return quiet(FixableRun(calls, run) if is_plain else run)


def _known_axes(call: Call) -> Dims:
    axes = shapes.axes_of(call.attributes["axes"], len(call.input(0).shape))
    if axes is None:
        raise ValueError(f"axes {call.attributes['axes']} are not axes of the input")
    return axes


def _reduce_sum(call: Call) -> Run:
    axes = _known_axes(call)
    if not call.is_quantized:
        return bind_sum(call, axes)
    real, stored = dequantizer(call.input(0)), quantizer(call.output)
    shape, is_ordered = call.output.shape, call.ordered

    def fill(x: Array, y: Array) -> None:
        total = float_sum(real(x), axes, is_ordered)
        y[...] = stored(total.reshape(shape))

    return quiet(fill_run(fill))


def _extremum(call: Call, pick: np.ufunc) -> Run:
    x_type, y_type = call.input(0), call.output
    axes, wide = _known_axes(call), widening(x_type)
    target = keepdims_shape(x_type.shape, axes)
    x_quant, y_quant = x_type.quant, y_type.quant
    if x_quant is not None and y_quant is not None and not x_quant.equals(y_quant):
        return _requantized_extremum(call, pick, axes)
    if x_type.elem.is_integer or x_type.elem.bits >= 32:
        return fill_run(
            lambda x, y: pick.reduce(x, axis=axes, out=y.reshape(target), keepdims=True)
        )

    def fill(x: Array, y: Array) -> None:
        y.reshape(target)[...] = pick.reduce(wide(x), axis=axes, keepdims=True)

    return fill_run(fill)


def _requantized_extremum(call: Call, pick: np.ufunc, axes: Dims) -> Run:
    real, stored = dequantizer(call.input(0)), quantizer(call.output)
    shape = call.output.shape

    def fill(x: Array, y: Array) -> None:
        y[...] = stored(pick.reduce(real(x), axis=axes, keepdims=True).reshape(shape))

    return fill_run(fill)


def _position(call: Call, is_largest: bool) -> Run:
    type_, elem = call.input(0), call.output.elem
    axis = call.attributes["axis"] % len(type_.shape)
    target = keepdims_shape(type_.shape, (axis,))
    wide = widening(type_)
    fits = type_.shape[axis] - 1 <= elem.highest

    def fill(x: Array, y: Array) -> None:
        values = wide(x)
        if is_largest:
            found: Array = values.argmax(axis=axis, keepdims=True)
        else:
            found = values.argmin(axis=axis, keepdims=True)
        y.reshape(target)[...] = found if fits else saturate_to(found, elem)

    return fill_run(fill)


def _reduced_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, axes, keepdims = inputs[0], integers(attributes, "axes"), attributes.get("keepdims")
    if x is None or axes is None or not isinstance(keepdims, bool):
        return None
    known = shapes.axes_of(axes, len(x))
    return None if known is None else [shapes.reduce(x, known, keepdims)]


def _position_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x, axis, keepdims = inputs[0], attributes.get("axis"), attributes.get("keepdims")
    if x is None or not isinstance(axis, int) or not isinstance(keepdims, bool):
        return None
    known = shapes.axis_of(axis, len(x))
    return None if known is None else [shapes.reduce(x, (known,), keepdims)]


def reads_input(call: Call) -> Work:
    """The work of what touches every element of its input once."""
    return Work(elements=call.input(0).count)


_EXAMPLES = (
    Example(((3, 4, 5),), {"axes": (1,), "keepdims": False}),
    Example(((3, 4, 5),), {"axes": (0, -1), "keepdims": True}),
    Example(((7,),), {"axes": (0,), "keepdims": False}),
    Example(((1, 1),), {"axes": (0,), "keepdims": False}),
)
_POSITIONS = (
    Example(((3, 4, 5),), {"axis": 1, "keepdims": False}),
    Example(((3, 7),), {"axis": -1, "keepdims": True}),
    Example(((1,),), {"axis": 0, "keepdims": False}),
)
REDUCTIONS = (
    *(
        Primitive(name, bind, _reduced_shape, reads_input, examples=_EXAMPLES)
        for name, bind in (
            ("reduce_sum", _reduce_sum),
            ("reduce_max", partial(_extremum, pick=np.maximum)),
            ("reduce_min", partial(_extremum, pick=np.minimum)),
        )
    ),
    *(
        Primitive(name, bind, _position_shape, reads_input, examples=_POSITIONS)
        for name, bind in (
            ("argmax", partial(_position, is_largest=True)),
            ("argmin", partial(_position, is_largest=False)),
        )
    ),
)
