"""Operations along axes.

onnxruntime adds integers by way of f64, and stops at the ends of the type where ours wrap. So sums
of integers are taken in i64 where f64 holds them, else as products with ones, which are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import Shape, TensorType
from nacre.core.onnx_export.forms.elementwise import sign
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, require_few, writes

_F64_EXACT = 53  # bits


def axes_of(site: OnnxWriter, x: Value) -> tuple[int, ...]:
    """The axes of a tensor that go, counted from the front; all where none is named."""
    rank = x.type.rank
    return tuple(sorted(axis % rank for axis in site.attributes["axes"])) or tuple(range(rank))


def _reduced_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))


def reduce_axes(site: OnnxWriter, operation: str, x: Value, axes: tuple[int, ...]) -> Value:
    """A reduction of ONNX, the axes kept with the size 1."""
    if not axes:
        return x
    type_ = TensorType(x.dtype, _reduced_shape(x.shape, axes))
    return site.add(operation, x, site.ints(axes), type_=type_, keepdims=1)


def _finish(site: OnnxWriter, value: Value) -> Value:
    """The result in its type and shape."""
    return site.reshape(site.result(value), site.type.shape)


def native(operation: str) -> Callable[[OnnxWriter, Value], Value]:
    """A reduction of ONNX of a tensor that has axes."""
    return lambda site, x: reduce_axes(site, operation, x, axes_of(site, x))


def _rows(site: OnnxWriter, x: Value, axes: tuple[int, ...]) -> Value:
    """[what stays, what goes], the axes that go moved to the end."""
    stays = [axis for axis in range(x.type.rank) if axis not in axes]
    turned = site.transpose(x, [*stays, *axes])
    count = prod(x.shape[axis] for axis in axes)
    return site.reshape(turned, (prod(x.shape) // count, count))


def total(site: OnnxWriter, x: Value) -> Value:
    """The sum over the axes, of integers modulo a power of two."""
    axes = axes_of(site, x)
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(site, "ReduceSum", x, axes)
    count = prod(x.shape[axis] for axis in axes)
    bits = GRAPH_TYPES[site.operands[0].dtype].bits
    if bits <= 32 and bits + count.bit_length() <= _F64_EXACT:
        return reduce_axes(site, "ReduceSum", site.cast(x, "i64"), axes)
    require_few(count)
    rows = _rows(site, x, axes)
    ones = site.array(np.ones((count, 1), GRAPH_TYPES[x.dtype].dtype), x.dtype)
    sums = site.add("MatMul", rows, ones, type_=TensorType(x.dtype, (rows.shape[0], 1)))
    return site.reshape(sums, _reduced_shape(x.shape, axes))


@writes("Sum")
def sum_(site: OnnxWriter) -> Value:
    """`Sum`."""
    return _finish(site, total(site, site.wide(site.operands[0])))


@writes("Mean")
def mean(site: OnnxWriter) -> Value:
    """`Mean`; of integers the exact mean, cut towards zero."""
    x = site.wide(site.operands[0])
    if not GRAPH_TYPES[x.dtype].is_integer:
        return _finish(site, reduce_axes(site, "ReduceMean", x, axes_of(site, x)))
    x = site.cast(x, "i64")
    count = site.number(prod(x.shape[axis] for axis in axes_of(site, x)), "i64")
    if site.type.element.bits <= 32:
        return _finish(site, site.each("Div", total(site, x), count))
    return _finish(site, _long_mean(site, x, count))


def _long_mean(site: OnnxWriter, x: Value, count: Value) -> Value:
    """From quotients and remainders, for the sum may be beyond i64."""
    quotients = site.each("Div", x, count)
    rests = site.each("Sub", x, site.each("Mul", quotients, count))
    rest = total(site, rests)
    carried = site.each("Div", rest, count)
    left = site.each("Sub", rest, site.each("Mul", carried, count))
    found = site.each("Add", total(site, quotients), carried)
    # One too far from zero where what is left has the other sign.
    signs = [sign(site, value) for value in (found, left)]
    is_over = site.each("Less", site.each("Mul", *signs), site.number(0, "i64"), dtype="bool")
    return site.where(is_over, site.each("Sub", found, signs[0]), found)


def _product(site: OnnxWriter, x: Value) -> Value:
    """Of integers by halves, for onnxruntime multiplies them in f64."""
    axes = axes_of(site, x)
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(site, "ReduceProd", x, axes)
    rows = _rows(site, x, axes)
    while rows.shape[1] > 1:
        half, rest = divmod(rows.shape[1], 2)
        parts = [site.part(rows, 1, start, start + half) for start in (0, half)]
        found = site.each("Mul", *parts)
        rows = site.concatenate([found, site.part(rows, 1, 2 * half, None)], 1) if rest else found
    return site.reshape(rows, _reduced_shape(x.shape, axes))


def _squares(site: OnnxWriter, x: Value) -> Value:
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(site, "ReduceSumSquare", x, axes_of(site, x))
    return _wrap_total(site, site.each("Mul", x, x))


def _distances(site: OnnxWriter, x: Value) -> Value:
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(site, "ReduceL1", x, axes_of(site, x))
    return _wrap_total(site, site.each("Abs", x))


def _wrap_total(site: OnnxWriter, x: Value) -> Value:
    """A sum of integers that may have left the operand's type, not its bits."""
    return total(site, site.wide(site.cast(x, site.operands[0].dtype)))


