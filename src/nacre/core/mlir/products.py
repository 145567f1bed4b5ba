"""Sums of products: Dot, MatMul, Conv2d. Floats are multiplied and summed in their wide type."""

from __future__ import annotations

from nacre.core.mlir.body import RegionBody, Scalar
from nacre.core.mlir.elementwise import require_numbers
from nacre.core.mlir.types import compute_type, element_text, tensor_text
from nacre.core.mlir.writer import Loop, MlirWriter, Value, broadcast_axes, operands_text
from nacre.core.module import Shape, TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Custom

_MOST_ELEMENTS = (1 << 63) - 1


def matmul(writer: MlirWriter) -> Value:
    """`linalg.matmul` of two matrices; of vectors and batches a `linalg.generic`."""
    lhs, rhs, zeros = _widen(writer)
    if lhs.type.rank == rhs.type.rank == 2:
        product = _add_product(writer, "linalg.matmul", lhs, rhs, zeros)
    else:
        product = _contract(writer, lhs, rhs, zeros)
    return writer.cast(product, writer.type.dtype)


def _widen(writer: MlirWriter) -> tuple[Value, Value, Value]:
    """Both operands in the type that is computed in, and what the sums start from."""
    require_numbers(writer)
    held = compute_type(writer.type.dtype)
    lhs, rhs = (writer.cast(value, held) for value in writer.operands)
    return lhs, rhs, writer.zeros(TensorType(held, writer.type.shape))


def _add_product(writer: MlirWriter, operation: str, lhs: Value, rhs: Value, zeros: Value) -> Value:
    operands = operands_text([lhs, rhs], zeros)
    return writer.add("product", f"{operation} {operands} -> {zeros.type_text}", zeros.type)


def _contract(writer: MlirWriter, lhs: Value, rhs: Value, zeros: Value) -> Value:
    """Loops over the axes of the result, then one over the axis that goes.

    A vector on the left has no rows, one on the right no columns; batches broadcast.
    """
    rank = zeros.type.rank
    has_columns = rhs.type.rank > 1
    rows = (rank - 1 - has_columns,) if lhs.type.rank > 1 else ()
    columns = (rank - 1,) if has_columns else ()
    batch = zeros.type.shape[: rank - len(rows) - len(columns)]

    def code(body: RegionBody, a: Scalar, b: Scalar, total: Scalar) -> Scalar:
        return body.arithmetic("Add", total, body.arithmetic("Mul", a, b))

    inputs = [
        (lhs, (*broadcast_axes(lhs.type.shape[:-2], batch), *rows, rank)),
        (rhs, (*broadcast_axes(rhs.type.shape[:-2], batch), rank, *columns)),
    ]
    loops: list[Loop] = ["parallel"] * rank
    loops.append("reduction")
    return writer.generic("product", inputs, (zeros, tuple(range(rank))), loops, code)


def conv2d(writer: MlirWriter) -> Value:
    """`linalg.conv_2d_nhwc_hwcf` of the padded input."""
    x, weights, zeros = _widen(writer)
    padded = _pad(writer, x, _pads(writer))
    # Where there is one window along an axis, its stride leads nowhere and may be any number.
    strides = [
        stride if count > 1 else 1
        for stride, count in zip(
            writer.op.attributes["strides"], writer.type.shape[1:3], strict=True
        )
    ]
    settings = (
        f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{strides}> : tensor<2xi64>}}"
    )
    product = _add_product(writer, f"linalg.conv_2d_nhwc_hwcf {settings}", padded, weights, zeros)
    return writer.cast(product, writer.type.dtype)


def _pads(writer: MlirWriter) -> tuple[tuple[int, int], ...]:
    """Top and bottom, left and right. `Same`: what the last window lacks, an odd one at the end."""
    padding = writer.op.attributes["padding"]
    if isinstance(padding, Custom):
        return tuple(padding)
    if padding == "Valid":
        return (0, 0), (0, 0)
    x, weights = (value.type.shape for value in writer.operands)
    extents = zip(
        x[1:3], weights[:2], writer.op.attributes["strides"], writer.type.shape[1:3], strict=True
    )
    totals = [max((n - 1) * stride + window - size, 0) for size, window, stride, n in extents]
    return tuple((total // 2, total - total // 2) for total in totals)


def _pad(writer: MlirWriter, x: Value, pads: tuple[tuple[int, int], ...]) -> Value:
    if not any(map(any, pads)):
        return x
    low, high = ([0, pads[0][side], pads[1][side], 0] for side in (0, 1))
    shape = tuple(a + b + c for a, b, c in zip(low, x.type.shape, high, strict=True))
    require_elements(shape)
    type_, zero = TensorType(x.type.dtype, shape), writer.scalar("zero", 0, x.type.dtype)
    places = ", ".join(f"%${axis}: index" for axis in range(len(shape)))
    text = (
        f"tensor.pad {x.name} low{low} high{high} {{\n^bb0({places}):\n"
        f"  tensor.yield {zero} : {element_text(x.type.dtype)}\n"
        f"}} : {x.type_text} to {tensor_text(type_)}"
    )
    return writer.add("padded", text, type_)


def require_elements(shape: Shape) -> None:
    """Unsupported for a tensor that is larger than any."""
    count = 1
    for dim in shape:
        count *= dim
    if count > _MOST_ELEMENTS:
        raise Unsupported("a padded input of 2^63 elements or more")
