"""Memory for every value: parts of `Concat` and `Pad` are made in their place.

What cannot be is copied there, and so are reshapes that strides cannot say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.partition.items import Item
from nacre.compile.partition.tensors import Memory, Tensor, ViewCopy
from nacre.compile.partition.views import View, collapse_axes, dense
from nacre.core.constants import constant_array
from nacre.core.module import Module
from nacre.kernels.interface.runs import quietly

Dims = tuple[int, ...]
_VIEWS = frozenset({"view", "slice", "broadcast"})
_ASSEMBLIES = frozenset({"concat", "pad"})
# Results that can lie with gaps, whatever the strides.
_FLEXIBLE = frozenset({"window", "pool", "map", "rows", "matmul", "resize", *_ASSEMBLIES})
_RUN = 32  # bytes that a unit moves at a time
_MOST_FILLED = 1 << 14  # elements of one number that are stored one by one


def memory_of(module: Module, items: list[Item]) -> Memory:
    """The memory of every value."""
    return _MemoryAssignment(module, items).memory()


@dataclass(eq=False)
class _MemoryAssignment:
    module: Module
    items: list[Item]
    tensors: dict[int, Tensor] = field(default_factory=dict)
    views: dict[int, View] = field(default_factory=dict)
    copies: dict[int, tuple[ViewCopy, ...]] = field(default_factory=dict)
    assigned: dict[int, View] = field(default_factory=dict)

    def memory(self) -> Memory:
        self._assign_parts()
        for op in self.module.operations:
            if op.opcode == "Input" or constant_array(op) is not None:
                self._allocate(op.value_id)
        for item in self.items:
            self._assign_item(item)
        outputs, copied = [], []
        for value in self.module.outputs:
            view, shift = self._output(value)
            outputs.append(view)
            copied += [shift] if shift is not None else []
        return Memory(self.tensors, self.views, self.copies, tuple(outputs), tuple(copied))

    # Parts that are made in their place

    def _assign_parts(self) -> None:
        makers = {item.result: item for item in self.items}
        for item in reversed(self.items):
            if item.kind not in _ASSEMBLIES and not _is_strided(item):
                continue
            target = self.assigned.get(item.result) or View.whole(item.result, item.op.type.shape)
            counts = Counter(use.value for use in item.inputs)
            parts = list(self._parts(item, target))
            for value, part in (*parts, *self._rejoin_slices(item, target, parts, makers)):
                if counts[value] <= 1:
                    self._assign(value, part, makers)

    def _rejoin_slices(
        self,
        item: Item,
        target: View,
        parts: list[tuple[int, View]],
        makers: Mapping[int, Item],
    ) -> Iterator[tuple[int, View]]:
        """Values of which all slices along the axis stand side by side in their order."""
        if item.kind != "concat":
            return
        axis = item.attributes["axis"] % len(target.shape)
        first, at = 0, 0
        while at < len(parts):
            source, end = self._slices(parts, at, axis, makers)
            if source is not None:
                shape = self.module.by_id[source].type.shape
                starts = tuple(first if a == axis else 0 for a in range(len(shape)))
                yield source, target.slice(starts, (1,) * len(shape), shape)
            for _, part in parts[at:end]:
                first += part.shape[axis]
            at = end

    def _slices(
        self, parts: list[tuple[int, View]], at: int, axis: int, makers: Mapping[int, Item]
    ) -> tuple[int | None, int]:
        """The value that the parts from a place on are all slices of, and where they end."""
        maker = makers.get(parts[at][0])
        if maker is None or maker.kind != "slice":
            return None, at + 1
        source, covered, end = maker.inputs[0].value, 0, at
        shape = self.module.by_id[source].type.shape
        while end < len(parts):
            maker = makers.get(parts[end][0])
            if maker is None or maker.kind != "slice" or maker.inputs[0].value != source:
                break
            starts, steps = maker.attributes["starts"], maker.attributes["steps"]
            wanted = tuple(covered if a == axis else 0 for a in range(len(shape)))
            taken = maker.op.type.shape
            is_narrow = any(a != axis and n != shape[a] for a, n in enumerate(taken))
            if tuple(starts) != wanted or set(steps) != {1} or is_narrow:
                break
            covered += taken[axis]
            end += 1
        is_whole = covered == shape[axis] and end > at
        return (source if is_whole else None), max(end, at + 1)

    @cached_property
    def _with_products(self) -> set[int]:
        return _products_and_functions_of_them(self.items)

    def _assign(self, value: int, part: View, makers: Mapping[int, Item]) -> None:
        maker = makers.get(value)
        while maker is not None and maker.kind == "view":
            value = maker.inputs[0].value
            view = part.reshape(self.module.by_id[value].type.shape)
            if view is None:
                return
            part, maker = view, makers.get(value)
        is_free = value not in self.assigned and value not in self.module.outputs
        if (
            maker is not None
            and is_free
            and _can_write_with_gaps(maker, part, value in self._with_products)
        ):
            self.assigned[value] = part

    def _parts(self, item: Item, target: View) -> Iterator[tuple[int, View]]:
        """The values that an assembly is put together from, and where each goes."""
        if item.kind == "turn":
            order = item.attributes["permutation"]
            back = tuple(sorted(range(len(order)), key=order.__getitem__))
            yield item.inputs[0].value, target.permute(back)
            return
        if item.kind == "pad":
            value = item.inputs[0].value
            shape = self.module.by_id[value].type.shape
            begins = tuple(item.attributes["pads"][: len(shape)])
            yield value, target.slice(begins, (1,) * len(shape), shape)
            return
        axis, first = item.attributes["axis"] % len(target.shape), 0
        for use in item.inputs:
            shape = self.module.by_id[use.value].type.shape
            starts = tuple(first if a == axis else 0 for a in range(len(shape)))
            yield use.value, target.slice(starts, (1,) * len(shape), shape)
            first += shape[axis]

    # All values in order

    def _allocate(self, value: int) -> View:
        """A value with memory of its own, or with the part that it was assigned."""
        op = self.module.by_id[value]
        view = self.assigned.get(value)
        if view is None:
            count = int(np.prod(op.type.shape, dtype=np.int64))
            self.tensors[value] = Tensor(op.type.dtype, count, constant_array(op))
            view = View.whole(value, op.type.shape)
        self.views[value] = view
        return view

    def _assign_item(self, item: Item) -> None:
        shape = item.op.type.shape
        if item.kind in _VIEWS:
            source = self.views[item.inputs[0].value]
            view = _view_of(item, source, shape)
            if view is not None:
                self.views[item.result] = view
                return
            target = self._allocate(item.result).reshape(source.shape)
            assert target is not None  # it is dense
            self.copies[item.result] = (ViewCopy(source, target),)
        elif item.kind in _ASSEMBLIES:
            self.copies[item.result] = tuple(self._assemble(item))
        elif _is_strided(item):
            self._transpose(item)
        elif item.kind == "resize":
            self.copies[item.result] = (self._repeat(item),)
        else:
            self._allocate(item.result)

    def _transpose(self, item: Item) -> None:
        """Nothing moves: what was made in its place is there, and else readers follow strides."""
        source = item.inputs[0].value
        target = self.assigned.get(item.result) or View.whole(item.result, item.op.type.shape)
        ((_, part),) = self._parts(item, target)
        self.copies[item.result] = ()
        if self.views[source].is_same(part):  # also where a view of it was assigned
            self._allocate(item.result)
        else:
            self.views[item.result] = self.views[source].permute(item.attributes["permutation"])

    def _assemble(self, item: Item) -> Iterator[ViewCopy]:
        target = self._allocate(item.result)
        if item.kind == "pad":
            yield from self._fill_padding(item, target)
        for value, part in self._parts(item, target):
            if not self.views[value].is_same(part):
                yield ViewCopy(self.views[value], part)

    def _fill_padding(self, item: Item, target: View) -> Iterator[ViewCopy]:
        """What lies around, in slabs: before and after along one axis after the other."""
        rank = len(target.shape)
        pads, inner = item.attributes["pads"], self.module.by_id[item.inputs[0].value].type.shape
        starts, shape = [0] * rank, list(target.shape)
        for axis in range(rank):
            for first, count in ((0, pads[axis]), (pads[axis] + inner[axis], pads[rank + axis])):
                if not count:
                    continue
                at, size = list(starts), list(shape)
                at[axis], size[axis] = first, count
                part = target.slice(tuple(at), (1,) * rank, tuple(size))
                yield ViewCopy(self._constant(item, part.shape), part)
            starts[axis], shape[axis] = pads[axis], inner[axis]

    def _constant(self, item: Item, shape: Dims) -> View:
        """One number under a shape; of large ones only the last axis is stored."""
        dtype = item.op.type.dtype
        number = -1 - len(self.tensors)
        is_small = int(np.prod(shape)) <= _MOST_FILLED
        value = quietly(np.float64(item.attributes["value"]).astype, GRAPH_TYPES[dtype].dtype)
        filled = np.full(shape if is_small else shape[-1:], value)
        self.tensors[number] = Tensor(dtype, filled.size, filled)
        return View.whole(number, filled.shape).broadcast(shape)

    def _repeat(self, item: Item) -> ViewCopy:
        """Neighbours repeated: axes of the factor's size with stride 0 beside those of a plane."""
        source, result = self.views[item.inputs[0].value], self._allocate(item.result)
        spread: list[int] = []
        strides: list[int] = []
        for size, wanted, stride in zip(source.shape, result.shape, source.strides, strict=True):
            spread += [size, wanted // size]
            strides += [stride, 0]
        view = View(source.tensor, tuple(spread), tuple(strides), source.offset)
        target = result.reshape(tuple(spread))
        assert target is not None  # an axis can always be split
        kept = [axis for axis, size in enumerate(spread) if size != 1]
        return ViewCopy(_select_axes(view, kept), _select_axes(target, kept))

    def _output(self, value: int) -> tuple[View, ViewCopy | None]:
        """A whole tensor that holds an output and nothing else; a copy where it has none."""
        view = self.views[value]
        tensor = self.tensors[view.tensor]
        is_whole = view.is_dense and tensor.elements == int(np.prod(view.shape, dtype=np.int64))
        is_made = tensor.constant is None and self._is_computed(view.tensor)
        if is_whole and is_made:
            return view, None
        number = -1 - len(self.tensors)
        count = int(np.prod(view.shape, dtype=np.int64))
        self.tensors[number] = Tensor(tensor.dtype, count)
        target = View.whole(number, view.shape)
        return target, ViewCopy(view, target)

    def _is_computed(self, tensor: int) -> bool:
        return tensor < 0 or self.module.by_id[tensor].opcode != "Input"


def _select_axes(view: View, axes: list[int]) -> View:
    """A view of these axes; the others have one element."""
    shape, strides = (tuple(values[a] for a in axes) for values in (view.shape, view.strides))
    return View(view.tensor, shape, strides, view.offset)


def _view_of(item: Item, source: View, shape: Dims) -> View | None:
    if item.kind == "broadcast":
        return source.broadcast(shape)
    if item.kind == "view":
        return source.reshape(shape)
    filled = item.attributes
    starts, steps = tuple(filled["starts"]), tuple(filled["steps"])
    starts = tuple(s + size if s < 0 else s for s, size in zip(starts, source.shape, strict=True))
    return source.slice(starts, steps, shape)


def _is_strided(item: Item) -> bool:
    """Whether a transposition moves runs that are long enough for strides to cost nothing."""
    if item.kind != "turn":
        return False
    shape, order = item.op.type.shape, item.attributes["permutation"]
    moved = [axis for axis, size in zip(order, shape, strict=True) if size != 1]
    run = 1
    for axis, stays in zip(reversed(moved), sorted(moved, reverse=True), strict=True):
        if axis != stays:
            break
        run *= shape[order.index(axis)]
    return run * GRAPH_TYPES[item.op.type.dtype].bits // 8 % _RUN == 0


def _can_write_with_gaps(maker: Item, part: View, is_with_product: bool) -> bool:
    """Whether a task can write its result with these gaps."""
    if maker.kind not in (*_FLEXIBLE, "linear"):
        return False
    if not is_with_product:
        return True
    lead = part.shape[:-1]
    return len(collapse_axes(lead, [part.strides[:-1], dense(part.shape)[:-1]])[0]) <= 2


def _products_and_functions_of_them(items: Iterable[Item]) -> set[int]:
    """Results that a product's tiles may have: functions join what they are of."""
    found: set[int] = set()
    for item in items:
        is_joined = item.kind == "map" and any(use.value in found for use in item.inputs)
        if item.kind == "linear" or is_joined:
            found.add(item.result)
    return found
