"""Transfers of an image that the WDM decompresses: their bytes before and after."""

from __future__ import annotations

from math import prod

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES, bytes_needed
from nacre.bind.measure.buffer_finder import BufferFinder
from nacre.tcb.image import Operand
from nacre.tcb.machine.instances import Instances


class CompressedRead(Struct, frozen=True):
    """What one transfer reads compressed, in all its iterations."""

    position: int  # of its statement
    buffer: str
    mode: str
    elem: str
    times: int
    bytes: int  # of all times together, decompressed
    compressed_bytes: int


def compressed_reads(instances: Instances) -> tuple[CompressedRead, ...]:
    """Every one of an image, in the order of the program."""
    finder = BufferFinder(instances.image.placements)
    found: dict[int, CompressedRead] = {}
    for placed in instances.blocks:
        source = next((o for o in placed.block.inputs if o is not None and o.compression), None)
        times = placed.grid.rows
        if source is None or not times:
            continue
        address = int(placed.grid.column(source.address)[0])
        sizes = _sizes(source, times)
        before = found.get(placed.block.position)  # other iterations of its loop
        if before is not None:
            times += before.times
            sizes = before.bytes + sizes[0], before.compressed_bytes + sizes[1]
        found[placed.block.position] = CompressedRead(
            placed.block.position,
            finder.find(source.memory, address) or "",
            _mode_text(source),
            source.elem,
            times,
            *sizes,
        )
    return tuple(found[position] for position in sorted(found))


def _sizes(source: Operand, times: int) -> tuple[int, int]:
    whole = bytes_needed(prod(source.dims), GRAPH_TYPES[source.elem])
    return times * whole, times * (source.compressed_bytes or 0)


def _mode_text(source: Operand) -> str:
    form = source.compression
    if form is None or form.name == "sparse":
        return "sparse"
    tables = "palette" if form.tables == 1 else f"{form.tables} palettes"
    return f"{tables} of {form.bits} bits"
