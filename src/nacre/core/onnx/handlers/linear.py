"""Operations of ONNX that are products of matrices."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.core.importing.products import product
from nacre.core.onnx.findings import SMALLER, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.use import OnnxNode
from nacre.core.unsupported import Unsupported


@handles("MatMul")
def matmul(use: OnnxNode) -> int:
    """A product, batched; vectors count as a row on the left and as a column on the right."""
    return product(use, use.value(0), use.value(1))


@handles("Gemm")
def gemm(use: OnnxNode) -> int:
    """Alpha * A B + beta * C, A and B transposed where asked."""
    a, b, dtype = use.value(0), use.value(1), use.type(0).dtype
    alpha, beta = float(use.attribute("alpha", 1.0)), float(use.attribute("beta", 1.0))
    a = use.transpose(a, (1, 0)) if use.attribute("transA", 0) else a
    is_turned = bool(use.attribute("transB", 0))
    has_bias = use.has(2)
    if alpha == 1.0 and beta == 1.0 and has_bias and len(use.shape(2)) == 1:
        weights = b if is_turned else use.transpose(b, (1, 0))
        columns = use.builder.type_of(weights).shape[0]
        if use.shape(2) == (columns,):
            return use.add("Linear", a, weights, use.value(2))
    b = use.transpose(b, (1, 0)) if is_turned else b
    made = scale(use, use.add("MatMul", a, b), alpha, dtype)
    if not has_bias:
        return made
    return use.add("BinOp", made, scale(use, use.value(2), beta, dtype), op="Add")


def scale(use: OnnxNode, value: int, factor: float, dtype: str) -> int:
    """A value times a number."""
    if factor == 1.0:
        return value
    return use.add("BinOp", value, use.scalar(factor, dtype), op="Mul")


@handles("Einsum")
def einsum(use: OnnxNode) -> int:
    """Sums of products over named axes."""
    values = [use.value(i) for i in range(use.count)]
    return use.add("Einsum", *values, equation=use.require("equation").replace(" ", ""))


_LARGEST_DETERMINANT = 64


@handles("Det")
def determinant(use: OnnxNode) -> int:
    """Determinants of matrices, by elimination; the largest entry of a column goes first."""
    if len(use.shape(0)) < 2:
        raise Unsound(f"the shape is {list(use.shape(0))}, expected square matrices")
    *batch, rows, columns = use.shape(0)
    if rows != columns:
        raise Unsound(f"the shape is {list(use.shape(0))}, expected square matrices")
    if rows > _LARGEST_DETERMINANT:
        reason = f"a matrix has {rows} rows, expected at most {_LARGEST_DETERMINANT}"
        raise Unsupported(reason, SMALLER)
    rest, found = operand(use, 0).reshape(prod(batch), rows, rows), None
    while rest.shape[1]:
        factor, smaller = _eliminate(use, rest)
        found = factor if found is None else found * factor
        if smaller is None:
            break
        rest = smaller
    assert found is not None
    return found.reshape(*batch).value


def _eliminate(use: OnnxNode, x: Expr) -> tuple[Expr, Expr | None]:
    """The first pivot of matrices with its sign, and the matrices that are left."""
    batch, size, _ = x.shape
    if size == 1:
        return x.reshape(batch), None
    first = _columns(use, x, 0, 1).reshape(batch, size)
    at = Expr(use, use.add("ArgMax", first.map("Abs").value, axis=1, keepdims=True))
    row = _rows(use, x, at)
    pivot = _columns(use, row, 0, 1).reshape(batch)
    sign = 1.0 - (at % 2).to(x.dtype).reshape(batch) * 2.0
    others = known_expr(use, np.arange(size - 1, dtype=np.int64)[None, :])
    left = _rows(use, x, others + others.is_("Ge", at).to("i64"))
    safe = pivot.is_("Eq", 0.0).choose(pivot * 0.0 + 1.0, pivot).reshape(batch, 1, 1)
    factors = _columns(use, left, 0, 1) / safe
    smaller = _columns(use, left, 1, size) - factors * _columns(use, row, 1, size)
    return pivot * sign, smaller


def _rows(use: OnnxNode, x: Expr, index: Expr) -> Expr:
    """Rows of each matrix by index."""
    tuples = index.reshape(*index.shape, 1)
    return Expr(use, use.add("GatherNd", x.value, tuples.value, batch_dims=1))


def _columns(use: OnnxNode, x: Expr, start: int, end: int) -> Expr:
    batch, rows, _ = x.shape
    given = {"starts": (0, 0, start), "ends": (batch, rows, end), "steps": (1, 1, 1)}
    return Expr(use, use.add("Slice", x.value, **given))
