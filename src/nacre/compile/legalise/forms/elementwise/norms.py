"""Softmax and norms along the last axis, whatever axis or axes they name."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.elementwise.activations import ElementwiseWriter
from nacre.core.rewrite.inexact.transposes import inverse
from nacre.core.rewrite.recover.parts import shape_with_ones
from nacre.core.rewrite.site import RewriteSite, Rules


def softmax(site: RewriteSite) -> int | None:
    """Along another axis: that axis last, between transpositions."""
    axis, rank = site.attributes["axis"], site.op.type.rank
    assert isinstance(axis, int)
    if rank == 0:
        return None
    if axis % rank == rank - 1:
        return (
            None if axis == rank - 1 else site.add(site.op.opcode, site.operands[0], axis=rank - 1)
        )
    order = (*(a for a in range(rank) if a != axis % rank), axis % rank)
    x = site.add("Transpose", site.operands[0], permutation=order)
    result = site.add(site.op.opcode, x, axis=rank - 1)
    return site.add("Transpose", result, permutation=inverse(order))


def layer_norm(site: RewriteSite) -> int | None:
    """Over several axes: over one that joins them. What is computed is applied afterwards."""
    axis = site.attributes["axis"]
    assert isinstance(axis, int)
    x, *given = site.operands
    shape = site.type(x).shape
    first = axis % len(shape)
    if any(site.constant(value) is None for value in given):
        return _apply_norm(site, first)
    if first == len(shape) - 1:
        if axis == first:
            return None
        return site.add(site.op.opcode, x, *given, axis=first, epsilon=site.attributes["epsilon"])
    inner = prod(shape[first:])
    flat = [site.reshape(value, (inner,)) for value in given]
    joined = site.reshape(x, (*shape[:first], inner))
    norm = site.add(
        site.op.opcode, joined, *flat, axis=first, epsilon=site.attributes["epsilon"]
    )  # fmt: skip
    return site.reshape(norm, shape)


def _apply_norm(site: RewriteSite, axis: int) -> int:
    """A norm without scale and bias, then both."""
    x, *given = site.operands
    steps = ElementwiseWriter(site)
    made = site.add(site.op.opcode, x, axis=axis, epsilon=site.attributes["epsilon"])
    made = steps.binary("Mul", made, given[0])
    return made if len(given) < 2 else steps.binary("Add", made, given[1])


def group_norm(site: RewriteSite) -> int | None:
    """Each group as one row, normalised; then every channel's scale and bias."""
    x, *given = site.operands
    shape = site.type(x).shape
    groups = site.attributes.get("groups", shape[1])
    assert isinstance(groups, int)
    rows = site.reshape(x, (shape[0], groups, prod(shape[1:]) // groups))
    norm = site.add("LayerNorm", rows, axis=2, epsilon=site.attributes["epsilon"])
    norm = site.reshape(norm, shape)
    along = (shape[1], *(1,) * (len(shape) - 2))
    for op, value in zip(("Mul", "Add"), given, strict=False):
        norm = site.add("BinOp", norm, site.reshape(value, along), op=op)
    return norm


def batch_norm(site: RewriteSite) -> int | None:
    """With statistics of the tensor itself: written out, so that it is found to be a norm."""
    x, scale, bias, mean, variance = site.operands
    if site.constant(mean) is not None and site.constant(variance) is not None:
        return None
    shape, axis = site.type(x).shape, site.attributes.get("axis", 1)
    assert isinstance(axis, int)
    wide = shape_with_ones(shape, tuple(a for a in range(len(shape)) if a != axis % len(shape)))
    scale, bias, mean, variance = (site.reshape(v, wide) for v in (scale, bias, mean, variance))
    epsilon = site.literal(np.array(site.attributes["epsilon"]), site.op.type.dtype)
    root = site.add("Unary", site.add("BinOp", variance, epsilon, op="Add"), op="Sqrt")
    norm = site.add("BinOp", site.add("BinOp", x, mean, op="Sub"), root, op="Div")
    norm = site.add("BinOp", norm, scale, op="Mul")
    return site.add("BinOp", norm, bias, op="Add")


BATCH_STATISTICS: Rules = {"BatchNorm": [batch_norm]}
NORM_FORMS: Rules = {
    "Softmax": [softmax],
    "LogSoftmax": [softmax],
    "LayerNorm": [layer_norm],
    "RmsNorm": [layer_norm],
    "GroupNorm": [group_norm],
    "InstanceNorm": [group_norm],
}
