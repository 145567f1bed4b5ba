"""Operations along one axis, on rows: everything independent becomes the first axis.

They run by name on the VPU, and a tile of them is some rows: with one image in front, as models
have it, a tile would be the whole tensor.
"""

from __future__ import annotations

from math import prod

from nacre.core.rewrite.site import RewriteSite, Rules

_SMALL = 1 << 14  # elements that are one tile


def by_rows(site: RewriteSite) -> int | None:
    """An operation along an axis as the same on a matrix, along its rows."""
    x = site.operands[0]
    shape = site.type(x).shape
    axis = _axis(site, len(shape))
    if axis is None:
        return None
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    if (len(shape) == 2 and axis == 1) or prod(shape) <= _SMALL or before * behind == 1:
        return None
    if behind > 1 and site.type(x).element.is_integer:
        return None  # devices do not transpose all of them
    size = shape[axis]
    rows = site.reshape(x, (before, size, behind))
    if behind > 1:
        rows = site.add("Transpose", rows, permutation=(0, 2, 1))
    given = dict(site.op.attributes)
    given |= {"axes": (1,)} if "axes" in site.attributes else {"axis": 1}
    if "keepdims" in site.attributes:
        given["keepdims"] = True
    result = site.add(site.op.opcode, site.reshape(rows, (before * behind, size)), **given)
    count = site.type(result).shape[1]
    result = site.reshape(result, (before, behind, count))
    if behind > 1 and count > 1:
        result = site.add("Transpose", result, permutation=(0, 2, 1))
    return site.reshape(result, site.op.type.shape)


def _axis(site: RewriteSite, rank: int) -> int | None:
    """The only axis that an operation goes along."""
    axes = site.attributes.get("axes", (site.attributes.get("axis"),))
    found = axes[0] if isinstance(axes, tuple) and len(axes) == 1 else None
    return found % rank if isinstance(found, int) and rank else None


_ALONG = ("ArgMax", "ArgMin", "CumSum", "CumProd", "TopKValues", "TopKIndices", "Reduce")
ROW_FORMS: Rules = {opcode: [by_rows] for opcode in _ALONG}
