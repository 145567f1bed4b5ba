"""Attention that models spell out."""

from __future__ import annotations

from math import isclose, isfinite, sqrt

from nacre.core.module import CoreOperation
from nacre.core.rewrite.site import RewriteSite, Rules, either_order


def product(site: RewriteSite) -> int | None:
    """MatMul(Softmax(MatMul(q, k') * scale + mask), v)."""
    weights = site.only(site.operands[0], "Softmax")
    if weights is None or weights.attributes["axis"] not in (-1, weights.type.rank - 1):
        return None
    scores, mask = _split_mask(site, weights.operands[0])
    scores, scale = _split_scale(site, scores)
    inner = site.only(scores, "MatMul")
    if inner is None:
        return None
    keys = _transpose(site, inner)
    if keys is None:
        return None
    q, v = inner.operands[0], site.operands[1]
    if not _fits(site, q, keys, v, mask):
        return None
    if scale == 0 or not isfinite(scale):
        return None  # 0 stands for another scale
    depth = site.type(q).shape[-1]
    given = {} if isclose(scale, 1 / sqrt(depth), rel_tol=1e-6) else {"scale": scale}
    return site.add("Attention", q, keys, v, *([] if mask is None else [mask]), **given)


def _split_mask(site: RewriteSite, value: int) -> tuple[int, int | None]:
    """Scores, and what is added to them."""
    total = site.only(value, "BinOp", op="Add")
    if total is None:
        return value, None
    for scores, mask in either_order(total):
        if site.is_single(scores) and site.type(scores) == total.type and _is_scores(site, scores):
            return scores, mask
    return value, None


def _is_scores(site: RewriteSite, value: int) -> bool:
    scaled, _ = _split_scale(site, value)
    return site.maker(scaled, "MatMul") is not None


def _split_scale(site: RewriteSite, value: int) -> tuple[int, float]:
    """Scores, and the number that they are multiplied by."""
    scaling = site.only(value, "BinOp")
    if scaling is None:
        return value, 1.0
    a, b = scaling.operands
    if scaling.attributes["op"] == "Div":
        number = site.number(b)
        return (a, 1 / number) if number else (value, 1.0)
    if scaling.attributes["op"] == "Mul":
        for scores, factor in either_order(scaling):
            number = site.number(factor)
            if number is not None:
                return scores, number
    return value, 1.0


def _transpose(site: RewriteSite, inner: CoreOperation) -> int | None:
    """The keys, whose last two axes a `Transpose` exchanges."""
    turn = site.only(inner.operands[1], "Transpose")
    if turn is None:
        return None
    order = list(turn.attributes["permutation"])
    rank = len(order)
    wanted = [*range(rank - 2), rank - 1, rank - 2]
    return turn.operands[0] if order == wanted else None


def _fits(site: RewriteSite, q: int, keys: int, v: int, mask: int | None) -> bool:
    shapes = [site.type(value).shape for value in (q, keys, v)]
    if len({len(shape) for shape in shapes}) != 1 or len({s[:-2] for s in shapes}) != 1:
        return False
    return mask is None or site.type(mask).element.kind == "float"


ATTENTION: Rules = {"MatMul": [product]}
