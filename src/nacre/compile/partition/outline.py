"""A group of items as a layer: along which axes it is cut, and how every tensor lies along them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nacre.compile.partition.drafts import Draft, elementwise, new_local
from nacre.compile.partition.items import Item, ItemInput
from nacre.compile.partition.layers import Access, Axes, Operand, Result, Step
from nacre.compile.partition.outline_elements import escape, gather, maps, transpose
from nacre.compile.partition.outline_products import linear, matmul, window

# Their results have a type of their own: no operand's place will do.
_APART = frozenset({"cast", "quantize", "dequantize"})

OUTLINES: Mapping[str, Callable[[Draft], None]] = {
    "linear": linear,
    "matmul": matmul,
    "window": window,
    "pool": window,
    "map": maps,
    "turn": transpose,
    "gather": gather,
    "escape": escape,
}


def add_map_steps(draft: Draft) -> None:
    """The tasks after the first: functions of elements, and of whole rows."""
    items = draft.group.items
    for item in items if draft.group.main == "map" else items[1:]:
        inputs = [Operand(_broadcast_to(draft, item, u), u.quant) for u in elementwise(item)]
        if item.kind == "rows":
            inputs += [Operand(draft.of_value[u.value]) for u in item.inputs[1:]]
        given = dict(item.row.attributes(item.attributes))
        if item.kind == "rows":
            given["axis"] = len(draft.axes) - 1
        output = new_local(draft, draft.axes, draft.elem(item.result))
        draft.of_value[item.result] = output
        work = "rows" if item.kind == "rows" else "scalar" if item.kind == "escape" else "elements"
        draft.steps.append(
            Step(item.row.nem, tuple(inputs), Operand(output, item.quant), given,
                 in_place=item.kind != "escape" and item.row.nem not in _APART, work=work)  # type: ignore[arg-type]
        )  # fmt: skip


def _broadcast_to(draft: Draft, item: Item, use: ItemInput) -> int:
    """An operand in the shape of the result; operations that run by name stretch by themselves."""
    local = draft.of_value[use.value]
    value = draft.locals[local]
    if value.axes == draft.axes or item.kind == "escape":
        return local
    key = -1 - use.value
    if key not in draft.of_value:
        draft.of_value[key] = new_local(draft, draft.axes, value.elem)
        step = Step("pad", (Operand(local),), Operand(draft.of_value[key]), repeats=True)
        draft.steps.append(step)
    return draft.of_value[key]


def load_norm_vectors(draft: Draft) -> None:
    """Scales and biases of norms: one element a column, the same for all rows."""
    for item in draft.group.items:
        if item.kind != "rows":
            continue
        for use in item.inputs[1:]:
            if use.value not in draft.of_value:
                view = draft.view(use.value)
                axes: Axes = view.shape
                access = Access(view.tensor, axes, view.strides, draft.elem(use.value), view.offset)
                draft.of_value[use.value] = draft.load(access)


def results_of(draft: Draft) -> tuple[Result, ...]:
    """Where the values that leave go."""
    assert draft.along is not None
    results = []
    for value in draft.results():
        view = draft.view(value)
        (image,), strides = draft.along(view)
        local = draft.of_value[value]
        access = Access(view.tensor, draft.axes, strides, draft.elem(value), view.offset, image)
        results.append(Result(local, value, access))
    return tuple(results)
