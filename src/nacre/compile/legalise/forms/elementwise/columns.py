"""Operations along an axis of integers, or of several tensors: on rows, or on some columns a time.

They run by name on the VPU, which wants a tile in L1. What lies before the axis is independent, and
so is what lies behind it. Floats change places, so that rows are what is along the axis; not every
device has that for integers, so these stay where they are, and as many columns as fit make a part.
"""

from __future__ import annotations

from math import prod

from nacre.compile.legalise.forms.windows.windows import slice_axis
from nacre.core.rewrite.site import RewriteSite, Rules

ROOM = 192 << 10  # bytes of all operands of a part: less than half of any device's L1
_MOST_PARTS = 64
# Reductions that may be done in parts: over one axis after the other.
_IN_PARTS = frozenset({"Max", "Min", "Any", "All", "Prod"})
_LONGEST = 1 << 12  # elements of a row, where everything is reduced


def stored_bytes(site: RewriteSite, *values: int) -> int:
    """What values take in memory."""
    types = [site.type(value) for value in values]
    return sum(prod(t.shape) * max(8, t.element.bits) // 8 for t in types)


def axis_in_parts(site: RewriteSite) -> int | None:
    """An operation along one axis, on parts that fit."""
    axis = _only_axis(site)
    shapes = [site.type(value).shape for value in site.operands]
    if axis is None or _is_transposed_instead(site) or not _are_alike(shapes, axis):
        return None
    given = dict(site.op.attributes) | (
        {"axes": (1,)} if "axes" in site.attributes else {"axis": 1}
    )
    if "keepdims" in site.attributes:
        given["keepdims"] = True
    before, behind = prod(shapes[0][:axis]), prod(shapes[0][axis + 1 :])
    count = _part_count(site, behind, before)
    is_plain = axis == 1 and len(shapes[0]) == (3 if behind > 1 else 2)
    if count is None or (count == 1 and (is_plain or before == 1)):
        return None
    split = [
        site.reshape(value, (before, shape[axis], behind) if behind > 1 else (before, shape[axis]))
        for value, shape in zip(site.operands, shapes, strict=True)
    ]
    size = -(-behind // count)
    parts = [
        site.add(
            site.op.opcode,
            *(slice_axis(site, x, 2, first, min(first + size, behind)) if behind > 1 else x
              for x in split),
            **given,
        )
        for first in range(0, behind, size)
    ]  # fmt: skip
    joined = parts[0] if len(parts) == 1 else site.add("Concat", *parts, axis=2)
    return site.reshape(joined, site.op.type.shape)


def _part_count(site: RewriteSite, behind: int, before: int) -> int | None:
    """Into how many parts columns are cut; None where that is not worth it, or no help."""
    total = stored_bytes(site, *site.operands)
    if total <= ROOM:
        return None
    column = -(-total // (before * behind))
    count = -(-behind // max(1, ROOM // column))
    return count if count <= _MOST_PARTS else None


def _is_transposed_instead(site: RewriteSite) -> bool:
    """Whether elements change places instead: floats on their own."""
    return len(site.operands) == 1 and not site.type(site.operands[0]).element.is_integer


def _only_axis(site: RewriteSite) -> int | None:
    rank = site.type(site.operands[0]).rank
    axes = site.attributes.get("axes", (site.attributes.get("axis"),))
    found = axes[0] if isinstance(axes, tuple) and len(axes) == 1 else None
    return found % rank if isinstance(found, int) and rank else None


def _are_alike(shapes: list[tuple[int, ...]], axis: int) -> bool:
    """Whether tensors differ along the axis alone."""
    return len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) == 1 and (
        len({len(shape) for shape in shapes}) == 1
    )


def axis_by_axis(site: RewriteSite) -> int | None:
    """A reduction of integers over several axes: neighbours as one, the last ones first."""
    x = site.operands[0]
    shape = site.type(x).shape
    if not _is_divisible(site):
        return None
    given = site.attributes["axes"]
    assert isinstance(given, tuple)
    axes = sorted({axis % len(shape) for axis in given} or set(range(len(shape))))
    runs = _axis_runs(axes)
    if len(axes) == 1 and prod(shape) > shape[axes[0]]:
        return None
    if prod(shape) == prod(shape[axis] for axis in axes):
        return _reduce_everything(site, x)
    for first, end in reversed(runs):
        now = site.type(x).shape
        flat = (*now[:first], prod(now[first:end]), *now[end:])
        x = _reduce_along(site, site.reshape(x, flat), first)
        x = site.reshape(x, (*now[:first], *(1,) * (end - first), *now[end:]))
    return site.reshape(x, site.op.type.shape)


def _is_divisible(site: RewriteSite) -> bool:
    word = site.attributes.get("op")
    x = site.operands[0]
    is_known = word is None or str(word) in _IN_PARTS
    return is_known and site.type(x).element.is_integer and stored_bytes(site, x) > ROOM


def _axis_runs(axes: list[int]) -> list[tuple[int, int]]:
    """Axes that follow each other, as first and end."""
    runs: list[tuple[int, int]] = []
    for axis in axes:
        if runs and runs[-1][1] == axis:
            runs[-1] = (runs[-1][0], axis + 1)
        else:
            runs.append((axis, axis + 1))
    return runs


def _reduce_everything(site: RewriteSite, x: int) -> int | None:
    """All elements: rows of some first, then what is left of them."""
    count = prod(site.type(x).shape)
    size = next((size for size in range(_LONGEST, 1, -1) if count % size == 0), None)
    if size is None:
        return None
    rows = _reduce_along(site, site.reshape(x, (count // size, size)), 1)
    reduced = _reduce_along(site, site.reshape(rows, (1, count // size)), 1)
    return site.reshape(reduced, site.op.type.shape)


def _reduce_along(site: RewriteSite, x: int, axis: int) -> int:
    return site.add(site.op.opcode, x, **{**site.op.attributes, "axes": (axis,), "keepdims": True})


_ALONG = ("ArgMax", "ArgMin", "CumSum", "CumProd", "TopKValues", "TopKIndices")
COLUMN_FORMS: Rules = {
    **{opcode: [axis_by_axis, axis_in_parts] for opcode in ("Sum", "Reduce")},
    **{opcode: [axis_in_parts] for opcode in (*_ALONG, "GatherElements", "ScatterElements")},
}
