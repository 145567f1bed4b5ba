"""Elements that move from memory to memory, without a stop in L1."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer, Move, element_bytes
from nacre.compile.partition.views import dense
from nacre.compile.placement.stage import Placement, is_l1
from nacre.compile.program import Affine, Copy, Region
from nacre.compile.schedule.order import touch_of
from nacre.compile.schedule.regions import outside
from nacre.compile.schedule.task import Task
from nacre.compile.schedule.task_writer import TaskWriter

_MOST_COPIES = 8  # between two waits
_LEAST_PART = 2048  # bytes that are worth a task of their own


def write_copies(layer: Layer, placement: Placement, writer: TaskWriter, options: Options) -> None:
    """Elements moved from memory to memory, large parts by several units at a time."""
    engines = options.device.num_engines
    units = options.device.count("DMA") * engines
    parts = [part for move in layer.moves for part in _split_move(move, units)]
    for number, move in enumerate(parts):
        if number % _MOST_COPIES == 0:
            writer.make_room()
        regions: list[Region] = []
        for access in (move.target, move.source):
            where = placement.tensors[access.tensor]
            shape = tuple(int(axis) for axis in access.axes)
            regions.append(
                outside(where.buffer, where.offset, Affine(access.offset), access, shape)
            )
        dst, src = _type_both_sides(regions[0], regions[1])
        # What touches no L1 belongs to no engine: they take turns, for the tokens of all would do.
        is_free = engines > 1 and not is_l1(dst.buffer) and not is_l1(src.buffer)
        engine = number % engines if is_free else None
        token = f"{layer.name}_m{number}"
        copy = Copy(token, "transfer", dst, src, (), layer.title, engine=engine)
        writer.task(Task(copy, (touch_of(dst, True), touch_of(src, False))))


def _split_move(move: Move, units: int) -> list[Move]:
    """A move in up to as many parts as there are units; runs of bytes stay whole if they can."""
    shape = tuple(int(axis) for axis in move.source.axes)
    run = 1 if _has_gaps(move) else shape[-1] if shape else 1
    size = prod(shape) * element_bytes(move.source.elem)
    count = min(units, size // _LEAST_PART)
    parts = [move]
    for axis, length in enumerate(shape):
        is_run = run > 1 and axis == len(shape) - 1
        most = length * element_bytes(move.source.elem) // _LEAST_PART if is_run else length
        pieces = min(count // len(parts), most)
        if pieces > 1:
            parts = [piece for part in parts for piece in _cut_move(part, axis, pieces)]
    return parts


def _has_gaps(move: Move) -> bool:
    """Whether neighbours along the last axis lie apart on some side."""
    return any(access.strides[-1:] != (1,) for access in (move.source, move.target))


def _cut_move(move: Move, axis: int, count: int) -> list[Move]:
    """About equal parts along an axis."""
    shape = tuple(int(length) for length in move.source.axes)
    step = -(-shape[axis] // count)
    moves = []
    for first in range(0, shape[axis], step):
        now = min(step, shape[axis] - first)
        axes = (*shape[:axis], now, *shape[axis + 1 :])
        ends = (
            replace(a, axes=axes, offset=a.offset + first * a.strides[axis])
            for a in (move.source, move.target)
        )
        moves.append(Move(*ends))
    return moves


def _type_both_sides(dst: Region, src: Region) -> tuple[Region, Region]:
    """Both sides typed where one of them has gaps."""
    if bool(dst.elem) == bool(src.elem):
        return dst, src
    typed = dst if dst.elem else src
    plain = replace(
        src if dst.elem else dst, elem=typed.elem, shape=typed.shape, strides=dense(typed.shape)
    )
    return (dst, plain) if dst.elem else (plain, src)
