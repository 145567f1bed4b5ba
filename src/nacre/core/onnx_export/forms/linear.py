"""Sums of products: Dot, MatMul, Linear, Einsum, Attention."""

from __future__ import annotations

from math import sqrt
from string import ascii_letters

import numpy as np

from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.reductions import reduce_axes
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, writes
from nacre.core.onnx_export.types import takes
from nacre.core.unsupported import Unsupported
from nacre.kernels.products.einsum_equation import equation_of


def product(site: OnnxWriter, a: Value, b: Value) -> Value:
    """A matrix product, batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    type_ = TensorType(a.dtype, (*batch, a.shape[-2], b.shape[-1]))
    return site.add("MatMul", a, b, type_=type_)


@writes("Dot", "MatMul")
def matmul(site: OnnxWriter) -> Value:
    """`Dot` and `MatMul`."""
    a, b = (site.wide(value) for value in site.operands)
    return site.result(site.add("MatMul", a, b, type_=TensorType(a.dtype, site.type.shape)))


@writes("Linear")
def linear(site: OnnxWriter) -> Value:
    """`Linear`: `Gemm` of two matrices and a bias, else a product and a sum."""
    x, weights, *bias = (site.wide(value) for value in site.operands)
    type_ = TensorType(x.dtype, site.type.shape)
    if x.type.rank == 2 and takes("Gemm", x.dtype):
        return site.result(site.add("Gemm", x, weights, *bias, type_=type_, transB=1))
    found = site.add("MatMul", x, site.transpose(weights, (1, 0)), type_=type_)
    return site.result(site.each("Add", found, bias[0]) if bias else found)


@writes("Einsum")
def einsum(site: OnnxWriter) -> Value:
    """`Einsum`, every axis with a letter: readers do not agree on `...` and on stretched axes."""
    given = [site.wide(value) for value in site.operands]
    equation = equation_of(str(site.attributes["equation"]), [value.shape for value in given])
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
        operands.append(site.reshape(value, [dim for _, dim in kept]))
        terms.append("".join(letters[label] for label, _ in kept))
    text = f"{','.join(terms)}->{''.join(letters[label] for label in equation.output)}"
    type_ = TensorType(given[0].dtype, site.type.shape)
    return site.result(site.add("Einsum", *operands, type_=type_, equation=text))


@writes("Attention")
def attention(site: OnnxWriter) -> Value:
    """`Attention` by its formula. A query that may look at no key gives zeros."""
    q, k, v = (site.wide(value) for value in site.operands[:3])
    scale = site.attributes["scale"] or 1 / sqrt(q.shape[-1])
    order = (*range(k.type.rank - 2), k.type.rank - 1, k.type.rank - 2)
    scores = product(site, site.each("Mul", q, site.number(scale, q.dtype)),
                     site.transpose(k, order))  # fmt: skip
    scores = _mask_scores(site, scores)
    shares = site.each("Softmax", scores, axis=-1)
    if len(site.operands) > 3 and _may_be_blind(site, site.operands[3]):
        most = reduce_axes(site, "ReduceMax", scores, (scores.type.rank - 1,))
        is_blind = site.each("Equal", most, site.number(float("-inf"), q.dtype), dtype="bool")
        shares = site.where(is_blind, site.number(0, q.dtype), shares)
    return site.result(product(site, shares, v))


def _mask_scores(site: OnnxWriter, scores: Value) -> Value:
    """Scores plus a mask; minus infinity where a mask, or the order, hides a key."""
    nothing = site.number(float("-inf"), scores.dtype)
    if len(site.operands) > 3:
        mask = site.operands[3]
        if mask.dtype == "bool":
            scores = site.where(mask, scores, nothing)
        else:
            scores = site.each("Add", scores, site.cast(mask, scores.dtype))
    if site.attributes["causal"]:
        rows, columns = (np.arange(size) for size in scores.shape[-2:])
        places = site.array(columns, "i64"), site.array(rows[:, None], "i64")
        scores = site.where(site.each("LessOrEqual", *places, dtype="bool"), scores, nothing)
    return scores


def _may_be_blind(site: OnnxWriter, mask: Value) -> bool:
    """Whether a mask may hide every key of a query; one that is known says so."""
    known = site.elements(mask)
    if known is None or site.attributes["causal"]:
        return True
    shown = known if known.dtype == np.bool_ else np.isfinite(known.astype(np.float32))
    return bool(not shown.reshape(-1, shown.shape[-1] if shown.ndim else 1).any(axis=1).all())
