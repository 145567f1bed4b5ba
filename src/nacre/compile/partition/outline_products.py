"""Products and windows as layers: along which axes they are cut, how their tensors lie."""

from __future__ import annotations

from math import prod

from nacre.compile.geometry import Window
from nacre.compile.partition.drafts import (
    Dims,
    Draft,
    add_main_step,
    constant_elements,
    lead_strides,
    load_externals,
    new_local,
    pack_weights,
    plane_strides,
    set_images_and_rows,
)
from nacre.compile.partition.items import Item
from nacre.compile.partition.layers import Access, Axes, Axis, Operand, Step
from nacre.compile.partition.views import View, collapse_axes
from nacre.core.constants import constant_array


def linear(draft: Draft) -> None:
    """Rows of a product by constant weights."""
    item = draft.group.items[0]
    x, shape = draft.without_repeats(draft.view(item.inputs[0].value)), item.op.type.shape
    if len(shape) == 1:
        x, shape = draft.reshape_view(x, (1, *x.shape)), (1, *shape)
    others = [draft.view(v).broadcast(shape) for v in draft.externals()]
    views = [x, *others, *(draft.reshape_view(draft.view(v), shape) for v in draft.results())]
    lead = shape[:-1]
    sizes, _ = collapse_axes(lead, [v.strides[:-1] for v in views])
    if len(sizes) > 2:
        x, others = draft.densify(x), [draft.densify(v) for v in others]
        views = [x, *others, *views[1 + len(others) :]]
        sizes, _ = collapse_axes(lead, [v.strides[:-1] for v in views])
    set_images_and_rows(draft, sizes)
    draft.columns, draft.cuts_columns = shape[-1], not draft.group.has_rows
    draft.axes = ("rows", "columns")
    weights = constant_elements(draft.module.by_id[item.inputs[1].value])
    is_apart = len(item.inputs) > 2 and draft.elem(item.result) == "f32"
    pack_weights(draft, item, weights.T, with_bias=not is_apart)
    draft.macs = prod(shape) * weights.shape[1]
    depth = x.shape[-1]
    image, row = lead_strides(lead, sizes, x.strides[:-1])
    axes: Axes = ("rows", depth)
    access = Access(
        x.tensor, axes, (row, x.strides[-1]), draft.elem(item.inputs[0].value), x.offset, image
    )
    load_externals(
        draft,
        dict(zip(draft.externals(), others, strict=True)),
        lambda v: (*lead_strides(lead, sizes, v.strides[:-1]), v.strides[-1]),
    )
    x_local = draft.load(access)
    bias = _bias(draft, item) if is_apart else None
    add_main_step(draft, item, (x_local,))
    if bias is not None:
        _add_bias(draft, item, bias)
    draft.along = lambda v: _matrix(draft.reshape_view(v, shape), lead, sizes)


def _bias(draft: Draft, item: Item) -> int:
    """The bias of a product in f32, which no device has in one task: one more operand."""
    value = item.inputs[2].value
    view = draft.view(value)
    axes: Axes = (1, "columns")
    return draft.load(Access(view.tensor, axes, (0, *view.strides), draft.elem(value), view.offset))


def _add_bias(draft: Draft, item: Item, bias: int) -> None:
    product, elem = draft.of_value[item.result], draft.elem(item.result)
    wide, total = (new_local(draft, draft.axes, elem) for _ in range(2))
    draft.steps.append(Step("pad", (Operand(bias),), Operand(wide), repeats=True))
    operands = (Operand(product), Operand(wide))
    draft.steps.append(Step("add", operands, Operand(total), in_place=True))
    draft.of_value[item.result] = total


def _matrix(view: View, lead: Dims, sizes: Dims) -> tuple[Dims, Dims]:
    image, row = lead_strides(lead, sizes, view.strides[:-1])
    return (image,), (row, view.strides[-1])