def extreme(site: OnnxWriter, word: str, x: Value, axes: tuple[int, ...]) -> Value:
    """The largest or smallest element; of i64 by `TopK`, see `picked`."""
    if x.dtype != "i64" or not axes:
        return reduce_axes(site, f"Reduce{word}", x, axes)
    rows = _rows(site, x, axes)
    shape, is_max = (rows.shape[0], 1), int(word == "Max")
    types = [TensorType("i64", shape)] * 2
    operands = [rows, site.ints([1])]
    values, _ = site.several("TopK", operands, types, axis=1, largest=is_max, sorted=1)
    return site.reshape(values, _reduced_shape(x.shape, axes))


_REDUCE: Mapping[str, Callable[[OnnxWriter, Value], Value]] = MappingProxyType(
    {
        **{word: native(f"Reduce{word}") for word in ("L2", "LogSum", "LogSumExp")},
        "Max": lambda site, x: extreme(site, "Max", x, axes_of(site, x)),
        "Min": lambda site, x: extreme(site, "Min", x, axes_of(site, x)),
        "Prod": _product,
        "SumSquare": _squares,
        "L1": _distances,
    }
)
_OF_BOOL = MappingProxyType({"Any": "ReduceMax", "All": "ReduceMin"})


@writes("Reduce")
def reduce(site: OnnxWriter) -> Value:
    """`Reduce`."""
    word, (x,) = str(site.attributes["op"]), site.operands
    if word in _OF_BOOL:
        found = reduce_axes(site, _OF_BOOL[word], site.cast(x, "i32"), axes_of(site, x))
        return _finish(site, found)
    # A number has no axes to reduce, but a norm of its own.
    x = x if x.type.rank else site.reshape(x, (1,))
    return _finish(site, _REDUCE[word](site, site.wide(x)))


@writes("ArgMax", "ArgMin")
def arg(site: OnnxWriter) -> Value:
    """`ArgMax` and `ArgMin`."""
    (x,) = site.operands
    given = {"keepdims": int(site.attributes["keepdims"]), "axis": site.attributes["axis"]}
    last = int(site.attributes["last"])
    return site.add(site.op.opcode, site.wide(x), type_=site.type, select_last_index=last, **given)


@writes("CumSum")
def cumulative_sum(site: OnnxWriter) -> Value:
    """`CumSum`."""
    x = site.wide(site.operands[0])
    axis = site.number(site.attributes["axis"] % x.type.rank, "i64")
    given = {name: int(site.attributes[name]) for name in ("exclusive", "reverse")}
    return site.result(site.add("CumSum", x, axis, type_=x.type, **given))


@writes("CumProd")
def cumulative_product(site: OnnxWriter) -> Value:
    """`CumProd`, which this version of ONNX lacks: products of twice as many at each step."""
    x, is_reverse = site.wide(site.operands[0]), bool(site.attributes["reverse"])
    axis = site.attributes["axis"] % x.type.rank
    x = site.part(x, axis, -1, None, -1) if is_reverse else x
    x = _behind_ones(site, x, axis, 1) if site.attributes["exclusive"] else x
    reach = 1
    while reach < x.shape[axis]:
        x = site.each("Mul", x, _behind_ones(site, x, axis, reach))
        reach *= 2
    return site.result(site.part(x, axis, -1, None, -1) if is_reverse else x)


def _behind_ones(site: OnnxWriter, x: Value, axis: int, count: int) -> Value:
    """Elements moved along an axis, ones before them."""
    shape = (*x.shape[:axis], min(count, x.shape[axis]), *x.shape[axis + 1 :])
    ones = site.expand(site.number(1, x.dtype), shape)
    if shape == x.shape:
        return ones
    return site.concatenate([ones, site.part(x, axis, 0, -count)], axis)
