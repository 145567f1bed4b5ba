"""A load in parts, each on a DMA of its own, where the tiles in flight leave some without work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd, prod

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer, element_bytes
from nacre.compile.partition.views import dense, reach
from nacre.compile.program import Region
from nacre.compile.tiling.costs import LEAST_LOAD, load_units, run_lengths
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.tiling import Tiling


class LoadParts:
    """Says in how many parts the loads of a layer travel, and cuts them."""

    def __init__(self, layer: Layer, tiling: Tiling, loads: int, options: Options) -> None:
        device = options.device
        tiles = -(-layer.images * -(-layer.rows // tiling.rows) // tiling.row_engines)
        tiles *= -(-layer.columns // (tiling.columns * tiling.abreast))
        self._inner = load_units(device)
        self._outer = min(self._inner, device.count("sDMA") // tiling.engines)
        # Loads of as many engines as do not divide the ways from DDR: whole ones leave some idle.
        ways = device.count("sDMA")
        is_uneven = 1 < tiling.engines < ways and ways % tiling.engines > 0
        self._even = ways // gcd(ways, tiling.engines) if is_uneven else 1
        self._in_flight = min(tiling.slots, tiles) * max(1, loads)
        self._options = options

    def split_load(
        self, dst: Region, src: Region, *, is_in_ddr: bool, is_shared: bool
    ) -> Iterator[tuple[Region, Region]]:
        """Where each part goes and comes from; what is shared has all units for itself."""
        units = self._outer if is_in_ddr else self._inner
        count = units if is_shared else units // self._in_flight
        if is_in_ddr and not is_shared:
            count = max(count, self._even)
        count = min(count, self._cycles(src, is_in_ddr=is_in_ddr) // LEAST_LOAD)
        yield from cut_region(dst, src, count)

    def _cycles(self, src: Region, *, is_in_ddr: bool) -> int:
        """How long one unit would be busy with a load."""
        width = self._options.profile.at("sDMA" if is_in_ddr else "DMA", "bandwidth")
        if not src.strides:
            return -(-src.size // width)
        run = int(run_lengths(src.shape, src.strides))
        return prod(src.shape) // run * -(-run * element_bytes(src.elem) // width)


def cut_region(dst: Region, src: Region, count: int) -> Iterator[tuple[Region, Region]]:
    """A copy as up to so many; as it is where a side is not dense or shapes differ."""
    if count < 2 or dst.strides or src.compressed or (src.strides and src.shape != dst.shape):
        yield dst, src
    elif src.strides:
        yield from _cut_elements(dst, src, count)
    else:
        yield from _cut_bytes(dst, src, count)


def _cut_bytes(dst: Region, src: Region, count: int) -> Iterator[tuple[Region, Region]]:
    step = align_up(-(-src.size // count))
    for first in range(0, src.size, step):
        size = min(step, src.size - first)
        ends = (Region(side.buffer, side.offset.plus(first), size) for side in (dst, src))
        yield next(ends), next(ends)


def _cut_elements(dst: Region, src: Region, count: int) -> Iterator[tuple[Region, Region]]:
    """Along the outermost axis that has a length: there each part is dense where it goes."""
    axis = next((n for n, length in enumerate(src.shape) if length > 1), 0)
    length = src.shape[axis]
    step = -(-length // min(count, length))
    for first in range(0, length, step):
        shape = (*src.shape[:axis], min(step, length - first), *src.shape[axis + 1 :])
        strides = dense(shape)
        yield (
            replace(
                _advance(dst, first * dense(dst.shape)[axis]),
                size=prod(shape) * element_bytes(dst.elem), shape=shape, layout="", strides=strides,
            ),
            replace(
                _advance(src, first * src.strides[axis]),
                size=reach(shape, src.strides) * element_bytes(src.elem), shape=shape,
            ),
        )  # fmt: skip


def _advance(region: Region, elements: int) -> Region:
    return replace(region, offset=region.offset.plus(elements * element_bytes(region.elem)))
