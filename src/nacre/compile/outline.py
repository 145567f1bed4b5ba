"""A group of items as a layer: along which axes it is cut, and how every tensor lies along them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from nacre.compile.geometry import Window, swap_of
from nacre.compile.grouping import Group
from nacre.compile.items import Item, Use
from nacre.compile.layers import Access, Axes, Local, Operand, Packed, Result, Step
from nacre.compile.legal.escape import independent_axes
from nacre.compile.tensors import Memory, Shift, Tensor
from nacre.compile.views import View, collapsed
from nacre.core.evaluation_plan import constant_array
from nacre.core.module import Module
from nacre.core.values import Array

Dims = tuple[int, ...]
Along = Callable[[View], tuple[Dims, Dims]]


@dataclass(eq=False)
class Draft:
    """A layer while it is put together."""

    module: Module
    memory: Memory
    group: Group
    l1_bytes: int
    wanted: frozenset[int]  # values that others read
    images: int = 1
    rows: int = 1
    columns: int = 1
    cuts_columns: bool = False
    axes: Axes = ()  # of the result
    window: Window | None = None
    packed: Packed | None = None
    macs: int = 0
    operands: list[Access] = field(default_factory=list)
    locals: list[Local] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)  # copies that have to come before
    tensors: dict[int, Tensor] = field(default_factory=dict)  # new ones
    of_value: dict[int, int] = field(default_factory=dict)  # locals
    along: Along | None = None  # strides of a view along images, and along the axes

    def view(self, value: int) -> View:
        """Where a value lies."""
        return self.memory.views[value]

    def shape(self, value: int) -> Dims:
        """The shape of a value."""
        return self.module.by_id[value].type.shape

    def elem(self, value: int) -> str:
        """The element type of a value in memory."""
        dtype = self.module.by_id[value].type.dtype
        return "u8" if dtype == "bool" else dtype

    def externals(self) -> list[int]:
        """Values from outside that functions of elements read, each once."""
        made = {item.result for item in self.group.items}
        first = self.group.items[0]
        skipped = first if self.group.main != "map" else None
        read = (u.value for i in self.group.items if i is not skipped for u in _elementwise(i))
        return [value for value in dict.fromkeys(read) if value not in made]

    def results(self) -> list[int]:
        """Values that leave, in order."""
        return [item.result for item in self.group.items if item.result in self.wanted]

    def load(self, access: Access) -> int:
        """One more operand; its local."""
        assert not self.steps
        self.operands.append(access)
        self.locals.append(Local(access.axes, access.elem))
        return len(self.locals) - 1

    def densified(self, view: View) -> View:
        """The same elements close together, copied before the layer runs."""
        number = -1 - len(self.memory.tensors) - len(self.tensors)
        base = self.memory.tensors[view.tensor]
        self.tensors[number] = Tensor(base.dtype, prod(view.shape))
        made = View.whole(number, view.shape)
        self.shifts.append(Shift(view, made))
        return made

    def solid(self, view: View) -> View:
        """A view in which nothing repeats, copied where something does."""
        repeats = any(s == 0 < n - 1 for n, s in zip(view.shape, view.strides, strict=True))
        return self.densified(view) if repeats else view

    def as_shape(self, view: View, shape: Dims) -> View:
        """A view under another shape, copied where strides cannot say it."""
        found = view.reshaped(shape)
        if found is None:
            found = self.densified(view).reshaped(shape)
        assert found is not None
        return found


def _elementwise(item: Item) -> Sequence[Use]:
    """The operands of an item that are read element by element; of norms only the first."""
    return item.inputs[:1] if item.kind == "rows" else item.inputs


# The outlines


def linear(draft: Draft) -> None:
    """Rows of a product by constant weights."""
    item = draft.group.items[0]
    x, shape = draft.solid(draft.view(item.inputs[0].value)), item.op.type.shape
    if len(shape) == 1:
        x, shape = draft.as_shape(x, (1, *x.shape)), (1, *shape)
    others = [draft.view(v).broadcast(shape) for v in draft.externals()]
    views = [x, *others, *(draft.as_shape(draft.view(v), shape) for v in draft.results())]
    lead = shape[:-1]
    sizes, _ = collapsed(lead, [v.strides[:-1] for v in views])
    if len(sizes) > 2:
        x, others = draft.densified(x), [draft.densified(v) for v in others]
        views = [x, *others, *views[1 + len(others) :]]
        sizes, _ = collapsed(lead, [v.strides[:-1] for v in views])
    _set_lead(draft, sizes)
    draft.columns, draft.cuts_columns = shape[-1], not draft.group.has_rows
    draft.axes = ("rows", "columns")
    weights = constant_array(draft.module.by_id[item.inputs[1].value])
    assert weights is not None  # others are products of two computed operands
    _pack(draft, item, weights.T)
    draft.macs = prod(shape) * weights.shape[1]
    depth = x.shape[-1]
    image, row = _lead_strides(lead, sizes, x.strides[:-1])
    axes: Axes = ("rows", depth)
    access = Access(
        x.tensor, axes, (row, x.strides[-1]), draft.elem(item.inputs[0].value), x.offset, image
    )
    _take_externals(
        draft,
        dict(zip(draft.externals(), others, strict=True)),
        lambda v: (*_lead_strides(lead, sizes, v.strides[:-1]), v.strides[-1]),
    )
    x_local = draft.load(access)
    _main_step(draft, item, (x_local,))
    draft.along = lambda v: _matrix(draft.as_shape(v, shape), lead, sizes)


def _matrix(view: View, lead: Dims, sizes: Dims) -> tuple[Dims, Dims]:
    image, row = _lead_strides(lead, sizes, view.strides[:-1])
    return (image,), (row, view.strides[-1])


def _set_lead(draft: Draft, sizes: Dims) -> None:
    draft.images = sizes[0] if len(sizes) == 2 else 1
    draft.rows = sizes[-1] if sizes else 1


def _lead_strides(lead: Dims, sizes: Dims, strides: Dims) -> tuple[int, int]:
    """Strides of images and rows: the axes before the last in at most two runs."""
    runs = _in_runs(lead, sizes, strides)
    return (runs[0], runs[1]) if len(runs) == 2 else (0, runs[0] if runs else 0)


def _in_runs(shape: Dims, sizes: Dims, strides: Dims) -> Dims:
    """The stride of each run of axes whose sizes are given: that of its last axis."""
    found: list[int] = []
    left = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    at = 0
    for size in sizes:
        have = 1
        while have < size:
            have *= left[at][0]
            at += 1
        found.append(left[at - 1][1])
    return tuple(found)


def _pack(draft: Draft, item: Item, weights: Array) -> None:
    """Constant weights, with the bias where there is one."""
    bias = None
    if len(item.inputs) > 2:
        bias = constant_array(draft.module.by_id[item.inputs[2].value])
    values = [draft.elem(use.value) for use in item.inputs[1:]]
    draft.packed = Packed(
        weights, bias, values[0], values[1] if len(values) > 1 else "", item.inputs[1].quant
    )


def _take_externals(
    draft: Draft, views: Mapping[int, View], strides: Callable[[View], Dims]
) -> None:
    """Load what functions of elements read, along images and the axes of the result."""
    for value, view in views.items():
        image, *along = strides(view)
        # What repeats is loaded once and stretched in L1.
        axes = tuple(a if s else 1 for a, s in zip(draft.axes, along, strict=True))
        access = Access(view.tensor, axes, tuple(along), draft.elem(value), view.offset, image)
        draft.of_value[value] = draft.load(access)


def _main_step(draft: Draft, item: Item, inputs: tuple[int, ...]) -> None:
    """The first task of a tile, on its operands and weights."""
    quants = [use.quant for use in item.inputs]
    layouts = ("", "HWIO") if item.kind == "window" else ("", "")
    operands = [
        Operand(local, q, layout=layout)
        for local, q, layout in zip(inputs, quants, layouts, strict=False)
    ]
    if draft.packed is not None:
        operands += _packed_locals(draft)
    output = _new_local(draft, draft.axes, draft.elem(item.result))
    draft.of_value[item.result] = output
    given = dict(item.row.attributes(item.attributes))
    work = "pool" if item.kind == "pool" else "macs"
    draft.steps.append(
        Step(item.row.nem, tuple(operands), Operand(output, item.quant), given, work=work)  # type: ignore[arg-type]
    )


def _packed_locals(draft: Draft) -> list[Operand]:
    packed = draft.packed
    assert packed is not None
    axes: Axes = (*packed.inner, "columns")
    found = [Operand(_new_local(draft, axes, packed.elem), packed.quant)]
    if packed.bias is not None:
        found.append(Operand(_new_local(draft, ("columns",), packed.bias_elem)))
    return found


def _new_local(draft: Draft, axes: Axes, elem: str) -> int:
    draft.locals.append(Local(axes, elem))
    return len(draft.locals) - 1


def matmul(draft: Draft) -> None:
    """Rows of a product of two computed operands, image by image."""
    item = draft.group.items[0]
    shape = item.op.type.shape
    whole = shape if len(shape) == 3 else (1, *shape)
    a, b = (
        draft.as_shape(draft.solid(draft.view(use.value)), (whole[0], *draft.shape(use.value)[-2:]))
        for use in item.inputs
    )
    draft.images, draft.rows, draft.columns = whole
    draft.cuts_columns = not draft.group.has_rows
    draft.axes = ("rows", "columns")
    others = {v: draft.as_shape(draft.view(v).broadcast(shape), whole) for v in draft.externals()}
    _take_externals(draft, others, lambda v: v.strides)
    depth = a.shape[-1]
    draft.macs = prod(whole) * depth
    image = 0 if draft.images == 1 else 1
    left = Access(a.tensor, ("rows", depth), a.strides[1:], draft.elem(item.inputs[0].value),
                  a.offset, image * a.strides[0])  # fmt: skip
    right = Access(b.tensor, (depth, "columns"), b.strides[1:], draft.elem(item.inputs[1].value),
                   b.offset, image * b.strides[0])  # fmt: skip
    locals_ = (draft.load(left), draft.load(right))
    _main_step(draft, item, locals_)
    draft.along = lambda v: _planes(draft.as_shape(v, whole), image)


def _planes(view: View, image: int) -> tuple[Dims, Dims]:
    return (image * view.strides[0],), view.strides[1:]


def window(draft: Draft) -> None:
    """Rows of windows: convolutions and poolings with channels last."""
    item = draft.group.items[0]
    x, filled = draft.solid(draft.view(item.inputs[0].value)), item.attributes
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
    _take_externals(draft, others, lambda v: (many * v.strides[0], *v.strides))
    axes: Axes = (1, "x_rows", x.shape[2], "columns" if follows else x.shape[3])
    access = Access(x.tensor, axes, x.strides, draft.elem(item.inputs[0].value), x.offset,
                    many * x.strides[0])  # fmt: skip
    loaded = [draft.load(access)]
    if not is_pool:
        loaded += _weights(draft, item)
    draft.macs = 0 if is_pool else prod(shape) * prod(kernel) * draft.shape(item.inputs[1].value)[2]
    _main_step(draft, item, tuple(loaded))
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
        _pack(draft, item, array)
        return []
    view = draft.solid(draft.view(value))
    axes: Axes = (*view.shape[:3], "columns")
    return [draft.load(Access(view.tensor, axes, view.strides, draft.elem(value), view.offset))]


def maps(draft: Draft) -> None:
    """Elements, in as few axes as say where all tensors lie."""
    shape = draft.group.shape
    last = shape[-1:] if draft.group.has_rows else ()
    lead = shape[: len(shape) - len(last)]
    externals = {v: draft.view(v).broadcast(shape) for v in draft.externals()}
    stored = [draft.as_shape(draft.view(v), shape) for v in draft.results()]
    views = [*externals.values(), *stored]
    sizes, _ = collapsed(lead, [v.strides[: len(lead)] for v in views])
    sizes = sizes or (1,)
    inner = prod((*sizes[1:], *last)) * 2 * (len(views) + len(draft.group.items))
    has_images = len(sizes) > 1 and (len(sizes) > 2 or last) and 4 * inner > draft.l1_bytes
    first = 1 if has_images else 0
    draft.images = sizes[0] if has_images else 1
    draft.rows = sizes[first]
    rest = (*sizes[first + 1 :], *last)
    draft.columns = rest[-1] if rest else 1
    draft.cuts_columns = bool(rest) and not last
    draft.axes = ("rows", *rest[:-1], "columns") if rest else ("rows",)

    def along(view: View) -> tuple[Dims, Dims]:
        runs = _in_runs(lead, sizes, view.strides[: len(lead)]) if sizes != (1,) else (0,)
        whole = (*runs, *view.strides[len(lead) :])
        return (whole[0] if has_images else 0,), whole[first:]

    _take_externals(draft, externals, lambda v: (*along(v)[0], *along(v)[1]))
    draft.along = lambda v: along(draft.as_shape(v, shape))


def turn(draft: Draft) -> None:
    """A transposition that exchanges two runs of axes, rows being the second run."""
    item = draft.group.items[0]
    swap = swap_of(draft.shape(item.inputs[0].value), item.attributes["permutation"])
    assert swap is not None  # others are not legal
    images, a, c, d = swap
    x = draft.as_shape(draft.solid(draft.view(item.inputs[0].value)), (images, a, c, d))
    draft.images, draft.rows, draft.columns = images, c, d
    draft.axes = ("rows", a, d)
    many = 0 if images == 1 else 1
    elem = draft.elem(item.inputs[0].value)
    axes: Axes = (a, "rows", d)
    loaded = draft.load(Access(x.tensor, axes, x.strides[1:], elem, x.offset, many * x.strides[0]))
    output = _new_local(draft, draft.axes, elem)
    draft.of_value[item.result] = output
    given = {"perm": (1, 0, 2)}
    draft.steps.append(Step(item.row.nem, (Operand(loaded),), Operand(output), given))
    whole = (images, c, a, d)
    draft.along = lambda v: _planes(draft.as_shape(v, whole), many)


def gather(draft: Draft) -> None:
    """Rows of a table that stays where it is."""
    item = draft.group.items[0]
    table, indices = (draft.solid(draft.view(use.value)) for use in item.inputs)
    count, inner = prod(indices.shape), prod(table.shape[1:])
    table = draft.as_shape(table, (table.shape[0], inner))
    indices = draft.as_shape(indices, (count,))
    draft.rows, draft.columns, draft.axes = count, inner, ("rows", "columns")
    elem = draft.elem(item.inputs[0].value)
    held = draft.load(
        Access(table.tensor, table.shape, table.strides, elem, table.offset, stays=True)
    )
    index = draft.load(Access(indices.tensor, ("rows",), indices.strides,
                              draft.elem(item.inputs[1].value), indices.offset))  # fmt: skip
    output = _new_local(draft, draft.axes, elem)
    draft.of_value[item.result] = output
    operands = (Operand(held), Operand(index))
    draft.steps.append(Step(item.row.nem, operands, Operand(output), {"axis": 0}))
    draft.along = lambda v: ((0,), draft.as_shape(v, (count, inner)).strides)


def escape(draft: Draft) -> None:
    """An operation on whole tensors, or on parts along the first axis where they are independent."""
    item = draft.group.items[0]
    shape = item.op.type.shape
    is_cut = bool(shape) and _is_cut(draft, item)
    loaded = []
    for use in item.inputs:
        view = draft.solid(draft.view(use.value))
        held = view.shape or (1,)
        view = draft.as_shape(view, held)
        moves = is_cut and len(held) == len(shape) and held[0] == shape[0]
        axes: Axes = ("rows", *held[1:]) if moves else held
        access = Access(view.tensor, axes, view.strides, draft.elem(use.value), view.offset)
        loaded.append(Operand(draft.load(access)))
    draft.axes = ("rows", *shape[1:]) if is_cut else shape or (1,)
    draft.rows = shape[0] if is_cut else 1
    output = _new_local(draft, draft.axes, draft.elem(item.result))
    draft.of_value[item.result] = output
    given = dict(item.row.attributes(item.attributes))
    draft.steps.append(Step(item.row.nem, tuple(loaded), Operand(output), given, work="scalar"))
    draft.along = lambda v: ((0,), draft.as_shape(v, shape or (1,)).strides)


def _is_cut(draft: Draft, item: Item) -> bool:
    """Whether rows are independent, and no attribute says how many there are."""
    if any(name in item.attributes for name in ("shape", "sizes", "new_shape", "repeats")):
        return False
    return independent_axes(draft.module, item.op) > 0


OUTLINES: Mapping[str, Callable[[Draft], None]] = {
    "linear": linear,
    "matmul": matmul,
    "window": window,
    "pool": window,
    "map": maps,
    "turn": turn,
    "gather": gather,
    "escape": escape,
}


def add_functions(draft: Draft) -> None:
    """The tasks after the first: functions of elements, and of whole rows."""
    items = draft.group.items
    for item in items if draft.group.main == "map" else items[1:]:
        inputs = [Operand(_stretched(draft, item, u), u.quant) for u in _elementwise(item)]
        if item.kind == "rows":
            inputs += [Operand(draft.of_value[u.value]) for u in item.inputs[1:]]
        given = dict(item.row.attributes(item.attributes))
        if item.kind == "rows":
            given["axis"] = len(draft.axes) - 1
        output = _new_local(draft, draft.axes, draft.elem(item.result))
        draft.of_value[item.result] = output
        work = "rows" if item.kind == "rows" else "scalar" if item.kind == "escape" else "elements"
        draft.steps.append(
            Step(item.row.nem, tuple(inputs), Operand(output, item.quant), given,
                 in_place=item.kind != "escape", work=work)  # type: ignore[arg-type]
        )  # fmt: skip


def _stretched(draft: Draft, item: Item, use: Use) -> int:
    """An operand in the shape of the result; operations that run by name stretch by themselves."""
    local = draft.of_value[use.value]
    value = draft.locals[local]
    if value.axes == draft.axes or item.kind == "escape":
        return local
    key = -1 - use.value
    if key not in draft.of_value:
        draft.of_value[key] = _new_local(draft, draft.axes, value.elem)
        step = Step("pad", (Operand(local),), Operand(draft.of_value[key]), repeats=True)
        draft.steps.append(step)
    return draft.of_value[key]


def add_vectors(draft: Draft) -> None:
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


def stored(draft: Draft) -> tuple[Result, ...]:
    """Where the values that leave go."""
    assert draft.along is not None
    found = []
    for value in draft.results():
        view = draft.view(value)
        (image,), strides = draft.along(view)
        local = draft.of_value[value]
        access = Access(view.tensor, draft.axes, strides, draft.elem(value), view.offset, image)
        found.append(Result(local, value, access))
    return tuple(found)
