"""A layer while it is put together: its axes, its operands, its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from nacre.base.diagnostics import InternalError
from nacre.compile.geometry import Window
from nacre.compile.partition.grouping import Group
from nacre.compile.partition.items import Item, ItemInput
from nacre.compile.partition.layers import (
    Access,
    Axes,
    Local,
    Operand,
    PackedPart,
    PackedWeights,
    Step,
)
from nacre.compile.partition.tensors import Memory, Tensor, ViewCopy
from nacre.compile.partition.views import View
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array, Literal

Dims = tuple[int, ...]
Along = Callable[[View], tuple[Dims, Dims]]


@dataclass(frozen=True)
class DeviceLimits:
    """What a layer has to know of the device."""

    l1_bytes: int
    repeated: frozenset[str]  # element types that a task can repeat
    carriers: Mapping[tuple[str, str], str]  # types in which an opcode moves others


@dataclass(eq=False)
class Draft:
    """A layer while it is put together."""

    module: Module
    memory: Memory
    group: Group
    device: DeviceLimits
    wanted: frozenset[int]  # values that others read
    images: int = 1
    rows: int = 1
    columns: int = 1
    cuts_columns: bool = False
    axes: Axes = ()  # of the result
    window: Window | None = None
    packed: PackedWeights | None = None
    macs: int = 0
    operands: list[Access] = field(default_factory=list)
    locals: list[Local] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    copies: list[ViewCopy] = field(default_factory=list)  # copies that have to come before
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

    def carrier_operand(self, opcode: str, local: int) -> Operand:
        """A local as an opcode moves it: in a type of the same size that the device has."""
        elem = self.locals[local].elem
        carrier = self.device.carriers.get((opcode, elem), elem)
        return Operand(local, elem="" if carrier == elem else carrier)

    def externals(self) -> list[int]:
        """Values from outside that functions of elements read, each once."""
        made = {item.result for item in self.group.items}
        first = self.group.items[0]
        skipped = first if self.group.main != "map" else None
        read = (u.value for i in self.group.items if i is not skipped for u in elementwise(i))
        return [value for value in dict.fromkeys(read) if value not in made]

    def results(self) -> list[int]:
        """Values that leave, in order."""
        return [item.result for item in self.group.items if item.result in self.wanted]

    def load(self, access: Access) -> int:
        """One more operand, or one that is read alike; its local."""
        assert not self.steps
        if access in self.operands:
            return self.operands.index(access)
        self.operands.append(access)
        self.locals.append(Local(access.axes, access.elem))
        return len(self.locals) - 1

    def densify(self, view: View) -> View:
        """The same elements close together, copied before the layer runs."""
        number = -1 - len(self.memory.tensors) - len(self.tensors)
        base = self.memory.tensors[view.tensor]
        self.tensors[number] = Tensor(base.dtype, prod(view.shape))
        made = View.whole(number, view.shape)
        self.copies.append(ViewCopy(view, made))
        return made

    def without_repeats(self, view: View) -> View:
        """A view in which nothing repeats, copied where something does."""
        repeats = any(s == 0 < n - 1 for n, s in zip(view.shape, view.strides, strict=True))
        return self.densify(view) if repeats else view

    def reshape_view(self, view: View, shape: Dims) -> View:
        """A view under another shape, copied where strides cannot say it."""
        found = view.reshape(shape)
        if found is None:
            found = self.densify(view).reshape(shape)
        assert found is not None
        return found


def elementwise(item: Item) -> Sequence[ItemInput]:
    """The operands of an item that are read element by element; of norms only the first."""
    return item.inputs[:1] if item.kind == "rows" else item.inputs


def set_images_and_rows(draft: Draft, sizes: Dims) -> None:
    """Images and rows: at most two runs of axes."""
    if len(sizes) > 2:
        raise InternalError(f"rows in {len(sizes)} runs of axes")
    draft.images = sizes[0] if len(sizes) == 2 else 1
    draft.rows = sizes[-1] if sizes else 1


def lead_strides(lead: Dims, sizes: Dims, strides: Dims) -> tuple[int, int]:
    """Strides of images and rows: the axes before the last in at most two runs."""
    runs = run_strides(lead, sizes, strides)
    return (runs[0], runs[1]) if len(runs) == 2 else (0, runs[0] if runs else 0)


def run_strides(shape: Dims, sizes: Dims, strides: Dims) -> Dims:
    """The stride of each run of axes whose sizes are given: that of its last axis."""
    runs: list[int] = []
    left = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    at = 0
    for size in sizes:
        have = 1
        while have < size:
            have *= left[at][0]
            at += 1
        runs.append(left[at - 1][1])
    return tuple(runs)


def pack_weights(draft: Draft, item: Item, weights: Array, *, with_bias: bool = True) -> None:
    """Constant weights, with the bias where there is one."""
    bias = None
    if len(item.inputs) > 2 and with_bias:
        bias = constant_array(draft.module.by_id[item.inputs[2].value])
    values = [draft.elem(use.value) for use in item.inputs[1:]]
    parts = tuple(_group_part(draft, name, value) for name, value in item.groups.items())
    if parts:  # [groups, depth, columns]
        weights = weights.reshape(parts[0].inner[0], -1, weights.shape[-1])
    draft.packed = PackedWeights(
        weights,
        bias,
        values[0],
        values[1] if len(values) > 1 else "",
        item.inputs[1].quant,
        (*(use.value for use in item.inputs[1:]), *item.groups.values()),
        groups=parts,
    )


def _group_part(draft: Draft, name: str, value: int) -> PackedPart:
    """Scales [columns, groups] and their like as [groups, 1, columns]."""
    array = constant_elements(draft.module.by_id[value])
    return PackedPart(array.reshape(array.shape[:2]).T[:, None], draft.elem(value), name)


def constant_elements(op: CoreOperation) -> Array:
    """The elements of a constant, in its own array: a bundle knows weights by their place."""
    data = op.attributes.get("data")
    found = data.array if isinstance(data, Literal) else constant_array(op)
    assert found is not None
    return found


def load_externals(
    draft: Draft, views: Mapping[int, View], strides: Callable[[View], Dims]
) -> None:
    """Load what functions of elements read, along images and the axes of the result."""
    for value, view in views.items():
        image, *along = strides(view)
        # What repeats is loaded once and stretched in L1; of one row or column nothing repeats.
        single = {name for name, n in (("rows", draft.rows), ("columns", draft.columns)) if n == 1}
        axes = tuple(a if s or a in single else 1 for a, s in zip(draft.axes, along, strict=True))
        access = Access(view.tensor, axes, tuple(along), draft.elem(value), view.offset, image)
        draft.of_value[value] = draft.load(access)


def add_main_step(draft: Draft, item: Item, inputs: tuple[int, ...]) -> None:
    """The first task of a tile, on its operands and weights."""
    quants = [use.quant for use in item.inputs]
    layouts = ("", "HWIO") if item.kind == "window" else ("", "")
    operands = [
        Operand(local, q, layout=layout)
        for local, q, layout in zip(inputs, quants, layouts, strict=False)
    ]
    if draft.packed is not None:
        operands += _packed_operands(draft)
    output = new_local(draft, draft.axes, draft.elem(item.result))
    draft.of_value[item.result] = output
    given = dict(item.row.attributes(item.attributes))
    work = "pool" if item.kind == "pool" else "macs"
    depth = draft.macs // max(1, prod(item.op.type.shape))
    draft.steps.append(
        Step(item.row.nem, tuple(operands), Operand(output, item.quant), given, work=work,  # type: ignore[arg-type]
             depth=depth)
    )  # fmt: skip


def _packed_operands(draft: Draft) -> list[Operand]:
    """Weights and bias as a product takes them."""
    packed = draft.packed
    assert packed is not None
    locals_ = [new_local(draft, (*part.inner, "columns"), part.elem) for part in packed.parts]
    if not packed.groups:
        return [Operand(locals_[0], packed.quant), *map(Operand, locals_[1:])]
    names = [part.name for part in packed.parts]
    own = dict(zip(names, locals_, strict=True))
    return [_dequantised(draft, locals_[0], own), *map(Operand, locals_[1 + len(packed.groups) :])]


def _dequantised(draft: Draft, integers: int, parts: Mapping[str, int]) -> Operand:
    """Weights in groups as floats: cast, each group times its scales, as a matrix."""
    axes, elem = draft.locals[integers].axes, draft.locals[parts["scales"]].elem
    weights = new_local(draft, axes, elem)
    draft.steps.append(Step("cast", (Operand(integers),), Operand(weights)))
    for name, nem in (("zeros", "sub"), ("scales", "mul"), ("minimums", "add")):
        if name not in parts:
            continue
        part = _cast_part(draft, parts[name], elem) if name == "zeros" else parts[name]
        spread, moved = new_local(draft, axes, elem), new_local(draft, axes, elem)
        draft.steps += [
            Step("pad", (Operand(part),), Operand(spread), repeats=True),
            Step(nem, (Operand(weights), Operand(spread)), Operand(moved), in_place=True),
        ]
        weights = moved
    groups, depth, columns = axes
    assert isinstance(groups, int)
    assert isinstance(depth, int)
    return Operand(weights, axes=(groups * depth, columns))


def _cast_part(draft: Draft, part: int, elem: str) -> int:
    wide = new_local(draft, draft.locals[part].axes, elem)
    draft.steps.append(Step("cast", (Operand(part),), Operand(wide)))
    return wide


def new_local(draft: Draft, axes: Axes, elem: str) -> int:
    """One more value of a tile."""
    draft.locals.append(Local(axes, elem))
    return len(draft.locals) - 1


def plane_strides(view: View, image: int) -> tuple[Dims, Dims]:
    """Strides of images, the first axis, where there are several; and of the other axes."""
    return (image * view.strides[0],), view.strides[1:]
