"""Reductions: means and maxima as poolings, sums of rows as products with ones."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt

import numpy as np

from nacre.compile.legalise.forms.elementwise.activations import ElementwiseWriter
from nacre.compile.legalise.forms.windows.windows import Ints, slice_axis
from nacre.core.rewrite.site import RewriteSite, Rules

_FEW = 16
_LEAST_SHARE = 2.0**-14  # f16 has all its digits down to here


def _axes(site: RewriteSite) -> list[int]:
    """The axes that are reduced and have more than one element."""
    shape = site.type(site.operands[0]).shape
    given = site.attributes["axes"]
    assert isinstance(given, tuple)
    axes = {a % len(shape) for a in given} or set(range(len(shape)))
    return sorted(axis for axis in axes if shape[axis] != 1)


def _runs(shape: Ints, axes: list[int]) -> list[tuple[int, int]]:
    """Axes that follow each other, those of size 1 between them left aside, as first and end."""
    runs: list[tuple[int, int]] = []
    for axis in axes:
        gap = shape[runs[-1][1] : axis] if runs else (0,)
        if runs and all(dim == 1 for dim in gap):
            runs[-1] = (runs[-1][0], axis + 1)
        else:
            runs.append((axis, axis + 1))
    return runs


Along = Callable[
    [RewriteSite, int, int, int], int
]  # a value, and the axes from the first to the end


def _reduce(site: RewriteSite, value: int, along: Along) -> int:
    """A reduction run by run, the last one first."""
    shape = site.type(value).shape
    for first, end in reversed(_runs(shape, _axes(site))):
        value = along(site, value, first, end)
    return value


def _mean_along(site: RewriteSite, value: int, first: int, end: int) -> int:
    """The mean over neighbouring axes, which keep size 1."""
    shape = site.type(value).shape
    after = (*shape[:first], *(1,) * (end - first), *shape[end:])
    before, count, behind = prod(shape[:first]), prod(shape[first:end]), prod(shape[end:])
    if behind == 1:
        share = max(1 / count, _LEAST_SHARE)
        shares = site.literal(np.full((1, count), share), site.type(value).dtype)
        means = site.reshape(
            site.add("Linear", site.reshape(value, (before, count)), shares), after
        )
        factor = 1 / (count * share)
        return (
            means if share > _LEAST_SHARE else ElementwiseWriter(site).binary("Mul", means, factor)
        )
    return _pool_axes(site, "AvgPool", value, first, end)


def _pool_axes(site: RewriteSite, pool: str, value: int, first: int, end: int) -> int:
    """A pooling whose window is all of some axes."""
    shape = site.type(value).shape
    after = (*shape[:first], *(1,) * (end - first), *shape[end:])
    before, behind = prod(shape[:first]), prod(shape[end:])
    count = prod(shape[first:end])
    if behind == 1:
        plane: Ints = (1, before, count, 1)
        kernel: Ints = (1, count)
    else:
        high = shape[first] if end - first == 2 else count
        plane, kernel = (before, high, count // high, behind), (high, count // high)
    x = site.reshape(value, plane)
    return site.reshape(site.add(pool, x, kernel=kernel, strides=kernel, layout="NHWC"), after)


def _maximum_along(site: RewriteSite, value: int, first: int, end: int) -> int:
    return _pool_axes(site, "MaxPool", value, first, end)


def mean(site: RewriteSite) -> int | None:
    """`Mean` as poolings and products with constants."""
    if site.op.type.element.is_integer:
        return None
    return site.reshape(_reduce(site, site.operands[0], _mean_along), site.op.type.shape)


def _total(site: RewriteSite, value: int) -> int:
    """The sum: products with ones for the last axes, else the mean times its count."""
    shape, axes = site.type(value).shape, _axes(site)
    count = 1
    for first, end in reversed(_runs(shape, axes)):
        now = site.type(value).shape
        if prod(now[end:]) == 1:
            size = prod(now[first:end])
            ones = site.literal(np.ones((1, size)), site.type(value).dtype)
            sums = site.add("Linear", site.reshape(value, (prod(now[:first]), size)), ones)
            value = site.reshape(sums, (*now[:first], *(1,) * (end - first), *now[end:]))
        else:
            value = _mean_along(site, value, first, end)
            count *= prod(now[first:end])
    return value if count == 1 else ElementwiseWriter(site).binary("Mul", value, float(count))


def total(site: RewriteSite) -> int | None:
    """`Sum` as products with ones and poolings."""
    if site.op.type.element.is_integer:
        return None
    return site.reshape(_total(site, site.operands[0]), site.op.type.shape)


def reduce(site: RewriteSite) -> int | None:
    """`Reduce` by what it computes."""
    form = _REDUCTIONS.get(str(site.attributes["op"]))
    if form is None or site.op.type.element.is_integer:
        return None
    made = form(site, site.operands[0])
    return None if made is None else site.reshape(made, site.op.type.shape)


def _maximum(site: RewriteSite, x: int) -> int:
    return _reduce(site, x, _maximum_along)


def _minimum(site: RewriteSite, x: int) -> int:
    return site.add("Neg", _maximum(site, site.add("Neg", x)))


def _square(site: RewriteSite, x: int) -> int:
    return _total(site, ElementwiseWriter(site).binary("Mul", x, x))


def _root(site: RewriteSite, x: int) -> int:
    """By the mean of squares: in f16 their sum is soon beyond the largest number."""
    steps, shape = ElementwiseWriter(site), site.type(x).shape
    mean = _reduce(site, steps.binary("Mul", x, x), _mean_along)
    count = prod(shape[axis] for axis in _axes(site))
    return steps.binary("Mul", steps.unary("Sqrt", mean), sqrt(count))


def _log_sum_exp(site: RewriteSite, x: int) -> int:
    """The largest element taken out: no exponential above 1."""
    most = _maximum(site, x)
    steps = ElementwiseWriter(site)
    powers = site.add("Exp", steps.binary("Sub", x, most))
    return steps.binary("Add", site.add("Log", _total(site, powers)), most)


def _product(site: RewriteSite, x: int) -> int | None:
    """A product of few elements, one by one."""
    for axis in _axes(site):
        size = site.type(x).shape[axis]
        if size > _FEW:
            return None
        parts = [slice_axis(site, x, axis, at, at + 1) for at in range(size)]
        x = parts[0]
        for part in parts[1:]:
            x = site.add("BinOp", x, part, op="Mul")
    return x


_REDUCTIONS: dict[str, Callable[[RewriteSite, int], int | None]] = {
    "Max": _maximum,
    "Min": _minimum,
    "SumSquare": _square,
    "L1": lambda site, x: _total(site, ElementwiseWriter(site).unary("Abs", x)),
    "L2": _root,
    "LogSum": lambda site, x: site.add("Log", _total(site, x)),
    "LogSumExp": _log_sum_exp,
    "Prod": _product,
}
REDUCTION_FORMS: Rules = {"Mean": [mean], "Sum": [total], "Reduce": [reduce]}
