"""Operations of ONNX that are products of matrices."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.core.importing.products import product
from nacre.core.onnx.findings import SMALLER, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.unsupported import Unsupported


@handles("MatMul")
def matmul(node: OnnxNode) -> int:
    """A product, batched; vectors count as a row on the left and as a column on the right."""
    return product(node, node.value(0), node.value(1))


@handles("Gemm")
def gemm(node: OnnxNode) -> int:
    """Alpha * A B + beta * C, A and B transposed where asked."""
    a, b, dtype = node.value(0), node.value(1), node.type(0).dtype
    alpha, beta = float(node.attribute("alpha", 1.0)), float(node.attribute("beta", 1.0))
    a = node.transpose(a, (1, 0)) if node.attribute("transA", 0) else a
    is_turned = bool(node.attribute("transB", 0))
    has_bias = node.has(2)
    if alpha == 1.0 and beta == 1.0 and has_bias and len(node.shape(2)) == 1:
        weights = b if is_turned else node.transpose(b, (1, 0))
        columns = node.builder.type_of(weights).shape[0]
        if node.shape(2) == (columns,):
            return node.add("Linear", a, weights, node.value(2))
    b = node.transpose(b, (1, 0)) if is_turned else b
    product = scale(node, node.add("MatMul", a, b), alpha, dtype)
    if not has_bias:
        return product
    return node.add("BinOp", product, scale(node, node.value(2), beta, dtype), op="Add")


def scale(node: OnnxNode, value: int, factor: float, dtype: str) -> int:
    """A value times a number."""
    if factor == 1.0:
        return value
    return node.add("BinOp", value, node.scalar(factor, dtype), op="Mul")


@handles("Einsum")
def einsum(node: OnnxNode) -> int:
    """Sums of products over named axes."""
    values = [node.value(i) for i in range(node.count)]
    return node.add("Einsum", *values, equation=node.require("equation").replace(" ", ""))


_LARGEST_DETERMINANT = 64


@handles("Det")
def determinant(node: OnnxNode) -> int:
    """Determinants of matrices, by elimination; the largest entry of a column goes first."""
    if len(node.shape(0)) < 2:
        raise Unsound(f"the shape is {list(node.shape(0))}, expected square matrices")
    *batch, rows, columns = node.shape(0)
    if rows != columns:
        raise Unsound(f"the shape is {list(node.shape(0))}, expected square matrices")
    if rows > _LARGEST_DETERMINANT:
        reason = f"a matrix has {rows} rows, expected at most {_LARGEST_DETERMINANT}"
        raise Unsupported(reason, SMALLER)
    rest, product = operand(node, 0).reshape(prod(batch), rows, rows), None
    while rest.shape[1]:
        factor, smaller = _eliminate(node, rest)
        product = factor if product is None else product * factor
        if smaller is None:
            break
        rest = smaller
    assert product is not None
    return product.reshape(*batch).value


def _eliminate(node: OnnxNode, x: Expr) -> tuple[Expr, Expr | None]:
    """The first pivot of matrices with its sign, and the matrices that are left."""
    batch, size, _ = x.shape
    if size == 1:
        return x.reshape(batch), None
    first = _columns(node, x, 0, 1).reshape(batch, size)
    at = Expr(node, node.add("ArgMax", first.map("Abs").value, axis=1, keepdims=True))
    row = _rows(node, x, at)
    pivot = _columns(node, row, 0, 1).reshape(batch)
    sign = 1.0 - (at % 2).to(x.dtype).reshape(batch) * 2.0
    others = known_expr(node, np.arange(size - 1, dtype=np.int64)[None, :])
    left = _rows(node, x, others + others.is_("Ge", at).to("i64"))
    safe = pivot.is_("Eq", 0.0).choose(pivot * 0.0 + 1.0, pivot).reshape(batch, 1, 1)
    factors = _columns(node, left, 0, 1) / safe
    smaller = _columns(node, left, 1, size) - factors * _columns(node, row, 1, size)
    return pivot * sign, smaller


def _rows(node: OnnxNode, x: Expr, index: Expr) -> Expr:
    """Rows of each matrix by index."""
    tuples = index.reshape(*index.shape, 1)
    return Expr(node, node.add("GatherNd", x.value, tuples.value, batch_dims=1))


def _columns(node: OnnxNode, x: Expr, start: int, end: int) -> Expr:
    batch, rows, _ = x.shape
    given = {"starts": (0, 0, start), "ends": (batch, rows, end), "steps": (1, 1, 1)}
    return Expr(node, node.add("Slice", x.value, **given))
