"""Everything else as layers: elements, transpositions, gathers, operations by name."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from nacre.compile.geometry import swap_of
from nacre.compile.legalise.forms.escape import have_rows, independent_axes
from nacre.compile.partition.drafts import (
    Dims,
    Draft,
    load_externals,
    new_local,
    plane_strides,
    run_strides,
)
from nacre.compile.partition.items import Item
from nacre.compile.partition.layers import Access, Axes, Operand, Step
from nacre.compile.partition.views import View, collapse_axes


def maps(draft: Draft) -> None:
    """Elements, in as few axes as say where all tensors lie."""
    shape = draft.group.shape
    last = shape[-1:] if draft.group.has_rows else ()
    lead = shape[: len(shape) - len(last)]
    externals = {v: draft.view(v).broadcast(shape) for v in draft.externals()}
    for item in draft.group.items:
        externals.update(_full_copies(draft, item, externals))
    stored = [draft.reshape_view(draft.view(v), shape) for v in draft.results()]
    views = [*externals.values(), *stored]
    sizes, _ = collapse_axes(lead, [v.strides[: len(lead)] for v in views])
    sizes = sizes or (1,)
    inner = prod((*sizes[1:], *last)) * 2 * (len(views) + len(draft.group.items))
    has_images = len(sizes) > 1 and (len(sizes) > 2 or last) and 4 * inner > draft.device.l1_bytes
    first = 1 if has_images else 0
    draft.images = sizes[0] if has_images else 1
    draft.rows = sizes[first]
    rest = (*sizes[first + 1 :], *last)
    draft.columns = rest[-1] if rest else 1
    draft.cuts_columns = bool(rest) and not last
    draft.axes = ("rows", *rest[:-1], "columns") if rest else ("rows",)

    def along(view: View) -> tuple[Dims, Dims]:
        # A stride of 0 would stretch the only row to itself.
        runs = run_strides(lead, sizes, view.strides[: len(lead)]) if sizes != (1,) else (1,)
        whole = (*runs, *view.strides[len(lead) :])
        return (whole[0] if has_images else 0,), whole[first:]

    load_externals(draft, externals, lambda v: (*along(v)[0], *along(v)[1]))
    draft.along = lambda v: along(draft.reshape_view(v, shape))


def _full_copies(draft: Draft, item: Item, externals: Mapping[int, View]) -> dict[int, View]:
    """A copy in full of what an operation by name reads, where none of its operands has all axes.

    Such an operation stretches its operands to each other, but not along an axis that all repeat.
    What no task of the device can repeat, as truth values, is copied for others too.
    """
    given = [use.value for use in item.inputs if use.value in externals]
    if item.kind != "escape":
        fixed = [value for value in given if draft.elem(value) not in draft.device.repeated]
        return {value: draft.without_repeats(externals[value]) for value in fixed}
    if len(given) < len(item.inputs):  # what the group makes has all axes
        return {}
    strides = zip(*(externals[value].strides for value in given), strict=True)
    if all(n == 1 or any(s) for n, s in zip(draft.group.shape, strides, strict=True)):
        return {}
    return {given[0]: draft.densify(externals[given[0]])}


def transpose(draft: Draft) -> None:
    """A transposition that exchanges two runs of axes, rows being the second run."""
    item = draft.group.items[0]
    swap = swap_of(draft.shape(item.inputs[0].value), item.attributes["permutation"])
    assert swap is not None  # others are not legal
    images, a, c, d = swap
    x = draft.reshape_view(
        draft.without_repeats(draft.view(item.inputs[0].value)), (images, a, c, d)
    )
    draft.images, draft.rows, draft.columns = images, c, d
    draft.axes = ("rows", a, d)
    many = 0 if images == 1 else 1
    elem = draft.elem(item.inputs[0].value)
    axes: Axes = (a, "rows", d)
    loaded = draft.load(Access(x.tensor, axes, x.strides[1:], elem, x.offset, many * x.strides[0]))
    output = new_local(draft, draft.axes, elem)
    draft.of_value[item.result] = output
    given = {"perm": (1, 0, 2)}
    before, after = (draft.carrier_operand(item.row.nem, local) for local in (loaded, output))
    draft.steps.append(Step(item.row.nem, (before,), after, given))
    whole = (images, c, a, d)
    draft.along = lambda v: plane_strides(draft.reshape_view(v, whole), many)


def gather(draft: Draft) -> None:
    """Rows of a table that stays where it is."""
    item = draft.group.items[0]
    table, indices = (draft.without_repeats(draft.view(use.value)) for use in item.inputs)
    count, inner = prod(indices.shape), prod(table.shape[1:])
    table = draft.reshape_view(table, (table.shape[0], inner))
    indices = draft.reshape_view(indices, (count,))
    draft.rows, draft.columns, draft.axes = count, inner, ("rows", "columns")
    elem = draft.elem(item.inputs[0].value)
    held = draft.load(
        Access(table.tensor, table.shape, table.strides, elem, table.offset, stays=True)
    )
    index = draft.load(Access(indices.tensor, ("rows",), indices.strides,
                              draft.elem(item.inputs[1].value), indices.offset))  # fmt: skip
    output = new_local(draft, draft.axes, elem)
    draft.of_value[item.result] = output
    rows, picked = (draft.carrier_operand(item.row.nem, local) for local in (held, output))
    draft.steps.append(Step(item.row.nem, (rows, Operand(index)), picked, {"axis": 0}))
    draft.along = lambda v: ((0,), draft.reshape_view(v, (count, inner)).strides)


def escape(draft: Draft) -> None:
    """An operation on whole tensors, or on independent parts along the first axis."""
    item = draft.group.items[0]
    shape = item.op.type.shape
    is_cut = bool(shape) and _has_independent_rows(draft, item)
    loaded = []
    for use, has_rows in zip(item.inputs, have_rows(draft.module, item.op), strict=True):
        view = draft.without_repeats(draft.view(use.value))
        held = view.shape or (1,)
        view = draft.reshape_view(view, held)
        axes: Axes = ("rows", *held[1:]) if is_cut and has_rows else held
        access = Access(view.tensor, axes, view.strides, draft.elem(use.value), view.offset)
        loaded.append(Operand(draft.load(access)))
    draft.axes = ("rows", *shape[1:]) if is_cut else shape or (1,)
    draft.rows = shape[0] if is_cut else 1
    output = new_local(draft, draft.axes, draft.elem(item.result))
    draft.of_value[item.result] = output
    given = dict(item.row.attributes(item.attributes))
    draft.steps.append(Step(item.row.nem, tuple(loaded), Operand(output), given, work="scalar"))
    draft.along = lambda v: ((0,), draft.reshape_view(v, shape or (1,)).strides)


def _has_independent_rows(draft: Draft, item: Item) -> bool:
    """Whether rows are independent, and no attribute says how many there are."""
    if any(name in item.attributes for name in ("shape", "sizes", "new_shape", "repeats")):
        return False
    return independent_axes(draft.module, item.op) > 0
