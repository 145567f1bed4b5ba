"""Sums and means over axes."""

from __future__ import annotations

from math import prod

from nacre.core.mlir.body import Code, RegionBody, Scalar
from nacre.core.mlir.elementwise import require_numbers
from nacre.core.mlir.shape_ops import reshape_value
from nacre.core.mlir.types import bits_of, compute_type, is_float
from nacre.core.mlir.writer import Loop, MlirWriter, Value
from nacre.core.module import Shape, TensorType
from nacre.kernels.interface.shapes import axes_of


def sum_(writer: MlirWriter) -> Value:
    """Floats are summed in their wide type; integers wrap."""
    require_numbers(writer)
    total = _reduce(writer, compute_type(writer.type.dtype), _add)
    return reshape_value(writer, writer.cast(total, writer.type.dtype), writer.type.shape)


def mean(writer: MlirWriter) -> Value:
    """Floats: the sum by the number of elements. Integers: exact, and cut towards zero."""
    require_numbers(writer)
    dtype = writer.type.dtype
    count = prod(writer.operands[0].type.shape[axis] for axis in _axes(writer))
    has_room = bits_of(dtype) + count.bit_length() < 64  # for the sum of integers
    if not is_float(dtype) and not has_room:
        return reshape_value(writer, _mean_of_parts(writer, count), writer.type.shape)
    held = compute_type(dtype) if is_float(dtype) else "i64"
    total = _reduce(writer, held, _add)

    def divide(body: RegionBody, x: Scalar) -> Scalar:
        operation = "arith.divf" if is_float(held) else "arith.divsi"
        return body.cast(body.add_uniform(operation, x, body.constant(count, held)), dtype)

    type_ = TensorType(dtype, total.type.shape)
    return reshape_value(
        writer, writer.add_elementwise("mean", [total], type_, divide), writer.type.shape
    )


def _add(body: RegionBody, x: Scalar, total: Scalar) -> Scalar:
    return body.arithmetic("Add", total, body.cast(x, total.dtype))


def _mean_of_parts(writer: MlirWriter, count: int) -> Value:
    """The sum may leave 64 bits: quotients (rounded down) and remainders are summed apart."""
    dtype = writer.type.dtype

    def add_whole(body: RegionBody, x: Scalar, total: Scalar) -> Scalar:
        whole = body.add_uniform(
            "arith.floordivsi", body.cast(x, "i64"), body.constant(count, "i64")
        )
        return body.arithmetic("Add", total, whole)

    def add_rest(body: RegionBody, x: Scalar, total: Scalar) -> Scalar:
        value, divisor = body.cast(x, "i64"), body.constant(count, "i64")
        below = body.arithmetic(
            "Mul", body.add_uniform("arith.floordivsi", value, divisor), divisor
        )
        return body.arithmetic("Add", total, body.arithmetic("Sub", value, below))

    def join(body: RegionBody, wholes: Scalar, rests: Scalar) -> Scalar:
        divisor, zero = body.constant(count, "i64"), body.constant(0, "i64")
        down = body.arithmetic("Add", wholes, body.add_uniform("arith.divsi", rests, divisor))
        is_cut = body.compare("Ne", body.add_uniform("arith.remsi", rests, divisor), zero)
        is_below = body.add_uniform("arith.andi", body.compare("Lt", down, zero), is_cut)
        return body.cast(body.arithmetic("Add", down, body.cast(is_below, "i64")), dtype)

    sums = [_reduce(writer, "i64", code) for code in (add_whole, add_rest)]
    return writer.add_elementwise("mean", sums, TensorType(dtype, sums[0].type.shape), join)


def _axes(writer: MlirWriter) -> Shape:
    """The axes that go; none named means all of them."""
    rank = writer.operands[0].type.rank
    return axes_of(writer.op.attributes["axes"], rank) or tuple(range(rank))


def _reduce(writer: MlirWriter, dtype: str, code: Code) -> Value:
    """What is left without the axes that go; every element starts from zero."""
    x, axes = writer.operands[0], _axes(writer)
    kept = tuple(axis for axis in range(x.type.rank) if axis not in axes)
    shape = tuple(x.type.shape[axis] for axis in kept)
    output = (writer.zeros(TensorType(dtype, shape)), kept)
    every = tuple(range(x.type.rank))
    loops: list[Loop] = ["reduction" if axis in axes else "parallel" for axis in every]
    return writer.generic("sum", [(x, every)], output, loops, code)
