"""Tables that L1 does not hold: elements fetched from where they lie, rows written part by part.

Indices become numbers of rows. One that lies outside stays outside, so that it is refused.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.elementwise.columns import ROOM, stored_bytes
from nacre.compile.legalise.forms.movement.gather import MOVED
from nacre.compile.legalise.forms.windows.windows import slice_axis
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array

_MOST_PARTS = 256


def rows_of_elements(site: RewriteSite) -> int | None:
    """`GatherElements` whose indices are the same for all that lies behind the axis: its rows."""
    x, indices = site.operands
    shape = site.type(x).shape
    axis = int(str(site.attributes["axis"])) % len(shape)
    broadcast = site.maker(indices, "Broadcast")
    if broadcast is None or not _is_large_table(site, x):
        return None
    picked, result = site.type(broadcast.operands[0]).shape, site.op.type.shape
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    count = result[axis]
    is_row = prod(picked) == before * count and behind == prod(result[axis + 1 :])
    if behind == 1 or not is_row or result[:axis] != shape[:axis]:
        return None
    places = site.reshape(broadcast.operands[0], (before * count, 1))
    bases = np.repeat(np.arange(before) * shape[axis], count).reshape(-1, 1)
    numbers = _row_numbers(site, places, np.array([shape[axis]]), before * shape[axis], bases)
    rows = site.reshape(x, (before * shape[axis], behind))
    gathered = site.add("GatherAxis", rows, site.reshape(numbers, (before * count,)), axis=0)
    return site.reshape(gathered, result)


def rows_of_tuples(site: RewriteSite) -> int | None:
    """`GatherNd` with tuples that are computed: rows by their numbers."""
    x, indices = site.operands
    if not _is_large_table(site, x) or site.constant(indices) is not None:
        return None
    shape, picked = site.type(x).shape, site.type(indices).shape
    batches, depth = int(str(site.attributes["batch_dims"])), picked[-1]
    sizes, rest = shape[batches : batches + depth], shape[batches + depth :]
    images, count = prod(shape[:batches]), prod(picked[:-1])
    bases = np.repeat(np.arange(images) * prod(sizes), count // images).reshape(-1, 1)
    table = images * prod(sizes)
    tuples = site.reshape(indices, (count, depth))
    numbers = _row_numbers(site, tuples, np.array(sizes), table, bases)
    rows = site.reshape(x, (table, prod(rest)))
    gathered = site.add("GatherAxis", rows, site.reshape(numbers, (count,)), axis=0)
    return site.reshape(gathered, site.op.type.shape)


def _is_large_table(site: RewriteSite, x: int) -> bool:
    """Whether a table stays where it is; integers do not, for not every device fetches them."""
    return not site.type(x).element.is_integer and stored_bytes(site, x) > ROOM


def _row_numbers(
    site: RewriteSite, tuples: int, sizes: Array, count: int, bases: Array | None = None
) -> int:
    """Tuples [n, depth] as numbers of rows [n, 1]; of one that lies outside, `count` or more."""

    def literal(array: Array) -> int:
        return site.literal(array, "i32")

    if len(sizes) == 1 and _is_inside(site, tuples, int(sizes[0])):
        if bases is None or not bases.any():
            return tuples
        return site.add("BinOp", tuples, literal(bases), op="Add")
    below = site.add("Compare", tuples, literal(np.zeros(())), op="Lt")
    behind = site.add("BinOp", tuples, literal(sizes), op="Add")
    from_front = site.add("Where", below, behind, tuples)
    low = site.add("BinOp", from_front, literal(np.zeros(())), op="Max")
    held = site.add("BinOp", low, literal(sizes - 1), op="Min")
    strides = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]])
    # A place outside adds as many rows as there are.
    outside = site.add("Cast", site.add("Compare", from_front, held, op="Ne"), to="i32")
    far = site.add("BinOp", outside, literal(np.array(count)), op="Mul")
    near = site.add("BinOp", held, literal(strides), op="Mul") if len(sizes) > 1 else held
    each = site.add("BinOp", near, far, op="Add")
    numbers = site.add("Sum", each, axes=(1,), keepdims=True) if len(sizes) > 1 else each
    return numbers if bases is None or not bases.any() else site.add(
        "BinOp", numbers, literal(bases), op="Add"
    )  # fmt: skip


def _is_inside(site: RewriteSite, value: int, size: int) -> bool:
    """Whether indices are known to lie inside: those of the largest elements do."""
    maker = site.maker(value)
    while maker is not None and maker.opcode in MOVED:
        maker = site.maker(maker.operands[0])
    if maker is None or maker.opcode not in ("ArgMax", "ArgMin", "TopKIndices"):
        return False
    shape, axis = site.type(maker.operands[0]).shape, maker.attributes["axis"]
    assert isinstance(axis, int)
    return shape[axis] <= size


def scatter_tuples(site: RewriteSite) -> int | None:
    """`ScatterNd` into a large table: rows by their numbers."""
    x, indices, updates = site.operands
    shape, picked = site.type(x).shape, site.type(indices).shape
    depth, word = picked[-1], str(site.attributes["reduction"])
    if stored_bytes(site, x) <= ROOM or site.type(indices).dtype != "i32":
        return None
    sizes, rest, count = shape[:depth], shape[depth:], prod(picked[:-1])
    inner = prod(rest)
    if (prod(sizes) + 1) * inner < 2:
        return None
    numbers = site.reshape(indices, (count, depth))
    numbers = _row_numbers(site, numbers, np.array(sizes), prod(sizes))
    rows = site.reshape(x, (prod(sizes), inner))
    new = site.reshape(updates, (count, inner))
    scattered = _replace_rows(site, rows, numbers, new, word)
    return None if scattered is None else site.reshape(scattered, shape)


def scatter_rows(site: RewriteSite) -> int | None:
    """`ScatterRows` into a large table."""
    x, indices, rows = site.operands
    shape = site.type(x).shape
    if stored_bytes(site, x) <= ROOM or not site.type(indices).rank:
        return None
    inner, (count,) = prod(shape[1:]), site.type(indices).shape
    places = site.reshape(indices, (count, 1))
    numbers = _row_numbers(site, places, np.array(shape[:1]), shape[0])
    flat, new = site.reshape(x, (shape[0], inner)), site.reshape(rows, (count, inner))
    scattered = _replace_rows(site, flat, numbers, new, "none")
    return None if scattered is None else site.reshape(scattered, shape)


def _replace_rows(site: RewriteSite, x: int, numbers: int, new: int, word: str) -> int | None:
    """Rows of a table exchanged, some rows of it a time.

    A part has a row beside its own, which takes what is meant for others and is not kept.
    """
    total = site.type(x).shape[0]
    row = stored_bytes(site, x) // total
    size = ROOM // (2 * row) - 1
    if size < 1 or -(-total // size) > _MOST_PARTS or stored_bytes(site, new, numbers) > ROOM // 2:
        return None
    size = -(-total // -(-total // size))
    parts = []
    for first in range(0, total, size):
        end = min(first + size, total)
        begin, spare = (first, end - first) if end < total else (first - 1, 0)
        places = _numbers_in_part(site, numbers, total, (first, end), (begin, spare))
        part = slice_axis(site, x, 0, begin, max(end, begin + end - first + 1))
        scattered = _scatter_by_number(site, part, places, new, word)
        kept = first - begin
        parts.append(slice_axis(site, scattered, 0, kept, kept + end - first))
    return site.add("Concat", *parts, axis=0)


def _numbers_in_part(
    site: RewriteSite, numbers: int, total: int, rows: tuple[int, int], part: tuple[int, int]
) -> int:
    """Numbers within a part: those of other parts are the spare row, those outside stay outside."""

    def literal(number: int) -> int:
        return site.literal(np.array(number), "i32")

    (first, end), (begin, spare) = rows, part
    held = site.add("BinOp", site.add("BinOp", numbers, literal(first), op="Max"),
                    literal(end - 1), op="Min")  # fmt: skip
    is_own = site.add("Compare", numbers, held, op="Eq")
    own = site.add("BinOp", numbers, literal(begin), op="Sub")
    over = site.add("BinOp", numbers, literal(total - 1), op="Sub")
    far = site.add("BinOp", site.add("BinOp", over, literal(0), op="Max"), literal(total), op="Mul")
    other = site.add("BinOp", far, literal(spare), op="Add")
    return site.add("Where", is_own, own, other)


def _scatter_by_number(site: RewriteSite, x: int, places: int, new: int, word: str) -> int:
    if word == "none":
        count = site.type(places).shape[0]
        return site.add("ScatterRows", x, site.reshape(places, (count,)), new)
    return site.add("ScatterNd", x, places, new, reduction=word)


LARGE_FORMS: Rules = {
    "GatherElements": [rows_of_elements],
    "GatherNd": [rows_of_tuples],
    "ScatterNd": [scatter_tuples],
    "ScatterRows": [scatter_rows],
}
