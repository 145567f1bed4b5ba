"""The ops of Core IR v1 as primitives `core.NAME`, on any element type.

Floats up to 32 bits are computed in f32 and f64 in f64, then rounded once; integers wrap. Core
has no quantisation: stored integers are taken as they are. Where its text leaves a choice:
the mean of integers is exact and cut towards zero; ends of slices stop at 0 and at the size, and
never count from the end; `Index` and `Gather` outside of the tensor are faults; `Relu` of NaN is
0, as the formula of the text has it; `Log` and `Exp` follow IEEE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from nacre.kernels import shapes
from nacre.kernels.call import Array, Attributes, Call, Fault, Primitive, Run, TensorType, Work
from nacre.kernels.numbers import wrapped
from nacre.kernels.patches import PatchProduct, Windows
from nacre.kernels.products import (
    Product,
    exact_product,
    float_product,
    ordered_product,
    plan,
    reach_of_type,
    same_nan,
)
from nacre.kernels.reductions import bind_sum, float_sum, kept, reads_input, wide_float, widening
from nacre.kernels.runs import quiet
from nacre.kernels.shapes import Dims
from nacre.kernels.views import (
    bind_gather,
    bind_reshape,
    bind_slice,
    bind_transpose,
    copying,
    filling,
    gather_shape,
    integers,
    moves_outputs,
)

_OPERATIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}

Shape = Callable[[Sequence[Dims | None], Attributes], list[Dims] | None]
Pads = tuple[tuple[int, int], tuple[int, int]]  # top and bottom, left and right


def _of_one(shape: Callable[[Dims, Attributes], Dims | None]) -> Shape:
    """The shape function of an op with one operand."""

    def run(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
        if len(inputs) != 1 or inputs[0] is None:
            return None
        result = shape(inputs[0], attributes)
        return None if result is None else [result]

    return run


def _of_two(shape: Callable[[Dims, Dims, Attributes], Dims | None]) -> Shape:
    """The shape function of an op with two operands."""

    def run(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
        if len(inputs) != 2 or inputs[0] is None or inputs[1] is None:
            return None
        result = shape(inputs[0], inputs[1], attributes)
        return None if result is None else [result]

    return run


def _from_two(fill: Callable[[Array, Array, Array], None]) -> Run:
    """A run that fills one output from two inputs and cannot go wrong."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        a, b = inputs
        assert a is not None
        assert b is not None
        fill(a, b, outputs[0])

    return run


def _storing(type_: TensorType) -> Callable[[Array, Array], None]:
    """How a result that was computed in a wider type gets into an output of this one."""
    elem = type_.elem

    def wrap(values: Array, y: Array) -> None:
        y[...] = wrapped(values, elem)

    def round_once(values: Array, y: Array) -> None:
        y[...] = values

    return wrap if elem.is_integer else round_once


def _binop(call: Call) -> Run:
    operation: np.ufunc = _OPERATIONS[call.attributes["op"]]
    elem = call.output.elem

    def fill_integers(a: Array, b: Array, y: Array) -> None:
        operation(a, b, out=y)

    def fill_narrow(a: Array, b: Array, y: Array) -> None:
        y[...] = wrapped(operation(a, b), elem)

    def fill_floats(a: Array, b: Array, y: Array) -> None:
        # NumPy and ml_dtypes compute half floats in f32 and round once, as asked.
        operation(a, b, out=y)

    if not elem.is_integer:
        return quiet(_from_two(fill_floats))
    return _from_two(fill_integers if elem.bits >= 8 else fill_narrow)


def _binop_shape(a: Dims, b: Dims, attributes: Attributes) -> Dims | None:
    return shapes.broadcast(a, b) if attributes.get("op") in _OPERATIONS else None


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
    return bind_sum(call, _axes(call))


