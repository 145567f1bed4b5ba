"""Which parts of memories tasks touch, and when: a coarse picture over addresses and time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.tcb.image import STREAM, Image
from nacre.tcb.machine.operands import layout_of
from nacre.tcb.machine.timing import ImageTiming
from nacre.tcb.machine.tree import PlacedBlock

ROWS = 48  # parts of the addresses
STEPS = 240  # of time


class MemoryTouches(Struct, frozen=True, eq=False):
    """A memory up to the end of what lies in it, over the whole run."""

    end: int  # address
    counts: Column  # (ROWS, STEPS): operands that touch a part of it in a step of time


def memory_touches(timing: ImageTiming) -> dict[str, MemoryTouches]:
    """Every memory that holds a buffer."""
    image = timing.instances.image
    ends = _ends(image)
    # A rectangle is four corners of its differences, along both ways.
    corners = {memory: np.zeros((ROWS + 1, STEPS + 1), np.int64) for memory in ends}
    cycles = max(1, timing.cycles)
    for placed, rows in zip(timing.instances.blocks, timing.instances.numbers, strict=True):
        has_run = timing.start[rows] >= 0
        if placed.block.kind != "task" or not has_run.any():
            continue
        begin = timing.start[rows][has_run] * STEPS // cycles
        finish = np.maximum(begin + 1, -(-timing.end[rows][has_run] * STEPS // cycles))
        for memory, address, span in _spans(placed):
            if memory in ends:
                low = address[has_run] * ROWS // ends[memory]
                high = -(-(address[has_run] + span) * ROWS // ends[memory])
                _add_rectangles(corners[memory], low, np.maximum(low + 1, high), begin, finish)
    return {
        memory: MemoryTouches(ends[memory], found.cumsum(axis=0).cumsum(axis=1)[:ROWS, :STEPS])
        for memory, found in corners.items()
    }


def _ends(image: Image) -> dict[str, int]:
    ends: dict[str, int] = {}
    for one in image.placements:
        ends[one.memory] = max(1, ends.get(one.memory, 0), one.address + one.size)
    return ends


def _spans(placed: PlacedBlock) -> Iterator[tuple[str, Column, int]]:
    """Where operands begin by row, and over how many bytes they reach."""
    for operand in (*placed.block.inputs, *placed.block.outputs):
        if operand is not None and operand.memory != STREAM:
            span = operand.compressed_bytes or layout_of(operand).span
            yield operand.memory, placed.grid.column(operand.address), span


def _add_rectangles(
    corners: Column, low: Column, high: Column, begin: Column, finish: Column
) -> None:
    low, high = np.clip(low, 0, ROWS), np.clip(high, 0, ROWS)
    begin, finish = np.clip(begin, 0, STEPS), np.clip(finish, 0, STEPS)
    for rows, columns, sign in ((low, begin, 1), (low, finish, -1), (high, begin, -1),
                                (high, finish, 1)):  # fmt: skip
        np.add.at(corners, (rows, columns), sign)
