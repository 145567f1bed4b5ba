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
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes

_F64_EXACT = 53  # bits


def axes_of(writer: OnnxWriter, x: Value) -> tuple[int, ...]:
    """The axes of a tensor that go, counted from the front; all where none is named."""
    rank = x.type.rank
    return tuple(sorted(axis % rank for axis in writer.attributes["axes"])) or tuple(range(rank))


def _reduced_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))


def reduce_axes(writer: OnnxWriter, operation: str, x: Value, axes: tuple[int, ...]) -> Value:
    """A reduction of ONNX, the axes kept with the size 1."""
    if not axes:
        return x
    type_ = TensorType(x.dtype, _reduced_shape(x.shape, axes))
    return writer.add(operation, x, writer.ints(axes), type_=type_, keepdims=1)


def _to_result_type(writer: OnnxWriter, value: Value) -> Value:
    """The result in its type and shape."""
    return writer.reshape(writer.to_result_type(value), writer.type.shape)


def native(operation: str) -> Callable[[OnnxWriter, Value], Value]:
    """A reduction of ONNX of a tensor that has axes."""
    return lambda writer, x: reduce_axes(writer, operation, x, axes_of(writer, x))


def _reduced_rows(writer: OnnxWriter, x: Value, axes: tuple[int, ...]) -> Value:
    """[what stays, what goes], the axes that go moved to the end."""
    stays = [axis for axis in range(x.type.rank) if axis not in axes]
    turned = writer.transpose(x, [*stays, *axes])
    count = prod(x.shape[axis] for axis in axes)
    return writer.reshape(turned, (prod(x.shape) // count, count))


def total(writer: OnnxWriter, x: Value) -> Value:
    """The sum over the axes, of integers modulo a power of two."""
    axes = axes_of(writer, x)
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(writer, "ReduceSum", x, axes)
    count = prod(x.shape[axis] for axis in axes)
    bits = GRAPH_TYPES[writer.operands[0].dtype].bits
    if bits <= 32 and bits + count.bit_length() <= _F64_EXACT:
        return reduce_axes(writer, "ReduceSum", writer.cast(x, "i64"), axes)
    require_few(count)
    rows = _reduced_rows(writer, x, axes)
    ones = writer.array(np.ones((count, 1), GRAPH_TYPES[x.dtype].dtype), x.dtype)
    sums = writer.add("MatMul", rows, ones, type_=TensorType(x.dtype, (rows.shape[0], 1)))
    return writer.reshape(sums, _reduced_shape(x.shape, axes))


@writes("Sum")
def sum_(writer: OnnxWriter) -> Value:
    """`Sum`."""
    return _to_result_type(writer, total(writer, writer.to_compute_type(writer.operands[0])))


@writes("Mean")
def mean(writer: OnnxWriter) -> Value:
    """`Mean`; of integers the exact mean, cut towards zero."""
    x = writer.to_compute_type(writer.operands[0])
    if not GRAPH_TYPES[x.dtype].is_integer:
        return _to_result_type(writer, reduce_axes(writer, "ReduceMean", x, axes_of(writer, x)))
    x = writer.cast(x, "i64")
    count = writer.number(prod(x.shape[axis] for axis in axes_of(writer, x)), "i64")
    if writer.type.element.bits <= 32:
        return _to_result_type(writer, writer.elementwise("Div", total(writer, x), count))
    return _to_result_type(writer, _long_mean(writer, x, count))


def _long_mean(writer: OnnxWriter, x: Value, count: Value) -> Value:
    """From quotients and remainders, for the sum may be beyond i64."""
    quotients = writer.elementwise("Div", x, count)
    rests = writer.elementwise("Sub", x, writer.elementwise("Mul", quotients, count))
    rest = total(writer, rests)
    carried = writer.elementwise("Div", rest, count)
    left = writer.elementwise("Sub", rest, writer.elementwise("Mul", carried, count))
    mean = writer.elementwise("Add", total(writer, quotients), carried)
    # One too far from zero where what is left has the other sign.
    signs = [sign(writer, value) for value in (mean, left)]
    is_over = writer.elementwise(
        "Less", writer.elementwise("Mul", *signs), writer.number(0, "i64"), dtype="bool"
    )
    return writer.where(is_over, writer.elementwise("Sub", mean, signs[0]), mean)


def _product(writer: OnnxWriter, x: Value) -> Value:
    """Of integers by halves, for onnxruntime multiplies them in f64."""
    axes = axes_of(writer, x)
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(writer, "ReduceProd", x, axes)
    rows = _reduced_rows(writer, x, axes)
    while rows.shape[1] > 1:
        half, rest = divmod(rows.shape[1], 2)
        parts = [writer.part(rows, 1, start, start + half) for start in (0, half)]
        product = writer.elementwise("Mul", *parts)
        rows = (
            writer.concatenate([product, writer.part(rows, 1, 2 * half, None)], 1)
            if rest
            else product
        )
    return writer.reshape(rows, _reduced_shape(x.shape, axes))


def _squares(writer: OnnxWriter, x: Value) -> Value:
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(writer, "ReduceSumSquare", x, axes_of(writer, x))
    return _wrap_total(writer, writer.elementwise("Mul", x, x))


def _distances(writer: OnnxWriter, x: Value) -> Value:
    if not GRAPH_TYPES[x.dtype].is_integer:
        return reduce_axes(writer, "ReduceL1", x, axes_of(writer, x))
    return _wrap_total(writer, writer.elementwise("Abs", x))


def _wrap_total(writer: OnnxWriter, x: Value) -> Value:
    """A sum of integers that may have left the operand's type, not its bits."""
    return total(writer, writer.to_compute_type(writer.cast(x, writer.operands[0].dtype)))


def extremum(writer: OnnxWriter, word: str, x: Value, axes: tuple[int, ...]) -> Value:
    """The largest or smallest element; of i64 by `TopK`, see `picked`."""
    if x.dtype != "i64" or not axes:
        return reduce_axes(writer, f"Reduce{word}", x, axes)
    rows = _reduced_rows(writer, x, axes)
    shape, is_max = (rows.shape[0], 1), int(word == "Max")
    types = [TensorType("i64", shape)] * 2
    operands = [rows, writer.ints([1])]
    values, _ = writer.add_node("TopK", operands, types, axis=1, largest=is_max, sorted=1)
    return writer.reshape(values, _reduced_shape(x.shape, axes))


_REDUCE: Mapping[str, Callable[[OnnxWriter, Value], Value]] = MappingProxyType(
    {
        **{word: native(f"Reduce{word}") for word in ("L2", "LogSum", "LogSumExp")},
        "Max": lambda writer, x: extremum(writer, "Max", x, axes_of(writer, x)),
        "Min": lambda writer, x: extremum(writer, "Min", x, axes_of(writer, x)),
        "Prod": _product,
        "SumSquare": _squares,
        "L1": _distances,
    }
)
_OF_BOOL = MappingProxyType({"Any": "ReduceMax", "All": "ReduceMin"})


@writes("Reduce")
def reduce(writer: OnnxWriter) -> Value:
    """`Reduce`."""
    word, (x,) = str(writer.attributes["op"]), writer.operands
    if word in _OF_BOOL:
        reduced = reduce_axes(writer, _OF_BOOL[word], writer.cast(x, "i32"), axes_of(writer, x))
        return _to_result_type(writer, reduced)
    # A number has no axes to reduce, but a norm of its own.
    x = x if x.type.rank else writer.reshape(x, (1,))
    return _to_result_type(writer, _REDUCE[word](writer, writer.to_compute_type(x)))


@writes("ArgMax", "ArgMin")
def arg(writer: OnnxWriter) -> Value:
    """`ArgMax` and `ArgMin`."""
    (x,) = writer.operands
    given = {"keepdims": int(writer.attributes["keepdims"]), "axis": writer.attributes["axis"]}
    last = int(writer.attributes["last"])
    return writer.add(
        writer.op.opcode,
        writer.to_compute_type(x),
        type_=writer.type,
        select_last_index=last,
        **given,
    )


@writes("CumSum")
def cumulative_sum(writer: OnnxWriter) -> Value:
    """`CumSum`."""
    x = writer.to_compute_type(writer.operands[0])
    axis = writer.number(writer.attributes["axis"] % x.type.rank, "i64")
    given = {name: int(writer.attributes[name]) for name in ("exclusive", "reverse")}
    return writer.to_result_type(writer.add("CumSum", x, axis, type_=x.type, **given))


@writes("CumProd")
def cumulative_product(writer: OnnxWriter) -> Value:
    """`CumProd`, which this version of ONNX lacks: products of twice as many at each step."""
    x, is_reverse = writer.to_compute_type(writer.operands[0]), bool(writer.attributes["reverse"])
    axis = writer.attributes["axis"] % x.type.rank
    x = writer.part(x, axis, -1, None, -1) if is_reverse else x
    x = _shift_with_ones(writer, x, axis, 1) if writer.attributes["exclusive"] else x
    reach = 1
    while reach < x.shape[axis]:
        x = writer.elementwise("Mul", x, _shift_with_ones(writer, x, axis, reach))
        reach *= 2
    return writer.to_result_type(writer.part(x, axis, -1, None, -1) if is_reverse else x)


def _shift_with_ones(writer: OnnxWriter, x: Value, axis: int, count: int) -> Value:
    """Elements moved along an axis, ones before them."""
    shape = (*x.shape[:axis], min(count, x.shape[axis]), *x.shape[axis + 1 :])
    ones = writer.expand(writer.number(1, x.dtype), shape)
    if shape == x.shape:
        return ones
    return writer.concatenate([ones, writer.part(x, axis, 0, -count)], axis)