def _mean(call: Call) -> Run:
    type_, axes, is_ordered = call.input(0), _axes(call), call.ordered
    target = kept(type_.shape, axes)
    count = prod(type_.shape[axis] for axis in axes)
    wide, divisor = widening(type_), wide_float(type_).type(count)

    def fill_floats(x: Array, y: Array) -> None:
        y.reshape(target)[...] = float_sum(wide(x), axes, is_ordered) / divisor

    def fill_integers(x: Array, y: Array) -> None:
        y.reshape(target)[...] = _cut_mean(x.astype(np.int64), axes, count)

    if type_.elem.is_integer:
        return filling(fill_integers)
    return quiet(filling(fill_floats))


def _cut_mean(x: Array, axes: Dims, count: int) -> Array:
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
    return copying(lambda x: x[indices])


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


def _product(call: Call, depth: int) -> Product:
    """The matrix product of a call's operands: of what width they are, exact or in order."""
    a_type, b_type = (replace(call.input(i), quant=None) for i in (0, 1))
    if a_type.elem.is_integer:
        exact = plan(depth, reach_of_type(a_type), reach_of_type(b_type))
        dtype = exact.dtype
        # The sums may come as floats that hold integers, which do not wrap when cut.
        return lambda a, b: exact_product(a.astype(dtype), b.astype(dtype), exact).astype(np.int64)
    wide = widening(a_type)
    if not call.ordered:
        return lambda a, b: float_product(wide(a), wide(b))
    multiply = ordered_product if a_type.elem.bits <= 32 else _ordered_in_f64
    return lambda a, b: same_nan(multiply(wide(a), wide(b)))


def _ordered_in_f64(a: Array, b: Array) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*batch, a.shape[-2], b.shape[-1]))
    for k in range(a.shape[-1]):
        total += a[..., k, None] * b[..., k, None, :]
    return total


def _matmul(call: Call) -> Run:
    """`Dot` too: a vector is a row on the left and a column on the right."""
    multiply = _product(call, call.input(0).shape[-1])
    store, shape = _storing(call.output), call.output.shape

    def fill(a: Array, b: Array, y: Array) -> None:
        row = a if a.ndim > 1 else a[None, :]
        column = b if b.ndim > 1 else b[:, None]
        store(multiply(row, column).reshape(shape), y)

    return quiet(_from_two(fill))


def _matmul_shape(a: Dims, b: Dims, attributes: Attributes) -> Dims | None:
    return shapes.matmul(a, b) if min(len(a), len(b)) >= 2 else None


def _dot_shape(a: Dims, b: Dims, attributes: Attributes) -> Dims | None:
    if not (1 <= len(a) <= 2 and 1 <= len(b) <= 2) or a[-1] != b[0]:
        return None
    return a[:-1] + b[1:]


def _pads(x: Dims, w: Dims, attributes: Attributes) -> Pads | None:
    """How much surrounds a tensor before it is convolved; None where the attributes are odd."""
    padding, strides = attributes.get("padding"), integers(attributes, "strides")
    if strides is None or len(strides) != 2 or min(strides) < 1:
        return None
    if padding == "Valid":
        return (0, 0), (0, 0)
    if padding == "Same":
        return _same(x[1], w[0], strides[0]), _same(x[2], w[1], strides[1])
    if not isinstance(padding, tuple | list) or len(padding) != 2:
        return None
    pairs = [integers({"pair": pair}, "pair") for pair in padding]
    if any(pair is None or len(pair) != 2 or min(pair) < 0 for pair in pairs):
        return None
    (top, bottom), (left, right) = padding
    return (top, bottom), (left, right)


