"""Products of matrices: `Linear` where one is known, else `MatMul` with equal batches."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.windows.windows import separate_bias, transpose
from nacre.core.module import Shape
from nacre.core.rewrite.site import RewriteSite, Rules


def dot(site: RewriteSite) -> int | None:
    """Products with vectors: a vector is a row on the left and a column on the right."""
    a, b = site.operands
    first, second = site.type(a).shape, site.type(b).shape
    if len(first) == 1:
        a = site.reshape(a, (1, *first))
    if len(second) == 1:
        b = site.reshape(b, (*second, 1))
    return site.reshape(site.add("MatMul", a, b), site.op.type.shape)


def by_constant(site: RewriteSite) -> int | None:
    """`MatMul` by a constant matrix."""
    a, b = site.operands
    if site.op.type.element.is_integer or site.type(a).rank < 2:
        return None
    weights = site.constant(b)
    if weights is None or weights.ndim < 2 or prod(weights.shape[:-2]) != 1:
        return None
    matrix = weights.reshape(weights.shape[-2:]).T
    literal = site.literal(np.ascontiguousarray(matrix), site.op.type.dtype)
    return site.reshape(site.add("Linear", a, literal), site.op.type.shape)


def batch_matmul(site: RewriteSite) -> int | None:
    """`MatMul` with axes before: broadcast, then as one."""
    a, b = site.operands
    if site.op.type.element.is_integer:
        return None
    one, two = site.type(a).shape, site.type(b).shape
    if len(one) < 2 or len(two) < 2:
        return dot(site)
    if is_matmul(one, two):
        return None
    if prod(two[:-2]) == 1:
        rows = site.reshape(a, (prod(one[:-1]), one[-1]))
        product = site.add("MatMul", rows, site.reshape(b, two[-2:]))
        return site.reshape(product, site.op.type.shape)
    batch = site.op.type.shape[:-2]
    product = site.add("MatMul", _broadcast_batch(site, a, batch), _broadcast_batch(site, b, batch))
    return site.reshape(product, site.op.type.shape)


def is_matmul(one: Shape, two: Shape) -> bool:
    """Whether shapes are those of the device's products: matrices, or equally many of them."""
    return len(one) == len(two) and len(one) in (2, 3) and one[:-2] == two[:-2]


def _broadcast_batch(site: RewriteSite, value: int, batch: Shape) -> int:
    """A tensor with all of a batch's axes, as one."""
    shape = site.type(value).shape
    if shape[:-2] != batch:
        missing = (1,) * (len(batch) + 2 - len(shape))
        value = site.reshape(value, (*missing, *shape))
        value = site.add("Broadcast", value, shape=(*batch, *shape[-2:]))
    return site.reshape(value, (prod(batch), *shape[-2:]))


def linear(site: RewriteSite) -> int | None:
    """`Linear` by weights that are computed; of a vector."""
    x, weights = site.operands[0], site.operands[1]
    if site.op.type.element.is_integer:
        return None
    if site.constant(weights) is None:
        product = site.add("MatMul", x, transpose(site, weights, (1, 0)))
        if len(site.operands) < 3:
            return product
        return site.add("BinOp", product, site.operands[2], op="Add")
    if site.type(x).rank != 1:
        return None
    row = site.reshape(x, (1, *site.type(x).shape))
    return site.reshape(site.add("Linear", row, *site.operands[1:]), site.op.type.shape)


PRODUCT_FORMS: Rules = {
    "Dot": [dot],
    "MatMul": [by_constant, batch_matmul],
    "Linear": [separate_bias, linear],
}
