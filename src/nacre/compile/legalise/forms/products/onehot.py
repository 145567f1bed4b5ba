"""One-hot rows: a product with them gathers rows of the weights, and one index is a row too."""

from __future__ import annotations

import numpy as np

from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def embedding(site: RewriteSite) -> int | None:
    """Linear(indices == 0 .. n - 1): an index outside gives the bias alone, as a row of zeros did.

    Rows for what lies below and above stand at both ends of the table.
    """
    weights = site.constant(site.operands[1])
    cast = site.maker(site.operands[0], "Cast")
    hot = None if cast is None else site.maker(cast.operands[0], "Compare", op="Eq")
    if weights is None or hot is None or site.op.type.element.is_integer:
        return None
    split = site.split(hot)
    indices = None if split is None else _without_last_axis(site, split[0], hot.type.shape)
    if split is None or indices is None or not _counts_up(split[1], weights.shape[1]):
        return None
    bias = site.constant(site.operands[2]) if len(site.operands) > 2 else np.zeros(len(weights))
    if bias is None:
        return None
    table = np.zeros((weights.shape[1] + 2, weights.shape[0]), np.float64)
    table[1:-1] = weights.T
    dtype = site.type(indices).dtype
    held = site.add("Clip", indices, min=-1.0, max=float(weights.shape[1]))
    one = site.literal(np.array(1), dtype)
    places = site.add("BinOp", held, one, op="Add")
    rows = site.add("Gather", site.literal(table + bias, site.op.type.dtype), places)
    return site.reshape(rows, site.op.type.shape)


def one_hot_of_scalar(site: RewriteSite) -> int | None:
    """An index without axes as a row of one: tasks have no operands without axes."""
    if site.type(site.operands[0]).shape:
        return None
    index = site.reshape(site.operands[0], (1,))
    depth = site.op.attributes["depth"]
    made = site.add("OneHot", index, site.operands[1], depth=depth, axis=1)
    return site.reshape(made, site.op.type.shape)


def _without_last_axis(site: RewriteSite, value: int, shape: tuple[int, ...]) -> int | None:
    """Indices [.., 1] without their last axis."""
    type_ = site.type(value)
    if type_.dtype not in ("i32", "i64") or type_.shape != (*shape[:-1], 1):
        return None
    return site.reshape(value, shape[:-1])


def _counts_up(array: Array, size: int) -> bool:
    """Whether a constant is 0, 1, 2, .. along its last axis, the only one."""
    return array.size == size and array.shape[-1:] == (size,) and bool(
        (np.ravel(array) == np.arange(size)).all()
    )  # fmt: skip


ONE_HOT_FORMS: Rules = {"Linear": [embedding], "OneHot": [one_hot_of_scalar]}
