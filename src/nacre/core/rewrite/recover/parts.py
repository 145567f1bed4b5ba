"""What recoveries share: values behind views, and norms over any axes."""

from __future__ import annotations

from nacre.core.rewrite.inexact.transposes import inverse
from nacre.core.rewrite.site import RewriteSite

Axes = tuple[int, ...]

_VIEWS = ("Reshape", "ExpandDims", "Squeeze")


def norm_along(site: RewriteSite, opcode: str, x: int, axes: Axes, epsilon: float) -> int:
    """A norm over some axes, brought last where they are not."""
    rank = site.type(x).rank
    order = (*(axis for axis in range(rank) if axis not in axes), *axes)
    is_turned = order != tuple(range(rank))
    rows_last = site.add("Transpose", x, permutation=order) if is_turned else x
    normed = site.add(opcode, rows_last, axis=rank - len(axes), epsilon=epsilon)
    return site.add("Transpose", normed, permutation=inverse(order)) if is_turned else normed


def shape_with_ones(shape: Axes, axes: Axes) -> Axes:
    """A shape with size 1 along some axes."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def skip_views(site: RewriteSite, value: int) -> int:
    """A value before the views that it is seen through."""
    found = site.maker(value, *_VIEWS)
    return value if found is None else skip_views(site, found.operands[0])