def matmul(draft: Draft) -> None:
    """Rows of a product of two computed operands, image by image."""
    item = draft.group.items[0]
    shape = item.op.type.shape
    whole = shape if len(shape) == 3 else (1, *shape)
    a, b = (
        draft.reshape_view(
            draft.without_repeats(draft.view(use.value)), (whole[0], *draft.shape(use.value)[-2:])
        )
        for use in item.inputs
    )
    draft.images, draft.rows, draft.columns = whole
    draft.cuts_columns = not draft.group.has_rows
    draft.axes = ("rows", "columns")
    others = {
        v: draft.reshape_view(draft.view(v).broadcast(shape), whole) for v in draft.externals()
    }
    load_externals(draft, others, lambda v: v.strides)
    depth = a.shape[-1]
    draft.macs = prod(whole) * depth
    image = 0 if draft.images == 1 else 1
    left = Access(a.tensor, ("rows", depth), a.strides[1:], draft.elem(item.inputs[0].value),
                  a.offset, image * a.strides[0])  # fmt: skip
    right = Access(b.tensor, (depth, "columns"), b.strides[1:], draft.elem(item.inputs[1].value),
                   b.offset, image * b.strides[0])  # fmt: skip
    locals_ = (draft.load(left), draft.load(right))
    add_main_step(draft, item, locals_)
    draft.along = lambda v: plane_strides(draft.reshape_view(v, whole), image)


def window(draft: Draft) -> None:
    """Rows of windows: convolutions and poolings with channels last."""
    item = draft.group.items[0]
    x, filled = draft.without_repeats(draft.view(item.inputs[0].value)), item.attributes
    images, rows, width, columns = item.op.type.shape
    is_pool = item.kind == "pool"
    kernel = tuple(filled["kernel"]) if is_pool else draft.shape(item.inputs[1].value)[:2]
    groups = 1 if is_pool else filled["groups"]
    follows = is_pool or _is_depthwise(draft, item)
    strides = tuple(filled["strides"] or (1, 1))
    dilations = (1, 1) if is_pool else tuple(filled["dilations"] or (1, 1))
    top, left, _, right = filled["pads"] or (0, 0, 0, 0)
    height = dilations[0] * (kernel[0] - 1) + 1
    draft.window = Window(x.shape[1], height, strides[0], top, (left, right),
                          (kernel[0], kernel[1]), (strides[0], strides[1]),
                          (dilations[0], dilations[1]), 0 if follows else groups)  # fmt: skip
    draft.images, draft.rows, draft.columns = images, rows, columns
    draft.cuts_columns = (follows or groups == 1) and not draft.group.has_rows
    draft.axes = (1, "rows", width, "columns")
    many = 0 if images == 1 else 1
    shape = item.op.type.shape
    others = {v: draft.view(v).broadcast(shape) for v in draft.externals()}
    load_externals(draft, others, lambda v: (many * v.strides[0], *v.strides))
    # What looks at nothing beside its own row is read as functions of elements read it.
    seen: Axis = "rows" if draft.window.is_plain(rows) else "x_rows"
    axes: Axes = (1, seen, x.shape[2], "columns" if follows else x.shape[3])
    access = Access(x.tensor, axes, x.strides, draft.elem(item.inputs[0].value), x.offset,
                    many * x.strides[0])  # fmt: skip
    loaded = [draft.load(access)]
    if not is_pool:
        loaded += _weights(draft, item)
    draft.macs = 0 if is_pool else prod(shape) * prod(kernel) * draft.shape(item.inputs[1].value)[2]
    add_main_step(draft, item, tuple(loaded))
    draft.along = lambda v: ((many * v.strides[0],), v.strides)


def _is_depthwise(draft: Draft, item: Item) -> bool:
    shape = draft.shape(item.inputs[1].value)
    groups = item.attributes["groups"]
    return bool(
        groups == shape[3] and shape[2] == 1 and groups == draft.shape(item.inputs[0].value)[3]
    )


def _weights(draft: Draft, item: Item) -> list[int]:
    """Weights of a convolution: packed where they are constant, else one more operand."""
    value = item.inputs[1].value
    array = constant_array(draft.module.by_id[value])
    if array is not None:
        pack_weights(draft, item, array)
        return []
    view = draft.without_repeats(draft.view(value))
    axes: Axes = (*view.shape[:3], "columns")
    return [draft.load(Access(view.tensor, axes, view.strides, draft.elem(value), view.offset))]
