"""The weights of a layer on their way to L1, and their names there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer, element_bytes
from nacre.compile.placement.ports import COMPRESSED, L2, WEIGHTS
from nacre.compile.placement.stage import Placement
from nacre.compile.program import Affine, Copy, Let, Region
from nacre.compile.schedule.order import touch_of
from nacre.compile.schedule.task import Task, engine_suffix
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.tiling import Tiling

_LEAST_PART = 4096  # bytes of weights that are worth a task of their own
_LAYOUTS = {1: "C", 2: "KN", 3: "ABC", 4: "HWIO"}  # in groups, of a matrix, of windows


class WeightTasks:
    """Makes the tasks that load the weights of one layer."""

    def __init__(
        self, layer: Layer, tiling: Tiling, placement: Placement, options: Options
    ) -> None:
        self._layer, self._tiling, self._placement = layer, tiling, placement
        units = options.device.count("DMA")
        # One is for tiles: those of the layer before would wait until all weights are there.
        self._inner_paths = tiling.engines * (units - (options.device.num_engines > 1 < units))
        self._paths = min(options.device.count("sDMA"), self._inner_paths)
        self._blocks = tiling.column_blocks(layer.columns)
        self._l1_layout = placement.l1_layouts[layer.name]

    def loads(self, engine: int, block: int, slot: int) -> Iterator[Task]:
        """A block of weights on its way to L1, large ones by several units at a time."""
        packed, name = self._layer.packed, self._layer.name
        assert packed is not None
        size = packed.block_bytes(self._blocks[block][1])
        begins, source, paths = self._placement.blocks[name, block], WEIGHTS, self._paths
        if (name, block) in self._placement.compressed:
            offset, count = self.offset(slot), self._blocks[block][1]
            brings = self._tiling.begins_block(engine)  # and the others decompress it as well
            yield from self._compressed_loads(engine, block, offset, count, brings=brings)
            return
        staged = self._placement.staged.get((name, block))
        if staged is not None:
            if staged.is_first and self._tiling.begins_block(engine):
                yield self._stage_weights(block, staged.offset, size)
            begins, source, paths = staged.offset, L2, self._inner_paths
        buffer = self._placement.l1(engine)
        parts = max(1, min(paths // self._tiling.engines, size // _LEAST_PART))
        step = align_up(-(-size // parts))
        for number, first in enumerate(range(0, size, step)):
            count = min(step, size - first)
            dst = Region(buffer, Affine(self.offset(slot) + first), count)
            src = Region(source, Affine(begins + first), count)
            token = f"{name}_w{block}{engine_suffix(engine)}" + (f"p{number}" if number else "")
            yield _weights_copy(self._layer, token, dst, src)

    def _compressed_loads(
        self, engine: int, block: int, offset: int, columns: int, *, brings: bool
    ) -> Iterator[Task]:
        """A block of weights that is decompressed between L2 and L1, and its bias.

        `offset` is where it goes in L1; of several engines that have the block, one `brings` it.
        """
        packed, name = self._layer.packed, self._layer.name
        assert packed is not None
        found, begins = self._placement.compressed[name, block], self._placement.blocks[name, block]
        tag, buffer = f"{block}{engine_suffix(engine)}", self._placement.l1(engine)
        for number, part in enumerate(found.parts):
            waits = Region(COMPRESSED, Affine(found.waits_at + part.begins), part.size)
            if brings:
                src = Region(WEIGHTS, Affine(begins + part.begins), part.size)
                yield _weights_copy(self._layer, f"{name}_z{tag}p{number}", waits, src)
            dst = Region(
                buffer, Affine(offset + part.first), part.count * element_bytes(packed.elem)
            )
            src = replace(waits, elem=packed.elem, shape=(part.count,), layout="C",
                          compressed=part.form)  # fmt: skip
            yield _weights_copy(
                self._layer, f"{name}_w{tag}" + (f"p{number}" if number else ""), dst, src
            )
        if packed.bias is not None:
            first = packed.part_offset(1, columns)
            size = packed.block_bytes(columns) - first
            src = Region(WEIGHTS, Affine(begins + found.rest), size)
            dst = Region(buffer, Affine(offset + first), size)
            yield _weights_copy(self._layer, f"{name}_w{tag}b", dst, src)

    def _stage_weights(self, block: int, offset: int, size: int) -> Task:
        """A block of weights on its way to L2, for this layer and others."""
        name = self._layer.name
        dst = Region(L2, Affine(offset), size)
        src = Region(WEIGHTS, Affine(self._placement.blocks[name, block]), size)
        return _weights_copy(self._layer, f"{name}_g{block}", dst, src)

    def lets(self, engine: int, block: int, slot: int) -> Iterator[Let]:
        """The names of a block of weights and of its bias in L1."""
        packed = self._layer.packed
        if packed is None:
            return
        first, count = self._blocks[block]
        buffer = self._placement.l1(engine)
        for number, part in enumerate(packed.parts):
            shape = (*part.inner, count)
            begins = self.offset(slot) + packed.part_offset(number, count)
            size, layout = part.bytes(count), _LAYOUTS[len(shape)]
            region = Region(buffer, Affine(begins), size, part.elem, shape, layout)
            if packed.quant and not number:
                region = replace(region, quant=packed.quant.columns(first, count))
            yield Let(self.name(engine, block, number), region)

    def name(self, engine: int, block: int, number: int) -> str:
        """What a part of a block of weights is called in L1."""
        assert self._layer.packed is not None
        has_bias = self._layer.packed.bias is not None
        letter = "B" if has_bias and number == len(self._layer.packed.parts) - 1 else "WSZM"[number]
        return f"{self._layer.name}_{letter}{block}{engine_suffix(engine)}"

    def offset(self, slot: int) -> int:
        """Where a slot for a block of weights begins in L1."""
        return self._l1_layout.weights + slot * self._l1_layout.footprint.w_bytes


def _weights_copy(layer: Layer, token: str, dst: Region, src: Region) -> Task:
    copy = Copy(token, "transfer", dst, src, debug=layer.title, ahead=True)
    return Task(copy, (touch_of(dst, True), touch_of(src, False)))
