"""Operations of ONNX that are products of matrices."""

from __future__ import annotations

from nacre.core.onnx.handlers import handles
from nacre.core.onnx.use import Use


@handles("MatMul")
def matmul(use: Use) -> int:
    """A product, batched; vectors count as a row on the left and as a column on the right."""
    return product(use, use.value(0), use.value(1))


def product(use: Use, a: int, b: int) -> int:
    """The product of two values as ONNX has it."""
    a_shape, b_shape = use.builder.type_of(a).shape, use.builder.type_of(b).shape
    left = use.reshaped(a, (1, *a_shape)) if len(a_shape) == 1 else a
    right = use.reshaped(b, (*b_shape, 1)) if len(b_shape) == 1 else b
    made = use.add("MatMul", left, right)
    dims = list(use.builder.type_of(made).shape)
    if len(b_shape) == 1:
        del dims[-1]
    if len(a_shape) == 1:
        del dims[-1 if len(b_shape) == 1 else -2]
    return use.reshaped(made, dims)


@handles("Gemm")
def gemm(use: Use) -> int:
    """Alpha * A B + beta * C, A and B transposed where asked."""
    a, b, dtype = use.value(0), use.value(1), use.type(0).dtype
    alpha, beta = float(use.attribute("alpha", 1.0)), float(use.attribute("beta", 1.0))
    a = use.transposed(a, (1, 0)) if use.attribute("transA", 0) else a
    is_turned = bool(use.attribute("transB", 0))
    has_bias = use.has(2)
    if alpha == 1.0 and beta == 1.0 and has_bias and len(use.shape(2)) == 1:
        weights = b if is_turned else use.transposed(b, (1, 0))
        columns = use.builder.type_of(weights).shape[0]
        if use.shape(2) == (columns,):
            return use.add("Linear", a, weights, use.value(2))
    b = use.transposed(b, (1, 0)) if is_turned else b
    made = scaled(use, use.add("MatMul", a, b), alpha, dtype)
    if not has_bias:
        return made
    return use.add("BinOp", made, scaled(use, use.value(2), beta, dtype), op="Add")


def scaled(use: Use, value: int, factor: float, dtype: str) -> int:
    """A value times a number."""
    if factor == 1.0:
        return value
    return use.add("BinOp", value, use.scalar(factor, dtype), op="Mul")


@handles("Einsum")
def einsum(use: Use) -> int:
    """Sums of products over named axes."""
    values = [use.value(i) for i in range(use.count)]
    return use.add("Einsum", *values, equation=use.require("equation").replace(" ", ""))
