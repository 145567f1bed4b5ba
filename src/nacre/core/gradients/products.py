"""Gradients of products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule, sum_to
from nacre.core.gradients.writer import Value


def transpose(value: Value) -> Value:
    """Matrices with rows and columns exchanged."""
    rank = value.rank
    return value.transpose((*range(rank - 2), rank - 1, rank - 2))


def matmul_lhs(site: GradientSite) -> Value:
    """The product g b', summed over the batches that the operand does not have."""
    found = site.g.op("MatMul", transpose(site.operands[1]))
    return sum_to(found, found.shape, site.operand.shape)


def matmul_rhs(site: GradientSite) -> Value:
    """The product a' g, summed in the same way."""
    found = transpose(site.operands[0]).op("MatMul", site.g)
    return sum_to(found, found.shape, site.operand.shape)


def dot_lhs(site: GradientSite) -> Value:
    """By the ranks of both."""
    a, b = site.operands
    if a.rank == b.rank == 2:
        return matmul_lhs(site)
    if b.rank == 2:
        return b.op("Dot", site.g)
    return _as_column(site) * b if a.rank == 2 else site.compact_g * b


def dot_rhs(site: GradientSite) -> Value:
    """By the ranks of both."""
    a, b = site.operands
    if a.rank == b.rank == 2:
        return matmul_rhs(site)
    if a.rank == 2:
        return site.g.op("Dot", a)
    return a.reshape((*a.shape, 1)) * site.compact_g if b.rank == 2 else site.compact_g * a


def _as_column(site: GradientSite) -> Value:
    return site.scalar_gradient or site.g.reshape((*site.y.shape, 1))


def _rows(value: Value) -> Value:
    return value.reshape((-1, value.shape[-1])) if value.rank != 2 else value


def linear_input(site: GradientSite) -> Value:
    """The product g w."""
    return _rows(site.g).op("MatMul", site.operands[1]).reshape(site.x.shape)


def linear_weight(site: GradientSite) -> Value:
    """The product g' x, over all rows."""
    return transpose(_rows(site.g)).op("MatMul", _rows(site.x))


def linear_bias(site: GradientSite) -> Value:
    """The sum of g over all rows."""
    return sum_to(site.compact_g, site.y.shape, site.operand.shape)


PRODUCTS: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "Dot": (dot_lhs, dot_rhs),
        "MatMul": (matmul_lhs, matmul_rhs),
        "Linear": (linear_input, linear_weight, linear_bias),
    }
)
