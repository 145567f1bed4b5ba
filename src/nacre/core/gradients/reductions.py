"""Gradients of reductions and of running sums and products."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule, restore_axes
from nacre.core.gradients.writer import Value, where
from nacre.core.module import Shape


def _axes(site: GradientSite) -> Shape:
    """The axes that are reduced, counted from the front; none named means all."""
    rank = site.x.rank
    named = tuple(axis % rank for axis in site.attributes["axes"]) if rank else ()
    return tuple(sorted(named)) or tuple(range(rank))


def _broadcast_back(site: GradientSite) -> Value:
    return restore_axes(site, site.compact_g, _axes(site))


def sum_(site: GradientSite) -> Value:
    """Every element takes part once."""
    return _broadcast_back(site)


def mean(site: GradientSite) -> Value:
    """Every element has its share."""
    count = prod(site.x.shape[axis] for axis in _axes(site))
    return _broadcast_back(site) * (1.0 / count)


def _extremum(site: GradientSite) -> Value:
    """Evenly to all elements that are the largest, as in `torch.amax`."""
    axes = _axes(site)
    is_met = site.x.compare("Eq", restore_axes(site, site.y, axes))
    share = where(is_met, site.writer.scalar(1.0, site.x.dtype), 0.0)
    return where(is_met, _broadcast_back(site) / share.sum(axes, keepdims=True), 0.0)


def _product(site: GradientSite) -> Value:
    """The product of all others: of those before by that of those behind, zeros or not."""
    axes = _axes(site)
    if not axes:
        return _broadcast_back(site)
    order = (*(axis for axis in range(site.x.rank) if axis not in axes), *axes)
    moved = site.x.transpose(order)
    line = moved.reshape((*moved.shape[: -len(axes)], -1))
    last = line.rank - 1
    before = line.op("CumProd", axis=last, exclusive=True)
    behind = line.op("CumProd", axis=last, exclusive=True, reverse=True)
    others = (before * behind).reshape(moved.shape).transpose(_inverse_order(order))
    return _broadcast_back(site) * others


def _inverse_order(order: Shape) -> Shape:
    return tuple(order.index(axis) for axis in range(len(order)))


def _norm(site: GradientSite) -> Value:
    """By x over the norm, and 0 where that is 0."""
    y = restore_axes(site, site.y, _axes(site))
    is_zero = y.compare("Eq", 0.0)
    return where(is_zero, 0.0, _broadcast_back(site) * site.x / where(is_zero, 1.0, y))


def _log_sum(site: GradientSite) -> Value:
    axes = _axes(site)
    return _broadcast_back(site) / site.x.sum(axes, keepdims=True)


def _log_sum_exp(site: GradientSite) -> Value:
    return _broadcast_back(site) * (site.x - restore_axes(site, site.y, _axes(site))).exp()


REDUCE: Mapping[str, Rule] = MappingProxyType(
    {
        "Max": _extremum,
        "Min": _extremum,
        "Prod": _product,
        "SumSquare": lambda site: _broadcast_back(site) * (site.x * 2.0),
        "L1": lambda site: _broadcast_back(site) * site.x.unary("Sign"),
        "L2": _norm,
        "LogSum": _log_sum,
        "LogSumExp": _log_sum_exp,
    }
)


def running_sum(site: GradientSite) -> Value:
    """The running sum of the gradient the other way."""
    given = site.attributes
    return site.g.op(
        "CumSum", axis=given["axis"], exclusive=given["exclusive"], reverse=not given["reverse"]
    )


def running_product(site: GradientSite) -> Value:
    """The running products without one factor each: exact with zeros, in the square of the axis.

    Row k of the matrices is the axis with a 1 in the place of element k.
    """
    given, x = site.attributes, site.x
    axis, size = given["axis"] % x.rank, x.shape[given["axis"]]
    order = (*(a for a in range(x.rank) if a != axis), axis)
    moved = x.transpose(order)
    line, g = (v.reshape((-1, 1, size)) for v in (moved, site.g.transpose(order)))
    square = (size, size)
    is_own = site.writer.iota(square, 0).compare("Eq", site.writer.iota(square, 1))
    rows = where(is_own, 1.0, line)
    products = rows.op("CumProd", axis=2, exclusive=given["exclusive"], reverse=given["reverse"])
    # Element k is in the products from its own place on, or behind that place.
    skipped = 1 if given["exclusive"] else 0
    reached = products.op(
        "Trilu", upper=not given["reverse"], k=-skipped if given["reverse"] else skipped
    )
    return (reached * g).sum((2,)).reshape(moved.shape).transpose(_inverse_order(order))


REDUCTIONS: Mapping[str, Rule] = MappingProxyType(
    {"Sum": sum_, "Mean": mean, "CumSum": running_sum, "CumProd": running_product}
)
