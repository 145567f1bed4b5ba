"""The ops of Core IR v1 as primitives `core.NAME`, on any element type.

Floats up to 32 bits are computed in f32 and f64 in f64, then rounded once; integers wrap. Core
has no quantisation: stored integers are taken as they are. Where its text leaves a choice:
the mean of integers is exact and cut towards zero; ends of slices stop at 0 and at the size, and
never count from the end; `Index` and `Gather` outside of the tensor are faults; `Relu` of NaN is
0, as the formula of the text has it; `Log` and `Exp` follow IEEE.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.kernels.elementwise.binary import CORE_BINARY
from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Fault,
    Primitive,
    Run,
    Work,
    integers,
)
from nacre.kernels.interface.forms import binary_shape, unary_shape
from nacre.kernels.interface.runs import copy_run, fill_run, quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.movement.views import (
    bind_gather,
    bind_reshape,
    bind_slice,
    bind_transpose,
    gather_shape,
    moves_outputs,
)
from nacre.kernels.products.core_products import CORE_PRODUCTS, low_bits
from nacre.kernels.reductions.reductions import (
    bind_sum,
    float_sums,
    keepdims_shape,
    reads_input,
    widening,
)


def _axes(call: Call) -> Dims:
    """The axes that a reduction takes; none named means all of them."""
    rank = len(call.input(0).shape)
    return shapes.axes_of(call.attributes["axes"], rank) or tuple(range(rank))


def _reduced_shape(x: Dims, attributes: Attributes) -> Dims | None:
    axes = integers(attributes, "axes")
    known = None if axes is None else shapes.axes_of(axes, len(x))
    if known is None:
        return None
    if not known:
        return ()
    if attributes.get("keepdims", False):
        return shapes.reduce(x, known, keepdims=True)
    return tuple(dim for axis, dim in enumerate(x) if axis not in known)


def _sum(call: Call) -> Run:
    type_, axes = call.input(0), _axes(call)
    if type_.elem.bits >= 8:
        return bind_sum(call, axes)
    target = keepdims_shape(type_.shape, axes)

    def fill_narrow(x: Array, y: Array) -> None:
        total = np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=True)
        y.reshape(target)[...] = low_bits(total, type_.elem)

    return fill_run(fill_narrow)


def _mean(call: Call) -> Run:
    type_, axes = call.input(0), _axes(call)
    target = keepdims_shape(type_.shape, axes)
    count = prod(type_.shape[axis] for axis in axes)

    def fill_integers(x: Array, y: Array) -> None:
        y.reshape(target)[...] = _truncated_mean(x.astype(np.int64), axes, count)

    return fill_run(fill_integers) if type_.elem.is_integer else float_sums(call, axes, count)


def _truncated_mean(x: Array, axes: Dims, count: int) -> Array:
    """The mean cut towards zero, exact even where the sum would leave 64 bits."""
    whole, rest = np.divmod(x, count)
    rests = np.add.reduce(rest, axis=axes, keepdims=True)
    mean = np.add.reduce(whole, axis=axes, keepdims=True) + rests // count
    cut: Array = mean + ((mean < 0) & (rests % count != 0))  # from rounded down
    return cut


def _reshape(call: Call) -> Run:
    return bind_reshape(call.output.shape)


def _reshape_shape(x: Dims, attributes: Attributes) -> Dims | None:
    target = integers(attributes, "new_shape")
    if target is None or target.count(-1) > 1:
        return None
    known = prod(dim for dim in target if dim != -1)
    if known < 1 or min(target, default=1) < -1 or 0 in target:
        return None
    result = tuple(shapes.count(x) // known if dim == -1 else dim for dim in target)
    return result if shapes.count(result) == shapes.count(x) else None


def _transpose(call: Call) -> Run:
    return bind_transpose(tuple(call.attributes["permutation"]))


def _transpose_shape(x: Dims, attributes: Attributes) -> Dims | None:
    permutation = integers(attributes, "permutation")
    return None if permutation is None else shapes.transpose(x, permutation)


def _expanded_shape(x: Dims, attributes: Attributes) -> Dims | None:
    axes = integers(attributes, "axes")
    if axes is None:
        return None
    result = list(x)
    for axis in sorted(axes):
        if not 0 <= axis <= len(result):
            return None
        result.insert(axis, 1)
    return tuple(result)


def _squeezed_shape(x: Dims, attributes: Attributes) -> Dims | None:
    axes = integers(attributes, "axes")
    if axes is None or len(set(axes)) != len(axes):
        return None
    if any(not 0 <= axis < len(x) or x[axis] != 1 for axis in axes):
        return None
    return tuple(dim for axis, dim in enumerate(x) if axis not in axes)


def _index(call: Call) -> Run:
    indices = tuple(call.attributes["indices"])
    for axis, (at, size) in enumerate(zip(indices, call.input(0).shape, strict=True)):
        if not 0 <= at < size:
            message = f"index is {at}, expected 0 to {size - 1} along axis {axis}"
            fault = Fault("index", message, indices)
            return lambda inputs, outputs: fault
    return copy_run(lambda x: x[indices])


def _index_shape(x: Dims, attributes: Attributes) -> Dims | None:
    indices = integers(attributes, "indices")
    return () if indices is not None and len(indices) == len(x) else None


def _bounds(x: Dims, attributes: Attributes) -> tuple[Dims, Dims, Dims] | None:
    """Starts, ends and steps of a slice, stopped at the ends of the axes."""
    starts, ends = integers(attributes, "starts"), integers(attributes, "ends")
    steps = integers(attributes, "steps")
    if starts is None or ends is None or steps is None or min(steps, default=1) < 1:
        return None
    if not len(starts) == len(ends) == len(steps) == len(x):
        return None
    first = tuple(min(max(at, 0), size) for at, size in zip(starts, x, strict=True))
    last = tuple(min(max(at, 0), size) for at, size in zip(ends, x, strict=True))
    return first, last, steps


def _slice(call: Call) -> Run:
    x = call.input(0).shape
    bounds = _bounds(x, call.attributes)
    if bounds is None:
        raise ValueError("the attributes are no slice of the input")
    starts, ends, steps = bounds
    return bind_slice(starts, ends, tuple(range(len(x))), steps, len(x))


def _slice_shape(x: Dims, attributes: Attributes) -> Dims | None:
    bounds = _bounds(x, attributes)
    if bounds is None:
        return None
    starts, ends, steps = bounds
    result = shapes.slice_(x, starts, ends, tuple(range(len(x))), steps)
    return result if 0 not in result else None


def _gather(call: Call) -> Run:
    return bind_gather(0, call.input(0).shape[0])


def _gather_shape(x: Dims, indices: Dims, attributes: Attributes) -> Dims | None:
    found = gather_shape(x, indices, 0)
    return None if found is None else found[0]


def _relu(call: Call) -> Run:
    zero, elem = call.output.dtype.type(0), call.output.elem

    def fill(x: Array, y: Array) -> None:
        y[...] = np.where(x > zero, x, zero)

    def fill_integers(x: Array, y: Array) -> None:
        np.maximum(x, zero, out=y)

    def fill_floats(x: Array, y: Array) -> None:
        # Ten times as quick as a choice: of NaN and 0 `fmax` takes 0, and -0.0 + 0.0 is 0.0.
        np.fmax(x, zero, out=y)
        np.add(y, zero, out=y)

    if elem.is_integer:
        return fill_run(fill_integers)
    return quiet(fill_run(fill_floats if elem.bits >= 32 else fill))  # ml_dtypes warns of NaN


def _neg(call: Call) -> Run:
    elem = call.output.elem

    def fill_narrow(x: Array, y: Array) -> None:
        y[...] = low_bits(np.negative(x), elem)

    def fill(x: Array, y: Array) -> None:
        np.negative(x, out=y)

    return fill_run(fill_narrow if elem.bits < 8 else fill)


def _exp(call: Call) -> Run:
    return _float_function(call, np.exp)


def _log(call: Call) -> Run:
    return _float_function(call, np.log)


def _float_function(call: Call, function: np.ufunc) -> Run:
    if call.output.elem.is_integer:
        raise ValueError(f"`{function.__name__}` of {call.output.elem.name}, expected floats")
    wide = widening(call.output)

    def fill(x: Array, y: Array) -> None:
        y[...] = function(wide(x))

    def fill_ordered(x: Array, y: Array) -> None:
        # By way of f64: the double functions of all libraries round to the same f32.
        y[...] = function(wide(x).astype(np.float64)).astype(wide(x).dtype)

    return quiet(fill_run(fill_ordered if call.ordered else fill))


def _transcendental(call: Call) -> Work:
    return Work(elements=call.output.count, each=8)


def _same_shape(x: Dims, attributes: Attributes) -> Dims:
    return x


CORE_OPS = (
    *CORE_BINARY,
    Primitive("core.Sum", _sum, unary_shape(_reduced_shape), reads_input),
    Primitive("core.Mean", _mean, unary_shape(_reduced_shape), reads_input),
    Primitive("core.Reshape", _reshape, unary_shape(_reshape_shape), moves_outputs),
    Primitive("core.Transpose", _transpose, unary_shape(_transpose_shape), moves_outputs),
    Primitive("core.ExpandDims", _reshape, unary_shape(_expanded_shape), moves_outputs),
    Primitive("core.Squeeze", _reshape, unary_shape(_squeezed_shape), moves_outputs),
    Primitive("core.Index", _index, unary_shape(_index_shape), moves_outputs),
    Primitive("core.Slice", _slice, unary_shape(_slice_shape), moves_outputs),
    Primitive("core.Gather", _gather, binary_shape(_gather_shape), moves_outputs),
    *CORE_PRODUCTS,
    Primitive("core.Relu", _relu, unary_shape(_same_shape), moves_outputs),
    Primitive("core.Neg", _neg, unary_shape(_same_shape), moves_outputs),
    Primitive("core.Exp", _exp, unary_shape(_same_shape), _transcendental),
    Primitive("core.Log", _log, unary_shape(_same_shape), _transcendental),
)
