"""The tasks of one tile: what is loaded, computed and stored, and the regions of all that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from nacre.compile.options import Options
from nacre.compile.partition.layers import (
    Access,
    Axes,
    Layer,
    Operand,
    Result,
    Size,
    Step,
    element_bytes,
    tile_shape,
)
from nacre.compile.partition.views import dense, reach
from nacre.compile.placement.stage import Placement
from nacre.compile.program import Affine, Compute, Copy, Let, Region
from nacre.compile.schedule.load_parts import LoadParts
from nacre.compile.schedule.order import Touch, touch_of
from nacre.compile.schedule.quantising_stores import QuantisingStore, quantising_store
from nacre.compile.schedule.regions import outside
from nacre.compile.schedule.task import Task, engine_suffix
from nacre.compile.schedule.weights import WeightTasks
from nacre.compile.tiling.tiling import Tiling

_LAYOUTS = {1: "C", 2: "MN", 3: "ABC", 4: "ABCD", 5: "ABCDE", 6: "ABCDEF", 7: "ABCDEFG"}


@dataclass(frozen=True)
class TilePosition:
    """Where a tile is in its layer, and in L1."""

    tag: str  # of its tokens and regions
    engine: int
    block: int
    image: Affine
    row: Affine  # first output row
    x_row: Affine  # first input row
    size: Size
    slot: Affine
    above: int = 0  # rows of padding
    below: int = 0


class LayerTasks:
    """Makes the tasks of one layer."""

    def __init__(
        self, layer: Layer, tiling: Tiling, placement: Placement, options: Options
    ) -> None:
        self.layer, self.tiling, self._placement = layer, tiling, placement
        self._by_store = quantising_store(layer, options)
        self._blocks = tiling.column_blocks(layer.columns)
        self._l1_layout = placement.l1_layouts[layer.name]
        self._spaces = self._l1_layout.footprint.spaces
        self._fixed = layer.fixed_locals(layer.cut(tiling.rows, tiling.columns))
        # Of the largest tile: what all tiles share has this size.
        rows, columns = min(tiling.rows, layer.rows), min(tiling.columns, layer.columns)
        self._whole = layer.size(rows, columns)
        self._reshaped = _locals_of_several_shapes(layer)
        loads = sum(
            local not in self._fixed and not access.stays and local not in self._spaces.placed
            for local, access in enumerate(layer.operands)
        )
        self._load_parts = LoadParts(layer, tiling, loads, options)
        self.weights = WeightTasks(layer, tiling, placement, options)

    # Once for a layer or a block

    def shared_loads(self, engine: int) -> Iterator[Task]:
        """What all tiles read, brought to L1 and stretched there."""
        size = self._whole
        position = TilePosition(
            f"a{engine_suffix(engine)}", engine, 0, Affine(), Affine(), Affine(), size, Affine()
        )
        for local, access in enumerate(self.layer.operands):
            if local in self._fixed and local not in self._spaces.placed:
                for task in self._load(position, local, access, is_shared=True):
                    yield _mark_ahead(task)
        for number, step in enumerate(self.layer.steps):
            if step.output.local in self._fixed:
                yield _mark_ahead(self._step(position, number, step, 0))

    # For every tile

    def tile(self, position: TilePosition, w_slot: int) -> Iterator[Task]:
        """Load, compute, store."""
        for local, access in enumerate(self.layer.operands):
            if local not in self._fixed and not access.stays and local not in self._spaces.placed:
                yield from self._load(position, local, access)
        by_store = self._store_that_quantises()
        for number, step in enumerate(self.layer.steps):
            if step.output.local not in self._fixed and (
                by_store is None or step is not by_store.step
            ):
                yield self._step(position, number, step, w_slot)
        for number, result in enumerate(self.layer.results):
            if result.local not in self._spaces.placed:
                yield self._store(position, number, result, by_store)

    def _store(
        self, position: TilePosition, number: int, result: Result, by_store: QuantisingStore | None
    ) -> Task:
        """A result on its way out, perhaps as floats that become integers there."""
        where = self._placement.tensors[result.access.tensor]
        op = "store" if where.level == "L2" else "transfer"
        dst, source = self._tensor_region(position, result.access), Operand(result.local)
        if by_store is not None and by_store.step.output.local == result.local:
            source = by_store.step.inputs[0]
            dst = by_store.typed_region(dst, position.size, _LAYOUTS)
        name, let = self._name_local(position, source)
        token = f"{self.layer.name}_s{number or ''}{position.tag}"
        copy = Copy(token, op, dst, name, debug=self.layer.title)
        return Task(copy, (touch_of(dst, True), touch_of(let.region, False)), (let,))

    def _store_that_quantises(self) -> QuantisingStore | None:
        """What the store of a tile does of its last step: only stores to L2 do."""
        by_store = self._by_store
        if by_store is None or by_store.step.output.local in (*self._fixed, *self._spaces.placed):
            return None
        is_in_l2 = self._placement.tensors[by_store.access.tensor].level == "L2"
        return by_store if is_in_l2 else None

    def _load(
        self, position: TilePosition, local: int, access: Access, *, is_shared: bool = False
    ) -> Iterator[Task]:
        """An operand on its way to L1, by several units where tiles leave some without work."""
        name, let = self._name_local(position, Operand(local))
        src = self._tensor_region(position, access)
        is_in_ddr = self._placement.tensors[access.tensor].level == "DDR"
        parts = list(
            self._load_parts.split_load(let.region, src, is_in_ddr=is_in_ddr, is_shared=is_shared)
        )
        for number, (dst, part) in enumerate(parts):
            token = f"{self.layer.name}_x{local or ''}{position.tag}" + (
                f"p{number}" if number else ""
            )
            target = name if len(parts) == 1 else dst
            copy = Copy(token, "transfer", target, part, debug=self.layer.title)
            yield Task(copy, (touch_of(dst, True), touch_of(part, False)), (let,))

    def _step(self, position: TilePosition, number: int, step: Step, w_slot: int) -> Task:
        names: list[str] = []
        lets: list[Let] = []
        touches: list[Touch] = []
        for operand in step.inputs:
            name, let = self._operand(position, operand, w_slot)
            names.append(name)
            lets += [let] if not self._is_weight(operand.local) else []
            touches.append(touch_of(let.region, False))
        result, let = self._name_local(position, step.output)
        lets.append(let)
        touches.append(touch_of(let.region, True))
        token = f"{self.layer.name}_c{number or ''}{position.tag}"
        attributes = {
            **self._window_attributes(position, step),
            **self._repeat_attributes(position, step),
            **step.attributes,
        }
        value = self.layer.makes[number] if self.layer.makes else None
        compute = Compute(
            token, step.nem, tuple(names), result, (), attributes, self.layer.title, value=value
        )
        return Task(compute, tuple(touches), tuple(dict.fromkeys(lets)))

    def _is_weight(self, local: int) -> bool:
        first, packed = len(self.layer.operands), self.layer.packed
        return packed is not None and first <= local < first + len(packed.parts)

    def _operand(self, position: TilePosition, operand: Operand, w_slot: int) -> tuple[str, Let]:
        if self._is_weight(operand.local):
            lets = list(self.weights.lets(position.engine, position.block, w_slot))
            let = lets[operand.local - len(self.layer.operands)]
            return let.name, let
        if operand.local < len(self.layer.operands):
            access = self.layer.operands[operand.local]
            if access.stays:
                return self._table(position, operand, access)
        return self._name_local(position, operand)

    def _table(self, position: TilePosition, operand: Operand, access: Access) -> tuple[str, Let]:
        """A tensor that is read where it lies."""
        shape = tile_shape(access.axes, position.size)
        where = self._placement.tensors[access.tensor]
        bytes_ = element_bytes(access.elem)
        name = f"{self.layer.name}_T{operand.local}{position.tag}"
        at = Affine(access.offset).with_added(position.image.times(access.image))
        offset = at.times(bytes_).plus(where.offset)
        size = reach(shape, access.strides) * bytes_
        region = Region(where.buffer, offset, size, operand.elem or access.elem, shape,
                        _LAYOUTS[len(shape)])  # fmt: skip
        if access.strides != dense(shape):
            region = replace(region, layout="", strides=access.strides)
        return name, Let(name, region)

    def _window_attributes(self, position: TilePosition, step: Step) -> dict[str, object]:
        window = self.layer.window
        if window is None or step is not self.layer.steps[self.layer.sliding]:
            return {}
        left, right = window.sides
        given: dict[str, object] = {
            "pads": (position.above, left, position.below, right),
            "strides": window.strides,
        }
        if self.layer.main == "pool":
            return {"kernel_shape": window.kernel, **given}
        groups = window.groups or position.size.columns
        return {**given, "dilations": window.dilations, "groups": groups}

    def _repeat_attributes(self, position: TilePosition, step: Step) -> dict[str, object]:
        """How an operand is stretched: its last elements are repeated along axes of size 1."""
        if not step.repeats:
            return {}
        values = (self.layer.locals[o.local] for o in (step.inputs[0], step.output))
        small, large = (tile_shape(value.axes, position.size) for value in values)
        ends = tuple(b - a for a, b in zip(small, large, strict=True))
        return {"pads": (0,) * len(ends) + ends, "mode": "edge"}

    # Regions

    def _name_local(self, position: TilePosition, operand: Operand) -> tuple[str, Let]:
        """A local value in L1 and its name, which says under which scale it is read."""
        local = self.layer.locals[operand.local]
        if operand.local in self._spaces.placed:
            return self._resident(position, operand)
        space = self._spaces.of_local[operand.local]
        assert space is not None
        start, in_ring = self._l1_layout.space(space)
        offset = Affine(start)
        if in_ring:
            offset = position.slot.times(self._l1_layout.footprint.ring).plus(start)
        shape = tile_shape(operand.axes or local.axes, position.size)
        size = prod(shape) * element_bytes(local.elem)
        layout = "NHWC" if self.layer.window is not None and len(shape) == 4 else ""
        region = Region(
            self._placement.l1(position.engine), offset, size, operand.elem or local.elem, shape,
            operand.layout or layout or _LAYOUTS[max(1, len(shape))], quant=operand.quant,
        )  # fmt: skip
        if operand.local in self._fixed:
            region = self._shared_region(
                region, tile_shape(operand.axes or local.axes, self._whole)
            )
        name = self._name(position, operand)
        return name, Let(name, region)

    def _shared_region(self, region: Region, whole: tuple[int, ...]) -> Region:
        """What a smaller tile takes of a value that all tiles share: it lies as the whole does."""
        strides, own = dense(whole), dense(region.shape)
        if all(n == 1 or a == b for n, a, b in zip(region.shape, strides, own, strict=True)):
            return region
        size = reach(region.shape, strides) * element_bytes(region.elem)
        return replace(region, size=size, layout="", strides=strides)

    def _resident(self, position: TilePosition, operand: Operand) -> tuple[str, Let]:
        """A part of a tensor that stays in L1."""
        access, local = self._spaces.placed[operand.local], self.layer.locals[operand.local]
        region = self._tensor_region(position, access)
        shape = tile_shape(operand.axes or local.axes, position.size)
        layout = operand.layout or ("NHWC" if self.layer.window and len(shape) == 4 else "")
        region = replace(region, elem=operand.elem or local.elem, quant=operand.quant)
        if not region.strides:
            layout = layout or _LAYOUTS[max(1, len(shape))]
            region = replace(region, shape=shape, layout=layout)
        name = self._name(position, operand)
        return name, Let(name, region)

    def _name(self, position: TilePosition, operand: Operand) -> str:
        ending = "" if operand.quant is None else f"q{self._quant_number(operand)}"
        ending += "w" if operand.layout else ""
        ending += "m" if operand.elem else ""
        ending += "r" if operand.local in self._reshaped and operand.axes else ""
        return f"{self.layer.name}_V{operand.local}{ending}{position.tag}"

    def _quant_number(self, operand: Operand) -> int:
        """The number of a scale among those that a value is read under."""
        seen = [
            o.quant
            for step in self.layer.steps
            for o in (*step.inputs, step.output)
            if o.local == operand.local and o.quant is not None
        ]
        assert operand.quant is not None
        return list(dict.fromkeys(seen)).index(operand.quant)

    def _tensor_region(self, position: TilePosition, access: Access) -> Region:
        """The part of a tensor that a tile reads or writes, where it lies."""
        where = self._placement.tensors[access.tensor]
        first = self._blocks[position.block][0]
        at = Affine(access.offset + first * access.stride_of("columns"))
        at = at.with_added(position.image.times(access.image))
        at = at.with_added(position.row.times(access.stride_of("rows")))
        at = at.with_added(position.x_row.times(access.stride_of("x_rows")))
        shape = tile_shape(access.axes, position.size)
        return outside(where.buffer, where.offset, at, access, shape)


def _locals_of_several_shapes(layer: Layer) -> frozenset[int]:
    """Values that steps read under one shape and under another, so that each has its own name."""
    shapes: dict[int, set[Axes]] = {}
    for step in layer.steps:
        for operand in (*step.inputs, step.output):
            shapes.setdefault(operand.local, set()).add(operand.axes)
    return frozenset(local for local, found in shapes.items() if len(found) > 1)


def _mark_ahead(task: Task) -> Task:
    return replace(task, statement=replace(task.statement, ahead=True))
