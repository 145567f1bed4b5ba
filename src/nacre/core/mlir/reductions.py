"""Sums and means over axes."""

from __future__ import annotations

from math import prod

from nacre.core.mlir.body import Body, Code, Scalar
from nacre.core.mlir.elementwise import require_numbers
from nacre.core.mlir.shape_ops import reshape_value
from nacre.core.mlir.site import Loop, MlirWriter, Value
from nacre.core.mlir.types import bits_of, is_float, wide
from nacre.core.module import Shape, TensorType
from nacre.kernels.interface.shapes import axes_of


def sum_(site: MlirWriter) -> Value:
    """Floats are summed in their wide type; integers wrap."""
    require_numbers(site)
    total = _reduce(site, wide(site.type.dtype), _add)
    return reshape_value(site, site.cast(total, site.type.dtype), site.type.shape)


def mean(site: MlirWriter) -> Value:
    """Floats: the sum by the number of elements. Integers: exact, and cut towards zero."""
    require_numbers(site)
    dtype = site.type.dtype
    count = prod(site.operands[0].type.shape[axis] for axis in _axes(site))
    has_room = bits_of(dtype) + count.bit_length() < 64  # for the sum of integers
    if not is_float(dtype) and not has_room:
        return reshape_value(site, _mean_of_parts(site, count), site.type.shape)
    held = wide(dtype) if is_float(dtype) else "i64"
    total = _reduce(site, held, _add)

    def divided(body: Body, x: Scalar) -> Scalar:
        operation = "arith.divf" if is_float(held) else "arith.divsi"
        return body.cast(body.of(operation, x, body.constant(count, held)), dtype)

    type_ = TensorType(dtype, total.type.shape)
    return reshape_value(site, site.mapped("mean", [total], type_, divided), site.type.shape)


def _add(body: Body, x: Scalar, total: Scalar) -> Scalar:
    return body.arithmetic("Add", total, body.cast(x, total.dtype))


def _mean_of_parts(site: MlirWriter, count: int) -> Value:
    """The sum may leave 64 bits: quotients (rounded down) and remainders are summed apart."""
    dtype = site.type.dtype

    def add_whole(body: Body, x: Scalar, total: Scalar) -> Scalar:
        whole = body.of("arith.floordivsi", body.cast(x, "i64"), body.constant(count, "i64"))
        return body.arithmetic("Add", total, whole)

    def add_rest(body: Body, x: Scalar, total: Scalar) -> Scalar:
        value, divisor = body.cast(x, "i64"), body.constant(count, "i64")
        below = body.arithmetic("Mul", body.of("arith.floordivsi", value, divisor), divisor)
        return body.arithmetic("Add", total, body.arithmetic("Sub", value, below))

    def joined(body: Body, wholes: Scalar, rests: Scalar) -> Scalar:
        divisor, zero = body.constant(count, "i64"), body.constant(0, "i64")
        down = body.arithmetic("Add", wholes, body.of("arith.divsi", rests, divisor))
        is_cut = body.compare("Ne", body.of("arith.remsi", rests, divisor), zero)
        is_below = body.of("arith.andi", body.compare("Lt", down, zero), is_cut)
        return body.cast(body.arithmetic("Add", down, body.cast(is_below, "i64")), dtype)

    sums = [_reduce(site, "i64", code) for code in (add_whole, add_rest)]
    return site.mapped("mean", sums, TensorType(dtype, sums[0].type.shape), joined)


def _axes(site: MlirWriter) -> Shape:
    """The axes that go; none named means all of them."""
    rank = site.operands[0].type.rank
    return axes_of(site.op.attributes["axes"], rank) or tuple(range(rank))


def _reduce(site: MlirWriter, dtype: str, code: Code) -> Value:
    """What is left without the axes that go; every element starts from zero."""
    x, axes = site.operands[0], _axes(site)
    kept = tuple(axis for axis in range(x.type.rank) if axis not in axes)
    shape = tuple(x.type.shape[axis] for axis in kept)
    output = (site.zeros(TensorType(dtype, shape)), kept)
    every = tuple(range(x.type.rank))
    loops: list[Loop] = ["reduction" if axis in axes else "parallel" for axis in every]
    return site.generic("sum", [(x, every)], output, loops, code)
