"""Sums of products: Dot, MatMul, Linear, Einsum, Attention."""

from __future__ import annotations

from math import sqrt
from string import ascii_letters

import numpy as np

from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.reductions import reduce_axes
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.types import takes
from nacre.core.onnx_export.writer import OnnxWriter, writes
from nacre.core.unsupported import Unsupported
from nacre.kernels.products.einsum_equation import equation_of


def product(writer: OnnxWriter, a: Value, b: Value) -> Value:
    """A matrix product, batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    type_ = TensorType(a.dtype, (*batch, a.shape[-2], b.shape[-1]))
    return writer.add("MatMul", a, b, type_=type_)


@writes("Dot", "MatMul")
def matmul(writer: OnnxWriter) -> Value:
    """`Dot` and `MatMul`."""
    a, b = (writer.to_compute_type(value) for value in writer.operands)
    return writer.to_result_type(
        writer.add("MatMul", a, b, type_=TensorType(a.dtype, writer.type.shape))
    )


@writes("Linear")
def linear(writer: OnnxWriter) -> Value:
    """`Linear`: `Gemm` of two matrices and a bias, else a product and a sum."""
    x, weights, *bias = (writer.to_compute_type(value) for value in writer.operands)
    type_ = TensorType(x.dtype, writer.type.shape)
    if x.type.rank == 2 and takes("Gemm", x.dtype):
        return writer.to_result_type(writer.add("Gemm", x, weights, *bias, type_=type_, transB=1))
    found = writer.add("MatMul", x, writer.transpose(weights, (1, 0)), type_=type_)
    return writer.to_result_type(writer.elementwise("Add", found, bias[0]) if bias else found)


@writes("Einsum")
def einsum(writer: OnnxWriter) -> Value:
    """`Einsum`, every axis with a letter: readers do not agree on `...` and on stretched axes."""
    given = [writer.to_compute_type(value) for value in writer.operands]
    equation = equation_of(str(writer.attributes["equation"]), [value.shape for value in given])
    free = iter(letter for letter in ascii_letters if letter not in equation.sizes)
    letters = {label: label if isinstance(label, str) else next(free, "")
               for label in equation.sizes}  # fmt: skip
    if "" in letters.values():
        raise Unsupported("an equation with more axes than there are letters")
    operands, terms = [], []
    for value, labels in zip(given, equation.operands, strict=True):
        # One that stretches is left out: the others have it.
        pairs = list(zip(labels, value.shape, strict=True))
        kept = [(label, dim) for label, dim in pairs if dim == equation.sizes[label]]
        operands.append(writer.reshape(value, [dim for _, dim in kept]))
        terms.append("".join(letters[label] for label, _ in kept))
    text = f"{','.join(terms)}->{''.join(letters[label] for label in equation.output)}"
    type_ = TensorType(given[0].dtype, writer.type.shape)
    return writer.to_result_type(writer.add("Einsum", *operands, type_=type_, equation=text))


@writes("Attention")
def attention(writer: OnnxWriter) -> Value:
    """`Attention` by its formula. A query that may look at no key gives zeros."""
    q, k, v = (writer.to_compute_type(value) for value in writer.operands[:3])
    scale = writer.attributes["scale"] or 1 / sqrt(q.shape[-1])
    order = (*range(k.type.rank - 2), k.type.rank - 1, k.type.rank - 2)
    scores = product(writer, writer.elementwise("Mul", q, writer.number(scale, q.dtype)),
                     writer.transpose(k, order))  # fmt: skip
    scores = _mask_scores(writer, scores)
    shares = writer.elementwise("Softmax", scores, axis=-1)
    if len(writer.operands) > 3 and _may_mask_whole_query(writer, writer.operands[3]):
        most = reduce_axes(writer, "ReduceMax", scores, (scores.type.rank - 1,))
        is_blind = writer.elementwise(
            "Equal", most, writer.number(float("-inf"), q.dtype), dtype="bool"
        )
        shares = writer.where(is_blind, writer.number(0, q.dtype), shares)
    return writer.to_result_type(product(writer, shares, v))


def _mask_scores(writer: OnnxWriter, scores: Value) -> Value:
    """Scores plus a mask; minus infinity where a mask, or the order, hides a key."""
    nothing = writer.number(float("-inf"), scores.dtype)
    if len(writer.operands) > 3:
        mask = writer.operands[3]
        if mask.dtype == "bool":
            scores = writer.where(mask, scores, nothing)
        else:
            scores = writer.elementwise("Add", scores, writer.cast(mask, scores.dtype))
    if writer.attributes["causal"]:
        rows, columns = (np.arange(size) for size in scores.shape[-2:])
        places = writer.array(columns, "i64"), writer.array(rows[:, None], "i64")
        scores = writer.where(
            writer.elementwise("LessOrEqual", *places, dtype="bool"), scores, nothing
        )
    return scores


def _may_mask_whole_query(writer: OnnxWriter, mask: Value) -> bool:
    """Whether a mask may hide every key of a query; one that is known says so."""
    known = writer.elements(mask)
    if known is None or writer.attributes["causal"]:
        return True
    shown = known if known.dtype == np.bool_ else np.isfinite(known.astype(np.float32))
    return bool(not shown.reshape(-1, shown.shape[-1] if shown.ndim else 1).any(axis=1).all())