def _same(size: int, window: int, stride: int) -> tuple[int, int]:
    """What makes `ceil(size / stride)` windows fit; an odd one goes to the end."""
    count = -(-size // stride)
    total = max((count - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def _conv2d_shape(x: Dims, w: Dims, attributes: Attributes) -> Dims | None:
    if len(x) != 4 or len(w) != 4 or x[3] != w[2]:
        return None
    pads = _pads(x, w, attributes)
    if pads is None:
        return None
    (top, bottom), (left, right) = pads
    result = shapes.conv(x, w, (top, left, bottom, right), attributes["strides"], (1, 1))
    return result if min(result) >= 1 else None


def _conv2d(call: Call) -> Run:
    x_shape, w_shape, y_shape = call.input(0).shape, call.input(1).shape, call.output.shape
    pads = _pads(x_shape, w_shape, call.attributes)
    if pads is None:
        raise ValueError("`strides` and `padding` do not fit together")
    (top, bottom), (left, right) = pads
    _, height, width, _ = x_shape
    padded_shape = shapes.pad(x_shape, (0, top, left, 0, 0, bottom, right, 0))
    inner = np.s_[:, top : top + height, left : left + width]
    windows = Windows(padded_shape, w_shape[:2], y_shape, call.attributes["strides"], (1, 1), 1)
    convolve, part = PatchProduct(windows), tuple(slice(0, size) for size in w_shape[:3])
    multiply, store = _product(call, prod(w_shape[:3])), _storing(call.output)

    def fill(x: Array, w: Array, y: Array) -> None:
        padded = np.zeros(padded_shape, x.dtype)
        padded[inner] = x
        store(convolve(padded, w, part, multiply), y)

    return quiet(_from_two(fill))


def _macs(call: Call) -> Work:
    if len(call.input(1).shape) == 4 and "padding" in call.attributes:
        return Work(macs=call.output.count * prod(call.input(1).shape[:3]))
    return Work(macs=call.output.count * call.input(0).shape[-1])


def _relu(call: Call) -> Run:
    zero = call.output.dtype.type(0)

    def fill(x: Array, y: Array) -> None:
        y[...] = np.where(x > zero, x, zero)

    return quiet(filling(fill))  # ml_dtypes warns of NaN


def _neg(call: Call) -> Run:
    elem = call.output.elem

    def fill_narrow(x: Array, y: Array) -> None:
        y[...] = wrapped(np.negative(x), elem)

    def fill(x: Array, y: Array) -> None:
        np.negative(x, out=y)

    return filling(fill_narrow if elem.bits < 8 else fill)


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

    return quiet(filling(fill))


def _same_shape(x: Dims, attributes: Attributes) -> Dims:
    return x


CORE_OPS = (
    Primitive("core.BinOp", _binop, _of_two(_binop_shape), moves_outputs),
    Primitive("core.Sum", _sum, _of_one(_reduced_shape), reads_input),
    Primitive("core.Mean", _mean, _of_one(_reduced_shape), reads_input),
    Primitive("core.Reshape", _reshape, _of_one(_reshape_shape), moves_outputs),
    Primitive("core.Transpose", _transpose, _of_one(_transpose_shape), moves_outputs),
    Primitive("core.ExpandDims", _reshape, _of_one(_expanded_shape), moves_outputs),
    Primitive("core.Squeeze", _reshape, _of_one(_squeezed_shape), moves_outputs),
    Primitive("core.Index", _index, _of_one(_index_shape), moves_outputs),
    Primitive("core.Slice", _slice, _of_one(_slice_shape), moves_outputs),
    Primitive("core.Gather", _gather, _of_two(_gather_shape), moves_outputs),
    Primitive("core.Dot", _matmul, _of_two(_dot_shape), _macs),
    Primitive("core.MatMul", _matmul, _of_two(_matmul_shape), _macs),
    Primitive("core.Conv2d", _conv2d, _of_two(_conv2d_shape), _macs),
    Primitive("core.Relu", _relu, _of_one(_same_shape), moves_outputs),
    Primitive("core.Neg", _neg, _of_one(_same_shape), moves_outputs),
    Primitive("core.Exp", _exp, _of_one(_same_shape), moves_outputs),
    Primitive("core.Log", _log, _of_one(_same_shape), moves_outputs),
)
